//! What a recording would have us run, in full, and whether the user wants that.
//!
//! A recording is a file like any other: whoever made it wrote the commands in it. So what is shown is what runs, and not what
//! the recording calls it.

use std::io::{self, BufRead, IsTerminal, Write};

use inodyne_lab::DataSpec;
use inodyne_launch::User;
use inodyne_model::command::quoted;
use inodyne_render::escaped;

use super::ProveArguments;
use super::variant::Variant;
use crate::failure::{ExitStatus, Failure};
use crate::host;
use crate::measure::Conditions;
use crate::say::show;

/// Shows what will be run and set, and as whom: one line each, without the empty ones.
///
/// # Errors
/// It cannot be printed.
pub fn show(user: Option<&User>, variant: &Variant) -> Result<(), Failure> {
    let Variant { place, data, command, .. } = variant;
    let line = |name: &str, text: &str| show!("  {name:<10} {}", escaped(text));
    line("command", &format!("{} on {place}", command.quoted()))?;
    if let Some(user) = user {
        line("as", &user.name)?;
    }
    if let Some(cwd) = &command.cwd {
        line("in", &cwd.display().to_string())?;
    }
    let variables = command.env.iter().map(|(name, value)| format!("{}={}", text(name), quoted(&text(value))));
    let variables: Vec<String> = variables.collect();
    if !variables.is_empty() {
        line("with", &variables.join(" "))?;
    }
    for (name, script) in [("prepare", &command.prepare), ("clean up", &command.cleanup)] {
        if let Some(script) = script {
            line(name, &text(script))?;
        }
    }
    if let Some(data) = data {
        line("data", data)?;
    }
    Ok(())
}

fn text(text: &std::ffi::OsStr) -> String {
    text.to_string_lossy().into_owned()
}

/// Asks on a terminal; elsewhere the user must have given `--yes`.
///
/// # Errors
/// The user does not want it, or cannot be asked.
pub fn ask(arguments: &ProveArguments) -> Result<(), Failure> {
    if arguments.yes {
        return Ok(());
    }
    let refused = |message| Err(Failure::new(ExitStatus::Usage, message));
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return refused("prove runs what the recording says (above): give --yes if that is wanted");
    }
    let _ = write!(anstream::stderr(), "Run this? [y/N] ");
    drop(io::stderr().flush());
    let mut answer = String::new();
    let answered = io::stdin().lock().read_line(&mut answer).is_ok();
    match answered && matches!(answer.trim(), "y" | "Y" | "yes") {
        true => Ok(()),
        false => refused("nothing was run"),
    }
}

/// What is copied into a place is read as root, and belongs to the command's user then. So where a recording names both, whoever asks must be
/// that user, or root, who may read it anyway and is shown both.
///
/// # Errors
/// The recording has another user's command read what is copied.
pub fn check_data(recorded: Option<&str>, data: Option<&str>, arguments: &ProveArguments) -> Result<(), Failure> {
    let (Some(recorded), Some(data)) = (recorded, data) else { return Ok(()) };
    let is_asked_for = arguments.data.is_some() || arguments.user.is_some();
    if is_asked_for || !matches!(data.parse(), Ok(DataSpec::From(_))) {
        return Ok(());
    }
    let us = nix::unistd::geteuid();
    let asks = match host::user(None)? {
        Some(user) => Some(user.name),
        None if us.is_root() => return Ok(()),
        None => User::with_id(us.as_raw()).map(|user| user.name),
    };
    if asks.as_deref() == Some(recorded) {
        return Ok(());
    }
    let message =
        format!("the recording gives {data} to another user's command: if that is wanted, give --data {data}");
    Err(Failure::new(ExitStatus::Usage, message))
}

/// A user who called sudo does not become root just because a recording says so.
///
/// # Errors
/// The recording asks for more rights than the user would have without it.
pub fn check_root(
    conditions: &Conditions<'_>,
    recorded: Option<&str>,
    arguments: &ProveArguments,
) -> Result<(), Failure> {
    let is_root = recorded.is_some() && conditions.user.as_ref().is_none_or(|user| user.uid == 0);
    let would_be_root = Conditions::is_root_by_default()?;
    if is_root && !would_be_root && arguments.user.is_none() && nix::unistd::geteuid().is_root() {
        let message = "the recording's command ran as root: give --user root to run it so again, or another user";
        return Err(Failure::new(ExitStatus::Usage, message));
    }
    Ok(())
}
