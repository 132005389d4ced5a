//! The forms of a report, and how a file's name says which.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

/// The forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// For reading in a terminal; `run` prints it on standard error, after the command's own output
    #[default]
    Text,
    /// Everything, on standard output; the command's own output then goes to standard error
    Json,
    /// A page for a browser that needs nothing else, on standard output like JSON
    Html,
    /// The report for GitHub: an issue, a wiki, a pull request
    Markdown,
    /// One table, chosen by --section: the runs, unless another is named
    Csv,
    /// Times of the untraced runs, as `hyperfine --export-json` (1.x) writes them
    Hyperfine,
}

/// What a file's name says of its form.
pub fn extension(path: &Path) -> Option<&str> {
    path.extension().and_then(|extension| extension.to_str())
}

/// A report's file, whose name says in which form.
pub fn report_file(name: &str) -> Result<(PathBuf, Format), String> {
    let path = PathBuf::from(name);
    let format = match extension(&path) {
        Some("html" | "htm") => Format::Html,
        Some("json") => Format::Json,
        Some("md") => Format::Markdown,
        Some("csv") => Format::Csv,
        Some("txt") => Format::Text,
        _ => return Err("the name must end in .html, .json, .md, .csv or .txt".to_owned()),
    };
    Ok((path, format))
}
