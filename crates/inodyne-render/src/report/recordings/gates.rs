//! What became of the things that were not to become worse, in words.

use inodyne_model::Nanos;
use inodyne_model::count::Grouped;
use inodyne_model::difference::{Difference, GateOutcome, GateResult, Sides};
use inodyne_model::gate::{Counted, Gate};

use super::case_name;
use crate::line::{Span, Style};
use crate::report::block::Page;
use crate::report::change;
use crate::units::{bytes, duration_beside};

pub(super) fn show(page: &mut Page<'_>, found: &Difference) {
    if found.gates.is_empty() {
        return;
    }
    page.heading("What must not become worse");
    let width = found.gates.iter().map(|result| outcome(result.outcome).len()).max().unwrap_or_default();
    for result in &found.gates {
        let lead = format!("  {:width$}  ", outcome(result.outcome));
        let style = match result.outcome {
            GateOutcome::Held => Style::Good,
            GateOutcome::Failed | GateOutcome::NotMeasured => Style::Warning,
            GateOutcome::Undecided => Style::Dim,
        };
        let is_one_of_several = found.cases.len() > 1;
        let case = result.case.as_ref().filter(|_| is_one_of_several).map(|case| format!(", {}", case_name(case)));
        let text = format!("{}{}", heading(result), case.unwrap_or_default());
        page.paragraph(Span::new(lead, style), &text, Style::Plain);
    }
}

/// A gate that does not hold, or that cannot be judged, in one line.
pub fn gate_in_words(result: &GateResult) -> String {
    let case = result.case.as_ref().map(|case| format!(", {}", case_name(case))).unwrap_or_default();
    format!("{}: {}{case}", outcome(result.outcome), heading(result))
}

/// What became of it, in a word or two.
pub(crate) fn outcome(outcome: GateOutcome) -> &'static str {
    match outcome {
        GateOutcome::Held => "held",
        GateOutcome::Failed => "FAILED",
        GateOutcome::Undecided => "undecided",
        GateOutcome::NotMeasured => "NOT MEASURED",
    }
}

/// `calls(openat) > +5%: 215 → 415 (+93%)`
pub(crate) fn heading(result: &GateResult) -> String {
    let facts = [figures(result), result.reason.clone().unwrap_or_default()];
    let facts: Vec<String> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
    format!("{}: {}", result.gate, facts.join(", "))
}

fn figures(result: &GateResult) -> String {
    let Some(Sides { old, new }) = result.figures else { return String::new() };
    match &result.gate {
        Gate::Finding(_) => if new > old { "it is new" } else { "it is not new" }.to_owned(),
        Gate::Wall(_) => {
            let time = |ns| duration_beside(Nanos(ns), Nanos(old));
            let ratio = result
                .ratio
                .map(|ratio| format!(" ({} {})", change::change(ratio.value), change::changes(ratio.low, ratio.high)));
            format!("{} → {}{}", time(old), time(new), ratio.unwrap_or_default())
        }
        Gate::Count { of, .. } => {
            let count = |count| match of {
                Counted::Bytes(_) => bytes(count),
                _ => Grouped(count).to_string(),
            };
            let ratio = (old > 0 && old != new).then(|| format!(" ({})", change::change(new as f64 / old as f64)));
            format!("{} → {}{}", count(old), count(new), ratio.unwrap_or_default())
        }
    }
}
