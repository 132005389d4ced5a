//! `inodyne diff`: two recordings compared. Needs no privileges and no kernel features.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use inodyne_lab::Size;
use inodyne_model::recording::Recording;
use inodyne_render::{Traced, View, flame_graph_difference, folded_difference};

use crate::failure::{ExitStatus, Failure};
use crate::format::DifferenceFormat;
use crate::gates::{self, EXPRESSIONS, GateOptions};
use crate::keep;
use crate::report;
use crate::ring;
use crate::stored::{check_view, chosen, load};

/// Arguments of `inodyne diff`.
#[derive(Debug, Args)]
#[command(after_long_help = format!("{EXPRESSIONS}\n\n  \
    inodyne diff old.inodyne new.inodyne\n  \
    inodyne diff old.inodyne new.inodyne --fail-if 'calls > +5%' --fail-if 'finding(sync-bound)'\n  \
    inodyne diff old.inodyne new.inodyne --fail-if 'calls(newfstatat) > +20' -o tests.xml\n  \
    inodyne diff old.inodyne new.inodyne -o new-since-old.svg\n\n\
    Cases are paired by command, label of the place and state of the caches. The exit code is 1 where a \
    gate does not hold."))]
pub struct DiffArguments {
    /// The baseline recording; for a directory of `attach --every` the newest one, or DIRECTORY@TIME
    pub old: PathBuf,
    /// The recording to compare with it
    pub new: PathBuf,
    /// Format of the difference [default: from the name of the output file, otherwise text]
    #[arg(long, value_enum)]
    pub format: Option<DifferenceFormat>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Refuse a recording that expands to more than this
    #[arg(long, value_name = "SIZE", default_value_t = Size::from_bytes(inodyne_recording::DEFAULT_LIMIT_BYTES))]
    pub max_size: Size,

    #[command(flatten)]
    pub gates: GateOptions,

    /// Which stacks
    #[arg(long, value_name = "PART", help = stacks_help(), help_heading = "Stacks")]
    pub section: Option<String>,
    /// Which trace of the old recording, counting from 1 [default: of several of one case, the one with the median time]
    #[arg(long, value_name = "N", help_heading = "Stacks")]
    pub old_trace: Option<usize>,
    /// Which trace of the new recording
    #[arg(long, value_name = "N", help_heading = "Stacks")]
    pub new_trace: Option<usize>,
}

fn stacks_help() -> String {
    format!(
        "Which stacks, of svg and folded, the first that both have unless one is asked for: {}",
        View::ALL.map(|view| view.to_string()).join(", ")
    )
}

/// Runs the command.
pub fn run(arguments: &DiffArguments) -> Result<ExitCode, Failure> {
    let output = arguments.output.as_deref();
    let format = match (arguments.format, output) {
        (Some(format), _) => format,
        (None, Some(output)) => DifferenceFormat::of_file(output).map_err(usage)?,
        (None, None) => DifferenceFormat::default(),
    };
    let of_stacks = arguments.section.is_some() || arguments.old_trace.is_some() || arguments.new_trace.is_some();
    if of_stacks && !format.is_of_stacks() {
        return Err(usage(
            "--section, --old-trace and --new-trace are for svg and folded: all else is of whole recordings",
        ));
    }
    let limit_bytes = arguments.max_size.bytes();
    let recording = |operand| {
        let file = ring::file_of(operand).map_err(usage)?;
        keep::check_other(&file, output)?;
        load(&file, limit_bytes)
    };
    let (old, new) = (recording(&arguments.old)?, recording(&arguments.new)?);
    let gates = arguments.gates.parsed(&[&old, &new])?;
    let found = inodyne_analyse::difference(&old, &new, &gates);
    if format.is_of_stacks() {
        report::write(stacks(arguments, format, &old, &new)?.as_bytes(), output)?;
    } else {
        report::difference(&found, format, output)?;
    }
    Ok(gates::told(&found).map_or_else(ExitCode::from, |()| ExitCode::SUCCESS))
}

/// What changed between one trace of each.
fn stacks(
    arguments: &DiffArguments,
    format: DifferenceFormat,
    old: &Recording,
    new: &Recording,
) -> Result<String, Failure> {
    let asked = arguments.section.as_deref().map(str::parse::<View>).transpose().map_err(usage)?;
    let before = chosen(old, arguments.old_trace, "--old-trace")?;
    let after = chosen(new, arguments.new_trace, "--new-trace")?;
    let view = of_both(asked, &before, &after)?;
    if format == DifferenceFormat::Svg {
        flame_graph_difference(&before, &after, view).map_err(usage)
    } else {
        Ok(folded_difference(&before, &after, view))
    }
}

/// The stacks that were asked for, or the first that both traces have: what only one of them has is no change.
fn of_both(asked: Option<View>, before: &Traced<'_>, after: &Traced<'_>) -> Result<View, Failure> {
    let both = [(before, "the old trace"), (after, "the new trace")];
    if let Some(view) = asked {
        both.into_iter().try_for_each(|(traced, called)| check_view(traced, view, called))?;
        return Ok(view);
    }
    let names = |traced: &Traced<'_>| traced.views().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    View::ALL.into_iter().find(|view| both.iter().all(|(traced, _)| traced.views().contains(view))).ok_or_else(|| {
        let [old, new] = [before, after].map(names);
        usage(format_args!("the traces have no stacks of one kind: the old one has {old}, the new one {new}"))
    })
}

fn usage(message: impl std::fmt::Display) -> Failure {
    Failure::new(ExitStatus::Usage, message)
}

#[cfg(test)]
mod tests {
    use inodyne_model::path::{PathRow, PathTime};
    use inodyne_model::sample;
    use inodyne_model::trace::Tracer;

    use super::*;

    #[test]
    fn stacks_that_only_one_trace_has_are_no_difference() {
        let (mut run, window) = (sample::find_recording(), sample::window_recording());
        inodyne_analyse::explain(&mut run);
        let trace = &mut run.traces[0];
        let time = trace.stacks.on_cpu[0].clone();
        let row = PathRow { kind: time.kind, syscall: None, cause: None, via: Vec::new() };
        trace.path.stacks = vec![PathTime { row, waits: Vec::new(), time }];
        let mut log = run.clone();
        log.traces[0].tracer = Tracer::Strace;
        let [run, window, log] = [&run, &window, &log].map(|recording| Traced::all(recording)[0]);
        let kind = |asked, before: &Traced<'_>, after: &Traced<'_>| {
            of_both(asked, before, after).map_err(|told| told.to_string())
        };
        assert_eq!(kind(None, &run, &run), Ok(View::CriticalPath));
        assert_eq!(kind(None, &run, &window), Ok(View::Wall));
        assert_eq!(kind(Some(View::OffCpu), &run, &window), Ok(View::OffCpu));
        let refused = kind(Some(View::CriticalPath), &run, &window).unwrap_err();
        assert!(refused.contains("no critical-path in the new trace: its timeline"), "{refused}");
        let refused = kind(Some(View::Wall), &log, &run).unwrap_err();
        assert!(refused.contains("no wall in the old trace: a log"), "{refused}");
        let refused = kind(None, &log, &window).unwrap_err();
        assert!(refused.contains("the old one has critical-path, the new one wall, on-cpu, off-cpu"), "{refused}");
    }
}
