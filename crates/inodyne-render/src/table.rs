//! Columns that line up, as tight as they fit.

use crate::line::{Line, Span, Style};

/// On which side of its column a cell stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Columns and rows. One column may give way where the table is too wide.
pub(crate) struct Table {
    pub(crate) columns: Vec<(Span, Align)>,
    pub(crate) rows: Vec<Row>,
    yields: Option<usize>,
}

pub(crate) enum Row {
    Cells(Vec<Span>),
    /// A line across.
    Rule,
    /// A remark that keeps no columns.
    Note(Line),
}

const INDENT: usize = 2;

impl Table {
    /// With these headings; an empty one prints no heading.
    pub(crate) fn new(columns: impl IntoIterator<Item = (impl AsRef<str>, Align)>) -> Table {
        let columns = columns.into_iter().map(|(heading, align)| (Span::new(heading, Style::Dim), align)).collect();
        Table { columns, rows: Vec::new(), yields: None }
    }

    /// The column that is cut where the table would be wider than the report.
    pub(crate) fn yielding(mut self, column: usize) -> Table {
        self.yields = Some(column);
        self
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Span>) {
        self.rows.push(Row::Cells(cells.into_iter().collect()));
    }

    /// With one more column at the end, of a text for each row of cells.
    pub(crate) fn with_column(mut self, heading: &str, texts: impl IntoIterator<Item = String>) -> Table {
        self.columns.push((Span::new(heading, Style::Dim), Align::Left));
        let rows = self.rows.iter_mut().filter_map(|row| match row {
            Row::Cells(cells) => Some(cells),
            Row::Rule | Row::Note(_) => None,
        });
        for (cells, text) in rows.zip(texts) {
            cells.push(text.into());
        }
        self
    }

    pub(crate) fn rule(&mut self) {
        self.rows.push(Row::Rule);
    }

    pub(crate) fn note(&mut self, line: Line) {
        self.rows.push(Row::Note(line));
    }

    /// How wide everything before this column is, indent and gaps included.
    pub(crate) fn width_before(&self, column: usize) -> usize {
        let widths = self.widths();
        INDENT + widths[..column].iter().map(|width| width + 2).sum::<usize>()
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<_> = self.columns.iter().map(|(heading, _)| heading.width()).collect();
        for row in &self.rows {
            if let Row::Cells(cells) = row {
                for (width, cell) in widths.iter_mut().zip(cells) {
                    *width = (*width).max(cell.width());
                }
            }
        }
        widths
    }

    /// The lines, for a report of this width.
    pub(crate) fn lines(self, width: usize) -> Vec<Line> {
        let mut widths = self.widths();
        let gaps = widths.len().saturating_sub(1);
        let total = |widths: &[usize], gap: usize| INDENT + widths.iter().sum::<usize>() + gap * gaps;
        let gap = if total(&widths, 2) <= width { 2 } else { 1 };
        let excess = total(&widths, gap).saturating_sub(width);
        if let Some(column) = self.yields {
            widths[column] = widths[column].saturating_sub(excess).max(1);
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
                let space = width - cell.width();
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
            lines.push(match row {
                Row::Cells(cells) => aligned(cells),
                Row::Rule => Line::from([" ".repeat(INDENT).into(), Span::new("─".repeat(across), Style::Dim)]),
                Row::Note(line) => line,
            });
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(width: usize) -> String {
        let mut table = Table::new([("n", Align::Right), ("name", Align::Left), ("s", Align::Right)]).yielding(1);
        table.row(["12".into(), "a long name".into(), "1".into()]);
        table.rule();
        table.row(["3".into(), "x".into(), "100".into()]);
        let mut out = String::new();
        for line in table.lines(width) {
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
}
