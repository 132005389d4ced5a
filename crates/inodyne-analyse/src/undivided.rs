//! The words for time that a tracer could not divide.
//!
//! A log knows how long a call took but not what it did meanwhile, so its trace keeps the time of a call where the kernel's side
//! keeps time running in the kernel, and the time between calls where that keeps user time. The ledgers and the path are computed
//! in the same way; here their rows get the names of what is really known.

use inodyne_model::ledger::RowKind;
use inodyne_model::profile::StackTimes;
use inodyne_model::trace::Trace;

/// Renames the rows of the ledgers and of the path. There are no stacks in a log, but the path has its rows where these would be.
pub(crate) fn name(trace: &mut Trace) {
    let of_threads = trace.threads.iter_mut().flat_map(|thread| &mut thread.rows);
    for row in of_threads.chain(&mut trace.ledger.rows) {
        row.kind = named(row.kind);
    }
    for row in &mut trace.path.rows {
        row.kind = named(row.kind);
    }
    for part in &mut trace.path.stacks {
        part.row.kind = named(part.row.kind);
        part.time.kind = named(part.time.kind);
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

#[cfg(test)]
mod tests {
    use inodyne_model::path::{PathRow, PathTime};
    use inodyne_model::profile::StackTime;
    use inodyne_model::sample;

    use super::*;

    #[test]
    fn nothing_of_a_log_is_told_as_time_on_a_cpu() {
        let mut recording = sample::find_recording();
        crate::explain(&mut recording);
        let trace = &mut recording.traces[0];
        let part = |time: &StackTime| PathTime {
            row: PathRow { kind: time.kind, syscall: time.syscall.clone(), cause: time.cause, via: Vec::new() },
            waits: Vec::new(),
            time: time.clone(),
        };
        trace.path.stacks = trace.stacks.on_cpu.iter().map(part).collect();
        let kinds = |trace: &Trace| {
            let of_path = trace.path.stacks.iter().flat_map(|part| [part.row.kind, part.time.kind]);
            of_path.chain(trace.ledger.rows.iter().map(|row| row.kind)).collect::<Vec<_>>()
        };
        assert!(kinds(trace).contains(&RowKind::Kernel) && kinds(trace).contains(&RowKind::User));
        name(trace);
        for kind in kinds(trace) {
            assert!(!matches!(kind, RowKind::User | RowKind::Kernel), "{kind:?}");
        }
    }
}
