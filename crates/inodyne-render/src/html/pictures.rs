//! What is drawn in the cells of tables, and beside verdicts: bars, intervals, histograms.

use inodyne_model::Nanos;
use inodyne_model::histogram::Histogram;
use inodyne_model::trace::Trace;

use super::builder::Html;
use crate::colours;
use crate::report::Whisker;
use crate::report::row_in_words;
use crate::report::state::State;
use crate::report::value::Picture;
use crate::units::{counted, duration, percent};

/// The histograms of all rows share an axis from here …
const LEAST_NS: f64 = 100.0;
/// … to here, in powers of ten.
const DECADES: f64 = 7.0;
/// In thousandths of the height of a course.
const LEAST_HEIGHT: u64 = 20;
const WIDTH: f64 = 140.0;
const HEIGHT: f64 = 20.0;
/// Ratios that a scale may label.
const TICKS: [f64; 24] = [
    0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 0.67, 0.8, 0.9, 0.95, 0.98, 0.99, 1.01, 1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0,
    10.0, 20.0, 50.0, 100.0,
];
/// Ticks are at least this far apart, as a part of the way from the middle to the end, so that their labels have room.
const APART: f64 = 0.4;

/// The farthest tick, likewise, so that its label is inside the picture.
const FARTHEST: f64 = 0.85;

/// A picture in a cell. `reach` is how far ratios in it extend, as a logarithm.
pub(super) fn show(page: &mut Html, picture: &Picture, reach: f64) {
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
        Picture::Course(heights) => course(page, heights),
        Picture::Whisker(of) => whisker(page, of, reach),
    }
}

/// An area below the values, as wide as its cell.
fn course(page: &mut Html, heights: &[u64]) {
    let view = format!("0 0 {} 1000", heights.len().max(1));
    let attributes =
        [("viewBox", view.as_str()), ("preserveAspectRatio", "none"), ("class", "course"), ("aria-hidden", "true")];
    let mut path = "M0 1000".to_owned();
    for height in heights {
        // Anything that is not zero is visible.
        let height = if *height == 0 { 0 } else { (*height).clamp(LEAST_HEIGHT, 1000) };
        path.push_str(&format!("V{}h1", 1000 - height));
    }
    path.push_str("V1000z");
    page.inside("svg", &attributes, |page| page.inside("path", &[("d", &path)], |_| {}));
}

fn bar(page: &mut Html, state: State, style: &str) {
    page.element("span", &[("class", &format!("c-{}", colours::of_state(state).class)), ("style", style)], "");
}

fn piece(page: &mut Html, share: f64, state: State, title: &str) {
    let style = format!("width:{:.4}%", share * 100.0);
    let class = format!("c-{}", colours::of_state(state).class);
    page.element("span", &[("class", &class), ("style", &style), ("title", title)], "");
}

/// A sample of a state's colour, to go beside words.
pub(super) fn swatch(page: &mut Html, state: State) {
    page.element("i", &[("class", &format!("c-{}", colours::of_state(state).class))], "");
}

/// Parts of a time that is part of a longer one: the bar is as long as their sum.
pub(super) fn stacked(page: &mut Html, parts: &[(State, f64)]) {
    let width: f64 = parts.iter().map(|(_, share)| share).sum();
    let style = format!("width:{:.3}%", width * 100.0);
    page.inside("div", &[("class", "stacked"), ("aria-hidden", "true"), ("style", &style)], |page| {
        for (state, share) in parts {
            piece(
                page,
                share / width.max(f64::MIN_POSITIVE),
                *state,
                &format!("{} {}", state.words(), percent(*share)),
            );
        }
    });
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

/// How far these ratios extend, as a logarithm: twice as slow and twice as fast are equally far from the middle. A wide interval
/// does not squeeze all ratios together.
pub(super) fn reach<'a>(all: impl Iterator<Item = &'a Whisker>) -> f64 {
    let length = |ratio: f64| ratio.max(1e-9).ln().abs().min(5.0);
    let (mut ratios, mut ends) = (0.05f64, 0.05f64);
    for one in all {
        ratios = one.ratio.map_or(ratios, |ratio| ratios.max(length(ratio)));
        ends = one.interval.map_or(ends, |(low, high)| ends.max(length(low)).max(length(high)));
    }
    ends.min(ratios.max(std::f64::consts::LN_2) * 1.5).max(ratios) * 1.1
}

