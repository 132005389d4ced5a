//! The critical path of real commands on ext4 and xfs: its rows sum to the wall-clock time, little of it is without a name,
//! and where others did the work, it says who.
//!
//! Nothing here is a time: all are shares of what was measured in the same run.

mod support;

use std::collections::HashMap;
use std::process::Command;

use inodyne_model::Nanos;
use inodyne_model::cause::Cause;
use inodyne_model::ledger::{Row, RowKind, View};
use inodyne_model::observed::Waker;
use inodyne_model::stack::{Frame, StackId};
use inodyne_model::trace::Trace;
use support::{Sshfs, fixture, inodyne, load, machine, nothing_lost, prepare, run, scratch, trace_of, traced};

/// `other`, the residual and what is charged to nobody may take at most this part of the wall-clock time.
const MOST_WITHOUT_NAME: f64 = 0.03;
/// Stacks that are missing or have no names, of all that were taken.
const MOST_UNKNOWN_STACKS: f64 = 0.02;

/// What must hold of every path; returns it.
fn holds<'a>(what: &str, trace: &'a Trace) -> &'a [Row] {
    nothing_lost(trace);
    let ledger = &trace.ledger;
    assert_eq!(ledger.view, View::CriticalPath, "{what}");
    assert_eq!(ledger.sum(), ledger.wall_ns, "{what}");
    assert_eq!(ledger.wall_ns, trace.wall_ns, "{what}");
    let has_no_name = |row: &&Row| row.kind == RowKind::Unexplained || row.cause == Some(Cause::Other);
    let without_name: Nanos = ledger.rows.iter().filter(has_no_name).map(|row| row.ns).sum();
    let share = without_name.share_of(ledger.wall_ns);
    let unknown = unknown_stacks(trace);
    println!("{what}: {:.2}% without a name, {:.2}% of the stacks unknown", share * 100.0, unknown * 100.0);
    assert!(share < MOST_WITHOUT_NAME, "{what}: {share} without a name: {:#?}", ledger.rows);
    assert!(unknown < MOST_UNKNOWN_STACKS, "{what}: {unknown}");
    let (unknown, all) = unknown_in_user_mode(trace);
    println!("{what}: {unknown} of {all} stacks in user mode unknown");
    // With only a few samples, one is more than a few per cent.
    assert!(unknown as f64 <= MOST_UNKNOWN_STACKS * all as f64 + 3.0, "{what}: {unknown} of {all}");
    &ledger.rows
}

/// Samples with neither a function nor a file at the leaf of their stack in user mode, and all that should have one. Half way
/// through execve there is none.
fn unknown_in_user_mode(trace: &Trace) -> (u64, u64) {
    let observed = &trace.observed;
    let leaves: HashMap<StackId, Option<&Frame>> =
        observed.stacks.iter().map(|stack| (stack.id, stack.frames.first())).collect();
    let is_known = |id: &StackId| matches!(leaves.get(id), Some(Some(Frame::Symbol(_) | Frame::InFile { .. })));
    let on_cpu = observed.samples.iter().filter(|sample| sample.user_mode || sample.user_stack != StackId(0));
    let on_cpu = on_cpu.map(|sample| (sample.user_stack, sample.count));
    let off_cpu = observed.blocked_samples.iter().map(|sample| (sample.user_stack, sample.count));
    let taken: Vec<(bool, u64)> = on_cpu.chain(off_cpu).map(|(id, count)| (is_known(&id), count)).collect();
    let count = |of: &dyn Fn(bool) -> bool| taken.iter().filter(|(known, _)| of(*known)).map(|(_, n)| n).sum();
    (count(&|known| !known), count(&|_| true))
}

fn unknown_stacks(trace: &Trace) -> f64 {
    let observed = &trace.observed;
    let known = |id: &StackId| {
        let stack = observed.stacks.iter().find(|stack| stack.id == *id);
        stack.is_some_and(|stack| stack.frames.first().is_some_and(|frame| frame.symbol().is_some()))
    };
    // A wait that the end of the trace cut off has no waker, hence no stack of one.
    let ended = observed.waits.iter().filter(|wait| wait.waker != Waker::Unknown);
    let taken: Vec<(bool, u64)> = ended.map(|wait| (known(&wait.stack), wait.count)).collect();
    let all: u64 = taken.iter().map(|(_, count)| count).sum();
    let unknown: u64 = taken.iter().filter(|(known, _)| !known).map(|(_, count)| count).sum();
    if all == 0 { 0.0 } else { unknown as f64 / all as f64 }
}

/// Time in rows for which this is true.
fn time(rows: &[Row], is_meant: impl Fn(&Row) -> bool) -> Nanos {
    rows.iter().filter(|row| is_meant(row)).map(|row| row.ns).sum()
}

/// Whether somebody of this name worked for the command.
fn is_via(row: &Row, name: &str) -> bool {
    row.via.iter().any(|link| link == name)
}

const PLACES: [&str; 2] = ["ext4:size=2G", "xfs:size=2G"];
/// 20,000 files.
const FILES: &str = "tree:dirs=200,files=100,bytes=1";

#[test]
fn a_cold_rm() {
    let _machine = machine();
    for place in PLACES {
        let options = ["--at", place, "--cache", "cold", "--data", FILES];
        let trace = trace_of(&options, ["sh", "-c", "exec rm -rf ./*"]);
        let rows = holds(&format!("rm -rf, {place}"), &trace);
        let unlinking = time(rows, |row| row.syscall.as_deref() == Some("unlinkat"));
        assert!(unlinking.share_of(trace.wall_ns) > 0.1, "{place}: {rows:#?}");
    }
}

