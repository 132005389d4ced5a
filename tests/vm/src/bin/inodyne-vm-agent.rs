//! The first process of the guest: answers the host's requests ([`inodyne_vm::wire`]) until the host is gone.
//!
//! As process 1 it also reaps what nobody else waits for, and ends by powering the machine off.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use inodyne_vm::wire::{self, Hello, PORT, Reply, Request, Status};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, waitid, waitpid};
use nix::unistd::Pid;

/// What a program may print after its own end before its output is cut: something in the background may keep it open.
const DRAIN: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(2);

struct Done {
    status: Status,
    wall: Duration,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Done {
    fn of(result: io::Result<Vec<u8>>, started: Instant) -> Done {
        let (status, stdout, stderr) = match result {
            Ok(bytes) => (Status::Exit(0), bytes, Vec::new()),
            Err(error) => (Status::Exit(127), Vec::new(), format!("{error}\n").into_bytes()),
        };
        Done { status, wall: started.elapsed(), stdout, stderr }
    }
}

fn main() {
    if let Err(error) = serve() {
        // Nobody else reads this: it ends in the kernel's log on the serial console.
        let _ = writeln!(io::stderr(), "inodyne-vm-agent: {error}");
    }
    power_off();
}

fn power_off() -> ! {
    rustix::fs::sync();
    // It only returns if it is refused.
    let _ = rustix::system::reboot(rustix::system::RebootCommand::PowerOff);
    std::process::exit(1)
}

fn serve() -> io::Result<()> {
    let port = File::options().read(true).write(true).open(format!("/dev/virtio-ports/{PORT}"))?;
    let mut to = port.try_clone()?;
    let mut from = BufReader::with_capacity(64 << 10, port);
    let name = rustix::system::uname();
    let hello = Hello {
        kernel: name.release().to_string_lossy().into_owned(),
        machine: name.machine().to_string_lossy().into_owned(),
        uptime_ms: uptime_ms(),
    };
    wire::send(&mut to, &hello, &[])?;
    while let Some(request) = wire::receive::<Request>(&mut from)? {
        let started = Instant::now();
        let done = match request {
            Request::Run { argv, env, directory, uid, timeout_ms, bytes } => {
                let input = wire::receive_bytes(&mut from, bytes)?;
                let mut command = Command::new(argv.first().map_or("", String::as_str));
                command.args(argv.iter().skip(1)).envs(env).current_dir(directory);
                if uid != 0 {
                    command.uid(uid).gid(uid);
                }
                run(&mut command, input, Duration::from_millis(timeout_ms))
                    .unwrap_or_else(|error| Done::of(Err(error), started))
            }
            Request::Put { path, mode, bytes } => {
                let content = wire::receive_bytes(&mut from, bytes)?;
                Done::of(put(Path::new(&path), mode, &content).map(|()| Vec::new()), started)
            }
            Request::Get { path } => Done::of(fs::read(path), started),
            Request::PowerOff => return Ok(()),
        };
        let reply = Reply {
            status: done.status,
            wall_ms: done.wall.as_millis() as u64,
            stdout_bytes: done.stdout.len() as u64,
            stderr_bytes: done.stderr.len() as u64,
        };
        wire::send(&mut to, &reply, &[&done.stdout, &done.stderr])?;
    }
    Ok(())
}

fn uptime_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

fn put(path: &Path, mode: u32, content: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, content)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

fn run(command: &mut Command, input: Vec<u8>, timeout: Duration) -> io::Result<Done> {
    let started = Instant::now();
    let mut child =
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let pid = Pid::from_raw(child.id() as i32);
    let mut stdin = child.stdin.take().expect("asked for");
    // A program that does not read its input ends this thread with a broken pipe.
    thread::spawn(move || stdin.write_all(&input));
    let stdout = collect(child.stdout.take().expect("asked for").into());
    let stderr = collect(child.stderr.take().expect("asked for").into());
    let mut timed_out = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        reap_orphans(pid);
        if !timed_out && started.elapsed() > timeout {
            timed_out = true;
            let _ = killpg(pid, Signal::SIGKILL);
        }
        thread::sleep(TICK);
    };
    let wall = started.elapsed();
    let deadline = Instant::now() + DRAIN;
    Ok(Done { status: ended(status, timed_out), wall, stdout: stdout.until(deadline), stderr: stderr.until(deadline) })
}

fn ended(status: ExitStatus, timed_out: bool) -> Status {
    match (timed_out, status.code(), status.signal()) {
        (true, ..) => Status::TimedOut,
        (_, Some(code), _) => Status::Exit(code),
        (_, None, signal) => Status::Signal(signal.unwrap_or(0)),
    }
}

/// Takes the ends of processes that were left to process 1, and leaves `child` to whoever waits for it.
fn reap_orphans(child: Pid) {
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    while let Ok(status) = waitid(Id::All, look) {
        match status.pid() {
            Some(pid) if pid != child => _ = waitpid(pid, None),
            _ => return,
        }
    }
}

/// What a pipe has brought so far.
#[derive(Default)]
struct Brought {
    bytes: Vec<u8>,
    has_ended: bool,
}

/// A pipe that is read by a thread.
#[derive(Clone, Default)]
struct Collected(Arc<(Mutex<Brought>, Condvar)>);

fn collect(from: OwnedFd) -> Collected {
    let collected = Collected::default();
    let shared = collected.clone();
    thread::spawn(move || {
        let (mut from, mut buffer) = (File::from(from), vec![0; 64 << 10]);
        loop {
            let read = from.read(&mut buffer).unwrap_or(0);
            let mut brought = shared.0.0.lock().expect("nobody panics with it");
            brought.bytes.extend_from_slice(&buffer[..read]);
            brought.has_ended = read == 0;
            shared.0.1.notify_all();
            if read == 0 {
                return;
            }
        }
    });
    collected
}

impl Collected {
    fn until(&self, deadline: Instant) -> Vec<u8> {
        let (brought, changed) = &*self.0;
        let mut brought = brought.lock().expect("nobody panics with it");
        while !brought.has_ended {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            brought = changed.wait_timeout(brought, left).expect("nobody panics with it").0;
        }
        std::mem::take(&mut brought.bytes)
    }
}
