//! One trace and its context, asked for times: of waits, of calls, of samples.
//!
//! A time is summed over threads, and threads work side by side: what a thread in the background waits for costs nobody
//! anything. Its share of the wall-clock time is therefore the part of it that lies on the critical path ([`OnPath`]): exactly for
//! waits, and for calls and samples in proportion to how much of their call and thread does. Where no path is known (older
//! recordings, or where some of the timeline was lost), it is the sum divided by the number of its threads that lived at the
//! same time, and at most what the ledger leaves for it.

use std::collections::{BTreeMap, BTreeSet};

use inodyne_model::Nanos;
use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::ledger::{PAGE_FAULT, Row, RowKind};
use inodyne_model::limit::LimitKind;
use inodyne_model::observed::{Sample, ThreadNumber, Wait};
use inodyne_model::recording::Recording;
use inodyne_model::stack::{Stack, StackId, function_name};
use inodyne_model::syscall::SyscallStats;
use inodyne_model::trace::Trace;

use crate::causes::Classifier;
use crate::faults::Outside;
use crate::units::seconds;

use super::on_path::OnPath;

/// One trace and its context.
pub(crate) struct Case<'a> {
    pub(crate) recording: &'a Recording,
    /// Index of the trace in the recording.
    pub(crate) index: usize,
    pub(crate) trace: &'a Trace,
    pub(crate) classifier: Classifier<'a>,
    /// None where no path could be walked.
    pub(crate) path: Option<OnPath<'a>>,
}

/// A wait with what is known about it.
pub(super) struct Waited<'a> {
    pub(super) wait: &'a Wait,
    pub(super) cause: Cause,
    pub(super) stack: Option<&'a Stack>,
    /// The call; [`PAGE_FAULT`] or nothing outside of calls.
    pub(super) call: &'a str,
}

impl Waited<'_> {
    /// Whether its stack holds a function for which this is true.
    pub(super) fn passes(&self, function: impl Fn(&str) -> bool) -> bool {
        self.stack.is_some_and(|stack| stack.symbols().any(function))
    }

    /// A synchronous write or a sync: its caller wants the data on the device.
    pub(super) fn is_sync(&self) -> bool {
        super::families::syncs(self.call)
            || self.passes(|function| {
                let name = function_name(function);
                name.ends_with("_fsync")
                    || name.ends_with("_sync_file")
                    || matches!(name, "vfs_fsync_range" | "generic_write_sync" | "ksys_sync")
            })
    }

    /// Direct I/O: the cache has no part in it.
    pub(super) fn is_direct(&self) -> bool {
        self.passes(|function| {
            matches!(
                function_name(function),
                "fuse_direct_IO"
                    | "fuse_direct_io"
                    | "nfs_file_direct_read"
                    | "nfs_file_direct_write"
                    | "__iomap_dio_rw"
                    | "iomap_dio_rw"
                    | "__blockdev_direct_IO"
                    | "blkdev_direct_IO"
                    | "__blkdev_direct_IO"
                    | "__blkdev_direct_IO_simple"
                    | "__blkdev_direct_IO_async"
            )
        })
    }

    /// An overlay copies a file to its upper layer.
    pub(super) fn is_copy_up(&self) -> bool {
        self.passes(copies_up)
    }
}

/// A function of an overlay's copy-up.
pub(super) fn copies_up(function: &str) -> bool {
    function.starts_with("ovl_copy_up") || function.starts_with("ovl_do_copy_up")
}

/// Time summed over threads.
#[derive(Debug, Clone, Default)]
pub(super) struct Time {
    /// Nanoseconds.
    pub(super) ns: f64,
    /// Waits, calls or samples.
    pub(super) count: u64,
    pub(super) threads: BTreeSet<ThreadNumber>,
    /// Nanoseconds and count by call.
    pub(super) calls: BTreeMap<String, (f64, u64)>,
    /// Nanoseconds by thread, of waits and samples. Of calls it is not known which thread made which.
    by_thread: BTreeMap<ThreadNumber, f64>,
    /// How much of it is known to be on the critical path, in nanoseconds.
    on_path: f64,
    /// Time by call for which it is not known when it was spent, so it gets the call's share of the path.
    by_call: BTreeMap<String, f64>,
    /// The same of time in which the call did not wait for a CPU: it gets the share that the path has of such time.
    active_by_call: BTreeMap<String, f64>,
}

