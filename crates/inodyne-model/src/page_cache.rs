//! The page cache: what a command brought into it, what of that it asked for, and what was evicted from it for lack of memory.
//!
//! Pages that are created to be written do not count as brought in: they are not read from anywhere.

use serde::{Deserialize, Serialize};

/// What a command brought into the page cache, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PageCache {
    /// Who brought how much, most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub brought: Vec<Brought>,
    /// What the command asked for. None where the kernel does not show it: before Linux 6.12.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// What was evicted from the cache for lack of memory while the command ran: contents of anybody's files, in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub evicted_bytes: u64,
    /// The part of it that the command had brought in, in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub evicted_own_bytes: u64,
    /// Contents of files that were brought in, where there was no room to note what became of them, in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_followed_bytes: u64,
    /// How often, at most, the kernel skipped a program that observes this: this many folios brought in, or calls and faults that asked for
    /// some, are not in these figures.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unseen: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl PageCache {
    /// What the command had brought in before, and brought in again after it was evicted, in bytes.
    pub fn again_bytes(&self) -> u64 {
        self.brought.iter().map(|row| row.again_bytes).fold(0, u64::saturating_add)
    }
}

/// Pages of one file system that were brought in by threads of one command name during one call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Brought {
    /// The file system's device, `MAJOR:MINOR`.
    pub device: String,
    /// The device's name; the number where it has none.
    pub name: String,
    /// The command name of the threads; empty while they executed a program, since the name is then still that of the earlier one.
    pub comm: String,
    /// During which call; [`PAGE_FAULT`](crate::ledger::PAGE_FAULT) where in none.
    pub syscall: String,
    /// What the pages hold.
    pub contents: Contents,
    /// How much.
    pub bytes: u64,
    /// The part of it that the command had brought in before and that had been evicted since.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub again_bytes: u64,
}

/// What pages hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contents {
    /// Contents of regular files.
    #[default]
    Files,
    /// Whatever else a file system keeps in the page cache: directories, inodes, block maps.
    Metadata,
}

impl Contents {
    /// Its name in recordings and tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Contents::Files => "files",
            Contents::Metadata => "metadata",
        }
    }
}

/// What a command asked for of the contents of files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Asked {
    /// What reading calls asked for through the cache, counted each time, in whole pages.
    pub read_bytes: u64,
    /// Page faults that asked for a page of a file, except those that only had to map one that was already in memory.
    pub faults: u64,
    /// The latter, for what the command had brought in: page faults that only mapped pages that were already in memory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub mapped: u64,
    /// What use was made of the pages that were brought in, each counted once.
    #[serde(flatten)]
    pub of_brought: Used,
    /// The same for the files of which most was brought in, most first: up to [`FILES_KEPT`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FilePages>,
}

/// What use was made of pages that were brought in, in bytes, each page counted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Used {
    /// All of them.
    pub distinct_bytes: u64,
    /// Those that a call or a page fault asked for.
    pub used_bytes: u64,
    /// Those that were only mapped beside one that was faulted for: whether the program looked at them cannot be seen.
    pub beside_bytes: u64,
}

impl Asked {
    /// The files of which something was brought in that nobody asked for, those with the most of it first.
    pub fn in_vain(&self) -> Vec<&FilePages> {
        let mut files: Vec<&FilePages> = self.files.iter().filter(|file| file.used.unused_bytes() > 0).collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.used.unused_bytes()));
        files
    }
}

impl Used {
    /// Those that nobody asked for while the command ran.
    pub fn unused_bytes(&self) -> u64 {
        self.distinct_bytes.saturating_sub(self.used_bytes).saturating_sub(self.beside_bytes)
    }

    /// Adds others.
    pub fn add(&mut self, other: &Used) {
        self.distinct_bytes = self.distinct_bytes.saturating_add(other.distinct_bytes);
        self.used_bytes = self.used_bytes.saturating_add(other.used_bytes);
        self.beside_bytes = self.beside_bytes.saturating_add(other.beside_bytes);
    }
}

/// Pages of one file that were brought in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FilePages {
    /// The file system's device, `MAJOR:MINOR`.
    pub device: String,
    /// The file's inode number.
    pub inode: u64,
    /// One of its names, without the directory; empty where it had none in memory.
    pub name: String,
    /// What use was made of them.
    #[serde(flatten)]
    pub used: Used,
}

impl FilePages {
    /// What it is called.
    pub fn called(&self) -> &str {
        if self.name.is_empty() { "a file without a name" } else { &self.name }
    }
}

/// For how many files it is kept what use was made of their pages.
pub const FILES_KEPT: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_asked_for_is_the_rest() {
        let mut used = Used { distinct_bytes: 100, used_bytes: 30, beside_bytes: 20 };
        assert_eq!(used.unused_bytes(), 50);
        used.add(&Used { distinct_bytes: 10, used_bytes: 10, beside_bytes: 0 });
        assert_eq!(used, Used { distinct_bytes: 110, used_bytes: 40, beside_bytes: 20 });
        assert_eq!(used.unused_bytes(), 50);
    }
}
