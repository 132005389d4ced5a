//! One window after another: `attach --every 60s --for 5s --keep 24h --into DIRECTORY`. Each is a recording in the directory, and adds to
//! counters for a monitoring system if these are wanted.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use inodyne_model::recording::Recording;
use inodyne_render::Metrics;

use super::AttachArguments;
use crate::failure::{ExitStatus, Failure};
use crate::format::ReportFormat;
use crate::options::time;
use crate::ring::{Keep, Ring};
use crate::target::Target;
use crate::window::{Ended, came_within, ending_signals, forget, window};
use crate::{disks, measure, report};

/// Two windows that begin in the same second would have the same name.
const LEAST_EVERY: Duration = Duration::from_secs(1);

/// How often, and what is kept.
#[derive(Debug, Args)]
pub struct SeriesOptions {
    /// Start a window this often, each as long as --for says, until Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = time, requires_all = ["length", "into"], help_heading = "One window after the other")]
    pub every: Option<Duration>,
    /// Directory for the recordings, which are named after their times
    #[arg(long, value_name = "DIRECTORY", requires = "every", help_heading = "One window after the other")]
    pub into: Option<PathBuf>,
    /// Remove recordings from it that are older than this, or the oldest ones if all but the newest exceed this in total: 24h, 500M
    #[arg(long, value_name = "TIME|SIZE", requires = "every", help_heading = "One window after the other")]
    pub keep: Option<Keep>,
    /// After each window, write counters over all windows to this file, in the format read by node_exporter's textfile collector
    #[arg(long, value_name = "FILE.prom", requires = "every", help_heading = "One window after the other")]
    pub metrics: Option<PathBuf>,
}

/// Watches until a signal comes. If there is nobody to follow in a window, a recording cannot be written, or events were lost, this is
/// reported, and the next window is tried.
///
/// # Errors
/// The machine lacks something, or the directory is not one.
pub fn run(arguments: &AttachArguments, every: Duration, into: &Path) -> Result<ExitCode, Failure> {
    let usage = |message: String| Failure::new(ExitStatus::Usage, message);
    if every < LEAST_EVERY {
        return Err(usage("--every is at least 1s: recordings are called after whole seconds".to_owned()));
    }
    if arguments.length.is_some_and(|length| length > every) {
        return Err(usage("--for is longer than --every: windows cannot overlap".to_owned()));
    }
    if arguments.report.output.is_some() || arguments.report.report.is_some() {
        return Err(usage("--every keeps recordings by itself: -o and --report are for a single window".to_owned()));
    }
    if arguments.report.format != ReportFormat::default() || arguments.report.section.is_some() {
        let advice = "--every prints no report: inodyne show DIRECTORY@TIME does, with --format and --section";
        return Err(usage(advice.to_owned()));
    }
    if !into.is_dir() {
        return Err(usage(format!("--into {}: is not a directory", into.display())));
    }
    let ring = Ring::new(into);
    let mut signals = ending_signals()?;
    let name = inodyne_render::escaped(&into.display().to_string());
    crate::say::say!("inodyne: a window every {every:?} into {name}; Ctrl-C ends it");
    // Once, since this also says what is ignored of it.
    let disks = disks::known();
    let mut metrics = Metrics::default();
    let mut said = Said::default();
    // A name or a control group may be another's by the next window. A pid may, too, but then it is not the process that was meant, and
    // when all of those have ended there is nobody to wait for.
    let lasting = if arguments.target.pids.is_empty() { None } else { Some(Target::new(&arguments.target)?) };
    loop {
        // Before the clock is read, so that the next name has a later second.
        let file = ring.next();
        let began = Instant::now();
        let mut interrupts = |time, filling: BorrowedFd<'_>| came_within(&mut signals, time, Some(filling));
        let options = arguments.tracing.tracer();
        let mut one = |target: &Target| {
            window(target, &options, &disks, arguments.length, &mut || target.whom(), &mut interrupts, |_| ())
        };
        let recorded = match &lasting {
            Some(target) => one(target),
            None => Target::new(&arguments.target).and_then(|target| one(&target)),
        };
        let ended = match recorded {
            Ok((recording, ended)) => {
                metrics.add(&recording);
                let metrics = arguments.series.metrics.as_deref().map(|path| (&metrics, path));
                said.all(write(&recording, &file, metrics));
                said.tell(Of::Loss, measure::trusted(&recording, &arguments.tracing).err());
                ended
            }
            Err(failure) if failure.status() == ExitStatus::Lacking => return Err(failure),
            Err(failure) => {
                said.tell(Of::Window, Some(failure));
                Ended::NobodyLeft
            }
        };
        if let Some(keep) = arguments.series.keep {
            let failed = ring.trim(keep).err();
            said.tell(Of::Keeping, failed.map(|error| usage(format!("{}: {error}", into.display()))));
        }
        if let Some(gone) = lasting.as_ref().and_then(|target| target.whom().err()) {
            said.tell(Of::Window, Some(gone));
            forget(signals);
            return Ok(said.exit_code());
        }
        let rest = every.saturating_sub(began.elapsed());
        if ended == Ended::Interrupted || came_within(&mut signals, rest, None) {
            forget(signals);
            return Ok(said.exit_code());
        }
    }
}

