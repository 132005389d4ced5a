//! How the runs of the cases that were compared spread, side by side, and what about them deserves a second look.

use inodyne_model::Nanos;
use inodyne_model::recording::Recording;
use inodyne_model::statistics::{RunStatistics, Spread};

use super::block::{Block, Page};
use super::case::Case;
use super::flags;
use super::names;
use super::runs::shape;
use super::table::{Column, Table};
use super::value::Cell;
use crate::line::Style;
use crate::units::unit;

pub(super) fn show(page: &mut Page<'_>, recording: &Recording, cases: &[Case<'_>]) {
    let found: Vec<(&Case<'_>, &RunStatistics)> =
        cases.iter().filter_map(|case| Some((case, case.statistics()?))).collect();
    if found.is_empty() {
        return;
    }
    let has_caches = found.iter().any(|(case, _)| case.cache() != found[0].0.cache());
    let name = |case: &Case<'_>| {
        let name = names::case(recording, case.key.place, case.key.command);
        if has_caches { format!("{name}, {}", case.cache()) } else { name }
    };
    let has_durable = found.iter().any(|(_, found)| found.durable.is_some());
    let mut columns = vec![Column::text("").naming().yielding()];
    if has_durable {
        columns.push(Column::text(""));
    }
    let keys = ["n", "min_ns", "mean_ns", "median_ns", "max_ns", "sd_ns"];
    let headings = ["n", "min", "mean", "median", "max", "sd"];
    columns.extend(headings.iter().zip(keys).map(|(heading, key)| Column::number(heading).key(key)));
    columns.push(Column::text(""));
    let mut table = Table::new("runs", columns);
    let durable = |found: &RunStatistics| found.durable.as_ref().map(|times| times.spread.max_ns);
    let longest = |(_, found): &(&Case<'_>, &RunStatistics)| found.wall.max_ns.max(durable(found).unwrap_or_default());
    let whole = found.iter().map(longest).max().unwrap_or_default();
    page.heading(&format!("Untraced runs, in {}", unit(whole)));
    for (case, found) in &found {
        let name = Cell::of(name(case));
        let to_exit = has_durable.then_some("to exit");
        table.row(row(name, to_exit, &found.wall, whole));
        if let Some(durable) = &found.durable {
            table.row(row(Cell::nothing(), Some("to durable"), &durable.spread, whole));
        }
    }
    page.table(table);
    for (case, found) in &found {
        for flag in flags::all(recording, found) {
            page.add(Block::Flag(format!("{}: {flag}", name(case))));
        }
    }
}

fn row(name: Cell, until: Option<&str>, spread: &Spread, whole: Nanos) -> Vec<Cell> {
    let Spread { n, min_ns, mean_ns, median_ns, max_ns, sd_ns, .. } = *spread;
    let mut cells = vec![name];
    cells.extend(until.map(|until| Cell::of(until).styled(Style::Dim)));
    cells.push(Cell::of(n));
    cells.extend([min_ns, mean_ns, median_ns, max_ns, sd_ns].map(|ns| Cell::scaled(ns, whole)));
    cells.push(shape(spread));
    cells
}
