//! Making a place's data durable: everything that its file system holds in memory goes to the device.
//!
//! What that is worth is up to the file system: on one that is mounted from a server, it ends at the server.

use std::{os::fd::OwnedFd, path::PathBuf};

use rustix::fs::{Mode, OFlags, open, syncfs};

use crate::{LabError, MountedPlace};

/// An open handle on a file system, so that flushing it begins the moment it is asked for.
#[derive(Debug)]
pub struct Flusher {
    root: OwnedFd,
    path: PathBuf,
}

impl Flusher {
    /// Waits until all that was written to the file system so far, by anybody, is on its device.
    pub fn flush(&self) -> Result<(), LabError> {
        syncfs(&self.root).map_err(|errno| LabError::io("flush", &self.path, errno))
    }
}

impl MountedPlace {
    /// What flushes the place's file system; for an overlay, that of its upper layer.
    ///
    /// # Errors
    /// What is written there stays in memory, where nothing is ever durable; it ignores syncs, and what is below it is not known; or its
    /// root cannot be opened.
    pub fn flusher(&self) -> Result<Flusher, LabError> {
        let written = self.written();
        if written.is_in_memory() {
            return Err(LabError::NeverDurable(self.record().label));
        }
        let flushed = if self.ignores_syncs() { written } else { self };
        if flushed.ignores_syncs() {
            return Err(LabError::IgnoresSyncs(self.record().label));
        }
        let path = flushed.path().to_owned();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(&path, flags, Mode::empty()).map_err(|errno| LabError::io("open", &path, errno))?;
        Ok(Flusher { root, path })
    }

    /// Where what is written to it goes: for an overlay, where its upper layer is.
    fn written(&self) -> &Self {
        let above = self.below().last().copied();
        above.map_or(self, Self::written)
    }

    /// Whether it is, or shows, an overlay that says at once that it has flushed everything, and flushes nothing (`ovl_sync_fs` in
    /// fs/overlayfs/super.c).
    fn ignores_syncs(&self) -> bool {
        let record = self.record();
        let is_volatile = |option: &str| matches!(option, "volatile" | "fsync=volatile");
        record.fs == "overlay" && record.mount_options.split(',').any(is_volatile)
    }
}
