//! A traced run: what was observed of it, and what that means.
//!
//! `by_comm`, `dtype`, `overhead`, `lost` and `observed` come from the collecting side. `syscalls`, `ledger`, `path`, `threads`
//! and `stacks` are computed from them by `inodyne_analyse::explain`, and computed again whenever a recording is read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::block::{BlockIo, Journal};
use crate::cause::Cause;
use crate::files::Files;
use crate::ledger::{Ledger, Row, View};
use crate::limit::Limit;
use crate::loss::Lost;
use crate::neighbours::Neighbours;
use crate::observed::{Observed, ThreadNumber};
use crate::page_cache::PageCache;
use crate::path::CriticalPath;
use crate::profile::StackTimes;
use crate::requests::Served;
use crate::run::{CacheState, SettingsIndex, is_default};
use crate::syscall::{CommCalls, SyscallStats};

/// One traced run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Trace {
    /// Index into the recording's places.
    pub place: usize,
    /// Index into the recording's commands.
    pub command: usize,
    /// State of the caches beforehand.
    pub cache: CacheState,
    /// Which settings were in force.
    #[serde(default, skip_serializing_if = "is_default")]
    pub settings: SettingsIndex,
    /// What collected it, and hence what is known about the inside of a call.
    #[serde(default, skip_serializing_if = "Tracer::divides_calls")]
    pub tracer: Tracer,
    /// From the release of the command to its process's last instant on a CPU, tracing included; for a window, its length.
    pub wall_ns: Nanos,
    /// Calls of all processes together, most wall time first. Derived.
    #[serde(default)]
    pub syscalls: Vec<SyscallStats>,
    /// Where the wall-clock time went: the critical path, or what the ledger says about itself. Derived.
    #[serde(default)]
    pub ledger: Ledger,
    /// The critical path through time. Derived, and not kept.
    #[serde(skip)]
    pub path: CriticalPath,
    /// Calls by command name.
    pub by_comm: Vec<CommCalls>,
    /// The ledger of every thread. Derived.
    #[serde(default)]
    pub threads: Vec<ThreadLedger>,
    /// The same by stack. Derived.
    #[serde(default)]
    pub stacks: StackTimes,
    /// Directory entries and their types.
    #[serde(default)]
    pub dtype: Dtype,
    /// Paths looked up, where these were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Paths>,
    /// Files used, where these were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Files>,
    /// Requests that were answered, where these were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Served>,
    /// Requests to block devices. None where they were not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<BlockIo>,
    /// Journals and logs of file systems that were written, most commits first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub journals: Vec<Journal>,
    /// What the command brought into the page cache, and what of that it asked for. None where that was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache: Option<PageCache>,
    /// What the tracing cost.
    #[serde(default)]
    pub overhead: Overhead,
    /// What speaks against a prediction, one sentence each: the runs disagree, or the machine was busy. Derived.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// What the cgroups of the command allowed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
    /// What others used of the machine meanwhile. None where it was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<Neighbours>,
    /// What could not be recorded.
    #[serde(default)]
    pub lost: Lost,
    /// At which tracepoints events were lost because the kernel skipped our programs, and how many; they sum to [`Lost::skipped`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skipped: BTreeMap<String, u64>,
    /// What was not observed because the kernel refused it. Usually nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
    /// The rest of what the kernel side saw.
    pub observed: Observed,
}

/// A part of what is traced that the kernel refused: the trace is complete except for it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Refused {
    /// What it would have provided: `types of directory entries`.
    pub feature: String,
    /// What is not known without it, in words.
    pub without: String,
    /// Which program was refused, and what the kernel said.
    pub reason: String,
}

/// What collected a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tracer {
    /// The BPF programs: the time of each call is divided into running, ready and blocked.
    #[default]
    Bpf,
    /// A strace log: a call's time is known as a whole, as is the time between calls, and strace's own cost is in both. In
    /// [`Observed`], what ran in a call stands for the whole of the call, and what ran in user mode for everything between calls;
    /// only waits for children are known as waits.
    Strace,
}

impl Trace {
    /// The time of which waiting for a device is a part: that of the ledger; in a window, that of the threads that waited for one at all.
    /// Of others there may be any number, which do nothing.
    pub fn time_with_devices(&self) -> Nanos {
        if self.ledger.view != View::Window {
            return self.ledger.wall_ns;
        }
        let waited = |thread: &&ThreadLedger| thread.rows.iter().any(|row| row.cause.is_some_and(Cause::is_of_device));
        self.threads.iter().filter(waited).map(|thread| thread.lifetime_ns).sum()
    }

