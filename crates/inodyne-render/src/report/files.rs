//! The files that were used by descriptor, if they were asked for: those with the most time, the directories that they are in, and
//! those that were read again and again.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use inodyne_model::count::Grouped;
use inodyne_model::files::{FileUse, Files};
use inodyne_model::recording::Recording;

use super::block::{Page, Widget};
use super::case::Case;
use super::definition::{Definition, Show};
use super::directories::{Directory, directories, tree};
use super::file_sum::Sum;
use super::table::{Column, Records, RowKind, Table};
use super::value::{Cell, Value};
use crate::line::{Line, Span, Style};
use crate::units::{bytes, counted, unit};

pub(super) const SECTION: Definition = Definition { name: "files", unasked: true, show: Show::Case(show), records };

/// Rows of the table of files.
const MOST_FILES: usize = 10;

/// Rows of the table of files that were read again.
const MOST_READ_AGAIN: usize = 5;

fn show<'a>(page: &mut Page<'a>, case: &Case<'a>) {
    let Some(files) = case.trace.and_then(|trace| trace.files.as_ref()) else { return };
    let by_path = by_path(files);
    let count: u64 = by_path.iter().map(|(_, sum)| sum.files).sum();
    page.heading(&format!("Files used: {}", Grouped(count)));
    page.table(table_of_files(&by_path));
    page.gap();
    let tree = tree(&by_path);
    page.table(table_of_directories(&directories(&tree)));
    page.widget(Widget::Treemap(tree));
    read_again(page, &by_path);
    let never_read: Vec<&Sum> =
        by_path.iter().map(|(_, sum)| sum).filter(|sum| sum.written > 0 && sum.read == 0).collect();
    if !never_read.is_empty() {
        let written = never_read.iter().fold(0, |all: u64, sum| all.saturating_add(sum.written));
        let count = Grouped(never_read.len() as u64);
        page.line([Span::new(
            format!("  written and not read: {} in {count} of these files", bytes(written)),
            Style::Dim,
        )]);
    }
    if files.not_kept > 0 {
        let calls = counted(files.not_kept, "call", "calls");
        page.line([Span::new(format!("  and {calls} on files that there was no room to record"), Style::Warning)]);
    }
}

/// Each path once, most time first.
fn by_path(files: &Files) -> Vec<(&str, Sum)> {
    let mut sums = BTreeMap::<&str, Sum>::new();
    for file in &files.used {
        let own = Sum::of(file);
        // The same file, used by another command; or several files, one after the other, under the same name.
        let sum = sums.entry(&file.path).or_default();
        let [files, size] = [sum.files.max(own.files), sum.size.max(own.size)];
        sum.add(&own);
        (sum.files, sum.size) = (files, size);
    }
    let mut sums: Vec<(&str, Sum)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| Reverse(sum.wall_ns));
    sums
}

/// A size, or nothing if there is none.
fn size(bytes: u64) -> Cell {
    if bytes > 0 { Cell::of(Value::Bytes(bytes)) } else { Cell::nothing() }
}

fn table_of_files(rows: &[(&str, Sum)]) -> Table {
    let longest = rows.iter().map(|(_, sum)| sum.wall_ns).max().unwrap_or_default();
    let number = |heading: &str| Column::number(heading).sorting();
    let columns = [
        number(&format!("wall {}", unit(longest))),
        number("calls"),
        number("opens").wide(),
        number("syncs").wide(),
        number("read"),
        number("written"),
        Column::text("file, most time first").class("path").sorting().yielding(),
    ];
    let mut table = Table::new("files", columns);
    for (at, (path, sum)) in rows.iter().enumerate() {
        let kind = if at < MOST_FILES { RowKind::Plain } else { RowKind::Hidden };
        let cells = [
            Cell::scaled(sum.wall_ns, longest),
            Cell::grouped(sum.calls),
            Cell::grouped(sum.opens).blank_if_zero(),
            Cell::grouped(sum.syncs).blank_if_zero(),
            size(sum.read),
            size(sum.written),
            Cell::of(*path),
        ];
        table.push(kind, cells);
    }
    table.hidden = format!("{} more", Grouped(table.hidden_rows() as u64));
    table
}

