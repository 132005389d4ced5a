//! Reports for programs: the whole recording as JSON, or the rows of one section.
//!
//! JSON is printed on terminals, too. A name from outside stays what it is, but what a terminal would obey is written as a numeric escape.

use std::io::{self, Write};

use inodyne_model::recording::Recording;
use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Map, Serializer, Value};

use crate::line::has_effect;
use crate::report::records;
use crate::report::section::Section;

/// Writes the recording as plain JSON, indented, and piece by piece, since the text of a long recording is many times as large as the file.
///
/// # Errors
/// The writer fails.
pub fn json(recording: &Recording, to: &mut impl Write) -> io::Result<()> {
    write_indented(recording, to)
}

/// The rows of a section: an array of objects with the names and values of its columns in CSV; `null` for a value that is not
/// known or does not apply.
pub fn json_section(recording: &Recording, section: Section) -> String {
    let records = records(recording, section);
    let object = |row: &Vec<crate::report::value::Value>| {
        let values = row.iter().map(crate::report::value::Value::json);
        records.columns.iter().cloned().zip(values).collect::<Map<String, Value>>()
    };
    indented(&records.rows.iter().map(object).collect::<Vec<_>>())
}

pub(crate) fn indented(value: &impl Serialize) -> String {
    let mut text = Vec::new();
    // Plain data with string keys: JSON can express all of it, and writing to memory does not fail.
    write_indented(value, &mut text).expect("plain data");
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// Writes JSON, or a piece of a string in it, with numeric escapes for what a terminal would obey: outside of strings there is only
/// white space of that kind.
pub(crate) fn write_harmless<W: ?Sized + Write>(json: &str, to: &mut W) -> io::Result<()> {
    let mut rest = json;
    while let Some((at, character)) = rest.char_indices().find(|(_, c)| has_effect(*c) && *c != '\n') {
        to.write_all(&rest.as_bytes()[..at])?;
        for unit in character.encode_utf16(&mut [0; 2]) {
            write!(to, "\\u{unit:04x}")?;
        }
        rest = &rest[at + character.len_utf8()..];
    }
    to.write_all(rest.as_bytes())
}

fn write_indented(value: &impl Serialize, to: &mut impl Write) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(&mut *to, Indented::default()))?;
    to.write_all(b"\n")
}

/// A line for each member of an object, and for each object or array in an array. Numbers and strings in an array share one line: there
/// may be millions.
#[derive(Default)]
struct Indented {
    /// What encloses the current position, outermost first.
    inside: Vec<Inside>,
}

struct Inside {
    is_array: bool,
    /// Whether anything in it is on a line of its own.
    has_lines: bool,
}

impl Indented {
    fn begin<W: ?Sized + Write>(&mut self, to: &mut W, bracket: &[u8], is_array: bool) -> io::Result<()> {
        if self.inside.last().is_some_and(|outer| outer.is_array) {
            self.new_line(to)?;
        }
        self.inside.push(Inside { is_array, has_lines: false });
        to.write_all(bracket)
    }

    fn end<W: ?Sized + Write>(&mut self, to: &mut W, bracket: &[u8]) -> io::Result<()> {
        if self.inside.pop().is_some_and(|it| it.has_lines) {
            self.indent(to)?;
        }
        to.write_all(bracket)
    }

    /// Begins a new line inside the innermost.
    fn new_line<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        if let Some(inner) = self.inside.last_mut() {
            inner.has_lines = true;
        }
        self.indent(to)
    }

    fn indent<W: ?Sized + Write>(&self, to: &mut W) -> io::Result<()> {
        to.write_all(b"\n")?;
        self.inside.iter().try_for_each(|_| to.write_all(b"  "))
    }
}

impl Formatter for Indented {
    fn begin_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.begin(to, b"[", true)
    }

    fn end_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.end(to, b"]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.begin(to, b"{", false)
    }

    fn end_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.end(to, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        to.write_all(if first { b"" } else { b"," })?;
        self.new_line(to)
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, to: &mut W, fragment: &str) -> io::Result<()> {
        write_harmless(fragment, to)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_stand_in_one_line_and_objects_in_their_own() {
        let value = json!({"a": [1, 2.5, null, "x"], "b": [{"c": []}, {}, [[true], []]], "d": {}});
        let text = "{\n  \"a\": [1,2.5,null,\"x\"],\n  \"b\": [\n    {\n      \"c\": []\n    },\n    {},\n    [\n      [true],\n      \
                    []\n    ]\n  ],\n  \"d\": {}\n}\n";
        assert_eq!(indented(&value), text);
        assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), value);
    }

    #[test]
    fn a_terminal_obeys_nothing_in_a_name_and_the_name_stays() {
        let value = json!({"name \u{7f}": "a\u{9b}2Jb\u{202e}c\u{e0041}\n\u{1b}[1m ä文"});
        let text = indented(&value);
        let expected = r#""name \u007f": "a\u009b2Jb\u202ec\udb40\udc41\n\u001b[1m ä文""#;
        assert!(text.contains(expected), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value);
    }
}
