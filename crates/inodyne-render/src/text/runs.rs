//! All runs of a case, where there are several: smallest, middle and largest value. Nothing is dropped.

use inodyne_model::Nanos;
use inodyne_model::run::Run;

use super::Page;
use super::case::Case;
use crate::line::{Span, Style};
use crate::table::{Align, Table};
use crate::units::{bytes, duration, seconds};

pub(super) fn show(page: &mut Page, case: &Case<'_>) {
    let untraced: Vec<&Run> = case.untraced().collect();
    if case.runs.len() < 2 || untraced.is_empty() {
        return;
    }
    page.heading(&format!("Runs: {} untraced, {} traced", untraced.len(), case.runs.len() - untraced.len()));
    let columns = [("", Align::Left), ("min", Align::Right), ("median", Align::Right), ("max", Align::Right)];
    let mut table = Table::new(columns);
    let whole = untraced.iter().map(|run| run.wall_ns).max().unwrap_or_default();
    let in_seconds = |ns: u64| seconds(Nanos(ns), whole);
    table.row(spread("wall s", &untraced, |run| run.wall_ns.0, in_seconds));
    table.row(spread("user s", &untraced, |run| run.user_ns.0, in_seconds));
    table.row(spread("system s", &untraced, |run| run.sys_ns.0, in_seconds));
    table.row(spread("switches, voluntary", &untraced, |run| run.voluntary_switches, |n| n.to_string()));
    table.row(spread("largest memory", &untraced, |run| run.max_rss_bytes, bytes));
    if untraced.iter().all(|run| run.device_read_bytes.is_some()) {
        table.row(spread("read from device", &untraced, |run| run.device_read_bytes.unwrap_or_default(), bytes));
        table.row(spread("written to device", &untraced, |run| run.device_write_bytes.unwrap_or_default(), bytes));
    }
    page.table(table);
    let traced: Vec<_> = case.runs.iter().filter(|run| run.traced).map(|run| duration(run.wall_ns)).collect();
    if !traced.is_empty() {
        page.paragraph("  ".into(), &format!("traced: {}", traced.join(", ")), Style::Dim);
    }
}

fn spread(name: &str, runs: &[&Run], value: impl Fn(&Run) -> u64, show: impl Fn(u64) -> String) -> [Span; 4] {
    let mut values: Vec<u64> = runs.iter().map(|run| value(run)).collect();
    values.sort_unstable();
    let middle = values[(values.len() - 1) / 2].midpoint(values[values.len() / 2]);
    [name.into(), show(values[0]).into(), show(middle).into(), show(values[values.len() - 1]).into()]
}