#[test]
fn tar_extracts_from_a_pipeline_of_three() {
    let _machine = machine();
    for place in PLACES {
        let trace = trace_of(&["--at", place], ["sh", "-c", "tar cf - -C /usr/include . | cat | tar xf -"]);
        let rows = holds(&format!("tar | cat | tar, {place}"), &trace);
        // The shell waits for its children all the time; what they did is on the path instead.
        let child = time(rows, |row| row.cause == Some(Cause::Child));
        assert!(child.share_of(trace.wall_ns) < 0.01, "{place}: {rows:#?}");
        assert!(time(rows, |row| row.kind == RowKind::Kernel) > Nanos::ZERO);
    }
}

#[test]
fn tar_extracts_from_a_file() {
    let _machine = machine();
    for place in PLACES {
        let options = ["--at", place, "--prepare", "tar cf a.tar -C /usr/include ."];
        let trace = trace_of(&options, ["tar", "xf", "a.tar"]);
        holds(&format!("tar x, {place}"), &trace);
    }
}

#[test]
fn two_hundred_times_fsync() {
    const SCRIPT: &str = "import os
f = os.open('x', os.O_CREAT | os.O_WRONLY)
for i in range(200): os.write(f, b'x' * 4096); os.fsync(f)";
    let _machine = machine();
    for place in PLACES {
        let trace = trace_of(&["--at", place], ["python3", "-c", SCRIPT]);
        let rows = holds(&format!("fsync, {place}"), &trace);
        let syncing = time(rows, |row| row.syscall.as_deref() == Some("fsync"));
        assert!(syncing.share_of(trace.wall_ns) > 0.1, "{place}: {rows:#?}");
        if place.starts_with("ext4") {
            // The journal's thread is waited for, and it waits for the device.
            let by_jbd2 = time(rows, |row| is_via(row, "jbd2"));
            let for_device = time(rows, |row| is_via(row, "jbd2") && row.cause == Some(Cause::DeviceWrite));
            assert!(by_jbd2.share_of(syncing) > 0.3, "{rows:#?}");
            assert!(for_device > Nanos::ZERO, "{rows:#?}");
        }
    }
}

#[test]
fn eight_processes_that_delete() {
    let _machine = machine();
    for place in PLACES {
        let options = ["--at", place, "--cache", "cold", "--data", FILES];
        let script = "find . -type f -print0 | xargs -0 -P8 -n 500 rm";
        let trace = trace_of(&options, ["sh", "-c", script]);
        let rows = holds(&format!("xargs -P8 rm, {place}"), &trace);
        assert!(time(rows, |row| row.syscall.as_deref() == Some("unlinkat")) > Nanos::ZERO, "{rows:#?}");
    }
}

#[test]
fn a_fuse_server_does_the_work() {
    let (_machine, scratch) = (machine(), scratch());
    // Enough of them that the start of `find`, where no server works, is a small part.
    prepare(
        scratch.path(),
        "mkdir data mounted && cd data && for d in $(seq 20); do mkdir $d; for f in $(seq 25); do echo x >$d/$f; done; done",
    );
    let mounted = Sshfs::mount(scratch.path(), "data", "mounted");
    let words = ["find".into(), mounted.0.clone().into_os_string(), "-size".into(), "-100c".into()];
    // Whatever the program itself is read from may be cold.
    let warms = format!("find {}", mounted.0.display());
    let recording = run(&mut traced(&["--prepare", &warms], &words)).ended_with(0).recording();
    let trace = &recording.traces[0];
    let rows = holds("find on sshfs", trace);
    let by_server = time(rows, |row| is_via(row, "sshfs") && row.kind != RowKind::Runqueue);
    let by_sftp = time(rows, |row| is_via(row, "sftp-server"));
    // On a busy machine each wake-up may wait for a CPU longer than for its answer.
    let ready = time(rows, |row| row.kind == RowKind::Runqueue);
    assert!(by_server.share_of(trace.wall_ns.saturating_sub(ready)) > 0.3, "{rows:#?}");
    assert!(by_sftp > Nanos::ZERO, "{rows:#?}");
    assert!(trace.observed.threads.iter().all(|thread| thread.comm != "sshfs"), "a server is no part of the command");
    assert!(trace.by_comm.iter().all(|comm| comm.comm != "sshfs" && comm.comm != "sftp-server"));
}

/// A million times off the CPU, and who ended each: what is held of it, and what is worked out from it, has to stay small.
#[test]
fn a_million_switches_need_little_memory() {
    let (_machine, scratch) = (machine(), scratch());
    let file = scratch.path().join("million.inodyne");
    let program = fixture("ping_pong", scratch.path());
    let mut command = inodyne();
    // Both on one CPU, so that each round is two switches.
    command.args(["run", "--ring-buffer", "268435456", "-o"]).arg(&file).args(["--", "taskset", "--cpu-list", "0"]);
    run(command.arg(program).arg("500000")).ended_with(0);
    let trace = load(&file).expect("a recording").traces.remove(0);
    assert!(trace.observed.timeline.len() >= 1_000_000, "{}", trace.observed.timeline.len());
    holds("a million switches", &trace);
    // 500 MB of addresses, and no more than that can be in memory; proportionally more if a busy machine has made it more switches.
    let (intervals, work) = (trace.observed.timeline.len(), &trace.observed.work);
    let most_kib = ((intervals + work.thread.len() + work.call.len()) * 72 / 1024).max(488_281);
    let limited = format!("ulimit -v {most_kib}; exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limited, "sh", env!("CARGO_BIN_EXE_inodyne"), "show"]).arg(&file);
    run(&mut command).ended_with(0);
}
