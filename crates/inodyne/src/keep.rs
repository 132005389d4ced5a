//! Files for recordings and reports. Whether they can be written is checked before anything runs; what then still cannot be written is
//! kept elsewhere, so that no measurement is lost to a full disk.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
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

/// Checks that what is written does not take the place of what it is made from.
///
/// # Errors
/// It is the same file.
pub fn check_other(from: &Path, to: Option<&Path>) -> Result<(), Failure> {
    let file = |path: &Path| path.metadata().ok().filter(Metadata::is_file).map(|file| (file.dev(), file.ino()));
    match to.filter(|to| file(from).is_some_and(|from| file(to) == Some(from))) {
        Some(to) => {
            let file = to.display();
            let message = format_args!("{file}: this is the file that is read: name another one to be written");
            Err(Failure::new(ExitStatus::Usage, message))
        }
        None => Ok(()),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_not_written_over_whatever_it_is_called() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        for name in ["log", "other"] {
            std::fs::write(path(name), "kept").expect("a file");
        }
        std::os::unix::fs::symlink("log", path("link")).expect("a link");
        let check = |to: &str| check_other(&path("log"), Some(&path(to))).map_err(|told| told.to_string());
        for same in ["log", "link", "./log"] {
            assert!(check(same).is_err_and(|told| told.contains(same)), "{same}");
        }
        assert_eq!([check("other"), check("none")], [Ok(()), Ok(())]);
        assert!(check_other(&path("log"), None).is_ok() && check_other(&path("none"), Some(&path("none"))).is_ok());
        // Reading a device or a pipe is not the same as writing it.
        assert!(check_other(Path::new("/dev/null"), Some(Path::new("/dev/null"))).is_ok());
    }
}
