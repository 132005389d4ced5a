//! The formats of a report, and where each is printed.

use std::io::{self, IsTerminal, Write};

use inodyne_model::recording::Recording;
use inodyne_render::{Section, TextOptions};

use crate::cli::Format;

/// Where a text report goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextTo {
    /// `run`: standard output belongs to the command.
    Stderr,
    /// `show`: there is no command.
    Stdout,
}

const WIDTH_WITHOUT_TERMINAL: usize = 80;

/// Prints the report. A reader that went away (`| head`) is no error.
pub fn print(recording: &Recording, format: Format, section: Option<Section>, text_to: TextTo) {
    let written = match (format, text_to) {
        (Format::Json, _) => io::stdout().lock().write_all(inodyne_render::json(recording).as_bytes()),
        (Format::Text, TextTo::Stdout) => {
            let options = options(section, io::stdout().is_terminal());
            io::stdout().lock().write_all(inodyne_render::text(recording, &options).as_bytes())
        }
        (Format::Text, TextTo::Stderr) => {
            let options = options(section, io::stderr().is_terminal());
            io::stderr().lock().write_all(inodyne_render::text(recording, &options).as_bytes())
        }
    };
    drop(written);
}

/// Whether somebody watches: then it is said what is under way.
pub fn shows_progress() -> bool {
    io::stderr().is_terminal()
}

fn options(section: Option<Section>, terminal: bool) -> TextOptions {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width = match terminal_size::terminal_size() {
        Some((width, _)) if terminal => usize::from(width.0),
        _ => columns.unwrap_or(WIDTH_WITHOUT_TERMINAL),
    };
    let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    TextOptions { width, colour, section }
}
