//! `inodyne attach`: a window of processes that are already running, explained and shown. They go on as if nothing had happened.

mod series;

use std::os::fd::BorrowedFd;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::failure::Failure;
use crate::options::{ReportOptions, TraceOptions, time};
use crate::report::{self, TextTo};
use crate::target::{Target, TargetOptions};
use crate::window::{came_within, ending_signals, forget, window};
use crate::{disks, keep, measure};
use series::SeriesOptions;

/// Arguments of `inodyne attach`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "All threads of the processes named are followed, and whatever they start. What they were in the middle of when the \
    window began is reported as begun before, with its time inside the window; it is not counted among the calls.\n\n  \
    inodyne attach --pid 4711 --for 10s\n  \
    inodyne attach --name postgres --for 30s -o postgres.inodyne --report postgres.html\n  \
    inodyne attach --unit nginx --for 10s\n  \
    inodyne attach --container web --for 10s\n  \
    inodyne attach --all --for 5s\n  \
    inodyne attach --unit nginx --every 60s --for 5s --into /var/lib/inodyne --keep 24h\n\n\
    Without --for it ends with Ctrl-C, or when nobody is left. The exit code is 0; 2 usage, 3 the machine lacks something, 4 events \
    were lost."
)]
pub struct AttachArguments {
    #[command(flatten)]
    pub target: TargetOptions,
    /// How long to watch: 500ms, 10s, 5min [default: until Ctrl-C, or until no process is left]
    #[arg(long = "for", value_name = "TIME", value_parser = time, help_heading = "Window")]
    pub length: Option<Duration>,
    #[command(flatten)]
    pub series: SeriesOptions,
    #[command(flatten)]
    pub tracing: TraceOptions,
    #[command(flatten)]
    pub report: ReportOptions,
}

/// Runs the command.
pub fn run(arguments: &AttachArguments) -> Result<ExitCode, Failure> {
    report::check(arguments.report.format, arguments.report.section, 0, 1)?;
    if let (Some(every), Some(into)) = (arguments.series.every, &arguments.series.into) {
        return series::run(arguments, every, into);
    }
    let target = Target::new(&arguments.target)?;
    target.whom()?;
    keep::check(&arguments.report)?;
    let disks = disks::known();
    let mut signals = ending_signals()?;
    let mut interrupts = |time, filling: BorrowedFd<'_>| came_within(&mut signals, time, Some(filling));
    let options = arguments.tracing.tracer();
    let mut who = || target.whom();
    let (recording, _) = window(&target, &options, &disks, arguments.length, &mut who, &mut interrupts, |threads| {
        let threads = if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
        let how = if arguments.length.is_some() { "sooner" } else { "it" };
        let label = target.label();
        crate::say::say!("inodyne: following {threads} of {}; Ctrl-C ends {how}", inodyne_render::escaped(&label));
    })?;
    let saved = arguments.report.output.as_ref().map_or(Ok(()), |output| keep::save(&recording, output));
    // From here on, an impatient user may interrupt what is left: the report.
    forget(signals);
    // What cannot be saved can still be reported.
    keep::tell(&recording, &arguments.report, TextTo::Stdout, saved.err())?;
    measure::trusted(&recording, &arguments.tracing)?;
    Ok(ExitCode::SUCCESS)
}
