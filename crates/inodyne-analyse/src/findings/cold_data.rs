//! `cold-data`: contents come from the device, in large requests, and the program waits for them.
//!
//! Small ones, each after the last, are `single-stream`: there the device idles, here it is busy.

use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::finding::Finding;
use inodyne_model::ledger::PAGE_FAULT;

use super::case::{Case, Time, Waited};
use super::estimate::{self, Draft, lines, percent, seconds};
use super::families::reads;
use super::single_stream::LARGE_READ;

/// Below this share of the wall-clock time contents are warm enough.
const LEAST_SHARE: f64 = 0.15;
/// From memory the same calls copy only; how much of their time on a CPU was read-ahead is not known.
const UNCERTAIN: f64 = 0.25;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let time = waiting_for_contents(case);
    let share = case.share(&time);
    let size = bytes_a_wait(case, &time);
    if share < LEAST_SHARE || size < LARGE_READ {
        return None;
    }
    let bytes = bytes_read(case);
    let evidence = vec![
        format!("waited {} times for contents, {} together", Grouped(time.count), seconds(time.ns)),
        format!("{:.1} MB were read in all, {:.0} KB for each wait", bytes / 1e6, size / 1e3),
    ];
    Some(
        Draft {
            title: format!("Contents come from the device, not from memory: {} of the time", percent(share)),
            share,
            evidence,
            predicted: estimate::without(case, case.on_path(&time), UNCERTAIN),
            cure: lines(&[
                "have it in memory before: cat FILES >/dev/null, vmtouch, or a read that does not wait (posix_fadvise WILLNEED)",
                "read less: compress, or read only what is needed",
                "read ahead further, where the device answers slowly: blockdev --setra, /sys/block/DEVICE/queue/read_ahead_kb",
            ]),
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}

/// Waits for contents to come from the device through the cache, by calls.
pub(super) fn waiting_for_contents(case: &Case<'_>) -> Time {
    // Reading ahead of a busy device, a reader waits for a free request as often as for the contents.
    let is_read = |cause| matches!(cause, Cause::DeviceRead | Cause::QueueFull);
    let is_content = |waited: &Waited<'_>| is_read(waited.cause) && reads(waited.call);
    case.waiting(|waited| {
        is_content(waited) && waited.call != PAGE_FAULT && !waited.is_direct() && !waited.is_copy_up()
    })
}

/// Bytes that calls have read.
pub(super) fn bytes_read(case: &Case<'_>) -> f64 {
    case.calls(reads).filter_map(|call| call.bytes).map(|bytes| bytes as f64).sum()
}

/// Bytes read for each time that a thread waited: by the device's own count where there is one, otherwise by the calls'.
pub(super) fn bytes_a_wait(case: &Case<'_>, time: &Time) -> f64 {
    let trace = case.trace;
    let runs = case.recording.runs.iter();
    let run = runs
        .filter(|run| (run.place, run.command, run.cache) == (trace.place, trace.command, trace.cache))
        .find(|run| run.traced);
    let device = run.and_then(|run| run.device_read_bytes).filter(|bytes| *bytes > 0).map(|bytes| bytes as f64);
    let calls = bytes_read(case);
    device.map_or(calls, |device| device.min(calls)) / time.count.max(1) as f64
}
