//! `inodyne run`: one command, measured, explained and shown.

use std::process::ExitCode;

use inodyne_model::recording::Recording;
use inodyne_trace::launch::{Input, Output};

use crate::cli::RunArguments;
use crate::failure::{Failure, INTERRUPTED, USAGE};
use crate::measure::{self, Campaign, Effort};
use crate::report::{self, TextTo};

/// Runs the command.
pub fn run(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let campaign = campaign(arguments, measure::output(arguments.report.format))?;
    let measured = campaign.measure()?;
    report::tell(&measured.recording, &arguments.report, TextTo::Stderr)?;
    if let Some(failure) = measured.failure {
        return Err(failure);
    }
    measure::trusted(&measured.recording, &arguments.tracing)?;
    Ok(measure::exit_code(measured.exit))
}

/// Runs the command without its output, and says nothing of it.
pub fn untold(arguments: &RunArguments) -> Result<Recording, Failure> {
    let measured = campaign(arguments, Output::Discard)?.measure()?;
    match measured.failure {
        Some(failure) => Err(failure),
        None if measured.interrupted => Err(Failure::new(INTERRUPTED, "interrupted")),
        None => Ok(measured.recording),
    }
}

fn campaign(arguments: &RunArguments, output: Output) -> Result<Campaign<'_>, Failure> {
    measure::check_fresh(&arguments.places)?;
    let untraced = if arguments.no_trace { arguments.runs.max(1) } else { arguments.runs };
    report::check(arguments.report.format, arguments.report.section, untraced as usize)?;
    if arguments.around.durable && untraced == 0 {
        return Err(Failure::new(USAGE, "--durable is timed in untraced runs: run with -n N or --no-trace"));
    }
    Ok(Campaign {
        places: &arguments.places,
        around: &arguments.around,
        command: &arguments.command,
        tracing: &arguments.tracing,
        report: &arguments.report,
        commands: vec![arguments.argv.clone().into()],
        effort: Effort { warmup: 0, untraced, traced: u32::from(!arguments.no_trace), until: None, max_time: None },
        margin: None,
        // Nobody types for a command of which nobody hears.
        input: if output == Output::Discard { Input::Nothing } else { Input::Inherit },
        output,
        keeps_cut_short: true,
    })
}
