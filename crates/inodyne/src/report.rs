//! The formats of a report, and where each is printed.

use std::io::{self, IsTerminal, Write};

use inodyne_model::recording::Recording;
use inodyne_render::{Section, TextOptions};

use crate::cli::Format;
use crate::failure::{Failure, USAGE};

/// Where a text report goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextTo {
    /// `run`: standard output belongs to the command.
    Stderr,
    /// `show`: there is no command.
    Stdout,
}

const WIDTH_WITHOUT_TERMINAL: usize = 80;
const NO_TIMES: &str =
    "hyperfine's format holds times of untraced runs, and there are none: run with -n N or --no-trace";

/// Prints the report. A reader that went away (`| head`) is no error.
///
/// # Errors
/// The format has nothing to say about this recording.
pub fn print(recording: &Recording, format: Format, section: Option<Section>, text_to: TextTo) -> Result<(), Failure> {
    let stdout = |text: String| io::stdout().lock().write_all(text.as_bytes());
    let written = match (format, text_to) {
        (Format::Json, _) => stdout(inodyne_render::json(recording)),
        (Format::Markdown, _) => stdout(inodyne_render::markdown(recording, section)),
        (Format::Csv, _) => stdout(inodyne_render::csv(recording, section.unwrap_or(Section::Runs))),
        (Format::Hyperfine, _) if recording.runs.iter().all(|run| run.traced) => {
            return Err(Failure::new(USAGE, NO_TIMES));
        }
        (Format::Hyperfine, _) => stdout(inodyne_render::hyperfine(recording)),
        (Format::Text, TextTo::Stdout) => {
            let options = options(section, io::stdout().is_terminal());
            stdout(inodyne_render::text(recording, &options))
        }
        (Format::Text, TextTo::Stderr) => {
            let options = options(section, io::stderr().is_terminal());
            io::stderr().lock().write_all(inodyne_render::text(recording, &options).as_bytes())
        }
    };
    drop(written);
    Ok(())
}

/// Whether runs as they are asked for will have something to say in this format: asked before anything runs.
///
/// # Errors
/// They will not.
pub fn check(format: Format, section: Option<Section>, untraced: u32) -> Result<(), Failure> {
    match format {
        Format::Hyperfine if untraced == 0 => Err(Failure::new(USAGE, NO_TIMES)),
        Format::Json | Format::Hyperfine if section.is_some() => {
            Err(Failure::new(USAGE, "--section is for text, markdown and csv: the other formats have no parts"))
        }
        _ => Ok(()),
    }
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
