//! The formats of a report, and where each is printed.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use inodyne_model::difference::Difference;
use inodyne_model::recording::Recording;
use inodyne_recording::file::{Access, write_whole};
use inodyne_render::{Section, TextOptions};

use crate::failure::{ExitStatus, Failure};
use crate::format::{DifferenceFormat, ReportFormat};

/// Where a text report goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextTo {
    /// `run`: standard output belongs to the command.
    Stderr,
    /// `show`: there is no command.
    Stdout,
}

/// How much of a recording a report has. Only text leaves something out of its own accord.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// What fits a small terminal.
    FirstScreen,
    /// Everything.
    Whole,
    /// One part, in full.
    Section(Section),
}

impl Extent {
    /// As `--section` and `--verbose` ask for it.
    pub fn new(section: Option<Section>, verbose: bool) -> Extent {
        match section {
            Some(section) => Extent::Section(section),
            None if verbose => Extent::Whole,
            None => Extent::FirstScreen,
        }
    }

    fn section(self) -> Option<Section> {
        match self {
            Extent::Section(section) => Some(section),
            Extent::FirstScreen | Extent::Whole => None,
        }
    }
}

const WIDTH_WITHOUT_TERMINAL: usize = 80;
const NO_TIMES: &str =
    "hyperfine's format holds times of untraced runs, and there are none: run with -n N or --no-trace";
const NO_CARD: &str = "svg-card is of a traced run, and there is none: run without --no-trace";

/// Prints the report, or writes it to a file. A reader that went away (`| head`) is not an error.
///
/// # Errors
/// The file cannot be written, or the format has nothing to say about this recording, or no sections.
pub fn show(
    recording: &Recording,
    format: ReportFormat,
    extent: Extent,
    text_to: TextTo,
    output: Option<&Path>,
) -> Result<(), Failure> {
    let section = extent.section();
    let untraced = recording.runs.iter().filter(|run| !run.traced).count();
    check(format, section, untraced, recording.traces.len())?;
    let report = match (format, text_to, output) {
        (ReportFormat::Json, ..) => match section {
            Some(section) => inodyne_render::json_section(recording, section),
            None => return write_by(|mut to| inodyne_render::json(recording, &mut to), output),
        },
        (ReportFormat::Html, ..) => inodyne_render::html(recording),
        (ReportFormat::Markdown, ..) => inodyne_render::markdown(recording, section),
        (ReportFormat::Csv, ..) => inodyne_render::csv(recording, section.unwrap_or(Section::RUNS)),
        (ReportFormat::Hyperfine, ..) => inodyne_render::hyperfine(recording),
        (ReportFormat::SvgCard, ..) => {
            inodyne_render::card(recording).map_err(|error| Failure::new(ExitStatus::Usage, error))?
        }
        (ReportFormat::Text, TextTo::Stderr, None) => {
            let options = options(extent, io::stderr().is_terminal(), false);
            let report = inodyne_render::text(recording, &options);
            say_if_empty(&report, section);
            drop(io::stderr().lock().write_all(report.as_bytes()));
            return Ok(());
        }
        (ReportFormat::Text, ..) => {
            // A file is not a screen.
            let extent = if output.is_some() && section.is_none() { Extent::Whole } else { extent };
            let options = options(extent, output.is_none() && io::stdout().is_terminal(), output.is_some());
            inodyne_render::text(recording, &options)
        }
    };
    say_if_empty(&report, section);
    write(report.as_bytes(), output)
}

/// Says that a section is empty: a recording has only what was recorded (`--paths`, `--block`), and what there was.
fn say_if_empty(report: &str, section: Option<Section>) {
    if let Some(section) = section.filter(|_| report.trim().is_empty()) {
        drop(writeln!(io::stderr().lock(), "inodyne: there is nothing for --section {section} in it"));
    }
}

