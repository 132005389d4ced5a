//! `inodyne compare`: one command in several places, several commands in one, or both.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use inodyne_analyse::statistics::verdict;
use inodyne_experiment::{Collector, Experiment, Repetitions};
use inodyne_launch::Output;
use inodyne_model::command::CommandSpec;

use crate::failure::{ExitStatus, Failure};
use crate::keep;
use crate::measure::{self, Conditions};
use crate::options::{CommandOptions, PlaceOptions, ReportOptions, RunOptions, TraceOptions, part, time};
use crate::parameters::{self, Given, Parameter, Variant, parameter};
use crate::report::{self, TextTo};

/// Arguments of `inodyne compare`.
#[derive(Debug, Args)]
#[command(after_long_help = "The first place, or the first command, is what the others are compared with.\n\n  \
    inodyne compare --at ext4 --at overlay:lower=ext4 --data tree:dirs=100,files=30 -- find . -size +1k\n  \
    inodyne compare -c 'rm -rf tree' -c 'inodyne rm -rf tree' --at xfs --data app.tar --fresh\n  \
    inodyne compare -L jobs=1,2,4 -c 'make -j{jobs}' --prepare 'make clean'\n\n\
    Runs that fail are kept and counted, and withhold the verdict. The exit code is then 1, unless --ignore-failure.")]
pub struct CompareArguments {
    #[command(flatten)]
    pub places: PlaceOptions,

    /// A command to compare; may be given several times. Plain words are run as they are, anything else by /bin/sh -c
    #[arg(short = 'c', long = "command", value_name = "COMMAND", help_heading = "Command")]
    pub commands: Vec<String>,
    /// Substitute each value for {NAME} in commands, --prepare and --cleanup; may be given several times
    #[arg(short = 'L', long = "parameter-list", value_name = "NAME=VALUE,...", value_parser = parameter, help_heading = "Command")]
    pub parameters: Vec<Parameter>,

    /// Pairs of untraced runs; with --until, at least this many, and as many as a verdict takes
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, help_heading = "Runs",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Go on until each interval extends no further than this percentage to either side: 2%
    #[arg(long, value_name = "PERCENT", value_parser = part, help_heading = "Runs")]
    pub until: Option<f64>,
    /// Start no further block after this long: 90s, 5min
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Runs")]
    pub max_time: Option<Duration>,
    /// Runs of each kind to discard first
    #[arg(short, long, value_name = "N", default_value_t = 0, help_heading = "Runs")]
    pub warmup: u32,
    /// Traced runs of each kind, which show where the difference comes from; 0 for none [default: same as --runs, at most 10]
    #[arg(long, value_name = "N", help_heading = "Runs")]
    pub traced: Option<u32>,
    /// Only time, like --traced 0
    #[arg(long, conflicts_with = "traced", help_heading = "Runs")]
    pub no_trace: bool,
    /// Treat differences below this percentage as none
    #[arg(long, value_name = "PERCENT", value_parser = part, default_value = "2%", help_heading = "Runs")]
    pub margin: f64,
    /// Do not fail if runs of the command fail
    #[arg(short = 'i', long, help_heading = "Runs")]
    pub ignore_failure: bool,
    #[command(flatten)]
    pub around: RunOptions,

    /// Show what the commands print, on standard error
    #[arg(long, help_heading = "Command")]
    pub show_output: bool,
    #[command(flatten)]
    pub command: CommandOptions,
    #[command(flatten)]
    pub tracing: TraceOptions,
    #[command(flatten)]
    pub report: ReportOptions,

    /// The command and its arguments, instead of --command
    #[arg(
        trailing_var_arg = true,
        value_name = "COMMAND",
        required_unless_present = "commands",
        conflicts_with = "commands"
    )]
    pub argv: Vec<OsString>,
}

/// With ten, a call that always differs can be told from chance among a dozen others (Holm's correction); more would cost time.
const MOST_TRACED: u32 = 10;

