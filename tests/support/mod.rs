//! What the end-to-end tests share: the program under test, a lock on the machine, scratch directories, fixtures.
//!
//! Tests that trace or make file systems take [`machine`] first. Cargo runs test binaries one after the other but the
//! tests of one binary in threads; two traced runs at once would take CPU time from each other, empty each other's caches
//! and change each other's settings under /proc/sys. All of that is machine-wide, so the lock is too, and
//! holds against the tests of another checkout as well. Tests that measure nothing share it with each other
//! ([`beside_others`]), but not with one that measures.
//!
//! Others may be busy on the machine: what is tested runs at the highest priority ([`start`]), so that they take little
//! from it.
//!
//! Nothing is skipped: without root, or without a tool, a test fails and says what is missing.

#![allow(dead_code, reason = "each test file uses a part")]

pub mod programs;
pub mod state;
pub mod window;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use inodyne_model::Nanos;
use inodyne_model::recording::Recording;
use inodyne_model::trace::Trace;
use nix::fcntl::OFlag;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::sys::stat::Mode;
use tempfile::TempDir;

/// A run that takes longer than this hangs. No time is tested by it: a study that takes a minute takes several on a machine that
/// is busy with other things.
const HANGS_AFTER: Duration = Duration::from_secs(900);

/// The machine, or a share of it, for as long as it is held.
#[must_use]
pub struct Machine(#[allow(dead_code, reason = "held for its lock")] File);

/// What is locked: a directory that is the same for everybody on this machine, in whichever root and mount namespace, and
/// that needs no cleaning up. `crates/inodyne-lab/tests/common` locks it too.
const LOCKED: &str = "/sys/kernel";

/// Waits until no other test measures.
pub fn machine() -> Machine {
    assert!(nix::unistd::geteuid().is_root(), "these tests trace and make file systems: run them as root");
    let directory = File::open(LOCKED).expect("sysfs");
    directory.lock().expect("the lock on the machine");
    Machine(directory)
}

/// Waits until no test measures, for one that measures nothing: others like it may run beside it.
pub fn beside_others() -> Machine {
    assert!(nix::unistd::geteuid().is_root(), "these tests mount file systems: run them as root");
    let directory = File::open(LOCKED).expect("sysfs");
    directory.lock_shared().expect("the lock on the machine");
    Machine(directory)
}

/// A directory on a disk that everybody may enter, gone at the end.
pub fn scratch() -> TempDir {
    let scratch = tempfile::Builder::new().prefix("inodyne-e2e-").tempdir_in("/var/tmp").expect("a scratch directory");
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    scratch
}

/// The recording in a file.
pub fn load(path: &Path) -> Result<Recording, inodyne_recording::FileError> {
    inodyne_recording::load(path, inodyne_recording::DEFAULT_LIMIT_BYTES)
}

/// The program under test, with an environment in which nothing changes what it does.
pub fn inodyne() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_inodyne"));
    for name in ["COLUMNS", "NO_COLOR", "SUDO_UID", "SUDO_GID", "SUDO_USER", "INODYNE_MOUNT", "INODYNE_SCRATCH"] {
        command.env_remove(name);
    }
    // Set by Cargo, with the directories of all that was built: every program that is traced would look there for its libraries.
    command.env_remove("LD_LIBRARY_PATH");
    // Otherwise what was measured of this machine's disks would be in reports.
    command.env("XDG_STATE_HOME", "/nonexistent").env("LC_ALL", "C").stdin(Stdio::null());
    command
}

/// What a program printed and how it ended.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error, made printable.
    pub stderr: String,
}

impl Outcome {
    /// The exit code; none where a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Its standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The recording that it printed as JSON.
    pub fn recording(&self) -> Recording {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| {
            panic!("not a recording ({error}); {:?}, standard error:\n{}", self.status, self.stderr)
        })
    }

    /// Insists on an exit code.
    pub fn ended_with(self, code: i32) -> Outcome {
        assert_eq!(self.code(), Some(code), "signal {:?}, standard error:\n{}", self.status.signal(), self.stderr);
        self
    }

    /// Insists on a failure reported in one line, which it returns without the program's name.
    pub fn failed_in_one_line(self, code: i32) -> String {
        let outcome = self.ended_with(code);
        let lines: Vec<&str> = outcome.stderr.lines().collect();
        let [line] = lines[..] else { panic!("not one line:\n{}", outcome.stderr) };
        assert!(!line.contains("panicked"), "{line}");
        line.strip_prefix("inodyne: ").unwrap_or_else(|| panic!("does not say who speaks: {line}")).to_owned()
    }
}

