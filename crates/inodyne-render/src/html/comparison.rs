//! What differs, before anything else: the verdict on the wall-clock time with its interval, where the difference comes
//! from, which calls changed, and folded in all other quantities that were compared.

use std::cmp::Reverse;

use inodyne_model::Nanos;
use inodyne_model::comparison::{Comparison, LedgerDifference, RowDifference, Side, Verdict};
use inodyne_model::metric::Metric;
use inodyne_model::recording::Recording;

use super::builder::{Column, Html};
use super::colours;
use crate::change;
use crate::names::Names;
use crate::rows::words;
use crate::text::case::Case;
use crate::text::comparison::{heading, is_of_time, scores, source, until};
use crate::text::difference;
use crate::text::page::Body;
use crate::units::{duration_beside, seconds, signed_seconds};

/// Rows that differ by less than this part of the whole are folded in, unless they are few.
const SMALL: f64 = 0.002;

pub(super) fn is_there(recording: &Recording) -> bool {
    !recording.comparisons.is_empty() || !recording.ledger_differences.is_empty()
}

pub(super) fn show(page: &mut Html, recording: &Recording, cases: &[Case<'_>]) {
    if !is_there(recording) {
        return;
    }
    page.inside("section", &[("id", "differences")], |page| {
        page.element("h2", &[], "Differences");
        headlines(page, recording, |_| true, |one| scores(cases, one).map(Body::Line));
        sources(page, recording, |_| true);
    });
}

/// The same of those that begin with one of these sides, the sources folded in.
pub(super) fn of_part(page: &mut Html, recording: &Recording, wanted: impl Fn(Side) -> bool + Copy) {
    headlines(page, recording, wanted, |one| source(recording, one));
    let has_sources = recording.ledger_differences.iter().any(|found| wanted(found.a))
        || recording.comparisons.iter().any(|one| wanted(one.a) && !is_of_time(one));
    if has_sources {
        page.inside("details", &[], |page| {
            page.element("summary", &[], "Where the differences come from");
            sources(page, recording, wanted);
        });
    }
}

/// Row by row, call by call, and what else was compared.
fn sources(page: &mut Html, recording: &Recording, wanted: impl Fn(Side) -> bool) {
    for found in recording.ledger_differences.iter().filter(|found| wanted(found.a)) {
        rows(page, recording, found);
    }
    let others = recording.comparisons.iter().filter(|one| wanted(one.a) && !is_of_time(one));
    let is_call = |one: &&Comparison| matches!(one.metric, Metric::SyscallWall(_));
    let (mut calls, other): (Vec<&Comparison>, Vec<&Comparison>) = others.partition(is_call);
    calls.sort_by_key(|one| Reverse(one.a_median_ns.max(one.b_median_ns)));
    if !calls.is_empty() {
        page.element("h3", &[], "Time in system calls, over the traced runs");
        table(page, recording, &calls);
    }
    if !other.is_empty() {
        page.inside("details", &[], |page| {
            page.element("summary", &[], "Everything else that was compared");
            table(page, recording, &other);
        });
    }
}

fn class_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "good",
        Verdict::Slower | Verdict::Withheld => "warning",
        Verdict::NoDifference => "",
        Verdict::NotEnoughRuns => "dim",
    }
}

/// A sentence each, and below it what it rests on, and what else there is to say of the time to the end.
fn headlines(
    page: &mut Html,
    recording: &Recording,
    wanted: impl Fn(Side) -> bool,
    remark: impl Fn(&Comparison) -> Option<Body>,
) {
    let comparisons: Vec<&Comparison> =
        recording.comparisons.iter().filter(|one| is_of_time(one) && wanted(one.a)).collect();
    let reach = reach(&comparisons);
    for comparison in &comparisons {
        let names = Names::of(recording, comparison.a, comparison.b);
        let sentence = change::sentence(comparison, &names.a, &names.b);
        let time = |ns| duration_beside(ns, comparison.a_median_ns);
        page.inside("div", &[("class", "headline")], |page| {
            let class = format!("said {}", class_of(comparison.verdict));
            let circumstances = names.circumstances(comparison.cache);
            let until = until(recording, comparison);
            page.element("p", &[("class", &class)], &format!("{sentence}{until}{circumstances}"));
            whisker(page, comparison, reach);
            let facts = [
                change::interval(comparison),
                change::pairs(comparison.pairs),
                format!("{} against {}", time(comparison.b_median_ns), time(comparison.a_median_ns)),
                if comparison.traced { "traced".to_owned() } else { String::new() },
            ];
            let facts: Vec<&str> = facts.iter().map(String::as_str).filter(|fact| !fact.is_empty()).collect();
            page.element("p", &[("class", "dim")], &facts.join(" · "));
            if let Some(body) = Some(comparison).filter(|one| one.metric == Metric::Wall).and_then(|one| remark(one)) {
                page.said(&body);
            }
        });
    }
    if !comparisons.is_empty() {
        page.element(
            "p",
            &[("class", "dim")],
            "Dot: ratio of the times; line: its 95% interval; left of the middle faster, right of it slower; the band is what \
             counts as no difference.",
        );
    }
}

