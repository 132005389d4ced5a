//! The formats of a report, and where each is printed.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use inodyne_model::file::write_whole;
use inodyne_model::recording::Recording;
use inodyne_render::{Section, TextOptions};

use crate::cli::{Format, ReportOptions};
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

/// What `run` and `compare` tell: a report where reports belong, and one in the file that was asked for.
///
/// # Errors
/// The file cannot be written.
pub fn tell(recording: &Recording, options: &ReportOptions, text_to: TextTo) -> Result<(), Failure> {
    show(recording, options.format, None, text_to, None)?;
    match &options.report {
        Some((path, format)) => show(recording, *format, None, text_to, Some(path)),
        None => Ok(()),
    }
}

/// Prints the report, or writes it into a file. A reader that went away (`| head`) is no error.
///
/// # Errors
/// The file cannot be written, or the format has no sections.
pub fn show(
    recording: &Recording,
    format: Format,
    section: Option<Section>,
    text_to: TextTo,
    output: Option<&Path>,
) -> Result<(), Failure> {
    match (format, text_to, output) {
        (Format::Json, ..) => write(inodyne_render::json(recording).as_bytes(), output)?,
        (Format::Html, ..) if section.is_some() => {
            return Err(Failure::new(USAGE, "an HTML report is one page: it has no sections"));
        }
        (Format::Html, ..) => write(inodyne_render::html(recording).as_bytes(), output)?,
        (Format::Text, TextTo::Stderr, None) => {
            let options = options(section, io::stderr().is_terminal());
            drop(io::stderr().lock().write_all(inodyne_render::text(recording, &options).as_bytes()));
        }
        (Format::Text, ..) => {
            let options = options(section, output.is_none() && io::stdout().is_terminal());
            write(inodyne_render::text(recording, &options).as_bytes(), output)?;
        }
    }
    Ok(())
}

/// Writes to standard output, or into a file.
///
/// # Errors
/// The file cannot be written.
pub fn write(bytes: &[u8], output: Option<&Path>) -> Result<(), Failure> {
    match output {
        Some(path) => {
            let written = write_whole(path, |out| out.write_all(bytes));
            written.map_err(|error| Failure::new(USAGE, format_args!("{}: {error}", path.display())))
        }
        None => {
            // A reader that went away is no error.
            drop(io::stdout().lock().write_all(bytes));
            Ok(())
        }
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
