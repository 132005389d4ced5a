//! A tracer's whole life, as root: what a command did is what was seen. The workload says what it does by its own arguments.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use inodyne_launch::{Input, LaunchSpec, Leftovers, Output};
use inodyne_model::Nanos;
use inodyne_model::observed::{ROOT, Window};
use inodyne_model::trace::Trace;
use inodyne_trace::{IdleTracer, Options, Tracer, Whom};

/// How many times `dd` reads and writes a byte.
const TIMES: u64 = 2_000;

/// Starting a command forks, which only one thread may do at a time.
static STARTING: Mutex<()> = Mutex::new(());

fn traced(options: &Options) -> Trace {
    let line = dd_and_sleep();
    with_shell(options, &line, |tracer| {
        assert!(tracer.calls_so_far() > 2 * TIMES, "{} calls", tracer.calls_so_far());
    })
}

fn dd_and_sleep() -> String {
    format!("dd if=/dev/zero of=/dev/null bs=1 count={TIMES}; sleep 0.05")
}

fn with_shell(options: &Options, line: &str, at_its_end: impl FnOnce(&Tracer)) -> Trace {
    let _alone = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    shell_under(Tracer::new(options).expect("this machine can trace"), line, at_its_end).0
}

fn shell_under(tracer: Tracer, line: &str, at_its_end: impl FnOnce(&Tracer)) -> (Trace, Option<IdleTracer>) {
    let spec = LaunchSpec {
        argv: ["sh", "-c", line].iter().map(Into::into).collect(),
        input: Input::Nothing,
        output: Output::Discard,
        ..LaunchSpec::default()
    };
    let started = inodyne_launch::start(&spec, Some(tracer.arm_program())).expect("sh starts");
    started.release().expect("it is released");
    started.ended(&spec).expect("it ends");
    tracer.drain();
    at_its_end(&tracer);
    let collected = tracer.finish_and_keep().expect("it was seen");
    started.finish(Leftovers::Leave).expect("the guard ends");
    collected
}

/// What holds for every trace of it.
fn is_complete(collected: &Trace) {
    assert_eq!(collected.lost.total(), 0, "{:?}", collected.lost);
    let dd = collected.by_comm.iter().find(|command| command.comm == "dd").expect("dd ran");
    let write = dd.syscalls.iter().find(|call| call.name == "write").expect("dd writes");
    // Besides its data, its summary on standard error.
    assert!((TIMES..TIMES + 10).contains(&write.calls), "{} writes", write.calls);
    assert_eq!(write.wall_ns, write.cpu_ns + write.runqueue_ns + write.blocked_ns);
    let observed = &collected.observed;
    assert_eq!(observed.window, Window::default());
    assert_eq!(observed.root().map(|root| root.number), Some(ROOT));
    for thread in &observed.threads {
        let whole = thread.cpu_ns() + thread.runqueue_ns + thread.blocked_ns;
        assert_eq!(whole, thread.lifetime_ns(), "{thread:?}");
    }
    let slept = observed.waits.iter().map(|wait| wait.max_ns).max();
    assert!(slept >= Some(Nanos(50_000_000)), "{slept:?}");
    let named = |name: &str| observed.programs.iter().any(|program| program.args.first().is_some_and(|a| a == name));
    assert!(named("sh") && named("dd") && named("sleep"), "{:?}", observed.programs);
}

#[test]
fn a_command_is_seen_as_it_was() {
    let collected = traced(&Options { max_paths: 1_000, ..Options::default() });
    is_complete(&collected);
    assert!(!collected.observed.timeline.is_empty());
    let paths = collected.paths.expect("these were asked for");
    assert!(paths.looked_up.iter().any(|path| path.path == "/dev/zero"), "{paths:?}");
}

/// How often each command made each call, except for the shell: whether it waits before or after a child has ended is chance.
fn counts(collected: &Trace) -> BTreeMap<(&str, &str), u64> {
    let mut counts = BTreeMap::new();
    for command in collected.by_comm.iter().filter(|command| command.comm != "sh") {
        counts.extend(command.syscalls.iter().map(|call| ((command.comm.as_str(), call.name.as_str()), call.calls)));
    }
    counts
}