/// Prints the difference of two recordings, or writes it to a file.
///
/// # Errors
/// The file cannot be written.
pub fn difference(found: &Difference, format: DifferenceFormat, output: Option<&Path>) -> Result<(), Failure> {
    let report = match format {
        DifferenceFormat::Json => inodyne_render::difference_json(found),
        DifferenceFormat::Html => inodyne_render::difference_html(found),
        DifferenceFormat::Markdown => inodyne_render::difference_markdown(found),
        DifferenceFormat::Junit => inodyne_render::difference_junit(found),
        DifferenceFormat::Text | DifferenceFormat::Folded | DifferenceFormat::Svg => {
            let options = options(Extent::Whole, output.is_none() && io::stdout().is_terminal(), output.is_some());
            inodyne_render::difference_text(found, &options)
        }
    };
    write(report.as_bytes(), output)
}

/// Prints the difference where the text of `run` goes: below its report.
pub fn difference_below(found: &Difference) {
    let text = inodyne_render::difference_text(found, &options(Extent::Whole, io::stderr().is_terminal(), false));
    drop(io::stderr().lock().write_all(format!("\nAgainst the baseline\n{text}").as_bytes()));
}

/// Writes to standard output, or to a file.
///
/// # Errors
/// The file, or standard output, cannot be written. A reader that went away is not an error.
pub fn write(bytes: &[u8], output: Option<&Path>) -> Result<(), Failure> {
    write_by(|to| to.write_all(bytes), output)
}

/// The same for what is made while it is written.
fn write_by(write: impl FnOnce(&mut dyn Write) -> io::Result<()>, output: Option<&Path>) -> Result<(), Failure> {
    match output {
        Some(path) => {
            let written = write_whole(path, Access::ByUmask, |out| write(out));
            written.map_err(|error| Failure::of_file(&error, format_args!("{}: {error}", path.display())))
        }
        None => {
            let mut stdout = BufWriter::new(io::stdout().lock());
            printed(write(&mut stdout).and_then(|()| stdout.flush()))
        }
    }
}

/// What became of an attempt to write to standard output.
///
/// # Errors
/// It failed. A reader that went away (`| head`) is not an error.
pub fn printed(done: io::Result<()>) -> Result<(), Failure> {
    match done {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(ExitStatus::Usage, format_args!("write error: {error}")))
        }
        _ => Ok(()),
    }
}

/// Whether the runs asked for will have anything to show in this format: checked before anything runs.
///
/// # Errors
/// They will not.
pub fn check(format: ReportFormat, section: Option<Section>, untraced: usize, traced: usize) -> Result<(), Failure> {
    match format {
        ReportFormat::Hyperfine if untraced == 0 => Err(Failure::new(ExitStatus::Usage, NO_TIMES)),
        ReportFormat::SvgCard if traced == 0 => Err(Failure::new(ExitStatus::Usage, NO_CARD)),
        _ if section.is_some() && !format.has_parts() => Err(Failure::new(
            ExitStatus::Usage,
            "--section is for text, markdown, csv and json: the other formats have no parts",
        )),
        _ => Ok(()),
    }
}

/// Whether somebody is watching: then progress is shown.
pub fn shows_progress() -> bool {
    io::stderr().is_terminal()
}

/// Columns of the terminal; for anything else, as many as `COLUMNS` says.
pub fn width(terminal: bool) -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    match terminal_size::terminal_size() {
        Some((width, _)) if terminal => usize::from(width.0),
        _ => columns.unwrap_or(WIDTH_WITHOUT_TERMINAL),
    }
}

/// How text should look there. A file keeps all characters, whoever reads it.
fn options(extent: Extent, terminal: bool, is_file: bool) -> TextOptions {
    TextOptions {
        width: width(terminal),
        colour: is_coloured(terminal) && !is_file,
        ascii: !is_file && !shows_utf8(),
        verbose: extent == Extent::Whole,
        section: extent.section(),
    }
}

/// As `--color` says, otherwise as the terminal allows.
pub fn is_coloured(terminal: bool) -> bool {
    let is_set = |name: &str, value: &str| std::env::var_os(name).is_some_and(|given| given == value);
    match anstream::ColorChoice::global() {
        anstream::ColorChoice::Always | anstream::ColorChoice::AlwaysAnsi => true,
        anstream::ColorChoice::Never => false,
        anstream::ColorChoice::Auto => {
            let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            terminal && !no_color && !is_set("TERM", "dumb")
        }
    }
}

/// Whether the locale has more characters than ASCII, according to the first of these variables that is set.
pub fn shows_utf8() -> bool {
    let set = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set).unwrap_or_default().to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}
