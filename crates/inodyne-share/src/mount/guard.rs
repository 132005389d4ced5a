//! Unmounting if this process is killed.
//!
//! A process that mounts something cannot count on its own end. So a second one waits for it: it holds nothing but one end of a pipe,
//! sees that close whatever the reason, and unmounts what is still there, at that place only if it is still that mount. It keeps
//! no descriptor of the mount, which would keep users from unmounting it, nor of the device: that is closed by the kernel
//! as the first process dies, and whoever waits for an answer gets an error.

use std::{
    ffi::CString,
    io::{self, PipeReader, PipeWriter, Read},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, StatxFlags, statx},
    mount::{UnmountFlags, unmount},
    process::setsid,
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

    /// Unmounts it, if it is still there.
    pub fn unmount(&self) {
        if identity(CWD, &self.path, AtFlags::NO_AUTOMOUNT) == Ok((self.mount, self.device)) {
            let _ = unmount(&*self.path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
        }
    }
}

/// The number of a mount, and its device. Nobody is asked for what they are not sure of.
fn identity(
    directory: impl std::os::fd::AsFd,
    path: &std::ffi::CStr,
    flags: AtFlags,
) -> rustix::io::Result<(u64, (u32, u32))> {
    let flags = flags | AtFlags::from_bits_retain(libc::AT_STATX_DONT_SYNC as u32);
    let stat = statx(directory, path, flags, StatxFlags::MNT_ID)?;
    Ok((stat.stx_mnt_id, (stat.stx_dev_major, stat.stx_dev_minor)))
}

/// The second process. Dropped, it is told that all is done, and waited for.
#[derive(Debug)]
pub(super) struct Guard {
    pid: libc::pid_t,
    life: Option<PipeWriter>,
}

impl Guard {
    /// Starts it.
    pub fn start(place: &Place) -> Result<Self, ShareError> {
        let failed = |source| ShareError::System { what: "start a guard", source };
        let (reader, writer) = io::pipe().map_err(failed)?;
        // SAFETY: there is one thread, and the child uses copies of what was made before and never returns.
        match unsafe { libc::fork() } {
            -1 => Err(failed(io::Error::last_os_error())),
            0 => {
                watch(reader, place);
                // SAFETY: ends the copy, and nothing else.
                unsafe { libc::_exit(0) }
            }
            pid => Ok(Self { pid, life: Some(writer) }),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.life.take());
        // SAFETY: no memory is passed; the process is ours.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

/// The guard's whole life.
fn watch(mut reader: PipeReader, place: &Place) {
    // A signal to the terminal's group is not for it.
    let _ = setsid();
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: ignoring a signal runs no code.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let own = reader.as_raw_fd() as u32;
    // SAFETY: closes what this copy does not use: everything but its end of the pipe.
    unsafe {
        libc::close_range(own + 1, u32::MAX, 0);
        if own > 0 {
            libc::close_range(0, own - 1, 0);
        }
        libc::prctl(libc::PR_SET_NAME, c"share-guard".as_ptr());
    }
    let _ = rustix::process::chdir("/");
    let _ = reader.read(&mut [0]);
    place.unmount();
}
