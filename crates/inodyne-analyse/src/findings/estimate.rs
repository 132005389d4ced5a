//! From the time that a cure saves to the wall-clock time to expect, and the finding that says so.
//!
//! ```text
//! predicted = now − saved × scale
//!   now       the time without tracing: the median of untraced runs, or the traced wall-clock time without what tracing is
//!             estimated to have cost (Trace::estimated_overhead: spread over the CPUs that were busy)
//!   saved     time on the path that the cure removes, as traced
//!   scale     how fast untraced runs were, compared with the trace without its cost; 1 where there are none. No more is taken for that cost
//!             than what the trace took longer than they did
//! ```
//!
//! The interval is the root of the sum of the squares of what is uncertain about the saving (each diagnosis says how
//! much of it) and of how far two runs of the same thing lie apart.

use inodyne_model::Nanos;
use inodyne_model::finding::{Finding, Prediction};
use inodyne_model::ledger::RowKind;
use inodyne_model::run::median;

use super::case::{Case, Time};
use super::remedy::Remedy;

/// The part of the tracing cost of a call that falls between its two timestamps.
pub(super) const INSIDE: f64 = 0.5;
/// How far apart two runs of the same thing are at least, as a fraction of the predicted time; more where the untraced runs
/// were.
const RUN_NOISE: f64 = 0.12;
/// The same where there are too few untraced runs to see it.
const RUN_NOISE_UNSEEN: f64 = 0.2;
/// With at least this many untraced runs, their spread is visible.
const ENOUGH_RUNS: usize = 3;
/// How much faster or slower than the trace the untraced runs may be for that to be the speed of the machine.
const SCALES: [f64; 2] = [0.3, 2.0];
/// Nothing is predicted to get faster than this fraction of the time now.
pub(super) const FLOOR: f64 = 0.02;
/// Time around a call (user mode, and the way in and out of the kernel) that goes with it: this fraction of the average, and at
/// most this many nanoseconds, since a program may compute for long between its calls. Tried with `dtype-missing`.
const AROUND: f64 = 0.85;
const AROUND_AT_MOST: f64 = 700.0;

/// The wall-clock time without tracing, and what a nanosecond of the trace is worth in it.
pub(super) struct Now {
    pub(super) ns: f64,
    pub(super) scale: f64,
}

/// A busy machine runs the same instructions slower. Where there are untraced runs, the times of the trace are brought
/// to their speed; `ready`, the time in which the threads in question waited for a CPU, is not part of that.
pub(super) fn now(case: &Case<'_>, ready: f64) -> Now {
    let trace = case.trace;
    let wall = case.wall();
    let ns = (wall / trace.estimated_overhead(trace.wall_ns).ratio).max(wall * 0.2);
    let Some(median) = median(&case.recording.untraced_walls(trace.key())) else {
        return Now { ns, scale: 1.0 };
    };
    let median = median.0 as f64;
    // No more is taken for the cost of tracing than the untraced runs show.
    let ns = ns.max(median.min(wall));
    let scale = median / (ns - ready).max(ns * 0.2).max(1.0);
    Now { ns: median, scale: scale.clamp(SCALES[0], SCALES[1]) }
}

/// How far apart the untraced runs are: twice their median deviation from their median, as a fraction of it.
pub(super) fn noise(case: &Case<'_>) -> f64 {
    let walls = case.recording.untraced_walls(case.trace.key());
    let Some(middle) = median(&walls).filter(|_| walls.len() >= ENOUGH_RUNS) else { return RUN_NOISE_UNSEEN };
    let mut deviations: Vec<_> = walls.iter().map(|wall| Nanos(wall.0.abs_diff(middle.0))).collect();
    deviations.sort_unstable();
    (median(&deviations).unwrap_or_default().share_of(middle) * 2.0).max(RUN_NOISE)
}

