//! Which FUSE servers a place needs, and where it is mounted. The servers themselves are in `inodyne-fuse` and `inodyne-share`.

use std::{
    fs, io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use inodyne_fuse::{Caching, DEVICE, IMPOSE_LIMITS, OnCommand, Passthrough, Rates, Server, SlowFile, mount_options};
use inodyne_share::{Ordering, Owners, PrivateShare, ServeOptions, ShareError, forward};
use rustix::{
    fs::{Mode, OFlags, fcntl_setfl, openat},
    io::fcntl_dupfd_cloexec,
};

use crate::{LabError, Limits, Size, mount, mount::Mount};

/// Shows the directory `shown` on `target`. The server runs in the mount namespace `outside`, and takes its part of the options.
pub(crate) fn show(
    shown: &Path,
    options: &str,
    target: &Path,
    outside: BorrowedFd<'_>,
) -> Result<(Mount, Server), LabError> {
    let root = mount::clone_of(shown)?;
    let connection = connect()?;
    let (caching, options) = Caching::of_options(options).map_err(|problem| not_served(io::Error::other(problem)))?;
    let options = format!("allow_other,default_permissions,{options}");
    let mount = Mount::with(&mount_options(&connection), "fuse", "inodyne", &options, target)?.served_by_us();
    let server = Passthrough::serve(&root, caching, connection, outside).map_err(not_served)?;
    Ok((mount, server))
}

/// How a share is served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sharing {
    /// Directories are read without the types of their entries.
    pub withholds_types: bool,
    /// Each request is answered this much later, once the limits are imposed.
    pub delay: Duration,
}

/// Shares the directory `shown` and mounts the share on `target`. Two processes run in the mount namespace `outside`: the guest's,
/// which ends when it is unmounted, and then the host's, which ends with the connection between the two.
pub(crate) fn share(
    shown: &Path,
    sharing: Sharing,
    options: &str,
    target: &Path,
    outside: BorrowedFd<'_>,
) -> Result<(Mount, Vec<Server>), LabError> {
    let root = mount::clone_of(shown)?;
    let connection = connect()?;
    let options = format!("allow_other,default_permissions,{options}");
    let mount = Mount::with(&mount_options(&connection), "fuse", "inodyne", &options, target)?.served_by_us();
    let (one, other) = UnixStream::pair().map_err(not_served)?;
    let (host, guest) = (OwnedFd::from(one), OwnedFd::from(other));
    let served = Server::run(c"inodyne-host", outside, &[root.as_fd(), guest.as_fd()], |ready| {
        let share = PrivateShare::new(shown, fcntl_dupfd_cloexec(&root, 0)?, served_so(sharing)).map_err(failed)?;
        let share = Arc::new(share);
        share.delay(false);
        let delayed = share.clone();
        let on_command: OnCommand = Arc::new(move |command| delayed.delay(command == Some(IMPOSE_LIMITS)));
        ready.tell(on_command)?;
        share.serve(fcntl_dupfd_cloexec(&guest, 0)?).map_err(failed)
    });
    let served = served.map_err(not_served)?;
    drop((root, guest));
    let forwarded = Server::run(c"inodyne-guest", outside, &[connection.as_fd(), host.as_fd()], |ready| {
        let (connection, host) = (fcntl_dupfd_cloexec(&connection, 0)?, fcntl_dupfd_cloexec(&host, 0)?);
        let takes_no_commands: OnCommand = Arc::new(|_| ());
        forward(connection, host, (0, 0), || ready.tell(takes_no_commands)).map_err(failed)
    });
    Ok((mount, vec![forwarded.map_err(not_served)?, served]))
}

fn served_so(sharing: Sharing) -> ServeOptions {
    ServeOptions {
        owner: (0, 0),
        xattrs_by_virtiofs: false,
        most_nodes: usize::MAX,
        read_only: false,
        withhold_types: sharing.withholds_types,
        owners: Owners::Keep,
        ordering: Ordering::Strict,
        watch: true,
        announce: true,
        delay: sharing.delay,
    }
}

fn failed(error: ShareError) -> io::Error {
    io::Error::other(error)
}

/// An image as a file that answers late, the server that serves it, and whether it bypasses the page cache.
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

/// Where the image is, or was before it lost its name: what `losetup` shows for other devices too.
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
