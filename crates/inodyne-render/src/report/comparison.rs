//! Cases compared with each other: a line each, before anything else; then how their runs spread, and where the
//! differences come from.

use inodyne_model::Nanos;
use inodyne_model::case::{CaseKey, CasePair};
use inodyne_model::comparison::{Comparison, LedgerDifference, Verdict};
use inodyne_model::cure::{Change, PlaceChange};
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
use super::{call_changes, difference, others, overview, spreads, verdict};
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
    if page.is_whole() {
        others::show(page, recording, wanted);
    }
}

/// Of two cases, where its difference lies in a sentence.
pub(super) fn source(recording: &Recording, of: &Comparison) -> Option<Remark> {
    let same = |found: &&LedgerDifference| found.cases == of.cases;
    let found = recording.ledger_differences.iter().find(same)?;
    Some(Remark::Text(difference::sentence(found)))
}

/// `Where the cold difference comes from, in ms`; with the sides, where there are several differences.
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

/// The verdicts on times of those that begin with one of these cases, each with what is to stand below it.
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

/// Until when, where both times were measured.
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

/// What was predicted for the base, where the other side is its cure: the same kind of file system, made otherwise,
/// without the finding, which such a change can cure.
pub(super) fn scores(cases: &[Case<'_>], comparison: &Comparison) -> Option<Line> {
    let case = |key: CaseKey| cases.iter().find(|case| case.key == key);
    let (base, other) = (case(comparison.cases.a)?, case(comparison.cases.b)?);
    let kind = |case: &Case<'_>| case.place().map(|place| place.fs.clone());
    let comparable = kind(base) == kind(other) && other.trace.is_some() && base.key.command == other.key.command;
    let is_cured = |finding: &&&Finding| {
        let is_gone = other.findings.iter().all(|there| there.id != finding.id);
        is_gone && !finding.bound && finding.cures.iter().any(|cure| makes_otherwise(&cure.change))
    };
    // Of a traced run it is not known how long it would have taken, and a recording may say itself that it is no ground for a prediction.
    let is_predicted = comparable && base.doubts().is_empty() && !comparison.traced;
    let finding = base.findings.iter().find(is_cured).filter(|_| is_predicted)?;
    Some(score(finding, comparison, base.wall()))
}

/// Whether a change leaves a place the kind of file system that it is.
fn makes_otherwise(change: &Change) -> bool {
    match change {
        Change::Place(PlaceChange::Over(_) | PlaceChange::Below) => false,
        Change::Place(_) | Change::Setting { .. } => true,
        Change::Cache(_) | Change::Command(_) | Change::Advice { .. } => false,
    }
}

/// The parts that are saved are held against each other, as where a cure is proved.
fn score(finding: &Finding, comparison: &Comparison, now: Nanos) -> Line {
    let time = |ns| duration_beside(ns, now);
    let predicted = &finding.predicted;
    let interval = format!("[{}, {}]", time(predicted.low_ns), time(predicted.high_ns));
    let measured = comparison.ratio.zip(comparison.ci_low.zip(comparison.ci_high));
    let (score, style) = match measured.map(|(ratio, (low, high))| Score::of(predicted, ratio, [low, high])) {
        Some(Score::AsPredicted) => ("true", Style::Good),
        Some(Score::Otherwise) => ("missed", Style::Warning),
        Some(Score::Undecided) | None => ("not decided", Style::Dim),
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