/// One axis for all of them, in logarithms: twice as slow and twice as fast are as far from the middle.
fn reach(comparisons: &[&Comparison]) -> f64 {
    let ends = comparisons.iter().flat_map(|c| [c.ci_low, c.ci_high, c.ratio]).flatten().filter(|r| *r > 0.0);
    ends.map(|ratio| ratio.ln().abs()).fold(0.05f64, f64::max).min(5.0) * 1.1
}

fn table(page: &mut Html, recording: &Recording, comparisons: &[&Comparison]) {
    let reach = reach(comparisons);
    let whole = comparisons.iter().map(|c| c.a_median_ns.max(c.b_median_ns)).max().unwrap_or_default();
    let columns = [
        Column::text("time of").sorting(),
        Column::text("held against each other").sorting(),
        Column::number("before s").sorting(),
        Column::number("after s").sorting(),
        Column::number("change").sorting(),
        Column::text("faster │ slower"),
        Column::text("95% interval"),
        Column::text("verdict").sorting(),
    ];
    page.table("comparisons", &columns, |page| {
        page.inside("tbody", &[], |page| {
            for comparison in comparisons {
                comparison_row(page, recording, comparison, reach, whole);
            }
        });
    });
}

fn comparison_row(page: &mut Html, recording: &Recording, comparison: &Comparison, reach: f64, whole: Nanos) {
    let names = Names::of(recording, comparison.a, comparison.b);
    let metric = match &comparison.metric {
        Metric::SyscallWall(name) => name.clone(),
        metric => metric.to_string(),
    };
    let sides = format!("{} against {}{}", names.b, names.a, names.circumstances(comparison.cache));
    let interval = change::ends(comparison);
    page.inside("tr", &[], |page| {
        page.element("th", &[("scope", "row")], &metric);
        page.element("td", &[], &sides);
        for ns in [comparison.a_median_ns, comparison.b_median_ns] {
            page.element("td", &[("class", "n"), ("data-v", &ns.0.to_string())], &seconds(ns, whole));
        }
        let ratio = comparison.ratio.unwrap_or(1.0);
        let change = comparison.ratio.map_or_else(String::new, change::change);
        page.element("td", &[("class", "n"), ("data-v", &format!("{ratio:.6}"))], &change);
        page.inside("td", &[("class", "plot")], |page| whisker(page, comparison, reach));
        page.element("td", &[], &interval.map_or_else(String::new, |(low, high)| change::changes(low, high)));
        page.element("td", &[("class", class_of(comparison.verdict))], &change::word(comparison));
    });
}

/// The interval as a line, the ratio as a dot, the margin as a band around "the same".
fn whisker(page: &mut Html, comparison: &Comparison, reach: f64) {
    const WIDTH: f64 = 200.0;
    let x = |ratio: f64| (0.5 + 0.48 * (ratio.max(1e-9).ln() / reach).clamp(-1.0, 1.0)) * WIDTH;
    let attributes = [("viewBox", "0 0 200 20"), ("class", "whisker"), ("aria-hidden", "true")];
    page.inside("svg", &attributes, |page| {
        let (from, to) = (x(1.0 - comparison.margin), x(1.0 + comparison.margin));
        let margin = format!("M{from:.1} 0H{to:.1}V20H{from:.1}z");
        page.inside("path", &[("class", "margin"), ("d", &margin)], |_| {});
        page.inside("path", &[("class", "axis"), ("d", "M100 0V20M4 10H196")], |_| {});
        if let Some((low, high)) = change::ends(comparison) {
            let (low, high) = (x(low), x(high));
            let line = format!("M{low:.1} 10H{high:.1}M{low:.1} 6V14M{high:.1} 6V14");
            page.inside("path", &[("class", "interval"), ("d", &line)], |_| {});
        }
        if let Some(ratio) = comparison.ratio {
            page.empty("circle", &[("cx", &format!("{:.1}", x(ratio))), ("cy", "10"), ("r", "4")]);
        }
    });
}

