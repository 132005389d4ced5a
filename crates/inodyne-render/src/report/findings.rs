//! The diagnoses, each with its prediction, evidence and cure.

use inodyne_model::finding::{Finding, NOTHING_PREDICTED, Prediction, Proof, Score};
use inodyne_model::recording::Recording;

use super::block::{Block, FindingBlock, Page};
use super::case::Case;
use super::change::pairs;
use super::definition::{Definition, Show};
use super::names;
use super::table::Records;
use super::value::Value;
use crate::line::{Line, Span, Style};
use crate::units::{duration, duration_beside, percent};

pub(super) const SECTION: Definition = Definition { name: "findings", unasked: true, show: Show::Case(show), records };

/// A best case that saves less says nothing.
const LEAST_BEST: f64 = 0.01;

fn show<'a>(page: &mut Page<'a>, case: &Case<'a>) {
    if !case.findings.is_empty() {
        page.heading("Findings");
    }
    for (at, finding) in case.findings.iter().enumerate() {
        page.add(Block::Finding(block(at + 1, finding, case.doubts())));
    }
}

/// A finding in two lines, each cut if it is too long: its title with its share; what trying the
/// cure gave, or what to expect and the cure.
pub(super) fn in_short(number: usize, finding: &Finding, doubts: &[String]) -> [Line; 2] {
    let share = percent(finding.share_of_wall);
    let title = [
        Span::from(format!("  {number}  {share:>4}  ")),
        Span::new(&finding.id, Style::Bold),
        format!("  {}", finding.title).into(),
    ];
    let mut more = Line::from([Span::from("           ")]);
    if let Some(proof) = &finding.proved {
        more.push("tried: ");
        proved(proof, finding, doubts).0.spans().iter().for_each(|span| more.push(span.clone()));
        return [title.into(), more];
    }
    if promises(finding, doubts) {
        let Prediction { now_ns, wall_ns, .. } = finding.predicted;
        let limit = if finding.bound { "at best " } else { "about " };
        more.push(Span::new(format!("{limit}{}", duration_beside(wall_ns, now_ns)), Style::Good));
        more.push(format!(" instead of {}", duration(now_ns)));
        // The cure of such a finding is something other than what the time assumes.
        if let Some(supposed) = &finding.bound_if {
            more.push(format!(", if {supposed}"));
            return [title.into(), more];
        }
        more.push(": ");
    }
    more.push(finding.cure.first().map_or("", String::as_str));
    [title.into(), more]
}

/// If anything speaks against predictions, it is said above; then there are none.
fn block(number: usize, finding: &Finding, doubts: &[String]) -> FindingBlock {
    let mut evidence = finding.evidence.clone();
    if !doubts.is_empty() && !finding.bound {
        evidence.push("no prediction is made, for the reason above".to_owned());
    }
    FindingBlock {
        number,
        id: finding.id.clone(),
        share: percent(finding.share_of_wall),
        title: finding.title.clone(),
        is_bound: finding.bound,
        evidence,
        prediction: promises(finding, doubts).then(|| prediction(finding)),
        cure: finding.cure.clone(),
        proved: finding.proved.as_ref().map(|proof| proved(proof, finding, doubts)),
        more: format!("inodyne explain {}", finding.id),
    }
}

/// Whether there is anything to expect: runs that agree, or for a bound, that it is not the time now.
fn promises(finding: &Finding, doubts: &[String]) -> bool {
    if finding.bound { finding.predicted.saving() >= LEAST_BEST } else { doubts.is_empty() }
}

/// `0.103 s [0.08 s, 0.12 s] instead of 0.334 s: saves 0.231 s`
fn prediction(finding: &Finding) -> Line {
    let predicted = &finding.predicted;
    let now = predicted.now_ns;
    let time = |ns| duration_beside(ns, now);
    if finding.bound {
        let supposed = finding.bound_if.as_ref().map_or_else(String::new, |supposed| format!(", if {supposed}"));
        return Line::from([Span::from(format!("{} instead of {}{supposed}", time(predicted.wall_ns), time(now)))]);
    }
    let saves = now.saturating_sub(predicted.wall_ns);
    Line::from([
        Span::new(time(predicted.wall_ns), Style::Good),
        format!(" [{}, {}]", time(predicted.low_ns), time(predicted.high_ns)).into(),
        format!(" instead of {}: saves {}", time(now), time(saves)).into(),
    ])
}

