//! Columns that line up, as tightly as they fit. Columns of long texts give way if the table is too wide, and bars take what the
//! others leave.

use crate::line::{Line, Span, Style};
use crate::report::table::{Align, RowKind, Table, Where};
use crate::report::value::{Cell, Picture, Value};
use crate::units::bar;

/// From this width on, tables show more columns.
const WIDE: usize = 120;
/// Columns of the longest bar.
const WIDEST_BAR: usize = 40;
/// A column that gives way keeps this much as long as another can still give way.
const LEAST_YIELDING: usize = 12;
/// Columns before the first one.
const INDENT: usize = 2;
/// Names above a column of numbers get the width divided by this …
const NAME_PART: usize = 8;
/// … and at least this many columns.
const LEAST_NAME: usize = 16;

/// A table as printed in a given width: the columns and rows that are shown, in pieces of text.
pub(crate) struct LaidOut {
    pub(crate) columns: Vec<(Span, Align)>,
    pub(crate) rows: Vec<LaidOutRow>,
    /// Columns that give way if there is too little room: first those that do not say which row it is.
    yields: [Vec<usize>; 2],
}

/// A row of it.
pub(crate) struct LaidOutRow {
    /// Whether it is a sum, which a line separates from what it sums up.
    pub(crate) is_sum: bool,
    pub(crate) cells: Vec<Span>,
    pub(crate) notes: Vec<Line>,
}

/// Lays a table out.
pub(crate) fn laid_out(table: &Table, width: usize) -> LaidOut {
    let is_wide = width >= WIDE;
    let is_shown = |place: Where| match place {
        Where::Everywhere | Where::Terminal => true,
        Where::Wide => is_wide,
        Where::Page => false,
    };
    let shown: Vec<usize> = (0..table.columns.len()).filter(|at| is_shown(table.columns[*at].place)).collect();
    let longest_name = (width / NAME_PART).max(LEAST_NAME);
    let heading = |at: &usize| {
        let column = &table.columns[*at];
        (Span::new(column.heading.written(longest_name), Style::Dim), column.align)
    };
    let rows = table.rows.iter().filter(|row| row.kind != RowKind::Hidden);
    let row = |row: &crate::report::table::Row| LaidOutRow {
        is_sum: row.kind == RowKind::Sum,
        cells: shown.iter().map(|at| row.cells.get(*at).map_or_else(Span::default, |cell| cell.span())).collect(),
        notes: row.notes.iter().map(|note| [Span::new(format!("      {note}"), Style::Dim)].into()).collect(),
    };
    let yields = |names_row: bool| {
        let of_table = |at: &usize| &table.columns[shown[*at]];
        let is_one = |at: &usize| of_table(at).yields && of_table(at).names_row == names_row;
        (0..shown.len()).filter(is_one).collect()
    };
    let mut laid_out = LaidOut {
        columns: shown.iter().map(heading).collect(),
        rows: rows.clone().map(row).collect(),
        yields: [yields(false), yields(true)],
    };
    for (at, column) in shown.iter().enumerate() {
        let bars = rows.clone().map(|row| row.cells.get(*column).and_then(bar_of));
        let room = width.saturating_sub(laid_out.width_before(at)).min(WIDEST_BAR);
        for (row, share) in laid_out.rows.iter_mut().zip(bars.collect::<Vec<_>>()) {
            if let Some((share, style)) = share {
                row.cells[at] = Span::new(bar(share, room), style);
            }
        }
    }
    laid_out
}

fn bar_of(cell: &Cell) -> Option<(f64, Style)> {
    match cell.value {
        Value::Picture(Picture::Bar(share, _)) => Some((share, cell.style())),
        _ => None,
    }
}

impl LaidOut {
    /// How wide everything before this column is, indent and gaps included.
    fn width_before(&self, column: usize) -> usize {
        INDENT + self.widths()[..column].iter().map(|width| width + 2).sum::<usize>()
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<_> = self.columns.iter().map(|(heading, _)| heading.width()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(&row.cells) {
                *width = (*width).max(cell.width());
            }
        }
        widths
    }

