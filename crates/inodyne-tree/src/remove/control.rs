//! The line between a running delete and whoever watches it: stop it, see how far it is.
//!
//! All of it is atomic and can live in a `static`, so that a signal handler may ask for the stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared with a running [`remove`](super::remove).
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    pub(super) files: AtomicU64,
    pub(super) directories: AtomicU64,
    pub(super) seen_directories: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) bytes: AtomicU64,
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

    /// About how many entries are left, judged by the directories seen but not yet removed. Too low at first.
    pub fn about_left(&self) -> u64 {
        let done = self.directories();
        let left = self.seen_directories.load(Ordering::Relaxed).saturating_sub(done);
        left + self.files().saturating_mul(left).checked_div(done).unwrap_or(0)
    }
}