/// A program that runs, its output collected meanwhile so that it never waits for us.
pub struct Running {
    /// The process.
    pub child: Child,
    stdout: Option<thread::JoinHandle<Vec<u8>>>,
    stderr: Option<thread::JoinHandle<Vec<u8>>>,
    started: Instant,
}

/// Whoever runs the tests may ignore these (`nohup`, a background job), and programs inherit that.
const NOT_TO_BE_IGNORED: [Signal; 4] = [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP, Signal::SIGTERM];

/// A program with signals as they are in a terminal, and with priority over others on a busy machine.
pub fn as_in_a_terminal(command: &mut Command) -> &mut Command {
    let set = || {
        for each in NOT_TO_BE_IGNORED {
            // SAFETY: the default action is no handler.
            unsafe { signal(each, SigHandler::SigDfl) }?;
        }
        before_others();
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made, which is async-signal-safe; nothing is allocated.
    unsafe { command.pre_exec(set) }
}

/// Starts a program as in a terminal.
pub fn start(command: &mut Command) -> Running {
    let command = as_in_a_terminal(command);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let stdout = child.stdout.take().map(collect);
    let stderr = child.stderr.take().map(collect);
    Running { child, stdout, stderr, started: Instant::now() }
}

/// Gives this process, and those that it will start, priority over others: a test can say nothing about CPU time that other programs
/// on the machine take.
///
/// Where the scheduler groups processes by their session (`sched_autogroup_enabled`), a nice value only counts within the
/// session, so the process gets a session of its own, and that session a priority. Not the highest: with that, a thread that woke on a CPU where
/// another session was running waited for it for up to 2.5 s (Linux 6.18), and inodyne lost events meanwhile. Without privileges nothing changes.
fn before_others() {
    const FIRST: i32 = -20;
    let _ = nix::unistd::setsid();
    // SAFETY: only numbers are passed.
    let is_first = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, FIRST) } == 0;
    if is_first && let Ok(group) = nix::fcntl::open(c"/proc/self/autogroup", OFlag::O_WRONLY, Mode::empty()) {
        let _ = nix::unistd::write(group, b"-10");
    }
}

fn collect(mut from: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).expect("a pipe can be read");
        bytes
    })
}

impl Running {
    /// Its process id, for signals.
    pub fn pid(&self) -> nix::unistd::Pid {
        nix::unistd::Pid::from_raw(self.child.id() as i32)
    }

    /// Waits for its end. One that hangs is killed, and the test fails.
    pub fn end(mut self) -> Outcome {
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("our own child") {
                break status;
            }
            if self.started.elapsed() > HANGS_AFTER {
                let _ = self.child.kill();
                panic!("hangs: pid {}", self.child.id());
            }
            thread::sleep(Duration::from_millis(2));
        };
        let bytes = |handle: Option<thread::JoinHandle<Vec<u8>>>| {
            handle.map_or_else(Vec::new, |handle| handle.join().expect("the reader ends"))
        };
        let stderr = String::from_utf8_lossy(&bytes(self.stderr)).into_owned();
        let outcome = Outcome { status, stdout: bytes(self.stdout), stderr };
        assert!(!outcome.stderr.contains("panicked"), "it panicked:\n{}", outcome.stderr);
        outcome
    }
}

/// Runs a program to its end.
pub fn run(command: &mut Command) -> Outcome {
    start(command).end()
}

/// `inodyne run --format json OPTIONS -- COMMAND`.
pub fn traced(options: &[&str], argv: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = inodyne();
    command.args(["run", "--format", "json"]).args(options).arg("--").args(argv);
    command
}

