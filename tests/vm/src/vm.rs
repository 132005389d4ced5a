//! A running guest: QEMU, and the conversation with the agent inside.
//!
//! Nothing is left of it when its owner ends, by whatever signal: QEMU gets SIGKILL with its parent, and its files have
//! no names (snapshot, RAM disk, console) or are a pair of sockets. The kernel of the host sends that signal when the
//! *thread* ends that started QEMU, so a [`Vm`] lives no longer than the thread that booted it.
//!
//! Without KVM (or for another architecture) QEMU emulates: 20 to 50 times slower, but just as correctly. A guest has two CPUs, which
//! then take turns.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::failure::{Failure, wanted};
use crate::image::{self, Payload, System};
use crate::kernel::{self, Kernel};
use crate::wire::{self, Hello, PORT, Reply, Request, Status};

/// A boot takes 10 s of CPU time where it is emulated.
const BOOT_TIMEOUT: Duration = Duration::from_secs(600);
/// What a program may take if its [`Task`] does not say.
const TIMEOUT: Duration = Duration::from_secs(300);
/// How much later than the guest's own time-out an answer counts as never coming.
const GRACE: Duration = Duration::from_secs(60);
const CONSOLE_LINES: usize = 40;

/// What to boot.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The kernel.
    pub kernel: Kernel,
    /// Where kernels and images are kept.
    pub cache: PathBuf,
    /// What runs in the guest besides the tests.
    pub system: System,
    /// Files that the test adds to the guest.
    pub payload: Payload,
    /// The agent for the guest's architecture; the one built beside this program if not given.
    pub agent: Option<PathBuf>,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// CPUs.
    pub cpus: u32,
    /// Added to the kernel's command line.
    pub kernel_arguments: String,
    /// Added to QEMU's.
    pub qemu_arguments: Vec<String>,
}

impl Machine {
    /// A machine with the kernel of this name in `kernels.toml`, fetched if need be.
    ///
    /// # Errors
    /// There is no such kernel, or it cannot be fetched.
    pub fn of(name: &str) -> Result<Machine, Failure> {
        let cache = kernel::cache();
        let kernel = kernel::named(name)?.fetch(&cache, false)?;
        Ok(Machine {
            kernel,
            cache,
            system: System::Bare,
            payload: Payload::default(),
            agent: None,
            memory_mib: 2048,
            cpus: 2,
            kernel_arguments: String::new(),
            qemu_arguments: Vec::new(),
        })
    }

    /// The same with these files inside.
    #[must_use]
    pub fn with(mut self, payload: Payload) -> Machine {
        self.payload = payload;
        self
    }

    fn qemu(&self, disk: &File, root: &std::path::Path, wire: &OwnedFd) -> Result<Command, Failure> {
        // A PC kernel panics if its timer does not tick in time, which it does not on a busy machine. It then also takes its clock for
        // unstable, and reads another one that costs microseconds at each switch.
        let (program, board, console, timer) = match self.kernel.entry.arch.as_str() {
            "amd64" => ("qemu-system-x86_64", "q35", "ttyS0", "no_timer_check tsc=reliable"),
            "arm64" => ("qemu-system-aarch64", "virt", "ttyAMA0", ""),
            other => return Err(Failure::new(format_args!("no machine is known for {other}"))),
        };
        let accelerator = accelerator(&self.kernel.entry.arch);
        let mut qemu = Command::new(program);
        let first = match self.system {
            System::Bare => "",
            System::Systemd => "inodyne.init=/usr/lib/systemd/systemd systemd.unit=inodyne-vm.target",
        };
        let append = format!(
            "console={console} panic=-1 random.trust_cpu=on mitigations=off {timer} {first} {}",
            self.kernel_arguments
        );
        qemu.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-nic", "none"]);
        qemu.args(["-machine", board, "-accel", accelerator]);
        qemu.args(["-cpu", processor(&self.kernel.entry.arch, accelerator)]);
        qemu.args(["-m", &self.memory_mib.to_string(), "-smp", &self.cpus.to_string()]);
        qemu.args(["-serial", "stdio", "-device", "virtio-serial-pci", "-device", "virtio-rng-pci"]);
        qemu.args(["-chardev", &format!("socket,id=wire,fd={}", wire.as_raw_fd())]);
        qemu.args(["-device", &format!("virtserialport,chardev=wire,name={PORT}")]);
        let drive =
            format!("file={},format=raw,if=none,id=root,snapshot=on,cache=unsafe,discard=unmap", root.display());
        qemu.args(["-drive", &drive, "-device", "virtio-blk-pci,drive=root"]);
        qemu.arg("-kernel").arg(&self.kernel.image);
        qemu.args(["-initrd", &format!("/proc/self/fd/{}", disk.as_raw_fd()), "-append", &append]);
        qemu.args(&self.qemu_arguments);
        Ok(qemu)
    }

