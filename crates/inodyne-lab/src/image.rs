//! Images: files without a name, so that none is left, however the process ends.
//!
//! They are sparse: a large file system costs only what is written to it.

use std::{
    os::fd::OwnedFd,
    path::Path,
    process,
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, fstatvfs, ftruncate, openat, unlinkat},
    io::Errno,
};

use crate::{LabError, Size};

/// What a place gets when nobody says how large it is to be.
const DEFAULT_SIZE: Size = Size::from_mib(8 << 10);

/// Makes an empty file without a name: of the size asked for, or of the default, never more than there is room for.
pub(crate) fn create(scratch: &Path, wanted: Option<Size>) -> Result<(OwnedFd, Size), LabError> {
    let failed = |errno| no_image(scratch, errno);
    let file = unnamed(scratch).map_err(failed)?;
    let stat = fstatvfs(&file).map_err(failed)?;
    let free = Size::from_bytes(stat.f_bavail.saturating_mul(stat.f_frsize)).whole_mib();
    let size = wanted.unwrap_or(DEFAULT_SIZE.min(free));
    if size > free || free.bytes() == 0 {
        let wanted = wanted.unwrap_or(DEFAULT_SIZE);
        return Err(LabError::ScratchFull { scratch: scratch.into(), free, wanted });
    }
    ftruncate(&file, size.bytes()).map_err(failed)?;
    Ok((file, size))
}

/// Makes an empty file without a name, to read and write.
///
/// # Errors
/// The directory cannot be written.
pub fn unnamed(directory: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match openat(CWD, directory, flags | OFlags::TMPFILE, mode) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => named_and_unlinked(directory, flags, mode),
        result => result,
    }
}

fn no_image(scratch: &Path, errno: Errno) -> LabError {
    LabError::Scratch { path: scratch.into(), source: errno.into() }
}

/// For file systems without O_TMPFILE. For an instant the file has a name: the shortest window that is possible there.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_no_name_with_or_without_the_kernels_help() {
        let scratch = tempfile::tempdir().unwrap();
        let (image, size) = create(scratch.path(), Some(Size::from_mib(1))).unwrap();
        assert_eq!((rustix::fs::fstat(&image).unwrap().st_size, size), (1 << 20, Size::from_mib(1)));
        let image = named_and_unlinked(scratch.path(), OFlags::RDWR | OFlags::CLOEXEC, Mode::RWXU).unwrap();
        assert_eq!(rustix::fs::fstat(&image).unwrap().st_nlink, 0);
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
        let error = create(scratch.path(), Some(Size::from_bytes(1 << 60))).unwrap_err();
        assert!(matches!(error, LabError::ScratchFull { .. }));
    }
}
