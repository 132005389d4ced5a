//! `inodyne study run`: inputs, then part after part into one recording, then what was expected of it. All measuring is
//! that of `compare`: a part is a campaign.

use std::path::Path;
use std::process::ExitCode;

use inodyne_model::study::{Part as Begun, Study as Recorded};
use inodyne_trace::capability;
use inodyne_trace::launch::{Input, Output};

use super::file::Form;
use super::plan::{Command, Part, Plan};
use super::{Study, inputs};
use crate::cli::{CommandOptions, PlaceOptions, RunOptions, StudyRunArguments};
use crate::failure::{Failure, INTERRUPTED, LACKING};
use crate::host;
use crate::measure::{self, Called, Campaign, Measured};
use crate::report::{self, TextTo};

/// Runs the command.
pub fn run(arguments: &StudyRunArguments) -> Result<ExitCode, Failure> {
    let study = Study::read(&arguments.study)?;
    let user = host::user(arguments.user.as_deref())?;
    let form = if arguments.quick { Form::Quick } else { Form::Full };
    let plan = study.plan(form, user.as_ref())?;
    if plan.parts.iter().any(|part| part.effort.traced > 0) {
        capability::require_for_tracing().map_err(|missing| Failure::new(LACKING, missing))?;
    }
    let cache = inputs::cache(user.as_ref())?;
    for input in &plan.inputs {
        input.make(&cache, user.as_ref())?;
    }
    let mut measured = Measured::nothing();
    measured.recording.margin = plan.margin;
    measured.recording.study = Some(Recorded {
        name: study.name,
        title: plan.title.clone(),
        about: plan.about.clone(),
        quick: arguments.quick,
        ..Recorded::default()
    });
    if let Err(failure) = all_parts(&plan, arguments, &mut measured) {
        if measured.recording.runs.is_empty() {
            return Err(failure);
        }
        measured.failure = Some(failure);
    }
    finish(&plan, arguments, measured)
}

fn all_parts(plan: &Plan, arguments: &StudyRunArguments, measured: &mut Measured) -> Result<(), Failure> {
    for (at, part) in plan.parts.iter().enumerate() {
        if report::shows_progress() {
            anstream::eprintln!("inodyne: part {} of {}: {}", at + 1, plan.parts.len(), part.name);
        }
        measure(part, plan, arguments, measured)?;
        if measured.interrupted {
            break;
        }
        // Nobody knows what comes while the next part's places are made.
        if let Some(output) = &arguments.report.output {
            measured.recording.save(output)?;
        }
    }
    Ok(())
}

/// Measures a part, behind what the recording holds already.
fn measure(part: &Part, plan: &Plan, arguments: &StudyRunArguments, measured: &mut Measured) -> Result<(), Failure> {
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
    let places = PlaceOptions {
        places: part.places.iter().map(|place| place.spec.clone()).collect(),
        data: part.data.clone(),
        caches: part.caches.iter().map(|cache| (*cache).into()).collect(),
        fresh: part.fresh,
    };
    let around = RunOptions {
        prepare: part.prepare.clone(),
        cleanup: part.cleanup.clone(),
        timeout: part.timeout,
        durable: false,
        seed: arguments.seed,
    };
    let command = CommandOptions { user: arguments.user.clone(), environment: Vec::new(), cwd: part.cwd.clone() };
    let called = |command: &&Command| Called { argv: command.argv.clone(), label: Some(command.name.clone()) };
    let campaign = Campaign {
        places: &places,
        around: &around,
        command: &command,
        tracing: &arguments.tracing,
        report: &arguments.report,
        commands: commands.iter().map(called).collect(),
        effort: part.effort,
        margin: Some(plan.margin),
        input: Input::Nothing,
        output: Output::Discard,
        keeps_cut_short: false,
    };
    let done = campaign.add_to(measured);
    // A part whose places could not be made is not in the recording.
    if measured.recording.places.len() == first_place
        && let Some(study) = &mut measured.recording.study
    {
        study.parts.pop();
    }
    done
}

/// Whether the program is there without which a command is left out.
fn is_here(command: &Command) -> bool {
    let Some(program) = &command.if_found else { return true };
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Explains, holds the result against what was expected, keeps it, and shows it.
fn finish(plan: &Plan, arguments: &StudyRunArguments, measured: Measured) -> Result<ExitCode, Failure> {
    let Measured { mut recording, interrupted, mut failure, .. } = measured;
    inodyne_analyse::explain(&mut recording);
    if failure.is_none() && !interrupted {
        let left_out = |expected: &&super::expect::Expected| {
            let gone =
                |part: &Part, command: &Command| !is_here(command) && expected.is_about(&part.name, &command.name);
            !plan.parts.iter().any(|part| part.commands.iter().any(|command| gone(part, command)))
        };
        let expectations =
            plan.expectations.iter().filter(left_out).map(|expected| expected.look(&recording)).collect();
        if let Some(study) = &mut recording.study {
            study.expectations = expectations;
        }
    }
    // What cannot be kept can still be told.
    if let Some(Err(error)) = arguments.report.output.as_ref().map(|output| recording.save(output)) {
        failure.get_or_insert(error.into());
    }
    report::tell(&recording, &arguments.report, TextTo::Stdout)?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    measure::trusted(&recording, &arguments.tracing)?;
    if interrupted {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let failed = recording.runs.iter().filter(|run| !run.exit.success()).count();
    if failed > 0 {
        return Err(Failure::new(
            1,
            format_args!("{failed} of {} runs failed: the study says nothing", recording.runs.len()),
        ));
    }
    match recording.study.as_ref().and_then(unmet) {
        Some(unmet) => Err(Failure::new(1, unmet)),
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