/// Runs the command.
pub fn run(arguments: &CompareArguments) -> Result<ExitCode, Failure> {
    measure::check_fresh(&arguments.places)?;
    let traced = if arguments.no_trace { 0 } else { arguments.traced.unwrap_or(arguments.runs.min(MOST_TRACED)) };
    report::check(arguments.report.format, arguments.report.section, arguments.runs as usize, traced as usize)?;
    let variants = variants(arguments)?;
    if variants.len() < 2 && arguments.places.places.len() < 2 {
        return Err(Failure::new(
            ExitStatus::Usage,
            "nothing to compare: give --at twice, --command twice, or -L NAME=VALUE,VALUE",
        ));
    }
    let conditions = Conditions::new(
        arguments.command.user.as_deref(),
        if arguments.show_output { Output::ToStderr } else { Output::Discard },
        Collector::Bpf(arguments.tracing.tracer()),
        arguments.report.output.as_deref(),
    )?;
    let commands = variants.into_iter().map(|variant| command(variant, arguments, &conditions));
    let repetitions = Repetitions {
        warmup: arguments.warmup,
        untraced: arguments.runs,
        traced,
        until: arguments.until,
        max_time: arguments.max_time,
    };
    let commands = commands.collect::<Result<_, _>>()?;
    let mut experiment = measure::experiment(&arguments.places, &arguments.around, commands, repetitions)?;
    experiment.margin = Some(arguments.margin);
    keep::check(&arguments.report)?;
    run_enough(&mut experiment);
    let (measured, failure) = conditions.measure(&experiment)?;
    keep::tell(&measured.recording, &arguments.report, TextTo::Stdout, failure)?;
    measure::trusted(&measured.recording, &arguments.tracing)?;
    if measured.interrupted {
        return Ok(ExitStatus::Interrupted.into());
    }
    let failed = measured.recording.runs.iter().filter(|run| !run.exit.success()).count();
    if failed > 0 && !arguments.ignore_failure {
        let of = measured.recording.runs.len();
        let message = format_args!("{failed} of {of} runs failed: no verdict about them");
        return Err(Failure::new(ExitStatus::Failed, message));
    }
    Ok(ExitCode::SUCCESS)
}

/// A verdict takes so many pairs of runs, whatever the difference: with --until that many are made, otherwise the user is warned before
/// anything runs if fewer were asked for.
fn run_enough(experiment: &mut Experiment) {
    let (places, commands) = (experiment.places.len(), experiment.commands.len());
    // Every place but the first is compared with the first, and so is every command; each to exit, and to durable if that is timed.
    let in_a_state = commands * (places - 1) + places * (commands - 1);
    let together = in_a_state * experiment.groups.len() * if experiment.durable { 2 } else { 1 };
    let needed = verdict::pairs_needed(together) as u32;
    let Repetitions { untraced: runs, until, .. } = &mut experiment.repetitions;
    if until.is_some() {
        *runs = needed.max(*runs);
    } else if *runs < needed {
        let asked = if together == 1 { "a comparison".to_owned() } else { format!("{together} comparisons at once") };
        crate::say::say!(
            "inodyne: {runs} pairs of runs cannot decide {asked}, however large the difference: -n {needed} can"
        );
    }
}

/// Every command with every choice of values.
fn variants(arguments: &CompareArguments) -> Result<Vec<Variant>, Failure> {
    let usage = |message: String| Failure::new(ExitStatus::Usage, message);
    let given: Vec<Given<'_>> = match arguments.commands.as_slice() {
        [] => vec![Given::Words(&arguments.argv)],
        lines => lines.iter().map(|line| Given::Line(line)).collect(),
    };
    let around = [arguments.around.prepare.as_ref(), arguments.around.cleanup.as_ref()];
    parameters::check(&arguments.parameters, &given, around).map_err(usage)?;
    let of_one = |command: &Given<'_>| parameters::variants(*command, around, &arguments.parameters);
    let all = given.iter().map(of_one).collect::<Result<Vec<_>, _>>().map_err(usage)?;
    Ok(all.into_iter().flatten().collect())
}

/// A command under its conditions. If only what is around it differs, its label lists the values.
fn command(
    variant: Variant,
    arguments: &CompareArguments,
    conditions: &Conditions<'_>,
) -> Result<CommandSpec, Failure> {
    let command = measure::command(variant.argv, &arguments.command, &arguments.around, conditions)?;
    let label = match variant.values_around.as_str() {
        "" => command.label,
        values => format!("{} ({values})", command.label),
    };
    Ok(CommandSpec { label, prepare: variant.prepare, cleanup: variant.cleanup, ..command })
}
