//! A mount, and how it is unmounted by whoever is left to do it: at its place, and only if it is still that mount.
//!
//! The mount is identified by number. A descriptor of it would keep users from unmounting it; and that of the device is closed by the kernel
//! when the mounter dies, so that whoever waits for an answer gets an error.

use std::{
    ffi::CString,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, open, statx},
    mount::{UnmountFlags, unmount},
};

use crate::ShareError;

/// A mount, and where it is.
#[derive(Clone, Debug)]
pub(super) struct Place {
    path: CString,
    mount: u64,
    device: (u32, u32),
}

impl Place {
    /// That mount, when it is at this path.
    pub fn of(path: &Path, mount: &OwnedFd) -> Result<Self, ShareError> {
        let failed = |errno| ShareError::directory("mount on", path, errno);
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| failed(rustix::io::Errno::INVAL))?;
        let (mount, device) = identity(mount, c"", AtFlags::EMPTY_PATH).map_err(failed)?;
        Ok(Self { path, mount, device })
    }

    /// Unmounts it, if it is still there. Whoever waits for an answer gets an error at once: the kernel closes the device only after the
    /// mounter's threads have ended, and these may wait for a lock that is held until an answer comes.
    pub fn unmount(&self) {
        if identity(CWD, &self.path, AtFlags::NO_AUTOMOUNT) == Ok((self.mount, self.device)) {
            let _ = unmount(&*self.path, UnmountFlags::FORCE | UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
        }
    }

    /// Its root, if it is still there.
    pub fn open(&self) -> Option<OwnedFd> {
        let root = open(&*self.path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        (identity(&root, c"", AtFlags::EMPTY_PATH) == Ok((self.mount, self.device))).then_some(root)
    }
}

/// The number of a mount, and its device. The file system is not asked to bring anything up to date.
fn identity(
    directory: impl std::os::fd::AsFd,
    path: &std::ffi::CStr,
    flags: AtFlags,
) -> rustix::io::Result<(u64, (u32, u32))> {
    let flags = flags | AtFlags::from_bits_retain(libc::AT_STATX_DONT_SYNC as u32);
    let stat = statx(directory, path, flags, StatxFlags::MNT_ID)?;
    Ok((stat.stx_mnt_id, (stat.stx_dev_major, stat.stx_dev_minor)))
}
