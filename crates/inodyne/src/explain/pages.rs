//! The words that can be explained, each with its page: what `docs/findings` and `docs/causes` say, and the entries of the glossary. All
//! of them are built into the program.

use std::sync::LazyLock;

/// For a folder of `docs`: the name of each page, and its text.
macro_rules! pages {
    ($folder:literal: $($word:literal)+) => {
        &[$(($word, include_str!(concat!("../../docs/", $folder, "/", $word, ".md")))),+]
    };
}

static FINDINGS: &[(&str, &str)] = pages! {
    "findings":
     "cold-data" "cold-metadata" "cold-program" "commit-storm" "copy-up" "cpu-limited" "deleted-inodes" "device-saturated" "dtype-missing"
     "failed-calls" "failed-lookups" "fs-not-to-blame" "futex-contention" "io-limited" "journal-wait" "kernel-cpu-bound" "lock-contention"
     "memory-pressure" "mmap-faults" "process-storm" "queue-full" "random-io" "readahead-wasted" "repeated-stat" "round-trips" "run-queue-bound"
     "single-stream" "small-io" "small-requests" "stat-per-entry" "sync-bound" "user-cpu-bound" "write-amplification" "write-throttled"
};

static CAUSES: &[(&str, &str)] = pages! {
    "causes":
     "buffer-lock" "child" "device-flush" "device-read" "device-write" "fuse-server" "futex" "inode-lock"
     "journal" "lock" "memory" "other" "pipe" "poll" "queue-full" "rcu" "remote-server" "sleep" "socket" "stopped"
     "write-throttle"
};

static GLOSSARY: &str = include_str!("../../docs/glossary.md");

/// What can be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// What kind of word it is.
    group: &'static str,
    /// The word, and others with the same meaning after a comma.
    words: &'static str,
    /// The page, in Markdown.
    pub page: &'static str,
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let of_folder =
        |group, pages: &'static [(&str, &str)]| pages.iter().map(move |(words, page)| Entry { group, words, page });
    of_folder("Findings", FINDINGS).chain(of_folder("Causes of a wait", CAUSES)).chain(of_glossary()).collect()
});

/// The glossary in pieces: a group below each heading of the second level, an entry below each of the third.
fn of_glossary() -> Vec<Entry> {
    let mut entries = Vec::new();
    for section in GLOSSARY.split("\n## ").skip(1) {
        let (group, rest) = section.split_once('\n').unwrap_or((section, ""));
        let mut at = rest;
        while let Some(begin) = at.find("### ") {
            let entry = &at[begin..];
            let end = entry.find("\n### ").map_or(entry.len(), |end| end + 1);
            let words = entry["### ".len()..].lines().next().unwrap_or_default();
            entries.push(Entry { group, words, page: &entry[..end] });
            at = &entry[end..];
        }
    }
    entries
}

impl Entry {
    /// The word and those that mean the same.
    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.words.split(", ")
    }
}

/// The entries for a word, as reports write it: also for a row with its cause or with "(estimated)". A cause and a finding may have the same name.
pub fn find(word: &str) -> Vec<&'static Entry> {
    let word = plain(word);
    let is_meant = |entry: &&Entry| entry.names().any(|name| plain(name) == word);
    ENTRIES.iter().filter(is_meant).collect()
}

/// The word without what a report writes around it.
fn plain(word: &str) -> String {
    let word = word.trim().to_lowercase();
    let without = |word: &str, note: &str| word.strip_suffix(note).unwrap_or(word).trim_end().to_owned();
    let word = without(&without(&word, " (began before)"), " (estimated)");
    let word = word.strip_prefix("blocked:").unwrap_or(&word).trim_start();
    word.replace('_', "-")
}

/// All words by group.
pub fn groups() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for entry in ENTRIES.iter() {
        let word = entry.names().next().unwrap_or_default();
        match groups.last_mut() {
            Some((group, words)) if *group == entry.group => words.push(word),
            _ => groups.push((entry.group, vec![word])),
        }
    }
    groups
}

/// The words that look most like this one, at most three.
pub fn near(word: &str) -> Vec<&'static str> {
    /// From this similarity on, two words look alike.
    const ALIKE: f64 = 0.8;
    const MOST: usize = 3;
    let word = plain(word);
    let alike = |name: &&'static str| {
        let holds = word.len() > 2 && (name.contains(&word) || word.contains(&plain(name)));
        if holds { 1.0 } else { strsim::jaro_winkler(&word, &plain(name)) }
    };
    let mut names: Vec<_> = ENTRIES.iter().flat_map(Entry::names).map(|name| (alike(&name), name)).collect();
    names.retain(|(alike, _)| *alike >= ALIKE);
    names.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    names.into_iter().map(|(_, name)| name).take(MOST).collect()
}

/// Every page.
#[cfg(test)]
pub fn all() -> impl Iterator<Item = &'static str> {
    ENTRIES.iter().map(|entry| entry.page)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use inodyne_model::cause::Cause;

    use super::*;

    #[test]
    fn every_page_is_carried() {
        for (folder, pages) in [("findings", FINDINGS), ("causes", CAUSES)] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(folder);
            for file in fs::read_dir(path).unwrap() {
                let name = file.unwrap().file_name().into_string().unwrap();
                let is_of_all = ["README.md", "matrix.md", "score.md"].contains(&name.as_str());
                let is_carried = pages.iter().any(|(word, _)| format!("{word}.md") == name);
                assert!(is_carried || is_of_all, "docs/{folder}/{name} is missing in the list");
            }
        }
    }

    #[test]
    fn every_finding_and_every_cause_is_explained() {
        for word in inodyne_analyse::finding_ids().chain(Cause::ALL.map(Cause::as_str)) {
            let found = find(word);
            let is_its_page = |entry: &&Entry| entry.page.starts_with(&format!("# {word}\n"));
            assert!(!found.is_empty() && found.iter().all(is_its_page), "{word}");
        }
    }

    #[test]
    fn every_word_of_a_row_is_explained() {
        for word in inodyne_render::row_words() {
            assert!(!find(&word).is_empty(), "{word:?} is not in docs/glossary.md");
        }
        assert_eq!(find("kernel (estimated)"), find("kernel"));
        assert_eq!(find("blocked: device-read"), find("Device-Read"));
        assert_eq!(find("runqueue"), find("waiting for a CPU"));
    }

    #[test]
    fn a_word_that_is_mistaken_leads_to_its_neighbours() {
        assert!(find("dtype").is_empty() && find("").is_empty());
        assert_eq!(near("dtype"), ["dtype-missing"]);
        assert!(near("cold-metdata").contains(&"cold-metadata"));
        assert!(near("xyzzy").is_empty());
    }

    #[test]
    fn no_word_is_explained_twice_in_a_group() {
        let of_entry = |entry: &'static Entry| entry.names().map(|name| (entry.group, plain(name)));
        let mut names: Vec<(&str, String)> = ENTRIES.iter().flat_map(of_entry).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
