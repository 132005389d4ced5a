//! `inodyne show`: a recording, explained and shown again. Needs no privileges and no kernel features.

use std::process::ExitCode;

use inodyne_model::recording::Recording;
use inodyne_render::{
    Section, Traced, View, firefox, flame_graph, flame_graph_difference, folded, folded_difference, perfetto, pprof,
    speedscope,
};

use crate::cli::{Format, ShowArguments, ShowFormat};
use crate::failure::{Failure, USAGE};
use crate::report::{self, TextTo};

const NO_DIFFERENCE: &str = "only folded stacks and flame graphs (folded, svg) can be differences";

/// Runs the command.
pub fn run(arguments: &ShowArguments) -> Result<ExitCode, Failure> {
    let recording = explained(&arguments.recording)?;
    let before = arguments.against.as_deref().map(explained).transpose()?;
    let (form, output) = (arguments.form(), arguments.output.as_deref());
    let report = match form {
        ShowFormat::Text => Some(Format::Text),
        ShowFormat::Json => Some(Format::Json),
        ShowFormat::Html => Some(Format::Html),
        ShowFormat::Markdown => Some(Format::Markdown),
        ShowFormat::Csv => Some(Format::Csv),
        ShowFormat::Hyperfine => Some(Format::Hyperfine),
        _ => None,
    };
    if let Some(format) = report {
        if before.is_some() || arguments.against_trace.is_some() {
            return Err(usage(NO_DIFFERENCE));
        }
        let section = arguments.section.as_deref().map(str::parse::<Section>).transpose().map_err(usage)?;
        report::show(&recording, format, section, TextTo::Stdout, output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let view = arguments.section.as_deref().map(str::parse::<View>).transpose().map_err(usage)?;
    let traced = chosen(&recording, arguments.trace, "--trace")?;
    let other = match (&before, arguments.against_trace) {
        (Some(before), number) => Some(chosen(before, number, "--against-trace")?),
        (None, Some(number)) => Some(chosen(&recording, Some(number), "--against-trace")?),
        (None, None) => None,
    };
    report::write(&profile(form, &traced, other.as_ref(), view)?, output)?;
    Ok(ExitCode::SUCCESS)
}

fn usage(message: impl std::fmt::Display) -> Failure {
    Failure::new(USAGE, message)
}

fn explained(path: &std::path::Path) -> Result<Recording, Failure> {
    let mut recording = Recording::load(path)?;
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
    form: ShowFormat,
    traced: &Traced<'_>,
    other: Option<&Traced<'_>>,
    view: Option<View>,
) -> Result<Vec<u8>, Failure> {
    let one = view.unwrap_or(View::Wall);
    let text = match (form, other) {
        (ShowFormat::Folded, Some(before)) => folded_difference(before, traced, one),
        (ShowFormat::Folded, None) => folded(traced, one),
        (ShowFormat::Svg, Some(before)) => flame_graph_difference(before, traced, one).map_err(usage)?,
        (ShowFormat::Svg, None) => flame_graph(traced, one).map_err(usage)?,
        (_, Some(_)) => return Err(usage(NO_DIFFERENCE)),
        (ShowFormat::Firefox, None) => firefox(traced, one),
        (ShowFormat::Speedscope, None) => speedscope(traced, view.as_ref().map_or(&View::ALL, std::slice::from_ref)),
        (ShowFormat::Pprof, None) => return Ok(pprof(traced, one)),
        (ShowFormat::Perfetto, None) if view.is_some() => {
            return Err(usage("perfetto is the timeline: it has no sections"));
        }
        (ShowFormat::Perfetto, None) => perfetto(traced),
        _ => return Ok(Vec::new()),
    };
    Ok(text.into_bytes())
}
