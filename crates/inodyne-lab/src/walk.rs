//! Going through a tree without leaving it: no symbolic link is followed, no other mount entered, no time changed.
//!
//! Each entry comes before what is below it. Directories are held open only while children of theirs wait, so the
//! number of descriptors is the depth. What vanishes in the meantime is skipped: existing directories are alive. When the user wants no
//! more, the walk ends.

use std::{
    ffi::{CStr, CString, OsStr},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, Statx, StatxFlags, openat, openat2, statx},
    io::Errno,
    path::Arg,
};

use crate::{LabError, error::still_wanted};

/// Something in the tree.
pub(crate) struct Entry<'a> {
    /// The directory that holds it, open.
    pub parent: BorrowedFd<'a>,
    /// Its name there.
    pub name: &'a CStr,
    /// Its path below the root of the walk.
    pub path: &'a Path,
    /// What statx says.
    pub stat: &'a Statx,
}

impl Entry<'_> {
    pub fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.stat.stx_mode.into())
    }

    /// Permissions, including set-user-id and the like.
    pub fn mode(&self) -> Mode {
        Mode::from_raw_mode(u32::from(self.stat.stx_mode) & 0o7777)
    }
}

/// A directory still to be read.
struct Waiting {
    parent: Arc<OwnedFd>,
    name: CString,
    path: PathBuf,
}

/// What is called for each entry.
type Visit<'a> = dyn FnMut(&Entry<'_>) -> Result<(), LabError> + 'a;

/// Calls `visit` for each entry below `root`, not for `root` itself.
pub(crate) fn walk(root: &Path, visit: &mut Visit<'_>) -> Result<(), LabError> {
    walk_unless(|_| false, root, visit)
}

/// The same, except that what may not be looked at is skipped: a file server may refuse root what it allows others.
pub(crate) fn walk_what_is_allowed(root: &Path, visit: &mut Visit<'_>) -> Result<(), LabError> {
    walk_unless(|errno| matches!(errno, Errno::ACCESS | Errno::PERM), root, visit)
}

/// The same, except that what is refused with an error that `is_passed_over` accepts is skipped.
fn walk_unless(is_passed_over: fn(Errno) -> bool, root: &Path, visit: &mut Visit<'_>) -> Result<(), LabError> {
    let mut buffer = vec![MaybeUninit::uninit(); 64 * 1024];
    let directory = open_directory(CWD, root).map_err(|errno| LabError::io("open", root, errno))?;
    let mount = stat_of(&directory, c"").map_err(|errno| LabError::io("inspect", root, errno))?.stx_mnt_id;
    let mut waiting = Vec::new();
    let mut next = Some((directory, PathBuf::new()));
    while let Some((directory, path)) = next.take() {
        let directory = Arc::new(directory);
        let mut entries = RawDir::new(&directory, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Err(errno) if is_passed_over(errno) => break,
                entry => entry.map_err(|errno| LabError::io("read", root.join(&path), errno))?,
            };
            still_wanted()?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let path = path.join(OsStr::from_bytes(name.to_bytes()));
            let stat = match stat_of(&directory, name) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                // FUSE servers refuse root, too, or are gone; what they would say is of no interest here.
                Err(Errno::ACCESS | Errno::NOTCONN) if is_another_mount(&directory, name) => continue,
                Err(errno) if is_passed_over(errno) => continue,
                Err(errno) => return Err(LabError::io("inspect", root.join(path), errno)),
            };
            // A mount point belongs to the mounted file system, not to this one.
            if stat.stx_mnt_id != mount {
                continue;
            }
            let entry = Entry { parent: directory.as_fd(), name, path: &path, stat: &stat };
            visit(&entry)?;
            if entry.file_type() == FileType::Directory {
                waiting.push(Waiting { parent: directory.clone(), name: name.to_owned(), path });
            }
        }
        while let Some(Waiting { parent, name, path }) = waiting.pop() {
            match open_directory(parent.as_fd(), &name) {
                Ok(directory) => {
                    next = Some((directory, path));
                    break;
                }
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(errno) if is_passed_over(errno) => {}
                Err(errno) => return Err(LabError::io("open", root.join(path), errno)),
            }
        }
    }
    Ok(())
}

fn stat_of(directory: &OwnedFd, name: &CStr) -> Result<Statx, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
    statx(directory, name, flags, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)
}

/// Whether something is mounted there, without asking whoever serves it: the kernel looks no further than its own tables.
fn is_another_mount(directory: &OwnedFd, name: &CStr) -> bool {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat2(directory, name, flags, Mode::empty(), ResolveFlags::NO_XDEV).err() == Some(Errno::XDEV)
}

fn open_directory(parent: BorrowedFd<'_>, name: impl Arg + Copy) -> Result<OwnedFd, Errno> {
    open_quietly(parent, name, OFlags::DIRECTORY)
}

/// Opens for reading, leaving access times alone where we may ask for that.
pub(crate) fn open_quietly(parent: BorrowedFd<'_>, name: impl Arg + Copy, more: OFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | more;
    match openat(parent, name, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => openat(parent, name, flags, Mode::empty()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::mount::tests::{enter_namespace, unanswered};

    #[test]
    fn mounts_whose_server_is_gone_or_refuses_are_passed_over() {
        enter_namespace();
        let root = tempfile::tempdir().expect("a directory");
        for name in ["gone", "refusing", "own"] {
            fs::create_dir(root.path().join(name)).expect("made");
        }
        let (_gone, connection) = unanswered(&root.path().join("gone"), 0);
        drop(connection);
        let _refusing = unanswered(&root.path().join("refusing"), 65534);
        let stat = |name: &str| stat_of(&open_directory(CWD, root.path()).expect("ours"), &CString::new(name).unwrap());
        assert_eq!(stat("gone").err(), Some(Errno::NOTCONN));
        assert_eq!(stat("refusing").err(), Some(Errno::ACCESS));
        let mut seen = Vec::new();
        walk(root.path(), &mut |entry| {
            seen.push(entry.path.to_owned());
            Ok(())
        })
        .expect("it goes on");
        assert_eq!(seen, [PathBuf::from("own")]);
    }
    #[test]
    fn what_may_not_be_read_ends_only_a_walk_that_needs_it() {
        let root = tempfile::tempdir().expect("a directory");
        for (name, mode) in [("closed", 0o000), ("open", 0o755), (".", 0o755)] {
            let path = root.path().join(name);
            fs::create_dir_all(path.join("below")).expect("made");
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
        }
        // SAFETY: no memory is passed; it concerns this thread, which ends with this test.
        unsafe { libc::setfsuid(65534) };
        let mut seen = Vec::new();
        let mut see = |entry: &Entry<'_>| {
            seen.push(entry.path.to_owned());
            Ok(())
        };
        let error = walk(root.path(), &mut |_| Ok(())).expect_err("refused").to_string();
        walk_what_is_allowed(root.path(), &mut see).expect("it goes on");
        // SAFETY: the same; the directory is root's to remove.
        unsafe { libc::setfsuid(0) };
        assert!(error.starts_with("cannot open ") && error.contains("closed: Permission denied"), "{error}");
        seen.sort();
        assert_eq!(seen, ["below", "closed", "open", "open/below"].map(PathBuf::from));
    }
}
