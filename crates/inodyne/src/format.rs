//! The formats in which a recording is shown, and how a file name selects one.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::PossibleValue;

/// The formats of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ReportFormat {
    /// For reading in a terminal
    #[default]
    Text,
    /// Everything
    Json,
    /// A self-contained page for a browser
    Html,
    /// The report for GitHub: an issue, a wiki, a pull request
    Markdown,
    /// One table, chosen by --section: the runs, unless another is named
    Csv,
    /// Times of the untraced runs, as `hyperfine --export-json` (1.x) writes them
    Hyperfine,
    /// One picture with the verdict and a bar, for an issue or a chat
    SvgCard,
}

impl ReportFormat {
    /// Whether it can show one section alone.
    pub fn has_parts(self) -> bool {
        match self {
            ReportFormat::Text | ReportFormat::Json | ReportFormat::Markdown | ReportFormat::Csv => true,
            ReportFormat::Html | ReportFormat::Hyperfine | ReportFormat::SvgCard => false,
        }
    }

    /// The format that a file's name asks for.
    fn of_file(path: &Path) -> Option<ReportFormat> {
        Some(match extension(path)? {
            "html" | "htm" => ReportFormat::Html,
            "json" => ReportFormat::Json,
            "md" => ReportFormat::Markdown,
            "csv" => ReportFormat::Csv,
            "txt" => ReportFormat::Text,
            _ => return None,
        })
    }
}

/// The formats in which other programs read stacks and timelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProfileFormat {
    /// Stacks, one per line, with nanoseconds
    Folded,
    /// A flame graph
    Svg,
    /// Stacks for the Firefox Profiler
    Firefox,
    /// Stacks for speedscope
    Speedscope,
    /// Stacks for pprof
    Pprof,
    /// The timeline, for Perfetto
    Perfetto,
}

impl ProfileFormat {
    fn of_file(path: &Path) -> Option<ProfileFormat> {
        Some(match extension(path)? {
            "folded" => ProfileFormat::Folded,
            "svg" => ProfileFormat::Svg,
            "pb" | "gz" => ProfileFormat::Pprof,
            "pftrace" | "perfetto-trace" => ProfileFormat::Perfetto,
            _ => return None,
        })
    }
}

/// The formats in which the difference of two recordings is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum DifferenceFormat {
    /// For reading in a terminal
    #[default]
    Text,
    /// Everything
    Json,
    /// A self-contained page for a browser
    Html,
    /// For GitHub: an issue, a pull request
    Markdown,
    /// A test for each gate, for continuous integration
    Junit,
    /// Stacks of one trace of each recording, one per line, with nanoseconds before and after
    Folded,
    /// The same as a flame graph
    Svg,
}

impl DifferenceFormat {
    /// The format that a file's name asks for; text if it has no extension.
    ///
    /// # Errors
    /// It asks for an unknown format; the text says which there are.
    pub fn of_file(path: &Path) -> Result<DifferenceFormat, String> {
        Ok(match extension(path) {
            Some("html" | "htm") => DifferenceFormat::Html,
            Some("json") => DifferenceFormat::Json,
            Some("md") => DifferenceFormat::Markdown,
            Some("xml") => DifferenceFormat::Junit,
            Some("folded") => DifferenceFormat::Folded,
            Some("svg") => DifferenceFormat::Svg,
            None | Some("txt") => DifferenceFormat::Text,
            Some(_) => return Err(no_form(path, ".html, .json, .md, .txt, .xml, .folded or .svg")),
        })
    }

    /// Whether it shows stacks, of one trace of each.
    pub fn is_of_stacks(self) -> bool {
        matches!(self, DifferenceFormat::Folded | DifferenceFormat::Svg)
    }
}

/// All formats in which a recording can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A report.
    Report(ReportFormat),
    /// Stacks or a timeline.
    Profile(ProfileFormat),
}

