//! Mounting, with the kernel's own words when it refuses; unmounting, whatever happens.
//!
//! The calls are those of the new mount API (Linux 5.2): unlike mount(2) it names the option that it does not know.
//! What a file system says only in the kernel's log (most of ext4's complaints) is fetched from there.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::{
    fs::CWD,
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, fsconfig_create,
        fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree, unmount,
    },
};

use crate::{Kind, LabError, kernel_log::KernelLog};

/// How often a busy file system is asked to unmount, 10 ms apart, before that is an error.
const UNMOUNT_ATTEMPTS: u32 = 50;

/// Something mounted, until dropped.
#[derive(Debug)]
pub(crate) struct Mount {
    target: PathBuf,
    is_mounted: bool,
    /// Whether its superblock is nobody else's and a server of ours answers for it.
    is_served_by_us: bool,
}

/// Options that belong to the mount and not to the file system; those that are the default anyway do nothing.
const ATTRIBUTES: [(&str, MountAttrFlags); 17] = [
    ("ro", MountAttrFlags::MOUNT_ATTR_RDONLY),
    ("nosuid", MountAttrFlags::MOUNT_ATTR_NOSUID),
    ("nodev", MountAttrFlags::MOUNT_ATTR_NODEV),
    ("noexec", MountAttrFlags::MOUNT_ATTR_NOEXEC),
    ("noatime", MountAttrFlags::MOUNT_ATTR_NOATIME),
    ("strictatime", MountAttrFlags::MOUNT_ATTR_STRICTATIME),
    ("nodiratime", MountAttrFlags::MOUNT_ATTR_NODIRATIME),
    ("relatime", MountAttrFlags::empty()),
    ("atime", MountAttrFlags::empty()),
    ("diratime", MountAttrFlags::empty()),
    ("nostrictatime", MountAttrFlags::empty()),
    ("suid", MountAttrFlags::empty()),
    ("dev", MountAttrFlags::empty()),
    ("exec", MountAttrFlags::empty()),
    ("defaults", MountAttrFlags::empty()),
    ("auto", MountAttrFlags::empty()),
    ("noauto", MountAttrFlags::empty()),
];

/// How access times are kept: of these the kernel takes only one at a time, which is the last one.
const ATIMES: [&str; 4] = ["noatime", "strictatime", "relatime", "atime"];

/// These attributes and that of one more option.
fn with_option(before: MountAttrFlags, option: &str, attribute: MountAttrFlags) -> MountAttrFlags {
    let others = if ATIMES.contains(&option) { MountAttrFlags::MOUNT_ATTR__ATIME } else { MountAttrFlags::empty() };
    before.difference(others).union(attribute)
}

impl Mount {
    /// Mounts `source` as `fs` on `target`, with options as `mount -o` takes them.
    pub fn new(fs: &str, source: &str, options: &str, target: &Path) -> Result<Self, LabError> {
        Self::with(&[], fs, source, options, target)
    }

    /// The same, with options of ours before them, whose values may hold commas.
    pub fn with(
        ours: &[(&str, String)],
        fs: &str,
        source: &str,
        options: &str,
        target: &Path,
    ) -> Result<Self, LabError> {
        attach(&detached(ours, fs, source, options)?, target)
    }

    /// Shows what is at `source` on `target` too, without what is mounted below it.
    pub fn bind(source: &Path, options: &str, target: &Path) -> Result<Self, LabError> {
        let refused = |said: String| LabError::MountRefused { what: format!("bind with mount={options}"), said };
        let tree = clone_of(source)?;
        let mut attributes = MountAttrFlags::empty();
        for option in split(options) {
            let known = ATTRIBUTES.iter().find(|(name, _)| *name == option);
            let (_, attribute) = known.ok_or_else(|| {
                refused(format!(
                    "'{option}' belongs to the file system; a bind mount takes ro, noatime, nosuid and their like"
                ))
            })?;
            attributes = with_option(attributes, option, *attribute);
        }
        set_attributes(&tree, attributes).map_err(|errno| refused(errno.to_string()))?;
        attach(&tree, target)
    }

