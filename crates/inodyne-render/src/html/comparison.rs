//! What differs, before anything else: the verdict on the wall-clock time with its interval, then the rows of the ledgers
//! by how much they differ, then all other quantities that were compared.

use inodyne_model::comparison::{Comparison, LedgerDifference, RowDifference, Side, Verdict};
use inodyne_model::ledger::{Row, RowKind};
use inodyne_model::metric::Metric;
use inodyne_model::recording::Recording;
use inodyne_model::run::CacheState;

use super::builder::Html;
use super::colours;
use crate::line::escaped;
use crate::text::ledger::parts;
use crate::units::{duration_beside, seconds};

pub(super) fn is_there(recording: &Recording) -> bool {
    !recording.comparisons.is_empty() || !recording.ledger_differences.is_empty()
}

pub(super) fn show(page: &mut Html, recording: &Recording) {
    if !is_there(recording) {
        return;
    }
    page.inside("section", &[("id", "differences")], |page| {
        page.element("h2", &[], "Differences");
        let is_wall = |comparison: &&Comparison| comparison.metric == Metric::Wall;
        let (wall, other): (Vec<&Comparison>, Vec<&Comparison>) =
            recording.comparisons.iter().partition(|one| is_wall(one));
        if !wall.is_empty() {
            table(page, recording, &wall);
        }
        for difference in &recording.ledger_differences {
            rows(page, recording, difference);
        }
        if !other.is_empty() {
            page.inside("details", &[], |page| {
                page.element("summary", &[], "Everything else that was compared");
                table(page, recording, &other);
            });
        }
    });
}

fn name(recording: &Recording, side: Side) -> String {
    let place = recording.places.get(side.place).map_or("?", |place| &place.label);
    let command = recording.commands.get(side.command).map_or("?", |command| &command.label);
    match (recording.commands.len(), recording.places.len()) {
        (1, _) => place.to_owned(),
        (_, 1) => command.to_owned(),
        _ => format!("{command} on {place}"),
    }
}

fn both(recording: &Recording, a: Side, b: Side, cache: CacheState) -> String {
    format!("{} against {}, {cache}", name(recording, b), name(recording, a))
}

fn words(comparison: &Comparison) -> (&'static str, String) {
    let percent = |ratio: f64| format!("{:+.1}%", (ratio - 1.0) * 100.0);
    let interval = match (comparison.ratio, comparison.ci_low, comparison.ci_high) {
        (Some(ratio), Some(low), Some(high)) => format!("{} [{}, {}]", percent(ratio), percent(low), percent(high)),
        (Some(ratio), ..) => percent(ratio),
        (None, ..) => String::new(),
    };
    match comparison.verdict {
        Verdict::Slower => ("warning", format!("slower {interval}")),
        Verdict::Faster => ("good", format!("faster {interval}")),
        Verdict::NoDifference => {
            ("", format!("no difference of {:.1}% or more: {interval}", comparison.margin * 100.0))
        }
        Verdict::NotEnoughRuns => ("dim", format!("not enough runs to say {interval}")),
        Verdict::Withheld => ("warning", format!("no verdict: {} runs failed {interval}", comparison.failed)),
    }
}

fn table(page: &mut Html, recording: &Recording, comparisons: &[&Comparison]) {
    // One axis for all of them, in logarithms: twice as slow and twice as fast are as far from the middle.
    let ends = comparisons.iter().flat_map(|c| [c.ci_low, c.ci_high, c.ratio]).flatten().filter(|r| *r > 0.0);
    let reach = ends.map(|ratio| ratio.ln().abs()).fold(0.05f64, f64::max).min(5.0) * 1.1;
    page.inside("div", &[("class", "scroll")], |page| {
        page.inside("table", &[("class", "sorts comparisons")], |page| {
            page.inside("thead", &[], |page| {
                page.inside("tr", &[], |page| {
                    for (heading, class) in [("what", ""), ("of", ""), ("before", "n"), ("after", "n"), ("pairs", "n")]
                    {
                        page.inside("th", &[("class", class), ("scope", "col")], |page| {
                            page.element("button", &[("type", "button")], heading);
                        });
                    }
                    page.element("th", &[("scope", "col"), ("class", "plot")], "faster │ slower");
                    page.element("th", &[("scope", "col")], "verdict, with a 95% interval");
                });
            });
            page.inside("tbody", &[], |page| {
                for comparison in comparisons {
                    comparison_row(page, recording, comparison, reach);
                }
            });
        });
    });
}

fn comparison_row(page: &mut Html, recording: &Recording, comparison: &Comparison, reach: f64) {
    let (class, verdict) = words(comparison);
    page.inside("tr", &[], |page| {
        page.element("td", &[], &both(recording, comparison.a, comparison.b, comparison.cache));
        page.element("td", &[], &comparison.metric.to_string());
        for ns in [comparison.a_median_ns, comparison.b_median_ns] {
            let shown = duration_beside(ns, comparison.a_median_ns);
            page.element("td", &[("class", "n"), ("data-v", &ns.0.to_string())], &shown);
        }
        page.element("td", &[("class", "n")], &comparison.pairs.to_string());
        page.inside("td", &[("class", "plot")], |page| whisker(page, comparison, reach));
        page.element("td", &[("class", class)], &verdict);
    });
}

