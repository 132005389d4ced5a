//! `inodyne diff`: two recordings compared. Needs no privileges and no kernel features.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use inodyne_lab::Size;
use inodyne_model::recording::Recording;
use inodyne_render::{View, flame_graph_difference, folded_difference};

use crate::failure::{ExitStatus, Failure};
use crate::format::DifferenceFormat;
use crate::gates::{self, EXPRESSIONS, GateOptions};
use crate::keep;
use crate::report;
use crate::ring;
use crate::stored::{chosen, load};

/// Arguments of `inodyne diff`.
#[derive(Debug, Args)]
#[command(after_long_help = format!("{EXPRESSIONS}\n\n  \
    inodyne diff old.inodyne new.inodyne\n  \
    inodyne diff old.inodyne new.inodyne --fail-if 'calls > +5%' --fail-if 'finding(sync-bound)'\n  \
    inodyne diff old.inodyne new.inodyne --fail-if 'calls(newfstatat) > +20' -o tests.xml\n  \
    inodyne diff old.inodyne new.inodyne -o new-since-old.svg\n\n\
    Cases are held against each other by command, label of the place and state of the caches. The exit code is 1 where a \
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
    let mut of_both =
        View::ALL.into_iter().filter(|view| before.views().contains(view) && after.views().contains(view));
    let view = asked.or_else(|| of_both.next()).unwrap_or(View::Wall);
    if format == DifferenceFormat::Svg {
        flame_graph_difference(&before, &after, view).map_err(usage)
    } else {
        Ok(folded_difference(&before, &after, view))
    }
}

fn usage(message: impl std::fmt::Display) -> Failure {
    Failure::new(ExitStatus::Usage, message)
}
