//! `single-stream`: one small request at a time. The device answers each quickly and then idles: several at once would be
//! served in the same time.

use inodyne_model::count::Grouped;
use inodyne_model::cure::{Change, CommandChange};
use inodyne_model::finding::Finding;
use inodyne_model::ledger::RowKind;
use inodyne_model::path::DoingKind;

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
/// How many workers are proposed. Who waits needs no CPU, so that these may be more than there are CPUs.
const WORKERS: u32 = 4;
/// What of each request to a device others wait for meanwhile, in nanoseconds: to submit it, the host's or the controller's part, the interrupt.
/// 6,000 requests of 48 µs to a loop device of a virtual machine with two CPUs took 1, 2, 4 and 6 processes 0.37, 0.27, 0.18 and 0.15 s.
const TAKES_TURNS: f64 = 10_000.0;
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
    // Waits and the work between them are divided, as far as the end of the command waited for these threads: not what others
    // did with what was read, and not the waiting for a CPU, of which several threads have more.
    let Divisible { running, waiting } = divisible(case, &time);
    let count = time.count as f64;
    let on_path = count * (case.on_path(&time) / time.ns.max(1.0)).min(1.0);
    let without_turns = (waiting - on_path * TAKES_TURNS).max(0.0);
    let workers = f64::from(WORKERS);
    let gained = |at_once: f64| 1.0 - 1.0 / at_once;
    let saved = (running * gained(case.cpus().min(workers)) + without_turns * gained(workers)) * (1.0 - LOSS);
    let who = case.who(&time);
    let mut evidence = vec![
        format!("{who} waited {} times for one request, {} each", Grouped(time.count), seconds(time.mean())),
        format!(
            "one after another: {:.0} requests a second; {WORKERS} at once might do {:.0}",
            count / case.wall() * 1e9,
            count / (case.wall() - saved).max(1.0) * 1e9
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
                    format!("work on several files at once: xargs -P {WORKERS}, make -j, a pool of {WORKERS} threads; or io_uring, aio"),
                    Change::Command(CommandChange::SideBySide { processes: WORKERS }),
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

/// Time that several workers would divide among them, in nanoseconds.
struct Divisible {
    running: f64,
    waiting: f64,
}

/// Time of these threads on the critical path except for that in which they had no CPU; where no path is known, all of the wall-clock time
/// except for that.
fn divisible(case: &Case<'_>, time: &Time) -> Divisible {
    let path = &case.trace.path;
    if path.steps.is_empty() {
        let had = case.wall() - case.ledger(|row| row.kind == RowKind::Runqueue);
        let waiting = case.on_path(time).min(had);
        return Divisible { running: (had - waiting).max(0.0), waiting };
    }
    // What helpers do for them is part of their waits.
    let theirs = path.doings.iter().filter(|doing| time.threads.contains(&doing.thread));
    let sum = |is: fn(&DoingKind) -> bool| {
        theirs.clone().filter(|doing| is(&doing.kind)).map(|doing| doing.ns.0 as f64).sum()
    };
    Divisible {
        running: sum(|kind| matches!(kind, DoingKind::Running)),
        waiting: sum(|kind| matches!(kind, DoingKind::Waiting(_))),
    }
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