#[test]
fn what_stays_loaded_sees_the_next_command_as_one_that_was_just_loaded_does() {
    let _alone = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    let options = Options { max_files: 1_000, ..Options::default() };
    let tracer = Tracer::new(&options).expect("this machine can trace");
    // Other commands, other calls, and one that outlives the first run.
    let (before, idle) = shell_under(tracer, "ls -lR /usr/include; sleep 0.3 & ls -l /; head -c 9 /dev/zero", |_| ());
    let again = |idle: Option<IdleTracer>| idle.expect("what was loaded").begin().expect("it is attached again");
    let (first, idle) = shell_under(again(idle), &dd_and_sleep(), |_| ());
    let (second, _) = shell_under(again(idle), &dd_and_sleep(), |_| ());
    let fresh = Tracer::new(&options).expect("this machine can trace");
    let (fresh, _) = shell_under(fresh, &dd_and_sleep(), |_| ());
    for collected in [&first, &second] {
        is_complete(collected);
        assert_eq!(counts(collected), counts(&fresh));
        assert_eq!(collected.observed.threads.len(), fresh.observed.threads.len());
        assert!(before.observed.started_ns < collected.observed.started_ns);
        // A stack that was sent in the earlier run is sent again.
        let known: Vec<_> = collected.observed.stacks.iter().map(|stack| stack.id).collect();
        let unknown = collected.observed.waits.iter().filter(|wait| wait.stack.0 != 0 && !known.contains(&wait.stack));
        assert_eq!(unknown.count(), 0);
        let files = |collected: &Trace| -> Vec<String> {
            let files = collected.files.as_ref().expect("these were asked for");
            let mut paths: Vec<String> = files.used.iter().map(|file| file.path.clone()).collect();
            paths.sort();
            paths
        };
        assert_eq!(files(collected), files(&fresh));
        assert!(collected.overhead.ns_per_call > 0.0, "{:?}", collected.overhead);
    }
}

#[test]
fn a_probe_that_is_not_asked_for_leaves_the_others_as_they_are() {
    let collected = traced(&Options { sample_hz: 0, timeline: false, ..Options::default() });
    is_complete(&collected);
    let observed = &collected.observed;
    assert!(observed.samples.is_empty() && observed.blocked_samples.is_empty() && collected.paths.is_none());
    assert!(observed.timeline.is_empty());
}

/// A window that lasts long: more threads end in it than the tables have room for.
#[test]
fn what_is_known_of_ended_threads_makes_room_for_others() {
    const PROCESSES: usize = 600;
    let _alone = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    let options = Options { joins: true, timeline: false, max_rows: 256, ..Options::default() };
    let mut tracer = Tracer::new(&options).expect("this machine can trace");
    let line = format!("read go; n=0; while [ $n -lt {PROCESSES} ]; do sleep 0.001; n=$((n + 1)); done");
    let mut shell = Command::new("sh").args(["-c", &line]).stdin(Stdio::piped()).spawn().expect("sh starts");
    tracer.join(&Whom::Processes(vec![shell.id()])).expect("it is followed");
    drop(shell.stdin.take());
    while shell.try_wait().expect("it is ours").is_none() {
        tracer.drain();
        std::thread::sleep(Duration::from_millis(5));
    }
    let collected = tracer.finish().expect("it was seen");
    assert_eq!(collected.lost.total(), 0, "{:?}", collected.lost);
    let observed = &collected.observed;
    assert_eq!(observed.threads.len(), PROCESSES + 1);
    assert!(observed.waits.len() > options.max_rows as usize, "{} rows of waits", observed.waits.len());
    let mut blocked: BTreeMap<u32, Nanos> = BTreeMap::new();
    observed.waits.iter().for_each(|wait| *blocked.entry(wait.thread).or_default() += wait.ns);
    for thread in &observed.threads {
        let of_waits = blocked.get(&thread.number).copied().unwrap_or_default();
        assert_eq!(of_waits, thread.blocked_ns, "{thread:?}");
    }
}

/// A stack is recognised by its return addresses and their places: if it is unwound all the same, it is always the one that it was taken for.
#[test]
fn stacks_that_are_recognised_are_those_that_they_are_taken_for() {
    let scratch = tempfile::tempdir().expect("a directory can be made");
    // Pipes, both ways; files written, synced and read again, directories walked and removed, by several processes at once; signals, futexes.
    let line = format!(
        "cd {} && PATH=$PATH:/usr/sbin\n\
         work() {{ for n in 1 2 3 4 5 6 7 8; do mkdir $1.$n; dd if=/dev/zero of=$1.$n/file bs=4k count=64 conv=fsync 2>/dev/null; done; \
         cat $1.*/file | sort | uniq -c | wc -l; find /usr/share -maxdepth 3 | sort | head -n 2000 | tail -n 1; rm -r $1.*; }}\n\
         for one in a b c; do work $one & done; wait\n\
         dd if=/dev/zero bs=512 count=4000 2>/dev/null | dd bs=512 2>/dev/null | dd of=/dev/null bs=512 2>/dev/null\n\
         sleep 0.01 & sleep 0.02 & wait; timeout 0.05 sleep 1",
        scratch.path().display()
    );
    let options = Options { check_known_stacks: true, ..Options::default() };
    let mut known = (0, 0);
    let collected = with_shell(&options, &line, |tracer| known = tracer.known_stacks());
    let (met, wrong) = known;
    let waits: u64 = collected.observed.waits.iter().map(|wait| wait.count).sum();
    assert_eq!(wrong, 0, "of {met} stacks");
    assert!(met > 1_000, "{met} stacks of {waits} waits were recognised");
}