impl Format {
    const ALL: [Format; 13] = [
        Format::Report(ReportFormat::Text),
        Format::Report(ReportFormat::Json),
        Format::Report(ReportFormat::Html),
        Format::Report(ReportFormat::Markdown),
        Format::Report(ReportFormat::Csv),
        Format::Report(ReportFormat::Hyperfine),
        Format::Report(ReportFormat::SvgCard),
        Format::Profile(ProfileFormat::Folded),
        Format::Profile(ProfileFormat::Svg),
        Format::Profile(ProfileFormat::Firefox),
        Format::Profile(ProfileFormat::Speedscope),
        Format::Profile(ProfileFormat::Pprof),
        Format::Profile(ProfileFormat::Perfetto),
    ];

    /// The format that a file's name asks for; text if it has no extension.
    ///
    /// # Errors
    /// It asks for an unknown format; the text says which there are.
    pub fn of_file(path: &Path) -> Result<Format, String> {
        let report = ReportFormat::of_file(path).map(Format::Report);
        let profile = || ProfileFormat::of_file(path).map(Format::Profile);
        match (report.or_else(profile), extension(path)) {
            (Some(format), _) => Ok(format),
            (None, None) => Ok(Format::Report(ReportFormat::Text)),
            (None, Some(_)) => {
                let forms = ".html, .json, .md, .csv, .txt, .folded, .svg, .pb, .gz, .pftrace or .perfetto-trace";
                Err(no_form(path, forms))
            }
        }
    }
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Format] {
        &Format::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Format::Report(format) => format.to_possible_value(),
            Format::Profile(format) => format.to_possible_value(),
        }
    }
}

fn extension(path: &Path) -> Option<&str> {
    path.extension().and_then(|extension| extension.to_str())
}

fn no_form(path: &Path, forms: &str) -> String {
    format!("{}: the name's ending is not a known format: end it in {forms}, or give --format", path.display())
}

/// A recording's file. Other formats are asked for in other ways, so a name with their extensions is taken for a mistake.
pub fn recording_file(name: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(name);
    match extension(&path) {
        None | Some("inodyne") => Ok(path),
        Some(_) => {
            Err("this keeps a recording, FILE.inodyne; a report is written by --report FILE.html, or by inodyne show"
                .to_owned())
        }
    }
}

/// A report's file, whose name selects the format.
pub fn report_file(name: &str) -> Result<(PathBuf, ReportFormat), String> {
    let path = PathBuf::from(name);
    let format = ReportFormat::of_file(&path);
    let format = format.ok_or("the name must end in .html, .json, .md, .csv or .txt")?;
    Ok((path, format))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_that_there_is_not_is_refused() {
        let refused = Format::of_file(Path::new("x.pdf")).unwrap_err();
        assert!(refused.contains("x.pdf"));
        // Every name that is offered says a form.
        let names = refused.split([',', ' ']).filter(|word| word.starts_with('.'));
        let formats: Vec<_> = names.map(|name| Format::of_file(Path::new(&format!("x{name}"))).expect(name)).collect();
        assert!(formats.contains(&Format::Profile(ProfileFormat::Perfetto)));
        assert!(DifferenceFormat::of_file(Path::new("x.csv")).is_err());
        assert_eq!(Format::of_file(Path::new("a/x")), Ok(Format::Report(ReportFormat::Text)));
        assert!(
            recording_file("x.html").is_err() && recording_file("x.inodyne").is_ok() && recording_file("x").is_ok()
        );
    }

    #[test]
    fn every_form_can_be_asked_for() {
        let of_both = ReportFormat::value_variants().len() + ProfileFormat::value_variants().len();
        assert_eq!(Format::ALL.len(), of_both);
        for format in ReportFormat::value_variants() {
            assert!(Format::ALL.contains(&Format::Report(*format)), "{format:?}");
        }
        for format in ProfileFormat::value_variants() {
            assert!(Format::ALL.contains(&Format::Profile(*format)), "{format:?}");
        }
    }
}