/// A saturating sum, so that a damaged recording gives nonsense rather than a panic.
pub(super) fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

impl Time {
    /// The time of these threads, with no calls yet.
    pub(super) fn of_threads(threads: BTreeSet<ThreadNumber>) -> Time {
        Time { threads, ..Time::default() }
    }

    fn add(&mut self, thread: ThreadNumber, call: &str, ns: f64, count: u64, on_path: f64) {
        self.threads.insert(thread);
        *self.by_thread.entry(thread).or_default() += ns;
        self.on_path += on_path;
        self.count_in(call, ns, count);
    }

    /// Adds calls whose threads are given elsewhere, with the time that they waited for a CPU.
    pub(super) fn add_calls(&mut self, call: &str, ns: f64, count: u64) {
        *self.by_call.entry(call.to_owned()).or_default() += ns;
        self.count_in(call, ns, count);
    }

    /// The same without the time that they waited for a CPU.
    pub(super) fn add_active_calls(&mut self, call: &str, ns: f64, count: u64) {
        *self.active_by_call.entry(call.to_owned()).or_default() += ns;
        self.count_in(call, ns, count);
    }

    fn count_in(&mut self, call: &str, ns: f64, count: u64) {
        self.ns += ns;
        self.count = self.count.saturating_add(count);
        let (sum, counted) = self.calls.entry(call.to_owned()).or_default();
        *sum += ns;
        *counted = counted.saturating_add(count);
    }

    /// Both together.
    pub(super) fn and(mut self, other: Time) -> Time {
        self.ns += other.ns;
        self.count = self.count.saturating_add(other.count);
        self.threads.extend(other.threads);
        self.on_path += other.on_path;
        for (thread, ns) in other.by_thread {
            *self.by_thread.entry(thread).or_default() += ns;
        }
        for (call, ns) in other.by_call {
            *self.by_call.entry(call).or_default() += ns;
        }
        for (call, ns) in other.active_by_call {
            *self.active_by_call.entry(call).or_default() += ns;
        }
        for (call, (ns, count)) in other.calls {
            let (sum, counted) = self.calls.entry(call).or_default();
            *sum += ns;
            *counted = counted.saturating_add(count);
        }
        self
    }

    /// Nanoseconds each; zero where there are none.
    pub(super) fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.ns / self.count as f64 }
    }

    /// The calls, most time first.
    pub(super) fn top_calls(&self) -> Vec<(&str, f64, u64)> {
        let mut calls: Vec<_> = self.calls.iter().map(|(name, (ns, count))| (name.as_str(), *ns, *count)).collect();
        calls.sort_by(|a, b| b.1.total_cmp(&a.1));
        calls
    }
}

impl<'a> Case<'a> {
    /// All waits.
    pub(super) fn waits(&self) -> impl Iterator<Item = Waited<'a>> + '_ {
        self.trace.observed.waits.iter().map(|wait| {
            let stack = self.classifier.stack(wait.stack);
            let outside = || match stack {
                Some(stack) if Outside::of(stack) == Outside::PageFault => PAGE_FAULT,
                _ => "",
            };
            let call = wait.syscall.as_deref().unwrap_or_else(outside);
            Waited { wait, cause: self.classifier.cause(wait), stack, call }
        })
    }