/// What trying the cure gave, and how it was tried.
fn proved(proof: &Proof, finding: &Finding, doubts: &[String]) -> (Line, String) {
    let score = doubts.is_empty().then(|| proof.score(&finding.predicted));
    let style = match score {
        Some(Score::AsPredicted) => Style::Good,
        Some(Score::AsPredictedSoFar) => Style::Plain,
        Some(Score::Undecided | Score::TooFewPairs | Score::Otherwise) | None => Style::Warning,
    };
    let verdict = score.map_or(NOTHING_PREDICTED, Score::words);
    let time = |ns| duration_beside(ns, proof.base_ns);
    let measured = format!("{} instead of {}", time(proof.wall_ns), time(proof.base_ns));
    let score = format!(", {verdict}: {}", saving(proof.ratio, None));
    let line = Line::from([measured.into(), Span::new(score, style)]);
    (line, format!("{}; {} of runs", proof.how, pairs(proof.pairs as usize)))
}

/// `saves 40%`, `takes 25% longer`: what a cure does to the time, as a ratio, with its interval if there is one: `saves 40% [38, 41]`.
pub fn saving(ratio: f64, interval: Option<(f64, f64)>) -> String {
    let is_longer = ratio > 1.0;
    let part = |ratio: f64| if is_longer { ratio - 1.0 } else { 1.0 - ratio };
    let interval = interval.map_or_else(String::new, |(low, high)| {
        // Whole numbers: a zero has no sign.
        let mut ends = [low, high].map(|ratio| (part(ratio) * 100.0).round() as i64);
        ends.sort_unstable();
        format!(" [{}, {}]", ends[0], ends[1])
    });
    let share = percent(part(ratio));
    if is_longer { format!("takes {share} longer{interval}") } else { format!("saves {share}{interval}") }
}

/// A row for each finding.
fn records(recording: &Recording) -> Records {
    let columns = [
        "id",
        "title",
        "place",
        "command",
        "cache",
        "trace",
        "share_of_wall",
        "now_ns",
        "predicted_ns",
        "predicted_low_ns",
        "predicted_high_ns",
        "bound",
        "avoidable_calls",
        "proved_ratio",
        "proved_ci_low",
        "proved_ci_high",
        "proved_within",
        "cure",
    ];
    let rows = recording.findings.iter().map(|finding| {
        let trace = recording.traces.get(finding.trace);
        let cache = trace.map(|trace| trace.cache).unwrap_or_default();
        let key = inodyne_model::case::CaseKey::new(finding.place, finding.command, cache);
        let [place, command, cache] = names::values(recording, key);
        let (predicted, proved) = (&finding.predicted, finding.proved.as_ref());
        [
            finding.id.as_str().into(),
            finding.title.as_str().into(),
            place,
            command,
            cache,
            finding.trace.into(),
            Value::Share(finding.share_of_wall),
            predicted.now_ns.into(),
            predicted.wall_ns.into(),
            predicted.low_ns.into(),
            predicted.high_ns.into(),
            finding.bound.into(),
            finding.avoidable_calls.into(),
            proved.map_or(Value::Nothing, |proof| Value::Ratio(proof.ratio)),
            proved.map_or(Value::Nothing, |proof| Value::Ratio(proof.ci_low)),
            proved.map_or(Value::Nothing, |proof| Value::Ratio(proof.ci_high)),
            proved.map(|proof| proof.within).into(),
            finding.cure.join("; ").into(),
        ]
    });
    Records::new(columns, rows)
}

#[cfg(test)]
mod tests {
    use inodyne_model::sample;

    use super::*;

    #[test]
    fn a_cure_that_made_it_slower_saves_nothing() {
        let mut recording = sample::find_recording();
        inodyne_analyse::explain(&mut recording);
        let finding = &recording.findings[0];
        let said = |ratio| {
            let proof = Proof {
                how: "on its own place".to_owned(),
                pairs: 8,
                base_ns: finding.predicted.now_ns,
                wall_ns: finding.predicted.now_ns,
                ratio,
                ci_low: ratio,
                ci_high: ratio,
                within: false,
            };
            let (line, _) = proved(&proof, finding, &[]);
            line.spans().iter().map(Span::text).collect::<String>()
        };
        assert!(said(0.6).ends_with(": saves 40%"), "{}", said(0.6));
        assert!(said(1.25).ends_with(": takes 25% longer"), "{}", said(1.25));
        assert!(said(1.0).ends_with(": saves 0%"), "{}", said(1.0));
        assert_eq!(saving(1.25, Some((1.2, 1.3))), "takes 25% longer [20, 30]");
        assert_eq!(saving(0.8, Some((0.7, 1.001))), "saves 20% [0, 30]");
    }
}
