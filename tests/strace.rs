//! Every call and every error is counted: the traced command is `strace -f -c` of something, so both count the same
//! processes in the same run, and the two tables must be equal.
//!
//! strace's own calls are told apart from its children's by the command name. `exit` and `exit_group` never return, and
//! strace leaves them out.

mod support;

use std::fs;
use std::path::Path;

use inodyne_model::trace::Trace;
use support::{Counts, fixture, machine, nothing_lost, prepare, run, scratch, strace_table, traced};

const NEVER_RETURN: [&str; 2] = ["exit", "exit_group"];

/// The table that strace wrote, except for calls that never return.
fn strace_counts(file: &Path) -> Counts {
    let text = fs::read_to_string(file).expect("the table of strace");
    let mut counts = strace_table(&text);
    counts.retain(|name, _| !NEVER_RETURN.contains(&name.as_str()));
    counts
}

fn our_counts(trace: &Trace) -> Counts {
    let mut counts = Counts::new();
    for command in trace.by_comm.iter().filter(|command| command.comm != "strace") {
        for call in command.syscalls.iter().filter(|call| !NEVER_RETURN.contains(&call.name.as_str())) {
            let (calls, errors) = counts.entry(call.name.clone()).or_default();
            *calls += call.calls;
            *errors += call.errors;
            assert_eq!(call.errors_by_errno.values().sum::<u64>(), call.errors, "{call:?}");
            assert_eq!(call.histogram.count(), call.calls, "{call:?}");
        }
    }
    counts
}

fn equals_strace(directory: &Path, argv: &[&str], least_calls: u64) -> Trace {
    let table = directory.join("strace.txt");
    let mut command = traced(&[], ["strace", "-f", "-c", "-o"]);
    let outcome = run(command.arg(&table).args(argv).current_dir(directory)).ended_with(0);
    let trace = outcome.recording().traces.remove(0);
    nothing_lost(&trace);
    let (ours, theirs) = (our_counts(&trace), strace_counts(&table));
    assert!(theirs.values().map(|(calls, _)| calls).sum::<u64>() >= least_calls, "too little happened: {theirs:?}");
    assert_eq!(ours, theirs, "{argv:?}");
    trace
}

/// A tree with a few thousand files, one of them newer than the rest.
const TREE: &str = "mkdir tree && cd tree
    for d in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        mkdir $d && (cd $d && for f in 1 2 3 4 5 6 7 8 9; do echo $f > $f.a; echo $f > $f.b; ln -s $f.a $f.c; done)
    done
    touch -d '1 hour ago' then && touch now";

#[test]
fn find() {
    let (_machine, scratch) = (machine(), scratch());
    prepare(scratch.path(), TREE);
    equals_strace(scratch.path(), &["find", "tree"], 100);
}

#[test]
fn find_newer() {
    let (_machine, scratch) = (machine(), scratch());
    prepare(scratch.path(), TREE);
    equals_strace(scratch.path(), &["find", "tree", "-newer", "tree/then"], 500);
}

#[test]
fn git_status() {
    let (_machine, scratch) = (machine(), scratch());
    prepare(scratch.path(), TREE);
    let git = "git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -qm all";
    prepare(&scratch.path().join("tree"), &format!("export HOME=$PWD; {git}; echo more >> 1/1.a; touch 2/untracked"));
    equals_strace(scratch.path(), &["git", "-c", "safe.directory=*", "-C", "tree", "status"], 500);
}

#[test]
fn tar_x() {
    let (_machine, scratch) = (machine(), scratch());
    prepare(scratch.path(), &format!("({TREE}) && tar cf tree.tar tree && mkdir into"));
    equals_strace(scratch.path(), &["tar", "x", "-f", "tree.tar", "-C", "into"], 2000);
}

#[test]
fn rm_rf() {
    let (_machine, scratch) = (machine(), scratch());
    prepare(scratch.path(), TREE);
    equals_strace(scratch.path(), &["rm", "-rf", "tree"], 500);
    assert!(!scratch.path().join("tree").exists());
}

#[test]
fn du() {
    let (_machine, scratch) = (machine(), scratch());
    prepare(scratch.path(), TREE);
    equals_strace(scratch.path(), &["du", "-s", "tree"], 500);
}

#[test]
fn pipeline_of_short_processes_in_parallel() {
    let (_machine, scratch) = (machine(), scratch());
    prepare(scratch.path(), TREE);
    let script = "ls tree/1 tree/2 tree/3 | xargs -n1 -P4 echo";
    equals_strace(scratch.path(), &["sh", "-c", script], 2000);
}

/// More pairs of program and call than the first table of calls has rows, and than it once had in all.
#[test]
fn programs_by_sixty_names() {
    let (_machine, scratch) = (machine(), scratch());
    let names = "for i in $(seq 60); do cp /bin/cat program$i; done";
    prepare(scratch.path(), names);
    let each = "for i in $(seq 60) $(seq 60); do ./program$i /etc/passwd /etc/group > /dev/null; done";
    equals_strace(scratch.path(), &["sh", "-c", each], 5_000);
}

#[test]
fn threads_in_python() {
    let (_machine, scratch) = (machine(), scratch());
    let script = "
import os, threading, time
def work():
    for i in range(200):
        try: os.stat('/nowhere' if i % 3 == 0 else '/')
        except OSError: pass
        time.sleep(0.0002)
threads = [threading.Thread(target=work) for _ in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
";
    equals_strace(scratch.path(), &["python3", "-c", script], 8000);
}

/// As the seccomp filter of a container does: the kernel reports only the end of such a call.
#[test]
fn calls_that_seccomp_refuses() {
    let (_machine, scratch) = (machine(), scratch());
    let refuse = fixture("refuse_call", scratch.path()).display().to_string();
    let script = "
import os
for i in range(300):
    try: os.getpriority(os.PRIO_PROCESS, 0)
    except PermissionError: pass
";
    let number = libc::SYS_getpriority.to_string();
    let trace = equals_strace(scratch.path(), &[&refuse, &number, "python3", "-c", script], 500);
    let refused = trace.by_comm.iter().flat_map(|command| &command.syscalls).find(|call| call.name == "getpriority");
    let refused = refused.expect("it was made");
    assert_eq!((refused.calls, refused.errors_by_errno.get("EPERM")), (300, Some(&300)), "{refused:?}");
}

/// They wait in calls that return to nobody.
#[test]
fn threads_that_the_end_of_their_process_kills() {
    let (_machine, scratch) = (machine(), scratch());
    let script = "
import os, threading, time
held = threading.Lock()
held.acquire()
for i in range(20):
    wait = held.acquire if i % 2 else lambda: time.sleep(1000)
    threading.Thread(target=wait, daemon=True).start()
time.sleep(0.5)
os._exit(0)
";
    equals_strace(scratch.path(), &["python3", "-c", script], 500);
}
