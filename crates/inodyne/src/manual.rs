//! `inodyne manual`: the man page and shell completions, generated from the arguments so that they cannot differ.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;

use crate::failure::{ExitStatus, Failure};

/// Arguments of `inodyne manual`.
#[derive(Debug, Args)]
pub struct ManualArguments {
    /// What to print
    #[arg(value_enum)]
    pub what: Manual,
}

/// What `inodyne manual` can print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Manual {
    /// The man page inodyne(1), with all subcommands
    Man,
    /// Completions for bash
    Bash,
    /// Completions for zsh
    Zsh,
    /// Completions for fish
    Fish,
}

/// Prints it, of this command line.
pub fn run(arguments: &ManualArguments, command: Command) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    match arguments.what {
        Manual::Man => man(command, &mut text).map_err(|error| Failure::new(ExitStatus::Lacking, error))?,
        Manual::Bash => complete(command, Shell::Bash, &mut text),
        Manual::Zsh => complete(command, Shell::Zsh, &mut text),
        Manual::Fish => complete(command, Shell::Fish, &mut text),
    }
    // A reader that went away is no error.
    drop(io::stdout().lock().write_all(&text));
    Ok(ExitCode::SUCCESS)
}

fn complete(mut command: Command, shell: Shell, text: &mut Vec<u8>) {
    clap_complete::generate(shell, &mut command, "inodyne", text);
}

/// One page: the command, then the options of each subcommand.
fn man(mut command: Command, text: &mut Vec<u8>) -> io::Result<()> {
    command.build();
    clap_mangen::Man::new(command.clone()).render(text)?;
    for subcommand in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let page = clap_mangen::Man::new(subcommand.clone());
        writeln!(text, ".SH \"{}\"", subcommand.get_name().to_uppercase())?;
        page.render_description_section(text)?;
        page.render_synopsis_section(text)?;
        page.render_options_section(text)?;
    }
    Ok(())
}