/// Where the difference of two cases comes from, row by row.
fn rows(page: &mut Html, recording: &Recording, found: &LedgerDifference) {
    let names = Names::of(recording, found.a, found.b);
    page.element("h3", &[], &heading(recording, found));
    page.element("p", &[], &difference::sentence(found));
    if let Some(doubt) = difference::doubt(recording, found) {
        page.element("p", &[("class", "warning")], &doubt);
    }
    let whole = found.a_wall_ns.max(found.b_wall_ns);
    let is_small = |row: &&RowDifference| row.difference_ns.unsigned_abs() as f64 <= SMALL * whole.0 as f64;
    let (small, large): (Vec<&RowDifference>, Vec<&RowDifference>) = found.rows.iter().partition(is_small);
    differences(page, found, &names, &large, true);
    if !small.is_empty() {
        let sum = small.iter().fold(0i64, |sum, row| sum.saturating_add(row.difference_ns));
        page.inside("details", &[("class", "minor")], |page| {
            let words = format!("{} rows that hardly differ, {} s together", small.len(), signed_seconds(sum, whole));
            page.element("summary", &[], &words);
            differences(page, found, &names, &small, false);
        });
    }
    if found.pairs > 1 {
        page.element("p", &[("class", "dim")], &format!("Means over {} traced runs of each.", found.pairs));
    }
}

fn differences(page: &mut Html, found: &LedgerDifference, names: &Names, rows: &[&RowDifference], with_sum: bool) {
    let whole = found.a_wall_ns.max(found.b_wall_ns);
    let largest = found.rows.iter().map(|row| row.difference_ns.unsigned_abs()).max().unwrap_or(1).max(1) as f64;
    // Of too few traced runs there are none.
    let with_interval = found.rows.iter().any(|row| row.low_ns.is_some());
    let mut columns = vec![
        Column::text("where"),
        Column::text("what"),
        Column::number(&names.a),
        Column::number(&names.b),
        Column::number("difference s"),
    ];
    columns.extend(with_interval.then(|| Column::text("95% interval")));
    columns.push(Column::drawn("less │ more"));
    page.table("difference", &columns, |page| {
        page.inside("tbody", &[], |page| {
            rows.iter().for_each(|row| difference_row(page, row, with_interval, largest, whole));
        });
        if with_sum {
            let all = i128::from(found.b_wall_ns.0) - i128::from(found.a_wall_ns.0);
            let all = signed_seconds(i64::try_from(all).unwrap_or(i64::MAX), whole);
            let (a, b) = (seconds(found.a_wall_ns, whole), seconds(found.b_wall_ns, whole));
            page.inside("tfoot", &[], |page| {
                let cells = [("", ""), ("", "wall-clock"), ("n", &*a), ("n", &*b), ("n", &*all), ("", ""), ("", "")];
                page.cells(&cells[..columns.len()]);
            });
        }
    });
}

fn difference_row(page: &mut Html, row: &RowDifference, with_interval: bool, largest: f64, whole: Nanos) {
    let (subject, what, _) = words(row.kind, row.syscall.as_deref(), row.cause);
    let interval = row.low_ns.zip(row.high_ns).map_or_else(String::new, |(low, high)| {
        format!("[{}, {}]", signed_seconds(low, whole), signed_seconds(high, whole))
    });
    page.inside("tr", &[], |page| {
        page.element("td", &[], &subject);
        page.element("td", &[("class", "what")], &what);
        for ns in [row.a_ns, row.b_ns] {
            page.element("td", &[("class", "n")], &seconds(ns, whole));
        }
        page.element("td", &[("class", "n")], &signed_seconds(row.difference_ns, whole));
        if with_interval {
            page.element("td", &[("class", "interval")], &interval);
        }
        page.inside("td", &[("class", "bar diverging")], |page| {
            let width = row.difference_ns.unsigned_abs() as f64 / largest * 50.0;
            let left = if row.difference_ns < 0 { 50.0 - width } else { 50.0 };
            let style = format!("margin-left:{left:.3}%;width:{width:.3}%");
            let class = format!("c-{}", colours::of_row(row.kind, row.cause));
            page.element("span", &[("class", &class), ("style", &style)], "");
        });
    });
}
