//! The headline of a window: what all threads did while they were watched, each for as long as it lived in it.
//!
//! ```text
//! thread 1  |=========================================|   followed from the window's beginning to its end
//! thread 2  |=============|                               ended before
//! thread 3            |===============================|   born later
//! ```
//!
//! A window has no end that something led to, so there is no critical path: the whole is the time of all threads together, and
//! the rows are those of their own ledgers, added up. They sum to the whole exactly, since each ledger does.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use inodyne_model::Nanos;
use inodyne_model::ledger::{Ledger, Row, RowKind, View};
use inodyne_model::trace::ThreadLedger;

/// The ledgers of all threads as one.
pub(crate) fn ledger(threads: &[ThreadLedger]) -> Ledger {
    let mut sums: BTreeMap<_, (Row, Nanos)> = BTreeMap::new();
    for row in threads.iter().flat_map(|thread| &thread.rows).filter(|row| row.kind != RowKind::Unexplained) {
        let key = (row.kind, row.syscall.as_deref(), row.cause, row.estimated, row.began_before);
        match sums.get_mut(&key) {
            None => drop(sums.insert(key, (row.clone(), row.ns))),
            Some((sum, largest)) => {
                sum.ns += row.ns;
                sum.count = sum.count.saturating_add(row.count);
                if row.ns > *largest {
                    *largest = row.ns;
                    sum.stack.clone_from(&row.stack);
                }
            }
        }
    }
    let mut rows: Vec<Row> = sums.into_values().map(|(row, _)| row).collect();
    rows.sort_by_key(|row| Reverse(row.ns));
    let explained: Nanos = rows.iter().map(|row| row.ns).sum();
    let wall_ns = threads.iter().map(|thread| thread.lifetime_ns).sum::<Nanos>().max(explained);
    let unexplained_ns = wall_ns - explained;
    rows.push(Row::new(RowKind::Unexplained, unexplained_ns));
    Ledger { view: View::Window, wall_ns, unexplained_ns, rows }
}

#[cfg(test)]
mod tests {
    use inodyne_model::block::{Amount, Asker, BlockIo, BoundBy, Disk, Operation, Requests};
    use inodyne_model::cause::Cause;
    use inodyne_model::observed::{ThreadObserved, Wait};
    use inodyne_model::recording::Recording;
    use inodyne_model::sample::{self, ms};

    use super::*;

    fn watched() -> Recording {
        let mut recording = sample::window_recording();
        crate::explain(&mut recording);
        recording
    }

    #[test]
    fn the_rows_of_all_threads_sum_to_their_lives() {
        let trace = &watched().traces[0];
        let lives: Nanos = trace.observed.threads.iter().map(|thread| thread.lifetime_ns()).sum();
        assert_eq!((trace.ledger.view, trace.ledger.wall_ns, trace.ledger.sum()), (View::Window, lives, lives));
        assert_eq!(trace.ledger.unexplained_ns, Nanos::ZERO);
        assert!(trace.path.rows.is_empty(), "no path leads through a window");
        let journal = |began_before: bool| {
            let rows = trace.ledger.rows.iter();
            let of_journal = rows.filter(|row| row.cause == Some(Cause::Journal) && row.began_before == began_before);
            of_journal.map(|row| (row.ns, row.count)).collect::<Vec<_>>()
        };
        assert_eq!(journal(false), [(ms(1_700.0), 550)]);
        assert_eq!(journal(true), [(ms(40.0), 1)], "what began before is a row of its own");
        assert_eq!(trace.ledger.rows[1].cause, Some(Cause::Sleep), "{:?}", trace.ledger.rows);
        assert_eq!(trace.ledger.rows.last().map(|row| row.kind), Some(RowKind::Unexplained));
    }

    #[test]
    fn threads_that_do_nothing_do_not_hide_what_bounds_the_others() {
        let mut recording = sample::window_recording();
        let trace = &mut recording.traces[0];
        let (idle, sleep) = (trace.observed.threads[2].clone(), trace.observed.waits[3].clone());
        for number in 4..40 {
            trace.observed.threads.push(ThreadObserved { number, ..idle.clone() });
            trace.observed.waits.push(Wait { thread: number, ..sleep.clone() });
        }
        let disk = Disk { number: "8:0".to_owned(), name: "sda".to_owned(), ..Disk::default() };
        let amount = Amount { requests: 1, bytes: 4_096, timed: 1, device_ns: ms(1.0), ..Amount::default() };
        let (operation, asker) = (Operation::Write, Asker::Command);
        let requests = Requests { disk: disk.number.clone(), operation, asker, amount, ..Requests::default() };
        trace.block = Some(BlockIo { disks: vec![disk], requests: vec![requests], ..BlockIo::default() });
        crate::explain(&mut recording);
        let trace = &recording.traces[0];
        let bound = trace.block.as_ref().and_then(|block| block.bound.as_ref()).expect("one disk was used");
        assert_eq!((bound.by, bound.waiting_ns), (BoundBy::Journal, ms(1_740.0)));
        assert!(bound.waiting_ns.share_of(trace.ledger.wall_ns) < 0.1);
        assert!(bound.waiting_ns.share_of(trace.time_with_devices()) > 0.9);
    }

    #[test]
    fn findings_are_about_those_who_wait_and_promise_nothing() {
        let recording = watched();
        let ids: Vec<&str> = recording.findings.iter().map(|finding| finding.id.as_str()).collect();
        // Threads that sleep take nothing from the share of those that sync, and no bound is reported for a window.
        assert_eq!(ids, ["sync-bound"]);
        assert!(recording.findings[0].share_of_wall > 0.9, "{:?}", recording.findings);
        assert_eq!(recording.traces[0].doubts.len(), 1, "{:?}", recording.traces[0].doubts);
    }
}
