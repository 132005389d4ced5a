//! Which findings are reported, and in which order. The one place where findings know about each other.
//!
//! Diagnoses are made independently, so several may concern the same time. A reader wants to hear about it once, from the one
//! that says most about it:
//! 1. A finding whose time another one explains better is left out ([`EXPLAINED_BY`]), if that one is worth saying (2) and large enough to be
//!    the explanation ([`EXPLAINS`]).
//! 2. A finding whose prediction saves next to nothing is left out, unless it is about avoidable calls, which are a defect of
//!    a program even where they are cheap.
//! 3. The one that saves most comes first; but what only a warm cache cures comes last, since caches are cold for a
//!    reason, and the measurement may have been asked for like that.
//! 4. Bounds name a limit and no cure whose effect can be predicted; they are reported only where no finding saves anything worth a change, and
//!    then only the largest; or in place of a finding that they explain. A bound comes before calls that need not be made but cost
//!    next to nothing: those do not answer the question where the time went.

use std::collections::{BTreeMap, BTreeSet};

use inodyne_model::finding::Finding;

/// Cured above all by a warm cache.
const NEED_WARMTH: &[&str] = &["cold-metadata", "cold-data", "cold-program", "random-io"];

/// What saves less than this fraction of what another would save is not the reason for that other one.
const EXPLAINS: f64 = 0.25;

/// The first is left out where one of the others is found, and why.
const EXPLAINED_BY: &[(&str, &[&str])] = &[
    // A file that a sync waits for is written, and so is its journal: the sync is the reason.
    // And a journal that holds data fills up sooner.
    ("journal-wait", &["commit-storm", "sync-bound", "io-limited", "write-amplification"]),
    ("commit-storm", &["sync-bound", "io-limited", "write-amplification"]),
    ("write-amplification", &["sync-bound", "memory-pressure", "copy-up", "io-limited"]),
    // And whoever finds the journal full empties it, through the queue.
    // So does a reader that is ahead of its device.
    (
        "queue-full",
        &[
            "sync-bound",
            "journal-wait",
            "commit-storm",
            "cold-data",
            "io-limited",
            "write-amplification",
            "readahead-wasted",
        ],
    ),
    // What is thrown away for lack of memory is read again, and dirty memory is limited along with memory.
    // What a cgroup allows has nothing to do with the device.
    ("readahead-wasted", &["memory-pressure"]),
    // There is no reason to have in memory what nobody needs, nor to ask for more of it at once.
    ("cold-data", &["memory-pressure", "io-limited", "cold-program", "readahead-wasted"]),
    // Small pieces are asked for one at a time, too: in order, they could be fewer, and otherwise their order is what there is to say.
    (
        "single-stream",
        &[
            "memory-pressure",
            "copy-up",
            "io-limited",
            "small-requests",
            "random-io",
            "cold-program",
            "readahead-wasted",
        ],
    ),
    ("small-requests", &["memory-pressure", "copy-up", "io-limited"]),
    ("random-io", &["memory-pressure", "copy-up", "io-limited", "readahead-wasted"]),
    ("device-saturated", &["io-limited"]),
    ("mmap-faults", &["memory-pressure", "io-limited", "readahead-wasted"]),
    ("cold-program", &["memory-pressure", "io-limited", "readahead-wasted"]),
    ("write-throttled", &["memory-pressure", "copy-up", "io-limited", "write-amplification"]),
    ("run-queue-bound", &["cpu-limited"]),
    // Copying up reads, writes and syncs.
    ("cold-metadata", &["copy-up", "round-trips", "io-limited", "cold-program"]),
    ("sync-bound", &["copy-up", "io-limited"]),
    // Look-ups without a result by a hundred thousand short processes: the processes are the reason.
    ("failed-lookups", &["process-storm"]),
    ("failed-calls", &["process-storm"]),
    // What is asked for again and again is found nowhere, again and again.
    ("repeated-stat", &["failed-lookups"]),
    // Computing is one of the things that files have no part in, and the more precise term.
    ("fs-not-to-blame", &["user-cpu-bound"]),
    // Full queues make requests wait on locks.
    ("lock-contention", &["queue-full"]),
];

/// The findings about one trace that are reported, the most useful first.
pub(super) fn select(found: Vec<Finding>) -> Vec<Finding> {
    let saves = |finding: &Finding| finding.predicted.saving();
    let is_worth_saying = |finding: &Finding| finding.avoidable_calls.is_some() || finding.is_an_answer();
    // What is not said explains nothing.
    let reasons: BTreeMap<String, f64> = found
        .iter()
        .filter(|finding| is_worth_saying(finding))
        .map(|finding| (finding.id.clone(), saves(finding)))
        .collect();
    let explains = |id: &str, finding: &Finding| {
        reasons.get(id).is_some_and(|saving| finding.bound || *saving >= saves(finding) * EXPLAINS)
    };
    let (explained, mut found): (Vec<Finding>, Vec<Finding>) =
        found.into_iter().partition(|finding| explained_by(finding).any(|id| explains(id, finding)));
    // A bound in whose favour a cure is left out is reported in its place.
    let instead: BTreeSet<&str> =
        explained.iter().filter(|finding| !finding.bound && is_worth_saying(finding)).flat_map(explained_by).collect();
    found.retain(is_worth_saying);
    let (mut bounds, mut found): (Vec<Finding>, Vec<Finding>) = found.into_iter().partition(|finding| finding.bound);
    if found.iter().any(Finding::is_an_answer) {
        found.extend(bounds.into_iter().filter(|bound| instead.contains(bound.id.as_str())));
        bounds = Vec::new();
    }
    let is_last = |finding: &Finding| NEED_WARMTH.contains(&finding.id.as_str());
    found.sort_by(|a, b| is_last(a).cmp(&is_last(b)).then(saves(b).total_cmp(&saves(a))));
    bounds.sort_by(|a, b| b.share_of_wall.total_cmp(&a.share_of_wall));
    bounds.truncate(1);
    bounds.extend(found);
    bounds
}

/// In favour of which others it is left out.
fn explained_by(finding: &Finding) -> impl Iterator<Item = &'static str> {
    EXPLAINED_BY.iter().filter(|(id, _)| *id == finding.id).flat_map(|(_, by)| by.iter().copied())
}

/// Every finding that a rule here names.
#[cfg(test)]
pub(super) fn named() -> impl Iterator<Item = &'static str> {
    let explained = EXPLAINED_BY.iter().flat_map(|(id, by)| by.iter().chain([id]));
    explained.chain(NEED_WARMTH).copied()
}
