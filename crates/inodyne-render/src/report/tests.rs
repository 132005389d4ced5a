//! All formats show the same numbers: every value of every table is looked for in what each printer prints.

use std::collections::HashSet;

use inodyne_model::recording::Recording;
use inodyne_model::sample;

use super::block::{Block, Fold, Kind, Part};
use super::section::Section;
use super::table::{Align, Column, RowKind, Table, Where};
use super::value::{Cell, Value};
use super::{records, report};
use crate::line::escaped;
use crate::text::tests::{explained, study};

/// Wide enough for every column and every cell.
const WIDTH: usize = 1_000;

fn samples() -> [(&'static str, Recording); 8] {
    [
        ("find", explained(sample::find_recording())),
        ("pipeline", explained(sample::pipeline_recording())),
        ("overlay", explained(sample::overlay_recording())),
        ("commands", explained(sample::commands_recording())),
        ("durable", explained(sample::durable_recording())),
        ("study", study()),
        ("window", explained(sample::window_recording())),
        ("tuning", explained(sample::tuned_recording())),
    ]
}

/// All tables of a part; folded ones only if asked for.
fn tables<'b>(blocks: &'b [Block<'_>], with_folded: bool) -> Vec<&'b Table> {
    let of_block = |block: &'b Block<'_>| match block {
        Block::Table(table) => vec![table],
        Block::Folded(_, blocks) if with_folded => tables(blocks, with_folded),
        _ => Vec::new(),
    };
    blocks.iter().flat_map(of_block).collect()
}

/// The rows of a table that this printer shows, each as the cells that it shows.
fn shown(table: &Table, is_page: bool) -> Vec<Vec<(&Column, &Cell)>> {
    let is_shown = |kind| if is_page { kind != RowKind::Rest } else { kind != RowKind::Hidden };
    let rows = table.rows.iter().filter(|row| is_shown(row.kind));
    let cells = rows.map(|row| {
        assert_eq!(row.cells.len(), table.columns.len(), "a cell for each column of {}", table.class);
        let elsewhere = if is_page { Where::Terminal } else { Where::Page };
        let of_column = table.columns.iter().zip(&row.cells).filter(|(column, _)| column.place != elsewhere);
        of_column.filter(|(_, cell)| !matches!(cell.value, Value::Nothing | Value::Picture(_))).collect()
    });
    cells.collect()
}

/// The words of a page, without tags and with entities decoded.
fn words(html: &str) -> String {
    let mut out = String::new();
    for (at, piece) in html.split('<').enumerate() {
        let text = if at == 0 { piece } else { piece.split_once('>').map_or("", |(_, text)| text) };
        out.push(' ');
        out.push_str(text);
    }
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")]
        .iter()
        .fold(out, |text, (entity, plain)| text.replace(entity, plain))
}

/// Rows in a text: the values of each have to stand in one line, or one after the other.
fn find_row(lines: &[&str], row: &[(&Column, &Cell)], as_in: impl Fn(&Cell) -> String) -> bool {
    lines.iter().any(|line| row.iter().all(|(_, cell)| line.contains(as_in(cell).trim())))
}

/// Whether JSON that was read is what was written. The last digit of a fraction may be read differently.
fn is_same(read: &serde_json::Value, written: &serde_json::Value) -> bool {
    match (read.as_f64(), written.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= b.abs() * 1e-12,
        _ => read == written,
    }
}

#[test]
fn text_and_markdown_say_every_value_of_every_row_that_is_not_hidden() {
    for (name, recording) in samples() {
        let text = crate::text(
            &recording,
            &crate::TextOptions { width: WIDTH, verbose: true, ..crate::TextOptions::default() },
        );
        let markdown = crate::markdown(&recording, None).replace(['\\', '*'], "").replace("<!-- -->", "");
        let (of_text, of_markdown): (Vec<&str>, Vec<&str>) = (text.lines().collect(), markdown.lines().collect());
        let mut rows = 0;
        for Part { kind, blocks } in report(&recording, None) {
            if matches!(kind, Kind::Case { fold: Fold::Within, .. }) {
                continue;
            }
            for row in tables(&blocks, false).into_iter().flat_map(|table| shown(table, false)) {
                let said: Vec<String> = row.iter().map(|(_, cell)| cell.span().text().to_owned()).collect();
                assert!(find_row(&of_text, &row, |cell| cell.span().text().to_owned()), "{name}: {said:?}\n{text}");
                let in_markdown = |cell: &Cell| cell.span().text().replace(['\\', '*'], "");
                assert!(find_row(&of_markdown, &row, in_markdown), "{name}: {said:?}\n{markdown}");
                rows += 1;
            }
        }
        assert!(rows >= 4, "{name}: {rows} rows");
    }
}

#[test]
fn a_page_says_every_value_of_every_row() {
    for (name, recording) in samples() {
        let html = crate::html(&recording);
        let of_rows: Vec<String> = html.split("<tr>").skip(1).map(words).collect();
        let lines: Vec<&str> = of_rows.iter().map(String::as_str).collect();
        let raw: HashSet<&str> = html.split("data-v=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        for Part { blocks, .. } in report(&recording, None) {
            for row in tables(&blocks, true).into_iter().flat_map(|table| shown(table, true)) {
                let said: Vec<String> = row.iter().map(|(_, cell)| cell.written()).collect();
                assert!(find_row(&lines, &row, |cell| escaped(&cell.written())), "{name}: {said:?}");
                for (column, cell) in row.iter().filter(|(column, _)| column.sorts && column.align == Align::Right) {
                    assert!(raw.contains(cell.value.raw().as_str()), "{name}: {:?} {cell:?}", column.heading);
                }
            }
        }
    }
}

/// Columns that name a column of the records have its values: for each row that was measured, even a hidden one.
#[test]
fn tables_for_programs_have_the_values_of_those_for_people() {
    let mut compared = 0;
    for (name, recording) in samples() {
        for section in Section::all() {
            let of_section = records(&recording, section);
            let of_spreads = records(&recording, "verdict".parse().expect("a section"));
            let csv = crate::csv(&recording, section);
            let lines = of_section.rows.len() + 1;
            assert_eq!(csv.lines().count(), lines, "{name}: {section}");
            let json: Vec<serde_json::Map<String, serde_json::Value>> =
                serde_json::from_str(&crate::json_section(&recording, section)).expect("an array of objects");
            for ((line, row), object) in csv.lines().skip(1).zip(&of_section.rows).zip(&json) {
                assert_eq!(object.len(), of_section.columns.len(), "{name}: {section}");
                for (key, value) in of_section.columns.iter().zip(row) {
                    assert!(is_same(&object[key], &value.json()), "{name}: {section}: {key}: {value:?}");
                    let raw = escaped(&value.raw()).replace('"', "\"\"");
                    assert!(line.contains(&raw), "{name}: {section}: {key}: {line}");
                }
            }
            for Part { blocks, .. } in report(&recording, Some(section)) {
                for table in tables(&blocks, true) {
                    for row in table.rows.iter().filter(|row| !matches!(row.kind, RowKind::Sum | RowKind::Rest)) {
                        let keyed = table.columns.iter().zip(&row.cells);
                        let keyed: Vec<(&str, &Value)> = keyed
                            .filter(|(_, cell)| cell.value != Value::Nothing)
                            .filter_map(|(column, cell)| Some((column.key?, &cell.value)))
                            .collect();
                        let has = |records: &super::table::Records| {
                            records.rows.iter().any(|row| {
                                keyed.iter().all(|(key, value)| {
                                    let at = records.columns.iter().position(|column| column == key);
                                    at.is_some_and(|at| row[at].raw() == value.raw())
                                })
                            })
                        };
                        // For programs, how the runs of compared cases spread is given with each case.
                        assert!(has(&of_section) || has(&of_spreads), "{name}: {section}: {keyed:?}");
                        compared += keyed.len();
                    }
                }
            }
        }
    }
    assert!(compared > 1_000, "{compared} values");
}

/// In a report of several cases every section says which case it is about.
#[test]
fn a_section_of_several_cases_names_each_of_them() {
    for recording in [explained(sample::find_recording()), study(), explained(sample::commands_recording())] {
        for section in Section::all() {
            let options = crate::TextOptions { section: Some(section), width: 200, ..crate::TextOptions::default() };
            let text = crate::text(&recording, &options);
            for Part { kind, .. } in report(&recording, Some(section)) {
                if let Kind::Case { summary, .. } = kind {
                    assert!(text.contains(&escaped(&summary)), "{section}: {summary}\n{text}");
                }
            }
        }
    }
}
