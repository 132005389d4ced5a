//! The words for time that a tracer could not divide.
//!
//! A log knows how long a call took but not what it did meanwhile, so its trace keeps the time of a call where the kernel's side
//! keeps time running in the kernel, and the time between calls where that keeps user time. The ledgers and the path are computed
//! in the same way; here their rows get the names of what is really known.

use inodyne_model::ledger::RowKind;
use inodyne_model::profile::StackTimes;
use inodyne_model::trace::Trace;

/// Renames the rows of the ledgers and of the path. There are no stacks in a log.
pub(crate) fn name(trace: &mut Trace) {
    let of_threads = trace.threads.iter_mut().flat_map(|thread| &mut thread.rows);
    for row in of_threads.chain(&mut trace.ledger.rows) {
        row.kind = named(row.kind);
    }
    for row in &mut trace.path.rows {
        row.kind = named(row.kind);
    }
    trace.stacks = StackTimes::default();
}

fn named(kind: RowKind) -> RowKind {
    match kind {
        RowKind::Kernel => RowKind::InCall,
        RowKind::User => RowKind::OutsideCalls,
        other => other,
    }
}
