//! `inodyne attach`: a window of processes that run already, explained and shown. They go on as if nothing had been.

mod cgroups;
mod container;
mod series;
mod target;
mod unit;
mod watch;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use inodyne_launch::SignalReader;
use inodyne_model::command::CommandSpec;
use inodyne_model::place::Place;
use inodyne_model::recording::Recording;
use inodyne_model::trace::Trace;
use inodyne_trace::{Options, Tracer, capability};

use crate::failure::{ExitStatus, Failure};
use crate::options::{ReportOptions, TraceOptions, time};
use crate::report::{self, TextTo};
use crate::{host, keep, measure};
use series::SeriesOptions;
use target::{Target, TargetOptions};
use watch::Ended;

/// Arguments of `inodyne attach`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "All threads of the processes named are followed, and whatever they start. What they were in when the \
    window began is told as begun before, with its time inside the window; it is not among the counts of calls.\n\n  \
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
    /// How long to watch: 500ms, 10s, 5min [default: until Ctrl-C, or until nobody is left]
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
    report::check(arguments.report.format, arguments.report.section, 0)?;
    if let (Some(every), Some(into)) = (arguments.series.every, &arguments.series.into) {
        return series::run(arguments, every, into);
    }
    let target = Target::new(&arguments.target)?;
    target.whom()?;
    keep::check(&arguments.report)?;
    let mut signals = signals()?;
    let (recording, _) = window(arguments, &target, &mut signals, |threads| {
        let threads = if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
        let how = if arguments.length.is_some() { "sooner" } else { "it" };
        let label = target.label();
        anstream::eprintln!("inodyne: following {threads} of {}; Ctrl-C ends {how}", inodyne_render::escaped(&label));
    })?;
    drop(signals);
    if let Some(output) = &arguments.report.output {
        keep::save(&recording, output)?;
    }
    keep::tell(&recording, &arguments.report, TextTo::Stdout)?;
    measure::trusted(&recording, &arguments.tracing)?;
    Ok(ExitCode::SUCCESS)
}

fn signals() -> Result<SignalReader, Failure> {
    let unwatched = |error| Failure::new(ExitStatus::Lacking, format_args!("cannot watch signals: {error}"));
    SignalReader::of(watch::ENDING).map_err(unwatched)
}

/// Watches for one window, once it is told how many threads are followed; returns it explained, and why it ended.
fn window(
    arguments: &AttachArguments,
    target: &Target,
    signals: &mut SignalReader,
    tell: impl FnOnce(u32),
) -> Result<(Recording, Ended), Failure> {
    capability::require_for_tracing().map_err(|missing| Failure::new(ExitStatus::Lacking, missing))?;
    let label = target.label();
    // A path leads to an end, and a window has none: so nobody pays for the timeline.
    let options = Options { joins: true, timeline: false, ..arguments.tracing.tracer() };
    let mut tracer = Tracer::new(&options)?;
    let threads = tracer.join(&target.whom()?)?;
    if threads == 0 && !target.may_grow() {
        return Err(Failure::new(ExitStatus::Usage, format_args!("{label}: there is no thread to follow")));
    }
    tell(threads);
    let ended = watch::watch(&mut tracer, target, arguments.length, signals)?;
    let mut recording = recording(&label, tracer.finish()?);
    inodyne_analyse::explain(&mut recording);
    Ok((recording, ended))
}

/// A recording of no run, with one trace.
fn recording(label: &str, trace: Trace) -> Recording {
    let mut recording = Recording::new(env!("CARGO_PKG_VERSION"), host::now_unix_s(), host::describe());
    recording.commands.push(CommandSpec { label: label.to_owned(), ..CommandSpec::default() });
    recording.places.push(Place { label: "this machine".to_owned(), ..Place::default() });
    let overhead = trace.estimated_overhead(trace.wall_ns);
    recording.traces.push(Trace { overhead, ..trace });
    recording
}
