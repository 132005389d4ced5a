//! Which way of deleting suits a file system, and with how many threads.
//!
//! What decides is where the kernel makes removers wait for each other. XFS serialises unlinks within an allocation
//! group and frees inodes on the processor that unlinked them, so each group gets one remover on one processor. Btrfs
//! serialises all changes, so one thread removes; in both cases, others go on reading meanwhile. ext4, tmpfs and overlays are
//! bound by processor time, so directories are simply spread over the threads. Where each call is a round trip, only the number
//! of calls in flight counts. `bench/results` has the figures behind every number here.

use std::{fmt, os::fd::AsFd, str::FromStr, time::Duration};

use super::groups::Groups;
use crate::{FileSystem, TreeError, sync::cores};

/// A way of deleting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// One pinned remover for each allocation group, fed by readers that run ahead.
    Groups,
    /// One remover, fed by readers that run ahead.
    Single,
    /// Every thread reads and removes, directories are stolen, large ones split.
    Steal,
    /// Like `Steal`, but with far more threads than processors, for calls that wait for somebody else.
    Wide,
}

impl Strategy {
    /// All, in the order in which help lists them.
    pub const ALL: [Self; 4] = [Self::Groups, Self::Single, Self::Steal, Self::Wide];

    /// What suits `file_system` best as far as measured; for an unknown one, what harms least.
    pub const fn for_file_system(file_system: FileSystem) -> Self {
        match file_system {
            FileSystem::Xfs => Self::Groups,
            FileSystem::Btrfs => Self::Single,
            FileSystem::Ext | FileSystem::Memory | FileSystem::Overlay | FileSystem::Other => Self::Steal,
            FileSystem::Remote => Self::Wide,
        }
    }

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Groups => "groups",
            Self::Single => "single",
            Self::Steal => "steal",
            Self::Wide => "wide",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Strategy {
    type Err = TreeError;

    fn from_str(name: &str) -> Result<Self, TreeError> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            TreeError::Spec(format!("no strategy '{name}': there are auto, {names}"))
        })
    }
}

/// A strategy with its numbers.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub file_system: FileSystem,
    pub strategy: Strategy,
    /// Threads that only read directories; 0 when the removers do it themselves.
    pub readers: usize,
    /// Removers at most.
    pub removers: usize,
    /// Removers at work at first; more are tried when the rate asks for it.
    pub start: usize,
    /// Which remover an inode belongs to, where that matters.
    pub groups: Option<Groups>,
    /// Whether a directory's entries are unlinked in the order of their inodes.
    pub sorted: bool,
    /// What takes longer than this takes longer than waking another worker.
    pub worth_company: Duration,
}

impl Plan {
    /// Decides for the file system of `directory`, if there is one. `threads` limits the removers.
    pub fn new(directory: Option<impl AsFd>, wanted: Option<Strategy>, threads: Option<usize>) -> Self {
        let directory = directory.as_ref();
        let file_system = directory.and_then(|it| FileSystem::of(it).ok()).unwrap_or(FileSystem::Other);
        let strategy = wanted.unwrap_or(Strategy::for_file_system(file_system));
        let cores = cores();
        let groups = (strategy == Strategy::Groups).then_some(directory).flatten().and_then(Groups::of);
        let (readers, start, removers) = match (strategy, &groups) {
            (Strategy::Groups, Some(groups)) => {
                let removers = threads.unwrap_or(cores).min(groups.count());
                (cores, removers, removers)
            }
            // Asked for where there are no groups: one remover is the same as one group.
            (Strategy::Groups | Strategy::Single, _) => (cores, 1, 1),
            (Strategy::Steal, _) => (0, threads.unwrap_or(cores), threads.unwrap_or(cores * 2)),
            (Strategy::Wide, _) => (0, threads.unwrap_or(WIDE.0), threads.unwrap_or(WIDE.1)),
        };
        let sorted = readers == 0 && file_system == FileSystem::Ext;
        // Where each call is a round trip, none is that short.
        let worth_company = if strategy == Strategy::Wide { Duration::ZERO } else { Duration::from_micros(100) };
        Self { file_system, strategy, readers, removers, start, groups, sorted, worth_company }
    }

    /// Fewer threads of each kind, where descriptors are scarce.
    pub fn limit_threads(&mut self, most: usize) {
        let each = if self.readers == 0 { most } else { most / 2 };
        self.removers = self.removers.min(each.max(1));
        self.start = self.start.min(self.removers);
        self.readers = self.readers.min(each.max(1));
    }

    pub fn threads(&self) -> usize {
        self.readers + self.removers
    }
}

/// Calls in flight where each waits for a round trip: at first and at most.
const WIDE: (usize, usize) = (16, 64);
