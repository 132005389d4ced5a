//! All runs as dots on one axis: untraced ones full, traced ones hollow, with the median and its interval, and beneath them the
//! interval that a finding predicts. Nothing is left out.

use inodyne_model::Nanos;
use inodyne_model::finding::Finding;
use inodyne_model::run::Run;
use inodyne_model::statistics::RunStatistics;

use super::builder::{Attribute, Html};
use crate::report::case::Case;
use crate::units::{duration, duration_beside};

/// In per cent of the width, so that dots at the ends are not cut off.
const MARGIN: f64 = 1.5;
/// In pixels.
const HEIGHT: f64 = 52.0;
/// From here on, in per cent, the label of a tick would extend past the end.
const LAST: f64 = 90.0;
/// The labels of this many fit on a narrow screen.
const MOST_TICKS: u64 = 4;
/// Dots that would overlap are spread over this many lines.
const LINES: usize = 3;

/// The runs of these cases, which have these numbers in the page, on one axis.
pub(super) fn show(page: &mut Html, cases: &[(usize, Case<'_>)]) {
    let findings = || cases.iter().flat_map(|(_, case)| predicted(case));
    let longest_predicted = findings().map(|finding| finding.predicted.high_ns);
    let runs = cases.iter().flat_map(|(_, case)| &case.runs).map(|run| run.wall_ns);
    let axis = Axis { longest: runs.chain(longest_predicted).max().unwrap_or_default() };
    page.inside("p", &[("class", "dim")], |page| {
        page.text(&format!("Wall-clock time from 0 to {}. ", duration(axis.longest)));
        page.text("● untraced, ○ traced, │ median of the untraced with its 95% interval");
        if findings().next().is_some() {
            page.text(", ▬ predicted if fixed");
        }
        page.text(". Every run is shown.");
    });
    for (number, case) in cases {
        one(page, case, *number, &axis);
    }
    page.inside("div", &[("class", "dots")], |page| {
        page.inside("svg", &[("class", "scale"), ("aria-hidden", "true")], |page| {
            for tick in axis.ticks() {
                let words = if tick == Nanos::ZERO { "0".to_owned() } else { axis.time(tick) };
                // A label at the end ends there.
                let class = if axis.percent(tick) > LAST { "last" } else { "" };
                page.element("text", &[("class", class), ("x", &axis.at(tick)), ("y", "11")], &words);
            }
        });
    });
}

/// The findings that predict a time. If anything speaks against predictions, the report makes none.
fn predicted<'a>(case: &Case<'a>) -> impl Iterator<Item = &'a Finding> {
    let is_told = case.doubts().is_empty();
    case.findings.iter().copied().filter(move |finding| is_told && !finding.bound)
}

/// From zero to the longest time, the same for all cases.
struct Axis {
    longest: Nanos,
}

impl Axis {
    fn percent(&self, ns: Nanos) -> f64 {
        MARGIN + ns.share_of(self.longest) * (100.0 - 2.0 * MARGIN)
    }

    fn at(&self, ns: Nanos) -> String {
        format!("{:.3}%", self.percent(ns))
    }

    /// Round times, evenly spaced between zero and the longest: 1, 2 or 5 times a power of ten apart.
    fn ticks(&self) -> impl Iterator<Item = Nanos> {
        let least = self.longest.0 / MOST_TICKS;
        let powers = std::iter::successors(Some(1u64), |power| power.checked_mul(10));
        let step =
            powers.flat_map(|power| [1, 2, 5].map(|times| power.saturating_mul(times))).find(|step| *step > least);
        let step = step.unwrap_or(u64::MAX);
        (0..=self.longest.0 / step).map(move |at| Nanos(at * step))
    }

    fn time(&self, ns: Nanos) -> String {
        duration_beside(ns, self.longest)
    }
}

