//! `inodyne compare`: one command in several places, several commands in one, or both.

use std::ffi::OsString;
use std::process::ExitCode;

use inodyne_trace::launch::{Input, Output};

use crate::cli::CompareArguments;
use crate::failure::{Failure, INTERRUPTED, USAGE};
use crate::measure::{self, Campaign, Effort};
use crate::report::{self, TextTo};

/// With ten, a call that always differs is told from chance among a dozen others (Holm's correction); more cost time.
const MOST_TRACED: u32 = 10;

/// Runs the command.
pub fn run(arguments: &CompareArguments) -> Result<ExitCode, Failure> {
    measure::check_fresh(&arguments.places)?;
    report::check(arguments.report.format, arguments.report.section, arguments.runs as usize)?;
    let commands = commands(arguments)?;
    if commands.len() < 2 && arguments.places.places.len() < 2 {
        return Err(Failure::new(USAGE, "nothing to compare: give --at twice, or --command twice"));
    }
    let effort = Effort {
        warmup: arguments.warmup,
        untraced: arguments.runs,
        traced: if arguments.no_trace { 0 } else { arguments.traced.unwrap_or(arguments.runs.min(MOST_TRACED)) },
        until: arguments.until,
        max_time: arguments.max_time,
    };
    let campaign = Campaign {
        places: &arguments.places,
        around: &arguments.around,
        command: &arguments.command,
        tracing: &arguments.tracing,
        report: &arguments.report,
        commands: commands.into_iter().map(Into::into).collect(),
        effort,
        margin: Some(arguments.margin),
        input: Input::Nothing,
        output: if arguments.show_output { Output::ToStderr } else { Output::Discard },
        keeps_cut_short: false,
    };
    let measured = campaign.measure()?;
    report::tell(&measured.recording, &arguments.report, TextTo::Stdout)?;
    if let Some(failure) = measured.failure {
        return Err(failure);
    }
    measure::trusted(&measured.recording, &arguments.tracing)?;
    if measured.interrupted {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let failed = measured.recording.runs.iter().filter(|run| !run.exit.success()).count();
    if failed > 0 && !arguments.ignore_failure {
        let of = measured.recording.runs.len();
        return Err(Failure::new(1, format_args!("{failed} of {of} runs failed: no verdict about them")));
    }
    Ok(ExitCode::SUCCESS)
}

/// The words of every command.
fn commands(arguments: &CompareArguments) -> Result<Vec<Vec<OsString>>, Failure> {
    if arguments.commands.is_empty() {
        return Ok(vec![arguments.argv.clone()]);
    }
    arguments.commands.iter().map(|command| words(command)).collect()
}

/// Plain words as they are, so that no shell's start is measured; all else is a script.
pub fn words(command: &str) -> Result<Vec<OsString>, Failure> {
    let is_plain = command.chars().all(|c| c.is_alphanumeric() || " %+,-./:=@_^".contains(c));
    let words: Vec<OsString> = command.split_whitespace().map(OsString::from).collect();
    match words.first() {
        None => Err(Failure::new(USAGE, "a command is empty")),
        // `NAME=value command` sets a variable, and a name without a slash may be a shell's own.
        Some(first) if is_plain && !first.to_string_lossy().contains('=') && !is_builtin(first) => Ok(words),
        Some(_) => Ok(vec!["/bin/sh".into(), "-c".into(), command.into()]),
    }
}

/// Words that only a shell knows, or knows better (POSIX.1-2024, "Shell Command Language", 2.15 and 1.7).
fn is_builtin(word: &OsString) -> bool {
    const BUILTINS: [&str; 22] = [
        ".", ":", "alias", "bg", "cd", "command", "eval", "exec", "exit", "export", "fg", "jobs", "read", "readonly",
        "set", "shift", "times", "trap", "type", "ulimit", "umask", "wait",
    ];
    word.to_str().is_some_and(|word| BUILTINS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_only_where_it_is_needed() {
        let of = |text: &str| words(text).map(|words| words.len()).ok();
        assert_eq!(of("find . -size +1k"), Some(4));
        assert_eq!(of("find . | wc -l"), Some(3));
        assert_eq!(of("A=1 env"), Some(3));
        assert_eq!(of("cd tree"), Some(3));
        assert_eq!(of("  "), None);
    }
}
