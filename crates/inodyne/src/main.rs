//! The command line: arguments, privileges, wiring, exit codes, printing, progress. Nothing is measured, explained or
//! drawn here; that is done by the crates that the folders name.
//!
//! | module | what it knows |
//! |---|---|
//! | `cli` | which commands there are |
//! | `options` | groups of arguments that several commands have |
//! | `parameters` | words in braces that stand for one value after the other |
//! | `measure` | from these options to an experiment, and running it: prepare → collect → recording |
//! | `progress` | what is said while an experiment runs |
//! | `run` | `inodyne run`: one command, measured, explained and shown |
//! | `compare` | `inodyne compare`: several places or commands by turns |
//! | `study` | `inodyne study`: several questions from a file, and what was expected of the answers |
//! | `prove` | `inodyne prove`: a prediction, and its score |
//! | `tune` | `inodyne tune`: which settings make a command faster, tried and confirmed |
//! | `import` | `inodyne import`: a recording from a log of strace |
//! | `attach` | `inodyne attach`: a window of processes that run already |
//! | `top` | `inodyne top`: what everybody waits for, again and again |
//! | `target`, `window` | whom to follow of those who run already, and a window of them as a recording |
//! | `show` | `inodyne show`: a recording, explained and shown again |
//! | `diff` | `inodyne diff`: two recordings held against each other |
//! | `explain` | `inodyne explain`: what a word of a report means |
//! | `rm`, `tree` | `inodyne rm`, `inodyne tree`: what they say; the work is inodyne-tree's |
//! | `share` | `inodyne share`: a shared folder; the work is inodyne-share's |
//! | `doctor` | `inodyne doctor`: what this machine and its disks can do |
//! | `manual` | man pages and shell completions, from the arguments |
//! | `format`, `report` | the forms of a report, and where it is printed |
//! | `stored` | recordings from files, explained, and one trace of several |
//! | `gates` | what is not to become worse, and the exit code where it does |
//! | `keep` | files for recordings and reports: looked at before anything runs, and written at the end |
//! | `disks` | what was measured of disks earlier |
//! | `host` | the machine and the user, as the system tells them |
//! | `failure` | one line, and an exit code |

mod attach;
mod cli;
mod compare;
mod diff;
mod disks;
mod doctor;
mod explain;
mod failure;
mod format;
mod gates;
mod host;
mod import;
mod keep;
mod manual;
mod measure;
mod options;
mod parameters;
mod progress;
mod prove;
mod report;
mod ring;
mod rm;
mod run;
mod share;
mod show;
mod stored;
mod study;
mod target;
mod top;
mod tree;
mod tune;
mod window;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use cli::{Cli, Command};
use failure::{ExitStatus, Failure};

fn main() -> ExitCode {
    inodyne_launch::hear_of_children();
    // `rm` reads its arguments as GNU rm does, so that scripts can call it unchanged.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == "rm") {
        return rm::run(arguments);
    }
    let parsed = match Cli::try_parse() {
        Ok(parsed) => parsed,
        Err(error) => return not_parsed(&error),
    };
    parsed.color.apply();
    let done = match parsed.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Study(arguments) => study::run(&arguments),
        Command::Prove(arguments) => prove::run(&arguments),
        Command::Tune(arguments) => tune::run(&arguments),
        Command::Attach(arguments) => attach::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Show(arguments) => show::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Rm(_) => Ok(rm::run(arguments)),
        Command::Tree(arguments) => tree::run(&arguments),
        Command::Share(arguments) => share::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Manual(arguments) => manual::run(&arguments, Cli::command()),
    };
    done.unwrap_or_else(told)
}

/// Says what went wrong.
fn told(failure: Failure) -> ExitCode {
    anstream::eprintln!("inodyne: {failure}");
    failure.status().into()
}

/// Says what is wrong with the arguments, or prints the help. Whoever writes `inodyne find .` means `inodyne run find .`.
fn not_parsed(error: &clap::Error) -> ExitCode {
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && inodyne_launch::find(word.as_ref(), std::env::var_os("PATH").as_deref()).is_ok()
    {
        let message =
            format_args!("'{word}' is a program and no command of inodyne: trace it with 'inodyne run {word} ...'");
        return told(Failure::new(ExitStatus::Usage, message));
    }
    error.exit()
}
