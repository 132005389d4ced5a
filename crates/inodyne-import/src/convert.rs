//! From the lives of threads to a trace: the same tables as the tracer's own, filled with what a log knows.
//!
//! A log says when a call began and how long it took, but nothing about what happened inside: so all of a call's time goes where
//! the tracer would put time on a CPU ([`Tracer::Strace`] tells everyone who reads the trace). For one kind of wait the log
//! gives the reason: a thread that waits for a child waits until it has ended. These waits become intervals off the CPU with the
//! child as waker, so that the critical path leads through children as it does in a trace.
//!
//! ```text
//! parent  | outside | vfork: off, woken by the execve of the child | outside | wait4: off, woken by its end | …
//! child             |  execve  | outside | openat | outside | …                  | exit_group ┘
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use inodyne_model::Nanos;
use inodyne_model::histogram::{BUCKETS, Histogram, bucket_of};
use inodyne_model::observed::{Observed, Program, ROOT, ThreadNumber, ThreadObserved, Timeline, Wait, Waker, Work};
use inodyne_model::stack::{Frame, Stack, StackId};
use inodyne_model::syscall::{CommCalls, SyscallStats, returns_bytes};
use inodyne_model::trace::{Overhead, PathCount, Paths, Trace, Tracer};

use crate::history::{Awaited, Call, History, Result, Thread};
use crate::line::Instant;

/// The most paths that are kept, so that a recording of a program that looks up millions stays small enough to send.
const MOST_PATHS: usize = 65_536;

/// The stack of every wait for a child: where `wait4`, `waitid` and `vfork` wait is known from these calls themselves, not from the log
/// (kernel/exit.c, `do_wait`).
const WAITS_FOR_CHILD: StackId = StackId(1);

/// Makes a trace from a history.
pub(crate) fn trace(history: &History) -> Trace {
    let started = history.started();
    let ended = end_of_root(history);
    let mut by_comm: HashMap<(usize, &str), Counted> = HashMap::new();
    let mut paths: HashMap<(&str, &str, bool), PathCount> = HashMap::new();
    let mut parts = Parts::new(history);
    for (number, thread) in history.threads.iter().enumerate() {
        for call in &thread.calls {
            if call.result != Result::Never {
                by_comm.entry((call.comm, &call.name)).or_insert_with(|| Counted::new(&call.name)).add(call);
                count_path(&mut paths, call);
            }
        }
        parts.add(number, thread);
    }
    let observed = Observed {
        started_ns: Nanos(started),
        threads: parts.threads,
        programs: programs(history),
        waits: parts.waits.into_values().collect(),
        stacks: vec![Stack {
            id: WAITS_FOR_CHILD,
            frames: vec![Frame::Symbol("do_wait".to_owned())],
            truncated: false,
        }],
        timeline: parts.timeline,
        work: parts.work,
        ..Observed::default()
    };
    Trace {
        tracer: Tracer::Strace,
        wall_ns: Nanos(ended.saturating_sub(started)),
        by_comm: tables(history, by_comm),
        paths: Some(kept(paths)),
        overhead: Overhead { ratio: 1.0, estimated: true, ..Overhead::default() },
        observed,
        ..Trace::default()
    }
}

/// When the last thread of the root process ended, or else the end of the log. Of processes that were running before, any may be what
/// the log was made for: it counts as a whole.
fn end_of_root(history: &History) -> Instant {
    if history.began_running {
        return history.last;
    }
    let of_root = history.threads.iter().filter(|thread| thread.leader == 0);
    let ends: Option<Vec<Instant>> = of_root.map(|thread| thread.ended.map(|(at, _)| at)).collect();
    ends.and_then(|ends| ends.into_iter().max()).unwrap_or(history.last)
}

/// A row of the table of calls, being built.
struct Counted {
    stats: SyscallStats,
    /// Calls by bucket of the histogram.
    buckets: Vec<u64>,
}

impl Counted {
    fn new(name: &str) -> Counted {
        let mut stats = SyscallStats::new(name.to_owned());
        stats.bytes = returns_bytes(name).then_some(0);
        Counted { stats, buckets: vec![0; BUCKETS] }
    }

