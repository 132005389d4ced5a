//! Findings and paths that came or went.

use inodyne_model::count::Grouped;
use inodyne_model::difference::{CaseDifference, ChangedPath, FindingName};

use crate::line::{Span, Style};
use crate::report::block::Page;
use crate::report::table::{Column, RowKind, Table};
use crate::report::value::Cell;

/// So many paths are shown of each side; pages and the JSON have all.
const MOST_PATHS: usize = 10;

pub(super) fn findings(page: &mut Page<'_>, case: &CaseDifference) {
    let changed = &case.findings;
    if changed.is_empty() {
        return;
    }
    page.heading("Findings");
    let mut list = |lead: &str, style, findings: &[FindingName]| {
        for FindingName { id, title } in findings {
            page.paragraph(Span::new(lead, style), &format!("{id}: {title}"), Style::Plain);
        }
    };
    list("  new   ", Style::Warning, &changed.new);
    list("  gone  ", Style::Good, &changed.gone);
}

pub(super) fn paths(page: &mut Page<'_>, case: &CaseDifference) {
    let Some(paths) = case.paths.as_ref().filter(|paths| !paths.changed.is_empty()) else { return };
    page.heading(&format!("Paths looked up: {} → {}", Grouped(paths.count.old), Grouped(paths.count.new)));
    let columns = [
        Column::text(""),
        Column::number("calls").sorting(),
        Column::number("not found").sorting(),
        Column::text("path").class("path").sorting().yielding(),
    ];
    let mut table = Table::new("paths", columns);
    for (word, style, side) in [("new", Style::Bold, &paths.changed.new), ("gone", Style::Dim, &paths.changed.gone)] {
        for (at, ChangedPath { path, calls, not_found }) in side.iter().enumerate() {
            let kind = if at < MOST_PATHS { RowKind::Plain } else { RowKind::Hidden };
            let not_found = Cell::grouped(*not_found).blank_if_zero();
            table.push(kind, [Cell::of(word).styled(style), Cell::grouped(*calls), not_found, Cell::of(path)]);
        }
    }
    if table.hidden_rows() > 0 {
        let more = |side: &[ChangedPath]| Grouped(side.len().saturating_sub(MOST_PATHS) as u64).to_string();
        table.hidden =
            format!("{} more that are new, {} that are gone", more(&paths.changed.new), more(&paths.changed.gone));
        let rest = Cell::of(table.hidden.clone());
        table.rest([Cell::nothing(), Cell::nothing(), Cell::nothing(), rest]);
    }
    page.table(table);
    let not_kept = paths.not_kept.old.max(paths.not_kept.new);
    if not_kept > 0 {
        let text =
            format!("  and {} look-ups of paths that found no room: there may be more of them", Grouped(not_kept));
        page.line([Span::new(text, Style::Warning)]);
    }
}