/// Writes a window's recording, and the counters of all windows if wanted. Both are tried: they may be on different disks, only one of which is full.
fn write(recording: &Recording, file: &Path, metrics: Option<(&Metrics, &Path)>) -> [(Of, Option<Failure>); 2] {
    let saved = inodyne_recording::save(recording, file).map_err(Failure::from);
    let told = metrics.map(|(metrics, path)| report::write(metrics.to_string().as_bytes(), Some(path)));
    [(Of::Recording, saved.err()), (Of::Metrics, told.and_then(Result::err))]
}

/// What can go wrong in a series without ending it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    Window,
    Recording,
    Metrics,
    Loss,
    Keeping,
}

/// What was last reported about each.
#[derive(Debug, Default)]
struct Said(BTreeMap<Of, String>);

impl Said {
    /// Reports what went wrong, but does not repeat itself.
    fn tell(&mut self, of: Of, failure: Option<Failure>) {
        let Some(failure) = failure.map(|failure| failure.to_string()) else { return };
        if self.0.get(&of) != Some(&failure) {
            crate::say::say!("inodyne: {failure}");
            self.0.insert(of, failure);
        }
    }

    /// The same for several.
    fn all(&mut self, failures: impl IntoIterator<Item = (Of, Option<Failure>)>) {
        failures.into_iter().for_each(|(of, failure)| self.tell(of, failure));
    }

    /// The exit code of the series, as for a single window: whether all windows can be trusted.
    fn exit_code(&self) -> ExitCode {
        if self.0.contains_key(&Of::Loss) { ExitStatus::Untrusted.into() } else { ExitCode::SUCCESS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_written_where_recordings_cannot_be() {
        let directory = tempfile::tempdir().expect("a directory");
        let (recording, metrics) = (Recording::new("0", 0, Default::default()), Metrics::default());
        let (nowhere, prom) = (directory.path().join("no/such.inodyne"), directory.path().join("inodyne.prom"));
        let [(of, failure), (_, none)] = write(&recording, &nowhere, Some((&metrics, &prom)));
        assert!(of == Of::Recording && failure.is_some() && none.is_none() && prom.exists());
        let nowhere_else = directory.path().join("no/such.prom");
        assert!(
            write(&recording, &nowhere, Some((&metrics, &nowhere_else))).iter().all(|(_, failure)| failure.is_some())
        );
    }

    #[test]
    fn windows_that_are_not_to_be_trusted_are_told_by_the_exit_code() {
        let mut said = Said::default();
        said.tell(Of::Keeping, Some(Failure::new(ExitStatus::Usage, "it is full")));
        said.tell(Of::Loss, None);
        assert_eq!(said.exit_code(), ExitCode::SUCCESS);
        said.tell(Of::Loss, Some(Failure::new(ExitStatus::Untrusted, "events were lost")));
        said.tell(Of::Loss, None);
        assert_eq!(said.exit_code(), ExitStatus::Untrusted.into());
    }
}
