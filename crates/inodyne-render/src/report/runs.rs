//! All runs of a case, if there are several: how they spread, and what about them deserves a second look. Nothing is
//! dropped.

use std::collections::HashSet;

use inodyne_model::Nanos;
use inodyne_model::case::CaseKey;
use inodyne_model::recording::Recording;
use inodyne_model::run::{Exit, Run};
use inodyne_model::statistics::{RunStatistics, Spread};
use inodyne_model::trace::Trace;

use super::block::{Block, Page};
use super::case::Case;
use super::definition::{Definition, Show};
use super::flags;
use super::names;
use super::table::{Column, Records, RowKind, Table};
use super::value::{Cell, Value};
use crate::line::{Span, Style};
use crate::units::{counted, duration, unit};

pub(super) const SECTION: Definition = Definition { name: "runs", unasked: true, show: Show::Case(show), records };

/// The traced runs that are listed one by one.
const MOST_TRACED: usize = 8;
/// With fewer runs the shape of their distribution says nothing.
const LEAST_FOR_SHAPE: usize = 5;
/// At most this many calls are shown; the JSON has all.
const MOST_CALLS: usize = 12;

pub(super) fn show<'a>(page: &mut Page<'a>, case: &Case<'a>) {
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
                page.line([Span::new(ends, Style::Dim), shape(spread).span()]);
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

/// How many runs there are of each kind.
fn heading(case: &Case<'_>) -> String {
    let untraced = case.untraced().count();
    format!("Runs: {untraced} untraced, {} traced", case.runs.len() - untraced)
}

/// What was measured in untraced runs; there has to be at least one.
fn table(untraced: &[&Run], statistics: Option<&RunStatistics>) -> Table {
    let numbers = ["min", "mean", "median", "max", "sd"].map(Column::number);
    let mut table = Table::new("runs", std::iter::once(Column::text("").naming()).chain(numbers));
    let durable = statistics.and_then(|found| found.durable.as_ref()).map(|times| &times.spread);
    let whole = untraced.iter().map(|run| run.durable_ns.unwrap_or(run.wall_ns)).max().unwrap_or_default();
    let scaled = |ns: u64| Cell::scaled(Nanos(ns), whole);
    let in_bytes = |size: u64| Cell::of(Value::Bytes(size));
    type Of = fn(&Run) -> u64;
    let row = |table: &mut Table, name: &str, of: Of, cell: &dyn Fn(u64) -> Cell| {
        table.row(spread(name, untraced, of, cell));
    };
    let name = |of: &str| format!("{of} {}", unit(whole));
    row(&mut table, &name(if durable.is_some() { "to exit" } else { "wall" }), |run| run.wall_ns.0, &scaled);
    if let Some(spread) = durable {
        let Spread { n, min_ns, mean_ns, median_ns, max_ns, sd_ns, .. } = *spread;
        let of_some =
            if n < untraced.len() { format!(", {}", counted(n as u64, "run", "runs")) } else { String::new() };
        let name = name("to durable") + &of_some;
        let times = [min_ns, mean_ns, median_ns, max_ns, sd_ns].map(|ns| Cell::scaled(ns, whole));
        table.row([Cell::of(name)].into_iter().chain(times));
    }
    row(&mut table, &name("user"), |run| run.usage.user_ns.0, &scaled);
    row(&mut table, &name("system"), |run| run.usage.sys_ns.0, &scaled);
    row(&mut table, "switches, voluntary", |run| run.usage.voluntary_switches, &|n| Cell::of(n));
    row(&mut table, "largest memory", |run| run.usage.max_rss_bytes, &in_bytes);
    if untraced.iter().all(|run| run.device_read_bytes.is_some()) {
        row(&mut table, "read from device", |run| run.device_read_bytes.unwrap_or_default(), &in_bytes);
        row(&mut table, "written to device", |run| run.device_write_bytes.unwrap_or_default(), &in_bytes);
    }
    table
}

