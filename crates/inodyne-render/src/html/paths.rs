//! The paths that were looked up, where they were asked for, and the directories in which they lie.

use inodyne_model::count::Grouped;
use inodyne_model::trace::Trace;

use super::builder::{Column, Html};
use crate::text::paths::{Sum, ranked};
use crate::units::seconds;

/// Rows of each table; the recording has all.
const MOST_ROWS: usize = 200;

pub(super) fn show(page: &mut Html, trace: &Trace) {
    let Some(paths) = &trace.paths else { return };
    let [by_path, by_directory] = ranked(paths);
    page.element("h3", &[], &format!("Paths looked up: {}", Grouped(by_path.len() as u64)));
    table(page, &by_directory, "looked up in");
    page.inside("details", &[], |page| {
        page.element("summary", &[], "Path by path");
        table(page, &by_path, "path");
    });
    if paths.not_kept > 0 {
        let text = format!("And {} look-ups of paths that found no room.", Grouped(paths.not_kept));
        page.element("p", &[("class", "warning")], &text);
    }
}

fn table(page: &mut Html, rows: &[(&str, Sum)], name: &str) {
    let longest = rows.iter().map(|(_, sum)| sum.wall_ns).max().unwrap_or_default();
    let number = |heading| Column::number(heading).sorting();
    let columns = [number("wall s"), number("calls"), number("not found"), Column::text(name).sorting()];
    page.table("paths", &columns, |page| {
        page.inside("tbody", &[], |page| {
            for (path, sum) in rows.iter().take(MOST_ROWS) {
                page.inside("tr", &[], |page| {
                    let mut number = |value: u64, shown: &str| {
                        page.element("td", &[("class", "n"), ("data-v", &value.to_string())], shown);
                    };
                    number(sum.wall_ns.0, &seconds(sum.wall_ns, longest));
                    number(sum.calls, &Grouped(sum.calls).to_string());
                    number(sum.not_found, &Grouped(sum.not_found).to_string());
                    page.element("td", &[("class", "path")], path);
                });
            }
        });
    });
    if rows.len() > MOST_ROWS {
        let rest = rows.len() - MOST_ROWS;
        page.element("p", &[("class", "dim")], &format!("And {} more.", Grouped(rest as u64)));
    }
}
