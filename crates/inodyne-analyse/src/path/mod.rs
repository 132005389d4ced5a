//! The critical path: the wall-clock time divided by what the end of the command had to wait for, whoever did it.
//!
//! | module | what it knows |
//! |---|---|
//! | `history` | what is known of each thread over time |
//! | `walk` | from the end back to the beginning |
//! | `waker` | who ended a wait: its name, and whether it had been idle |
//! | `rows` | how charges add up, and when they were |
//! | `doings` | the same by what threads of the command were doing |
//!
//! Every instant of the wall-clock time is charged exactly once, so the rows sum to it. The walk is made only where the timeline
//! is there and complete; what is said otherwise is the business of `headline`.

mod doings;
mod history;
mod rows;
mod waker;
mod walk;

use inodyne_model::ledger::Ledger;
use inodyne_model::path::CriticalPath;
use inodyne_model::trace::Trace;

use crate::causes::Classifier;
use history::Histories;
use walk::Walk;

/// The critical path, its ledger first; none where the timeline was off, lost something, or is of a version without pieces of
/// work.
pub(crate) fn walked(trace: &Trace, classifier: &Classifier<'_>) -> Option<(Ledger, CriticalPath)> {
    if !is_complete(trace) {
        return None;
    }
    let observed = &trace.observed;
    let root = observed.root()?;
    let of_root = observed.threads.iter().filter(|thread| thread.pid == root.pid && !thread.alive);
    let last = of_root.max_by_key(|thread| thread.ended_ns)?;
    let histories = Histories::new(observed);
    // The wall-clock time ends with the last instant of the root process, see `Trace::wall_ns`.
    let end = last.ended_ns.0;
    let start = end.saturating_sub(trace.wall_ns.0);
    let (rows, doings) = Walk::back(&histories, classifier, last.number, end, start);
    let (ledger, mut path) = rows.finish(trace.wall_ns, observed, classifier);
    path.doings = doings.finish(|call| histories.call(call).to_owned());
    Some((ledger, path))
}

fn is_complete(trace: &Trace) -> bool {
    let (lost, observed) = (&trace.lost, &trace.observed);
    let nothing_lost = [lost.intervals, lost.work, lost.threads, lost.records, lost.skipped] == [0; 5];
    let timeline = &observed.timeline;
    let switched = observed.threads.iter().any(|thread| thread.waits > 0 || thread.preemptions > 0);
    let is_recorded = timeline.waker_thread.len() == timeline.len() && (!switched || !observed.work.is_empty());
    nothing_lost && is_recorded
}

#[cfg(test)]
mod tests;
