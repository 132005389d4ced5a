//! The line between a running delete and whoever watches it: stop it, see how far it is.
//!
//! It can live in a `static`, and asking for the stop is one atomic store, so that a signal handler may do it.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use rustix::fs::Stat;

use crate::sync::lock;

/// Shared with a running [`remove`](super::remove).
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    pub(super) files: AtomicU64,
    pub(super) directories: AtomicU64,
    pub(super) seen_directories: AtomicU64,
    pub(super) failures: AtomicU64,
    bytes: AtomicU64,
    /// Device and inode of each file with several names that a dry run met.
    linked: Mutex<BTreeSet<(u64, u64)>>,
}

impl Control {
    /// Nothing done, nothing asked.
    pub const fn new() -> Self {
        Self {
            stop: AtomicBool::new(false),
            files: AtomicU64::new(0),
            directories: AtomicU64::new(0),
            seen_directories: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            linked: Mutex::new(BTreeSet::new()),
        }
    }

    /// Asks for a stop: every thread ends after the call it is in. May be called from a signal handler.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether a stop was asked for.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Files removed so far.
    pub fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    /// Directories removed so far.
    pub fn directories(&self) -> u64 {
        self.directories.load(Ordering::Relaxed)
    }

    /// Failures so far.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Bytes allocated to the files that a dry run counted so far.
    pub fn allocated_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adds what a file occupies to what a dry run counts; once, however many names it has.
    pub fn count_allocated(&self, file: &Stat) {
        if file.st_nlink <= 1 || lock(&self.linked).insert((file.st_dev, file.st_ino)) {
            self.bytes.fetch_add(file.st_blocks as u64 * 512, Ordering::Relaxed);
        }
    }

    /// About how many entries are left, judged by the directories seen but not yet removed. Too low at first; unknown until
    /// one is gone.
    pub fn about_left(&self) -> Option<u64> {
        let done = self.directories();
        let left = self.seen_directories.load(Ordering::Relaxed).saturating_sub(done);
        Some(left + self.files().saturating_mul(left).checked_div(done)?)
    }
}
