//! Reports for programs: the whole recording as JSON, or the rows of one section.

use inodyne_model::recording::Recording;
use serde_json::{Map, Value};

use crate::report::records;
use crate::report::section::Section;

/// The recording as plain JSON, indented.
pub fn json(recording: &Recording) -> String {
    indented(recording)
}

/// The rows of a section: an array of objects with the names and values of its columns in CSV; `null` is what is not
/// known or does not apply.
pub fn json_section(recording: &Recording, section: Section) -> String {
    let records = records(recording, section);
    let object = |row: &Vec<crate::report::value::Value>| {
        let values = row.iter().map(crate::report::value::Value::json);
        records.columns.iter().cloned().zip(values).collect::<Map<String, Value>>()
    };
    indented(&records.rows.iter().map(object).collect::<Vec<_>>())
}

pub(crate) fn indented(value: &impl serde::Serialize) -> String {
    // Plain data with string keys: there is nothing in it that JSON cannot say.
    let mut text = serde_json::to_string_pretty(value).expect("plain data");
    text.push('\n');
    text
}
