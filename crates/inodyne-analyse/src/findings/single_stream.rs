//! `single-stream`: one small request at a time. The device answers each quickly and then idles: several at once would be
//! served in the same time.

use inodyne_model::count::Grouped;
use inodyne_model::cure::{Change, CommandChange};
use inodyne_model::finding::Finding;
use inodyne_model::ledger::RowKind;
use inodyne_model::path::{Doing, DoingKind};

use super::at_device::AtDevice;
use super::case::{Case, Time};
use super::contents::{LARGE_READ, bytes_a_wait, waiting_directly, waiting_for_contents};
use super::estimate::{self, Diagnosed};
use super::remedy::Remedy;
use crate::units::{percent, seconds};

/// Below this share of the wall-clock time there is little to overlap.
const LEAST_SHARE: f64 = 0.3;
/// Fewer are not worth a second thread.
const LEAST_REQUESTS: u64 = 100;
/// If more threads than this wait at the same time on average, it is not a single stream.
const MOST_THREADS: f64 = 1.5;
/// The most workers that are proposed: more gain little on one device, and nobody has tried.
const MOST_WORKERS: u32 = 4;
/// The fraction of the saving that is lost: devices and CPUs serve several a little slower than one.
const LOSS: f64 = 0.1;
/// How far that may be off.
const UNCERTAIN: f64 = 0.18;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let time = requests(case);
    let share = case.share(&time);
    if time.count < LEAST_REQUESTS || share < LEAST_SHARE || case.side_by_side(&time) > MOST_THREADS {
        return None;
    }
    let workers = workers(case.recording.host.cpus);
    let each = f64::from(workers);
    // Waits and the work between them are divided, as far as the end of the command waited for these threads: not what others
    // did with what was read, and not the waiting for a CPU, of which several threads have more.
    let saved = divisible(case, &time) * (1.0 - 1.0 / each) * (1.0 - LOSS);
    let who = case.who(&time);
    let mut evidence = vec![
        format!("{who} waited {} times for one request, {} each", Grouped(time.count), seconds(time.mean())),
        format!(
            "one after another: {:.0} requests a second; {workers} at once could do up to {:.0}",
            time.count as f64 / case.wall() * 1e9,
            each * time.count as f64 / case.wall() * 1e9
        ),
    ];
    if let Some(device) = AtDevice::of(case) {
        evidence.extend(device.line());
        evidence.extend(device.limit_line());
    }
    Some(
        Diagnosed {
            title: format!("{who} asks the device for one small thing at a time: {} of the time", percent(share)),
            share,
            evidence,
            predicted: estimate::without(case, saved, UNCERTAIN),
            cure: vec![
                Remedy::new(
                    format!("work on several files at once: xargs -P {workers}, make -j, a pool of {workers} threads; or io_uring, aio"),
                    Change::Command(CommandChange::SideBySide { processes: workers }),
                )
                .answering(1),
                Remedy::advice("tell the kernel what will be needed (posix_fadvise WILLNEED, readahead) before waiting for the first"),
            ],
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}

/// Time of these threads on the critical path except for that in which they had no CPU, in nanoseconds; where no path is known, all of
/// the wall-clock time except for that.
fn divisible(case: &Case<'_>, time: &Time) -> f64 {
    let path = &case.trace.path;
    if path.steps.is_empty() {
        return case.wall() - case.ledger(|row| row.kind == RowKind::Runqueue);
    }
    // What helpers do for them is part of their waits.
    let is_theirs = |doing: &&Doing| {
        time.threads.contains(&doing.thread) && matches!(doing.kind, DoingKind::Running | DoingKind::Waiting(_))
    };
    path.doings.iter().filter(is_theirs).map(|doing| doing.ns.0 as f64).sum()
}

/// How many workers are proposed on a machine with this many CPUs.
fn workers(cpus: u32) -> u32 {
    cpus.clamp(2, MOST_WORKERS)
}

/// Waits for small requests: through the cache, or past it.
fn requests(case: &Case<'_>) -> Time {
    let cached = waiting_for_contents(case);
    let cached = if bytes_a_wait(case, &cached) < LARGE_READ { cached } else { Time::default() };
    let direct = waiting_directly(case);
    let bytes: f64 =
        case.calls(|call| direct.calls.contains_key(call)).filter_map(|call| call.bytes).map(|b| b as f64).sum();
    let is_small = bytes / (direct.count.max(1) as f64) < LARGE_READ;
    if is_small { cached.and(direct) } else { cached }
}
