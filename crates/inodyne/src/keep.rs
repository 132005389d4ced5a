//! Files for recordings and reports. Whether they can be written is checked before anything runs; what then still cannot be written is
//! kept elsewhere, so that no measurement is lost to a full disk.

use std::path::Path;

use inodyne_model::recording::Recording;
use inodyne_recording::file::check_writable;

use crate::failure::{ExitStatus, Failure};
use crate::options::ReportOptions;
use crate::report::{self, Extent, TextTo};

/// Checks the files that a recording and a report will go to.
///
/// # Errors
/// One of them could not be written.
pub fn check(options: &ReportOptions) -> Result<(), Failure> {
    let report = options.report.as_ref().map(|(path, _)| path);
    options.output.iter().chain(report).try_for_each(|path| check_file(path))
}

/// Checks one file.
///
/// # Errors
/// It could not be written.
pub fn check_file(path: &Path) -> Result<(), Failure> {
    check_writable(path)
        .map_err(|error| Failure::of_file(&error, format_args!("{}: {error}; nothing was run", path.display())))
}

/// Saves the recording in its file, or else elsewhere.
///
/// # Errors
/// It is not in its file; the failure says where it is.
pub fn save(recording: &Recording, path: &Path) -> Result<(), Failure> {
    inodyne_recording::save(recording, path).map_err(|error| elsewhere(recording, &error))
}

/// The failure that ends the program, of two: the earlier. The other is told at once, since it may be the one that says where the
/// recording is.
pub fn first(earlier: Option<Failure>, later: Option<Failure>) -> Option<Failure> {
    if let (Some(_), Some(later)) = (&earlier, &later) {
        crate::say::say!("inodyne: {later}");
    }
    earlier.or(later)
}

/// What `run`, `compare` and `study` report: a report where reports belong, and one in the file that was asked for. If one of them cannot
/// be written and there is no recording from which it could be made again, a recording is saved then. What went wrong earlier keeps
/// nothing from being reported, nor does one report keep the other from being written.
///
/// # Errors
/// Something went wrong earlier, or a report cannot be written.
pub fn tell(
    recording: &Recording,
    options: &ReportOptions,
    text_to: TextTo,
    earlier: Option<Failure>,
) -> Result<(), Failure> {
    first(earlier, reports(recording, options, text_to).err()).map_or(Ok(()), Err)
}

fn reports(recording: &Recording, options: &ReportOptions, text_to: TextTo) -> Result<(), Failure> {
    let extent = Extent::new(options.section, options.verbose);
    let printed = report::show(recording, options.format, extent, text_to, None).err();
    let written = options.report.as_ref().and_then(|(path, format)| {
        // A page is always whole.
        let section = options.section.filter(|_| format.has_parts());
        let shown = report::show(recording, *format, Extent::new(section, true), text_to, Some(path));
        shown.err().map(|failure| Failure::new(ExitStatus::Lacking, failure))
    });
    match (first(printed, written), &options.output) {
        (None, _) => Ok(()),
        (Some(failure), Some(_)) => Err(failure),
        (Some(failure), None) => Err(elsewhere(recording, &failure)),
    }
}

/// Keeps the recording although something could not be written.
fn elsewhere(recording: &Recording, problem: &dyn std::fmt::Display) -> Failure {
    let kept = match inodyne_recording::save_elsewhere(recording) {
        Ok(path) => format!("the recording is in {}", path.display()),
        Err(error) => format!("the recording is lost, since {error}"),
    };
    Failure::new(ExitStatus::Lacking, format_args!("{problem}; {kept}"))
}