/// The one trace of a run that succeeded.
pub fn trace_of(options: &[&str], argv: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Trace {
    let recording = run(&mut traced(options, argv)).ended_with(0).recording();
    recording.traces.into_iter().next().expect("it was traced")
}

/// A command line given to a shell.
pub fn sh(script: &str) -> [OsString; 3] {
    ["sh".into(), "-c".into(), script.into()]
}

/// Runs a shell script that must succeed.
pub fn prepare(directory: &Path, script: &str) {
    let done = run(Command::new("sh").args(["-ec", script]).current_dir(directory).stdin(Stdio::null()));
    assert!(done.status.success(), "{script}: {:?}\n{}", done.status, done.stderr);
}

/// Compiles `fixtures/NAME.cpp`.
pub fn fixture_cpp(name: &str, into: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name).with_extension("cpp");
    let program = into.join(name);
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O1", "-Wall", "-Werror", "-pthread", "-o"]).arg(&program).arg(&source);
    let built = compiler.output().expect("the tests need a C++ compiler, c++");
    assert!(built.status.success(), "{}:\n{}", source.display(), String::from_utf8_lossy(&built.stderr));
    program
}

/// Compiles `fixtures/NAME.c`. Each test compiles its own: nothing to keep up to date, nothing shared.
pub fn fixture(name: &str, into: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name).with_extension("c");
    let program = into.join(source.file_stem().expect("a name"));
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O1", "-Wall", "-Werror", "-pthread", "-o"]).arg(&program).arg(&source);
    let built = compiler.output().expect("the tests need a C compiler, cc");
    assert!(built.status.success(), "{}:\n{}", source.display(), String::from_utf8_lossy(&built.stderr));
    program
}

/// What was stolen from all CPUs so far, in whole ticks of 10 ms: the eighth figure of `/proc/stat`, proc_stat(5).
pub fn stolen_so_far() -> Nanos {
    let stat = fs::read_to_string("/proc/stat").expect("counters");
    let ticks: u64 = stat.split_whitespace().nth(8).and_then(|ticks| ticks.parse().ok()).unwrap_or(0);
    Nanos(ticks * 10_000_000)
}