/// The interval as a line, the ratio as a dot, the margin as a band around "the same".
fn whisker(page: &mut Html, comparison: &Comparison, reach: f64) {
    const WIDTH: f64 = 200.0;
    let x = |ratio: f64| (0.5 + 0.5 * (ratio.max(1e-9).ln() / reach).clamp(-1.0, 1.0)) * WIDTH;
    let attributes = [("viewBox", "0 0 200 20"), ("class", "whisker"), ("aria-hidden", "true")];
    page.inside("svg", &attributes, |page| {
        let (from, to) = (x(1.0 - comparison.margin), x(1.0 + comparison.margin));
        let margin = format!("M{from:.1} 0H{to:.1}V20H{from:.1}z");
        page.inside("path", &[("class", "margin"), ("d", &margin)], |_| {});
        page.inside("path", &[("class", "axis"), ("d", "M100 0V20")], |_| {});
        if let (Some(low), Some(high)) = (comparison.ci_low, comparison.ci_high) {
            let line = format!("M{:.1} 10H{:.1}", x(low), x(high));
            page.inside("path", &[("class", "interval"), ("d", &line)], |_| {});
        }
        if let Some(ratio) = comparison.ratio {
            page.empty("circle", &[("cx", &format!("{:.1}", x(ratio))), ("cy", "10"), ("r", "4")]);
        }
    });
}

fn rows(page: &mut Html, recording: &Recording, difference: &LedgerDifference) {
    let names = both(recording, difference.a, difference.b, difference.cache);
    page.element("h3", &[], &format!("Where the difference lies: {}", escaped(&names)));
    let whole = difference.a_wall_ns.max(difference.b_wall_ns);
    let largest = difference.rows.iter().map(|row| row.difference_ns.unsigned_abs()).max().unwrap_or(1).max(1) as f64;
    let signed = |ns: i64| {
        let sign = if ns < 0 { "−" } else { "+" };
        format!("{sign}{}", seconds(inodyne_model::Nanos(ns.unsigned_abs()), whole))
    };
    let (small, large): (Vec<&RowDifference>, Vec<&RowDifference>) =
        difference.rows.iter().partition(|row| row.difference_ns.unsigned_abs() as f64 <= 0.002 * whole.0 as f64);
    page.inside("div", &[("class", "scroll")], |page| {
        page.inside("table", &[("class", "difference")], |page| {
            page.inside("thead", &[], |page| {
                page.inside("tr", &[], |page| {
                    for (heading, class) in [
                        ("", ""),
                        ("", ""),
                        ("before s", "n"),
                        ("after s", "n"),
                        ("difference s", "n"),
                        ("less │ more", "bar"),
                    ] {
                        page.element("th", &[("class", class), ("scope", "col")], heading);
                    }
                });
            });
            page.inside("tbody", &[], |page| {
                for row in &large {
                    difference_row(page, row, largest, &signed, whole);
                }
            });
            page.inside("tfoot", &[], |page| {
                page.inside("tr", &[], |page| {
                    page.element("td", &[], "");
                    page.element("td", &[], "wall-clock");
                    page.element("td", &[("class", "n")], &seconds(difference.a_wall_ns, whole));
                    page.element("td", &[("class", "n")], &seconds(difference.b_wall_ns, whole));
                    let all = i128::from(difference.b_wall_ns.0) - i128::from(difference.a_wall_ns.0);
                    page.element("td", &[("class", "n")], &signed(i64::try_from(all).unwrap_or(i64::MAX)));
                    page.element("td", &[], "");
                });
            });
        });
    });
    if !small.is_empty() {
        let sum = small.iter().fold(0i64, |sum, row| sum.saturating_add(row.difference_ns));
        page.element(
            "p",
            &[("class", "dim")],
            &format!("{} rows that differ by less than 0.2% are left out: {} s together.", small.len(), signed(sum)),
        );
    }
}

fn difference_row(
    page: &mut Html,
    row: &RowDifference,
    largest: f64,
    signed: &impl Fn(i64) -> String,
    whole: inodyne_model::Nanos,
) {
    let RowDifference { kind, ref syscall, cause, .. } = *row;
    let words = parts(&Row { syscall: syscall.clone(), cause, ..Row::new(kind, row.a_ns) });
    page.inside("tr", &[], |page| {
        page.element("td", &[], &words.subject);
        page.element("td", &[], if kind == RowKind::Unexplained { "" } else { &words.what });
        page.element("td", &[("class", "n")], &seconds(row.a_ns, whole));
        page.element("td", &[("class", "n")], &seconds(row.b_ns, whole));
        let interval = match (row.low_ns, row.high_ns) {
            (Some(low), Some(high)) => format!(" [{}, {}]", signed(low), signed(high)),
            _ => String::new(),
        };
        page.element("td", &[("class", "n")], &format!("{}{interval}", signed(row.difference_ns)));
        page.inside("td", &[("class", "bar diverging")], |page| {
            let width = row.difference_ns.unsigned_abs() as f64 / largest * 50.0;
            let left = if row.difference_ns < 0 { 50.0 - width } else { 50.0 };
            let style = format!("margin-left:{left:.3}%;width:{width:.3}%");
            let class = format!("c-{}", colours::of_row(kind, cause));
            page.element("span", &[("class", &class), ("style", &style)], "");
        });
    });
}
