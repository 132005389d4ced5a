//! One table of a recording as CSV: a line of names, then a line for each row.
//!
//! Names carry their units, numbers all their digits; an empty field is what is not known or does not apply. `FORMAT.md`
//! documents the columns, which do not change their meaning. Names from outside have control characters written out as
//! in the reports, so that every row is one line and harmless in a terminal; the JSON has them as they are.

mod comparison;
mod runs;
mod trace;

use inodyne_model::ledger::Row;
use inodyne_model::recording::Recording;
use inodyne_model::run::CacheState;
use serde::Serialize;

use crate::line::escaped;
use crate::names;
use crate::section::Section;

/// The table of a section.
pub fn csv(recording: &Recording, section: Section) -> String {
    match section {
        Section::Comparison => comparison::comparisons(recording),
        Section::Verdict => runs::statistics(recording),
        Section::Ledger => trace::ledger(recording),
        Section::Findings => comparison::findings(recording),
        Section::Syscalls => trace::syscalls(recording),
        Section::Paths => trace::paths(recording),
        Section::Threads => trace::threads(recording),
        Section::Runs => runs::runs(recording),
        Section::Overhead => trace::overhead(recording),
        Section::ByComm => trace::by_comm(recording),
    }
}

/// The lines of a table. A row has as many fields as there are columns, or it does not compile.
fn table<const N: usize>(columns: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let mut write = |row: [&str; N]| writer.write_record(row).expect("a vector takes everything");
    write(columns);
    for row in rows {
        let row = row.map(|field| escaped(&field));
        write(row.each_ref().map(String::as_str));
    }
    let bytes = writer.into_inner().expect("a vector takes everything");
    String::from_utf8(bytes).expect("it was made of strings")
}

/// Whose row it is: the labels of place and command, and the state of the caches.
fn case(recording: &Recording, place: usize, command: usize, cache: CacheState) -> [String; 3] {
    [names::place(recording, place), names::command(recording, command), word(cache)]
}

/// What is not known is an empty field.
fn field(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// One of the model's words, as in JSON.
fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// `kind`, `syscall`, `cause`, `via`, `ns`, `count`, `estimated` of a row of a ledger.
fn row(row: &Row) -> [String; 7] {
    [
        word(row.kind),
        field(row.syscall.as_ref()),
        row.cause.map_or_else(String::new, word),
        row.via.join(" > "),
        row.ns.0.to_string(),
        row.count.to_string(),
        row.estimated.to_string(),
    ]
}

/// Fields one after the other. The lengths must add up.
fn joined<const N: usize>(parts: &[&[String]]) -> [String; N] {
    parts.concat().try_into().unwrap_or_else(|parts: Vec<String>| unreachable!("{} fields for {N}", parts.len()))
}

#[cfg(test)]
mod tests;
