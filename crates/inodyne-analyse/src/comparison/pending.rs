//! What is compared for a pair of cases, in pairs.

use std::collections::BTreeSet;

use inodyne_model::Nanos;
use inodyne_model::comparison::unlike_ledgers;
use inodyne_model::ledger::{Row, RowKey};
use inodyne_model::metric::Metric;
use inodyne_model::run::Run;
use inodyne_model::syscall::SyscallStats;
use inodyne_model::trace::Trace;

use super::cases::{PairedCases, failures};
use crate::statistics::bootstrap::Pair;

/// Calls and rows below this share of the time are not compared: they cannot matter, and each would make the correction
/// for the others harsher. The share is taken of both sides together, which says nothing about their difference.
const LEAST_SHARE: f64 = 0.001;
/// Calls and rows are compared where there are at least this many traces of each.
const LEAST_TRACES: usize = 2;

/// The random numbers of every comparison start with this seed, so that it does not depend on what else is compared.
pub(super) const SEED: u64 = 0x696e_6f64_796e_6521;

/// A comparison without its statistics.
pub(super) struct PendingComparison {
    pub(super) metric: Metric,
    pub(super) traced: bool,
    pub(super) pairs: Vec<Pair>,
    pub(super) failed: usize,
}

/// A time of a run.
type Time = fn(&Run) -> Nanos;

/// Everything that is compared for a pair of cases.
pub(super) fn of(pair: &PairedCases<'_>) -> Vec<PendingComparison> {
    let traced = !pair.has_untraced();
    let runs = pair.runs(traced);
    if runs.is_empty() {
        return Vec::new();
    }
    let failed = failures(&runs);
    let times: [(Metric, Time); 3] =
        [(Metric::Wall, |r| r.wall_ns), (Metric::User, |r| r.usage.user_ns), (Metric::Sys, |r| r.usage.sys_ns)];
    let mut pending: Vec<PendingComparison> = times
        .into_iter()
        .map(|(metric, time)| {
            let pairs = runs.iter().map(|(a, b)| (float(time(a)), float(time(b)))).collect();
            PendingComparison { metric, traced, pairs, failed }
        })
        .collect();
    let durable = |(a, b): &(&Run, &Run)| Some((float(a.durable_ns?), float(b.durable_ns?)));
    let pairs: Vec<Pair> = runs.iter().filter_map(durable).collect();
    if !pairs.is_empty() {
        pending.insert(1, PendingComparison { metric: Metric::Durable, traced, pairs, failed });
    }
    let traces = pair.traces();
    if traces.len() >= LEAST_TRACES {
        let failed = failures(&pair.runs(true));
        pending.extend(of_traces(&traces).into_iter().map(|(metric, pairs)| PendingComparison {
            metric,
            traced: true,
            pairs,
            failed,
        }));
    }
    pending
}

fn of_traces(traces: &[(&Trace, &Trace)]) -> Vec<(Metric, Vec<Pair>)> {
    let both = || traces.iter().flat_map(|(a, b)| [*a, *b]);
    let whole: f64 = both().map(|trace| float(trace.wall_ns)).sum();
    let large = |pairs: &[Pair]| pairs.iter().map(|(a, b)| a + b).sum::<f64>() >= whole * LEAST_SHARE;
    let mut compared = Vec::new();
    let mut compare = |metric: Metric, value: &dyn Fn(&Trace) -> Nanos| {
        let pairs: Vec<Pair> = traces.iter().map(|(a, b)| (float(value(a)), float(value(b)))).collect();
        if large(&pairs) {
            compared.push((metric, pairs));
        }
    };
    let names: BTreeSet<&str> = both().flat_map(|trace| &trace.syscalls).map(|call| call.name.as_str()).collect();
    for name in names {
        let sum = |trace: &Trace, time: fn(&SyscallStats) -> Nanos| {
            trace.syscalls.iter().filter(|call| call.name == name).map(time).sum()
        };
        compare(Metric::SyscallWall(name.to_owned()), &|trace| sum(trace, |call| call.wall_ns));
        compare(Metric::SyscallCpu(name.to_owned()), &|trace| sum(trace, |call| call.cpu_ns));
    }
    // Rows of unlike ledgers are not of the same time.
    let alike = unlike_ledgers(both()).is_none();
    let rows = both().filter(|_| alike).flat_map(|trace| &trace.ledger.rows);
    let keys: BTreeSet<RowKey> = rows.map(RowKey::from).collect();
    for key in keys {
        let sum = |trace: &Trace| time_in(&trace.ledger.rows, &key);
        compare(Metric::Ledger(key.clone()), &sum);
    }
    compared
}

/// The time of all rows with a key.
pub(super) fn time_in(rows: &[Row], key: &RowKey) -> Nanos {
    rows.iter().filter(|row| RowKey::from(*row) == *key).map(|row| row.ns).sum()
}

fn float(ns: Nanos) -> f64 {
    ns.0 as f64
}
