//! All runs of a case, where there are several: how they spread, and what about them asks for a second look. Nothing is
//! dropped.

use inodyne_model::Nanos;
use inodyne_model::run::Run;
use inodyne_model::statistics::{RunStatistics, Spread};

use super::case::Case;
use super::page::{Block, Page};
use crate::flags;
use crate::line::{Span, Style};
use crate::table::{Align, Table};
use crate::units::{bytes, columns as sparkline, duration, seconds};

/// The traced runs that are listed one by one.
const MOST_TRACED: usize = 8;
/// With fewer runs the shape of their distribution says nothing.
const LEAST_FOR_SHAPE: usize = 5;
/// At most so many calls are shown; the JSON has all.
const MOST_CALLS: usize = 12;

pub(super) fn show(page: &mut Page, case: &Case<'_>) {
    let untraced: Vec<&Run> = case.untraced().collect();
    if case.runs.len() < 2 || untraced.is_empty() {
        return;
    }
    page.heading(&heading(case));
    let statistics = case.statistics();
    page.table(table(&untraced, statistics));
    if let Some(found) = statistics {
        let durable = found.durable.as_ref().map(|times| ("to durable", &times.spread));
        let to_exit = if durable.is_some() { "to exit" } else { "wall" };
        for (name, spread) in [(to_exit, &found.wall)].into_iter().chain(durable) {
            if spread.n >= LEAST_FOR_SHAPE {
                let ends = format!("  {name} from {} to {}: ", duration(spread.min_ns), duration(spread.max_ns));
                page.line([Span::new(ends, Style::Dim), shape(spread)]);
            }
        }
        for flag in flags::all(case.recording, found) {
            page.add(Block::Flag(flag));
        }
    }
    let traced: Vec<_> = case.runs.iter().filter(|run| run.traced).map(|run| duration(run.wall_ns)).collect();
    if !traced.is_empty() {
        let more = if traced.len() > MOST_TRACED { ", …" } else { "" };
        let shown = traced[..traced.len().min(MOST_TRACED)].join(", ");
        page.paragraph("  ".into(), &format!("traced: {shown}{more}"), Style::Dim);
    }
    if let Some(found) = statistics.filter(|found| !found.calls.is_empty()) {
        calls(page, found);
    }
}

/// How many runs there are of which kind.
pub(crate) fn heading(case: &Case<'_>) -> String {
    let untraced = case.untraced().count();
    format!("Runs: {untraced} untraced, {} traced", case.runs.len() - untraced)
}

/// What was measured of untraced runs, of which there has to be one.
pub(crate) fn table(untraced: &[&Run], statistics: Option<&RunStatistics>) -> Table {
    let right = |heading| (heading, Align::Right);
    let mut table =
        Table::new([("", Align::Left), right("min"), right("mean"), right("median"), right("max"), right("sd")]);
    let durable = statistics.and_then(|found| found.durable.as_ref()).map(|times| &times.spread);
    let whole = untraced.iter().map(|run| run.durable_ns.unwrap_or(run.wall_ns)).max().unwrap_or_default();
    let in_seconds = |ns: u64| seconds(Nanos(ns), whole);
    type Value = fn(&Run) -> u64;
    let row = |table: &mut Table, name: &str, value: Value, show: &dyn Fn(u64) -> String| {
        table.row(spread(name, untraced, value, show));
    };
    row(&mut table, if durable.is_some() { "to exit s" } else { "wall s" }, |run| run.wall_ns.0, &in_seconds);
    if let Some(spread) = durable {
        let Spread { n, min_ns, mean_ns, median_ns, max_ns, sd_ns, .. } = *spread;
        let name = if n < untraced.len() { format!("to durable s, {n} runs") } else { "to durable s".to_owned() };
        let times = [min_ns, mean_ns, median_ns, max_ns, sd_ns].map(|ns| Span::from(seconds(ns, whole)));
        table.row([name.into()].into_iter().chain(times));
    }
    row(&mut table, "user s", |run| run.user_ns.0, &in_seconds);
    row(&mut table, "system s", |run| run.sys_ns.0, &in_seconds);
    row(&mut table, "switches, voluntary", |run| run.voluntary_switches, &|n| n.to_string());
    row(&mut table, "largest memory", |run| run.max_rss_bytes, &bytes);
    if untraced.iter().all(|run| run.device_read_bytes.is_some()) {
        row(&mut table, "read from device", |run| run.device_read_bytes.unwrap_or_default(), &bytes);
        row(&mut table, "written to device", |run| run.device_write_bytes.unwrap_or_default(), &bytes);
    }
    table
}

fn spread(name: &str, runs: &[&Run], value: impl Fn(&Run) -> u64, show: &dyn Fn(u64) -> String) -> Vec<Span> {
    let mut values: Vec<u64> = runs.iter().map(|run| value(run)).collect();
    values.sort_unstable();
    let count = values.len() as f64;
    let mean = values.iter().map(|v| *v as f64).sum::<f64>() / count;
    let squares: f64 = values.iter().map(|v| (*v as f64 - mean).powi(2)).sum();
    let deviation = (squares / (count - 1.0).max(1.0)).sqrt();
    let middle = values[(values.len() - 1) / 2].midpoint(values[values.len() / 2]);
    let shown = [values[0], mean.round() as u64, middle, values[values.len() - 1], deviation.round() as u64];
    std::iter::once(name.into()).chain(shown.map(|value| Span::from(show(value)))).collect()
}

/// How values lie between the least and the largest; nothing where there are too few.
pub(super) fn shape(spread: &Spread) -> Span {
    let counts: Vec<u64> = spread.histogram.iter().map(|bucket| bucket.count).collect();
    let shape = if spread.n >= LEAST_FOR_SHAPE { sparkline(&counts) } else { String::new() };
    Span::new(shape, Style::Shape)
}

fn calls(page: &mut Page, found: &RunStatistics) {
    let runs = found.calls[0].wall.n;
    page.heading(&format!("System calls over {runs} traced runs, seconds in a run"));
    let right = |heading| (heading, Align::Right);
    let columns =
        [("", Align::Left), right("min"), right("mean"), right("median"), right("max"), right("sd"), ("", Align::Left)];
    let mut table = Table::new(columns).yielding(0);
    let whole = found.calls.iter().map(|call| call.wall.max_ns).max().unwrap_or_default();
    for call in found.calls.iter().take(MOST_CALLS) {
        let Spread { min_ns, mean_ns, median_ns, max_ns, sd_ns, .. } = call.wall;
        let times = [min_ns, mean_ns, median_ns, max_ns, sd_ns].map(|ns| Span::from(seconds(ns, whole)));
        table.row([Span::from(call.name.as_str())].into_iter().chain(times).chain([shape(&call.wall)]));
    }
    page.table(table);
}
