//! What the absence of types has cost: the look-ups that types would make unnecessary, and who made them.

use std::collections::{BTreeMap, BTreeSet};

use inodyne_model::Nanos;
use inodyne_model::observed::ThreadNumber;
use inodyne_model::trace::ForcedLookup;

use super::super::case::{Case, Time};
use super::super::programs::ProgramsByThread;
use super::super::stat_users::{Gain, base_name, gain};

/// Forced look-ups added up.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    pub(super) calls: u64,
    /// Without waiting for a CPU, which is no part of a share.
    pub(super) active_ns: Nanos,
    pub(super) cpu_ns: Nanos,
    pub(super) blocked_ns: Nanos,
}

impl Sum {
    fn add(&mut self, forced: &ForcedLookup) {
        self.calls = self.calls.saturating_add(forced.calls);
        self.active_ns += active(forced);
        self.cpu_ns += forced.cpu_ns.min(forced.wall_ns);
        self.blocked_ns += forced.blocked_ns.min(forced.wall_ns);
    }
}

/// The time of look-ups without waiting for a CPU.
fn active(forced: &ForcedLookup) -> Nanos {
    (forced.cpu_ns + forced.blocked_ns).min(forced.wall_ns)
}

/// What programs that would gain from types have paid for their absence.
#[derive(Debug)]
pub(super) struct Paid {
    /// Look-ups that the cure makes unnecessary.
    pub(super) files: Sum,
    /// Look-ups of what turned out to be directories.
    pub(super) directories: Sum,
    /// The avoidable calls by name.
    pub(super) calls: BTreeMap<String, u64>,
    /// Who made them, by program name, and how many.
    pub(super) programs: BTreeMap<String, u64>,
    /// Those for which it is not known whether they need more than the type.
    pub(super) assumed: BTreeSet<String>,
    /// The threads that made them.
    pub(super) threads: BTreeSet<ThreadNumber>,
    /// The time of the avoidable calls, without waiting for a CPU, divided by how much of it is on the critical path: 1 where nothing else works
    /// in parallel.
    pub(super) parallel: f64,
}

impl Paid {
    pub(super) fn of(case: &Case<'_>) -> Paid {
        let trace = case.trace;
        let mut paid = Paid {
            files: Sum::default(),
            directories: Sum::default(),
            calls: BTreeMap::new(),
            programs: BTreeMap::new(),
            assumed: BTreeSet::new(),
            threads: BTreeSet::new(),
            parallel: 1.0,
        };
        let programs = ProgramsByThread::of(trace);
        let mut by_call = BTreeMap::<&str, (f64, u64)>::new();
        for forced in &trace.dtype.forced {
            let program = programs.of_thread(forced.thread);
            let gains = program.map_or(Gain::Unknown, gain);
            if gains == Gain::None {
                continue;
            }
            if forced.directory {
                paid.directories.add(forced);
                continue;
            }
            paid.files.add(forced);
            let calls = paid.calls.entry(forced.syscall.clone()).or_default();
            *calls = calls.saturating_add(forced.calls);
            paid.threads.insert(forced.thread);
            let (ns, count): &mut (f64, u64) = by_call.entry(&forced.syscall).or_default();
            *ns += active(forced).0 as f64;
            *count = count.saturating_add(forced.calls);
            let name = program.map_or("the program", |p| base_name(p.args.first().unwrap_or(&p.file))).to_owned();
            if gains == Gain::Unknown {
                paid.assumed.insert(name.clone());
            }
            let made = paid.programs.entry(name).or_default();
            *made = made.saturating_add(forced.calls);
        }
        let mut time = Time::of_threads(paid.threads.clone());
        for (call, (ns, count)) in &by_call {
            time.add_active_calls(call, *ns, *count);
        }
        let all = paid.files.active_ns.0 as f64;
        paid.parallel = if all > 0.0 { (all / case.on_path(&time)).max(1.0) } else { 1.0 };
        paid
    }

    /// The program that made most of them.
    pub(super) fn who(&self) -> &str {
        self.programs.iter().max_by_key(|(_, calls)| **calls).map_or("the program", |(name, _)| name)
    }
}
