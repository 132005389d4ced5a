//! Whether anything became worse than allowed.
//!
//! Counts decide by themselves. A time decides only where its interval lies on one side of the limit: what the runs cannot tell fails
//! no gate, or else a noisy machine would. On a count that is known to be too low, no gate holds.

use std::collections::BTreeMap;

use inodyne_model::comparison::{Comparison, Interval, LEAST_PAIRS, Verdict};
use inodyne_model::difference::{CaseDifference, Counts, FindingName, GateOutcome, GateResult, Sides};
use inodyne_model::gate::{Counted, Gate, Limit};
use inodyne_model::metric::Metric;
use inodyne_model::recording::Recording;
use inodyne_model::trace::Trace;

use super::{calls, changed, differing};
use crate::findings;

/// What a gate has to know of a case besides its counts: above all, why these may be no ground for it to hold.
pub(super) struct Shortfall {
    /// Windows of different lengths have different counts, whatever the program does.
    windows: Option<String>,
    /// What the new recording has lost of its calls. If the old one has lost some, a change is no larger than it looks.
    lost: Option<String>,
    /// Whether the new recording has all paths that were looked up.
    has_all_paths: bool,
    /// What was found in each.
    found: Sides<Vec<FindingName>>,
    /// What could not be found in the new one, and why.
    not_looked_for: BTreeMap<&'static str, &'static str>,
}

impl Shortfall {
    pub(super) fn of(recordings: &Sides<&Recording>, traces: &Sides<&[&Trace]>) -> Shortfall {
        let windows = differing::windows(traces).map(|Sides { old, new }| {
            let length = |text: String| if text.is_empty() { "the life of a command".to_owned() } else { text };
            format!("the windows are not of the same length: {} → {}", length(old), length(new))
        });
        let not_kept = |trace: &&Trace| trace.paths.as_ref().is_some_and(|paths| paths.not_kept > 0);
        let in_none = |id: &'static str| {
            let mut reasons = traces.new.iter().map(|trace| findings::not_looked_for(id, trace));
            let first = reasons.next()??;
            reasons.all(|reason| reason.is_some()).then_some((id, first))
        };
        Shortfall {
            windows,
            lost: calls::too_low(traces),
            has_all_paths: !traces.new.iter().any(not_kept),
            found: Sides {
                old: changed::of_most(recordings.old, traces.old),
                new: changed::of_most(recordings.new, traces.new),
            },
            not_looked_for: findings::ids().filter_map(in_none).collect(),
        }
    }

    /// Why it is not known whether a count exceeds a limit; none where it is known.
    fn of_count(&self, of: &Counted, most: Limit, exceeds: bool) -> Option<String> {
        let is_change = !matches!(most, Limit::Value(_));
        let windows = self.windows.as_ref().filter(|_| is_change);
        let paths = || {
            let text = "the new recording had no room for all paths: there may be more of them".to_owned();
            (*of == Counted::Paths && !self.has_all_paths).then_some(text)
        };
        windows.cloned().or_else(|| if exceeds { None } else { paths().or_else(|| self.lost.clone()) })
    }
}

/// Judges each gate for each case, with that case's shortfall; where there is no case, each gate for none.
pub(super) fn judged(gates: &[Gate], cases: &[CaseDifference], shortfalls: &[Shortfall]) -> Vec<GateResult> {
    let without_case = |gate: &Gate| {
        let nothing = Judged::nothing(GateOutcome::NotMeasured, "the recordings have no case in common".to_owned());
        nothing.of(gate, None)
    };
    if cases.is_empty() {
        return gates.iter().map(without_case).collect();
    }
    let of_cases =
        |gate| cases.iter().zip(shortfalls).map(move |(case, short)| judge(gate, case, short).of(gate, Some(case)));
    gates.iter().flat_map(of_cases).collect()
}

/// What became of a gate, without saying which gate it is.
struct Judged {
    outcome: GateOutcome,
    figures: Option<Sides<u64>>,
    ratio: Option<Interval>,
    reason: Option<String>,
}

impl Judged {
    fn nothing(outcome: GateOutcome, reason: String) -> Judged {
        Judged { outcome, figures: None, ratio: None, reason: Some(reason) }
    }

    fn counted(figures: Sides<u64>, exceeds: bool) -> Judged {
        let outcome = if exceeds { GateOutcome::Failed } else { GateOutcome::Held };
        Judged { outcome, figures: Some(figures), ratio: None, reason: None }
    }

    fn of(self, gate: &Gate, case: Option<&CaseDifference>) -> GateResult {
        let Judged { outcome, figures, ratio, reason } = self;
        GateResult { gate: gate.clone(), case: case.map(|case| case.case.clone()), outcome, figures, ratio, reason }
    }
}

