//! The wall-clock time to expect once directories give types, stated before it is tried.
//!
//! `docs/findings/dtype-missing.md` explains the formula to readers; the names here are the same.
//!
//! ```text
//! predicted = now − (kernel + waits + around) × speed / parallel
//!   now       the time without tracing: the median of untraced runs, or traced wall − calls × cost a call
//!   kernel    CPU time in the avoidable calls, less the tracing cost inside them
//!   waits     their blocked time, less the reads that the look-ups of directories must then do themselves
//!   speed     how fast untraced runs were, compared with the trace without its cost; 1 where there are none
//!   around    time between calls that goes with each of them
//! ```

use std::collections::BTreeSet;

use inodyne_model::Nanos;
use inodyne_model::finding::Prediction;
use inodyne_model::trace::Trace;

use super::super::case::Case;
use super::super::estimate::{FLOOR, INSIDE, Now, noise, now};
use super::paid::{Paid, Sum};

/// How far [`INSIDE`], the part of the tracing cost between the two timestamps of a call, may be off.
const INSIDE_ERROR: f64 = 0.2;
/// Time between calls that goes with an avoidable one (user mode, and the way in and out of the kernel), as a
/// fraction of the average time between calls of its program; with its bounds.
const AROUND: [f64; 3] = [0.65, 0.85, 1.05];
/// The same is never more than this, in nanoseconds: a program may compute for long between its calls.
const AROUND_AT_MOST: [f64; 3] = [450.0, 700.0, 950.0];
/// CPU time of other calls changes too, since the caches hold less: as a fraction of the time in the avoidable calls.
const SIDE_EFFECTS: f64 = 0.08;
/// How much of the saving may not come true where it is only assumed that the program asks for no more than the type.
const ASSUMED: f64 = 0.3;
/// How much of the saving is uncertain where threads work side by side.
const SIDE_BY_SIDE: f64 = 0.25;

pub(super) fn predict(case: &Case<'_>, paid: &Paid) -> Prediction {
    let trace = case.trace;
    let cost = case.cost();
    let threads = trace.observed.threads.iter().filter(|t| paid.threads.contains(&t.number));
    let ready = threads.map(|t| t.runqueue_ns.0 as f64).sum::<f64>() / paid.parallel.max(1.0);
    let Now { ns: now, scale } = now(case, ready);
    let calls = paid.files.calls as f64;

    let on_cpu = paid.files.cpu_ns.0 as f64;
    let kernel = (on_cpu - calls * cost * INSIDE).max(on_cpu * 0.2);
    let waits = waits_saved(trace, paid);
    let around = around(trace, paid, cost).map(|ns| ns * calls);

    let parallel = paid.parallel.max(1.0);
    let share = scale / parallel;
    let saved = (kernel + waits[1] + around[1]) * share;
    let predicted = (now - saved).max(now * FLOOR);

    let uncertain = |ns: f64| ns * share;
    let mut errors = vec![
        uncertain(calls * cost * INSIDE_ERROR),
        uncertain(kernel * SIDE_EFFECTS),
        uncertain((waits[2] - waits[0]) / 2.0),
        uncertain((around[2] - around[0]) / 2.0),
        predicted * noise(case),
    ];
    if parallel > 1.05 {
        errors.push(saved * SIDE_BY_SIDE);
    }
    let error = root_of_squares(&errors);
    // Programs that do not look up directories in any case save these calls as well.
    let directories = uncertain(paid.directories.cpu_ns.0 as f64 / 2.0);
    let assumed = if paid.assumed.is_empty() { 0.0 } else { saved * ASSUMED };
    let low = (predicted - root_of_squares(&[error, directories])).max(now * FLOOR).min(predicted);
    // A cure makes nothing slower.
    let high = (predicted + root_of_squares(&[error, assumed])).min(now.max(predicted));
    Prediction {
        now_ns: Nanos::rounded(now),
        wall_ns: Nanos::rounded(predicted),
        low_ns: Nanos::rounded(low),
        high_ns: Nanos::rounded(high),
    }
}

fn root_of_squares(errors: &[f64]) -> f64 {
    errors.iter().map(|e| e * e).sum::<f64>().sqrt()
}

/// Low, likely and high estimate of the blocked time that the cure saves.
///
/// The avoidable look-ups read blocks of inodes; the look-ups of directories that remain need some of the same blocks,
/// and then have to wait for them. With `reads` blocks read and the directories scattered over them at random, a block
/// holds no directory with probability e^(−directories / reads), and is no longer read. Directories may lie
/// closer together or farther apart than at random: half and twice their number are the bounds.
fn waits_saved(trace: &Trace, paid: &Paid) -> [f64; 3] {
    let Sum { blocked_ns, .. } = paid.files;
    let waits = trace.observed.waits.iter().filter(|wait| {
        paid.threads.contains(&wait.thread) && wait.syscall.as_ref().is_some_and(|name| paid.calls.contains_key(name))
    });
    let (time, count) = waits.fold((0.0, 0.0), |(time, count), w| (time + w.ns.0 as f64, count + w.count as f64));
    let blocked = blocked_ns.0 as f64;
    if time <= 0.0 || count <= 0.0 {
        return [0.0, blocked / 2.0, blocked];
    }
    let reads = blocked / (time / count);
    let directories = paid.directories.calls.max(trace.dtype.directories.len() as u64) as f64;
    let not_read = |directories: f64| if reads > 0.0 { (-directories / reads).exp() } else { 1.0 };
    [2.0, 1.0, 0.5].map(|factor| blocked * not_read(directories * factor))
}

/// Low, likely and high estimate of the time between calls that goes with one avoidable call.
fn around(trace: &Trace, paid: &Paid, cost: f64) -> [f64; 3] {
    let threads = trace.observed.threads.iter().filter(|t| paid.threads.contains(&t.number));
    let mut user = 0.0;
    let mut comms = BTreeSet::new();
    for thread in threads {
        user += thread.user_ns.0 as f64;
        comms.insert(thread.comm.as_str());
    }
    let of_comms = trace.by_comm.iter().filter(|c| comms.contains(c.comm.as_str()));
    let calls: f64 = of_comms.flat_map(|c| &c.syscalls).map(|s| s.calls as f64).sum();
    let calls = calls.max(paid.files.calls as f64).max(1.0);
    // The rest of the tracing cost lies outside of the timestamps, and so in user time.
    let per_call = (user / calls - cost * (1.0 - INSIDE)).max(0.0);
    [0, 1, 2].map(|at| (per_call * AROUND[at]).min(AROUND_AT_MOST[at]))
}