fn table_of_directories(rows: &[Directory]) -> Table {
    let longest = rows.first().map(|row| row.sum.wall_ns).unwrap_or_default();
    let columns = [
        Column::number(&format!("wall {}", unit(longest))),
        Column::number("files"),
        Column::number("read"),
        Column::number("written"),
        Column::text("directory, with all below it").class("path").yielding(),
    ];
    let mut table = Table::new("directories", columns);
    for Directory { depth, name, sum, is_shown } in rows {
        let kind = if *is_shown { RowKind::Plain } else { RowKind::Hidden };
        let indented = format!("{}{name}", "  ".repeat(*depth));
        let (time, files) = (Cell::scaled(sum.wall_ns, longest), Cell::grouped(sum.files).blank_if_zero());
        table.push(kind, [time, files, size(sum.read), size(sum.written), Cell::of(indented)]);
    }
    if table.hidden_rows() > 0 {
        table.hidden = format!("{} more, with less time", Grouped(table.hidden_rows() as u64));
        // They are contained in those that are shown, so their sum would be there twice.
        let words = Cell::of(table.hidden.clone());
        table.rest(std::iter::repeat_with(Cell::nothing).take(4).chain([words]));
    }
    table
}

fn read_again<'a>(page: &mut Page<'a>, by_path: &[(&'a str, Sum)]) {
    let mut again: Vec<&(&str, Sum)> = by_path.iter().filter(|(_, sum)| sum.read_again() > 0).collect();
    if again.is_empty() {
        return;
    }
    again.sort_by_key(|(_, sum)| Reverse(sum.read_again()));
    page.gap();
    let columns = [
        Column::number("read"),
        Column::number("times its size"),
        Column::text("file, read again and again").class("path").yielding(),
    ];
    let mut table = Table::new("files", columns);
    for (at, (path, sum)) in again.iter().enumerate() {
        let kind = if at < MOST_READ_AGAIN { RowKind::Plain } else { RowKind::Hidden };
        table.push(kind, [size(sum.read), Cell::grouped(sum.read / sum.size), Cell::of(*path)]);
    }
    table.hidden = format!("{} more", Grouped(table.hidden_rows() as u64));
    let bytes_again = again.iter().fold(0, |all: u64, (_, sum)| all.saturating_add(sum.read_again()));
    let words = format!("  {} of what was read had been read before", bytes(bytes_again));
    table.below = Some(Line::from([Span::new(words, Style::Dim)]));
    page.table(table);
}

/// A row for each file and command, of traces with `--files`.
fn records(recording: &Recording) -> Records {
    let columns = [
        "path",
        "comm",
        "is_directory",
        "opens",
        "reads",
        "read_bytes",
        "writes",
        "written_bytes",
        "lists",
        "syncs",
        "maps",
        "others",
        "wall_ns",
        "blocked_ns",
        "size",
    ];
    let values = |file: &FileUse| {
        let FileUse { path, comm, is_directory, opens, reads, read_bytes, writes, written_bytes, .. } = file;
        let FileUse { lists, syncs, maps, others, wall_ns, blocked_ns, size, .. } = *file;
        [
            path.into(),
            comm.into(),
            (*is_directory).into(),
            (*opens).into(),
            (*reads).into(),
            Value::Bytes(*read_bytes),
            (*writes).into(),
            Value::Bytes(*written_bytes),
            lists.into(),
            syncs.into(),
            maps.into(),
            others.into(),
            wall_ns.into(),
            blocked_ns.into(),
            Value::Bytes(size),
        ]
    };
    Records::of_traces(recording, columns, |trace| {
        trace.files.iter().flat_map(|files| &files.used).map(values).collect()
    })
}

#[cfg(test)]
mod tests {
    use inodyne_model::Nanos;

    use super::*;

    #[test]
    fn directories_that_are_not_shown_are_counted() {
        let row = |is_shown| Directory {
            depth: 0,
            name: "a".to_owned(),
            sum: Sum { wall_ns: Nanos(1_000), ..Sum::default() },
            is_shown,
        };
        let kinds = |rows: &[Directory]| table_of_directories(rows).rows.iter().map(|row| row.kind).collect::<Vec<_>>();
        assert_eq!(kinds(&[row(true)]), [RowKind::Plain]);
        let rows = [row(true), row(false), row(false)];
        assert_eq!(kinds(&rows), [RowKind::Plain, RowKind::Hidden, RowKind::Hidden, RowKind::Rest]);
        let table = table_of_directories(&rows);
        assert_eq!(table.rows[3].cells.last().map(Cell::written).as_deref(), Some("2 more, with less time"));
        assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()));
    }
}