    /// What tracing cost, as far as that is known without untraced runs: the number of calls and of switches, times the measured cost of
    /// each, and whatever else programs did, spread over as many CPUs as were busy in this time. Where others kept the command from a CPU,
    /// it had less than one, and each nanosecond took longer.
    pub fn estimated_overhead(&self, wall_ns: Nanos) -> Overhead {
        let wall = wall_ns.as_secs_f64().max(1e-9);
        let calls = self.calls();
        let cpu: Nanos = self.observed.threads.iter().map(|thread| thread.cpu_ns()).sum();
        let ready: Nanos = self.observed.threads.iter().map(|thread| thread.runqueue_ns).sum();
        let (cpu, ready) = (cpu.as_secs_f64(), ready.as_secs_f64());
        // strace is one process, which stops all others.
        let busy_cpus = match self.tracer.divides_calls() && cpu > 0.0 {
            true => (cpu / wall).max(cpu / (cpu + ready)),
            false => 1.0,
        };
        let Overhead { ns_per_call, ns_per_switch, other_ns, reader_ns, .. } = self.overhead;
        let switches = self.switches() as f64;
        let of_switches = switches * ns_per_switch.unwrap_or_default();
        let spent = calls as f64 * ns_per_call + of_switches + other_ns.0 as f64;
        let cost = spent / 1e9 / busy_cpus;
        let is_unknown = ns_per_switch.is_none() && switches * LEAST_NS_PER_SWITCH / 1e9 > wall * SMALL;
        let competes = reader_ns > LEAST_READER && reader_ns.share_of(wall_ns) > READER_COMPETES;
        let switches_weigh = of_switches > spent * MUCH && cost > wall * SMALL;
        let at_least =
            self.tracer.divides_calls() && (is_unknown || competes || switches_weigh || self.lost.total() > 0);
        Overhead { ratio: wall / (wall - cost).max(wall / 100.0), estimated: true, at_least, ..self.overhead }
    }

    /// Whether tracing accounts for the difference between how long the traced run took and `untraced`, the median of the untraced ones: it may
    /// be 1.6 times as much as expected, since runs differ. strace stops every process at each call, which explains any.
    pub fn is_explained_by_tracing(&self, traced: Nanos, untraced: Nanos) -> bool {
        if !self.tracer.divides_calls() {
            return true;
        }
        let [traced, untraced] = [traced, untraced].map(|wall| wall.0 as f64);
        let cost = |ns: f64| Some(ns).filter(|ns| ns.is_finite()).unwrap_or_default().max(0.0);
        let per_switch = cost(self.overhead.ns_per_switch.unwrap_or_default()).max(NS_PER_SWITCH);
        let of_events = self.calls() as f64 * cost(self.overhead.ns_per_call) + self.switches() as f64 * per_switch;
        let dearest = untraced + of_events + self.overhead.other_ns.0 as f64;
        (untraced / AGREES - AGREES_NS..=dearest * AGREES + AGREES_NS).contains(&traced)
    }

    /// How many calls returned, of all threads together.
    pub fn calls(&self) -> u64 {
        let calls = self.by_comm.iter().flat_map(|command| &command.syscalls).map(|call| call.calls);
        calls.fold(0, u64::saturating_add)
    }

    /// Whether it is known when each thread was on a CPU and when it was not. This is not so for an strace log, nor where the timeline was
    /// off: it holds nothing then, although threads left their CPUs.
    pub fn knows_who_was_on_cpu(&self) -> bool {
        self.tracer.divides_calls() && (!self.observed.timeline.is_empty() || self.switches() == 0)
    }

    /// How often threads left their CPU, to wait or because it was taken from them.
    pub fn switches(&self) -> u64 {
        self.observed.threads.iter().map(|thread| thread.switches()).fold(0, u64::saturating_add)
    }
}

impl Tracer {
    /// Whether it is known what happened inside a call.
    pub fn divides_calls(&self) -> bool {
        *self == Tracer::Bpf
    }
}

/// Paths as the traced processes gave them to calls that look one up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Paths {
    /// The paths that found room, most calls first. Relative ones stay relative.
    pub looked_up: Vec<PathCount>,
    /// Look-ups of paths that found no room in the table.
    pub not_kept: u64,
}

/// One path in one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathCount {
    /// The path; its beginning is replaced by `…` where it is longer than what is kept.
    pub path: String,
    /// The call.
    pub syscall: String,
    /// How often.
    pub calls: u64,
    /// How often nothing was there (ENOENT, ENOTDIR).
    pub not_found: u64,
    /// Wall-clock time of these calls.
    pub wall_ns: Nanos,
}

/// The ledger of one thread. Its rows sum to its lifetime exactly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadLedger {
    /// Its number in this trace.
    pub number: ThreadNumber,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Its last command name.
    pub comm: String,
    /// From creation to end.
    pub lifetime_ns: Nanos,
    /// The parts, largest first.
    pub rows: Vec<Row>,
}

