//! `inodyne rm`: GNU rm's options, messages and exit codes around a faster and safer delete.
//!
//! `options` parses as GNU does, `operands` decides what each operand is, `ask` does what needs a person's answers,
//! `messages` prints, `signals` makes Ctrl-C a clean stop, `progress` shows how far it is. Deleting itself is done by
//! `inodyne-tree`.

mod ask;
mod messages;
mod operands;
mod options;
mod overlap;
mod progress;
mod quote;
mod signals;
mod summary;
mod waiting;

use std::{ffi::OsString, fmt::Display, io::Write, path::PathBuf, process::ExitCode};

use clap::{Args, CommandFactory, Parser};

use self::{
    messages::{Messages, PROGRAM},
    options::Parsed,
};
use crate::report;

/// What the help, the man page and the completions say. The arguments themselves are parsed as GNU rm does.
#[derive(Args, Debug)]
#[command(after_long_help = "  inodyne rm -rf build\n  inodyne rm -r --one-file-system tree")]
pub struct RmArgs {
    /// What to remove; links are followed in the leading path, but not in the last name
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Ignore nonexistent files and arguments, never ask
    #[arg(short, long, help_heading = "As in GNU rm")]
    force: bool,
    /// Ask before every removal
    #[arg(short = 'i', help_heading = "As in GNU rm")]
    ask_always: bool,
    /// Ask once before removing more than three files, or when removing recursively
    #[arg(short = 'I', help_heading = "As in GNU rm")]
    ask_once: bool,
    /// Ask: never, once (-I) or always (-i)
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, help_heading = "As in GNU rm")]
    interactive: Option<String>,
    /// Stay on each operand's device, even where it changes without a mount
    #[arg(long, help_heading = "As in GNU rm")]
    one_file_system: bool,
    /// Do not treat '/' specially
    #[arg(long, help_heading = "As in GNU rm")]
    no_preserve_root: bool,
    /// Do not remove '/' (the default); with 'all', also refuse any operand on a different device from its parent
    #[arg(long, value_name = "all", num_args = 0..=1, require_equals = true, help_heading = "As in GNU rm")]
    preserve_root: Option<String>,
    /// Remove directories and their contents
    #[arg(short, long, visible_short_alias = 'R', help_heading = "As in GNU rm")]
    recursive: bool,
    /// Remove empty directories
    #[arg(short, long, help_heading = "As in GNU rm")]
    dir: bool,
    /// Say what is done
    #[arg(short, long, help_heading = "As in GNU rm")]
    verbose: bool,
    /// Also empty what is mounted below an operand
    #[arg(long, help_heading = "Beyond GNU rm")]
    cross_mounts: bool,
    /// Remove nothing; say what would be removed, how much that is, and how it would be done
    #[arg(long, help_heading = "Beyond GNU rm")]
    dry_run: bool,
    /// Rename each operand aside first, so that its name is free at once; the next run removes what a crash leaves behind
    #[arg(long, help_heading = "Beyond GNU rm")]
    trash: bool,
    /// Show files, rate and estimated time left, on a terminal after a second
    #[arg(long, help_heading = "Beyond GNU rm")]
    progress: bool,
    /// Print a summary as JSON
    #[arg(long, help_heading = "Beyond GNU rm")]
    json: bool,
    /// Strategy: auto, groups, single, steal or wide
    #[arg(long, value_name = "NAME", help_heading = "Beyond GNU rm")]
    strategy: Option<String>,
    /// Use at most this many threads for removing
    #[arg(long, value_name = "NUMBER", help_heading = "Beyond GNU rm")]
    threads: Option<usize>,
}

/// Remove files and directories like GNU rm, but faster and safer
///
/// Takes the options of GNU rm, with its messages and exit codes. Deletes in whichever way is fastest on the file system at hand. Unlike
/// GNU rm, it does not enter what is mounted below an operand unless told to.
#[derive(Parser)]
#[command(name = "inodyne rm", version, max_term_width = 100)]
struct Documentation {
    #[command(flatten)]
    _args: RmArgs,
}

/// Runs `inodyne rm` with what follows `rm` on the command line.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    match options::parse(arguments) {
        Parsed::Remove(options) => operands::remove(&options, &Messages::new(&options)),
        Parsed::Help => print(&Documentation::command().render_long_help()),
        Parsed::Version => print(&Documentation::command().render_version()),
        Parsed::Mistake(text) => fail(&text),
    }
}

/// A reader that went away is not an error.
fn print(text: &dyn Display) -> ExitCode {
    match report::write(text.to_string().as_bytes(), None) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => fail(&failure),
    }
}

fn fail(text: &dyn Display) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "{PROGRAM}: {text}");
    ExitCode::FAILURE
}