    fn agent(&self) -> Result<PathBuf, Failure> {
        if let Some(agent) = &self.agent {
            return Ok(agent.clone());
        }
        let own = std::env::current_exe().map_err(Failure::reading("/proc/self/exe"))?;
        // A test lies in `deps` below where programs lie.
        let beside = own.ancestors().skip(1).take(2).map(|directory| directory.join("inodyne-vm-agent"));
        beside
            .into_iter()
            .find(|path| path.is_file())
            .map_or_else(|| wanted(own.with_file_name("inodyne-vm-agent")), Ok)
    }
}

/// KVM where the processor offers it (the device alone may be there and not work), else emulation: with both CPUs in one
/// thread, since with a thread for each QEMU 7.2 sometimes runs an instruction that the kernel has just patched out ("Oops: int3"
/// in `__schedule` while tracepoints are attached).
fn accelerator(arch: &str) -> &'static str {
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let is_able = processor.split_whitespace().any(|word| word == "vmx" || word == "svm");
    let device = File::options().read(true).write(true).open("/dev/kvm");
    let is_own = arch == "amd64" && cfg!(target_arch = "x86_64");
    if is_own && is_able && device.is_ok() { "kvm" } else { "tcg,thread=single" }
}

/// Where it is emulated, all but cmpxchg16b: QEMU 7.2 was seen to leave half a pointer in the flags after it, from which the
/// kernel died (6.12, `__kmalloc_noprof`). On an arm64, pointers are signed by QEMU's own quick algorithm and not by the architecture's.
fn processor(arch: &str, accelerator: &str) -> &'static str {
    match (arch, accelerator) {
        (_, "kvm") => "max",
        ("amd64", _) => "max,cx16=off",
        (_, _) => "max,pauth-impdef=on",
    }
}

/// A program to be run in a guest.
#[derive(Debug, Clone)]
pub struct Task {
    argv: Vec<String>,
    env: BTreeMap<String, String>,
    directory: String,
    uid: u32,
    timeout: Duration,
    input: Vec<u8>,
}

impl Task {
    /// This program with these arguments, as root in `/root`, at most five minutes.
    pub fn new(argv: impl IntoIterator<Item = impl Into<String>>) -> Task {
        Task {
            argv: argv.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            directory: "/root".into(),
            uid: 0,
            timeout: TIMEOUT,
            input: Vec::new(),
        }
    }

    /// These lines, run by a shell that stops at the first that fails.
    #[must_use]
    pub fn shell(script: &str) -> Task {
        Task::new(["bash", "-eo", "pipefail", "-c", script])
    }

    /// With this in its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Task {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Starting in this directory.
    #[must_use]
    pub fn directory(mut self, directory: &str) -> Task {
        directory.clone_into(&mut self.directory);
        self
    }

    /// As this user and the group of the same number. The image has 1000 (`user`).
    #[must_use]
    pub fn user(mut self, uid: u32) -> Task {
        self.uid = uid;
        self
    }

    /// Killed with its process group after this time.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Task {
        self.timeout = timeout;
        self
    }

    /// With this as its standard input.
    #[must_use]
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Task {
        self.input = bytes.into();
        self
    }
}

/// How a program in a guest ended, and what it printed.
#[derive(Debug, Clone)]
pub struct Ended {
    /// How it ended.
    pub status: Status,
    /// How long it took by the guest's clock.
    pub wall: Duration,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

impl Ended {
    /// Whether its exit code is 0.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.status == Status::Exit(0)
    }

    /// Its standard output as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Its standard error as text.
    #[must_use]
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// A running guest. It is killed when this value is dropped.
pub struct Vm {
    qemu: Child,
    console: File,
    to: UnixStream,
    from: BufReader<UnixStream>,
    hello: Hello,
    booted_in: Duration,
}

impl Vm {
    /// Boots a machine and waits for its agent.
    ///
    /// # Errors
    /// QEMU or a part of the image is missing, or the guest does not come up: then with the end of its kernel's log.
    pub fn boot(machine: &Machine) -> Result<Vm, Failure> {
        let mut payload = machine.payload.clone();
        payload.add(machine.agent()?, "/usr/sbin/inodyne-vm-agent");
        let root = image::root(&machine.cache, &machine.kernel.entry.arch, machine.system)?;
        let disk = image::initial_ram_disk(&machine.cache, &machine.kernel, &payload)?;
        let pair = || Failure::new("cannot make a pair of sockets");
        let (ours, theirs) = UnixStream::pair().map_err(|_| pair())?;
        let theirs = OwnedFd::from(theirs);
        let console = tempfile::tempfile().map_err(Failure::writing("a temporary file"))?;
        let copy = |file: &File| file.try_clone().map_err(Failure::writing("a temporary file"));
        let mut command = machine.qemu(&disk, &root, &theirs)?;
        command.stdin(Stdio::null()).stdout(copy(&console)?).stderr(copy(&console)?);
        let inherited = [disk.as_raw_fd(), theirs.as_raw_fd()];
        let parent = rustix::process::getpid();
        let prepare = move || {
            for descriptor in inherited {
                // SAFETY: both are open in the parent, so here too; the descriptor is given back, not closed.
                let file = unsafe { OwnedFd::from_raw_fd(descriptor) };
                let kept = rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty());
                let _ = file.into_raw_fd();
                kept?;
            }
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            // It may have died before that was set.
            if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
        };
        // SAFETY: only system calls without memory of others happen between fork and exec.
        unsafe { command.pre_exec(prepare) };
        let started = Instant::now();
        let program = command.get_program().to_string_lossy().into_owned();
        let qemu = command
            .spawn()
            .map_err(|error| Failure::new(format_args!("cannot start {program}: {error} (scripts/setup)")))?;
        drop((theirs, disk, command));
        let from = BufReader::with_capacity(64 << 10, ours.try_clone().map_err(|_| pair())?);
        let hello = Hello { kernel: String::new(), machine: String::new(), uptime_ms: 0 };
        let mut vm = Vm { qemu, console, to: ours, from, hello, booted_in: Duration::ZERO };
        vm.hello = vm.answer(BOOT_TIMEOUT, "does not boot")?;
        vm.booted_in = started.elapsed();
        Ok(vm)
    }

