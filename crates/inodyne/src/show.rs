//! `inodyne show`: a recording, explained and shown again. Needs no privileges and no kernel features.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use inodyne_lab::Size;
use inodyne_model::recording::Recording;
use inodyne_render::{
    Section, Traced, View, firefox, flame_graph, flame_graph_difference, folded, folded_difference, perfetto, pprof,
    speedscope,
};

use crate::failure::{ExitStatus, Failure};
use crate::format::{Format, ProfileFormat, ReportFormat};
use crate::report::{self, Extent, TextTo};

/// Arguments of `inodyne show`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "folded, svg, firefox, speedscope and pprof show stacks: where the time was spent, on a CPU and off it.\n\
    Widths are times: those of a section sum to the ledgers of all threads.\n\n  \
    inodyne show find.inodyne -o report.html\n  \
    inodyne show new.inodyne --against old.inodyne -o new-since-old.svg\n  \
    inodyne show find.inodyne --format folded --section off-cpu --trace 1 | sort -rnk2 | head\n\n\
    Open firefox in profiler.firefox.com, speedscope in speedscope.app, perfetto in ui.perfetto.dev."
)]
pub struct ShowArguments {
    /// The recording
    pub recording: PathBuf,
    /// Form of the report [default: by the name of the output, otherwise text]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Only this part
    #[arg(long, help = section_help())]
    pub section: Option<String>,
    /// Print everything, not the first screen alone
    #[arg(short, long)]
    pub verbose: bool,
    /// Write into this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Refuse a recording that expands to more than this
    #[arg(long, value_name = "SIZE", default_value_t = Size::from_bytes(inodyne_recording::DEFAULT_LIMIT_BYTES))]
    pub max_size: Size,

    /// Which trace, from 1 on [default: of several of one case that of the middle time]
    #[arg(long, value_name = "N", help_heading = "Stacks and timeline")]
    pub trace: Option<usize>,
    /// Show what changed since this recording (folded, svg)
    #[arg(long, value_name = "RECORDING", help_heading = "Stacks and timeline")]
    pub against: Option<PathBuf>,
    /// Show what changed since this trace, of that recording or of the same
    #[arg(long, value_name = "N", help_heading = "Stacks and timeline")]
    pub against_trace: Option<usize>,
}

impl ShowArguments {
    /// What is asked for: by `--format`, or by how the output is called.
    pub fn form(&self) -> Format {
        let by_name = || self.output.as_deref().map_or(Format::Report(ReportFormat::Text), Format::of_file);
        self.format.unwrap_or_else(by_name)
    }
}

const NO_DIFFERENCE: &str = "only folded stacks and flame graphs (folded, svg) can be differences";

fn section_help() -> String {
    let of_stacks = View::ALL.map(|view| view.to_string()).join(", ");
    format!("Only this part. Of a report: {}. Of stacks: {of_stacks}", Section::names())
}

/// Runs the command.
pub fn run(arguments: &ShowArguments) -> Result<ExitCode, Failure> {
    let load = |path: &Path| explained(path, arguments.max_size.bytes());
    let recording = load(&arguments.recording)?;
    let before = arguments.against.as_deref().map(load).transpose()?;
    let output = arguments.output.as_deref();
    let format = match arguments.form() {
        Format::Report(_) if before.is_some() || arguments.against_trace.is_some() => return Err(usage(NO_DIFFERENCE)),
        Format::Report(format) => {
            let section = arguments.section.as_deref().map(str::parse::<Section>).transpose().map_err(usage)?;
            report::show(&recording, format, Extent::new(section, arguments.verbose), TextTo::Stdout, output)?;
            return Ok(ExitCode::SUCCESS);
        }
        Format::Profile(format) => format,
    };
    let view = arguments.section.as_deref().map(str::parse::<View>).transpose().map_err(usage)?;
    let traced = chosen(&recording, arguments.trace, "--trace")?;
    let other = match (&before, arguments.against_trace) {
        (Some(before), number) => Some(chosen(before, number, "--against-trace")?),
        (None, Some(number)) => Some(chosen(&recording, Some(number), "--against-trace")?),
        (None, None) => None,
    };
    report::write(&profile(format, &traced, other.as_ref(), view)?, output)?;
    Ok(ExitCode::SUCCESS)
}

fn usage(message: impl std::fmt::Display) -> Failure {
    Failure::new(ExitStatus::Usage, message)
}

fn explained(path: &Path, limit_bytes: u64) -> Result<Recording, Failure> {
    let mut recording = inodyne_recording::load(path, limit_bytes)?;
    inodyne_analyse::explain(&mut recording);
    Ok(recording)
}

/// The trace with this number, from 1 on. Without a number the only one, or that of the middle time where all are of one
/// case.
fn chosen<'a>(recording: &'a Recording, number: Option<usize>, option: &str) -> Result<Traced<'a>, Failure> {
    let all = Traced::all(recording);
    let list = || {
        let names = all.iter().enumerate().map(|(at, traced)| format!("{} {}", at + 1, traced.title()));
        names.collect::<Vec<_>>().join("; ")
    };
    let of_one_case = all.iter().all(|one| one.is_same_case(&all[0]));
    match (number, Traced::middle(&all)) {
        (_, None) => Err(usage("the recording holds no trace: record without --no-trace")),
        (None, Some(middle)) if of_one_case => Ok(middle),
        (None, _) => {
            Err(usage(format_args!("the recording holds {} traces: choose one with {option}: {}", all.len(), list())))
        }
        (Some(number), _) => match number.checked_sub(1).and_then(|at| all.get(at)) {
            Some(traced) => Ok(*traced),
            None => Err(usage(format_args!("no trace {number}: there are {}", list()))),
        },
    }
}

fn profile(
    format: ProfileFormat,
    traced: &Traced<'_>,
    other: Option<&Traced<'_>>,
    view: Option<View>,
) -> Result<Vec<u8>, Failure> {
    let one = view.unwrap_or(View::Wall);
    let text = match (format, other) {
        (ProfileFormat::Folded, Some(before)) => folded_difference(before, traced, one),
        (ProfileFormat::Folded, None) => folded(traced, one),
        (ProfileFormat::Svg, Some(before)) => flame_graph_difference(before, traced, one).map_err(usage)?,
        (ProfileFormat::Svg, None) => flame_graph(traced, one).map_err(usage)?,
        (_, Some(_)) => return Err(usage(NO_DIFFERENCE)),
        (ProfileFormat::Firefox, None) => firefox(traced, one),
        (ProfileFormat::Speedscope, None) => speedscope(traced, view.as_ref().map_or(&View::ALL, std::slice::from_ref)),
        (ProfileFormat::Pprof, None) => return Ok(pprof(traced, one)),
        (ProfileFormat::Perfetto, None) if view.is_some() => {
            return Err(usage("perfetto is the timeline: it has no sections"));
        }
        (ProfileFormat::Perfetto, None) => perfetto(traced),
    };
    Ok(text.into_bytes())
}
