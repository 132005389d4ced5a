//! The headline ledger: the wall-clock time as the parent saw it, divided by what the root thread did.
//!
//! ```text
//! parent  release |==================================================| sees the end
//! root              | execve … user, kernel, blocked … exit_group ……………|·· last instant on a CPU
//!                 |-| before execve: unexplained                     |··| after the parent was told: no wall time
//! ```
//!
//! The parent is told of the end while the thread is still leaving the kernel, so the thread's life may end some
//! microseconds after the wall-clock time did. That tail was spent in the exit, and is cut off the exit's row.

use inodyne_model::Nanos;
use inodyne_model::ledger::{Ledger, Row, RowKind, View};
use inodyne_model::observed::ROOT;
use inodyne_model::trace::ThreadLedger;

/// Calls that end a thread.
const EXITS: [&str; 2] = ["exit_group", "exit"];

/// The ledger of a run. Should the thread have lived longer than the wall-clock time by more than its exit, the
/// ledger is about the life of the thread: no row is made smaller to fit.
pub(crate) fn ledger(wall_ns: Nanos, threads: &[ThreadLedger]) -> Ledger {
    let mut rows = threads.iter().find(|t| t.number == ROOT).map_or_else(Vec::new, |t| t.rows.clone());
    cut_exit(&mut rows, wall_ns);
    // What a thread's own rows do not explain stays unexplained here.
    rows.retain(|row| row.kind != RowKind::Unexplained && row.ns > Nanos::ZERO);
    let explained: Nanos = rows.iter().map(|row| row.ns).sum();
    let wall_ns = wall_ns.max(explained);
    let unexplained_ns = wall_ns - explained;
    rows.push(Row::new(RowKind::Unexplained, unexplained_ns));
    Ledger { view: View::RootThread, wall_ns, unexplained_ns, rows }
}

fn cut_exit(rows: &mut [Row], wall_ns: Nanos) {
    let lifetime: Nanos = rows.iter().map(|row| row.ns).sum();
    let tail = lifetime.saturating_sub(wall_ns);
    let is_exit = |row: &&mut Row| {
        row.kind == RowKind::Kernel
            && row.syscall.as_deref().is_some_and(|name| EXITS.contains(&name))
            && row.ns >= tail
    };
    if let Some(exit) = rows.iter_mut().find(is_exit) {
        exit.ns = exit.ns - tail;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(parts: &[(&str, u64)]) -> [ThreadLedger; 1] {
        let row = |(name, ns): &(&str, u64)| Row {
            syscall: Some((*name).to_owned()),
            ..Row::new(RowKind::Kernel, Nanos(*ns))
        };
        let rows: Vec<_> = parts.iter().map(row).collect();
        let lifetime_ns = rows.iter().map(|r| r.ns).sum();
        [ThreadLedger { number: ROOT, pid: 1, tid: 1, comm: "x".to_owned(), lifetime_ns, rows }]
    }

    fn parts(ledger: &Ledger) -> Vec<u64> {
        assert_eq!(ledger.sum(), ledger.wall_ns);
        ledger.rows.iter().map(|r| r.ns.0).collect()
    }

    #[test]
    fn what_the_thread_did_not_live_is_unexplained() {
        assert_eq!(parts(&ledger(Nanos(100), &root(&[("read", 60), ("exit_group", 30)]))), [60, 30, 10]);
    }

    #[test]
    fn a_tail_after_the_end_is_cut_off_the_exit() {
        assert_eq!(parts(&ledger(Nanos(100), &root(&[("read", 80), ("exit_group", 25)]))), [80, 20, 0]);
    }

    #[test]
    fn a_longer_life_is_shown_as_it_is() {
        let ledger = ledger(Nanos(100), &root(&[("read", 120)]));
        assert_eq!(parts(&ledger), [120, 0]);
        assert_eq!(ledger.wall_ns, Nanos(120));
    }

    #[test]
    fn without_a_root_everything_is_unexplained() {
        assert_eq!(parts(&ledger(Nanos(100), &[])), [100]);
    }
}
