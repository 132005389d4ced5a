//! A directory of this machine, shared with a guest by `inodyne share`: over a virtio serial port, by virtiofs, and over vsock where the
//! machine has that (`vsock`).

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::failure::Failure;
use crate::vm::{Task, Vm};
use crate::vsock;

/// A process of this machine that ends with this value.
pub struct Server(pub(crate) Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is shared, and how.
pub struct Share {
    /// The program.
    pub inodyne: PathBuf,
    /// The directory.
    pub directory: PathBuf,
    socket: PathBuf,
    /// Where QEMU connects its virtiofs device.
    device: PathBuf,
    /// Where a guest connects over vsock.
    over_vsock: PathBuf,
}

/// The host's vsock port.
const PORT: u32 = 700;

impl Share {
    /// For an empty directory in `scratch`, which is filled with a tree of so many directories and files in each.
    ///
    /// # Errors
    /// There is no such program, or no room.
    pub fn of_tree(inodyne: &Path, scratch: &Path, directories: u64, files: u64, bytes: u64) -> Result<Share, Failure> {
        let inodyne = fs::canonicalize(inodyne).map_err(Failure::reading(inodyne))?;
        let [directory, socket, device] = ["shared", "port", "device"].map(|name| scratch.join(name));
        let share = Share { inodyne, directory, socket, device, over_vsock: vsock::listening(scratch, PORT) };
        fs::create_dir(&share.directory).map_err(Failure::writing(&share.directory))?;
        let spec = format!("dirs={directories},files={files},bytes={bytes}");
        let mut tree = Command::new(&share.inodyne);
        tree.args(["tree", "make", "--spec", &spec]).arg(share.directory.join("tree"));
        crate::failure::output(&mut tree)?;
        Ok(share)
    }

    fn address(&self) -> String {
        format!("serial:{}", self.socket.display())
    }

    /// Begins to share it.
    ///
    /// # Errors
    /// The program cannot be started, or does not listen.
    pub fn serve<S: AsRef<OsStr>>(&self, options: &[S]) -> Result<Server, Failure> {
        let mut command = Command::new(&self.inodyne);
        let [device, over_vsock] = [("vhost-user", &self.device), ("unix", &self.over_vsock)]
            .map(|(kind, path)| format!("{kind}:{}", path.display()));
        command.args(["share", "serve"]).arg(&self.directory);
        command.args(["--listen", &self.address(), "--listen", &device, "--listen", &over_vsock]);
        start(command.args(options), || self.device.exists())
    }

    /// What QEMU is told, so that the guest has the port and the virtiofs device with the tag `share`. Its memory is shared, since whoever
    /// serves such a device reads and writes there.
    #[must_use]
    pub fn qemu_arguments(&self, memory_mib: u32) -> Vec<String> {
        let memory = format!("memory-backend-memfd,id=memory,size={memory_mib}M,share=on");
        let port = format!("socket,id=share,path={},reconnect=1", self.socket.display());
        let port = ["-chardev", &port, "-device", "virtserialport,chardev=share,name=share"].map(String::from);
        let memory = ["-object", &memory, "-machine", "memory-backend=memory"].map(String::from);
        memory.into_iter().chain(port).chain(virtiofs("share-fs", "share", &self.device)).collect()
    }

    /// The only guest, as the host knows it.
    ///
    /// # Errors
    /// There is none.
    pub fn guest(&self) -> Result<Value, Failure> {
        let mut command = Command::new(&self.inodyne);
        let text = crate::failure::output(command.args(["share", "status", "--json", &self.address()]))?;
        let status: Value = serde_json::from_str(&text).map_err(Failure::new)?;
        status["guests"].get(0).cloned().ok_or_else(|| Failure::new("the host has no guest"))
    }

    /// How often it has waited for an answer.
    ///
    /// # Errors
    /// As [`Share::guest`].
    pub fn round_trips(&self) -> Result<u64, Failure> {
        self.guest()?["round_trips"].as_u64().ok_or_else(|| Failure::new("no number of round trips"))
    }
}

/// What QEMU is told about a virtiofs device that is served at a socket.
#[must_use]
pub fn virtiofs(name: &str, tag: &str, socket: &Path) -> Vec<String> {
    let socket = format!("socket,id={name},path={}", socket.display());
    let device = format!("vhost-user-fs-pci,chardev={name},tag={tag}");
    ["-chardev", &socket, "-device", &device].map(String::from).to_vec()
}

/// Starts a server that dies with the thread that started it, and waits until it listens.
pub(crate) fn start(command: &mut Command, listens: impl Fn() -> bool) -> Result<Server, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let die = || nix::sys::prctl::set_pdeathsig(Signal::SIGTERM).map_err(io::Error::from);
    // SAFETY: only a system call without memory of others happens between fork and exec.
    let spawned = unsafe { command.stdin(Stdio::null()).pre_exec(die) }.spawn();
    let mut server = Server(spawned.map_err(|error| Failure::new(format_args!("cannot start {name}: {error}")))?);
    let waited = Instant::now();
    while !listens() {
        if let Ok(Some(status)) = server.0.try_wait() {
            return Err(Failure::new(format_args!("{name} ends ({status})")));
        }
        if waited.elapsed() > Duration::from_secs(60) {
            return Err(Failure::new(format_args!("{name} does not listen")));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(server)
}

/// Mounts what is at `$address` on `$directory`.
macro_rules! mounting {
    ($found:literal) => {
        concat!(
            $found,
            r#"
mkdir -p $directory
setsid inodyne share mount "$address" $directory $options >/tmp/mount.log 2>&1 </dev/null &
echo $! >/tmp/mounter
tries=0
until mountpoint -q $directory; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || { cat /tmp/mount.log >&2; exit 1; }
    sleep 0.1
done
"#
        )
    };
}

/// Lines for the guest's shell that mount the share at `/mnt/share`, with the `options` that were set before.
pub const MOUNT: &str = mounting!(
    r#"
directory=/mnt/share
for port in /sys/class/virtio-ports/*; do
    [ "$(cat "$port/name")" != share ] || address=serial:/dev/$(basename "$port")
done"#
);

/// The same at `/mnt/share-vsock`, over vsock.
pub const MOUNT_OVER_VSOCK: &str = mounting!(
    r#"
directory=/mnt/share-vsock address=vsock:2:700
modprobe vmw_vsock_virtio_transport"#
);

/// Runs lines in the guest's shell, which must succeed within that time; returns what they print.
///
/// # Errors
/// They fail.
pub fn tell_within(vm: &mut Vm, lines: &str, timeout: Duration) -> Result<String, Failure> {
    let done = vm.run(Task::shell(lines).timeout(timeout))?;
    if done.succeeded() {
        return Ok(done.text().trim().to_owned());
    }
    let (said, errors) = (done.text(), done.errors());
    Err(Failure::new(format_args!("in the guest: {lines}\n{:?}\n{said}{errors}\n{}", done.status, vm.console())))
}

/// The same within two minutes.
///
/// # Errors
/// They fail.
pub fn tell(vm: &mut Vm, lines: &str) -> Result<String, Failure> {
    tell_within(vm, lines, Duration::from_secs(120))
}
