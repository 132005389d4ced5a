//! One window after the other: `attach --every 60s --for 5s --keep 24h --into DIRECTORY`. Each is a recording in the directory, and
//! adds to counters for a monitoring system where these are wanted.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use inodyne_render::Metrics;

use super::AttachArguments;
use crate::failure::{ExitStatus, Failure};
use crate::format::ReportFormat;
use crate::options::time;
use crate::report;
use crate::ring::{Keep, Ring};
use crate::target::Target;
use crate::window::{Ended, came_within, ending_signals, window};

/// Two windows that begin in the same second would have the same name.
const LEAST_EVERY: Duration = Duration::from_secs(1);

/// How often, and what is kept.
#[derive(Debug, Args)]
pub struct SeriesOptions {
    /// Begin a window as often as this, each as long as --for says, until Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = time, requires_all = ["length", "into"], help_heading = "One window after the other")]
    pub every: Option<Duration>,
    /// The directory for the recordings, which are called after their times
    #[arg(long, value_name = "DIRECTORY", requires = "every", help_heading = "One window after the other")]
    pub into: Option<PathBuf>,
    /// Remove recordings from it that are older, or the oldest where all but the newest are larger: 24h, 500M
    #[arg(long, value_name = "TIME|SIZE", requires = "every", help_heading = "One window after the other")]
    pub keep: Option<Keep>,
    /// Write counters of all windows into this file after each, as node_exporter's textfile collector reads them
    #[arg(long, value_name = "FILE.prom", requires = "every", help_heading = "One window after the other")]
    pub metrics: Option<PathBuf>,
}

/// Watches until a signal comes. Nobody to follow in a window, or a recording that cannot be written, is said, and the next is tried.
///
/// # Errors
/// The machine lacks something, or the directory is none.
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
        return Err(usage(format!("--into {}: is no directory", into.display())));
    }
    let ring = Ring::new(into);
    let mut signals = ending_signals()?;
    let name = inodyne_render::escaped(&into.display().to_string());
    anstream::eprintln!("inodyne: a window every {every:?} into {name}; Ctrl-C ends it");
    let mut metrics = Metrics::default();
    let mut said = None;
    loop {
        // Before the clock is read: so the next name is of a later second.
        let file = ring.next();
        let began = Instant::now();
        let mut interrupts = |time| came_within(&mut signals, time);
        let options = arguments.tracing.tracer();
        let one = |target: Target| window(&target, &options, arguments.length, &mut interrupts, |_| ());
        let ended = match Target::new(&arguments.target).and_then(one) {
            Ok((recording, ended)) => {
                metrics.add(&recording);
                let saved = inodyne_recording::save(&recording, &file).map_err(Failure::from);
                let written = saved.and_then(|()| match &arguments.series.metrics {
                    Some(path) => report::write(metrics.to_string().as_bytes(), Some(path)),
                    None => Ok(()),
                });
                tell_once(&mut said, written.err());
                ended
            }
            Err(failure) if failure.status() == ExitStatus::Lacking => return Err(failure),
            Err(failure) => {
                tell_once(&mut said, Some(failure));
                Ended::NobodyLeft
            }
        };
        if let Some(keep) = arguments.series.keep {
            let failed = ring.trim(keep).err();
            tell_once(&mut said, failed.map(|error| usage(format!("{}: {error}", into.display()))));
        }
        let rest = every.saturating_sub(began.elapsed());
        if ended == Ended::Interrupted || came_within(&mut signals, rest) {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Says what went wrong, but not the same again and again.
fn tell_once(said: &mut Option<String>, failure: Option<Failure>) {
    let Some(failure) = failure.map(|failure| failure.to_string()) else { return };
    if said.as_ref() != Some(&failure) {
        anstream::eprintln!("inodyne: {failure}");
        *said = Some(failure);
    }
}
