//! Cases held against each other: a line each, before anything else; then where the differences come from.

use inodyne_model::Nanos;
use inodyne_model::comparison::{Comparison, LedgerDifference, Side, Verdict};
use inodyne_model::finding::Finding;
use inodyne_model::metric::Metric;
use inodyne_model::recording::Recording;
use inodyne_model::run::CacheState;

use super::case::Case;
use super::{Page, call_changes, difference};
use crate::change;
use crate::line::{Line, Span, Style, cut, escaped};
use crate::names::Names;
use crate::section::Section;
use crate::units::duration_beside;

pub(super) fn show(page: &mut Page, recording: &Recording, cases: &[Case<'_>]) {
    if page.wants(Section::Verdict) || page.wants(Section::Comparison) {
        headlines(page, recording, |_| true, |page, comparison| scores(page, cases, comparison));
    }
    if page.wants(Section::Comparison) {
        for found in &recording.ledger_differences {
            difference::show(page, &heading(recording, found), found, &Names::of(recording, found.a, found.b));
            call_changes::show(page, recording, found);
        }
    }
}

/// Of a couple of cases, where its difference lies in a sentence.
pub(super) fn source(page: &mut Page, recording: &Recording, of: &Comparison) {
    let same = |found: &&LedgerDifference| (found.a, found.b, found.cache) == (of.a, of.b, of.cache);
    if let Some(found) = recording.ledger_differences.iter().find(same) {
        page.paragraph("    ".into(), &difference::sentence(found), Style::Dim);
    }
}

/// `Where the cold difference comes from, in seconds`; with the sides, where there are several differences.
fn heading(recording: &Recording, found: &LedgerDifference) -> String {
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

/// The parts of a headline.
struct Headline<'a> {
    comparison: &'a Comparison,
    sentence: String,
    /// The interval, the pairs, and the times.
    facts: [String; 3],
}

/// The headlines of those that begin with one of these sides, each with what is to stand below it.
pub(super) fn headlines(
    page: &mut Page,
    recording: &Recording,
    wanted: impl Fn(Side) -> bool,
    below: impl Fn(&mut Page, &Comparison),
) {
    // Room for two names, each in full where it is short.
    let longest = page.width() / 4;
    let of_wall = recording.comparisons.iter().filter(|c| c.metric == Metric::Wall && wanted(c.a));
    let lines: Vec<Headline<'_>> = of_wall
        .map(|comparison| {
            let names = Names::of(recording, comparison.a, comparison.b);
            let short = |name: &str| cut(&escaped(name), longest);
            let sentence = change::sentence(comparison, &short(&names.a), &short(&names.b));
            let common = Names { common: short(&names.common), ..names };
            Headline {
                comparison,
                sentence: format!("{sentence}{}", common.circumstances(comparison.cache)),
                facts: [change::interval(comparison), change::pairs(comparison.pairs), times(comparison)],
            }
        })
        .collect();
    let width = |text: &str| Span::from(text).width();
    let mut widths = [0; 4];
    for Headline { sentence, facts: [interval, pairs, times], .. } in &lines {
        for (widest, text) in widths.iter_mut().zip([sentence, interval, pairs, times]) {
            *widest = width(text).max(*widest);
        }
    }
    // What does not fit beside the sentences stands below each, for all of them alike.
    let fits = |facts: &usize| widths[..=*facts].iter().sum::<usize>() + 2 * facts <= page.width();
    let beside = (2..widths.len()).rev().find(fits).unwrap_or(0);
    for line in &lines {
        headline(page, line, &widths, beside);
        below(page, line.comparison);
    }
}

/// `0.412 s against 0.368 s`
fn times(comparison: &Comparison) -> String {
    let time = |ns| duration_beside(ns, comparison.a_median_ns);
    let traced = if comparison.traced { ", traced" } else { "" };
    format!("{} against {}{traced}", time(comparison.b_median_ns), time(comparison.a_median_ns))
}

fn headline(page: &mut Page, headline: &Headline<'_>, widths: &[usize; 4], beside: usize) {
    let style = match headline.comparison.verdict {
        Verdict::Faster => Style::Good,
        Verdict::Withheld => Style::Warning,
        _ => Style::Bold,
    };
    let (first, below) = headline.facts.split_at(beside);
    if first.is_empty() {
        page.paragraph(Span::default(), &headline.sentence, style);
    } else {
        let mut line = Line::default();
        line.push(Span::new(&headline.sentence, style));
        line.space(widths[0] - Span::from(headline.sentence.as_str()).width());
        for (fact, width) in first.iter().zip(&widths[1..]) {
            line.space(2);
            line.push(fact.as_str());
            line.space(width - Span::from(fact.as_str()).width());
        }
        page.line(line);
    }
    let below: Vec<&str> = below.iter().map(String::as_str).filter(|fact| !fact.is_empty()).collect();
    if !below.is_empty() {
        page.line([Span::new(format!("  {}", below.join("  ")), Style::Dim)]);
    }
}

/// What was predicted for the base, where the other side is its cure: the same kind of file system, made otherwise,
/// without the finding.
fn scores(page: &mut Page, cases: &[Case<'_>], comparison: &Comparison) {
    let case = |side: Side| cases.iter().find(|case| case.key == (side.place, side.command, comparison.cache));
    let (Some(base), Some(other)) = (case(comparison.a), case(comparison.b)) else { return };
    let kind = |case: &Case<'_>| case.place().map(|place| place.fs.clone());
    let comparable = kind(base) == kind(other) && other.trace.is_some() && base.key.1 == other.key.1;
    let is_cured = |finding: &&&Finding| !finding.bound && other.findings.iter().all(|there| there.id != finding.id);
    if let Some(finding) = base.findings.iter().find(is_cured).filter(|_| comparable) {
        score(page, finding, base.wall(), other.wall());
    }
}

fn score(page: &mut Page, finding: &Finding, now: Nanos, cured: Nanos) {
    let time = |ns| duration_beside(ns, now);
    let predicted = &finding.predicted;
    let hit = (predicted.low_ns..=predicted.high_ns).contains(&cured);
    let interval = format!("[{}, {}]", time(predicted.low_ns), time(predicted.high_ns));
    let (score, style) = if hit { ("true", Style::Good) } else { ("missed", Style::Warning) };
    page.line([
        Span::from(format!("  predicted without {}: {} {interval}: ", finding.id, time(predicted.wall_ns))),
        Span::new(score, style),
    ]);
}