    fn add(&mut self, call: &Call) {
        let stats = &mut self.stats;
        let took = Nanos(call.end - call.begin);
        stats.min_ns = if stats.calls == 0 { took } else { stats.min_ns.min(took) };
        stats.max_ns = stats.max_ns.max(took);
        stats.calls += 1;
        stats.wall_ns += took;
        self.buckets[bucket_of(took.0)] += 1;
        match &call.result {
            Result::Error(name) => {
                stats.errors += 1;
                *stats.errors_by_errno.entry(name.clone()).or_default() += 1;
                stats.failed_ns += took;
            }
            Result::Value(value) => {
                let moved = u64::try_from(*value).unwrap_or(0);
                stats.bytes = stats.bytes.map(|bytes| bytes.saturating_add(moved));
            }
            Result::Never => {}
        }
    }

    fn into_stats(self) -> SyscallStats {
        let mut stats = SyscallStats { histogram: Histogram::from_counts(&self.buckets), ..self.stats };
        stats.compute_percentiles();
        stats
    }
}

fn count_path<'a>(paths: &mut HashMap<(&'a str, &'a str, bool), PathCount>, call: &'a Call) {
    let Some(path) = &call.path else { return };
    let count = paths.entry((&path.text, &call.name, path.is_cut)).or_insert_with(|| PathCount {
        path: if path.is_cut { format!("{}…", path.text) } else { path.text.clone() },
        syscall: call.name.clone(),
        calls: 0,
        not_found: 0,
        wall_ns: Nanos::ZERO,
    });
    count.calls += 1;
    count.not_found += u64::from(matches!(&call.result, Result::Error(name) if name == "ENOENT" || name == "ENOTDIR"));
    count.wall_ns += Nanos(call.end - call.begin);
}

fn kept(paths: HashMap<(&str, &str, bool), PathCount>) -> Paths {
    let mut looked_up: Vec<PathCount> = paths.into_values().collect();
    looked_up.sort_by(|a, b| (Reverse(a.calls), &a.path, &a.syscall).cmp(&(Reverse(b.calls), &b.path, &b.syscall)));
    let not_kept = looked_up.split_off(looked_up.len().min(MOST_PATHS)).iter().map(|path| path.calls).sum();
    Paths { looked_up, not_kept }
}

fn tables(history: &History, counted: HashMap<(usize, &str), Counted>) -> Vec<CommCalls> {
    let mut by_comm: BTreeMap<usize, Vec<SyscallStats>> = BTreeMap::new();
    for ((comm, _), counted) in counted {
        by_comm.entry(comm).or_default().push(counted.into_stats());
    }
    let table = |(comm, mut syscalls): (usize, Vec<SyscallStats>)| {
        syscalls.sort_by(|a, b| (Reverse(a.wall_ns), &a.name).cmp(&(Reverse(b.wall_ns), &b.name)));
        CommCalls { comm: history.comms[comm].clone(), syscalls }
    };
    by_comm.into_iter().map(table).collect()
}

fn programs(history: &History) -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    for (number, thread) in history.threads.iter().enumerate() {
        programs.extend(thread.programs.iter().map(|program| Program {
            thread: number_of(history, number),
            pid: history.threads[thread.leader].tid,
            at_ns: Nanos(program.at),
            file: program.file.clone(),
            args: program.words.clone(),
            args_truncated: program.is_cut,
        }));
    }
    programs.sort_by_key(|program| program.at_ns);
    programs
}

/// Threads are numbered from [`ROOT`] on; if that is not the first one, the first one has its number.
fn number_of(history: &History, index: usize) -> ThreadNumber {
    let place = match index {
        0 => history.root,
        _ if index == history.root => 0,
        _ => index,
    };
    ROOT.saturating_add(u32::try_from(place).unwrap_or(u32::MAX - ROOT))
}

/// A wait whose reason is known.
#[derive(Clone, Copy)]
struct Off {
    out: Instant,
    wake: Instant,
    back: Instant,
    waker: usize,
}

/// The tables over all threads.
struct Parts<'a> {
    history: &'a History,
    started: Instant,
    /// Instants at which others depend on a thread: its pieces of work end there.
    cuts: Vec<Vec<Instant>>,
    numbers: HashMap<&'a str, u32>,
    threads: Vec<ThreadObserved>,
    waits: BTreeMap<(ThreadNumber, &'a str), Wait>,
    timeline: Timeline,
    work: Work,
}

