//! Diagnoses: what is wrong, what it costs, what to change. One file each, and a line in [`DIAGNOSES`].
//!
//! A diagnosis looks at one trace of an explained recording and says nothing where it does not apply, or where what it
//! knows costs nobody anything. What it says comes with evidence, and a prediction that can be tested. Which findings are
//! reported, and in which order, is decided in one place: [`selection`].
//!
//! | module | what it knows |
//! |---|---|
//! | [`case`] | a trace, asked for times: of waits, of calls, of samples, and their share of the wall-clock time |
//! | [`on_path`] | how much of the critical path a wait, a call or a thread makes up |
//! | [`beside`] | what was done with files while the path only let time pass |
//! | [`estimate`] | from the time that a cure saves to the wall-clock time to expect |
//! | [`contents`] | waits for contents from the device |
//! | [`at_device`] | what the disk did meanwhile |
//! | [`journals`] | waits for a journal, and what it did meanwhile |
//! | [`lock_holders`] | which others held the locks that were waited for |
//! | [`families`] | which system calls do similar things |
//! | [`remedy`] | what to do, in words and as data |
//! | [`selection`] | which findings are reported, in which order |
//! | `stat_users` | which programs stat every file in any case |
//! | the others | one diagnosis each, named after its id |

mod at_device;
mod beside;
mod case;
mod cold_data;
mod cold_metadata;
mod cold_program;
mod commit_storm;
mod contents;
mod copy_up;
mod cpu_limited;
mod deleted_inodes;
mod device_saturated;
mod dtype_missing;
mod estimate;
mod failed_calls;
mod failed_lookups;
mod families;
mod fs_not_to_blame;
mod futex_contention;
mod io_limited;
mod journal_wait;
mod journals;
mod kernel_cpu_bound;
mod lock_contention;
mod lock_holders;
mod memory_pressure;
mod mmap_faults;
mod on_path;
mod others;
mod process_storm;
mod programs;
mod queue_full;
mod random_io;
mod readahead_wasted;
mod remedy;
mod repeated_stat;
mod round_trips;
mod run_queue_bound;
mod selection;
mod single_stream;
mod small_io;
mod small_requests;
mod stat_per_entry;
mod stat_users;
mod sync_bound;
#[cfg(test)]
mod tests;
mod user_cpu_bound;
mod write_amplification;
mod write_throttled;

use inodyne_model::finding::Finding;
use inodyne_model::observed::Begin;
use inodyne_model::recording::Recording;
use inodyne_model::trace::Trace;

use crate::causes::Classifier;
use case::Case;
use on_path::OnPath;

type Diagnosis = fn(&Case<'_>) -> Option<Finding>;

/// Every diagnosis there is, with the id of its findings.
const DIAGNOSES: &[(&str, Diagnosis)] = &[
    ("cold-data", cold_data::diagnose),
    ("cold-metadata", cold_metadata::diagnose),
    ("cold-program", cold_program::diagnose),
    ("commit-storm", commit_storm::diagnose),
    ("copy-up", copy_up::diagnose),
    ("cpu-limited", cpu_limited::diagnose),
    ("deleted-inodes", deleted_inodes::diagnose),
    ("device-saturated", device_saturated::diagnose),
    ("dtype-missing", dtype_missing::diagnose),
    ("failed-calls", failed_calls::diagnose),
    ("failed-lookups", failed_lookups::diagnose),
    ("fs-not-to-blame", fs_not_to_blame::diagnose),
    ("futex-contention", futex_contention::diagnose),
    ("io-limited", io_limited::diagnose),
    ("journal-wait", journal_wait::diagnose),
    ("kernel-cpu-bound", kernel_cpu_bound::diagnose),
    ("lock-contention", lock_contention::diagnose),
    ("memory-pressure", memory_pressure::diagnose),
    ("mmap-faults", mmap_faults::diagnose),
    ("process-storm", process_storm::diagnose),
    ("queue-full", queue_full::diagnose),
    ("random-io", random_io::diagnose),
    ("readahead-wasted", readahead_wasted::diagnose),
    ("repeated-stat", repeated_stat::diagnose),
    ("round-trips", round_trips::diagnose),
    ("run-queue-bound", run_queue_bound::diagnose),
    ("single-stream", single_stream::diagnose),
    ("small-io", small_io::diagnose),
    ("small-requests", small_requests::diagnose),
    ("stat-per-entry", stat_per_entry::diagnose),
    ("sync-bound", sync_bound::diagnose),
    ("user-cpu-bound", user_cpu_bound::diagnose),
    ("write-amplification", write_amplification::diagnose),
    ("write-throttled", write_throttled::diagnose),
];

/// Those that need only counts, errors, bytes and wall times of calls: a log of strace has these.
const OF_CALLS: &[&str] =
    &["failed-calls", "failed-lookups", "process-storm", "repeated-stat", "small-io", "sync-bound"];
/// Those that are about what certain threads wait for, or which calls they make, and so are as true of a window as of a whole run. The
/// others need the end of the command, or its whole life.
const OF_WINDOW: &[&str] = &[
    "cold-data",
    "commit-storm",
    "failed-calls",
    "failed-lookups",
    "journal-wait",
    "memory-pressure",
    "queue-full",
    "random-io",
    "readahead-wasted",
    "repeated-stat",
    "small-io",
    "small-requests",
    "sync-bound",
    "write-throttled",
];
/// What is said below each finding about a log of strace.
const COST_IS_IN_IT: &str = "strace's own cost is in all of these times: the counts are exact, the seconds are not";

/// The ids of all findings that there are.
pub fn ids() -> impl Iterator<Item = &'static str> {
    DIAGNOSES.iter().map(|(id, _)| *id)
}

/// Why a finding cannot be made about a trace; none where it can.
pub(crate) fn not_looked_for(id: &str, trace: &Trace) -> Option<&'static str> {
    let is_window = trace.observed.window.begin == Begin::Attached;
    if !trace.tracer.divides_calls() && !OF_CALLS.contains(&id) {
        Some("a log does not show it")
    } else if is_window && !OF_WINDOW.contains(&id) {
        Some("it is not looked for in a window")
    } else {
        None
    }
}

/// The findings of all traces. A score that an earlier reading of the recording holds stays with its finding.
pub fn all(recording: &Recording) -> Vec<Finding> {
    let of_trace = |(index, trace): (usize, &Trace)| {
        let (classifier, path) = (Classifier::new(&trace.observed.stacks), OnPath::of(trace));
        let case = Case { recording, index, trace, classifier, path };
        let possible = DIAGNOSES.iter().filter(|(id, _)| not_looked_for(id, trace).is_none());
        let mut made: Vec<Finding> =
            possible.filter_map(|(id, diagnose)| Some(Finding { id: (*id).to_owned(), ..diagnose(&case)? })).collect();
        if !trace.tracer.divides_calls() {
            made.iter_mut().for_each(|finding| finding.evidence.push(COST_IS_IN_IT.to_owned()));
        }
        selection::select(made)
    };
    let mut found: Vec<Finding> = recording.traces.iter().enumerate().flat_map(of_trace).collect();
    for finding in &mut found {
        let before = recording.findings.iter().find(|old| old.trace == finding.trace && old.id == finding.id);
        // The interval that was scored is part of the score: a newer rule must not claim it.
        if let Some(Finding { predicted, proved: Some(proof), .. }) = before {
            (finding.predicted, finding.proved) = (*predicted, Some(proof.clone()));
        }
    }
    found
}
