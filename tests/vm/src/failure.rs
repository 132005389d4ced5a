//! What can go wrong on the host: one line that says what, and what to do where that is known.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One line for whoever started it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failure(String);

impl Failure {
    /// From what went wrong.
    pub fn new(what: impl Display) -> Failure {
        Failure(what.to_string())
    }

    /// For a file that cannot be read.
    pub fn reading(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Failure {
        move |error| Failure(format!("cannot read {}: {error}", path.as_ref().display()))
    }

    /// For a file that cannot be written.
    pub fn writing(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Failure {
        move |error| Failure(format!("cannot write {}: {error}", path.as_ref().display()))
    }
}

/// Runs a program that must succeed, and returns what it printed.
///
/// # Errors
/// It is not there, or fails; with the last thing that it said.
pub fn output(command: &mut Command) -> Result<String, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.output().map_err(|error| Failure(format!("cannot start {name}: {error} (scripts/setup)")))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(Failure(format!("{name} failed ({}): {last}", done.status)))
}

/// A file that must be there.
///
/// # Errors
/// It is not.
pub fn wanted(path: PathBuf) -> Result<PathBuf, Failure> {
    if path.exists() { Ok(path) } else { Err(Failure(format!("{} is not there", path.display()))) }
}
