//! What the sides of a comparison are called: by what they differ in, without saying anything twice.

use inodyne_model::case::{CaseKey, CasePair};
use inodyne_model::place::Place;
use inodyne_model::recording::Recording;
use inodyne_model::run::CacheState;

use super::rows::word;
use super::value::Value;
use crate::line::{cut, escaped};

/// The names of two cases, and what they have in common.
pub(crate) struct Names {
    pub(crate) a: String,
    pub(crate) b: String,
    /// The command or the place of both, if the recording has several; empty otherwise.
    pub(crate) common: String,
}

impl Names {
    pub(crate) fn of(recording: &Recording, CasePair { a, b }: CasePair) -> Names {
        let several_commands = recording.commands.len() > 1;
        let several_places = recording.places.len() > 1;
        let (place, command) =
            (|case: CaseKey| place(recording, case.place), |case: CaseKey| command(recording, case.command));
        if a.command == b.command {
            let common = if several_commands { command(a) } else { String::new() };
            Names { a: place(a), b: place(b), common }
        } else {
            let common = if several_places { format!("on {}", place(a)) } else { String::new() };
            Names { a: command(a), b: command(b), common }
        }
    }

    /// Both names.
    pub(crate) fn both(&self) -> [String; 2] {
        [self.a.clone(), self.b.clone()]
    }

    /// What both have in common, with the state of the caches: `, find . , cold`.
    pub(crate) fn circumstances(&self, cache: CacheState) -> String {
        circumstances(&self.common, cache)
    }
}

/// What two cases have in common, with the state of the caches: `, find . , cold`.
pub(crate) fn circumstances(common: &str, cache: CacheState) -> String {
    let common = if common.is_empty() { String::new() } else { format!(", {common}") };
    match cache {
        CacheState::AsIs => common,
        _ => format!("{common}, {cache}"),
    }
}

/// Two names, at most this wide; their ends if they begin alike, and from where they differ if they end alike, too.
pub(crate) fn short(names: &[String; 2], width: usize) -> [String; 2] {
    let names = names.each_ref().map(|name| escaped(name));
    let begins = names.each_ref().map(|name| cut(name, width));
    if begins[0] != begins[1] || names[0] == names[1] {
        return begins;
    }
    let ends = names.each_ref().map(|name| end(name, width));
    if ends[0] != ends[1] { ends } else { apart(&names, width) }
}

/// Two different texts from shortly before where they differ.
fn apart(texts: &[String; 2], width: usize) -> [String; 2] {
    const BEFORE: usize = 3;
    let alike = texts[0].chars().zip(texts[1].chars()).take_while(|(a, b)| a == b).count();
    texts.each_ref().map(|text| {
        let rest: String = text.chars().skip(alike.saturating_sub(BEFORE)).collect();
        cut(&format!("…{rest}"), width)
    })
}

/// The end of a text, at most this wide; `…` stands for what is cut.
fn end(text: &str, width: usize) -> String {
    let backwards = |text: &str| text.chars().rev().collect::<String>();
    backwards(&cut(&backwards(text), width))
}

/// A place's label, or where it is.
pub(crate) fn place(recording: &Recording, index: usize) -> String {
    recording.places.get(index).map_or_else(|| "?".to_owned(), Place::name)
}

/// A case by what the recording has several of: its command, its place, or both.
pub(crate) fn case(recording: &Recording, place: usize, command: usize) -> String {
    match (recording.commands.len() > 1, recording.places.len() > 1) {
        (true, true) => format!("{} on {}", self::command(recording, command), self::place(recording, place)),
        (true, false) => self::command(recording, command),
        (false, _) => self::place(recording, place),
    }
}

/// A command as it is called in reports.
pub(crate) fn command(recording: &Recording, index: usize) -> String {
    recording.commands.get(index).map_or_else(|| "?".to_owned(), |command| command.label.clone())
}

/// Whose row it is, for programs: the labels of place and command, and the state of the caches.
pub(crate) fn values(recording: &Recording, case: CaseKey) -> [Value; 3] {
    [place(recording, case.place).into(), command(recording, case.command).into(), word(case.cache)]
}

#[cfg(test)]
mod tests {
    #[test]
    fn long_names_stay_apart() {
        let short = |a: &str, b: &str| super::short(&[a.to_owned(), b.to_owned()], 10);
        assert_eq!(short("a longer name", "another name"), ["a longer …", "another n…"]);
        assert_eq!(short("cp -r tree copy", "cp -r tree copy && sync"), ["…tree copy", "…y && sync"]);
        assert_eq!(short("ext4", "xfs"), ["ext4", "xfs"]);
        let [a, b] = short("/mnt/disks/a/projects/tree-copy", "/mnt/disks/b/projects/tree-copy");
        assert_eq!([&a[..], &b[..]], ["…ks/a/pro…", "…ks/b/pro…"]);
    }
}
