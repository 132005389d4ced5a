//! What is drawn in the cells of tables, and beside verdicts: bars, intervals, histograms.

use inodyne_model::Nanos;
use inodyne_model::count::Grouped;
use inodyne_model::histogram::Histogram;
use inodyne_model::trace::Trace;

use super::builder::Html;
use super::colours;
use crate::report::Whisker;
use crate::report::row_in_words;
use crate::report::state::State;
use crate::report::value::Picture;
use crate::units::{duration, percent};

/// The histograms of all rows share an axis from here …
const LEAST_NS: f64 = 100.0;
/// … to here, in powers of ten.
const DECADES: f64 = 7.0;
const WIDTH: f64 = 140.0;
const HEIGHT: f64 = 20.0;
/// Ratios in a table reach so far, in logarithms: to a half and to twice.
const REACH_IN_TABLES: f64 = std::f64::consts::LN_2;

/// A picture in a cell.
pub(super) fn show(page: &mut Html, picture: &Picture) {
    match picture {
        Picture::Bar(share, state) => bar(page, *state, &format!("width:{:.3}%", share * 100.0)),
        Picture::Diverging(part, state) => {
            let width = part.abs().min(1.0) * 50.0;
            let left = if *part < 0.0 { 50.0 - width } else { 50.0 };
            bar(page, *state, &format!("margin-left:{left:.3}%;width:{width:.3}%"));
        }
        Picture::Stacked(length, pieces) => {
            let width = format!("width:{:.3}%", length * 100.0);
            page.inside("div", &[("class", "stacked small"), ("style", &width)], |page| {
                pieces.iter().for_each(|(share, state, title)| piece(page, *share, *state, title));
            });
        }
        Picture::Histogram(calls) => histogram(page, calls),
        Picture::Whisker(of) => whisker(page, of, REACH_IN_TABLES),
    }
}

fn bar(page: &mut Html, state: State, style: &str) {
    page.element("span", &[("class", &format!("c-{}", colours::of_state(state))), ("style", style)], "");
}

fn piece(page: &mut Html, share: f64, state: State, title: &str) {
    let style = format!("width:{:.4}%", share * 100.0);
    let class = format!("c-{}", colours::of_state(state));
    page.element("span", &[("class", &class), ("style", &style), ("title", title)], "");
}

/// The rows of a trace's ledger as one bar.
pub(super) fn ledger(page: &mut Html, trace: &Trace) {
    let whole = trace.ledger.wall_ns;
    page.inside("div", &[("class", "stacked"), ("aria-hidden", "true")], |page| {
        for row in &trace.ledger.rows {
            let (words, share) = (row_in_words(row), row.ns.share_of(whole));
            let title = format!("{} {}: {} ({})", words.subject, words.what, duration(row.ns), percent(share));
            piece(page, share, State::new(row.kind, row.cause), &title);
        }
    });
}

/// How far these ratios reach, in logarithms: twice as slow and twice as fast are as far from the middle.
pub(super) fn reach<'a>(all: impl Iterator<Item = &'a Whisker>) -> f64 {
    let ends = all.flat_map(|one| {
        let (low, high) = one.interval.unzip();
        [low, high, one.ratio]
    });
    ends.flatten().filter(|ratio| *ratio > 0.0).map(|ratio| ratio.ln().abs()).fold(0.05f64, f64::max).min(5.0) * 1.1
}

/// The interval as a line, the ratio as a dot, the margin as a band around "the same".
pub(super) fn whisker(page: &mut Html, of: &Whisker, reach: f64) {
    const WIDTH: f64 = 200.0;
    let x = |ratio: f64| (0.5 + 0.48 * (ratio.max(1e-9).ln() / reach).clamp(-1.0, 1.0)) * WIDTH;
    let attributes = [("viewBox", "0 0 200 20"), ("class", "whisker"), ("aria-hidden", "true")];
    page.inside("svg", &attributes, |page| {
        let (from, to) = (x(1.0 - of.margin), x(1.0 + of.margin));
        let margin = format!("M{from:.1} 0H{to:.1}V20H{from:.1}z");
        page.inside("path", &[("class", "margin"), ("d", &margin)], |_| {});
        page.inside("path", &[("class", "axis"), ("d", "M100 0V20M4 10H196")], |_| {});
        if let Some((low, high)) = of.interval {
            let (low, high) = (x(low), x(high));
            let line = format!("M{low:.1} 10H{high:.1}M{low:.1} 6V14M{high:.1} 6V14");
            page.inside("path", &[("class", "interval"), ("d", &line)], |_| {});
        }
        if let Some(ratio) = of.ratio {
            page.empty("circle", &[("cx", &format!("{:.1}", x(ratio))), ("cy", "10"), ("r", "4")]);
        }
    });
}

/// A bar for each third of an octave or so; what lies beyond the axis is at its ends.
fn histogram(page: &mut Html, histogram: &Histogram) {
    const BARS: usize = 70;
    let mut counts = [0u64; BARS];
    for bucket in histogram.buckets() {
        let middle = bucket.low_ns.midpoint(bucket.high_ns).max(1) as f64;
        let place = ((middle / LEAST_NS).log10() / DECADES).clamp(0.0, 1.0);
        let bar = &mut counts[((place * BARS as f64) as usize).min(BARS - 1)];
        *bar = bar.saturating_add(bucket.count);
    }
    let highest = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let bar = WIDTH / BARS as f64;
    let mut path = String::new();
    for (at, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        // What is there at all is seen.
        let height = (*count as f64 / highest * HEIGHT).max(1.0);
        path.push_str(&format!("M{:.1} {HEIGHT}v{:.1}h{:.1}v{:.1}z", at as f64 * bar, -height, bar, height));
    }
    let words = match (histogram.buckets().first(), histogram.buckets().last()) {
        (Some(first), Some(last)) => {
            format!(
                "{} calls between {} and {}",
                Grouped(histogram.count()),
                duration(Nanos(first.low_ns)),
                duration(Nanos(last.high_ns))
            )
        }
        _ => "no calls".to_owned(),
    };
    let view = format!("0 0 {WIDTH} {HEIGHT}");
    let attributes =
        [("viewBox", view.as_str()), ("class", "histogram"), ("role", "img"), ("aria-label", words.as_str())];
    page.inside("svg", &attributes, |page| {
        page.element("title", &[], &words);
        page.inside("path", &[("d", &path)], |_| {});
    });
}
