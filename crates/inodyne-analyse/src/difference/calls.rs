//! Calls, errors and bytes of both sides: counted, so they have no interval. For a side with several traces, the median.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use inodyne_model::difference::{CallDifference, Counts, Sides};
use inodyne_model::loss::Loss;
use inodyne_model::syscall::SyscallStats;
use inodyne_model::trace::Trace;

/// The traces of both sides; each has at least one.
type Traces<'a> = Sides<&'a [&'a Trace]>;

/// Each loss of these kinds may be calls that are not counted.
const OF_COUNTS: [Loss; 3] = [Loss::Calls, Loss::Threads, Loss::Skipped];

/// All calls together.
pub(super) fn total(traces: &Traces<'_>) -> Counts {
    counts(traces, &|_| true)
}

/// Every call of either side, by how much its calls or its errors changed, whichever is more, then by how many calls there are.
pub(super) fn by_name(traces: &Traces<'_>) -> Vec<CallDifference> {
    let all = traces.old.iter().chain(traces.new).flat_map(|trace| &trace.syscalls);
    let names: BTreeSet<&str> = all.map(|call| call.name.as_str()).collect();
    let mut calls: Vec<CallDifference> = names.into_iter().map(|name| one(traces, name)).collect();
    calls.sort_by_key(|call| {
        let Counts { calls, errors, .. } = call.counts;
        Reverse((calls.change().unsigned_abs().max(errors.change().unsigned_abs()), calls.old.max(calls.new)))
    });
    calls
}

fn one(traces: &Traces<'_>, name: &str) -> CallDifference {
    let is_it = |call: &SyscallStats| call.name == name;
    let of_name = traces.old.iter().chain(traces.new).flat_map(|trace| &trace.syscalls).filter(|call| is_it(call));
    let errnos: BTreeSet<&str> = of_name.flat_map(|call| call.errors_by_errno.keys()).map(String::as_str).collect();
    let of_errno = |errno: &str| {
        let count = |call: &SyscallStats| call.errors_by_errno.get(errno).copied().unwrap_or_default();
        (errno.to_owned(), medians(traces, &|trace| sum(trace, &is_it, &count)))
    };
    let errors_by_errno: BTreeMap<String, Sides<u64>> = errnos.into_iter().map(of_errno).collect();
    CallDifference { name: name.to_owned(), counts: counts(traces, &is_it), errors_by_errno }
}

fn counts(traces: &Traces<'_>, is_it: &dyn Fn(&SyscallStats) -> bool) -> Counts {
    let of = |count: &dyn Fn(&SyscallStats) -> u64| medians(traces, &|trace| sum(trace, is_it, count));
    Counts {
        calls: of(&|call| call.calls),
        errors: of(&|call| call.errors),
        bytes: of(&|call| call.bytes.unwrap_or_default()),
    }
}

fn sum(trace: &Trace, is_it: &dyn Fn(&SyscallStats) -> bool, count: &dyn Fn(&SyscallStats) -> u64) -> u64 {
    trace.syscalls.iter().filter(|call| is_it(call)).map(count).fold(0, u64::saturating_add)
}

/// The median of a count over the traces of each side.
pub(super) fn medians(traces: &Traces<'_>, count: &dyn Fn(&Trace) -> u64) -> Sides<u64> {
    traces.map(|traces| {
        let mut counts: Vec<u64> = traces.iter().map(|trace| count(trace)).collect();
        counts.sort_unstable();
        let middle = |at: usize| counts.get(at).copied().unwrap_or_default();
        middle(counts.len().saturating_sub(1) / 2).midpoint(middle(counts.len() / 2))
    })
}

/// What each recording has lost, a sentence for each kind: what makes counts too low comes first.
pub(super) fn inexact(traces: &Traces<'_>) -> Vec<String> {
    let said = |(side, traces): (&'static str, &[&Trace])| {
        let (of_counts, of_others): (Vec<Loss>, Vec<Loss>) =
            Loss::ALL.iter().partition(|loss| OF_COUNTS.contains(loss));
        let too_low = said(side, traces, of_counts, "its counts are too low");
        let others = said(side, traces, of_others, "its times and their causes are incomplete");
        too_low.chain(others).collect::<Vec<_>>()
    };
    [("old", traces.old), ("new", traces.new)].into_iter().flat_map(said).collect()
}

/// What makes the counts of the new recording too low; none where nothing does.
pub(super) fn too_low(traces: &Traces<'_>) -> Option<String> {
    said("new", traces.new, OF_COUNTS.to_vec(), "its counts are too low").next()
}

fn said(side: &'static str, traces: &[&Trace], losses: Vec<Loss>, so: &'static str) -> impl Iterator<Item = String> {
    let most = |loss: Loss| traces.iter().map(|trace| trace.lost.get(loss)).max().unwrap_or_default();
    let lost: Vec<(Loss, u64)> = losses.into_iter().map(|loss| (loss, most(loss))).collect();
    let one = move |(loss, count): (Loss, u64)| format!("the {side} recording has lost {}: {so}", loss.counted(count));
    lost.into_iter().filter(|(_, count)| *count > 0).map(one)
}