fn one(page: &mut Html, case: &Case<'_>, number: usize, axis: &Axis) {
    let statistics = case.statistics();
    let words = statistics.map_or_else(|| format!("{} traced", axis.time(case.wall())), |found| in_words(found, axis));
    page.inside("div", &[("class", "dots")], |page| {
        page.inside("p", &[], |page| {
            let name = format!("{} on {} ({})", case.command(), case.place_name(), case.cache());
            page.element("a", &[("href", &format!("#case-{number}"))], &name);
            page.text(&format!(": {words}"));
        });
        page.inside("svg", &[("role", "img"), ("aria-label", &words)], |page| {
            let y = format!("{:.1}", HEIGHT - 8.0);
            page.empty("line", &[("class", "axis"), ("x1", "0"), ("x2", "100%"), ("y1", &y), ("y2", &y)]);
            for tick in axis.ticks() {
                let x = axis.at(tick);
                page.empty("line", &[("class", "axis"), ("x1", &x), ("x2", &x), ("y1", "0"), ("y2", &y)]);
            }
            predicted(case).for_each(|finding| band(page, finding, axis));
            if let Some(found) = statistics {
                middle(page, found, axis);
            }
            for (at, run) in case.runs.iter().enumerate() {
                dot(page, run, at, axis);
            }
        });
    });
}

fn in_words(found: &RunStatistics, axis: &Axis) -> String {
    let wall = &found.wall;
    if wall.n == 1 {
        return format!("{} in one untraced run", axis.time(wall.median_ns));
    }
    let interval = found
        .median_interval()
        .map_or_else(String::new, |(low, high)| format!(" [{}, {}]", axis.time(low), axis.time(high)));
    let (least, most) = (axis.time(wall.min_ns), axis.time(wall.max_ns));
    format!("median {}{interval} of {} untraced runs between {least} and {most}", axis.time(wall.median_ns), wall.n)
}

fn band(page: &mut Html, finding: &Finding, axis: &Axis) {
    let (low, high) = (finding.predicted.low_ns, finding.predicted.high_ns);
    let width = format!("{:.3}%", (axis.percent(high) - axis.percent(low)).max(0.2));
    let y = format!("{:.1}", HEIGHT - 6.0);
    let attributes: [Attribute<'_>; 5] =
        [("class", "predicted"), ("x", &axis.at(low)), ("y", &y), ("width", &width), ("height", "6")];
    let title = format!("{}: {} to {}", finding.id, axis.time(low), axis.time(high));
    page.inside("rect", &attributes, |page| page.element("title", &[], &title));
}

/// The median, with its interval around it.
fn middle(page: &mut Html, found: &RunStatistics, axis: &Axis) {
    let bottom = format!("{:.1}", HEIGHT - 8.0);
    if let Some((low, high)) = found.median_interval() {
        let width = format!("{:.3}%", (axis.percent(high) - axis.percent(low)).max(0.2));
        let tall = format!("{:.1}", HEIGHT - 10.0);
        let attributes: [Attribute<'_>; 5] =
            [("class", "interval"), ("x", &axis.at(low)), ("y", "2"), ("width", &width), ("height", &tall)];
        page.empty("rect", &attributes);
    }
    let x = axis.at(found.wall.median_ns);
    page.empty("line", &[("class", "median"), ("x1", &x), ("x2", &x), ("y1", "2"), ("y2", &bottom)]);
}

fn dot(page: &mut Html, run: &Run, at: usize, axis: &Axis) {
    let kind = if run.traced { "traced" } else { "untraced" };
    let failed = if run.exit.success() { "" } else { " failed" };
    let title = format!("{} {kind}{failed}, block {}", axis.time(run.wall_ns), run.block);
    let (class, y) = (format!("{kind}{failed}"), format!("{:.1}", 10.0 + (at % LINES) as f64 * 12.0));
    let attributes: [Attribute<'_>; 4] = [("class", &class), ("cx", &axis.at(run.wall_ns)), ("cy", &y), ("r", "4.5")];
    page.inside("circle", &attributes, |page| page.element("title", &[], &title));
}
