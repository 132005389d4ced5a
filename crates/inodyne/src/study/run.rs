//! `inodyne study run`: inputs, then part after part into one recording, then what was expected of it. A part is an experiment.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use inodyne_experiment::{Collector, Experiment, Group, Measured, Observer, PlaceSetup, Repetitions};
use inodyne_launch::Output;
use inodyne_model::command::CommandSpec;
use inodyne_model::study::{Part as Begun, Study as Recorded};
use inodyne_trace::capability;

use super::file::Form;
use super::part::{Command, Part};
use super::places::Named;
use super::plan::Plan;
use super::{Study, inputs};
use crate::failure::{ExitStatus, Failure};
use crate::keep;
use crate::measure::{self, Conditions};
use crate::options::{ReportOptions, TraceOptions};
use crate::report::{self, TextTo};

/// Arguments of `inodyne study run`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "A study's file says which commands run in which places, how often, and what must come out of \
    it; docs/studies has the words. The report is short: `inodyne show --section` shows more of a recording.\n\n  \
    inodyne study run find-dtype --quick\n  \
    inodyne study run ./mine.toml -o mine.inodyne\n\n\
    The exit code is 1 where an expectation does not hold or a run failed; 2 usage, also mistakes in the file; 3 the \
    machine lacks something; 4 events were lost."
)]
pub struct StudyRunArguments {
    /// A built-in study's name, or a file: what has a slash or ends in .toml
    #[arg(value_name = "STUDY")]
    pub study: PathBuf,

    /// Use less data and fewer runs, as the study says
    #[arg(long, help_heading = "Runs")]
    pub quick: bool,
    /// Seed for the order in which places and commands take turns
    #[arg(long, value_name = "NUMBER", default_value_t = 1, help_heading = "Runs")]
    pub seed: u64,
    /// Run the commands as this user [default: the user who called sudo, otherwise the calling user]
    #[arg(long, value_name = "NAME", help_heading = "Command")]
    pub user: Option<String>,
    #[command(flatten)]
    pub tracing: TraceOptions,
    #[command(flatten)]
    pub report: ReportOptions,
}

/// Runs the command.
pub fn run(arguments: &StudyRunArguments) -> Result<ExitCode, Failure> {
    let study = Study::read(&arguments.study)?;
    let file = arguments.report.output.as_deref();
    let conditions =
        Conditions::new(arguments.user.as_deref(), Output::Discard, Collector::Bpf(arguments.tracing.tracer()), file)?;
    let user = conditions.user.as_ref();
    let form = if arguments.quick { Form::Quick } else { Form::Full };
    let plan = study.plan(form, user)?;
    if plan.parts.iter().any(|part| part.repetitions.traced > 0) {
        capability::require_for_tracing().map_err(|missing| Failure::new(ExitStatus::Lacking, missing))?;
    }
    let runs = |of: fn(&Repetitions) -> u32| plan.parts.iter().map(|part| of(&part.repetitions) as usize).sum();
    let (untraced, traced) = (runs(|of| of.untraced), runs(|of| of.traced));
    report::check(arguments.report.format, arguments.report.section, untraced, traced)?;
    keep::check(&arguments.report)?;
    let cache = inputs::cache(user)?;
    for input in &plan.inputs {
        input.make(&cache, user)?;
    }
    let mut measured = measure::nothing();
    measured.recording.margin = plan.margin;
    measured.recording.study = Some(Recorded {
        name: study.name,
        title: plan.title.clone(),
        about: plan.about.clone(),
        quick: arguments.quick,
        ..Recorded::default()
    });
    let failure = all_parts(&plan, arguments, &conditions, &mut measured).err();
    match failure {
        Some(failure) if measured.recording.runs.is_empty() => Err(failure),
        failure => finish(&plan, arguments, measured, failure),
    }
}

fn all_parts(
    plan: &Plan,
    arguments: &StudyRunArguments,
    conditions: &Conditions<'_>,
    measured: &mut Measured,
) -> Result<(), Failure> {
    let mut terminal = conditions.terminal();
    for (at, part) in plan.parts.iter().enumerate() {
        if report::shows_progress() {
            crate::say::say!("inodyne: part {} of {}: {}", at + 1, plan.parts.len(), part.name);
        }
        measure_part(part, plan, arguments.seed, conditions, measured)?;
        if measured.interrupted {
            break;
        }
        // Anything may happen while the next part's places are made. What cannot be saved now may be at the end.
        terminal.keep(&measured.recording);
    }
    Ok(())
}