/// Waits for something that is to happen soon; returns whether it did.
pub fn eventually(happens: impl Fn() -> bool) -> bool {
    let started = Instant::now();
    while !happens() {
        if started.elapsed() > Duration::from_secs(60) {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Has a process find two signals at once that ask it to end: it is stopped until both have come.
pub fn ask_twice_at_once(process: nix::unistd::Pid) {
    let send = |each: Signal| nix::sys::signal::kill(process, each).expect("it is there");
    send(Signal::SIGSTOP);
    let stat = format!("/proc/{process}/stat");
    assert!(eventually(|| fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T "))), "it goes on");
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGCONT].into_iter().for_each(send);
}

/// Whether a process with this pid exists and has not ended.
pub fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Calls and errors by the name of the call.
pub type Counts = BTreeMap<String, (u64, u64)>;

/// The table that `strace -c` and `-C` write: `% time, seconds, usecs/call, calls, [errors], syscall`.
pub fn strace_table(text: &str) -> Counts {
    let rows = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (calls, errors, name) = match words[..] {
            [_, _, _, calls, name] => (calls, "0", name),
            [_, _, _, calls, errors, name] => (calls, errors, name),
            _ => return None,
        };
        words[0].parse::<f64>().ok()?;
        Some((name.to_owned(), (calls.parse().ok()?, errors.parse().ok()?)))
    });
    rows.filter(|(name, _)| name != "total").collect()
}

/// The same for the first trace of a recording.
pub fn counts(recording: &Recording) -> Counts {
    let calls = recording.traces[0].syscalls.iter();
    calls.map(|call| (call.name.clone(), (call.calls, call.errors))).collect()
}

/// Runs as an unprivileged user without any group of ours.
pub fn as_nobody(command: &mut Command) -> &mut Command {
    command.uid(65534).gid(65534)
}

/// Calls with this name, over all command names.
pub fn calls(trace: &Trace, name: &str) -> u64 {
    trace.syscalls.iter().filter(|call| call.name == name).map(|call| call.calls).sum()
}

/// Insists that everything was recorded.
pub fn nothing_lost(trace: &Trace) {
    assert_eq!(trace.lost.total(), 0, "{:?}", trace.lost);
}

/// A directory shown through sshfs, by this machine's sftp server over a pair of pipes: no network, no key.
/// Unmounted even if the test fails.
pub struct Sshfs(pub PathBuf);

impl Sshfs {
    /// Shows one directory in `scratch` at another one there, nothing cached.
    pub fn mount(scratch: &Path, of: &str, at: &str) -> Sshfs {
        let ssh = Sshfs::ssh(scratch);
        let caches = "attr_timeout=0,entry_timeout=0,cache=no";
        let option = format!("ssh_command={},{caches}", ssh.display());
        let mounted = Sshfs(scratch.join(at));
        prepare(scratch, &format!("sshfs -o {option} none:{} {}", scratch.join(of).display(), mounted.0.display()));
        mounted
    }

    /// The same as `nobody` mounts it: for that user only, not even for root.
    pub fn mount_for_nobody(scratch: &Path, of: &str, at: &str) -> Sshfs {
        let ssh = Sshfs::ssh(scratch);
        let mounted = Sshfs(scratch.join(at));
        let options = "fd=7,rootmode=40000,user_id=65534,group_id=65534";
        let script = format!(
            "exec 7<>/dev/fuse; mount -i -t fuse -o {options} none {}; sshfs -o ssh_command={} none:{} /dev/fd/7",
            mounted.0.display(),
            ssh.display(),
            scratch.join(of).display()
        );
        prepare(scratch, &format!("bash -ec '{script}'"));
        mounted
    }

    /// In place of ssh.
    fn ssh(scratch: &Path) -> PathBuf {
        let ssh = scratch.join("ssh");
        programs::script(&ssh, "#!/bin/sh\nexec /usr/lib/openssh/sftp-server\n");
        ssh
    }
}

impl Drop for Sshfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// A cgroup of either version, gone at the end.
pub struct Cgroup(pub PathBuf);

#[allow(clippy::new_without_default, reason = "it makes something")]
impl Cgroup {
    /// With two megabytes of memory.
    pub fn new() -> Cgroup {
        Cgroup::holding("2M")
    }

    /// With this much memory.
    pub fn holding(memory: &str) -> Cgroup {
        let cgroup = Cgroup::of("memory");
        let file = if cgroup.0.join("memory.max").exists() { "memory.max" } else { "memory.limit_in_bytes" };
        fs::write(cgroup.0.join(file), memory).expect("the memory controller");
        cgroup
    }

    /// For this controller, without a limit yet.
    pub fn of(controller: &str) -> Cgroup {
        let one = Path::new("/sys/fs/cgroup").join(controller);
        let root = if one.is_dir() { one } else { PathBuf::from("/sys/fs/cgroup") };
        let path = root.join(format!("inodyne-test-{controller}-{}", std::process::id()));
        fs::create_dir(&path).expect("a cgroup of our own");
        Cgroup(path)
    }

    /// A v2 cgroup, named as systemd names that of a service.
    pub fn of_service() -> Cgroup {
        let two = Path::new("/sys/fs/cgroup/unified");
        let root = if two.is_dir() { two } else { Path::new("/sys/fs/cgroup") };
        let path = root.join(format!("inodyne-test-{}.service", std::process::id()));
        fs::create_dir(&path).expect("a cgroup of our own");
        Cgroup(path)
    }

    /// What the directory is called.
    pub fn name(&self) -> &str {
        self.0.file_name().and_then(|name| name.to_str()).expect("a name")
    }

    /// Shell words that put the shell itself into it, limited to so many read requests a second on the current directory's device.
    pub fn reads(&self, a_second: u32) -> String {
        let directory = self.0.display();
        let limit = match self.0.join("io.max").exists() {
            true => format!("echo \"$(mountpoint -d .) riops={a_second}\" >{directory}/io.max"),
            false => format!("echo \"$(mountpoint -d .) {a_second}\" >{directory}/blkio.throttle.read_iops_device"),
        };
        format!("{limit} && echo $$ >{directory}/cgroup.procs")
    }

    /// The same, limited to this part of a CPU.
    pub fn cpu(&self, percent: u32) -> String {
        let (directory, quota) = (self.0.display(), percent * 1000);
        let limit = match self.0.join("cpu.max").exists() {
            true => format!("echo {quota} 100000 >{directory}/cpu.max"),
            false => format!("echo {quota} >{directory}/cpu.cfs_quota_us"),
        };
        format!("{limit} && echo $$ >{directory}/cgroup.procs")
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        eventually(|| fs::remove_dir(&self.0).is_ok());
    }
}