/// Where a ratio is in a picture of ratios that is 200 wide.
fn x(ratio: f64, reach: f64) -> f64 {
    (0.5 + 0.48 * (ratio.max(1e-9).ln() / reach).clamp(-1.0, 1.0)) * 200.0
}

/// The interval as a line, the ratio as a dot, the margin as a band around "the same".
pub(super) fn whisker(page: &mut Html, of: &Whisker, reach: f64) {
    let x = |ratio: f64| x(ratio, reach);
    let attributes = [("viewBox", "0 0 200 20"), ("class", "whisker"), ("aria-hidden", "true")];
    page.inside("svg", &attributes, |page| {
        let (from, to) = (x(1.0 - of.margin), x(1.0 + of.margin));
        let margin = format!("M{from:.1} 0H{to:.1}V20H{from:.1}z");
        page.inside("path", &[("class", "margin"), ("d", &margin)], |_| {});
        let lines: String = ticks(reach).into_iter().map(|ratio| format!("M{:.1} 0V20", x(ratio))).collect();
        page.inside("path", &[("class", "axis"), ("d", &format!("M4 10H196{lines}"))], |_| {});
        page.inside("path", &[("class", "same"), ("d", "M100 0V20")], |_| {});
        if let Some((low, high)) = of.interval {
            let end = |ratio: f64| {
                let (at, back) = (x(ratio), if ratio < 1.0 { 5.0 } else { -5.0 });
                let goes_on = ratio.max(1e-9).ln().abs() > reach;
                if goes_on { format!("m{back} -4L{at:.1} 10l{back} 4") } else { format!("M{at:.1} 6V14") }
            };
            let line = format!("M{:.1} 10{}M{:.1} 10H{:.1}{}", x(low), end(low), x(low), x(high), end(high));
            page.inside("path", &[("class", "interval"), ("d", &line)], |_| {});
        }
        if let Some(ratio) = of.ratio {
            page.empty("circle", &[("cx", &format!("{:.1}", x(ratio))), ("cy", "10"), ("r", "4")]);
        }
    });
}

/// The labels of the ticks of a picture of ratios.
pub(super) fn scale(page: &mut Html, reach: f64) {
    let attributes = [("viewBox", "0 0 200 14"), ("class", "whisker scale"), ("aria-hidden", "true")];
    page.inside("svg", &attributes, |page| {
        for ratio in ticks(reach).into_iter().chain([1.0]) {
            page.element("text", &[("x", &format!("{:.1}", x(ratio, reach))), ("y", "11")], &words(ratio));
        }
    });
}

/// The label of a tick.
fn words(ratio: f64) -> String {
    match ratio {
        1.0 => "same".to_owned(),
        2.0.. => format!("×{ratio}"),
        _ => format!("{:+.0}%", (ratio - 1.0) * 100.0),
    }
}

/// The ratios that have a tick, on each side the farthest first.
fn ticks(reach: f64) -> Vec<f64> {
    let mut ticks: Vec<f64> = Vec::new();
    let (faster, slower) = TICKS.split_at(TICKS.len() / 2);
    for side in [faster.to_vec(), slower.iter().rev().copied().collect()] {
        // There is no label at the end yet, and "same" is in the middle.
        let mut last = f64::INFINITY;
        for ratio in side {
            let at = ratio.ln().abs() / reach;
            if at <= FARTHEST && last - at >= APART && at >= APART {
                ticks.push(ratio);
                last = at;
            }
        }
    }
    ticks
}

/// A bar for each third of an octave or so; values beyond the axis are counted at its ends.
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
        // Anything that is not zero is visible.
        let height = (*count as f64 / highest * HEIGHT).max(1.0);
        path.push_str(&format!("M{:.1} {HEIGHT}v{:.1}h{:.1}v{:.1}z", at as f64 * bar, -height, bar, height));
    }
    let words = match (histogram.buckets().first(), histogram.buckets().last()) {
        (Some(first), Some(last)) => {
            format!(
                "{} between {} and {}",
                counted(histogram.count(), "call", "calls"),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// However far it extends: a label is as wide as its characters, at most 7.5 units each in the browser that the tests drive.
    #[test]
    fn the_words_of_a_scale_stand_within_the_picture() {
        for reach in (1..3000).map(|step| f64::from(step) / 500.0) {
            for ratio in ticks(reach) {
                let (at, half) = (x(ratio, reach), words(ratio).chars().count() as f64 * 7.5 / 2.0);
                assert!(at - half >= 0.0 && at + half <= 200.0, "{} at {at} with reach {reach}", words(ratio));
            }
        }
    }
}
