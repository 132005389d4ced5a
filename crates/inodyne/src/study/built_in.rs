//! The studies that come with the program, with the scripts of their inputs: the files of `studies/`, as they are.

/// A file that is part of the program.
struct Embedded {
    /// Its path below `studies/`.
    path: &'static str,
    text: &'static str,
}

macro_rules! embedded {
    ($($path:literal),* $(,)?) => {
        [$(Embedded { path: $path, text: include_str!(concat!("../../studies/", $path)) }),*]
    };
}

const STUDIES: [Embedded; 4] = embedded!["find-dtype.toml", "home-server.toml", "rm-tree.toml", "ext4-vs-overlay.toml"];

/// What their inputs are made of.
const FILES: [Embedded; 6] = embedded![
    "inputs/linux.sh",
    "inputs/small-tar.sh",
    "inputs/wagtail.sh",
    "inputs/django.sh",
    "inputs/prm.sh",
    "../fixtures/prm.cpp",
];

/// The names of all studies, in the order of their listing.
pub fn names() -> impl Iterator<Item = &'static str> {
    STUDIES.iter().map(|study| study.path.trim_end_matches(".toml"))
}

/// The text of a study.
pub fn study(name: &str) -> Option<&'static str> {
    STUDIES.iter().find(|study| study.path.trim_end_matches(".toml") == name).map(|study| study.text)
}

/// A file that an input names.
pub fn file(path: &str) -> Option<&'static str> {
    FILES.iter().find(|file| file.path == path).map(|file| file.text)
}

/// What to say about a name that does not exist.
pub fn no_such(name: &str) -> String {
    let names: Vec<&str> = names().collect();
    format!("no study '{name}': there are {}; a file is written with a slash or ends in .toml", names.join(", "))
}
