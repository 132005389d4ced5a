//! Cases held against each other: a line each, before anything else; then how their runs spread, and where the
//! differences come from.

use inodyne_model::Nanos;
use inodyne_model::comparison::{Comparison, LedgerDifference, Side, Verdict};
use inodyne_model::finding::Finding;
use inodyne_model::metric::Metric;
use inodyne_model::recording::Recording;
use inodyne_model::run::CacheState;

use super::case::Case;
use super::page::{Block, Body, Headline, Page};
use super::{call_changes, difference, spreads};
use crate::change;
use crate::line::{Line, Span, Style, cut, escaped};
use crate::names::Names;
use crate::section::Section;
use crate::units::duration_beside;

pub(super) fn show(page: &mut Page, recording: &Recording, cases: &[Case<'_>]) {
    if page.wants(Section::Verdict) || page.wants(Section::Comparison) {
        headlines(page, recording, |_| true, |comparison| scores(cases, comparison).map(Body::Line));
    }
    if page.wants(Section::Comparison) && !recording.comparisons.is_empty() {
        spreads::show(page, recording, cases);
        for found in &recording.ledger_differences {
            let names = Names::of(recording, found.a, found.b);
            difference::show(page, recording, &heading(recording, found), found, &names);
            call_changes::show(page, recording, found);
        }
    }
}

/// Of a couple of cases, where its difference lies in a sentence.
pub(crate) fn source(recording: &Recording, of: &Comparison) -> Option<Body> {
    let same = |found: &&LedgerDifference| (found.a, found.b, found.cache) == (of.a, of.b, of.cache);
    let found = recording.ledger_differences.iter().find(same)?;
    Some(Body::Text(difference::sentence(found), Style::Dim))
}

/// `Where the cold difference comes from, in seconds`; with the sides, where there are several differences.
pub(crate) fn heading(recording: &Recording, found: &LedgerDifference) -> String {
    let state = match found.cache {
        CacheState::AsIs => String::new(),
        cache => format!("{cache} "),
    };
    let alone = recording.ledger_differences.iter().all(|other| (other.a, other.b) == (found.a, found.b));
    let names = Names::of(recording, found.a, found.b);
    let of = if alone { String::new() } else { format!(" of {} from {}", names.b, names.a) };
    let common = if names.common.is_empty() { String::new() } else { format!(", {}", names.common) };
    format!("Where the {state}difference{of} comes from{common}, in seconds")
}

/// The headlines of those that begin with one of these sides, each with what is to stand below it.
pub(super) fn headlines(
    page: &mut Page,
    recording: &Recording,
    wanted: impl Fn(Side) -> bool,
    remark: impl Fn(&Comparison) -> Option<Body>,
) {
    // Room for two names, each in full where it is short.
    let longest = page.width() / 4;
    let headline = |comparison: &Comparison| {
        let names = Names::of(recording, comparison.a, comparison.b);
        let [a, b] = names.short(longest);
        let sentence = change::sentence(comparison, &a, &b);
        let common = Names { common: cut(&escaped(&names.common), longest), ..names }.circumstances(comparison.cache);
        let until = until(recording, comparison);
        let remark = if comparison.metric == Metric::Wall { remark(comparison) } else { None };
        Headline {
            sentence: Span::new(format!("{sentence}{until}{common}"), style(comparison)),
            facts: [change::interval(comparison), change::pairs(comparison.pairs), times(comparison)],
            remarks: remark.into_iter().collect(),
        }
    };
    let of_time = recording.comparisons.iter().filter(|comparison| is_of_time(comparison) && wanted(comparison.a));
    let headlines: Vec<Headline> = of_time.map(headline).collect();
    if !headlines.is_empty() {
        page.add(Block::Headlines(headlines));
    }
}

/// Whether a comparison is of the time that the command took.
pub(crate) fn is_of_time(comparison: &Comparison) -> bool {
    matches!(comparison.metric, Metric::Wall | Metric::Durable)
}

/// Until when, where both times were measured.
pub(crate) fn until(recording: &Recording, comparison: &Comparison) -> &'static str {
    match comparison.metric {
        Metric::Durable => ", to durable",
        _ if recording.comparisons.iter().any(|other| other.metric == Metric::Durable) => ", to exit",
        _ => "",
    }
}

fn style(comparison: &Comparison) -> Style {
    match comparison.verdict {
        Verdict::Faster => Style::Good,
        Verdict::Withheld => Style::Warning,
        _ => Style::Bold,
    }
}

/// `0.412 s against 0.368 s`
fn times(comparison: &Comparison) -> String {
    let time = |ns| duration_beside(ns, comparison.a_median_ns);
    let traced = if comparison.traced { ", traced" } else { "" };
    format!("{} against {}{traced}", time(comparison.b_median_ns), time(comparison.a_median_ns))
}

/// What was predicted for the base, where the other side is its cure: the same kind of file system, made otherwise,
/// without the finding.
pub(crate) fn scores(cases: &[Case<'_>], comparison: &Comparison) -> Option<Line> {
    let case = |side: Side| cases.iter().find(|case| case.key == (side.place, side.command, comparison.cache));
    let (base, other) = (case(comparison.a)?, case(comparison.b)?);
    let kind = |case: &Case<'_>| case.place().map(|place| place.fs.clone());
    let comparable = kind(base) == kind(other) && other.trace.is_some() && base.key.1 == other.key.1;
    let is_cured = |finding: &&&Finding| !finding.bound && other.findings.iter().all(|there| there.id != finding.id);
    let finding = base.findings.iter().find(is_cured).filter(|_| comparable)?;
    Some(score(finding, base.wall(), other.wall()))
}

fn score(finding: &Finding, now: Nanos, cured: Nanos) -> Line {
    let time = |ns| duration_beside(ns, now);
    let predicted = &finding.predicted;
    let hit = (predicted.low_ns..=predicted.high_ns).contains(&cured);
    let interval = format!("[{}, {}]", time(predicted.low_ns), time(predicted.high_ns));
    let (score, style) = if hit { ("true", Style::Good) } else { ("missed", Style::Warning) };
    Line::from([
        Span::from(format!("  predicted without {}: {} {interval}: ", finding.id, time(predicted.wall_ns))),
        Span::new(score, style),
    ])
}
