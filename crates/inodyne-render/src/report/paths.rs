//! The paths that were looked up, if they were asked for: those with the most time, and the directories with the most calls.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use inodyne_model::Nanos;
use inodyne_model::count::Grouped;
use inodyne_model::recording::Recording;
use inodyne_model::trace::{PathCount, Paths};

use super::block::Page;
use super::case::Case;
use super::definition::{Definition, Show};
use super::table::{Column, Records, RowKind, Table};
use super::value::Cell;
use crate::line::{Span, Style};
use crate::units::{counted, unit};

pub(super) const SECTION: Definition = Definition { name: "paths", unasked: true, show: Show::Case(show), records };

/// Rows of each table.
const MOST_ROWS: usize = 10;

/// What was counted under one name.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    calls: u64,
    not_found: u64,
    wall_ns: Nanos,
}

impl Sum {
    fn add(&mut self, path: &PathCount) {
        self.calls = self.calls.saturating_add(path.calls);
        self.not_found = self.not_found.saturating_add(path.not_found);
        self.wall_ns += path.wall_ns;
    }
}

fn show<'a>(page: &mut Page<'a>, case: &Case<'a>) {
    let Some(paths) = case.trace.and_then(|trace| trace.paths.as_ref()) else { return };
    let [by_path, by_directory] = ranked(paths);
    page.heading(&format!("Paths looked up: {}", Grouped(by_path.len() as u64)));
    page.table(table(&by_path, "path, most time first"));
    page.gap();
    page.table(table(&by_directory, "looked up in, most calls first"));
    if paths.not_kept > 0 {
        let lookups = counted(paths.not_kept, "look-up of a path", "look-ups of paths");
        let text = format!("  and {lookups} that there was no room to record");
        page.line([Span::new(text, Style::Warning)]);
    }
}

/// The paths, most time first, and the directories in which they were looked up, most calls first.
fn ranked(paths: &Paths) -> [Vec<(&str, Sum)>; 2] {
    let (mut by_path, mut by_directory) = (BTreeMap::<&str, Sum>::new(), BTreeMap::<&str, Sum>::new());
    for path in &paths.looked_up {
        by_path.entry(&path.path).or_default().add(path);
        by_directory.entry(directory(&path.path)).or_default().add(path);
    }
    let (mut by_path, mut by_directory): (Vec<_>, Vec<_>) =
        (by_path.into_iter().collect(), by_directory.into_iter().collect());
    by_path.sort_by_key(|(_, sum)| Reverse(sum.wall_ns));
    by_directory.sort_by_key(|(_, sum)| Reverse(sum.calls));
    [by_path, by_directory]
}

/// Where the last name of a path is looked up: `.` for a bare name.
fn directory(path: &str) -> &str {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", _)) => "/",
        Some((directory, _)) => directory,
        None => ".",
    }
}

fn table(rows: &[(&str, Sum)], name: &'static str) -> Table {
    let longest = rows.iter().map(|(_, sum)| sum.wall_ns).max().unwrap_or_default();
    let wall = format!("wall {}", unit(longest));
    let number = |heading: &str| Column::number(heading).sorting();
    let columns =
        [number(&wall), number("calls"), number("not found"), Column::text(name).class("path").sorting().yielding()];
    let mut table = Table::new("paths", columns);
    for (at, (path, sum)) in rows.iter().enumerate() {
        let kind = if at < MOST_ROWS { RowKind::Plain } else { RowKind::Hidden };
        let not_found = Cell::grouped(sum.not_found).blank_if_zero();
        table.push(kind, [Cell::scaled(sum.wall_ns, longest), Cell::grouped(sum.calls), not_found, Cell::of(*path)]);
    }
    table.hidden = format!("{} more", Grouped(table.hidden_rows() as u64));
    table
}

/// A row for each path and call, of traces with `--paths`.
fn records(recording: &Recording) -> Records {
    let columns = ["path", "syscall", "calls", "not_found", "wall_ns"];
    let values = |path: &PathCount| {
        let PathCount { path, syscall, calls, not_found, wall_ns } = path;
        [path.into(), syscall.into(), (*calls).into(), (*not_found).into(), (*wall_ns).into()]
    };
    Records::of_traces(recording, columns, |trace| {
        trace.paths.iter().flat_map(|paths| &paths.looked_up).map(values).collect()
    })
}
