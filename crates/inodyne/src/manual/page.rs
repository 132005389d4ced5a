//! The man page of a command: what clap_mangen makes of its arguments, then what its help says below them, sorted into the sections that
//! readers of man pages expect: notes, examples, exit status, and other pages.

use std::io;

use clap::Command;
use clap_mangen::Man;
use roff::{Roff, bold, roman};

use crate::failure::ExitStatus;

/// How an example line begins in the text below the arguments.
const EXAMPLE: &str = "  inodyne ";

/// A page of its own, which refers to the pages with these names.
///
/// # Errors
/// Never, as the page is made in memory.
pub fn page(command: &Command, others: &[String]) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let man = Man::new(own(command));
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    let mut roff = Roff::default();
    subcommands(&mut roff, command);
    notes(&mut roff, command);
    below(&mut roff, command);
    if !others.is_empty() {
        roff.control("SH", ["SEE ALSO"]);
        let names: Vec<String> = others.iter().map(|name| format!("{name}(1)")).collect();
        roff.text([roman(names.join(", "))]);
    }
    roff.to_writer(&mut out)?;
    Ok(out)
}

/// The command with the options that it takes itself: `rm` has those of GNU rm alone.
pub fn own(command: &Command) -> Command {
    let command = command.clone();
    if command.get_name() == "rm" { command.mut_arg("color", |color| color.hide(true)) } else { command }
}

/// Examples and exit status.
pub fn below(roff: &mut Roff, command: &Command) {
    roff.control("SH", ["EXAMPLES"]);
    for example in examples(command) {
        roff.control("PP", []);
        preformatted(roff, &[&example]);
    }
    roff.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in exit_status(command.get_name()) {
        roff.control("TP", []);
        roff.text([bold(code)]);
        roff.text([roman(meaning)]);
    }
}

/// The examples of a command; for one that only has subcommands, the first example of each of these.
pub fn examples(command: &Command) -> Vec<String> {
    let own: Vec<String> = help(command).lines().filter_map(example).map(str::to_owned).collect();
    if !own.is_empty() {
        return own;
    }
    command.get_subcommands().filter_map(|sub| examples(sub).into_iter().next()).collect()
}

fn example(line: &str) -> Option<&str> {
    line.starts_with(EXAMPLE).then(|| line.trim_start())
}

/// What its help says below the arguments.
fn help(command: &Command) -> String {
    command.get_after_long_help().map(ToString::to_string).unwrap_or_default()
}

fn subcommands(roff: &mut Roff, command: &Command) {
    let mut subcommands = command.get_subcommands().peekable();
    if subcommands.peek().is_some() {
        roff.control("SH", ["COMMANDS"]);
    }
    for sub in subcommands {
        roff.control("TP", []);
        roff.text([bold(format!("{}(1)", name(sub)))]);
        roff.text([roman(sub.get_about().map(ToString::to_string).unwrap_or_default())]);
    }
}

/// The name of a command's page: `inodyne-study-run`.
pub fn name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

/// The help without its examples. Indented lines stay as they are.
fn notes(roff: &mut Roff, command: &Command) {
    let help = help(command);
    let paragraphs: Vec<Vec<&str>> = help
        .split("\n\n")
        .map(|paragraph| paragraph.lines().filter(|line| example(line).is_none()).collect::<Vec<_>>())
        .filter(|lines| !lines.is_empty())
        .collect();
    if !paragraphs.is_empty() {
        roff.control("SH", ["NOTES"]);
    }
    for lines in paragraphs {
        roff.control("PP", []);
        for group in lines.chunk_by(|a, b| a.starts_with(' ') == b.starts_with(' ')) {
            if group[0].starts_with(' ') {
                preformatted(roff, group);
            } else {
                roff.text([roman(group.join("\n"))]);
            }
        }
    }
}

fn preformatted(roff: &mut Roff, lines: &[&str]) {
    roff.control("nf", []);
    for line in lines {
        roff.text([roman(*line)]);
    }
    roff.control("fi", []);
}

/// What a command returns, by its name.
fn exit_status(command: &str) -> Vec<(String, &'static str)> {
    let known = [
        (
            ExitStatus::Failed,
            "An expectation or a gate does not hold, runs failed, or something is not as it should be.",
        ),
        (ExitStatus::Usage, "Something in the arguments, or in a file that they name, is wrong."),
        (ExitStatus::Lacking, "The machine lacks something, which the message names."),
        (ExitStatus::Untrusted, "Events were lost: the measurement is not to be trusted."),
        (ExitStatus::Interrupted, "The user ended it."),
    ];
    let known = known.into_iter().map(|(status, meaning)| (status.code().to_string(), meaning));
    let own: &[(&str, &str)] = match command {
        "run" => &[
            ("0 to 125", "As the command's own, where nothing below is the case."),
            ("126, 127", "The command cannot be executed, or is not found."),
            ("128 and more", "A signal of this number, less 128, ended the command."),
        ],
        "rm" => {
            return vec![
                ("0".to_owned(), "Everything is removed."),
                ("1".to_owned(), "Something is not removed, or an argument is wrong: as GNU rm."),
            ];
        }
        _ => &[("0", "Everything went well.")],
    };
    own.iter().map(|(code, meaning)| ((*code).to_owned(), *meaning)).chain(known).collect()
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use crate::cli::Cli;

    use super::*;

    fn all(command: &Command) -> Vec<Command> {
        let of_sub = command.get_subcommands().flat_map(all);
        std::iter::once(command.clone()).chain(of_sub).collect()
    }

    #[test]
    fn every_example_can_be_typed() {
        let mut examined = 0;
        for command in all(&Cli::command()) {
            let examples = examples(&command);
            assert!(!examples.is_empty(), "{} has no example", command.get_name());
            for example in examples {
                let typed = example.split(" | ").next().unwrap_or_default();
                let words = shell_words::split(typed).expect("words");
                assert!(Cli::try_parse_from(&words).is_ok(), "{typed}: {:?}", Cli::try_parse_from(&words).err());
                examined += 1;
            }
        }
        assert!(examined > 20, "{examined}");
    }
}
