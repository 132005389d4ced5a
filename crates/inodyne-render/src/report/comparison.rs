//! Cases compared with each other: a line each, before anything else; then how their runs spread, and where the
//! differences come from.

use inodyne_model::Nanos;
use inodyne_model::case::{CaseKey, CasePair};
use inodyne_model::comparison::{Comparison, LedgerDifference, Verdict, unlike_ledgers};
use inodyne_model::finding::{Finding, Score};
use inodyne_model::metric::Metric;
use inodyne_model::recording::Recording;
use inodyne_model::run::CacheState;

use super::block::{Block, Headline, Page, Remark};
use super::case::Case;
use super::change::{self, Whisker};
use super::definition::{Definition, Show};
use super::names::{self, Names};
use super::rows::word;
use super::table::Records;
use super::value::Value;
use super::{call_changes, difference, others, overview, sentence, spreads, verdict};
use crate::line::{Line, Span, Style};
use crate::units::{duration_beside, unit};

pub(super) const SECTION: Definition =
    Definition { name: "comparison", unasked: true, show: Show::Recording(show), records };

fn show<'a>(page: &mut Page<'a>, recording: &'a Recording, cases: &[Case<'a>]) {
    if page.wants(verdict::SECTION.name) || page.wants(SECTION.name) {
        headlines(page, recording, |_| true, |comparison| scores(cases, comparison).map(Remark::Line));
    }
    if page.wants(SECTION.name) && !recording.comparisons.is_empty() {
        page.gap();
        page.table(overview::table(recording, cases));
        spreads::show(page, recording, cases);
        sources(page, recording, |_| true, |_| true);
    }
}

/// Where the differences of these cases come from: row by row, call by call, and what else was compared.
pub(super) fn sources(
    page: &mut Page<'_>,
    recording: &Recording,
    wanted: impl Fn(CaseKey) -> bool,
    with_calls: impl Fn(&LedgerDifference) -> bool,
) {
    for found in recording.ledger_differences.iter().filter(|found| wanted(found.cases.a)) {
        let names = Names::of(recording, found.cases);
        difference::show(page, recording, &heading(recording, found), found, &names);
        if with_calls(found) {
            call_changes::show(page, recording, found);
        }
    }
    for (cases, why) in unlike(recording).into_iter().filter(|(cases, _)| wanted(cases.a)) {
        let names = Names::of(recording, cases);
        page.heading(&format!("Where the difference of {} from {} comes from", names.b, names.a));
        page.paragraph("  ".into(), &sentence::capitalised(&why), Style::Warning);
    }
    if page.is_whole() {
        others::show(page, recording, wanted);
    }
}

/// Which cases have traces whose ledgers cannot be subtracted, and why.
fn unlike(recording: &Recording) -> Vec<(CasePair, String)> {
    let mut pairs: Vec<CasePair> = recording.comparisons.iter().map(|comparison| comparison.cases).collect();
    pairs.dedup();
    let traces = |case: CaseKey| recording.traces.iter().filter(move |trace| trace.key() == case);
    let why = |cases: CasePair| unlike_ledgers(traces(cases.a).chain(traces(cases.b))).map(|why| (cases, why));
    let is_subtracted = |cases: &CasePair| recording.ledger_differences.iter().any(|found| found.cases == *cases);
    let is_traced = |cases: &CasePair| traces(cases.a).next().is_some() && traces(cases.b).next().is_some();
    pairs.into_iter().filter(|cases| is_traced(cases) && !is_subtracted(cases)).filter_map(why).collect()
}

/// Where the difference between two cases comes from, in a sentence.
pub(super) fn source(recording: &Recording, of: &Comparison) -> Option<Remark> {
    let same = |found: &&LedgerDifference| found.cases == of.cases;
    let found = recording.ledger_differences.iter().find(same)?;
    Some(Remark::Text(difference::sentence(found)))
}

/// `Where the cold difference comes from, in ms`; with the sides, if there are several differences.
pub(super) fn heading(recording: &Recording, found: &LedgerDifference) -> String {
    let state = match found.cases.cache() {
        CacheState::AsIs => String::new(),
        cache => format!("{cache} "),
    };
    let sides = |cases: CasePair| [cases.a, cases.b].map(|case| CaseKey { cache: CacheState::default(), ..case });
    let alone = recording.ledger_differences.iter().all(|other| sides(other.cases) == sides(found.cases));
    let names = Names::of(recording, found.cases);
    let of = if alone { String::new() } else { format!(" of {} from {}", names.b, names.a) };
    let common = if names.common.is_empty() { String::new() } else { format!(", {}", names.common) };
    format!("Where the {state}difference{of} comes from{common}, in {}", unit(difference::largest_time(found)))
}

