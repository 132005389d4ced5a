//! Journals and logs of file systems: how often they were committed, how much that was, how long it took.

use inodyne_model::Nanos;
use inodyne_model::block::{Journal, JournalKind};
use inodyne_model::recording::Recording;
use inodyne_model::trace::Trace;

use super::block::Page;
use super::case::Case;
use super::definition::{Definition, Show};
use super::table::{Column, Records, Table};
use super::value::{Cell, Value};

pub(super) const SECTION: Definition = Definition { name: "journals", unasked: true, show: Show::Case(show), records };

/// Above a table of them.
pub(super) const HEADING: &str = "Journals, each commit on average";

fn show<'a>(page: &mut Page<'a>, case: &Case<'a>) {
    let Some(trace) = case.trace.filter(|trace| !trace.journals.is_empty()) else { return };
    page.heading(HEADING);
    page.table(table(&trace.journals, trace.wall_ns));
}

fn table(journals: &[Journal], wall: Nanos) -> Table {
    let mut table = Table::new("journals", [Column::text("device").naming()].into_iter().chain(columns()));
    for journal in journals {
        table.row([Cell::of(&journal.name)].into_iter().chain(cells(journal, wall)));
    }
    table
}

/// The journals of several traces, each with the name of its case.
pub(super) fn beside(traces: &[(String, &Trace)]) -> Option<Table> {
    let names = [Column::text("").naming().yielding(), Column::text("device").wide()];
    let mut table = Table::new("journals", names.into_iter().chain(columns()));
    for (name, trace) in traces {
        for journal in trace.journals.iter().filter(|journal| journal.commits > 0) {
            let names = [Cell::of(name), Cell::of(&journal.name)];
            table.row(names.into_iter().chain(cells(journal, trace.wall_ns)));
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The columns about a journal, except for whose it is.
fn columns() -> [Column; 11] {
    [
        Column::text("journal"),
        Column::number("commits"),
        Column::number("every"),
        Column::number("handles"),
        Column::number("blocks"),
        Column::number("locked"),
        Column::number("flushed"),
        Column::number("logged"),
        Column::number("longest").wide(),
        Column::number("checkpointed").wide(),
        Column::number("waits for space").wide(),
    ]
}

fn cells(journal: &Journal, wall: Nanos) -> [Cell; 11] {
    // If there was no commit, as where only a checkpoint wrote, there is no mean of any.
    let each = |sum: Option<u64>| {
        sum.filter(|_| journal.commits > 0).map_or_else(Cell::nothing, |sum| Cell::of(tenths(sum, journal.commits)))
    };
    let mean = |sum: Option<Nanos>| {
        sum.and_then(|sum| sum.0.checked_div(journal.commits)).map_or_else(Cell::nothing, |mean| Cell::of(Nanos(mean)))
    };
    let count = |count: Option<u64>| count.map_or_else(Cell::nothing, |count| Cell::grouped(count).blank_if_zero());
    let longest = journal.longest_ns.filter(|_| journal.commits > 0).map_or_else(Cell::nothing, Cell::of);
    let kind = match journal.kind {
        JournalKind::Jbd2 => "jbd2",
        JournalKind::XfsLog => "XFS log",
        JournalKind::Btrfs => "btrfs",
    };
    [
        Cell::of(kind),
        Cell::grouped(journal.commits),
        mean(Some(wall)),
        each(journal.handles),
        each(journal.blocks),
        mean(journal.locked_ns),
        mean(journal.flushing_ns),
        mean(journal.logging_ns),
        longest,
        count(journal.checkpointed),
        count(journal.waits_for_space),
    ]
}

/// A mean with one decimal.
fn tenths(sum: u64, count: u64) -> Value {
    Value::Text(format!("{:.1}", sum as f64 / count as f64))
}

/// A row for each journal or log.
fn records(recording: &Recording) -> Records {
    let columns = [
        "device",
        "name",
        "kind",
        "commits",
        "handles",
        "blocks",
        "locked_ns",
        "flushing_ns",
        "logging_ns",
        "longest_ns",
        "checkpoints",
        "checkpointed",
        "forces",
        "waits_for_space",
    ];
    let values = |journal: &Journal| {
        [
            (&journal.device).into(),
            (&journal.name).into(),
            journal.kind.as_str().into(),
            journal.commits.into(),
            journal.handles.into(),
            journal.blocks.into(),
            journal.locked_ns.into(),
            journal.flushing_ns.into(),
            journal.logging_ns.into(),
            journal.longest_ns.into(),
            journal.checkpoints.into(),
            journal.checkpointed.into(),
            journal.forces.into(),
            journal.waits_for_space.into(),
        ]
    };
    Records::of_traces(recording, columns, |trace| trace.journals.iter().map(values).collect())
}

#[cfg(test)]
mod tests {
    use inodyne_model::sample;

    use super::*;

    #[test]
    fn of_no_commit_there_is_no_mean() {
        let none = Some(Nanos::ZERO);
        let times =
            Journal { locked_ns: none, flushing_ns: none, logging_ns: none, longest_ns: none, ..sample::journal() };
        let only_checkpoints = Journal { commits: 0, handles: Some(0), blocks: Some(0), each: Vec::new(), ..times };
        let written = cells(&only_checkpoints, sample::ms(100.0)).map(|cell| cell.span().text().to_owned());
        assert_eq!(written, ["jbd2", "0", "", "", "", "", "", "", "", "170", ""]);
    }
}
