//! All runs as dots on one axis: untraced ones full, traced ones hollow, with the median, and beneath them the interval that a
//! finding predicts. Nothing is left out.

use inodyne_model::Nanos;
use inodyne_model::run::median;

use super::builder::Html;
use crate::text::case::Case;
use crate::units::duration_beside;

const WIDTH: f64 = 1000.0;
const MARGIN: f64 = 12.0;
const HEIGHT: f64 = 44.0;
/// Dots that would lie on each other are put on this many lines.
const LINES: usize = 3;

pub(super) fn show(page: &mut Html, cases: &[Case<'_>]) {
    if cases.iter().all(|case| case.runs.len() < 2) && cases.len() < 2 {
        return;
    }
    let predicted = cases.iter().flat_map(|case| &case.findings).map(|finding| finding.predicted.high_ns);
    let runs = cases.iter().flat_map(|case| &case.runs).map(|run| run.wall_ns);
    let longest = runs.chain(predicted).max().unwrap_or_default();
    page.inside("section", &[("id", "runs")], |page| {
        page.element("h2", &[], "Runs");
        page.inside("p", &[("class", "dim")], |page| {
            page.text(&format!("Wall-clock time from 0 to {}. ", duration_beside(longest, longest)));
            page.text("● untraced, ○ traced, │ median of the untraced, ▬ predicted once cured. Every run is shown.");
        });
        for (number, case) in cases.iter().enumerate() {
            one(page, case, number, longest);
        }
    });
}

fn one(page: &mut Html, case: &Case<'_>, number: usize, longest: Nanos) {
    let time = |ns| duration_beside(ns, longest);
    let x = |ns: Nanos| MARGIN + ns.share_of(longest) * (WIDTH - 2.0 * MARGIN);
    let mut walls: Vec<Nanos> = case.untraced().map(|run| run.wall_ns).collect();
    walls.sort_unstable();
    let words = match (median(&walls), walls.first(), walls.last()) {
        (Some(middle), Some(least), Some(most)) if walls.len() > 1 => {
            format!("median {} [{} to {}] of {} untraced runs", time(middle), time(*least), time(*most), walls.len())
        }
        (Some(only), ..) => format!("{} in one untraced run", time(only)),
        (None, ..) => format!("{} traced", time(case.wall())),
    };
    page.inside("div", &[("class", "dots")], |page| {
        page.inside("p", &[], |page| {
            let name = format!("{} on {} ({})", case.command(), case.place_name(), case.cache());
            page.element("a", &[("href", &format!("#case-{number}"))], &name);
            page.text(&format!(": {words}"));
        });
        let view = format!("0 0 {WIDTH} {HEIGHT}");
        let attributes = [
            ("viewBox", view.as_str()),
            ("preserveAspectRatio", "none"),
            ("role", "img"),
            ("aria-label", words.as_str()),
        ];
        page.inside("svg", &attributes, |page| {
            let line = format!("M{MARGIN} {y}H{right}", y = HEIGHT - 4.0, right = WIDTH - MARGIN);
            page.inside("path", &[("class", "axis"), ("d", &line)], |_| {});
            for finding in &case.findings {
                let (low, high) = (x(finding.predicted.low_ns), x(finding.predicted.high_ns));
                let title = format!(
                    "{}: {} to {}",
                    finding.id,
                    time(finding.predicted.low_ns),
                    time(finding.predicted.high_ns)
                );
                let band = [
                    ("class", "predicted".to_owned()),
                    ("x", format!("{low:.1}")),
                    ("y", format!("{:.1}", HEIGHT - 7.0)),
                    ("width", format!("{:.1}", (high - low).max(1.0))),
                    ("height", "6".to_owned()),
                ];
                let band: Vec<_> = band.iter().map(|(name, value)| (*name, value.as_str())).collect();
                page.inside("rect", &band, |page| page.element("title", &[], &title));
            }
            if let Some(middle) = median(&walls) {
                let tick = format!("M{:.1} 2V{:.1}", x(middle), HEIGHT - 4.0);
                page.inside("path", &[("class", "median"), ("d", &tick)], |_| {});
            }
            for (at, run) in case.runs.iter().enumerate() {
                let y = format!("{:.1}", 9.0 + (at % LINES) as f64 * 11.0);
                let kind = if run.traced { "traced" } else { "untraced" };
                let failed = if run.exit.success() { "" } else { " failed" };
                let title = format!("{} {kind}{failed}, block {}", time(run.wall_ns), run.block);
                let dot = [
                    ("class", format!("{kind}{failed}")),
                    ("cx", format!("{:.1}", x(run.wall_ns))),
                    ("cy", y),
                    ("r", "4.5".to_owned()),
                ];
                let dot: Vec<_> = dot.iter().map(|(name, value)| (*name, value.as_str())).collect();
                page.inside("circle", &dot, |page| page.element("title", &[], &title));
            }
        });
    });
}
