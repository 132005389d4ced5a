//! Windows of running processes, as `inodyne attach` opens them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use inodyne_model::Nanos;
use inodyne_model::ledger::View;
use inodyne_model::observed::Begin;
use inodyne_model::recording::Recording;
use inodyne_model::trace::Trace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{as_in_a_terminal, eventually, inodyne, load, nothing_lost};

/// A process that does not outlive the test, however that ends.
pub struct Killed(pub Child);

impl Killed {
    pub fn pid(&self) -> u64 {
        u64::from(self.0.id())
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A process that writes to a file and syncs it, again and again, and its pid. On a fast disk most of that would be the kernel's own work, so
/// another inodyne makes a slow one for it.
pub fn syncs_slowly(scratch: &Path) -> (Killed, u64) {
    let said = scratch.join("pid");
    let script = "
import os, sys
f = os.open('synced', os.O_CREAT | os.O_WRONLY)
with open(sys.argv[1] + '.new', 'w') as said:
    said.write(str(os.getpid()))
os.rename(sys.argv[1] + '.new', sys.argv[1])
while True:
    os.write(f, b'x' * 4096)
    os.fsync(f)";
    let mut command = inodyne();
    command.args(["run", "--tracer", "none", "--at", "ext4:size=64M,delay=2ms", "--", "python3", "-c", script]);
    let target = Killed(command.arg(&said).stdout(Stdio::null()).spawn().expect("the tests need python3"));
    assert!(eventually(|| said.exists()), "it does not begin");
    let pid = std::fs::read_to_string(&said).expect("it is there");
    (target, pid.parse().expect("a number"))
}

/// A window that was opened, once its processes are followed.
pub struct Open {
    child: Child,
    says: BufReader<std::process::ChildStderr>,
    file: tempfile::TempPath,
}

impl Open {
    /// Opens one with `inodyne attach` and these arguments.
    pub fn new(arguments: &[&str]) -> Open {
        let file = tempfile::Builder::new().suffix(".inodyne").tempfile().expect("a file").into_temp_path();
        let mut command = inodyne();
        command.arg("attach").args(arguments).arg("-o").arg(&file);
        let command = as_in_a_terminal(&mut command).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut says = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut line = String::new();
        says.read_line(&mut line).expect("it says something");
        assert!(line.contains("following"), "{line}");
        Open { child, says, file }
    }

    /// Waits until it ends by itself.
    pub fn ended(mut self) -> Recording {
        let status = self.child.wait().expect("it is our child");
        let mut rest = String::new();
        drop(std::io::Read::read_to_string(&mut self.says, &mut rest));
        assert_eq!(status.code(), Some(0), "{rest}");
        load(&self.file).expect("a recording")
    }

    /// Ends it as Ctrl-C does.
    pub fn interrupted(self) -> Recording {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT).expect("it is there");
        self.ended()
    }
}

/// The trace of a window.
pub fn window(recording: &Recording) -> &Trace {
    let [trace] = &recording.traces[..] else { panic!("one window, one trace") };
    trace
}

/// What holds for every window: nothing is lost, each ledger sums to its thread's time, and all of them to the headline's.
pub fn holds_together(trace: &Trace) {
    nothing_lost(trace);
    assert_eq!(trace.observed.window.begin, Begin::Attached);
    for thread in &trace.threads {
        assert_eq!(thread.rows.iter().map(|row| row.ns).sum::<Nanos>(), thread.lifetime_ns, "{thread:?}");
    }
    let lives: Nanos = trace.threads.iter().map(|thread| thread.lifetime_ns).sum();
    let ledger = &trace.ledger;
    assert_eq!((ledger.view, ledger.wall_ns, ledger.sum()), (View::Window, lives, lives));
    assert!(ledger.unexplained_ns.share_of(lives) < 0.01, "{:?} of {lives:?}", ledger.unexplained_ns);
}