    /// The lines, for a report of this width.
    pub(super) fn lines(self, width: usize) -> Vec<Line> {
        let mut widths = self.widths();
        let gaps = widths.len().saturating_sub(1);
        let total = |widths: &[usize], gap: usize| INDENT + widths.iter().sum::<usize>() + gap * gaps;
        let gap = if total(&widths, 2) <= width { 2 } else { 1 };
        let mut excess = total(&widths, gap).saturating_sub(width);
        for least in [LEAST_YIELDING, 1] {
            self.yields.iter().for_each(|columns| give_way(&mut widths, columns, least, &mut excess));
        }
        let across = total(&widths, gap) - INDENT;
        let aligned = |cells: Vec<Span>| {
            let mut line = Line::default();
            line.space(INDENT);
            for (at, ((cell, width), (_, align))) in cells.into_iter().zip(&widths).zip(&self.columns).enumerate() {
                if at > 0 {
                    line.space(gap);
                }
                let cell = cell.cut(*width);
                let space = width.saturating_sub(cell.width());
                if *align == Align::Right {
                    line.space(space);
                }
                line.push(cell);
                if *align == Align::Left {
                    line.space(space);
                }
            }
            line
        };
        let mut lines = Vec::new();
        if self.columns.iter().any(|(heading, _)| heading.width() > 0) {
            lines.push(aligned(self.columns.iter().map(|(heading, _)| heading.clone()).collect()));
        }
        for row in self.rows {
            if row.is_sum {
                lines.push([" ".repeat(INDENT).into(), Span::new("─".repeat(across), Style::Dim)].into());
            }
            lines.push(aligned(row.cells));
            lines.extend(row.notes);
        }
        lines
    }
}

/// Takes the excess from these columns, from the widest first, and leaves each at least this much.
fn give_way(widths: &mut [usize], columns: &[usize], least: usize, excess: &mut usize) {
    while *excess > 0 {
        let wide = columns.iter().copied().filter(|at| widths[*at] > least);
        let Some(widest) = wide.max_by_key(|at| widths[*at]) else { return };
        widths[widest] -= 1;
        *excess -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::table::Column;

    fn print(width: usize) -> String {
        let columns = [Column::number("n"), Column::text("name").yielding(), Column::number("s")];
        let mut table = Table::new("", columns);
        table.row([Cell::of("12"), Cell::of("a long name"), Cell::of("1")]);
        table.push(RowKind::Hidden, [Cell::of("7"), Cell::of("not shown at all"), Cell::of("1")]);
        table.sum([Cell::of("3"), Cell::of("x"), Cell::of("100")]);
        let mut out = String::new();
        for line in laid_out(&table, width).lines(width) {
            line.print(&mut out, width, false);
        }
        out
    }

    #[test]
    fn columns_line_up() {
        assert_eq!(
            print(80),
            "   n  name           s\n  12  a long name    1\n  ────────────────────\n   3  x            100\n"
        );
    }

    #[test]
    fn the_yielding_column_is_cut() {
        assert_eq!(print(16), "   n name      s\n  12 a long…   1\n  ──────────────\n   3 x       100\n");
    }

    /// The cells of a row with a name and two sides, printed in this width.
    fn row(columns: [Column; 3], cells: [&str; 3], width: usize) -> String {
        let mut table = Table::new("", columns);
        table.row(cells.map(Cell::of));
        let mut out = String::new();
        laid_out(&table, width).lines(width).into_iter().for_each(|line| line.print(&mut out, width, false));
        out
    }

    #[test]
    fn columns_that_give_way_share_the_room() {
        let columns = || [Column::text(""), Column::text("").yielding(), Column::text("").yielding()];
        let (old, new) = ("o".repeat(60), "n".repeat(50));
        let expected = format!("  model {}… {}…\n", "o".repeat(15), "n".repeat(15));
        assert_eq!(row(columns(), ["model", &old, &new], 41), expected);
        // A short name is kept in full.
        let expected = format!("  model {}… {}\n", "o".repeat(19), "n".repeat(12));
        assert_eq!(row(columns(), ["model", &old, &"n".repeat(12)], 41), expected);
    }

    #[test]
    fn the_name_of_a_row_gives_way_last() {
        let columns = || [Column::text("").naming().yielding(), Column::text(""), Column::text("").yielding()];
        let (name, mostly) = ("n".repeat(20), "m".repeat(20));
        let expected = format!("  {} 7 {}…\n", "n".repeat(20), "m".repeat(14));
        assert_eq!(row(columns(), [&name, "7", &mostly], 40), expected);
        let expected = format!("  {}… 7 {}…\n", "n".repeat(12), "m".repeat(11));
        assert_eq!(row(columns(), [&name, "7", &mostly], 30), expected);
        let expected = format!("  {}… 7 m…\n", "n".repeat(11));
        assert_eq!(row(columns(), [&name, "7", &mostly], 19), expected);
    }

    #[test]
    fn emoji_in_a_name_that_is_cut_are_no_reason_to_panic() {
        let columns = || [Column::text("").yielding(), Column::text(""), Column::number("")];
        for emoji in ["❤️", "⚠️"] {
            for width in 1..60 {
                row(columns(), [&emoji.repeat(30), "7", "8"], width);
            }
        }
    }
}