/// Time between calls that goes with one call of these threads, in nanoseconds.
pub(super) fn around(case: &Case<'_>, time: &Time) -> f64 {
    let threads: Vec<_> = case.trace.observed.threads.iter().filter(|t| time.threads.contains(&t.number)).collect();
    let user: f64 = threads.iter().map(|thread| thread.user_ns.0 as f64).sum();
    let mut comms: Vec<&str> = threads.iter().map(|thread| thread.comm.as_str()).collect();
    comms.sort_unstable();
    comms.dedup();
    let of_comms = case.trace.by_comm.iter().filter(|c| comms.binary_search(&c.comm.as_str()).is_ok());
    let calls: f64 = of_comms.flat_map(|c| &c.syscalls).map(|s| s.calls as f64).sum();
    let calls = calls.max(time.count as f64).max(1.0);
    // The rest of the tracing cost lies outside of the timestamps, and so in user time.
    let per_call = (user / calls - case.cost() * (1.0 - INSIDE)).max(0.0);
    (per_call * AROUND).min(AROUND_AT_MOST)
}

/// The time to expect when `saved` nanoseconds of the traced wall-clock time go away, of which the fraction
/// `uncertain` may turn out differently, in either direction.
pub(super) fn without(case: &Case<'_>, saved: f64, uncertain: f64) -> Prediction {
    let Now { ns: now, scale } = now(case, 0.0);
    let saved = saved.max(0.0) * scale;
    let predicted = (now - saved).max(now * FLOOR);
    let error = (saved * uncertain).hypot(predicted * noise(case));
    // It is possible that little remains; as the likely value, though, it would be a promise.
    let low = (predicted - error).max(0.0);
    // A real cure makes nothing slower, as far as is known beforehand.
    let high = (predicted + error).min(now.max(predicted));
    Prediction {
        now_ns: Nanos::rounded(now),
        wall_ns: Nanos::rounded(predicted),
        low_ns: Nanos::rounded(low),
        high_ns: Nanos::rounded(high),
    }
}

/// What a bound says: the time if all of `saved` could go, and never less. That is the same fraction of the time now as of the traced
/// time, both without the time spent waiting for a CPU: a busy machine makes that longer, and nothing else.
pub(super) fn at_best(case: &Case<'_>, saved: f64) -> Prediction {
    let ready = case.ledger(|row| row.kind == RowKind::Runqueue);
    at_best_of(case, saved / (case.wall() - ready).max(1.0))
}

/// The same for a fraction of the whole time.
pub(super) fn at_best_of(case: &Case<'_>, part: f64) -> Prediction {
    let Now { ns: now, .. } = now(case, 0.0);
    let best = now * (1.0 - part.clamp(0.0, 1.0));
    Prediction {
        now_ns: Nanos::rounded(now),
        wall_ns: Nanos::rounded(best),
        low_ns: Nanos::rounded(best),
        high_ns: Nanos::rounded(now.max(best)),
    }
}

/// A finding as its diagnosis writes it.
pub(super) struct Diagnosed {
    pub(super) title: String,
    pub(super) share: f64,
    pub(super) evidence: Vec<String>,
    pub(super) predicted: Prediction,
    pub(super) cure: Vec<Remedy>,
    pub(super) avoidable_calls: Option<u64>,
    /// No cure is known for it: what is predicted is what could be had at best.
    pub(super) bound: bool,
}

impl Diagnosed {
    /// The finding about the trace of this case; its id is in the table of diagnoses.
    pub(super) fn finding(self, case: &Case<'_>) -> Finding {
        let (cure, cures) = self.cure.into_iter().map(|remedy| (remedy.text, remedy.cure)).unzip();
        Finding {
            id: String::new(),
            title: self.title,
            place: case.trace.place,
            command: case.trace.command,
            trace: case.index,
            share_of_wall: self.share.clamp(0.0, 1.0),
            evidence: self.evidence,
            avoidable_calls: self.avoidable_calls,
            predicted: self.predicted,
            cure,
            cures,
            bound: self.bound,
            bound_if: None,
            proved: None,
        }
    }

    /// The same for a bound that supposes something other than what its cure says.
    pub(super) fn finding_if(self, case: &Case<'_>, supposed: &str) -> Finding {
        Finding { bound_if: Some(supposed.to_owned()), ..self.finding(case) }
    }
}
