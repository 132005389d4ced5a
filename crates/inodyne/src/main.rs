//! The command line: arguments, privileges, wiring, exit codes, printing, progress. Nothing is measured, explained or
//! drawn here; that is done by the crates that the folders name.
//!
//! | module | what it knows |
//! |---|---|
//! | `cli` | the arguments |
//! | `run` | `inodyne run`: prepare → collect → recording → explain → show |
//! | `show` | `inodyne show`: a recording, explained and shown again |
//! | `doctor` | `inodyne doctor`: what this machine can do |
//! | `manual` | man pages and shell completions, from the arguments |
//! | `report` | the formats, and where they are printed |
//! | `failure` | one line, and an exit code |

mod cli;
mod doctor;
mod failure;
mod host;
mod manual;
mod report;
mod run;
mod show;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use failure::Failure;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Show(arguments) => show::run(&arguments),
        Command::Doctor => doctor::run(),
        Command::Manual(arguments) => manual::run(&arguments),
    };
    done.unwrap_or_else(|failure: Failure| {
        anstream::eprintln!("inodyne: {failure}");
        failure.code()
    })
}
