//! Images: files without a name, so that no end of the process leaves one.
//!
//! They are sparse: a large file system costs only what is written to it.

use std::{
    os::fd::OwnedFd,
    path::Path,
    process,
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, ftruncate, openat, statvfs, unlinkat},
    io::Errno,
};

use crate::{LabError, Size};

/// What a place gets when nobody says how large.
const DEFAULT_SIZE: Size = Size::from_mib(8 << 10);

/// The size for a new image: what was asked for, or the default, never more than there is room for.
pub(crate) fn fitting_size(scratch: &Path, wanted: Option<Size>) -> Result<Size, LabError> {
    let stat = statvfs(scratch).map_err(|errno| match errno {
        Errno::NOENT => LabError::NotThere(scratch.into()),
        errno => LabError::io("inspect", scratch, errno),
    })?;
    let free = Size::from_bytes(stat.f_bavail.saturating_mul(stat.f_frsize)).whole_mib();
    match wanted {
        Some(wanted) if wanted > free => Err(LabError::ScratchFull { scratch: scratch.into(), free, wanted }),
        Some(wanted) => Ok(wanted),
        None => Ok(DEFAULT_SIZE.min(free)),
    }
}

/// Makes an empty file of `size` without a name.
pub(crate) fn create(scratch: &Path, size: Size) -> Result<OwnedFd, LabError> {
    let failed = |errno: Errno| match errno {
        Errno::NOENT => LabError::NotThere(scratch.into()),
        Errno::NOTDIR => LabError::NotADirectory(scratch.into()),
        errno => LabError::io("make an image in", scratch, errno),
    };
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = match openat(CWD, scratch, flags | OFlags::TMPFILE, mode) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => named_and_unlinked(scratch, flags, mode),
        result => result,
    }
    .map_err(failed)?;
    ftruncate(&file, size.bytes()).map_err(failed)?;
    Ok(file)
}

/// For file systems without O_TMPFILE. For an instant the file has a name: the shortest window that can be had there.
fn named_and_unlinked(scratch: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = scratch.join(format!(".inodyne-{}-{number}", process::id()));
        match openat(CWD, &path, flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW, mode) {
            Ok(file) => {
                unlinkat(CWD, &path, AtFlags::empty())?;
                return Ok(file);
            }
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
}
