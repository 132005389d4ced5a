//! The two states of the caches that can be made: cold and warm.
//!
//! Coldness is not assumed but verified: compare [`MountedPlace::device_stats`] before and after the run. A cold run has
//! read bytes. Direct I/O on the loop device makes sure that the image's own pages cannot answer instead.

use std::path::Path;

use rustix::fs::FileType;

use crate::{LabError, MountedPlace, mount, walk::walk_what_is_allowed};

/// Empties the caches: the place's file system is flushed and, if we made it, unmounted and mounted again; then the
/// whole machine's clean pages, dentries and inodes are dropped (there is no smaller unit).
///
/// Other file systems are not flushed, so a busy machine costs no time here.
pub fn make_cold(place: &mut MountedPlace) -> Result<(), LabError> {
    if place.is_in_memory() {
        return Err(LabError::NeverCold(place.record().label));
    }
    mount::sync(place.path())?;
    place.remount()?;
    // Twice: pages go before inodes and journal heads, which hold some of those pages until then.
    drop_caches()?;
    drop_caches()
}

fn drop_caches() -> Result<(), LabError> {
    let file = "/proc/sys/vm/drop_caches";
    std::fs::write(file, "3").map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            LabError::MissingCapability { purpose: "emptying the caches", capability: "CAP_SYS_ADMIN" }
        }
        _ => LabError::io("write", file, error),
    })
}

/// What [`warm`] has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Warmed {
    /// Directories, the root included.
    pub directories: u64,
    /// Everything else.
    pub others: u64,
}

/// Reads every directory and every inode below `path`, so that names and attributes are in memory.
///
/// Contents are not read: for a command that reads them, a run that is not counted warms exactly what it needs.
/// What may not be read is left as it is. Nothing is changed, access times included; symbolic links are not followed, other mounts not entered.
pub fn warm(path: &Path) -> Result<Warmed, LabError> {
    let mut warmed = Warmed { directories: 1, others: 0 };
    walk_what_is_allowed(path, &mut |entry| {
        match entry.file_type() {
            FileType::Directory => warmed.directories += 1,
            _ => warmed.others += 1,
        }
        Ok(())
    })?;
    Ok(warmed)
}
