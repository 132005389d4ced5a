//! Which FUSE server a place needs, and where it is mounted. The servers themselves are in `inodyne-fuse`.

use std::{
    fs, io,
    os::fd::{AsRawFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use inodyne_fuse::{DEVICE, Passthrough, Rates, Server, SlowFile, mount_options};
use rustix::fs::{Mode, OFlags, fcntl_setfl, openat};

use crate::{LabError, Limits, Size, mount, mount::Mount};

/// Shows the directory `shown` on `target`. The server runs in the mount namespace `outside`.
pub(crate) fn show(
    shown: &Path,
    options: &str,
    target: &Path,
    outside: BorrowedFd<'_>,
) -> Result<(Mount, Server), LabError> {
    let root = mount::clone_of(shown)?;
    let connection = connect()?;
    let options = format!("allow_other,default_permissions,{options}");
    let mount = Mount::with(&mount_options(&connection), "fuse", "inodyne", &options, target)?;
    let server = Passthrough::serve(&root, connection, outside).map_err(not_served)?;
    Ok((mount, server))
}

/// An image as a file that answers late, who serves it, and whether it bypasses the page cache.
pub(crate) struct SlowImage {
    pub file: OwnedFd,
    pub server: Server,
    pub is_direct: bool,
}

/// Begins to serve `image` as a file; it is not held to `limits` until it is told to be. The file system is mounted nowhere, so
/// nobody can find it: it goes with the file.
pub(crate) fn slow_image(image: OwnedFd, limits: Limits, outside: BorrowedFd<'_>) -> Result<SlowImage, LabError> {
    let connection = connect()?;
    let mounted = mount::detached(&mount_options(&connection), "fuse", "inodyne", "allow_other")?;
    let is_direct = fcntl_setfl(&image, OFlags::DIRECT).is_ok();
    let path = path_of(&image);
    let server = SlowFile::serve(image, &path, rates(limits), connection, outside).map_err(not_served)?;
    let file = openat(&mounted, &path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| LabError::io("open", path, errno))?;
    Ok(SlowImage { file, server, is_direct })
}

fn rates(limits: Limits) -> Rates {
    Rates {
        delay: limits.delay.map(|delay| delay.duration()).unwrap_or_default(),
        bytes_per_second: limits.bandwidth.map(Size::bytes),
        requests_per_second: limits.iops,
    }
}

/// Where the image is, or was before it lost its name: what `losetup` says of other devices too.
fn path_of(image: &OwnedFd) -> PathBuf {
    let path = fs::read_link(format!("/proc/self/fd/{}", image.as_raw_fd())).unwrap_or_default();
    let path = path.strip_prefix("/").unwrap_or(&path);
    if path.file_name().is_some() { path.to_owned() } else { "image".into() }
}

fn connect() -> Result<OwnedFd, LabError> {
    inodyne_fuse::connect().map_err(|error| LabError::NoFuse { problem: error.to_string() })
}

fn not_served(error: io::Error) -> LabError {
    LabError::io("serve", DEVICE, error)
}
