//! The report in a terminal: lines of a given width, with or without colours.

mod ascii;
mod print;
mod table;

use inodyne_model::recording::Recording;

use crate::report;
use crate::report::block::Part;
use crate::report::section::Section;

pub use ascii::ascii;
pub(crate) use table::laid_out;

/// What a report should look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns of the terminal. No line is wider; below [`TextOptions::NARROWEST`] that is used instead.
    pub width: usize,
    /// Whether the terminal shows colours.
    pub colour: bool,
    /// Whether only ASCII can be shown: other signs of the report, including its bars, are then replaced by similar ones.
    pub ascii: bool,
    /// Everything but the tables by command name, instead of the first screen.
    pub verbose: bool,
    /// Only this part, in full.
    pub section: Option<Section>,
}

impl TextOptions {
    /// The least width at which the tables can be read.
    pub const NARROWEST: usize = 60;
    /// Lines of the first screen: a small terminal has this many.
    pub const SCREEN: usize = 24;
}

impl Default for TextOptions {
    fn default() -> TextOptions {
        TextOptions { width: 80, colour: false, ascii: false, verbose: false, section: None }
    }
}

/// The report of a recording, ready to be printed.
pub fn text(recording: &Recording, options: &TextOptions) -> String {
    // A study is always shown in brief.
    if options.verbose || options.section.is_some() || recording.study.is_some() {
        return printed(report::report(recording, options.section), options);
    }
    first_screen(recording, options)
}

/// The parts of a report, ready to be printed.
pub(crate) fn printed(parts: Vec<Part<'_>>, options: &TextOptions) -> String {
    let options = TextOptions { width: options.width.max(TextOptions::NARROWEST), ..*options };
    let text = print::print(parts, &options);
    if options.ascii { ascii(&text) } else { text }
}

/// The most that fits; more than that only if doubts need the lines.
fn first_screen(recording: &Recording, options: &TextOptions) -> String {
    let mut screen = String::new();
    for room in report::Room::ALL {
        screen = printed(report::first_screen(recording, room), options);
        if screen.lines().count() <= TextOptions::SCREEN {
            break;
        }
    }
    screen
}

#[cfg(test)]
pub(crate) mod tests;