impl<'a> Parts<'a> {
    fn new(history: &'a History) -> Parts<'a> {
        let mut cuts: Vec<Vec<Instant>> = vec![Vec::new(); history.threads.len()];
        for thread in &history.threads {
            if let Some(parent) = thread.parent {
                cuts[parent].push(thread.born);
            }
            for (_, off) in thread.calls.iter().filter_map(|call| Some((call, off(history, call)?))) {
                cuts[off.waker].push(off.wake);
            }
        }
        cuts.iter_mut().for_each(|cuts| cuts.sort_unstable());
        let timeline =
            Timeline { calls: vec![String::new()], stacks: vec![StackId(0), WAITS_FOR_CHILD], ..Timeline::default() };
        Parts {
            history,
            started: history.started(),
            cuts,
            numbers: HashMap::from([("", 0)]),
            threads: Vec::new(),
            waits: BTreeMap::new(),
            timeline,
            work: Work::default(),
        }
    }

    fn add(&mut self, index: usize, thread: &'a Thread) {
        let ended = thread.ended.map_or(self.history.last, |(at, _)| at);
        let number = number_of(self.history, index);
        let mut sums = ThreadObserved {
            number,
            parent: thread.parent.map_or(0, |parent| number_of(self.history, parent)),
            pid: self.history.threads[thread.leader].tid,
            tid: thread.tid,
            comm: thread.calls.last().map_or("", |call| &self.history.comms[call.comm]).to_owned(),
            born_ns: Nanos(thread.born),
            ended_ns: Nanos(ended.max(thread.born)),
            alive: thread.ended.is_none(),
            // strace gives this for each thread; for the first one it is what a process that waits for this one gets.
            process_exit: self.history.exit_of(index).filter(|_| thread.leader == index),
            ..ThreadObserved::default()
        };
        let mut pieces = Pieces { cuts: std::mem::take(&mut self.cuts[index]), next: 0, parts: BTreeMap::new() };
        let mut now = thread.born;
        for call in &thread.calls {
            let (begin, end) = (call.begin.clamp(now, ended.max(now)), call.end.clamp(now, ended.max(now)));
            sums.user_ns += Nanos(begin - now);
            self.ran(number, &mut pieces, "", now, begin);
            match off(self.history, call).filter(|off| off.out == begin && off.back == end) {
                Some(off) => self.was_off(&mut sums, &mut pieces, call, off),
                None => {
                    *sums.kernel_ns.entry(call.name.clone()).or_default() += Nanos(end - begin);
                    self.ran(number, &mut pieces, &call.name, begin, end);
                }
            }
            now = end;
        }
        sums.user_ns += Nanos(ended.saturating_sub(now));
        self.ran(number, &mut pieces, "", now, ended.max(now));
        self.threads.push(sums);
    }

    /// Time from `from` to `to` in a call, or outside any call if `call` is empty.
    fn ran(&mut self, thread: ThreadNumber, pieces: &mut Pieces<'a>, call: &'a str, from: Instant, to: Instant) {
        let mut from = from;
        while let Some(cut) = pieces.cut_before(to) {
            pieces.add(call, cut.saturating_sub(from));
            self.send(thread, pieces, cut.max(from));
            from = from.max(cut);
        }
        pieces.add(call, to - from);
    }

    fn was_off(&mut self, sums: &mut ThreadObserved, pieces: &mut Pieces<'a>, call: &'a Call, off: Off) {
        // No other thread can depend on it in the meantime.
        while pieces.cut_before(off.wake).is_some() {}
        self.send(sums.number, pieces, off.out);
        let blocked = off.wake - off.out;
        sums.blocked_ns += Nanos(blocked);
        sums.waits += 1;
        let call_number = self.number_of_call(&call.name);
        let timeline = &mut self.timeline;
        timeline.thread.push(sums.number);
        timeline.out_ns.push(off.out.saturating_sub(self.started));
        timeline.blocked_ns.push(blocked);
        timeline.ready_ns.push(0);
        timeline.call.push(call_number);
        timeline.stack.push(1);
        timeline.waker.push(Waker::Traced);
        timeline.waker_tid.push(self.history.threads[off.waker].tid);
        timeline.waker_thread.push(number_of(self.history, off.waker));
        timeline.waker_stack.push(0);
        let wait = self.waits.entry((sums.number, &call.name)).or_insert_with(|| Wait {
            thread: sums.number,
            syscall: Some(call.name.clone()),
            stack: WAITS_FOR_CHILD,
            waker: Waker::Traced,
            waker_stack: StackId(0),
            ns: Nanos::ZERO,
            count: 0,
            max_ns: Nanos::ZERO,
            began_before: false,
        });
        wait.ns += Nanos(blocked);
        wait.count += 1;
        wait.max_ns = wait.max_ns.max(Nanos(blocked));
        // What is left until the call returns is mostly the time that strace took, hardly a wait for a CPU.
        *sums.kernel_ns.entry(call.name.clone()).or_default() += Nanos(off.back - off.wake);
        self.ran(sums.number, pieces, &call.name, off.wake, off.back);
    }

    fn send(&mut self, thread: ThreadNumber, pieces: &mut Pieces<'a>, at: Instant) {
        let parts = std::mem::take(&mut pieces.parts);
        if parts.is_empty() {
            return;
        }
        self.work.thread.push(thread);
        self.work.at_ns.push(at.saturating_sub(self.started));
        self.work.parts.push(parts.len() as u32);
        for (call, ns) in parts {
            let number = self.number_of_call(call);
            self.work.call.push(number);
            self.work.ns.push(ns);
        }
    }

    fn number_of_call(&mut self, call: &'a str) -> u32 {
        let calls = &mut self.timeline.calls;
        *self.numbers.entry(call).or_insert_with(|| {
            calls.push(call.to_owned());
            calls.len() as u32 - 1
        })
    }
}

/// A thread's piece of work that is not complete yet.
struct Pieces<'a> {
    cuts: Vec<Instant>,
    next: usize,
    parts: BTreeMap<&'a str, u64>,
}

