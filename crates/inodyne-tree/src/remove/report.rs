//! What a delete reports: failures as they happen, and the totals at the end.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    time::Duration,
};

use rustix::io::Errno;

use super::Strategy;
use crate::FileSystem;

/// Hears about single entries while a delete runs, from several threads.
pub trait Observer: Sync {
    /// Something could not be removed. Called once for each such entry, never for the directories above it.
    fn failed(&self, failure: &Failure<'_>);

    /// Something was removed. Only called if [`Self::wants_removed`] says so, since naming costs time.
    fn removed(&self, path: &OsStr, kind: Removed) {
        let _ = (path, kind);
    }

    /// Whether [`Self::removed`] is to be called.
    fn wants_removed(&self) -> bool {
        false
    }
}

/// What kind of entry is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// Anything but a directory.
    File,
    /// An empty directory.
    Directory,
}

/// An entry that stays, and why.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    /// As the user would write it.
    pub path: &'a OsStr,
    /// Why it stays.
    pub reason: Reason,
}

/// Why an entry stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The kernel refused.
    Refused(Errno),
    /// A directory could not be opened or listed, and is not empty: what is in it stays, too.
    Unread(Errno),
    /// Another file system is mounted there, or it is on another device and staying on one was asked for.
    OtherDevice,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(errno) | Self::Unread(errno) => errno.fmt(f),
            Self::OtherDevice => f.write_str("it is on a different device"),
        }
    }
}

/// Which of two errors says why a directory that could be neither opened nor removed stays: that it is not empty is
/// nothing new.
pub(super) fn telling(opening: Errno, removing: Errno) -> Reason {
    match removing {
        Errno::NOTEMPTY | Errno::EXIST | Errno::ISDIR | Errno::NOTDIR => Reason::Unread(opening),
        other => Reason::Refused(other),
    }
}

/// The totals of a delete, or of what a dry run counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoveReport {
    /// Entries other than directories that are gone.
    pub files: u64,
    /// Directories that are gone.
    pub directories: u64,
    /// Bytes allocated to the counted files; only a dry run knows them.
    pub allocated_bytes: Option<u64>,
    /// Entries that could not be removed, each named once to the observer.
    pub failures: u64,
    /// Operands that were not finished because a stop was asked for.
    pub unfinished: Vec<OsString>,
    /// Time taken.
    pub wall: Duration,
    /// For each file system met at an operand: how it was done, with how many threads at most.
    pub plans: Vec<(FileSystem, Strategy, usize)>,
}

impl RemoveReport {
    pub(super) fn empty(dry_run: bool) -> Self {
        Self {
            files: 0,
            directories: 0,
            allocated_bytes: dry_run.then_some(0),
            failures: 0,
            unfinished: Vec::new(),
            wall: Duration::ZERO,
            plans: Vec::new(),
        }
    }

    /// The sum of this delete and one after it.
    pub(super) fn and(self, later: Self) -> Self {
        let allocated_bytes = self.allocated_bytes.zip(later.allocated_bytes).map(|(this, later)| this + later);
        Self {
            files: self.files + later.files,
            directories: self.directories + later.directories,
            allocated_bytes,
            failures: self.failures + later.failures,
            unfinished: [self.unfinished, later.unfinished].concat(),
            wall: self.wall + later.wall,
            plans: [self.plans, later.plans].concat(),
        }
    }
}
