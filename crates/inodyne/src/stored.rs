//! Recordings from files, explained; and one trace of several.

use std::path::Path;

use inodyne_model::recording::Recording;
use inodyne_render::{Traced, View};

use crate::failure::{ExitStatus, Failure};

/// Reads a recording that expands to no more than this, and explains it.
///
/// # Errors
/// It cannot be read, or is not a recording.
pub fn load(path: &Path, limit_bytes: u64) -> Result<Recording, Failure> {
    let mut recording = inodyne_recording::load(path, limit_bytes)?;
    inodyne_analyse::explain(&mut recording);
    Ok(recording)
}

/// The trace with this number, counting from 1. Without a number, the only one, or the one with the median time if all are of one case.
///
/// # Errors
/// There is none, or several, and the option with which to choose one was not given or names another.
pub fn chosen<'a>(recording: &'a Recording, number: Option<usize>, option: &str) -> Result<Traced<'a>, Failure> {
    let usage = |message: String| Failure::new(ExitStatus::Usage, message);
    let all = Traced::all(recording);
    let list = || {
        let names = all.iter().enumerate().map(|(at, traced)| format!("{} {}", at + 1, traced.title()));
        names.collect::<Vec<_>>().join("; ")
    };
    let of_one_case = all.iter().all(|one| one.is_same_case(&all[0]));
    match (number, Traced::middle(&all)) {
        (_, None) => Err(usage("the recording holds no trace: record without --no-trace".to_owned())),
        (None, Some(middle)) if of_one_case => Ok(middle),
        (None, _) => {
            Err(usage(format!("the recording holds {} traces: choose one with {option}: {}", all.len(), list())))
        }
        (Some(number), _) => match number.checked_sub(1).and_then(|at| all.get(at)) {
            Some(traced) => Ok(*traced),
            None => Err(usage(format!("no trace {number}: there are {}", list()))),
        },
    }
}

/// Checks that a trace, which is called this, has stacks of a kind.
///
/// # Errors
/// It has none; the failure says why.
pub fn check_view(traced: &Traced<'_>, view: View, called: &str) -> Result<(), Failure> {
    if traced.views().contains(&view) {
        return Ok(());
    }
    let why = match traced.divides_calls() {
        true => "its timeline was off, or is not complete",
        false => "a log has no stacks",
    };
    Err(Failure::new(ExitStatus::Usage, format_args!("no {view} in {called}: {why}")))
}
