//! `inodyne show`: a recording, explained and shown again. Needs no privileges and no kernel features.

use std::process::ExitCode;

use inodyne_model::recording::Recording;

use crate::cli::ShowArguments;
use crate::failure::Failure;
use crate::report::{self, TextTo};

/// Runs the command.
pub fn run(arguments: &ShowArguments) -> Result<ExitCode, Failure> {
    let ShowArguments { format, section, .. } = *arguments;
    report::check(format, section, 1)?;
    let mut recording = Recording::load(&arguments.recording)?;
    inodyne_analyse::explain(&mut recording);
    report::print(&recording, format, section, TextTo::Stdout)?;
    Ok(ExitCode::SUCCESS)
}
