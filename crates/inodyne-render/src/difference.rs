//! The difference of two recordings in all forms: the same parts as any report, and the model itself as JSON. [`crate::junit`] has one more.

use inodyne_model::difference::Difference;

use crate::report::recordings::{case_name, parts};
use crate::{TextOptions, html, json, markdown, text};

/// For a terminal.
pub fn difference_text(found: &Difference, options: &TextOptions) -> String {
    text::printed(parts(found), options)
}

/// For GitHub.
pub fn difference_markdown(found: &Difference) -> String {
    markdown::printed(parts(found))
}

/// As a page for a browser.
pub fn difference_html(found: &Difference) -> String {
    let title = match found.cases.as_slice() {
        [] => "two recordings without a case in common".to_owned(),
        [case] => case_name(&case.case),
        cases => format!("{} cases", cases.len()),
    };
    html::printed(&parts(found), &title, "two recordings: old and new")
}

/// Everything, for programs.
pub fn difference_json(found: &Difference) -> String {
    json::indented(found)
}

#[cfg(test)]
mod tests;
