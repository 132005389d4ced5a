//! `inodyne import`: a recording from an strace log. Needs no privileges, and the log may come from another machine.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use inodyne_lab::Size;
use inodyne_model::count::counted;

use crate::failure::{ExitStatus, Failure};
use crate::keep;
use crate::options::ReportOptions;
use crate::report::{self, TextTo};

/// A log that is longer is refused unless the user says otherwise: it is read into memory.
const LONGEST_LOG_BYTES: u64 = 2 << 30;

/// Arguments of `inodyne import`.
#[derive(Debug, Args)]
#[command(after_long_help = "Make the log with\n\n  \
    strace -f -ttt -T -o find.log find .\n\n\
    anywhere, without root; -y, -yy, -C, -k, --decode-pids=comm, -tt and -r instead of -ttt do no harm. Counts, errors and \
    times of calls, paths, programs and processes are taken from it. What happened inside of a call is not in a log, so that is \
    not divided, and strace's own cost is in all times.\n\n  \
    inodyne import find.log\n  \
    inodyne import find.log -o find.inodyne --report find.html")]
pub struct ImportArguments {
    /// The log; - for standard input
    #[arg(value_name = "FILE")]
    pub log: PathBuf,
    /// Refuse a log that is longer than this
    #[arg(long, value_name = "SIZE", default_value_t = Size::from_bytes(LONGEST_LOG_BYTES))]
    pub max_size: Size,
    #[command(flatten)]
    pub report: ReportOptions,
}

/// Runs the command.
pub fn run(arguments: &ImportArguments) -> Result<ExitCode, Failure> {
    report::check(arguments.report.format, arguments.report.section, 0, 1)?;
    keep::check(&arguments.report)?;
    let report = arguments.report.report.as_ref().map(|(path, _)| path);
    arguments.report.output.iter().chain(report).try_for_each(|to| keep::check_other(&arguments.log, Some(to)))?;
    let log = read(&arguments.log, arguments.max_size.bytes())?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let imported = inodyne_import::strace(&log, env!("CARGO_PKG_VERSION"), now)
        .map_err(|error| Failure::new(ExitStatus::Usage, format_args!("{}: {error}", arguments.log.display())))?;
    for what in passed_over(imported.unread_lines, imported.untimed_calls) {
        crate::say::say!("inodyne: {what}");
    }
    let mut recording = imported.recording;
    inodyne_analyse::explain(&mut recording);
    // What cannot be saved can still be reported.
    let unsaved = arguments.report.output.as_ref().and_then(|output| keep::save(&recording, output).err());
    keep::tell(&recording, &arguments.report, TextTo::Stdout, unsaved)?;
    Ok(ExitCode::SUCCESS)
}

/// What of a log is not in the recording, or only in part, in words.
fn passed_over(unread_lines: u64, untimed_calls: u64) -> impl Iterator<Item = String> {
    let unread = counted(unread_lines, "line that is not strace's was", "lines that are not strace's were");
    let untimed = counted(
        untimed_calls,
        "call has no duration (-T), and counts with",
        "calls have no duration (-T), and count with",
    );
    let all = [(unread_lines, format!("{unread} passed over")), (untimed_calls, format!("{untimed} no time"))];
    all.into_iter().filter(|(count, _)| *count > 0).map(|(_, what)| what)
}

/// The whole log. Bytes that are not UTF-8 (a program's output on a terminal) are replaced.
fn read(path: &Path, limit_bytes: u64) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::of_file(&error, format_args!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    let limit = limit_bytes.saturating_add(1);
    if path.as_os_str() == "-" {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        File::open(path).map_err(failed)?.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    }
    if bytes.len() as u64 > limit_bytes {
        let size = Size::from_bytes(limit_bytes);
        return Err(Failure::new(
            ExitStatus::Usage,
            format_args!("{}: longer than {size}: cut it, or allow more with --max-size", path.display()),
        ));
    }
    Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_is_not_several() {
        let said = |unread, untimed| passed_over(unread, untimed).collect::<Vec<_>>();
        assert!(said(0, 0).is_empty());
        assert_eq!(
            said(1, 1),
            ["1 line that is not strace's was passed over", "1 call has no duration (-T), and counts with no time"]
        );
        assert_eq!(
            said(1_234, 2),
            [
                "1,234 lines that are not strace's were passed over",
                "2 calls have no duration (-T), and count with no time"
            ]
        );
    }
}
