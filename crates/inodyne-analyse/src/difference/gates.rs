//! Whether anything became worse than allowed.
//!
//! Counts decide themselves. A time decides only where its interval lies on one side of the limit: what the runs cannot tell stops
//! nobody, or a noisy machine would.

use inodyne_model::comparison::{Comparison, Interval, LEAST_PAIRS, Verdict};
use inodyne_model::difference::{CaseDifference, Counts, FindingName, GateOutcome, GateResult, Sides};
use inodyne_model::gate::{Counted, Gate};
use inodyne_model::metric::Metric;

/// Each gate of each case; where there is no case, of none.
pub(super) fn judged(gates: &[Gate], cases: &[CaseDifference]) -> Vec<GateResult> {
    let without_case = |gate: &Gate| {
        let nothing = Judged::nothing(GateOutcome::NotMeasured, "the recordings have no case in common".to_owned());
        nothing.of(gate, None)
    };
    if cases.is_empty() {
        return gates.iter().map(without_case).collect();
    }
    gates.iter().flat_map(|gate| cases.iter().map(|case| judge(gate, case).of(gate, Some(case)))).collect()
}

/// What became of a gate, without which it is.
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

fn judge(gate: &Gate, case: &CaseDifference) -> Judged {
    match (gate, &case.total) {
        (Gate::Wall(percent), _) => judge_wall(*percent, case),
        (_, None) => untraced(case),
        (Gate::Finding(id), Some(_)) => judge_finding(id, case),
        (Gate::Count { of, most }, Some(total)) => match counted(of, case, total) {
            Some(count) => Judged::counted(count, most.is_exceeded(count.old, count.new)),
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

fn judge_finding(id: &str, case: &CaseDifference) -> Judged {
    let is_in = |findings: &[FindingName]| findings.iter().any(|finding| finding.id == id);
    let (was_there, is_new) = (is_in(&case.findings.gone), is_in(&case.findings.new));
    Judged::counted(Sides { old: u64::from(was_there), new: u64::from(is_new) }, is_new)
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
    let (Some(value), Some(low), Some(high)) = (time.ratio, time.ci_low, time.ci_high) else {
        return undecided(None, format!("there is no interval of {} pairs", time.pairs));
    };
    let ratio = Some(Interval { value, low, high });
    let most = 1.0 + percent / 100.0;
    match time.verdict {
        Verdict::Withheld => undecided(None, "runs failed".to_owned()),
        _ if time.pairs < LEAST_PAIRS => {
            undecided(None, format!("{} pairs of runs are too few, {LEAST_PAIRS} are needed", time.pairs))
        }
        Verdict::Slower if low > most => Judged { outcome: GateOutcome::Failed, figures, ratio, reason: None },
        _ if high <= most => Judged { outcome: GateOutcome::Held, figures, ratio, reason: None },
        _ => undecided(ratio, "the interval reaches to both sides of the limit".to_owned()),
    }
}
