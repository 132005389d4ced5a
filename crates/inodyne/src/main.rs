//! The command line: arguments, privileges, wiring, exit codes, printing, progress. Nothing is measured, explained or
//! drawn here; that is done by the crates that the folders name.
//!
//! | module | what it knows |
//! |---|---|
//! | `cli` | which commands there are |
//! | `options` | argument groups shared by several commands |
//! | `parameters` | words in braces that stand for one value after another |
//! | `measure` | from these options to an experiment, and running it: prepare → collect → recording |
//! | `progress` | what is reported while an experiment runs |
//! | `run` | `inodyne run`: one command, measured, explained and shown |
//! | `compare` | `inodyne compare`: several places or commands in turn |
//! | `study` | `inodyne study`: several questions from a file, and what was expected of the answers |
//! | `prove` | `inodyne prove`: a prediction, and its score |
//! | `tune` | `inodyne tune`: which settings make a command faster, tried and confirmed |
//! | `import` | `inodyne import`: a recording from a log of strace |
//! | `attach` | `inodyne attach`: a window of processes that are already running |
//! | `top` | `inodyne top`: what everyone is waiting for, refreshed continuously |
//! | `target`, `window` | which running processes to follow, and a window of them as a recording |
//! | `show` | `inodyne show`: a recording, explained and shown again |
//! | `diff` | `inodyne diff`: two recordings compared |
//! | `explain` | `inodyne explain`: what a word of a report means |
//! | `rm`, `tree` | `inodyne rm`, `inodyne tree`: what they print; the work is done by inodyne-tree |
//! | `share` | `inodyne share`: a shared folder; the work is done by inodyne-share |
//! | `doctor` | `inodyne doctor`: what this machine and its disks can do |
//! | `manual` | man pages and shell completions, from the arguments |
//! | `format`, `report` | the report formats, and where reports are printed |
//! | `stored` | recordings from files, explained, and one trace of several |
//! | `gates` | what must not get worse, and the exit code if it does |
//! | `ring` | a directory of recordings made one after another, and which one is meant by a time |
//! | `keep` | files for recordings and reports: checked before anything runs, and written at the end |
//! | `disks` | what was measured about disks earlier |
//! | `host` | the machine and the user, as the system reports them |
//! | `failure` | one line, and an exit code |
//! | `say` | lines on standard error and standard output |

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
mod say;
mod share;
mod show;
mod stored;
mod study;
mod target;
mod top;
mod tree;
mod tune;
mod window;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use cli::{Cli, Command};
use failure::{ExitStatus, Failure};

fn main() -> ExitCode {
    inodyne_launch::hear_of_children();
    inodyne_launch::take_size_limits_as_errors();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // `rm` reads its arguments as GNU rm does, so that scripts can call it unchanged.
    let (own, of_rm) = arguments.split_at(behind_rm(&arguments).unwrap_or(arguments.len()));
    if own.len() == 2 && own[1] == "rm" {
        return rm::run(of_rm.iter().cloned());
    }
    let parsed = match Cli::try_parse_from(own) {
        Ok(parsed) => parsed,
        Err(error) => return not_parsed(&error),
    };
    parsed.color.apply();
    let is_run = matches!(parsed.command, Command::Run(_));
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
        Command::Rm(_) => Ok(rm::run(of_rm.iter().cloned())),
        Command::Tree(arguments) => tree::run(&arguments),
        Command::Share(arguments) => share::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Manual(arguments) => manual::run(&arguments, Cli::command()),
    };
    let own = |failure: Failure| if is_run { failure } else { failure.of_inodyne() };
    restored(done.map_err(own).unwrap_or_else(told))
}

/// Where the arguments of `rm` begin, if that is the subcommand: it may come after global options and their values.
fn behind_rm(arguments: &[OsString]) -> Option<usize> {
    let takes_value = |word: &OsString| {
        let long = word.to_str().and_then(|word| word.strip_prefix("--"));
        let cli = Cli::command();
        long.is_some_and(|long| {
            cli.get_arguments().any(|known| known.get_long() == Some(long) && known.get_action().takes_values())
        })
    };
    let mut at = 1;
    loop {
        match arguments.get(at)? {
            word if word == "rm" => return Some(at + 1),
            word if takes_value(word) => at += 2,
            word if word.as_encoded_bytes().starts_with(b"-") => at += 1,
            _ => return None,
        }
    }
}

/// Prints what went wrong; where it cannot be printed, as on a terminal that is gone, the exit code has to say it.
fn told(failure: Failure) -> ExitCode {
    say::say!("inodyne: {failure}");
    failure.status().into()
}

/// Tells last what was changed on this machine and could not be restored, however the command ended: that is no success.
fn restored(code: ExitCode) -> ExitCode {
    let changed = inodyne_lab::take_not_restored();
    if changed.is_empty() {
        return code;
    }
    for setting in changed {
        told(setting.into());
    }
    if code == ExitCode::SUCCESS { ExitStatus::Failed.into() } else { code }
}

/// Prints what is wrong with the arguments, or the help. Whoever writes `inodyne find .` means `inodyne run find .`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rm_is_the_subcommand_and_no_value() {
        let behind = |line: &str| behind_rm(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(behind("inodyne rm -rf rm"), Some(2));
        assert_eq!(behind("inodyne --color never rm build"), Some(4));
        assert_eq!(behind("inodyne --color=never rm build"), Some(3));
        assert_eq!(behind("inodyne --color rm rm build"), Some(4));
        for line in ["inodyne", "inodyne --color rm", "inodyne --color rm run rm", "inodyne run rm -rf build"] {
            assert_eq!(behind(line), None, "{line}");
        }
    }
}
