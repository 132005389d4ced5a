//! Findings and paths that came or went.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use inodyne_model::difference::{Changed, ChangedPath, FindingName, PathsDifference, Sides};
use inodyne_model::recording::Recording;
use inodyne_model::trace::{Paths, Trace};

use super::calls::medians;

/// The traces of both sides.
type Traces<'a> = Sides<&'a [&'a Trace]>;

/// The findings of one side that the other does not have. A side has those that most of its traces have.
pub(super) fn findings(recordings: &Sides<&Recording>, traces: &Traces<'_>) -> Changed<FindingName> {
    let (old, new) = (of_most(recordings.old, traces.old), of_most(recordings.new, traces.new));
    let without = |all: &[FindingName], others: &[FindingName]| {
        let is_there = |finding: &FindingName| others.iter().any(|other| other.id == finding.id);
        all.iter().filter(|finding| !is_there(finding)).cloned().collect()
    };
    Changed { new: without(&new, &old), gone: without(&old, &new) }
}

/// The findings that most of these traces have.
pub(super) fn of_most(recording: &Recording, traces: &[&Trace]) -> Vec<FindingName> {
    let is_of =
        |index: usize| recording.traces.get(index).is_some_and(|trace| traces.iter().any(|t| std::ptr::eq(*t, trace)));
    let mut found: Vec<(FindingName, usize)> = Vec::new();
    for finding in recording.findings.iter().filter(|finding| is_of(finding.trace)) {
        match found.iter_mut().find(|(name, _)| name.id == finding.id) {
            Some((_, count)) => *count += 1,
            None => found.push((FindingName { id: finding.id.clone(), title: finding.title.clone() }, 1)),
        }
    }
    found.into_iter().filter(|(_, count)| count * 2 > traces.len()).map(|(name, _)| name).collect()
}

/// The paths of one side that the other does not have; none where one of them did not keep any.
pub(super) fn paths(traces: &Traces<'_>) -> Option<PathsDifference> {
    let kept = |traces: &[&Trace]| traces.iter().any(|trace| trace.paths.is_some());
    if !kept(traces.old) || !kept(traces.new) {
        return None;
    }
    let (old, new) = (all(traces.old), all(traces.new));
    Some(PathsDifference {
        count: medians(traces, &|trace| trace.paths.as_ref().map_or(0, |paths| summed(paths).len() as u64)),
        not_kept: medians(traces, &|trace| trace.paths.as_ref().map_or(0, |paths| paths.not_kept)),
        changed: Changed { new: without(&new, &old), gone: without(&old, &new) },
    })
}

/// How often a path was looked up, and how often nothing was there.
type Sum = (u64, u64);

/// All paths of a trace, whatever call looked them up.
fn summed(paths: &Paths) -> BTreeMap<&str, Sum> {
    let mut sums: BTreeMap<&str, Sum> = BTreeMap::new();
    for path in &paths.looked_up {
        let (calls, not_found) = sums.entry(&path.path).or_default();
        *calls = calls.saturating_add(path.calls);
        *not_found = not_found.saturating_add(path.not_found);
    }
    sums
}

/// All paths of several traces, each with the largest counts of any trace.
fn all<'a>(traces: &[&'a Trace]) -> BTreeMap<&'a str, Sum> {
    let mut most: BTreeMap<&str, Sum> = BTreeMap::new();
    for (path, (calls, not_found)) in traces.iter().filter_map(|trace| trace.paths.as_ref()).flat_map(summed) {
        let sum = most.entry(path).or_default();
        *sum = (sum.0.max(calls), sum.1.max(not_found));
    }
    most
}

fn without(all: &BTreeMap<&str, Sum>, others: &BTreeMap<&str, Sum>) -> Vec<ChangedPath> {
    let one = |(path, (calls, not_found)): (&&str, &Sum)| ChangedPath {
        path: (*path).to_owned(),
        calls: *calls,
        not_found: *not_found,
    };
    let mut paths: Vec<ChangedPath> = all.iter().filter(|(path, _)| !others.contains_key(*path)).map(one).collect();
    paths.sort_by_key(|path| Reverse(path.calls));
    paths
}