/// The verdicts on times of the comparisons that begin with one of these cases, each with what goes below it.
pub(super) fn headlines(
    page: &mut Page<'_>,
    recording: &Recording,
    wanted: impl Fn(CaseKey) -> bool,
    remark: impl Fn(&Comparison) -> Option<Remark>,
) {
    let headline = |comparison: &Comparison| Headline {
        comparison: comparison.clone(),
        names: Names::of(recording, comparison.cases),
        until: until(recording, comparison),
        style: style(comparison),
        facts: [change::interval(comparison), change::pairs(comparison.pairs), times(comparison)],
        remark: if comparison.metric == Metric::Wall { remark(comparison) } else { None },
        whisker: Whisker::of(comparison),
    };
    let headlines: Vec<Headline> = overview::of_times(recording, wanted).into_iter().map(headline).collect();
    if !headlines.is_empty() {
        page.add(Block::Headlines(headlines));
    }
}

/// Until when the time runs, if both times were measured.
fn until(recording: &Recording, comparison: &Comparison) -> &'static str {
    match comparison.metric {
        Metric::Durable => ", to durable",
        _ if recording.comparisons.iter().any(|other| other.metric == Metric::Durable) => ", to exit",
        _ => "",
    }
}

pub(super) fn style(comparison: &Comparison) -> Style {
    match comparison.verdict {
        Verdict::Faster => Style::Good,
        Verdict::Slower => Style::Worse,
        Verdict::Withheld => Style::Warning,
        _ => Style::Bold,
    }
}

/// `0.412 s against 0.368 s`
pub(super) fn times(comparison: &Comparison) -> String {
    let time = |ns| duration_beside(ns, comparison.a_median_ns);
    let traced = if comparison.traced { ", traced" } else { "" };
    format!("{} against {}{traced}", time(comparison.b_median_ns), time(comparison.a_median_ns))
}