    /// The waits for which this is true, added up.
    pub(super) fn waiting(&self, is_meant: impl Fn(&Waited<'a>) -> bool) -> Time {
        let mut time = Time::default();
        for waited in self.waits().filter(|waited| is_meant(waited)) {
            let on_path = self.path.as_ref().map_or(0.0, |path| path.waiting(waited.wait));
            time.add(waited.wait.thread, waited.call, waited.wait.ns.0 as f64, waited.wait.count, on_path);
        }
        time
    }

    /// About how many of this call wait like that. One call may wait in several places, so each thread counts with the place in which it
    /// waited most often; whoever woke it.
    pub(super) fn calls_waiting(&self, call: &SyscallStats, is_meant: impl Fn(&Waited<'a>) -> bool) -> u64 {
        let mut places = BTreeMap::<(ThreadNumber, StackId), u64>::new();
        for waited in self.waits().filter(|waited| waited.call == call.name && is_meant(waited)) {
            let of_place = places.entry((waited.wait.thread, waited.wait.stack)).or_default();
            *of_place = of_place.saturating_add(waited.wait.count);
        }
        let mut most = BTreeMap::<ThreadNumber, u64>::new();
        for ((thread, _), count) in places {
            let of_thread = most.entry(thread).or_default();
            *of_thread = count.max(*of_thread);
        }
        total(most.into_values()).min(call.calls)
    }

    /// Time in which the critical path was in another thread of the command because one of these waits was for that thread; in
    /// nanoseconds. Nested waits for the same cause count once.
    pub(super) fn followed(&self, is_meant: impl Fn(&Waited<'a>) -> bool) -> f64 {
        let Some(path) = &self.path else { return 0.0 };
        self.waits().filter(|waited| is_meant(waited)).map(|waited| path.followed(waited.wait)).sum()
    }

    /// The waits of one thread for one cause.
    pub(super) fn waiting_of(&self, thread: ThreadNumber, cause: Cause) -> Time {
        self.waiting(|waited| waited.wait.thread == thread && waited.cause == cause)
    }

    /// Samples in the kernel whose stack holds a function for which this is true, as time on a CPU.
    pub(super) fn sampled(&self, function: impl Fn(&str) -> bool) -> Time {
        self.sampled_in(|_| true, function)
    }

    /// The same, in calls for which `is_meant` is true.
    pub(super) fn sampled_in(&self, is_meant: impl Fn(&str) -> bool, function: impl Fn(&str) -> bool) -> Time {
        self.sampled_where(|call, stack| {
            is_meant(call) && stack.symbols().any(|symbol| function(function_name(symbol)))
        })
    }

    /// Samples in the kernel for whose call and stack this is true, as time on a CPU.
    pub(super) fn sampled_where(&self, is_meant: impl Fn(&str, &Stack) -> bool) -> Time {
        let mut time = Time::default();
        let hz = f64::from(self.trace.observed.sample_hz);
        if hz <= 0.0 {
            return time;
        }
        for sample in self.trace.observed.samples.iter().filter(|sample| !sample.user_mode) {
            let Some(stack) = self.classifier.stack(sample.stack) else { continue };
            let call = call_of(sample, stack);
            if is_meant(call, stack) {
                let ns = sample.count as f64 * 1e9 / hz;
                let on_path = ns * self.running_on_path(sample.thread, sample.syscall.as_deref());
                time.add(sample.thread, call, ns, sample.count, on_path);
            }
        }
        time
    }

    /// What fraction of the time that a thread ran in a call, or outside of calls, was on the critical path.
    fn running_on_path(&self, number: ThreadNumber, call: Option<&str>) -> f64 {
        let Some(path) = &self.path else { return 0.0 };
        let threads = &self.trace.observed.threads;
        let Ok(at) = threads.binary_search_by_key(&number, |thread| thread.number) else { return 0.0 };
        let thread = &threads[at];
        let ran = call.map_or(Some(&thread.user_ns), |call| thread.kernel_ns.get(call));
        part(path.running(number, call), ran.map_or(0.0, |ns| ns.0 as f64))
    }

    /// The rows of the table of calls with these names.
    pub(super) fn calls(&self, is_meant: impl Fn(&str) -> bool) -> impl Iterator<Item = &'a SyscallStats> {
        self.trace.syscalls.iter().filter(move |stats| is_meant(&stats.name))
    }

    /// The threads that made calls with these names.
    pub(super) fn threads_of(&self, is_meant: impl Fn(&str) -> bool) -> BTreeSet<ThreadNumber> {
        let made =
            |thread: &&inodyne_model::observed::ThreadObserved| thread.kernel_ns.keys().any(|call| is_meant(call));
        self.trace.observed.threads.iter().filter(made).map(|thread| thread.number).collect()
    }

    /// What tracing adds to a call, in nanoseconds.
    pub(super) fn cost(&self) -> f64 {
        let cost = self.trace.overhead.ns_per_call;
        if cost.is_finite() { cost.max(0.0) } else { 0.0 }
    }

    /// The wall-clock time with tracing, in nanoseconds; at least one.
    pub(super) fn wall(&self) -> f64 {
        (self.trace.wall_ns.0 as f64).max(1.0)
    }

    /// The share of the wall-clock time that a sum over threads takes. Waiting for a CPU in calls is left out: it is a row of the ledger by
    /// itself, and other programs may be the reason for it.
    pub(super) fn share(&self, time: &Time) -> f64 {
        (self.on_path(time) - self.without_a_cpu(time)).max(0.0) / self.wall()
    }

    /// How much of a sum over threads is waiting for a CPU in calls that were added as a whole, in nanoseconds of the wall-clock time.
    fn without_a_cpu(&self, time: &Time) -> f64 {
        let ready_in = |call: &str| match &self.path {
            Some(path) => path.ready(Some(call)),
            None => self.ready_in(call),
        };
        let ready: f64 = time.by_call.iter().map(|(call, ns)| ns * part(ready_in(call), self.in_call(call))).sum();
        match &self.path {
            Some(_) => ready,
            None => self.on_path(time) * part(ready, time.ns),
        }
    }

    /// How much of the wall-clock time a sum over threads takes, in nanoseconds.
    pub(super) fn on_path(&self, time: &Time) -> f64 {
        let Some(path) = &self.path else {
            return (time.ns / parallel(self.trace, &time.threads)).min(self.room(time));
        };
        let of_calls = time.by_call.iter().map(|(call, ns)| ns * part(path.in_call(call), self.in_call(call)));
        let active =
            |call: &str| part(path.in_call(call) - path.ready(Some(call)), self.in_call(call) - self.ready_in(call));
        let of_active = time.active_by_call.iter().map(|(call, ns)| ns * active(call));
        (time.on_path + of_calls.sum::<f64>() + of_active.sum::<f64>()).min(self.wall())
    }

    /// All time in a call, summed over threads, in nanoseconds.
    fn in_call(&self, call: &str) -> f64 {
        self.calls(|name| name == call).map(|call| call.wall_ns.0 as f64).sum()
    }

    /// How much of that was waiting for a CPU.
    fn ready_in(&self, call: &str) -> f64 {
        self.calls(|name| name == call).map(|call| call.runqueue_ns.0 as f64).sum()
    }

    /// How many of these threads waited at the same time, on average while the path did; where no path is known, how many of them lived
    /// at the same time.
    pub(super) fn side_by_side(&self, time: &Time) -> f64 {
        let on_path = self.on_path(time);
        match &self.path {
            Some(_) if on_path > 0.0 => (time.ns / on_path).max(1.0),
            _ => parallel(self.trace, &time.threads),
        }
    }

    /// How much of the wall-clock time these threads take, in nanoseconds.
    pub(super) fn threads_on_path(&self, threads: &BTreeSet<ThreadNumber>) -> f64 {
        match &self.path {
            Some(path) => threads.iter().map(|thread| path.in_thread(*thread)).sum(),
            None => {
                let threads_of = |number: &ThreadNumber| threads.contains(number);
                let all = self.trace.observed.threads.iter().filter(|thread| threads_of(&thread.number));
                all.map(|thread| thread.lifetime_ns().0 as f64).sum::<f64>() / parallel(self.trace, threads)
            }
        }
    }

    /// What the ledger leaves for time in these calls: the rows of the calls themselves, and those in which the ledger's
    /// thread waits for others, which may be these.
    fn room(&self, time: &Time) -> f64 {
        let may_hold = |row: &&Row| {
            let is_named = row.syscall.as_deref().is_some_and(|call| time.calls.contains_key(call));
            let is_others = matches!(
                row.cause,
                Some(
                    Cause::Child
                        | Cause::Futex
                        | Cause::Pipe
                        | Cause::Socket
                        | Cause::Poll
                        | Cause::FuseServer
                        | Cause::Other
                )
            );
            // Time outside of calls has no name; samples taken there are part of user rows.
            is_named || is_others || !row.via.is_empty() || time.calls.contains_key("")
        };
        self.ledger(may_hold)
    }

    /// Time in the ledger's rows for which this is true, in nanoseconds.
    pub(super) fn ledger(&self, is_meant: impl Fn(&&Row) -> bool) -> f64 {
        let rows = self.trace.ledger.rows.iter().filter(|row| row.kind != RowKind::Unexplained);
        rows.filter(is_meant).map(|row| row.ns.0 as f64).sum()
    }

    /// The least that the ledger's rows for which this is true took, in nanoseconds: time outside of calls is divided by samples, and with
    /// few of them the division may be chance. A fraction taken from n samples is off by at most 1/√n in 19 of 20 cases.
    pub(super) fn ledger_at_least(&self, is_meant: impl Fn(&&Row) -> bool) -> f64 {
        let exact = self.ledger(|row| is_meant(row) && !row.estimated);
        let estimated = self.ledger(|row| is_meant(row) && row.estimated);
        let divided = self.ledger(|row| row.estimated);
        let samples = self.trace.observed.samples.iter().filter(|sample| sample.syscall.is_none());
        let samples: f64 = samples.map(|sample| sample.count as f64).sum();
        exact + (estimated - divided / samples.max(1.0).sqrt()).max(0.0)
    }

    /// The three calls that hold most of this time: how often each was made in all, and how much of its time went into `what`.
    pub(super) fn went_into(&self, time: &Time, what: &str) -> Vec<String> {
        let line = |(call, ns, _): &(&str, f64, u64)| {
            let calls = self.calls(|name| name == *call).next()?.calls;
            Some(format!("{} {call}, of whose time {} went into {what}", Grouped(calls), seconds(*ns)))
        };
        time.top_calls().iter().take(3).filter_map(line).collect()
    }

    /// The command name of the program that spends most of this time; "the program" where unknown. Where only the calls are known, it is
    /// the one that spends most time in such calls, not counting waits for something other than files: whoever reads the end of a pipe
    /// waits in `read` for as long as the others take.
    pub(super) fn who(&self, time: &Time) -> String {
        let threads = self.trace.observed.threads.iter().filter(|thread| time.threads.contains(&thread.number));
        let comms: BTreeMap<ThreadNumber, &str> =
            threads.clone().map(|thread| (thread.number, thread.comm.as_str())).collect();
        let mut by_name: BTreeMap<&str, f64> = BTreeMap::new();
        let mut add = |thread: ThreadNumber, ns: f64| {
            if let Some(comm) = comms.get(&thread) {
                *by_name.entry(comm).or_default() += ns;
            }
        };
        if time.by_thread.is_empty() {
            for thread in threads {
                let of_calls = thread.kernel_ns.iter().filter(|(call, _)| time.calls.contains_key(*call));
                add(thread.number, of_calls.map(|(_, ns)| ns.0 as f64).sum());
            }
            let is_meant = |waited: &Waited<'_>| time.calls.contains_key(waited.call) && waited.cause.is_of_files();
            for waited in self.waits().filter(is_meant) {
                add(waited.wait.thread, waited.wait.ns.0 as f64);
            }
        } else {
            time.by_thread.iter().for_each(|(thread, ns)| add(*thread, *ns));
        }
        let most = by_name.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        most.map_or_else(|| "the program".to_owned(), |(name, _)| name.to_owned())
    }

    /// The command name for whose calls this adds up to most; that of [`Case::who`] where no calls are known by command name.
    pub(super) fn who_makes(&self, time: &Time, count: impl Fn(&SyscallStats) -> u64) -> String {
        let by_comm = self.trace.by_comm.iter();
        let made = by_comm.map(|of| (of.comm.as_str(), total(of.syscalls.iter().map(&count))));
        let most = made.filter(|(_, calls)| *calls > 0).max_by_key(|(_, calls)| *calls);
        most.map_or_else(|| self.who(time), |(name, _)| name.to_owned())
    }

    /// How many CPUs the command may use: those of the machine, or fewer where a cgroup allows it less. At least one.
    pub(super) fn cpus(&self) -> f64 {
        let limits = self.trace.limits.iter().filter(|limit| limit.kind == LimitKind::Cpu);
        let allowed = limits.map(|limit| limit.value as f64 / 1e3).fold(f64::INFINITY, f64::min);
        f64::from(self.recording.host.usable_cpus()).min(allowed).max(1.0)
    }

    /// What the place was made as (`ext4`, `fuse`); none for a directory that was there before.
    pub(super) fn made_as(&self) -> Option<&str> {
        let spec = self.recording.places.get(self.trace.place)?.spec.as_deref()?;
        spec.split(':').next()
    }

    /// Type of the file system of the place; empty where unknown.
    pub(super) fn fs(&self) -> &str {
        self.recording.places.get(self.trace.place).map_or("", |place| place.fs.as_str())
    }
}

/// The fraction of a call's time in which it did not wait for a CPU: what others took meanwhile is no cost of the call. For a
/// short command on a busy machine, one call that loses its CPU can be the whole time.
pub(super) fn active(call: &SyscallStats) -> f64 {
    1.0 - part(call.runqueue_ns.0 as f64, call.wall_ns.0 as f64)
}

/// The time in calls that failed, without the waiting for a CPU. In which calls a thread waited is not known, so these have their share of it.
pub(super) fn failed(call: &SyscallStats) -> f64 {
    call.failed_ns.0 as f64 * active(call)
}

/// A part of a whole, between zero and one.
fn part(of: f64, whole: f64) -> f64 {
    if whole > 0.0 { (of / whole).clamp(0.0, 1.0) } else { 0.0 }
}

fn call_of<'a>(sample: &'a Sample, stack: &Stack) -> &'a str {
    match &sample.syscall {
        Some(call) => call,
        None if Outside::of(stack) == Outside::PageFault => PAGE_FAULT,
        None => "",
    }
}

/// How many of these threads lived at the same time, on average: the sum of their lives over the time in which at least
/// one of them lived; 1 where they lived one after the other.
pub(super) fn parallel(trace: &Trace, threads: &BTreeSet<ThreadNumber>) -> f64 {
    let mut lives: Vec<_> = trace
        .observed
        .threads
        .iter()
        .filter(|t| threads.contains(&t.number) && t.ended_ns > t.born_ns)
        .map(|t| (t.born_ns, t.ended_ns))
        .collect();
    lives.sort_unstable();
    let sum: f64 = lives.iter().map(|(born, ended)| (*ended - *born).as_secs_f64()).sum();
    let mut union = 0.0;
    let mut until = Nanos::ZERO;
    for (born, ended) in lives {
        union += ended.saturating_sub(born.max(until)).as_secs_f64();
        until = until.max(ended);
    }
    if union > 0.0 { (sum / union).max(1.0) } else { 1.0 }
}