/// What the tracing cost the command.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Overhead {
    /// Time with tracing over time without, 1.0 or more.
    pub ratio: f64,
    /// True where the ratio is from calls × `ns_per_call` + switches × `ns_per_switch` + `other_ns`, and not measured by untraced runs.
    pub estimated: bool,
    /// What tracing adds to one system call: measured in parts of the run, or just before it where there were hardly any calls.
    pub ns_per_call: f64,
    /// What it adds to leaving a CPU once and returning to one, measured in parts of the run. None where hardly any of this was seen, or
    /// where the kernel does not measure it without CAP_SYS_ADMIN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_per_switch: Option<f64>,
    /// What all other programs took together: births and ends, samples with their timer's interrupts, requests to disks. 0 in older recordings.
    #[serde(default)]
    pub other_ns: Nanos,
    /// CPU time in which the tracer fetched what the kernel had for it. 0 in older recordings.
    #[serde(default)]
    pub reader_ns: Nanos,
    /// Whether an estimate is a lower bound: the tracer may have taken CPU time from the command, something was lost, it is not known what a
    /// switch cost, or much of the cost is that of switches, of which only the programs' run time is known.
    #[serde(default)]
    pub at_least: bool,
}

/// From this fraction of the time on, the tracer itself may have kept the command from a CPU, apart from what it does in any case.
const READER_COMPETES: f64 = 0.1;
const LEAST_READER: Nanos = Nanos(5_000_000);
/// No switch costs less than this; where switches alone are more than a small part of the time, an estimate without them is too low.
const LEAST_NS_PER_SWITCH: f64 = 500.0;
const SMALL: f64 = 0.01;
/// What tracing may add to any switch, in nanoseconds, with its records and stacks, unless more was measured.
const NS_PER_SWITCH: f64 = 2_000.0;
/// How much slower or faster than expected a traced run may be, as a factor; and by how much in any case, in nanoseconds.
const AGREES: f64 = 1.6;
const AGREES_NS: f64 = 5e6;
/// From this fraction of the cost on, that of switches makes the estimate a lower bound: what the programs take from the caches of a CPU on
/// which threads take turns is in no run time of theirs. Of a ping-pong on one CPU it is a quarter of the cost.
const MUCH: f64 = 0.25;

/// Directory entries that the traced processes read, and whether they came with a type. `.` and `..` do not count.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Dtype {
    /// Calls of `getdents64` that returned entries.
    pub reads: u64,
    /// Entries returned.
    pub entries: u64,
    /// Of these, entries with `DT_UNKNOWN`.
    pub unknown: u64,
    /// Of these reads, those that returned entries without a type, by file system, most unknown first.
    pub filesystems: Vec<DtypeFs>,
    /// Directories with unknown entries, most first; at most 4,096 are kept.
    pub directories: Vec<DtypeDirectory>,
    /// Look-ups of names that had just been read without a type.
    pub forced: Vec<ForcedLookup>,
}

/// Reads of one file system that returned entries without a type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DtypeFs {
    /// Its type as the kernel names it (`ext4`).
    pub fs: String,
    /// Its device number, `MAJOR:MINOR`.
    pub device: String,
    /// Entries returned.
    pub entries: u64,
    /// Of these, entries with `DT_UNKNOWN`.
    pub unknown: u64,
}

/// A directory that returned entries without a type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DtypeDirectory {
    /// Its path from the root of its file system, at most 16 names long (`…/` precedes a longer one).
    pub path: String,
    /// Its device number, `MAJOR:MINOR`.
    pub device: String,
    /// Its inode number.
    pub inode: u64,
    /// Entries returned.
    pub entries: u64,
    /// Of these, entries with `DT_UNKNOWN`.
    pub unknown: u64,
}

