//! `inodyne show`: a recording, explained and shown again. Needs no privileges and no kernel features.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use inodyne_lab::Size;
use inodyne_render::{Section, Traced, View, firefox, flame_graph, folded, perfetto, pprof, speedscope};

use crate::failure::{ExitStatus, Failure};
use crate::format::{Format, ProfileFormat, ReportFormat};
use crate::keep;
use crate::options;
use crate::report::{self, Extent, TextTo};
use crate::ring;
use crate::stored::{check_view, chosen, load};

/// Arguments of `inodyne show`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "folded, svg, firefox, speedscope and pprof show stacks: where the time was spent, on a CPU and off it.\n\
    Widths are times: those of critical-path sum to the wall-clock time, those of the others to the ledgers of all threads.\n\n  \
    inodyne show find.inodyne -o report.html\n  \
    inodyne show find.inodyne --format folded --section off-cpu --trace 1 | sort -rnk2 | head\n\n\
    Open firefox in profiler.firefox.com, speedscope in speedscope.app, perfetto in ui.perfetto.dev."
)]
pub struct ShowArguments {
    /// The recording; for a directory of `attach --every` the newest one, or DIRECTORY@TIME
    pub recording: PathBuf,
    /// Format of the report [default: from the name of the output file, otherwise text]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Only this part
    #[arg(long, help = section_help())]
    pub section: Option<String>,
    /// Print everything, not only the first screen
    #[arg(short, long)]
    pub verbose: bool,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Refuse a recording that expands to more than this
    #[arg(long, value_name = "SIZE", default_value_t = Size::from_bytes(inodyne_recording::DEFAULT_LIMIT_BYTES))]
    pub max_size: Size,

    /// Which trace, counting from 1 [default: of several of one case, the one with the median time]
    #[arg(long, value_name = "N", help_heading = "Stacks and timeline")]
    pub trace: Option<usize>,
}

impl ShowArguments {
    /// The format asked for: by `--format`, or by the name of the output.
    ///
    /// # Errors
    /// The name asks for an unknown format.
    pub fn form(&self) -> Result<Format, Failure> {
        match (self.format, self.output.as_deref()) {
            (Some(format), _) => Ok(format),
            (None, Some(output)) => Format::of_file(output).map_err(usage),
            (None, None) => Ok(Format::Report(ReportFormat::Text)),
        }
    }
}

fn section_help() -> String {
    let of_stacks = View::ALL.map(|view| view.to_string()).join(", ");
    format!("{}. Of stacks, the first unless it is not known: {of_stacks}", options::section_help())
}

/// Runs the command.
pub fn run(arguments: &ShowArguments) -> Result<ExitCode, Failure> {
    let form = arguments.form()?;
    if arguments.trace.is_some() && matches!(form, Format::Report(_)) {
        return Err(usage(
            "--trace is for folded, svg, firefox, speedscope, pprof and perfetto: all else is of whole recordings",
        ));
    }
    let file = ring::file_of(&arguments.recording).map_err(usage)?;
    let output = arguments.output.as_deref();
    keep::check_other(&file, output)?;
    let recording = load(&file, arguments.max_size.bytes())?;
    let format = match form {
        Format::Report(format) => {
            let section = arguments.section.as_deref().map(str::parse::<Section>).transpose().map_err(usage)?;
            report::show(&recording, format, Extent::new(section, arguments.verbose), TextTo::Stdout, output)?;
            return Ok(ExitCode::SUCCESS);
        }
        Format::Profile(format) => format,
    };
    let view = arguments.section.as_deref().map(str::parse::<View>).transpose().map_err(usage)?;
    let traced = chosen(&recording, arguments.trace, "--trace")?;
    report::write(&profile(format, &traced, view)?, output)?;
    Ok(ExitCode::SUCCESS)
}

fn usage(message: impl std::fmt::Display) -> Failure {
    Failure::new(ExitStatus::Usage, message)
}

fn profile(format: ProfileFormat, traced: &Traced<'_>, view: Option<View>) -> Result<Vec<u8>, Failure> {
    let views = traced.views();
    view.map_or(Ok(()), |view| check_view(traced, view, "this trace"))?;
    let one = view.or(views.first().copied()).unwrap_or(View::Wall);
    let text = match format {
        ProfileFormat::Folded => folded(traced, one),
        ProfileFormat::Svg => flame_graph(traced, one).map_err(usage)?,
        ProfileFormat::Firefox => firefox(traced, one),
        ProfileFormat::Speedscope => speedscope(traced, view.as_ref().map_or(views, std::slice::from_ref)),
        ProfileFormat::Pprof => return Ok(pprof(traced, one)),
        ProfileFormat::Perfetto if view.is_some() => {
            return Err(usage("perfetto is the timeline: it has no sections"));
        }
        ProfileFormat::Perfetto => return Ok(perfetto(traced)),
    };
    Ok(text.into_bytes())
}
