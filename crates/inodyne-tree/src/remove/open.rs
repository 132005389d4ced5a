//! Opening directories without ever being led elsewhere.
//!
//! Every open is of one name in one open directory. `openat2` with `RESOLVE_BENEATH | NO_SYMLINKS | NO_XDEV` makes the
//! kernel refuse symbolic links and mount points in the same step as the open, so there is no moment between a check
//! and its use. Kernels and sandboxes without `openat2` get `O_NOFOLLOW` and a comparison of mounts after the open,
//! before anything is touched.

use std::{
    ffi::CStr,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Statx, StatxFlags, fstat, openat, openat2, statx},
    io::Errno,
};

use crate::FileSystem;

/// Whether a mount point may be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Crossing {
    Allowed,
    Refused,
}

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Opens the directory `name` in `parent`.
///
/// Fails with `LOOP` or `NOTDIR` if it is not one, with `XDEV` if it is a mount point that must not be entered.
pub(super) fn directory(parent: impl AsFd, name: &CStr, crossing: Crossing) -> Result<OwnedFd, Errno> {
    static MISSING: AtomicBool = AtomicBool::new(false);
    let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    if crossing == Crossing::Refused {
        resolve |= ResolveFlags::NO_XDEV;
    }
    if !MISSING.load(Ordering::Relaxed) {
        match openat2(&parent, name, DIRECTORY, Mode::empty(), resolve) {
            Err(Errno::NOSYS) => MISSING.store(true, Ordering::Relaxed),
            // Some sandboxes give this answer to every call that they do not know, some file servers for one directory.
            Err(Errno::PERM) => {}
            answer => return answer,
        }
    }
    directory_without_openat2(parent, name, crossing)
}

fn directory_without_openat2(parent: impl AsFd, name: &CStr, crossing: Crossing) -> Result<OwnedFd, Errno> {
    let opened = openat(&parent, name, DIRECTORY, Mode::empty())?;
    // Not the device: that changes at a subvolume of btrfs, which is no mount.
    if crossing == Crossing::Refused && Identity::of(&opened)?.mount != Identity::of(parent)?.mount {
        return Err(Errno::XDEV);
    }
    Ok(opened)
}

/// Opens the directory above. The caller must check that it is the one meant.
pub(super) fn parent(child: impl AsFd) -> Result<OwnedFd, Errno> {
    openat(child, c"..", DIRECTORY, Mode::empty())
}

/// Opens the directory that an operand is in, as the user wrote it: links above an operand are followed.
pub(super) fn base(path: &Path) -> Result<OwnedFd, Errno> {
    openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Which directory this is, even after its inode number was reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    device: (u32, u32),
    inode: u64,
    mount: u64,
    birth: (i64, u32),
}

impl Identity {
    pub fn of(directory: impl AsFd) -> Result<Self, Errno> {
        let wanted = StatxFlags::INO | StatxFlags::BTIME | StatxFlags::MNT_ID;
        let stat: Statx = statx(&directory, c"", AtFlags::EMPTY_PATH, wanted)?;
        // statx reports the mount only since Linux 5.8.
        let mount = match stat.stx_mask & StatxFlags::MNT_ID.bits() {
            0 => mount_of(&directory).ok_or(Errno::OPNOTSUPP)?,
            _ => stat.stx_mnt_id,
        };
        Ok(Self {
            device: (stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
            mount,
            birth: (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec),
        })
    }

    /// Whether `directory` is still the same one.
    pub fn is_of(&self, directory: impl AsFd) -> Result<bool, Errno> {
        let now = Self::of(&directory)?;
        // On an overlay a directory keeps its number when it is copied up, but the copy has another birth time.
        let but_for_birth = Self { birth: self.birth, ..now } == *self;
        Ok(now == *self || but_for_birth && FileSystem::of(directory)? == FileSystem::Overlay)
    }
}

/// The number of the mount that a directory was opened through, as `/proc` reports it.
fn mount_of(directory: impl AsFd) -> Option<u64> {
    let told = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", directory.as_fd().as_raw_fd())).ok()?;
    told.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok())
}

