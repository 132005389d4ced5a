//! Tables: the column that names a row comes first, small rows are collapsed, numbers sort by their raw values.

use inodyne_model::count::Grouped;

use super::builder::{Html, class_of};
use super::pictures;
use crate::line::Style;
use crate::report::Whisker;
use crate::report::table::{Align, Column, Row, RowKind, Table, Where};
use crate::report::value::{Cell, Picture, Value};

/// A page is not meant for thousands of rows; the recording has all of them.
const MOST_ROWS: usize = 200;
/// The class of a column of drawn ratios.
const PLOT: &str = "plot";
/// Names above a column are cut beyond this width.
const LONGEST_NAME: usize = 200;

/// The table, and below it the collapsed rows and the remark about the table.
pub(super) fn show(page: &mut Html, table: &Table) {
    let of_kind = |kind| table.rows.iter().filter(move |row| row.kind == kind).collect::<Vec<_>>();
    rows(page, table, &of_kind(RowKind::Plain), &of_kind(RowKind::Sum));
    let hidden = of_kind(RowKind::Hidden);
    if !hidden.is_empty() {
        page.inside("details", &[("class", "minor")], |page| {
            page.element("summary", &[], &table.hidden);
            rows(page, table, &hidden, &[]);
        });
    }
    if let Some(below) = &table.below {
        page.paragraph(below);
    }
}

fn rows(page: &mut Html, table: &Table, body: &[&Row], foot: &[&Row]) {
    // The column that names a row comes first.
    let mut columns: Vec<usize> = (0..table.columns.len()).collect();
    columns.retain(|at| table.columns[*at].place != Where::Terminal);
    columns.sort_by_key(|at| !table.columns[*at].names_row);
    let reach = pictures::reach(whiskers(table));
    let sorts = if table.columns.iter().any(|column| column.sorts) { "sorts " } else { "" };
    page.inside("div", &[("class", "scroll")], |page| {
        page.inside("table", &[("class", &format!("{sorts}{}", table.class))], |page| {
            page.inside("thead", &[], |page| {
                page.inside("tr", &[], |page| columns.iter().for_each(|at| heading(page, &table.columns[*at], reach)));
            });
            page.inside("tbody", &[], |page| {
                body.iter().take(MOST_ROWS).for_each(|one| row(page, table, &columns, one, reach));
            });
            if !foot.is_empty() {
                page.inside("tfoot", &[], |page| foot.iter().for_each(|one| row(page, table, &columns, one, reach)));
            }
        });
    });
    if body.len() > MOST_ROWS {
        let rest = Grouped((body.len() - MOST_ROWS) as u64);
        page.element("p", &[("class", "dim")], &format!("And {rest} more."));
    }
}

/// All ratios drawn in a table.
fn whiskers(table: &Table) -> impl Iterator<Item = &Whisker> {
    let cells = table.rows.iter().flat_map(|row| &row.cells);
    cells.filter_map(|cell| match &cell.value {
        Value::Picture(Picture::Whisker(of)) => Some(of),
        _ => None,
    })
}

fn heading(page: &mut Html, column: &Column, reach: f64) {
    let words = column.page_heading.map_or_else(|| column.heading.written(LONGEST_NAME), str::to_owned);
    // An empty heading is not a heading to a screen reader.
    if words.is_empty() {
        page.element("td", &[], "");
        return;
    }
    let class = if column.align == Align::Right { "n" } else { column.class };
    // The name under which FORMAT.md documents it and CSV and JSON have it.
    let key = column.key.unwrap_or_default();
    let attributes = [("class", class), ("scope", "col"), ("title", key)];
    page.inside("th", if key.is_empty() { &attributes[..2] } else { &attributes }, |page| {
        if column.sorts {
            page.element("button", &[("type", "button")], &words);
        } else {
            page.text(&words);
        }
        if column.class == PLOT {
            pictures::scale(page, reach);
        }
    });
}

fn row(page: &mut Html, table: &Table, columns: &[usize], row: &Row, reach: f64) {
    page.inside("tr", &[], |page| {
        for at in columns {
            match row.cells.get(*at) {
                Some(cell) => show_cell(page, &table.columns[*at], cell, &row.notes, reach),
                None => page.element("td", &[], ""),
            }
        }
    });
}

fn show_cell(page: &mut Html, column: &Column, cell: &Cell, notes: &[String], reach: f64) {
    match &cell.value {
        Value::Picture(picture) => {
            page.inside("td", &[("class", column.class)], |page| pictures::show(page, picture, reach));
        }
        _ if column.names_row => page.inside("th", &[("scope", "row")], |page| name(page, cell)),
        _ if column.align == Align::Right => {
            let raw = cell.value.raw();
            let class = if cell.is_zero() { "n dim" } else { "n" };
            let attributes = [("class", class), ("data-v", raw.as_str())];
            page.element("td", if column.sorts { &attributes } else { &attributes[..1] }, &cell.written());
        }
        _ if column.holds_notes => page.inside("td", &[("class", column.class)], |page| {
            page.element("span", &[], &cell.written());
            notes.iter().for_each(|note| page.element("span", &[("class", "via")], note));
        }),
        _ => {
            // Here, only bars have the colours of states.
            let of_style = match cell.style() {
                style @ (Style::Warning | Style::Good | Style::Worse | Style::Dim) => class_of(style),
                _ => "",
            };
            let class = format!("{} {of_style}", column.class);
            page.element("td", &[("class", class.trim())], &cell.written());
        }
    }
}

fn name(page: &mut Html, cell: &Cell) {
    let words = cell.written();
    match cell.case {
        Some(number) => page.element("a", &[("href", &format!("#case-{number}"))], &words),
        None => page.text(&words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Span;

    #[test]
    fn what_is_said_below_a_table_is_on_the_page() {
        let mut table = Table::new("", [Column::text("file")]);
        table.row([Cell::of("a")]);
        table.below = Some([Span::new("  3.00 MB of what was read had been read before", Style::Dim)].into());
        let mut page = Html::new("", "");
        show(&mut page, &table);
        let said = "</table>\n</div>\n<p class=\"dim\">3.00 MB of what was read had been read before</p>";
        assert!(page.finish("").contains(said));
    }
}