/// Measures a part, appending to what the recording already holds.
fn measure_part(
    part: &Part,
    plan: &Plan,
    seed: u64,
    conditions: &Conditions<'_>,
    measured: &mut Measured,
) -> Result<(), Failure> {
    let (commands, left_out): (Vec<&Command>, Vec<&Command>) = part.commands.iter().partition(|c| is_here(c));
    let recording = &mut measured.recording;
    let (first_place, first_command) = (recording.places.len(), recording.commands.len());
    let missing = |command: &&Command| {
        format!("{}: {} is not installed", command.name, command.if_found.as_deref().unwrap_or_default())
    };
    let begun = Begun {
        name: part.name.clone(),
        title: part.title.clone(),
        places: (first_place..first_place + part.places.len()).collect(),
        commands: (first_command..first_command + commands.len()).collect(),
        compare: part.compare,
        left_out: left_out.iter().map(missing).collect(),
    };
    if let Some(study) = &mut recording.study {
        study.parts.push(begun);
    }
    let command = |command: &&Command| CommandSpec {
        label: command.name.clone(),
        cwd: part.cwd.clone(),
        user: conditions.user.as_ref().map(|user| user.name.clone()),
        prepare: part.prepare.clone(),
        cleanup: part.cleanup.clone(),
        ..CommandSpec::new(command.argv.clone())
    };
    let setup = |place: &Named| PlaceSetup { spec: place.spec.clone(), data: part.data.clone() };
    let experiment = Experiment {
        places: part.places.iter().map(setup).collect(),
        commands: commands.iter().map(command).collect(),
        groups: Group::crossed(part.places.len(), commands.len(), &part.caches),
        repetitions: part.repetitions,
        seed,
        fresh: part.fresh,
        timeout: part.timeout,
        durable: false,
        number: None,
        margin: Some(plan.margin),
        expected_exit: None,
        keep_cut_short: false,
        race: None,
        output_once: false,
    };
    let done = conditions.add(&experiment, measured);
    // A part whose places could not be made is not in the recording.
    if measured.recording.places.len() == first_place
        && let Some(study) = &mut measured.recording.study
    {
        study.parts.pop();
    }
    done
}

/// Whether the program that a command depends on is installed; if not, the command is left out.
fn is_here(command: &Command) -> bool {
    let Some(program) = &command.if_found else { return true };
    inodyne_launch::find(program.as_ref(), std::env::var_os("PATH").as_deref()).is_ok()
}

/// Explains the result, compares it with what was expected, keeps it, and shows it.
fn finish(
    plan: &Plan,
    arguments: &StudyRunArguments,
    measured: Measured,
    failure: Option<Failure>,
) -> Result<ExitCode, Failure> {
    let Measured { mut recording, interrupted, .. } = measured;
    inodyne_analyse::explain(&mut recording);
    if failure.is_none() && !interrupted {
        let seen = plan.expectations.iter().filter(|expected| expected.can_be_seen(&plan.parts, is_here));
        let expectations = seen.map(|expected| expected.look(&recording)).collect();
        if let Some(study) = &mut recording.study {
            study.expectations = expectations;
        }
    }
    // What cannot be saved can still be reported.
    let unsaved = arguments.report.output.as_ref().and_then(|output| keep::save(&recording, output).err());
    keep::tell(&recording, &arguments.report, TextTo::Stdout, keep::first(failure, unsaved))?;
    measure::trusted(&recording, &arguments.tracing)?;
    if interrupted {
        return Ok(ExitStatus::Interrupted.into());
    }
    let failed = recording.runs.iter().filter(|run| !run.exit.success()).count();
    if failed > 0 {
        return Err(Failure::new(
            ExitStatus::Failed,
            format_args!("{failed} of {} runs failed: the study says nothing", recording.runs.len()),
        ));
    }
    match recording.study.as_ref().and_then(unmet) {
        Some(unmet) => Err(Failure::new(ExitStatus::Failed, unmet)),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// `2 of 14 expectations do not hold: …: expected …, seen …`
fn unmet(study: &Recorded) -> Option<String> {
    let failed = study.failed().count();
    let first = study.failed().next()?;
    let all = study.expectations.len();
    let more = if failed > 1 { format!(", and {} more", failed - 1) } else { String::new() };
    Some(format!(
        "{failed} of {all} expectations {}: {}: expected {}, seen {}{more}",
        if failed == 1 { "does not hold" } else { "do not hold" },
        first.says,
        first.expected,
        first.seen
    ))
}
