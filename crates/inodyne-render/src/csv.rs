//! The rows of a section as CSV: a line of names, then a line for each row.
//!
//! Names carry their units, numbers all their digits; a field is empty if its value is not known or does not apply. `FORMAT.md`
//! documents the columns, which do not change their meaning. Control characters in names from outside are escaped as
//! in the reports, so that every row is one line and harmless in a terminal; JSON has escapes of its own for them.

use inodyne_model::recording::Recording;

use crate::line::escaped;
use crate::report::records;
use crate::report::section::Section;
use crate::report::value::Value;

/// The table of a section.
pub fn csv(recording: &Recording, section: Section) -> String {
    let records = records(recording, section);
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(&records.columns).expect("a vector takes everything");
    for row in &records.rows {
        writer.write_record(row.iter().map(field)).expect("a vector takes everything");
    }
    let bytes = writer.into_inner().expect("a vector takes everything");
    String::from_utf8(bytes).expect("it was made of strings")
}

fn field(value: &Value) -> String {
    escaped(&value.raw())
}

#[cfg(test)]
mod tests;