/// What was predicted for the base, if the other side is its cure: the same place with the cure applied and without the finding.
pub(super) fn scores(cases: &[Case<'_>], comparison: &Comparison) -> Option<Line> {
    let case = |key: CaseKey| cases.iter().find(|case| case.key == key);
    let (base, other) = (case(comparison.cases.a)?, case(comparison.cases.b)?);
    let (before, after) = (base.place()?, other.place()?);
    let comparable = other.trace.is_some() && base.key.command == other.key.command;
    let is_cured = |finding: &&&Finding| {
        let is_gone = other.findings.iter().all(|there| there.id != finding.id);
        is_gone && !finding.bound && finding.cures.iter().any(|cure| cure.change.lies_between(before, after))
    };
    // It is not known how long a traced run would have taken, nor what a failed one should have done, and a recording may say
    // itself that it is no basis for a prediction.
    let is_predicted = comparable && base.doubts().is_empty() && !comparison.traced && comparison.failed == 0;
    let finding = base.findings.iter().find(is_cured).filter(|_| is_predicted)?;
    Some(score(finding, comparison, base.wall()))
}

/// Compares the parts of the time that are saved, as when a cure is proved.
fn score(finding: &Finding, comparison: &Comparison, now: Nanos) -> Line {
    let time = |ns| duration_beside(ns, now);
    let predicted = &finding.predicted;
    let interval = format!("[{}, {}]", time(predicted.low_ns), time(predicted.high_ns));
    let measured = comparison.ratio.zip(comparison.ci_low.zip(comparison.ci_high));
    let (score, style) =
        match measured.map(|(ratio, (low, high))| Score::of(predicted, comparison.pairs, ratio, [low, high])) {
            Some(Score::AsPredicted) => ("true", Style::Good),
            Some(Score::Otherwise) => ("missed", Style::Warning),
            Some(Score::AsPredictedSoFar) => ("true so far", Style::Dim),
            Some(Score::Undecided | Score::TooFewPairs) | None => ("not decided", Style::Dim),
        };
    Line::from([
        Span::from(format!("  predicted without {}: {} {interval}: ", finding.id, time(predicted.wall_ns))),
        Span::new(score, style),
    ])
}

/// A row for each comparison.
fn records(recording: &Recording) -> Records {
    let columns = [
        "a_place",
        "a_command",
        "b_place",
        "b_command",
        "cache",
        "metric",
        "traced",
        "pairs",
        "failed",
        "a_median_ns",
        "b_median_ns",
        "ratio",
        "ci_low",
        "ci_high",
        "p",
        "p_corrected",
        "margin",
        "verdict",
    ];
    let rows = recording.comparisons.iter().map(|found| {
        let [a_place, a_command, cache] = names::values(recording, found.cases.a);
        let [b_place, b_command, _] = names::values(recording, found.cases.b);
        let ratio = |ratio: Option<f64>| ratio.map_or(Value::Nothing, Value::Ratio);
        [
            a_place,
            a_command,
            b_place,
            b_command,
            cache,
            found.metric.to_string().into(),
            found.traced.into(),
            found.pairs.into(),
            found.failed.into(),
            found.a_median_ns.into(),
            found.b_median_ns.into(),
            ratio(found.ratio),
            ratio(found.ci_low),
            ratio(found.ci_high),
            found.p.into(),
            found.p_corrected.into(),
            Value::Share(found.margin),
            word(found.verdict),
        ]
    });
    Records::new(columns, rows)
}

#[cfg(test)]
mod tests {
    use inodyne_model::ledger::View;
    use inodyne_model::place::Limits;
    use inodyne_model::run::{Exit, Run};
    use inodyne_model::sample;

    use super::*;

    /// What is said about the prediction for the first two cases, with this many pairs of runs.
    fn scored(pairs: u32, change: impl Fn(&mut Recording)) -> Option<String> {
        let mut recording = sample::find_recording();
        recording.runs.retain(|run| run.traced);
        for block in 0..pairs {
            for (place, wall) in [(0, 179.0), (1, 78.0)] {
                let wall = sample::ms(wall + f64::from(block) / 10.0);
                recording.push_run(Run { block, ..sample::run(place, CacheState::Cold, false, wall) });
            }
        }
        change(&mut recording);
        inodyne_analyse::explain(&mut recording);
        let is_cold = |found: &&Comparison| found.metric == Metric::Wall && found.cases.cache() == CacheState::Cold;
        let comparison = recording.comparisons.iter().find(is_cold).expect("two cases");
        let line = scores(&Case::all(&recording), comparison)?;
        Some(line.spans().iter().map(Span::text).collect())
    }

    #[test]
    fn ledgers_of_unlike_things_are_said_to_be_so() {
        let mut recording = sample::find_recording();
        inodyne_analyse::explain(&mut recording);
        assert!(unlike(&recording).is_empty());
        recording.traces[0].ledger.view = View::Window;
        let cases = recording.ledger_differences.remove(0).cases;
        let found = unlike(&recording);
        assert_eq!(found.iter().map(|(cases, _)| *cases).collect::<Vec<_>>(), [cases]);
        let words =
            "the ledgers are not subtracted: some divide the time of all threads in a window, others the critical path";
        assert_eq!(found[0].1, words);
        let section = Some("comparison".parse().expect("a section"));
        let text =
            crate::text(&recording, &crate::TextOptions { width: 200, section, ..crate::TextOptions::default() });
        assert!(text.contains("The ledgers are not subtracted") && text.contains("the critical path.\n"), "{text}");
    }

    #[test]
    fn a_prediction_is_scored_by_its_cure_alone() {
        let as_it_is = scored(10, |_| {}).expect("a score");
        assert!(as_it_is.contains("without dtype-missing") && as_it_is.ends_with(": true"), "{as_it_is}");
        assert!(scored(5, |_| {}).is_some_and(|line| line.ends_with(": true so far")));
        assert_eq!(scored(10, |recording| recording.runs[9].exit = Exit::Code(1)), None);
        // The other place has types, and also answers faster.
        let limits = Limits { delay_ns: Some(Nanos(1_000)), ..Limits::default() };
        assert_eq!(scored(10, |recording| recording.places[1].limits = Some(limits)), None);
        assert_eq!(scored(10, |recording| recording.places[1].size_bytes = Some(1)), None);
        assert_eq!(scored(10, |recording| recording.places[0].mkfs.clear()), None);
    }
}
