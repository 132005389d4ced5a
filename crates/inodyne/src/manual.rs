//! `inodyne manual`: man pages and shell completions, generated from the arguments so that they cannot differ. `page` knows what goes into a page.

mod page;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command, ValueEnum};
use clap_complete::Shell;
use roff::Roff;

use crate::failure::{ExitStatus, Failure};

/// Arguments of `inodyne manual`.
#[derive(Debug, Args)]
#[command(after_long_help = "  inodyne manual install /usr/local/share\n  inodyne manual man | man -l -")]
pub struct ManualArguments {
    /// What to print
    #[arg(value_enum)]
    pub what: Manual,
    /// With `install`: the directory, such as /usr/local/share
    #[arg(required_if_eq("what", "install"))]
    pub directory: Option<PathBuf>,
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
    /// Nothing: writes a man page for each subcommand and all completions below DIRECTORY
    Install,
}

/// Where each shell looks for completions, below a `share` directory.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/inodyne"),
    (Shell::Zsh, "zsh/site-functions/_inodyne"),
    (Shell::Fish, "fish/vendor_completions.d/inodyne.fish"),
];

/// Prints it for this command line.
pub fn run(arguments: &ManualArguments, command: Command) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    match (arguments.what, &arguments.directory) {
        (Manual::Install, Some(directory)) => install(command, directory)?,
        (_, Some(_)) => return Err(Failure::new(ExitStatus::Usage, "only `manual install` takes a directory")),
        (Manual::Man | Manual::Install, None) => man(command, &mut text).map_err(lacking)?,
        (Manual::Bash, None) => complete(command, Shell::Bash, &mut text),
        (Manual::Zsh, None) => complete(command, Shell::Zsh, &mut text),
        (Manual::Fish, None) => complete(command, Shell::Fish, &mut text),
    }
    crate::report::write(&text, None)?;
    Ok(ExitCode::SUCCESS)
}

fn lacking(error: io::Error) -> Failure {
    Failure::new(ExitStatus::Lacking, error)
}

fn complete(mut command: Command, shell: Shell, text: &mut Vec<u8>) {
    clap_complete::generate(shell, &mut command, "inodyne", text);
}

/// One page: the command, then the options of each subcommand.
fn man(mut command: Command, text: &mut Vec<u8>) -> io::Result<()> {
    command.build();
    clap_mangen::Man::new(command.clone()).render(text)?;
    for subcommand in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let page = clap_mangen::Man::new(page::own(subcommand));
        writeln!(text, ".SH \"{}\"", subcommand.get_name().to_uppercase())?;
        page.render_description_section(text)?;
        page.render_synopsis_section(text)?;
        page.render_options_section(text)?;
    }
    let mut roff = Roff::default();
    page::below(&mut roff, &command);
    roff.to_writer(text)
}

/// The command and all below it, each with the names of the pages that it refers to: those above, beside and below it.
fn pages(command: &Command) -> Vec<(&Command, Vec<String>)> {
    let names = |command: &Command| command.get_subcommands().map(page::name).collect::<Vec<_>>();
    let below = |sub| {
        let of_sub = pages(sub).into_iter();
        of_sub.map(|(each, mut others)| {
            if std::ptr::eq(each, sub) {
                let beside = names(command).into_iter().filter(|name| *name != page::name(sub));
                others.splice(..0, std::iter::once(page::name(command)).chain(beside));
            }
            (each, others)
        })
    };
    let all = command.get_subcommands().flat_map(below).collect::<Vec<_>>();
    std::iter::once((command, names(command))).chain(all).collect()
}

/// A page for the command and for each subcommand, `inodyne-study-run.1`, and the completions, where other programs look for them.
fn install(command: Command, directory: &Path) -> Result<(), Failure> {
    let failed = |path: &Path, error: io::Error| {
        Failure::new(ExitStatus::Lacking, format_args!("cannot write {}: {error}", path.display()))
    };
    let pages = directory.join("man/man1");
    fs::create_dir_all(&pages).map_err(|error| failed(&pages, error))?;
    // `help` explains itself.
    let mut documented = command.clone().disable_help_subcommand(true);
    documented.build();
    for (each, others) in self::pages(&documented) {
        let path = pages.join(format!("{}.1", page::name(each)));
        let written = page::page(each, &others).and_then(|text| fs::write(&path, text));
        written.map_err(|error| failed(&path, error))?;
    }
    for (shell, name) in COMPLETIONS {
        let path = directory.join(name);
        let mut text = Vec::new();
        complete(command.clone(), shell, &mut text);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, &text));
        written.map_err(|error| failed(&path, error))?;
    }
    Ok(())
}
