//! `inodyne manual`: the man page and shell completions, generated from the arguments so that they cannot differ.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::{Cli, Manual, ManualArguments};
use crate::failure::{Failure, LACKING};

/// Runs the command.
pub fn run(arguments: &ManualArguments) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    match arguments.what {
        Manual::Man => man(&mut text).map_err(|error| Failure::new(LACKING, error))?,
        Manual::Bash => complete(Shell::Bash, &mut text),
        Manual::Zsh => complete(Shell::Zsh, &mut text),
        Manual::Fish => complete(Shell::Fish, &mut text),
    }
    // A reader that went away is no error.
    drop(io::stdout().lock().write_all(&text));
    Ok(ExitCode::SUCCESS)
}

fn complete(shell: Shell, text: &mut Vec<u8>) {
    clap_complete::generate(shell, &mut Cli::command(), "inodyne", text);
}

/// One page: the command, then the options of each subcommand.
fn man(text: &mut Vec<u8>) -> io::Result<()> {
    let mut command = Cli::command();
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