fn spread(name: &str, runs: &[&Run], of: impl Fn(&Run) -> u64, cell: &dyn Fn(u64) -> Cell) -> Vec<Cell> {
    let mut values: Vec<u64> = runs.iter().map(|run| of(run)).collect();
    values.sort_unstable();
    let count = values.len() as f64;
    let mean = values.iter().map(|v| *v as f64).sum::<f64>() / count;
    let squares: f64 = values.iter().map(|v| (*v as f64 - mean).powi(2)).sum();
    let deviation = (squares / (count - 1.0).max(1.0)).sqrt();
    let middle = values[(values.len() - 1) / 2].midpoint(values[values.len() / 2]);
    let shown = [values[0], mean.round() as u64, middle, values[values.len() - 1], deviation.round() as u64];
    std::iter::once(Cell::of(name)).chain(shown.map(cell)).collect()
}

/// How values are distributed between the smallest and the largest; nothing if there are too few.
pub(super) fn shape(spread: &Spread) -> Cell {
    let counts = spread.histogram.iter().map(|bucket| bucket.count).collect();
    Cell::of(Value::Shape(if spread.n >= LEAST_FOR_SHAPE { counts } else { Vec::new() }))
}

fn calls(page: &mut Page<'_>, found: &RunStatistics) {
    let runs = found.calls[0].wall.n;
    let numbers = ["min", "mean", "median", "max", "sd"].map(Column::number);
    let columns = std::iter::once(Column::text("").naming().yielding()).chain(numbers).chain([Column::text("")]);
    let mut table = Table::new("runs", columns);
    let whole = found.calls.iter().map(|call| call.wall.max_ns).max().unwrap_or_default();
    let runs = counted(runs as u64, "traced run", "traced runs");
    page.heading(&format!("System calls over {runs}, {} in a run, summed over all threads", unit(whole)));
    for (at, call) in found.calls.iter().enumerate() {
        let Spread { min_ns, mean_ns, median_ns, max_ns, sd_ns, .. } = call.wall;
        let times = [min_ns, mean_ns, median_ns, max_ns, sd_ns].map(|ns| Cell::scaled(ns, whole));
        let kind = if at < MOST_CALLS { RowKind::Plain } else { RowKind::Hidden };
        table.push(kind, [Cell::of(&call.name)].into_iter().chain(times).chain([shape(&call.wall)]));
    }
    table.hidden = counted(table.hidden_rows() as u64, "call with less time", "calls with less time");
    page.table(table);
}

/// A row for each run, in chronological order.
fn records(recording: &Recording) -> Records {
    let columns = [
        "run",
        "place",
        "command",
        "cache",
        "block",
        "traced",
        "wall_ns",
        "durable_ns",
        "user_ns",
        "sys_ns",
        "voluntary_switches",
        "involuntary_switches",
        "major_faults",
        "minor_faults",
        "max_rss_bytes",
        "device_read_bytes",
        "device_write_bytes",
        "exit_code",
        "exit_signal",
        "number",
    ];
    let undivided = recording.traces.iter().filter(|trace| !trace.tracer.divides_calls());
    let undivided: HashSet<CaseKey> = undivided.map(Trace::key).collect();
    let rows = recording.runs.iter().enumerate().map(|(number, run)| {
        // Of a run under strace nothing is known of its own: a log does not have it, and the kernel's account includes strace.
        let has_usage = !run.traced || !undivided.contains(&run.key());
        let used = |value: Value| if has_usage { value } else { Value::Nothing };
        let [place, command, cache] = names::values(recording, run.key());
        let (code, signal) = match run.exit {
            Exit::Code(code) => (code.into(), Value::Nothing),
            Exit::Signal(signal) => (Value::Nothing, signal.into()),
        };
        [
            number.into(),
            place,
            command,
            cache,
            run.block.into(),
            run.traced.into(),
            run.wall_ns.into(),
            run.durable_ns.into(),
            used(run.usage.user_ns.into()),
            used(run.usage.sys_ns.into()),
            used(run.usage.voluntary_switches.into()),
            used(run.usage.involuntary_switches.into()),
            used(run.usage.major_faults.into()),
            used(run.usage.minor_faults.into()),
            used(Value::Bytes(run.usage.max_rss_bytes)),
            run.device_read_bytes.map_or(Value::Nothing, Value::Bytes),
            run.device_write_bytes.map_or(Value::Nothing, Value::Bytes),
            code,
            signal,
            run.number.into(),
        ]
    });
    Records::new(columns, rows)
}