/// Whether the device changes between a directory and one in it. That also happens without a mount, at a btrfs subvolume.
pub(super) fn changes_device(parent: impl AsFd, child: impl AsFd) -> Result<bool, Errno> {
    Ok(fstat(parent)?.st_dev != fstat(child)?.st_dev)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink, process::Command};

    use rustix::thread::{UnshareFlags, unshare_unsafe};

    type Open = fn(&OwnedFd, &CStr, Crossing) -> Result<OwnedFd, Errno>;
    const BOTH: [Open; 2] =
        [|at, name, way| directory(at, name, way), |at, name, way| directory_without_openat2(at, name, way)];

    #[test]
    fn only_directories_of_this_place_open_with_and_without_openat2() {
        let place = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(place.path().join("dir")).expect("made");
        fs::write(place.path().join("file"), "").expect("written");
        symlink("dir", place.path().join("link")).expect("linked");
        let parent = base(place.path()).expect("opened");
        let root = openat(CWD, c"/", DIRECTORY, Mode::empty()).expect("opened");
        for open in BOTH {
            assert!(open(&parent, c"dir", Crossing::Refused).is_ok());
            let not = |name| open(&parent, name, Crossing::Refused).expect_err("refused");
            assert!(matches!(not(c"link"), Errno::LOOP | Errno::NOTDIR));
            assert_eq!((not(c"file"), not(c"none")), (Errno::NOTDIR, Errno::NOENT));
            assert_eq!(open(&root, c"proc", Crossing::Refused).expect_err("a mount point"), Errno::XDEV);
            assert!(open(&root, c"proc", Crossing::Allowed).is_ok());
        }
    }

    #[test]
    fn a_subvolume_is_no_mount_with_and_without_openat2() {
        let place = tempfile::tempdir_in("/var/tmp").expect("a temporary directory");
        let (image, mounted) = (place.path().join("image"), place.path().join("mnt"));
        fs::File::create(&image).and_then(|file| file.set_len(256 << 20)).expect("an image");
        fs::create_dir(&mounted).expect("made");
        let in_namespace = || {
            // SAFETY: mounts and the current directory of this thread alone, which shares nothing otherwise.
            unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.expect("this test mounts a file system: run it as root");
            let script = "mount --make-rprivate / && mkfs.btrfs -q -f image && mount -o loop image mnt &&
                btrfs subvolume create mnt/sub && mkdir mnt/dir";
            let output = Command::new("sh").args(["-ec", script]).current_dir(place.path()).output().expect("sh runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let parent = base(&mounted).expect("opened");
            for open in BOTH {
                let sub = open(&parent, c"sub", Crossing::Refused).expect("no mount");
                assert_eq!(changes_device(&parent, &sub), Ok(true));
                assert!(open(&parent, c"dir", Crossing::Refused).is_ok());
            }
        };
        std::thread::scope(|scope| scope.spawn(in_namespace).join()).expect("no panic");
    }

    #[test]
    fn the_mount_is_the_same_by_statx_and_by_proc() {
        for path in ["/", "/proc"] {
            let opened = base(Path::new(path)).expect("opened");
            assert_eq!(mount_of(&opened), Some(Identity::of(&opened).expect("known").mount), "{path}");
        }
    }

    #[test]
    fn a_new_directory_of_the_same_name_is_another() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let parent = base(place.path()).expect("opened");
        let identity = || Identity::of(directory(&parent, c"d", Crossing::Refused).expect("opened")).expect("known");
        fs::create_dir(place.path().join("d")).expect("made");
        let first = identity();
        assert_eq!(first, identity());
        fs::remove_dir(place.path().join("d")).expect("removed");
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::create_dir(place.path().join("d")).expect("made");
        assert_ne!(first, identity());
    }
}
