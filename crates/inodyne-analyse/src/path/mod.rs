//! The critical path: the wall-clock time divided by what the end of the command had to wait for, whoever did it.
//!
//! | module | what it knows |
//! |---|---|
//! | `history` | what is known about each thread over time |
//! | `tail` | what is known about a thread after the timeline ran out of room |
//! | `frame` | the waits that the walk is inside of |
//! | `walk` | from the end back to the beginning |
//! | `servers` | what servers created, for which they sleep |
//! | `waker` | who ended a wait: its name, and whether it had been idle |
//! | `rows` | how charges add up, and when they were |
//! | `doings` | the same by what threads of the command were doing |
//! | `places` | the same by where they and their helpers were: stacks |
//!
//! Every instant of the wall-clock time is charged exactly once, so the rows sum to it. The walk is made only where the timeline
//! is there and complete; `headline` handles all other cases.

mod doings;
mod frame;
mod history;
mod places;
mod rows;
mod servers;
mod tail;
mod waker;
mod walk;

use inodyne_model::Nanos;
use inodyne_model::ledger::{Ledger, RowKey, RowKind};
use inodyne_model::observed::ThreadNumber;
use inodyne_model::path::{CriticalPath, PathRow, PathTime};
use inodyne_model::profile::StackTime;
use inodyne_model::trace::Trace;

use crate::causes::Classifier;
use crate::stacks::blank;
use history::Histories;
use places::Seen;
use tail::Tails;
use walk::Walk;

/// The critical path, its ledger first; none where the timeline was off, lost something, or is from a version without pieces of
/// work.
pub(crate) fn walked(trace: &Trace, classifier: &Classifier<'_>) -> Option<(Ledger, CriticalPath)> {
    if !is_complete(trace) {
        return None;
    }
    let observed = &trace.observed;
    let root = observed.root()?;
    let of_root = observed.threads.iter().filter(|thread| thread.pid == root.pid && !thread.alive);
    let last = of_root.max_by_key(|thread| thread.ended_ns)?;
    let mut histories = Histories::new(observed);
    let tails = Tails::new(observed, &mut histories);
    // The wall-clock time ends with the last instant of the root process, see `Trace::wall_ns`.
    let end = last.ended_ns.0;
    let start = end.saturating_sub(trace.wall_ns.0);
    let mut walk = Walk::new(&histories, &tails, classifier);
    walk.back(last.number, end, start);
    let (rows, doings, places) = walk.charged();
    let (ledger, mut path) = rows.finish(trace.wall_ns, observed, classifier);
    let name = |call| histories.call(call).to_owned();
    path.doings = doings.finish(name);
    path.stacks = places.finish(&path.rows, name, &Seen::new(observed, classifier));
    path.stacks.extend(residual(ledger.unexplained_ns));
    Some((ledger, path))
}

/// What led to given instants of a trace, whichever these are.
pub(crate) struct Past<'a> {
    trace: &'a Trace,
    histories: Histories<'a>,
}

impl<'a> Past<'a> {
    /// None where the timeline was off, lost something, had no room for everything, or is from a version without pieces of work.
    pub(crate) fn of(trace: &'a Trace) -> Option<Past<'a>> {
        let is_whole = trace.observed.timeline.until_ns.is_none();
        (is_whole && is_complete(trace)).then(|| Past { trace, histories: Histories::new(&trace.observed) })
    }

    /// What the end of each of these stretches had to wait for since its beginning, added up. Each has the thread that it ends in, its
    /// beginning, and its length. They may overlap: each is walked separately.
    pub(crate) fn ledger(
        &self,
        stretches: impl Iterator<Item = (ThreadNumber, Nanos, Nanos)>,
        classifier: &Classifier<'_>,
    ) -> Ledger {
        let (tails, mut whole) = (Tails::default(), Nanos::ZERO);
        let mut walk = Walk::new(&self.histories, &tails, classifier);
        for (thread, from, ns) in stretches {
            whole += ns;
            walk.back(thread, (from + ns).0, from.0);
        }
        walk.charged().0.finish(whole, &self.trace.observed, classifier).0
    }
}

/// Unexplained time belongs to no thread and no place.
fn residual(ns: Nanos) -> Option<PathTime> {
    let row = PathRow { kind: RowKind::Unexplained, syscall: None, cause: None, via: Vec::new() };
    let time = StackTime { ns, ..blank(0, &RowKey { kind: row.kind, syscall: None, cause: None }) };
    (ns > Nanos::ZERO).then(|| PathTime { row, waits: Vec::new(), time })
}

fn is_complete(trace: &Trace) -> bool {
    let (lost, observed) = (&trace.lost, &trace.observed);
    let nothing_lost = [lost.intervals, lost.work, lost.threads, lost.records, lost.skipped] == [0; 5];
    let timeline = &observed.timeline;
    let switched = observed.threads.iter().any(|thread| thread.waits > 0 || thread.preemptions > 0);
    let has_work = !switched || !observed.work.is_empty() || timeline.until_ns.is_some();
    let is_recorded = timeline.waker_thread.len() == timeline.len() && has_work;
    nothing_lost && is_recorded
}

#[cfg(test)]
mod tests;