/// stat-family calls (`newfstatat`, `statx`, `stat`, `lstat`) on a name that the same process had read without a type
/// before: the first such call for each entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForcedLookup {
    /// Who looked.
    pub thread: ThreadNumber,
    /// By which call.
    pub syscall: String,
    /// True for those that turned out to be directories (most programs ask for these in any case).
    pub directory: bool,
    /// How many calls.
    pub calls: u64,
    /// Their wall-clock time.
    pub wall_ns: Nanos,
    /// The part on a CPU.
    pub cpu_ns: Nanos,
    /// The part not able to run.
    pub blocked_ns: Nanos,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::ThreadObserved;

    fn thread(user_ns: u64, runqueue_ns: u64, preemptions: u64) -> ThreadObserved {
        ThreadObserved {
            user_ns: Nanos(user_ns),
            runqueue_ns: Nanos(runqueue_ns),
            preemptions,
            ..ThreadObserved::default()
        }
    }

    /// The estimate for a second in which these threads left their CPUs, each time at the cost of a microsecond.
    fn estimated(threads: Vec<ThreadObserved>, ns_per_switch: Option<f64>) -> (f64, bool) {
        let mut trace = Trace { overhead: Overhead { ns_per_switch, ..Overhead::default() }, ..Trace::default() };
        trace.observed.threads = threads;
        let overhead = trace.estimated_overhead(Nanos(1_000_000_000));
        ((1.0 - 1.0 / overhead.ratio) * 1000.0, overhead.at_least)
    }

    #[test]
    fn each_switch_costs_what_the_cpu_that_was_had_makes_of_it() {
        let per_switch = Some(1_000.0);
        // Alone, or asleep for most of the time: a tenth of a second.
        let alone = estimated(vec![thread(1_000_000_000, 0, 100_000)], per_switch);
        assert_eq!((alone.0.round(), alone.1), (100.0, true));
        assert_eq!(estimated(vec![thread(200_000_000, 0, 100_000)], per_switch).0.round(), 100.0);
        // Half of the time another program had the CPU.
        assert_eq!(estimated(vec![thread(500_000_000, 500_000_000, 100_000)], per_switch).0.round(), 200.0);
        // Eight on two CPUs.
        let eight = vec![thread(250_000_000, 750_000_000, 25_000); 8];
        assert_eq!(estimated(eight, per_switch).0.round(), 100.0);
    }

    #[test]
    fn an_estimate_is_a_lower_bound_where_much_of_it_is_the_cost_of_switches() {
        let is_at_least = |switches: u64, wall_ns: u64| {
            let overhead =
                Overhead { ns_per_switch: Some(1_000.0), other_ns: Nanos(20_000_000), ..Overhead::default() };
            let mut trace = Trace { overhead, ..Trace::default() };
            trace.observed.threads = vec![thread(wall_ns, 0, switches)];
            trace.estimated_overhead(Nanos(wall_ns)).at_least
        };
        assert!(!is_at_least(6_600, 1_000_000_000));
        assert!(is_at_least(6_750, 1_000_000_000));
        // Less than a hundredth of the time in all.
        assert!(!is_at_least(6_750, 4_000_000_000));
    }

    #[test]
    fn tracing_explains_what_its_calls_and_switches_cost_and_not_more() {
        let mut trace = Trace { overhead: Overhead { ns_per_call: 500.0, ..Overhead::default() }, ..Trace::default() };
        let is_explained =
            |trace: &Trace, traced: u64| trace.is_explained_by_tracing(Nanos(traced), Nanos(1_000_000_000));
        assert!(is_explained(&trace, 1_600_000_000) && is_explained(&trace, 625_000_000));
        assert!(!is_explained(&trace, 1_700_000_000) && !is_explained(&trace, 600_000_000));
        // Half a second for switches, and as much for calls.
        trace.observed.threads = vec![thread(0, 0, 250_000)];
        assert!(is_explained(&trace, 2_300_000_000) && !is_explained(&trace, 2_500_000_000));
        let call = SyscallStats { calls: 1_000_000, ..SyscallStats::new("read".to_owned()) };
        trace.by_comm = vec![CommCalls { comm: "dd".to_owned(), syscalls: vec![call] }];
        assert!(is_explained(&trace, 3_100_000_000) && !is_explained(&trace, 3_300_000_000));
        // A second for switches if they cost more, and half of one for everything else.
        trace.overhead.ns_per_switch = Some(4_000.0);
        trace.overhead.other_ns = Nanos(500_000_000);
        assert!(is_explained(&trace, 4_700_000_000) && !is_explained(&trace, 4_900_000_000));
        trace.tracer = Tracer::Strace;
        assert!(is_explained(&trace, 100_000_000_000));
    }

    #[test]
    fn who_was_on_a_cpu_is_known_where_the_timeline_holds_every_switch() {
        let mut trace = Trace::default();
        trace.observed.threads = vec![thread(1_000, 0, 0)];
        assert!(trace.knows_who_was_on_cpu(), "nobody ever left a CPU");
        trace.observed.threads[0].waits = 1;
        assert!(!trace.knows_who_was_on_cpu(), "the timeline was off");
        trace.observed.timeline.thread.push(1);
        assert!(trace.knows_who_was_on_cpu());
        trace.tracer = Tracer::Strace;
        assert!(!trace.knows_who_was_on_cpu(), "only waits for children are known");
    }

    #[test]
    fn an_estimate_without_the_cost_of_switches_is_a_lower_bound_where_they_matter() {
        assert_eq!(estimated(vec![thread(1_000_000_000, 0, 100_000)], None), (0.0, true));
        assert_eq!(estimated(vec![thread(1_000_000_000, 0, 10)], None), (0.0, false));
    }
}