fn judge(gate: &Gate, case: &CaseDifference, shortfall: &Shortfall) -> Judged {
    match (gate, &case.total) {
        (Gate::Wall(percent), _) => judge_wall(*percent, case),
        (_, None) => untraced(case),
        (Gate::Finding(id), Some(_)) => judge_finding(id, shortfall),
        (Gate::Count { of, most }, Some(total)) => match counted(of, case, total) {
            Some(count) => {
                let exceeds = most.is_exceeded(count.old, count.new);
                match shortfall.of_count(of, *most, exceeds) {
                    None => Judged::counted(count, exceeds),
                    Some(reason) => {
                        Judged { figures: Some(count), ..Judged::nothing(GateOutcome::NotMeasured, reason) }
                    }
                }
            }
            None => {
                let reason = "both recordings need the paths: run with --paths".to_owned();
                Judged::nothing(GateOutcome::NotMeasured, reason)
            }
        },
    }
}

fn untraced(case: &CaseDifference) -> Judged {
    let side = match case.traces {
        Sides { old: 0, new: 0 } => "neither recording has a trace",
        Sides { old: 0, .. } => "the old recording has no trace",
        _ => "the new recording has no trace",
    };
    Judged::nothing(GateOutcome::NotMeasured, side.to_owned())
}

fn judge_finding(id: &str, shortfall: &Shortfall) -> Judged {
    let is_in = |found: &[FindingName]| found.iter().any(|finding| finding.id == id);
    let (was_there, is_there) = (is_in(&shortfall.found.old), is_in(&shortfall.found.new));
    match shortfall.not_looked_for.get(id).filter(|_| !is_there) {
        Some(reason) => Judged::nothing(GateOutcome::NotMeasured, (*reason).to_owned()),
        None => Judged::counted(Sides { old: u64::from(was_there), new: u64::from(is_there) }, is_there && !was_there),
    }
}

fn counted(of: &Counted, case: &CaseDifference, total: &Counts) -> Option<Sides<u64>> {
    let counts = |name: &Option<String>| match name {
        None => *total,
        Some(name) => case.calls.iter().find(|call| call.name == *name).map(|call| call.counts).unwrap_or_default(),
    };
    Some(match of {
        Counted::Calls(name) => counts(name).calls,
        Counted::Errors(name) => counts(name).errors,
        Counted::Bytes(name) => counts(name).bytes,
        Counted::Paths => case.paths.as_ref()?.count,
    })
}

fn judge_wall(percent: f64, case: &CaseDifference) -> Judged {
    let untraced = |time: &&Comparison| time.metric == Metric::Wall && !time.traced;
    let Some(time) = case.times.iter().find(untraced) else {
        return Judged::nothing(GateOutcome::Undecided, "both recordings need untraced runs: run with -n N".to_owned());
    };
    let figures = Some(Sides { old: time.a_median_ns.0, new: time.b_median_ns.0 });
    let undecided =
        |ratio, reason: String| Judged { outcome: GateOutcome::Undecided, figures, ratio, reason: Some(reason) };
    let (Some(value), Some(low)) = (time.ratio, time.ci_low) else {
        let pairs = inodyne_model::count::counted(time.pairs as u64, "pair", "pairs");
        return undecided(None, format!("there is no interval of {pairs}"));
    };
    let ratio = time.ci_high.map(|high| Interval { value, low, high });
    let high = time.ci_high.unwrap_or(f64::INFINITY);
    let most = 1.0 + percent / 100.0;
    match time.verdict {
        Verdict::Withheld => undecided(None, "runs failed".to_owned()),
        _ if time.pairs < LEAST_PAIRS => {
            undecided(None, format!("{} pairs of runs are too few, {LEAST_PAIRS} are needed", time.pairs))
        }
        Verdict::Slower if low > most => Judged { outcome: GateOutcome::Failed, figures, ratio, reason: None },
        _ if high <= most => Judged { outcome: GateOutcome::Held, figures, ratio, reason: None },
        Verdict::NoDifference if low > most => {
            let margin = (time.margin * 1e4).round() / 1e2;
            undecided(
                ratio,
                format!("the interval lies beyond the limit, and within the margin of {margin}%: no difference"),
            )
        }
        _ if low > most && time.pairs < time.needs_pairs => {
            let needed = time.needs_pairs;
            let why = format!("{needed} pairs are needed to decide as many comparisons as these");
            undecided(ratio, format!("the interval lies beyond the limit, but {why}"))
        }
        _ if low > most => {
            let p = time.p_corrected;
            undecided(
                ratio,
                format!(
                    "the interval lies beyond the limit, but such pairs may be chance (p = {p:.2}): more are needed"
                ),
            )
        }
        _ => undecided(ratio, "the interval reaches to both sides of the limit".to_owned()),
    }
}
