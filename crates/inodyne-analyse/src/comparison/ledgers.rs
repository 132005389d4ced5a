//! Two ledgers subtracted row by row.
//!
//! Both sum to their wall-clock time, so the differences of their rows sum to the difference of the times, with nothing
//! left over. Means are shown rather than medians, since only means add up.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use inodyne_model::Nanos;
use inodyne_model::comparison::{LEAST_PAIRS, LedgerDifference, RowDifference, unlike_ledgers};
use inodyne_model::ledger::RowKey;
use inodyne_model::random::Random;
use inodyne_model::trace::Trace;

use super::cases::PairedCases;
use super::pending::{SEED, time_in};
use crate::statistics::bootstrap::{self, Pair};

/// The difference of the ledgers of two cases; none without a trace of each, or where they divide unlike things.
pub(crate) fn subtracted(pair: &PairedCases<'_>) -> Option<LedgerDifference> {
    let traces = pair.traces();
    if traces.is_empty() {
        return None;
    }
    let (a, b): (Vec<&Trace>, Vec<&Trace>) = traces.iter().copied().unzip();
    if unlike_ledgers(a.iter().chain(&b).copied()).is_some() {
        return None;
    }
    let view = a.iter().chain(&b).map(|trace| trace.ledger.view).max().unwrap_or_default();
    let keys: BTreeSet<RowKey> = a.iter().chain(&b).flat_map(|trace| &trace.ledger.rows).map(RowKey::from).collect();
    let mut rows: Vec<RowDifference> = keys.into_iter().map(|key| row(&a, &b, key)).collect();
    rows.retain(|row| row.a_ns > Nanos::ZERO || row.b_ns > Nanos::ZERO);
    rows.sort_by_key(|row| Reverse(row.difference_ns.unsigned_abs()));
    Some(LedgerDifference {
        cases: pair.keys(),
        pairs: traces.len(),
        view,
        a_wall_ns: mean(a.iter().map(|trace| trace.ledger.wall_ns)),
        b_wall_ns: mean(b.iter().map(|trace| trace.ledger.wall_ns)),
        rows,
    })
}

fn row(a: &[&Trace], b: &[&Trace], key: RowKey) -> RowDifference {
    let times =
        |traces: &[&Trace]| -> Vec<Nanos> { traces.iter().map(|trace| time_in(&trace.ledger.rows, &key)).collect() };
    let (a, b) = (times(a), times(b));
    let pairs: Vec<Pair> = a.iter().zip(&b).map(|(a, b)| (a.0 as f64, b.0 as f64)).collect();
    let interval = bootstrap::mean_difference(&pairs, &mut Random::seeded(SEED)).filter(|_| pairs.len() >= LEAST_PAIRS);
    let (a_ns, b_ns) = (mean(a.into_iter()), mean(b.into_iter()));
    RowDifference {
        kind: key.kind,
        syscall: key.syscall,
        cause: key.cause,
        a_ns,
        b_ns,
        difference_ns: i64::try_from(i128::from(b_ns.0) - i128::from(a_ns.0)).unwrap_or(i64::MAX),
        low_ns: interval.map(|interval| interval.low.round() as i64),
        high_ns: interval.map(|interval| interval.high.round() as i64),
    }
}

fn mean(times: impl ExactSizeIterator<Item = Nanos>) -> Nanos {
    let count = times.len() as u64;
    Nanos(times.sum::<Nanos>().0.checked_div(count).unwrap_or(0))
}
