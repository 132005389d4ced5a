//! `inodyne study`: questions with several parts, kept in files: measured, explained, and compared with what was expected.
//!
//! | module | what it knows |
//! |---|---|
//! | `file` | the shape of a study's file |
//! | `mistake` | where something in it is wrong |
//! | `built_in` | the studies that come with the program |
//! | `words` | words in braces that stand for others |
//! | `places` | places over places |
//! | `plan` | the study in one of its forms, checked |
//! | `inputs` | files that a script makes or fetches first |
//! | `run` | measuring the parts, one after another |
//! | `expect` | what the result should say |

mod built_in;
mod expect;
mod file;
mod inputs;
mod mistake;
mod part;
mod places;
mod plan;
mod run;
mod words;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use inodyne_launch::User;

use crate::failure::{ExitStatus, Failure};
use crate::host;
use crate::say::show;
use file::{File, Form};
use mistake::{Mistake, Source};
use plan::{Plan, Surroundings};
use run::StudyRunArguments;

/// Arguments of `inodyne study`.
#[derive(Debug, Args)]
pub struct StudyArguments {
    /// What to do.
    #[command(subcommand)]
    pub action: StudyAction,
}

/// What to do with studies.
#[derive(Debug, Subcommand)]
pub enum StudyAction {
    /// Run a study, and check its expectations
    Run(Box<StudyRunArguments>),
    /// List the studies that come with the program
    #[command(after_long_help = "  inodyne study list")]
    List,
    /// Print a study's file, as a starting point for your own
    #[command(after_long_help = "  inodyne study show find-dtype")]
    Show {
        /// A built-in study's name, or a file
        #[arg(value_name = "STUDY")]
        study: PathBuf,
    },
    /// Find the mistakes in a study without running anything
    #[command(after_long_help = "  inodyne study check ./mine.toml")]
    Check {
        /// A file, or a built-in study's name
        #[arg(value_name = "STUDY")]
        study: PathBuf,
    },
}

/// Runs the command.
pub fn run(arguments: &StudyArguments) -> Result<ExitCode, Failure> {
    match &arguments.action {
        StudyAction::Run(arguments) => run::run(arguments),
        StudyAction::List => list(),
        StudyAction::Show { study } => show(study),
        StudyAction::Check { study } => check(study),
    }
}

/// A study that has been read, but not checked.
struct Study {
    /// Its name: that of its file without the extension.
    name: String,
    source: Source,
    /// Where its file is; none if it is built in.
    beside: Option<PathBuf>,
    file: File,
}

impl Study {
    /// Reads a built-in study, or a file: what has a slash or ends in `.toml`.
    fn read(which: &Path) -> Result<Study, Failure> {
        let (source, beside) = text(which)?;
        let file = file::read(&source.text).map_err(|mistake| told(&[mistake], &source))?;
        let name = which.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Study { name, source, beside, file })
    }

    /// What it does in one of its forms.
    fn plan(&self, form: Form, user: Option<&User>) -> Result<Plan, Failure> {
        let surroundings = Surroundings { beside: self.beside.as_deref(), cache: &inputs::cache(user)? };
        Plan::new(&self.file, form, &surroundings).map_err(|mistakes| told(&mistakes, &self.source))
    }
}

/// The text of a study, and the directory of its file.
fn text(which: &Path) -> Result<(Source, Option<PathBuf>), Failure> {
    let name = which.display().to_string();
    if !name.contains('/') && !name.ends_with(".toml") {
        let text = built_in::study(&name).ok_or_else(|| Failure::new(ExitStatus::Usage, built_in::no_such(&name)))?;
        return Ok((Source { name, text: text.to_owned() }, None));
    }
    let source = read(which, name)?;
    let beside = which.parent().map(Path::to_owned).unwrap_or_default();
    Ok((source, Some(beside)))
}

/// Anything larger is not a study, but perhaps a device without an end.
const LARGEST: u64 = 1 << 20;

fn read(path: &Path, name: String) -> Result<Source, Failure> {
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
    read.map_err(|error| Failure::new(ExitStatus::Usage, format_args!("{name}: {error}")))?;
    if bytes.len() as u64 > LARGEST {
        return Err(Failure::new(
            ExitStatus::Usage,
            format_args!("{name}: is larger than 1 MiB, so it is not a study"),
        ));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source { name, text }),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(&error.as_bytes()[..at]).into_owned();
            Err(told(&[Mistake::at(at, "the text is not UTF-8 from here on")], &Source { name, text }))
        }
    }
}

/// Prints each mistake on a line; the last one becomes the failure itself.
fn told(mistakes: &[Mistake], source: &Source) -> Failure {
    let lines: Vec<Failure> =
        mistakes.iter().map(|mistake| Failure::new(ExitStatus::Usage, mistake.told(source))).collect();
    let (last, before) = match lines.split_last() {
        Some((last, before)) => (last.to_string(), before),
        None => (String::new(), &[][..]),
    };
    for line in before {
        crate::say::say!("inodyne: {line}");
    }
    Failure::new(ExitStatus::Usage, last)
}

fn list() -> Result<ExitCode, Failure> {
    let widest = built_in::names().map(str::len).max().unwrap_or_default();
    for name in built_in::names() {
        let study = Study::read(Path::new(name))?;
        show!("{name:widest$}  {}", study.file.title)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The file itself says most, and can be a starting point for one's own.
fn show(which: &Path) -> Result<ExitCode, Failure> {
    let (source, _) = text(which)?;
    crate::report::write(source.text.as_bytes(), None)?;
    Ok(ExitCode::SUCCESS)
}

fn check(which: &Path) -> Result<ExitCode, Failure> {
    let study = Study::read(which)?;
    let user = host::user(None)?;
    let forms = [Form::Full, Form::Quick].map(|form| study.plan(form, user.as_ref()));
    let [full, quick] = forms;
    let (full, quick) = (full?, quick?);
    let count = |count: usize, thing: &str| format!("{count} {thing}{}", if count == 1 { "" } else { "s" });
    show!(
        "{}: {}, {}; {} runs, {} in the quick form",
        study.name,
        count(full.parts.len(), "part"),
        count(full.expectations.len(), "expectation"),
        full.runs(),
        quick.runs()
    )?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