    /// The same, known to be answered by a server of ours: it may be ended by force.
    pub fn served_by_us(mut self) -> Self {
        self.is_served_by_us = true;
        self
    }

    /// Unmounts; what still uses it has half a second to end.
    pub fn unmount(&mut self) -> Result<(), LabError> {
        for attempt in 0..UNMOUNT_ATTEMPTS {
            match unmount(&self.target, UnmountFlags::NOFOLLOW) {
                Ok(()) => {
                    self.is_mounted = false;
                    return Ok(());
                }
                Err(Errno::BUSY) if attempt + 1 < UNMOUNT_ATTEMPTS => thread::sleep(Duration::from_millis(10)),
                Err(Errno::BUSY) => break,
                Err(errno) => return Err(LabError::io("unmount", &self.target, errno)),
            }
        }
        Err(LabError::Busy(self.target.clone()))
    }
}

/// Puts a mount that is not attached anywhere yet on `target`.
fn attach(mounted: &OwnedFd, target: &Path) -> Result<Mount, LabError> {
    move_mount(mounted.as_fd(), "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .map_err(|errno| LabError::io("mount on", target, errno))?;
    Ok(Mount { target: target.into(), is_mounted: true, is_served_by_us: false })
}

/// A second mount of the directory `source`, without what is mounted below it: not attached anywhere yet, gone with the descriptor.
pub(crate) fn clone_of(source: &Path) -> Result<OwnedFd, LabError> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    open_tree(CWD, source, flags).map_err(|errno| LabError::io("bind", source, errno))
}

/// Mounts `source` as `fs`, not attached anywhere yet: gone with the descriptor, or when the last file opened through it is closed.
pub(crate) fn detached(ours: &[(&str, String)], fs: &str, source: &str, options: &str) -> Result<OwnedFd, LabError> {
    let log = KernelLog::from_now();
    let context = fsopen(fs, FsOpenFlags::FSOPEN_CLOEXEC).map_err(|errno| match (errno, Kind::from_name(fs)) {
        (Errno::NODEV, Some(kind)) => LabError::NoFileSystem(kind),
        _ => LabError::MountRefused { what: fs.into(), said: errno.to_string() },
    })?;
    let refused = |option: &str, errno: Errno| {
        let with = if option.is_empty() { options } else { option };
        let what = if with.is_empty() { fs.to_owned() } else { format!("{fs} with mount={with}") };
        let mut said = said(&context);
        said.extend(log.as_ref().map(|log| log.about(source)).unwrap_or_default());
        said.dedup();
        if said.is_empty() {
            said.push(errno.to_string());
        }
        LabError::MountRefused { what, said: said.join("; ") }
    };
    fsconfig_set_string(context.as_fd(), "source", source).map_err(|errno| refused("", errno))?;
    for (key, value) in ours {
        fsconfig_set_string(context.as_fd(), *key, value.as_str()).map_err(|errno| refused("", errno))?;
    }
    let mut attributes = MountAttrFlags::empty();
    for option in split(options) {
        // Read-only is both: the file system must not write, and the mount must not let anybody write.
        if let Some((_, attribute)) = ATTRIBUTES.iter().find(|(name, _)| *name == option) {
            attributes = with_option(attributes, option, *attribute);
            if option != "ro" {
                continue;
            }
        }
        match option.split_once('=') {
            Some((key, value)) => fsconfig_set_string(context.as_fd(), key, value),
            None => fsconfig_set_flag(context.as_fd(), option),
        }
        .map_err(|errno| refused(option, errno))?;
    }
    fsconfig_create(context.as_fd()).map_err(|errno| refused("", errno))?;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes).map_err(|errno| refused("", errno))
}

/// Whether the kernel has this file system, or loads it as a module now; taken to be so for whoever may not ask.
pub(crate) fn is_known(fs: &str) -> bool {
    fsopen(fs, FsOpenFlags::FSOPEN_CLOEXEC).err() != Some(Errno::NODEV)
}

