//! The report in a terminal: lines of a width, with colours or without.

mod print;
mod table;

use inodyne_model::recording::Recording;

use crate::report;
use crate::report::section::Section;

pub(crate) use table::laid_out;

/// How a report is to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns of the terminal. No line is wider; below [`TextOptions::NARROWEST`] that is taken instead.
    pub width: usize,
    /// Whether the terminal shows colours.
    pub colour: bool,
    /// Only this part; everything but the tables by command name where there is none.
    pub section: Option<Section>,
}

impl TextOptions {
    /// The least width at which the tables can be read.
    pub const NARROWEST: usize = 60;
}

impl Default for TextOptions {
    fn default() -> TextOptions {
        TextOptions { width: 80, colour: false, section: None }
    }
}

/// The report of a recording, ready to be printed.
pub fn text(recording: &Recording, options: &TextOptions) -> String {
    let options = TextOptions { width: options.width.max(TextOptions::NARROWEST), ..*options };
    print::print(report::report(recording, options.section), &options)
}

#[cfg(test)]
pub(crate) mod tests;
