//! What the runs of every case say: their spread, and what about them asks for a second look.

use std::collections::BTreeSet;

use inodyne_model::Nanos;
use inodyne_model::case::CaseKey;
use inodyne_model::recording::Recording;
use inodyne_model::statistics::{CallSpread, ChangePoint, Modes, RunStatistics, Times, Trend};
use inodyne_model::trace::Trace;

use crate::statistics::change_point::{Step, change_point, steps_better_than};
use crate::statistics::modes::groups;
use crate::statistics::outliers::outliers;
use crate::statistics::summary::{median_interval, median_of, spread};
use crate::statistics::trend::{Line, trend};

/// A trend or step is flagged where chance produces one more rarely than this. There are many cases to look at.
const LEVEL: f64 = 0.01;

/// The statistics of every case with untraced runs, in the order of their first runs.
pub(crate) fn statistics(recording: &Recording) -> Vec<RunStatistics> {
    let mut untraced: Vec<usize> = in_time(recording);
    untraced.retain(|run| !recording.runs[*run].traced);
    let mut keys: Vec<CaseKey> = Vec::new();
    for run in &untraced {
        let key = recording.runs[*run].key();
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let of_key = |key: &CaseKey| {
        let runs: Vec<usize> = untraced.iter().copied().filter(|run| recording.runs[*run].key() == *key).collect();
        case(recording, *key, &runs)
    };
    keys.iter().map(of_key).collect()
}

/// All runs in order of time, as a trend is about that; in the order of the file where it does not say when each of them was.
fn in_time(recording: &Recording) -> Vec<usize> {
    let count = recording.runs.len();
    let ordered: Vec<usize> = recording.order.iter().map(|step| step.run).filter(|run| *run < count).collect();
    if ordered.len() == count { ordered } else { (0..count).collect() }
}

fn case(recording: &Recording, key: CaseKey, runs: &[usize]) -> RunStatistics {
    let traces: Vec<&Trace> = recording.traces.iter().filter(|trace| trace.key() == key).collect();
    let to_end: Vec<(usize, Nanos)> = runs.iter().map(|run| (*run, recording.runs[*run].wall_ns)).collect();
    let durable = runs.iter().filter_map(|run| Some((*run, recording.runs[*run].durable_ns?)));
    let durable: Vec<(usize, Nanos)> = durable.collect();
    let Times { spread: wall, outliers, trend, change_point, modes } = of_times(&to_end, recording.margin);
    let interval = median_interval(&to_end.iter().map(|(_, ns)| *ns).collect::<Vec<_>>());
    RunStatistics {
        case: key,
        failed: runs.iter().filter(|run| !recording.runs[**run].exit.success()).count(),
        median_low_ns: interval.map(|(low, _)| low),
        median_high_ns: interval.map(|(_, high)| high),
        wall,
        outliers,
        trend,
        change_point,
        modes,
        durable: (!durable.is_empty()).then(|| of_times(&durable, recording.margin)),
        calls: if traces.len() > 1 { calls(&traces) } else { Vec::new() },
    }
}

/// What times say, one for each run, in the order of the runs.
fn of_times(times: &[(usize, Nanos)], margin: f64) -> Times {
    let values: Vec<f64> = times.iter().map(|(_, ns)| ns.0 as f64).collect();
    let order = in_order(&values, margin);
    Times {
        spread: spread(&times.iter().map(|(_, ns)| *ns).collect::<Vec<_>>()),
        outliers: outliers(&values).into_iter().map(|at| times[at].0).collect(),
        trend: match order {
            Order::Trend(line) => {
                Some(Trend { slope_ns_per_run: line.slope, change: change(&line, &values), p: line.p })
            }
            _ => None,
        },
        change_point: match order {
            Order::Step(step) => Some(ChangePoint {
                run: times[step.at].0,
                before_ns: Nanos::rounded(step.before),
                after_ns: Nanos::rounded(step.after),
                p: step.p,
            }),
            _ => None,
        },
        modes: groups(&values).map(|found| Modes {
            low_ns: Nanos::rounded(found.low),
            high_ns: Nanos::rounded(found.high),
            high_runs: found.high_count,
            separation: found.separation,
        }),
    }
}

/// What the order of the runs means.
enum Order {
    Nothing,
    Trend(Line),
    Step(Step),
}

/// A trend or a step, whichever describes the runs better; nothing where it is too small to matter.
fn in_order(values: &[f64], margin: f64) -> Order {
    let line = trend(values).filter(|line| line.p < LEVEL && change(line, values).abs() >= margin);
    let matters = |step: &Step| (step.after / step.before - 1.0).abs() >= margin;
    let step = change_point(values).filter(|step| step.p < LEVEL && matters(step));
    match (line, step) {
        (Some(line), Some(step)) if steps_better_than(&step, &line, values) => Order::Step(step),
        (Some(line), _) => Order::Trend(line),
        (None, Some(step)) => Order::Step(step),
        (None, None) => Order::Nothing,
    }
}

/// The change from the first to the last value, as a fraction of the median.
fn change(line: &Line, values: &[f64]) -> f64 {
    let median = median_of(values);
    if median > 0.0 { line.slope * values.len().saturating_sub(1) as f64 / median } else { 0.0 }
}

/// Every call over the traced runs, most time first. A run in which it does not occur counts as zero.
fn calls(traces: &[&Trace]) -> Vec<CallSpread> {
    let names: BTreeSet<&str> =
        traces.iter().flat_map(|trace| &trace.syscalls).map(|call| call.name.as_str()).collect();
    let time = |trace: &Trace, name: &str| {
        trace.syscalls.iter().filter(|call| call.name == name).map(|call| call.wall_ns).sum::<Nanos>()
    };
    let of_name = |name: &str| {
        let times: Vec<Nanos> = traces.iter().map(|trace| time(trace, name)).collect();
        CallSpread { name: name.to_owned(), wall: spread(&times) }
    };
    let mut calls: Vec<CallSpread> = names.into_iter().map(of_name).collect();
    calls.sort_by_key(|call| std::cmp::Reverse(call.wall.mean_ns));
    calls
}