impl<'a> Pieces<'a> {
    /// The next instant at which a piece ends, if it is not later than `to`.
    fn cut_before(&mut self, to: Instant) -> Option<Instant> {
        let cut = self.cuts.get(self.next).copied().filter(|cut| *cut <= to)?;
        self.next += 1;
        Some(cut)
    }

    fn add(&mut self, call: &'a str, ns: u64) {
        if ns > 0 {
            *self.parts.entry(call).or_default() += ns;
        }
    }
}

/// The wait inside a call; `None` if what it waited for had already happened.
fn off(history: &History, call: &Call) -> Option<Off> {
    let (waker, wake) = match call.waited_for? {
        Awaited::End(child) => (child, history.threads[child].ended.map_or(call.end, |(at, _)| at)),
        Awaited::Program(child) => {
            let thread = &history.threads[child];
            let executed = thread.programs.first().map(|program| program.at);
            (child, executed.or(thread.ended.map(|(at, _)| at)).unwrap_or(call.end))
        }
    };
    // strace prints the end of a process some microseconds after the kernel has told the parent about it.
    let wake = wake.min(call.end);
    (wake > call.begin && history.threads[waker].born < call.end).then_some(Off {
        out: call.begin,
        wake,
        back: call.end,
        waker,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell that waits for its child, and a child that opens a file:
    ///
    /// ```text
    /// ms      0        1          1.4  1.7                                4     5
    /// sh      ├ execve ┤   vfork  ┤    ├ wait4 ───────────────────────────┤     ┘
    /// ls                 ├ execve ┤ openat ├      … 3 exit ┘ 3.5
    /// ```
    const LOG: &str = r#"
5 1700000100.000000 execve("/bin/sh", ["sh", "-c", "ls"], 0x1 /* 3 vars */) = 0 <0.000500>
5 1700000100.001000 vfork( <unfinished ...>
6 1700000100.001100 execve("/bin/ls", ["ls"], 0x1 <unfinished ...>
6 1700000100.001300 <... execve resumed>)      = 0 <0.000200>
5 1700000100.001400 <... vfork resumed>)       = 6 <0.000400>
5 1700000100.001700 wait4(-1,  <unfinished ...>
6 1700000100.002000 openat(AT_FDCWD, "/x", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000250>
6 1700000100.003000 exit_group(2)              = ?
6 1700000100.003500 +++ exited with 2 +++
5 1700000100.004000 <... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 2}], 0, NULL) = 6 <0.002300>
5 1700000100.005000 +++ exited with 0 +++
"#;

    #[test]
    fn lives_are_divided_to_the_last_nanosecond() {
        let trace = trace(&History::of(LOG.lines()));
        assert_eq!(trace.wall_ns, Nanos(5_000_000));
        for thread in &trace.observed.threads {
            let sum = thread.cpu_ns() + thread.runqueue_ns + thread.blocked_ns;
            assert_eq!(sum, thread.lifetime_ns(), "{thread:?}");
        }
        let [shell, child] = &trace.observed.threads[..] else { panic!() };
        // vfork until the child's execve has returned, wait4 until its end.
        assert_eq!(shell.blocked_ns, Nanos(300_000 + 1_800_000));
        // What is left of these calls is time in them: the log does not say that they waited for a CPU.
        assert_eq!(shell.runqueue_ns, Nanos::ZERO);
        assert_eq!([shell.kernel_ns["vfork"], shell.kernel_ns["wait4"]], [100_000, 500_000].map(Nanos));
        assert_eq!(child.kernel_ns["openat"], Nanos(250_000));
        let paths = trace.paths.unwrap();
        assert_eq!(paths.looked_up.iter().find(|path| path.path == "/x").map(|path| path.not_found), Some(1));
    }

    #[test]
    fn calls_that_never_return_are_not_counted() {
        let trace = trace(&History::of(LOG.lines()));
        let names: Vec<_> =
            trace.by_comm.iter().flat_map(|comm| &comm.syscalls).map(|call| call.name.as_str()).collect();
        assert!(!names.contains(&"exit_group") && names.contains(&"wait4"), "{names:?}");
    }

    #[test]
    fn of_processes_that_were_running_the_whole_log_counts() {
        let log = "4587 1700000100.0 close(3) = 0 <0.1>\n4534 1700000100.1 read(0, \"\", 9) = 0 <0.5>
4587 1700000101.0 exit(0) = ?\n4587 1700000101.0 +++ exited with 0 +++
4534 1700000101.5 fsync(3) = 0 <50.000000>\n4534 1700000160.5 close(3) = 0 <0.1>";
        let trace = trace(&History::of(log.lines()));
        assert_eq!(trace.wall_ns, Nanos(60_600_000_000));
        let root = trace.observed.root().unwrap();
        assert_eq!((root.tid, root.kernel_ns["fsync"]), (4534, Nanos(50_000_000_000)));
        assert_eq!(trace.observed.threads.iter().map(|thread| thread.number).collect::<Vec<_>>(), [ROOT + 1, ROOT]);
    }

    #[test]
    fn names_in_several_directories_are_several_paths() {
        let log = r#"
7 1.1 newfstatat(4</d/a>, "f", {st_mode=S_IFREG}, AT_SYMLINK_NOFOLLOW) = 0 <0.1>
7 1.2 newfstatat(4</d/b>, "f", {st_mode=S_IFREG}, AT_SYMLINK_NOFOLLOW) = 0 <0.1>
7 1.3 newfstatat(4</d/b>, "", {st_mode=S_IFDIR}, AT_EMPTY_PATH) = 0 <0.1>
7 1.4 newfstatat(4, "f", {st_mode=S_IFREG}, AT_SYMLINK_NOFOLLOW) = 0 <0.1>
7 1.5 newfstatat(4, "f", {st_mode=S_IFREG}, AT_SYMLINK_NOFOLLOW) = 0 <0.1>
"#;
        let paths = trace(&History::of(log.lines())).paths.unwrap();
        let counted: Vec<_> = paths.looked_up.iter().map(|path| (path.path.as_str(), path.calls)).collect();
        assert_eq!(counted, [("…/f", 2), ("/d/a/f", 1), ("/d/b/f", 1)]);
    }

    proptest::proptest! {
        /// Whatever a log contains, nothing panics, and the parts of each thread's lifetime add up.
        #[test]
        fn any_log_is_taken_or_refused(lines in proptest::collection::vec(line(), 0..60)) {
            let history = History::of(lines.iter().map(String::as_str));
            for thread in &trace(&history).observed.threads {
                proptest::prop_assert_eq!(thread.cpu_ns() + thread.runqueue_ns + thread.blocked_ns, thread.lifetime_ns());
            }
        }
    }

    fn line() -> impl proptest::strategy::Strategy<Value = String> {
        use proptest::prelude::*;
        let what = prop_oneof![
            Just("close(3) = 0 <0.000004>".to_owned()),
            (1u32..5).prop_map(|child| format!("clone(flags=CLONE_VM) = {child} <0.001>")),
            (1u32..5).prop_map(|child| format!("vfork( <unfinished ...>) = {child}")),
            Just("vfork( <unfinished ...>".to_owned()),
            (1u32..5).prop_map(|child| format!("<... vfork resumed>) = {child} <0.002>")),
            (1u32..5).prop_map(|child| format!("wait4({child}, NULL) = {child} <0.5>")),
            Just("execve(\"/a\", [\"a\"], 0x1) = 0 <0.01>".to_owned()),
            Just("+++ exited with 0 +++".to_owned()),
            (1u32..5).prop_map(|by| format!("+++ superseded by execve in pid {by} +++")),
            "[a-z]{1,4}\\(.{0,12}\\) = .{0,8}",
            ".{0,30}",
        ];
        (1u32..5, 0u32..9_999_999, what)
            .prop_map(|(tid, at, what)| format!("{tid} 17000000{:02}.{:06} {what}", at / 1_000_000, at % 1_000_000))
    }
}
