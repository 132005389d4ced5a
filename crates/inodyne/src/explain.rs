//! `inodyne explain`: what a word of a report means. Needs nothing but the program, which contains the pages.
//!
//! | module | what it knows |
//! |---|---|
//! | `pages` | the pages of findings and causes, and the entries of the glossary, by their words |
//! | `page` | how a page looks in a terminal |

mod page;
mod pages;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::Args;

use crate::failure::{ExitStatus, Failure};
use crate::report;

/// Arguments of `inodyne explain`.
#[derive(Debug, Args)]
#[command(after_long_help = "  inodyne explain dtype-missing\n  inodyne explain waiting for a CPU\n\n\
    The exit code is 2 where there is no such word.")]
pub struct ExplainArguments {
    /// A finding, a cause, a row of a ledger, or another word from a report; without one, list all words
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
}

/// Lines longer than this are hard to read, however wide the terminal is.
const WIDEST: usize = 100;

/// Runs the command.
pub fn run(arguments: &ExplainArguments) -> Result<ExitCode, Failure> {
    let width = report::width(io::stdout().is_terminal()).min(WIDEST);
    if arguments.words.is_empty() {
        print(&list(width))?;
        return Ok(ExitCode::SUCCESS);
    }
    let word = arguments.words.join(" ");
    let found = pages::find(&word);
    if found.is_empty() {
        return Err(Failure::new(ExitStatus::Usage, unknown(&word)));
    }
    let pages: Vec<String> = found.iter().map(|entry| page::rendered(entry.page, width)).collect();
    print(&pages.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// All words, by group.
fn list(width: usize) -> String {
    let mut out = String::new();
    for (group, words) in pages::groups() {
        out += &page::heading(group);
        out += &page::wrapped(&words.join(", "), "  ", "  ", width);
        out.push('\n');
    }
    out += "inodyne explain WORD says what it means.\n";
    out
}

fn unknown(word: &str) -> String {
    let word = inodyne_render::escaped(word);
    let near = pages::near(&word);
    let all = "'inodyne explain' alone lists all words";
    match near.as_slice() {
        [] => format!("no word {word:?} is known; {all}"),
        near => format!("no word {word:?} is known: did you mean {}? {all}", near.join(", ")),
    }
}

fn print(text: &str) -> Result<(), Failure> {
    let text = if report::shows_utf8() { text.to_owned() } else { inodyne_render::ascii(text) };
    // Without styles where they are not wanted.
    let mut stdout = anstream::stdout().lock();
    report::printed(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}
