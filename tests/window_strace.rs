//! The calls of programs that are already running, over a window: those that `strace -f -c -p` counts over the same one.
//!
//! The programs are stopped while both begin, and again before both end. Only a call that a thread was in when it was stopped can be
//! counted by one of them and not by the other.

mod support;

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, iter, thread};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::window::{Killed, Open, holds_together, window};
use support::{Counts, counts, eventually, machine, scratch, strace_table};

/// A program with all that it starts, which does not outlive the test.
struct Tree(Killed);

impl Tree {
    fn start(command: &mut Command) -> Tree {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Tree(Killed(quiet.spawn().expect("the tests need this program")))
    }

    /// The threads of the program and of its descendants that have not ended, whatever their group or session.
    fn threads(&self) -> Vec<Task> {
        let processes = fs::read_dir("/proc").expect("proc").flatten().map(|entry| entry.path().join("task"));
        let tasks = processes.filter_map(|tasks| fs::read_dir(tasks).ok()).flatten().flatten();
        let all: Vec<Task> = tasks.filter_map(|task| Task::read(&task.path())).collect();
        let parents: HashMap<i32, i32> = all.iter().map(|task| (task.process, task.parent)).collect();
        let root = self.0.0.id() as i32;
        let above = |process: i32| iter::successors(Some(process), |one| parents.get(one).copied());
        all.into_iter().filter(|task| task.state != 'Z' && above(task.process).any(|one| one == root)).collect()
    }

    fn processes(&self) -> BTreeSet<i32> {
        self.threads().iter().map(|task| task.process).collect()
    }

    /// A process that has ended meanwhile needs none.
    fn signal(&self, signal: Signal) {
        for process in self.processes() {
            let _ = kill(Pid::from_raw(process), signal);
        }
    }

    /// Stops all of them, including those that were born meanwhile. Who has called vfork cannot stop until the child has executed a program,
    /// so where the child has stopped before it did, all go on for a moment.
    fn stop(&self) {
        let tries = Cell::new(0);
        let is_stopped = || {
            tries.set(tries.get() + 1);
            let goes_on = tries.get() % 50 == 0;
            self.signal(if goes_on { Signal::SIGCONT } else { Signal::SIGSTOP });
            !goes_on && self.threads().iter().all(|task| ['T', 't'].contains(&task.state))
        };
        assert!(eventually(is_stopped), "it stops");
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

struct Task {
    process: i32,
    parent: i32,
    state: char,
    is_traced: bool,
}

impl Task {
    /// None where it has ended meanwhile.
    fn read(directory: &Path) -> Option<Task> {
        let status = fs::read_to_string(directory.join("status")).ok()?;
        let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        Some(Task {
            process: value("Tgid:")?.parse().ok()?,
            parent: value("PPid:")?.parse().ok()?,
            state: value("State:")?.chars().next()?,
            is_traced: value("TracerPid:")? != "0",
        })
    }
}

/// The counts of both, over the same window of what was started, and how many threads it had.
fn both(scratch: &Path, tree: &Tree, lasting: Duration) -> (Counts, Counts, u64) {
    tree.signal(Signal::SIGCONT);
    thread::sleep(Duration::from_millis(700));
    tree.stop();
    let processes = tree.processes();
    let of_each = |option: &str| -> Vec<String> {
        processes.iter().flat_map(|process| [option.to_owned(), process.to_string()]).collect()
    };
    let table = scratch.join("strace.txt");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-c", "-o"]).arg(&table).args(of_each("-p")).stderr(Stdio::null());
    let mut strace = Killed(strace.spawn().expect("the tests need strace"));
    let is_traced = || tree.threads().iter().all(|task| task.is_traced);
    assert!(eventually(is_traced), "strace follows it");
    let pids = of_each("--pid");
    let open = Open::new(&pids.iter().map(String::as_str).collect::<Vec<_>>());
    tree.signal(Signal::SIGCONT);
    thread::sleep(lasting);
    tree.stop();
    let recording = open.interrupted();
    kill(Pid::from_raw(strace.0.id() as i32), Signal::SIGINT).expect("it is there");
    drop(strace.0.wait());
    holds_together(window(&recording));
    let theirs = strace_table(&fs::read_to_string(&table).expect("strace wrote its table"));
    (counts(&recording), theirs, window(&recording).threads.len() as u64)
}

/// Insists that they are equal except for calls at the edges: each thread is in one at either.
fn are_equal(scratch: &Path, command: &mut Command, least: u64) {
    let tree = Tree::start(command);
    // strace stops it at each call, so where others want the CPUs, too, a window takes longer until enough has happened.
    let windows = [1_500, 6_000, 24_000].map(Duration::from_millis).into_iter();
    let happened = |counts: &Counts| counts.values().map(|(calls, _)| calls).sum::<u64>();
    let enough = windows.map(|lasting| both(scratch, &tree, lasting)).find(|(ours, ..)| happened(ours) >= least);
    let (ours, theirs, threads) = enough.expect("enough happens");
    let names = ours.keys().chain(theirs.keys());
    // Neither ever returns: strace leaves them out.
    for name in names.filter(|name| !["exit", "exit_group"].contains(&name.as_str())) {
        let calls = |counts: &Counts| counts.get(name).map_or(0, |(calls, _)| *calls);
        let (a, b) = (calls(&ours), calls(&theirs));
        assert!(a.abs_diff(b) <= threads, "{name}: {a}, strace {b}; {threads} threads\n{ours:?}\n{theirs:?}");
    }
}

#[test]
fn fio_with_eight_jobs() {
    let (_machine, scratch) = (machine(), scratch());
    let mut fio = Command::new("fio");
    fio.args(["--name=jobs", "--numjobs=8", "--rw=randrw", "--bs=4k", "--size=4M", "--time_based", "--runtime=300"]);
    are_equal(scratch.path(), fio.arg("--directory").arg(scratch.path()), 1_000);
}

#[test]
fn fio_with_eight_threads() {
    let (_machine, scratch) = (machine(), scratch());
    let mut fio = Command::new("fio");
    fio.args(["--name=jobs", "--thread", "--numjobs=8", "--rw=randread", "--bs=4k", "--size=4M", "--time_based"]);
    are_equal(scratch.path(), fio.args(["--runtime=300", "--directory"]).arg(scratch.path()), 1_000);
}

#[test]
fn a_find_again_and_again() {
    let (_machine, scratch) = (machine(), scratch());
    let mut shell = Command::new("sh");
    shell.args(["-c", "while :; do find /usr/include -newer /etc/passwd > /dev/null; done"]);
    are_equal(scratch.path(), &mut shell, 1_000);
}

#[test]
fn sqlite_that_commits() {
    const SCRIPT: &str = "import sqlite3
base = sqlite3.connect('base')
base.execute('create table numbers (number integer primary key, text)')
number = 0
while True:
    number += 1
    with base:
        base.execute('insert into numbers values (?, ?)', (number, str(number) * 20))
    base.execute('select count(*) from numbers where number < ?', (number,)).fetchone()
";
    let (_machine, scratch) = (machine(), scratch());
    let mut python = Command::new("python3");
    python.args(["-c", SCRIPT]).current_dir(scratch.path());
    are_equal(scratch.path(), &mut python, 500);
}
