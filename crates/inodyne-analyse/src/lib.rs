//! EXPLAIN: from what was observed to what it means.
//!
//! [`explain`] completes a recording: the table of calls, the ledger of every thread, the headline ledger, and the
//! findings. It is pure: no clock, no file, no privilege, no printing, so a recording made as root is explained again
//! anywhere, and better once the rules here know more.
//!
//! | module | what it knows |
//! |---|---|
//! | `calls` | how rows of one system call add up |
//! | `causes` | which kernel stacks mean which [`Cause`](inodyne_model::cause::Cause) |
//! | `faults` | what ran in the kernel outside of system calls |
//! | `threads` | the ledger of one thread |
//! | `path` | the critical path: the ledger of the wall-clock time, and what it was from instant to instant |
//! | `headline` | the same where the path cannot be walked |
//! | `requests` | what requests that were answered waited for |
//! | `window` | the ledger of a window of running processes: all their threads |
//! | `live` | what a live view shows: the difference of two snapshots |
//! | `filesystem` | in which file system a stack waits |
//! | `io_paths` | by which path through the kernel block I/O was requested |
//! | `device` | which disk a command worked with, and whether that bounds it |
//! | `undivided` | the words for time that a tracer could not divide |
//! | `stacks` | the time of threads by stack |
//! | `doubts` | what in a recording speaks against a prediction from it |
//! | `strangers` | what programs that have nothing to do with the command did with a disk |
//! | `findings` | one file per diagnosis |
//! | `score` | what measured pairs say about a prediction |
//! | `runs` | what the runs of one case say |
//! | `comparison` | cases compared with each other |
//! | `difference` | two recordings compared, and what must not get worse |
//! | `units` | times and shares, as sentences write them |
//! | [`tuning`] | what pairs of runs say about settings that were tried |
//! | [`statistics`] | how repeated measurements spread, and what differs |

mod calls;
mod causes;
mod comparison;
mod device;
mod difference;
mod doubts;
mod faults;
mod filesystem;
mod findings;
mod headline;
mod io_paths;
mod live;
mod path;
mod requests;
mod runs;
mod score;
mod stacks;
pub mod statistics;
mod strangers;
mod threads;
pub mod tuning;
mod undivided;
mod units;
mod window;
mod workers;

pub use comparison::precision;
pub use difference::difference;
pub use findings::ids as finding_ids;
use inodyne_model::observed::Begin;
use inodyne_model::path::CriticalPath;
use inodyne_model::place::Place;
use inodyne_model::recording::Recording;
use inodyne_model::trace::Trace;
pub use live::Live;

use crate::causes::Classifier;
pub use score::score;

/// Computes every derived part of a recording. Explaining again gives the same result.
pub fn explain(recording: &mut Recording) {
    for trace in &mut recording.traces {
        explain_trace(trace, recording.places.get(trace.place));
    }
    recording.findings = findings::all(recording);
    let doubts: Vec<Vec<String>> = (0..recording.traces.len()).map(|trace| doubts::of(recording, trace)).collect();
    for (trace, doubts) in recording.traces.iter_mut().zip(doubts) {
        trace.doubts = doubts;
    }
    recording.statistics = runs::statistics(recording);
    recording.comparisons = comparison::all(recording);
    recording.ledger_differences = comparison::ledger_differences(recording);
}

fn explain_trace(trace: &mut Trace, place: Option<&Place>) {
    let classifier = Classifier::new(&trace.observed.stacks);
    trace.syscalls = calls::merged(&trace.by_comm);
    trace.threads = threads::ledgers(&trace.observed, &classifier);
    (trace.ledger, trace.path) = match trace.observed.window.begin {
        Begin::Attached => (window::ledger(&trace.threads), CriticalPath::default()),
        Begin::Launched => path::walked(trace, &classifier)
            .unwrap_or_else(|| (headline::ledger(trace.wall_ns, &trace.threads), CriticalPath::default())),
    };
    let whole = trace.time_with_devices();
    if let Some(block) = &mut trace.block {
        block.paths = io_paths::of(block, &trace.observed);
        block.bound = device::bound(block, trace.wall_ns, &trace.ledger, whole, place);
    }
    let groups = trace.requests.as_ref().map(|requests| requests::groups(trace, requests, &classifier));
    if let (Some(requests), Some(groups)) = (&mut trace.requests, groups) {
        requests.groups = groups;
    }
    if trace.tracer.divides_calls() {
        trace.stacks = stacks::times(&trace.observed, &trace.threads, &classifier);
    } else {
        undivided::name(trace);
    }
}