    /// What `uname -r` says inside.
    #[must_use]
    pub fn kernel(&self) -> &str {
        &self.hello.kernel
    }

    /// How long it took from the start of QEMU to the agent's first words.
    #[must_use]
    pub fn booted_in(&self) -> Duration {
        self.booted_in
    }

    /// QEMU's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.qemu.id()
    }

    /// Runs a program to its end.
    ///
    /// # Errors
    /// The guest is gone or does not answer. A program that fails is no error.
    pub fn run(&mut self, task: Task) -> Result<Ended, Failure> {
        let patience = task.timeout + GRACE;
        let bytes = task.input.len() as u64;
        let Task { argv, env, directory, uid, timeout, input } = task;
        let timeout_ms = timeout.as_millis() as u64;
        self.ask(&Request::Run { argv, env, directory, uid, timeout_ms, bytes }, &input, patience)
    }

    /// Runs lines in a shell that stops at the first that fails.
    ///
    /// # Errors
    /// As [`Vm::run`].
    pub fn shell(&mut self, script: &str) -> Result<Ended, Failure> {
        self.run(Task::shell(script))
    }

    /// Writes a file into the guest, and the directories above it.
    ///
    /// # Errors
    /// As [`Vm::run`], or it cannot be written.
    pub fn put(&mut self, path: &str, mode: u32, content: &[u8]) -> Result<(), Failure> {
        let bytes = content.len() as u64;
        let done = self.ask(&Request::Put { path: path.to_owned(), mode, bytes }, content, TIMEOUT)?;
        if done.succeeded() { Ok(()) } else { Err(Failure::new(format_args!("{path}: {}", done.errors().trim()))) }
    }

    /// Reads a file of the guest.
    ///
    /// # Errors
    /// As [`Vm::run`], or it cannot be read.
    pub fn get(&mut self, path: &str) -> Result<Vec<u8>, Failure> {
        let done = self.ask(&Request::Get { path: path.to_owned() }, &[], TIMEOUT)?;
        if done.succeeded() {
            Ok(done.stdout)
        } else {
            Err(Failure::new(format_args!("{path}: {}", done.errors().trim())))
        }
    }

    /// Everything that the kernel, and QEMU, have said so far.
    #[must_use]
    pub fn console(&mut self) -> String {
        let mut bytes = Vec::new();
        let read = self.console.seek(SeekFrom::Start(0)).and_then(|_| self.console.read_to_end(&mut bytes));
        // QEMU writes at the shared position, so it must be left at the end.
        if read.is_err() {
            return "the console cannot be read".into();
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn ask(&mut self, request: &Request, body: &[u8], patience: Duration) -> Result<Ended, Failure> {
        wire::send(&mut self.to, request, &[body]).map_err(|error| self.lost("is gone", &error))?;
        let reply: Reply = self.answer(patience, "does not answer")?;
        let mut body = |bytes| wire::receive_bytes(&mut self.from, bytes);
        let bodies = body(reply.stdout_bytes).and_then(|stdout| Ok((stdout, body(reply.stderr_bytes)?)));
        let (stdout, stderr) = bodies.map_err(|error| self.lost("stopped in its answer", &error))?;
        Ok(Ended { status: reply.status, wall: Duration::from_millis(reply.wall_ms), stdout, stderr })
    }

    fn answer<T: serde::de::DeserializeOwned>(&mut self, patience: Duration, what: &str) -> Result<T, Failure> {
        let limited = self.to.set_read_timeout(Some(patience));
        let answer = limited.and_then(|()| wire::receive(&mut self.from));
        match answer {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(self.lost(what, &io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(self.lost(what, &error)),
        }
    }

    fn lost(&mut self, what: &str, error: &io::Error) -> Failure {
        let console = self.console();
        let lines: Vec<&str> = console.lines().collect();
        let tail = lines[lines.len().saturating_sub(CONSOLE_LINES)..].join("\n  | ");
        let name = if self.hello.kernel.is_empty() { "the guest" } else { &self.hello.kernel };
        Failure::new(format_args!("{name} {what} ({error}); the end of its console:\n  | {tail}"))
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}
