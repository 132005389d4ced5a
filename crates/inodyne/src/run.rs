//! `inodyne run`: one command, measured, explained and shown.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use inodyne_experiment::{Collector, Repetitions};
use inodyne_launch::Output;
use inodyne_model::command::Stdin;
use inodyne_trace::capability::{self, Check};

use crate::failure::{ExitStatus, Failure};
use crate::format::ReportFormat;
use crate::gates::{self, GateOptions};
use crate::keep;
use crate::measure::{self, Conditions};
use crate::options::{CommandOptions, PlaceOptions, ReportOptions, RunOptions, TraceOptions, TracerChoice};
use crate::report::{self, TextTo};
use crate::stored;

/// Arguments of `inodyne run`.
#[derive(Debug, Args)]
#[command(after_long_help = "PLACE is a directory, or a file system that inodyne makes, mounts and removes:\n  \
    ext2, ext3, ext4, xfs, btrfs, tmpfs, squashfs, erofs, or one that stands on another:\n  \
    overlay:lower=PLACE, bind:PLACE, fuse:PLACE (through a FUSE server),\n  \
    share:PLACE[,withhold-types] (as a shared folder). A label may stand before it,\n  \
    options after a colon: size=4G, mkfs=ARGUMENTS, mount=OPTIONS, set=FILE=VALUE;\n  \
    a slow device or host: delay=2ms, bandwidth=50M, iops=200; a used file system: age=3, full=80%.\n\n  \
    inodyne run find /usr -name '*.h'\n  \
    inodyne run --at ext4 --data tree:dirs=1000,files=30,bytes=1 -- find .\n  \
    inodyne run --at 'slow=ext4:mkfs=-O ^filetype' --data src --cache cold -o find.inodyne -- find .\n  \
    inodyne run --baseline old.inodyne --fail-if 'calls(openat) > +5%' -- ./start\n\n\
    The exit code is the command's own; 1 a gate does not hold (see inodyne diff --help), 2 usage,\n\
    3 the machine lacks something, 4 events were lost, 130 Ctrl-C came before all runs of -n.")]
pub struct RunArguments {
    #[command(flatten)]
    pub places: PlaceOptions,

    /// Untraced runs to time, besides the traced one; only the traced run shows its output
    #[arg(short = 'n', long, value_name = "N", default_value_t = 0, help_heading = "Runs")]
    pub runs: u32,
    /// Only time the command, do not trace it; like --tracer none
    #[arg(long, help_heading = "Runs")]
    pub no_trace: bool,
    #[command(flatten)]
    pub around: RunOptions,

    #[command(flatten)]
    pub command: CommandOptions,
    /// What traces the command
    #[arg(long, value_enum, default_value_t, value_name = "TRACER", help_heading = "Tracing")]
    pub tracer: TracerChoice,
    #[command(flatten)]
    pub tracing: TraceOptions,
    #[command(flatten)]
    pub report: ReportOptions,

    /// Compare the run with this earlier recording, and show below the report what differs
    #[arg(long, value_name = "RECORDING", help_heading = "Gates")]
    pub baseline: Option<PathBuf>,
    #[command(flatten)]
    pub gates: GateOptions,

    /// The command and its arguments; options for inodyne come before it
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub argv: Vec<OsString>,
}

/// Runs the command.
pub fn run(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let is_traced = !arguments.no_trace && arguments.tracer != TracerChoice::None;
    let untraced = if !is_traced { arguments.runs.max(1) } else { arguments.runs };
    measure::check_fresh(&arguments.places)?;
    report::check(arguments.report.format, arguments.report.section, untraced as usize, usize::from(is_traced))?;
    if arguments.around.durable && untraced == 0 {
        let message = "--durable is timed in untraced runs: run with -n N or --no-trace";
        return Err(Failure::new(ExitStatus::Usage, message));
    }
    if arguments.baseline.is_none() && !arguments.gates.fail_if.is_empty() {
        let message = "--fail-if compares a run with an earlier one: name its recording with --baseline";
        return Err(Failure::new(ExitStatus::Usage, message));
    }
    let load = |path: &PathBuf| stored::load(path, inodyne_recording::DEFAULT_LIMIT_BYTES);
    let baseline = arguments.baseline.as_ref().map(load).transpose()?;
    let gates = arguments.gates.parsed(&baseline.iter().collect::<Vec<_>>())?;
    let conditions = Conditions::new(
        arguments.command.user.as_deref(),
        output(arguments.report.format),
        collector(arguments)?,
        arguments.report.output.as_deref(),
    )?;
    let command = measure::command(arguments.argv.clone(), &arguments.command, &arguments.around, &conditions)?;
    let repetitions = Repetitions { untraced, traced: u32::from(is_traced), ..Repetitions::default() };
    let mut experiment = measure::experiment(&arguments.places, &arguments.around, vec![command], repetitions)?;
    // The command's own input, as without inodyne.
    experiment.commands[0].stdin = Stdin::Inherited;
    experiment.keep_cut_short = true;
    experiment.output_once = true;
    keep::check(&arguments.report)?;
    let (measured, failure) = conditions.measure(&experiment)?;
    let told = keep::tell(&measured.recording, &arguments.report, TextTo::Stderr, failure);
    let found = baseline.map(|baseline| inodyne_analyse::difference(&baseline, &measured.recording, &gates));
    let gated = found.map_or(Ok(()), |found| {
        report::difference_below(&found);
        gates::told(&found)
    });
    told?;
    measure::trusted(&measured.recording, &arguments.tracing)?;
    // For a single run, the command itself says how it ended.
    if measured.interrupted && measured.exit.success() && untraced + u32::from(is_traced) > 1 {
        return Ok(ExitStatus::Interrupted.into());
    }
    match gated {
        Err(failed) if measured.exit.success() => Ok(failed.into()),
        _ => Ok(ExitStatus::of(measured.exit).into()),
    }
}

/// What can trace the command here, if it is to be traced.
fn collector(arguments: &RunArguments) -> Result<Collector, Failure> {
    let options = arguments.tracing.tracer();
    let strace = inodyne_launch::find("strace".as_ref(), std::env::var_os("PATH").as_deref());
    match (arguments.tracer, strace) {
        (TracerChoice::Strace, Ok(strace)) => Ok(Collector::Strace(strace)),
        (TracerChoice::Strace, Err(_)) => {
            Err(Failure::new(ExitStatus::Lacking, "--tracer strace: strace is not installed"))
        }
        (TracerChoice::Auto, Ok(strace)) if !arguments.no_trace => match capability::require_for_tracing() {
            Ok(()) => Ok(Collector::BpfOrStrace(options, strace)),
            Err(Check { what, problem, .. }) => {
                let problem = problem.unwrap_or_default();
                let doctor = "'inodyne doctor' says what to do";
                crate::say::say!("inodyne: tracing needs {what}: {problem} ({doctor}); strace is used instead");
                Ok(Collector::Strace(strace))
            }
        },
        _ => Ok(Collector::Bpf(options)),
    }
}

/// Standard output is the command's, unless the report has a file format.
fn output(format: ReportFormat) -> Output {
    match format {
        ReportFormat::Text => Output::Inherit,
        _ => Output::ToStderr,
    }
}
