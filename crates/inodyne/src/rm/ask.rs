//! Questions to a person, in GNU rm's words, and their answers from stdin.

use std::io::Write;

use inodyne_tree::{Decide, Question};
use rustix::{
    fs::FileType,
    io::{read, retry_on_intr},
};

use super::{
    messages::{Messages, PROGRAM},
    options::Ask,
};

/// Answers by the options where they say enough, otherwise asks.
pub struct Person<'a> {
    pub ask: Ask,
    pub messages: &'a Messages,
}

impl Decide for Person<'_> {
    fn decide(&mut self, question: &Question<'_>) -> bool {
        let needed = match self.ask {
            Ask::Never => false,
            Ask::Protected => question.write_protected,
            Ask::Always => true,
        };
        !needed || confirm(&self.wording(question))
    }
}

impl Person<'_> {
    fn wording(&self, question: &Question<'_>) -> String {
        let name = self.messages.quote(question.path);
        let protected = if question.write_protected { "write-protected " } else { "" };
        if question.unreadable {
            return format!("attempt removal of inaccessible directory {name}? ");
        }
        if question.enter {
            return format!("descend into {protected}directory {name}? ");
        }
        let kind = match question.kind {
            FileType::RegularFile if question.empty_file => "regular empty file",
            FileType::RegularFile => "regular file",
            FileType::Directory => "directory",
            FileType::Symlink => "symbolic link",
            FileType::Fifo => "fifo",
            FileType::Socket => "socket",
            FileType::BlockDevice => "block special file",
            FileType::CharacterDevice => "character special file",
            FileType::Unknown => "weird file",
        };
        format!("remove {protected}{kind} {name}? ")
    }
}

/// Asks; only an answer that begins with y or Y is a yes.
pub fn confirm(question: &str) -> bool {
    let mut stderr = std::io::stderr().lock();
    let asked = stderr.write_all(format!("{PROGRAM}: {question}").as_bytes()).and_then(|()| stderr.flush());
    let answer = answer();
    asked.is_ok() && matches!(answer, Some(b'y' | b'Y'))
}

/// The first byte of the next line of stdin. Nothing beyond that line is read: it is left for whoever reads stdin next.
fn answer() -> Option<u8> {
    let mut first = None;
    let mut byte = [0];
    while retry_on_intr(|| read(std::io::stdin(), &mut byte)) == Ok(1) {
        first = first.or(Some(byte[0]));
        if byte[0] == b'\n' {
            break;
        }
    }
    first
}
