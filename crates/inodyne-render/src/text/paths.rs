//! The paths that were looked up, where they were asked for: those with most time, and the directories with most calls.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use inodyne_model::Nanos;
use inodyne_model::count::Grouped;
use inodyne_model::trace::{PathCount, Paths};

use super::case::Case;
use super::page::Page;
use crate::line::{Span, Style};
use crate::table::{Align, Table};
use crate::units::seconds;

/// Rows of each table.
const MOST_ROWS: usize = 10;

/// What was counted under one name.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sum {
    pub(crate) calls: u64,
    pub(crate) not_found: u64,
    pub(crate) wall_ns: Nanos,
}

impl Sum {
    fn add(&mut self, path: &PathCount) {
        self.calls = self.calls.saturating_add(path.calls);
        self.not_found = self.not_found.saturating_add(path.not_found);
        self.wall_ns += path.wall_ns;
    }
}

pub(super) fn show(page: &mut Page, case: &Case<'_>) {
    let Some(paths) = case.trace.and_then(|trace| trace.paths.as_ref()) else { return };
    let [by_path, by_directory] = ranked(paths);
    page.heading(&format!("Paths looked up: {}", Grouped(by_path.len() as u64)));
    let first = table(&by_path, "path, most time first");
    page.table(first);
    page.gap();
    let second = table(&by_directory, "looked up in, most calls first");
    page.table(second);
    if paths.not_kept > 0 {
        let text = format!("  and {} look-ups of paths that found no room", Grouped(paths.not_kept));
        page.line([Span::new(text, Style::Warning)]);
    }
}

/// The paths, most time first, and the directories in which they were looked up, most calls first.
pub(crate) fn ranked(paths: &Paths) -> [Vec<(&str, Sum)>; 2] {
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

/// Where the last name of a path is looked up: `.` for a name alone.
fn directory(path: &str) -> &str {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", _)) => "/",
        Some((directory, _)) => directory,
        None => ".",
    }
}

fn table(rows: &[(&str, Sum)], name: &'static str) -> Table {
    let right = |heading| (heading, Align::Right);
    let mut table = Table::new([right("wall s"), right("calls"), right("not found"), (name, Align::Left)]).yielding(3);
    let longest = rows.iter().map(|(_, sum)| sum.wall_ns).max().unwrap_or_default();
    for (path, sum) in rows.iter().take(MOST_ROWS) {
        let not_found = if sum.not_found == 0 { String::new() } else { Grouped(sum.not_found).to_string() };
        let counts = [seconds(sum.wall_ns, longest), Grouped(sum.calls).to_string(), not_found].map(Span::from);
        table.row(counts.into_iter().chain([Span::from(*path)]));
    }
    table
}
