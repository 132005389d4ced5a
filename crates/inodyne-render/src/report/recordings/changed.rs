//! Findings and paths that came or went.

use inodyne_model::count::Grouped;
use inodyne_model::difference::{CaseDifference, ChangedPath, FindingName, PathsDifference};

use crate::line::{Span, Style};
use crate::report::block::Page;
use crate::report::table::{Column, RowKind, Table};
use crate::report::value::Cell;
use crate::units::counted;

/// This many paths are shown for each side; pages and the JSON have all.
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
    let Some(paths) = &case.paths else { return };
    if !paths.changed.is_empty() {
        came_and_went(page, paths);
    }
    for (side, not_kept) in [("old", paths.not_kept.old), ("new", paths.not_kept.new)] {
        if not_kept > 0 {
            let lookups = counted(not_kept, "look-up of a path", "look-ups of paths");
            let text = format!(
                "{lookups} found no room in the {side} recording: it may have more paths, and those of the other."
            );
            page.paragraph("  ".into(), &text, Style::Warning);
        }
    }
}

fn came_and_went(page: &mut Page<'_>, paths: &PathsDifference) {
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
}

#[cfg(test)]
mod tests {
    use inodyne_model::sample;
    use inodyne_model::trace::Paths;

    #[test]
    fn paths_without_room_are_said_where_nothing_changed() {
        let recording = |not_kept| {
            let mut recording = sample::find_recording();
            for trace in &mut recording.traces {
                trace.paths = Some(Paths { looked_up: Vec::new(), not_kept });
            }
            inodyne_analyse::explain(&mut recording);
            recording
        };
        let said = |old, new| {
            let found = inodyne_analyse::difference(&recording(old), &recording(new), &[]);
            crate::difference_text(&found, &crate::TextOptions { width: 200, ..crate::TextOptions::default() })
        };
        assert!(said(0, 1_234).contains("1,234 look-ups of paths found no room in the new recording"));
        assert!(said(1, 0).contains("1 look-up of a path found no room in the old recording"));
        assert!(!said(0, 0).contains("found no room"));
    }
}
