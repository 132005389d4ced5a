//! How the runs of the cases that were compared spread, side by side, and what about them asks for a second look.

use inodyne_model::Nanos;
use inodyne_model::recording::Recording;
use inodyne_model::statistics::{RunStatistics, Spread};

use super::case::Case;
use super::page::{Block, Page};
use super::runs::shape;
use crate::flags;
use crate::line::{Span, Style};
use crate::names;
use crate::table::{Align, Table};
use crate::units::seconds;

pub(super) fn show(page: &mut Page, recording: &Recording, cases: &[Case<'_>]) {
    let found: Vec<(&Case<'_>, &RunStatistics)> =
        cases.iter().filter_map(|case| Some((case, case.statistics()?))).collect();
    if found.is_empty() {
        return;
    }
    page.heading("Untraced runs, in seconds");
    let has_caches = found.iter().any(|(case, _)| case.cache() != found[0].0.cache());
    let name = |case: &Case<'_>| {
        let name = names::case(recording, case.key.0, case.key.1);
        if has_caches { format!("{name}, {}", case.cache()) } else { name }
    };
    let has_durable = found.iter().any(|(_, found)| found.durable.is_some());
    let right = |heading| (heading, Align::Right);
    let mut columns = vec![("", Align::Left)];
    if has_durable {
        columns.push(("", Align::Left));
    }
    columns.extend([right("n"), right("min"), right("mean"), right("median"), right("max"), right("sd")]);
    columns.push(("", Align::Left));
    let mut table = Table::new(columns).yielding(0);
    let durable = |found: &RunStatistics| found.durable.as_ref().map(|times| times.spread.max_ns);
    let longest = |(_, found): &(&Case<'_>, &RunStatistics)| found.wall.max_ns.max(durable(found).unwrap_or_default());
    let whole = found.iter().map(longest).max().unwrap_or_default();
    for (case, found) in &found {
        let name = Span::from(name(case));
        let to_exit = has_durable.then_some("to exit");
        table.row(row(name, to_exit, &found.wall, whole));
        if let Some(durable) = &found.durable {
            table.row(row(Span::default(), Some("to durable"), &durable.spread, whole));
        }
    }
    page.table(table);
    for (case, found) in &found {
        for flag in flags::all(recording, found) {
            page.add(Block::Flag(format!("{}: {flag}", name(case))));
        }
    }
}

fn row(name: Span, until: Option<&str>, spread: &Spread, whole: Nanos) -> Vec<Span> {
    let Spread { n, min_ns, mean_ns, median_ns, max_ns, sd_ns, .. } = *spread;
    let times = [min_ns, mean_ns, median_ns, max_ns, sd_ns].map(|ns| Span::from(seconds(ns, whole)));
    let mut cells = vec![name];
    cells.extend(until.map(|until| Span::new(until, Style::Dim)));
    cells.push(n.to_string().into());
    cells.extend(times);
    cells.push(shape(spread));
    cells
}