/// Adds attributes to a mount, leaving the others as they are.
fn set_attributes(mount: &OwnedFd, attributes: MountAttrFlags) -> io::Result<()> {
    let times = MountAttrFlags::MOUNT_ATTR_NOATIME | MountAttrFlags::MOUNT_ATTR_STRICTATIME;
    // How access times are kept is one field of several bits, which is replaced as a whole.
    let cleared =
        if attributes.intersects(times) { MountAttrFlags::MOUNT_ATTR__ATIME } else { MountAttrFlags::empty() };
    let change = libc::mount_attr {
        attr_set: attributes.bits().into(),
        attr_clr: cleared.bits().into(),
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the path is an empty C string, the structure is live and its size given; the kernel only reads them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const change,
            size_of_val(&change),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.is_mounted && self.unmount().is_err() {
            let _ = unmount(&self.target, how_to_detach(self.is_served_by_us));
        }
    }
}

/// Out of sight at once, gone when the last user ends. By force where a server of ours answers, so that whoever waits for one that is
/// gone gets an error: a server's own thread that waits in the kernel for such a one would keep it from ending. Never otherwise: force
/// acts on the superblock, which a bind mount shares with the user's own mount (of sshfs, NFS, 9p).
fn how_to_detach(is_served_by_us: bool) -> UnmountFlags {
    let how = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
    if is_served_by_us { how | UnmountFlags::FORCE } else { how }
}

/// Single options; commas in double quotes (SELinux contexts have them) do not separate.
fn split(options: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let pieces = options.split(move |character| {
        is_quoted ^= character == '"';
        character == ',' && !is_quoted
    });
    pieces.map(str::trim).filter(|option| !option.is_empty())
}

/// What the kernel noted about this attempt: one message per read, "e " for errors before it.
fn said(context: &OwnedFd) -> Vec<String> {
    let mut messages = Vec::new();
    let mut buffer = [0; 1024];
    while let Ok(length) = rustix::io::read(context, &mut buffer) {
        let message = String::from_utf8_lossy(&buffer[..length]);
        let message = message.trim();
        messages.push(message.split_once(' ').map_or(message, |(_, text)| text).to_owned());
    }
    messages
}

/// Flushes the one file system that `path` is on.
pub(crate) fn sync(path: &Path) -> Result<(), LabError> {
    let directory = std::fs::File::open(path).map_err(|error| LabError::io("open", path, error))?;
    rustix::fs::syncfs(&directory).map_err(|errno| LabError::io("flush", path, io::Error::from(errno)))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use inodyne_fuse::{connect, mount_options};
    use rustix::{
        fs::{Mode, OFlags, openat},
        mount::{MountPropagationFlags, mount_change},
        thread::{UnshareFlags, unshare_unsafe},
    };

    use super::*;

    /// Nothing that this thread mounts is seen by others.
    pub(crate) fn enter_namespace() {
        // SAFETY: mounts and the current directory of this thread alone, which shares nothing otherwise.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.expect("root may");
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).expect("it is ours");
    }

    /// A file system that belongs to this user, and the connection, on which nobody answers.
    pub(crate) fn unanswered(target: &Path, user: u32) -> (Mount, OwnedFd) {
        let connection = connect().expect("FUSE is there");
        let options = mount_options(&connection).map(|(key, value)| match key {
            "user_id" => (key, user.to_string()),
            _ => (key, value),
        });
        (Mount::with(&options, "fuse", "test", "", target).expect("mounted"), connection)
    }

    #[test]
    fn a_bind_mount_in_use_goes_without_ending_what_it_shows() {
        enter_namespace();
        let root = tempfile::tempdir().expect("a directory");
        let [theirs, ours] = ["theirs", "ours"].map(|name| root.path().join(name));
        for directory in [&theirs, &ours] {
            fs::create_dir(directory).expect("made");
        }
        let is_alive = |connection: &OwnedFd| rustix::io::read(connection, &mut [0; 1 << 17]).is_ok();
        for (served_by_us, survives) in [(false, true), (true, false)] {
            let (shown, connection) = unanswered(&theirs, 0);
            let bound = Mount::bind(&theirs, "", &ours).expect("bound");
            let bound = if served_by_us { bound.served_by_us() } else { bound };
            let user = openat(CWD, &ours, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("in use");
            drop(bound);
            assert_eq!(is_alive(&connection), survives);
            drop((user, connection, shown));
        }
    }
}
