//! Files that are either complete or not there at all, even if their writer is killed.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access as Permission, AtFlags, CWD, Mode, OFlags, PROC_SUPER_MAGIC};
use rustix::io::Errno;

/// Who may read a new file. It belongs to the user who called sudo, otherwise to the caller; if it replaces a file of the same
/// owner, that file's permissions are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The user's umask decides who may read it: reports.
    ByUmask,
    /// Only its owner.
    Private,
}

/// Permission bits of a private file.
const PRIVATE: u32 = 0o600;
/// The most links followed one after another, as many as the kernel follows (path_resolution(7)).
const MOST_LINKS: usize = 40;
/// Where the kernel has a link for each of a process's file descriptors.
const DESCRIPTORS: &str = "/proc/self/fd";

/// Writes a file with `write`, replacing any existing one of that name.
///
/// If the file system supports it (`O_TMPFILE`), the file has no name while it is being written, so that nothing of it remains if the
/// writer is killed. Then it gets the requested name; if that is taken, it briefly has another name next to it first. A pipe or
/// a device of that name is written to and stays what it is, and so is a file that is already open (`/dev/stdout`). A link stays too:
/// its target is written.
///
/// # Errors
/// The directory cannot be written, or is full. Then nothing is left behind, and an existing file is unchanged.
pub fn write_whole(
    path: &Path,
    access: Access,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let goal = behind_links(path)?;
    let before = goal.found();
    if let Some(found) = before.as_ref().filter(|found| goal.is_kept(found)) {
        goal.check_kept(found)?;
        let kept = goal.open_kept()?;
        // What was opened may be another one than what was looked at.
        goal.check_kept(&kept.metadata()?)?;
        return fill(kept, write).map(|_| ());
    }
    let path = &goal.path;
    let beside = name_beside(path);
    // Whether what has that name is ours.
    let (file, mut named) = create(path, &beside, access)?;
    let written = give(&file, before.as_ref()).and_then(|()| fill(file, write)).and_then(|file| {
        if !named {
            match link(&file, path) {
                Err(Errno::EXIST) => link(&file, &beside)?,
                linked => return Ok(linked?),
            }
            named = true;
        }
        std::fs::rename(&beside, path)
    });
    if written.is_err() && named {
        // It is useless. If it does not even exist, that is not a second error.
        let _ = std::fs::remove_file(&beside);
    }
    written
}

/// Checks whether a file could be written there, as far as that can be told without writing it: nothing is changed.
///
/// # Errors
/// It could not be written.
pub fn check_writable(path: &Path) -> io::Result<()> {
    let goal = behind_links(path)?;
    let path = &goal.path;
    if let Some(found) = goal.found().filter(|found| goal.is_kept(found)) {
        // Opening a pipe would block until it has a reader.
        goal.check_kept(&found)?;
        return match found.is_dir() {
            true => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            false => Ok(rustix::fs::access(path, Permission::WRITE_OK)?),
        };
    }
    let beside = name_beside(path);
    let (_, named) = create(path, &beside, Access::Private)?;
    if named { std::fs::remove_file(beside) } else { Ok(()) }
}

/// Whether what is written there takes the place of what is there, so that it can be written again and again: in a pipe, or in a file that
/// is already open, one would come after the other.
pub fn is_replaced(path: &Path) -> bool {
    behind_links(path).is_ok_and(|goal| goal.found().is_none_or(|found| !goal.is_kept(&found)))
}

/// Where a path leads.
struct Goal {
    /// Its last component was not a link, except one of the kernel's.
    path: PathBuf,
    /// Whether it is the kernel's link to a file that a process has open. Any other link has been put there since, and is not followed.
    is_open: bool,
}

/// Follows the links at a path one by one.
fn behind_links(path: &Path) -> io::Result<Goal> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let opened = rustix::fs::openat(CWD, &path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
        // Nothing is there yet, or it is an error that will be reported on writing.
        let Ok(link) = opened.map(File::from) else { return Ok(Goal { path, is_open: false }) };
        let is_link = link.metadata()?.is_symlink();
        let is_open = is_link && is_in_proc(&link)?;
        if is_open || !is_link {
            return Ok(Goal { path, is_open });
        }
        let directory = directory_of(&path);
        if !may_follow(&link.metadata()?, &std::fs::metadata(directory)?) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let to = rustix::fs::readlinkat(&link, c"", Vec::new())?;
        path = directory.join(OsString::from_vec(to.into_bytes()));
    }
    Err(Errno::LOOP.into())
}

/// Whether it is the kernel's, where nobody can make anything.
fn is_in_proc(opened: impl AsFd) -> io::Result<bool> {
    Ok(rustix::fs::fstatfs(opened)?.f_type == PROC_SUPER_MAGIC)
}

/// Where anyone may create links, other users' links are not followed, whatever fs.protected_symlinks is set to: they could lead root anywhere.
fn may_follow(link: &Metadata, directory: &Metadata) -> bool {
    const FOR_EVERYBODY: u32 = 0o1002;
    let is_for_everybody = directory.mode() & FOR_EVERYBODY == FOR_EVERYBODY;
    !is_for_everybody || [rustix::process::geteuid().as_raw(), directory.uid()].contains(&link.uid())
}

impl Goal {
    /// What is there.
    fn found(&self) -> Option<Metadata> {
        if self.is_open { self.path.metadata().ok() } else { self.path.symlink_metadata().ok() }
    }

    /// Whether it is written to in place: it is not a regular file, or it is one that a process has open.
    fn is_kept(&self, found: &Metadata) -> bool {
        self.is_open || !found.is_file()
    }

    /// Refuses another user's pipe where anyone may create files: whoever made it would read what is written. And what is not written in
    /// place, but was put where something else has been.
    fn check_kept(&self, found: &Metadata) -> io::Result<()> {
        if self.is_open {
            return Ok(());
        }
        let is_replaced = found.is_file() || found.is_symlink();
        let is_of_caller = owner().is_some_and(|(uid, _)| uid == found.uid());
        if !is_replaced && (is_of_caller || may_follow(found, &std::fs::metadata(directory_of(&self.path))?)) {
            return Ok(());
        }
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn open_kept(&self) -> io::Result<File> {
        if !self.is_open {
            let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            return Ok(rustix::fs::openat(CWD, &self.path, flags, Mode::empty())?.into());
        }
        let directory = directory_of(&self.path);
        let descriptors = std::fs::canonicalize(DESCRIPTORS).ok();
        let is_own = descriptors.is_some() && directory.canonicalize().ok() == descriptors;
        let name = self.path.file_name().unwrap_or_default();
        // These keep their own file offset and append mode.
        match name.to_str().filter(|_| is_own) {
            Some("1") => return Ok(io::stdout().as_fd().try_clone_to_owned()?.into()),
            Some("2") => return Ok(io::stderr().as_fd().try_clone_to_owned()?.into()),
            _ => {}
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(CWD, directory, flags, Mode::empty())?;
        // The way there may lead elsewhere by now.
        if !is_in_proc(&directory)? {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        // What a shell has already written through the descriptor is kept.
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&directory, name, flags, Mode::empty())?.into())
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file to fill: unnamed, or else one next to the path.
fn create(path: &Path, beside: &Path, access: Access) -> io::Result<(File, bool)> {
    let mode = match access {
        Access::ByUmask => 0o666,
        Access::Private => PRIVATE,
    };
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::openat(CWD, directory_of(path), flags, Mode::from_raw_mode(mode)) {
        Ok(file) => Ok((File::from(file), false)),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) => {
            let mut options = OpenOptions::new();
            Ok((options.write(true).create_new(true).mode(mode).open(beside)?, true))
        }
        Err(errno) => Err(errno.into()),
    }
}

/// Gives a new file to its owner, with the permissions of the file that it replaces if that has the same owner.
fn give(file: &File, before: Option<&Metadata>) -> io::Result<()> {
    let owner = owner();
    if let Some((uid, gid)) = owner {
        std::os::unix::fs::fchown(file, Some(uid), Some(gid))?;
    }
    let uid = owner.map_or_else(|| rustix::process::geteuid().as_raw(), |(uid, _)| uid);
    let kept = before.filter(|before| before.uid() == uid).map(|before| before.mode() & 0o777);
    kept.map_or(Ok(()), |mode| file.set_permissions(Permissions::from_mode(mode)))
}

/// Makes a directory and those above it that are not there yet. New ones belong to the user who called sudo where the one that is there
/// already does, otherwise to the caller.
///
/// # Errors
/// One of them cannot be made, or is something else.
pub fn create_directories(path: &Path) -> io::Result<()> {
    create_directories_of(owner(), path)
}

fn create_directories_of(owner: Option<(u32, u32)>, path: &Path) -> io::Result<()> {
    let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.is_dir();
    let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
    // Root's own directories stay root's, whoever called sudo.
    let there = path.ancestors().nth(missing.len()).filter(|there| !there.as_os_str().is_empty());
    let of_there = there.unwrap_or(Path::new(".")).metadata()?.uid();
    let owner = owner.filter(|(uid, _)| *uid == of_there);
    for directory in missing.into_iter().rev() {
        match std::fs::create_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => continue,
            made => made?,
        }
        if let Some((uid, gid)) = owner {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = rustix::fs::openat(CWD, directory, flags, Mode::empty())?;
            std::os::unix::fs::fchown(opened, Some(uid), Some(gid))?;
        }
    }
    Ok(())
}

/// The user who called sudo: files that root writes for that user must not belong to root.
fn owner() -> Option<(u32, u32)> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    rustix::process::geteuid().is_root().then(|| Some((number("SUDO_UID")?, number("SUDO_GID")?))).flatten()
}

fn fill(file: File, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<File> {
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    out.flush()?;
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

/// Gives an open unnamed file a name; see open(2), "O_TMPFILE".
fn link(file: &File, path: &Path) -> Result<(), Errno> {
    let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, descriptor, CWD, path, AtFlags::SYMLINK_FOLLOW)
}

/// A name that is not taken: a writer of the same process id, as the first process of every container has, may have left its own when it
/// was killed, or still be writing in another container.
fn name_beside(path: &Path) -> PathBuf {
    let name = |more: u32| {
        let mut name = OsString::from(path);
        let more = if more == 0 { String::new() } else { format!("-{more}") };
        name.push(format!(".{}{more}.partial", std::process::id()));
        PathBuf::from(name)
    };
    (0..).map(name).find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| name(0))
}

#[cfg(test)]
mod tests {
    use std::io::Seek;

    use super::*;

    fn names(directory: &Path) -> Vec<OsString> {
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn a_device_stays_one() {
        write_whole(Path::new("/dev/null"), Access::Private, |out| out.write_all(b"gone")).unwrap();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
        assert_eq!(
            names(Path::new("/dev")).iter().filter(|name| name.to_string_lossy().ends_with(".partial")).count(),
            0
        );
    }

    #[test]
    fn a_link_stays_and_what_it_leads_to_is_written() {
        let scratch = tempfile::tempdir().unwrap();
        let path = |name: &str| scratch.path().join(name);
        std::fs::create_dir(path("below")).unwrap();
        std::os::unix::fs::symlink("below/second", path("first")).unwrap();
        std::os::unix::fs::symlink("../file", path("below/second")).unwrap();
        for text in ["new", "replaced"] {
            check_writable(&path("first")).unwrap();
            write_whole(&path("first"), Access::ByUmask, |out| out.write_all(text.as_bytes())).unwrap();
            assert_eq!(std::fs::read_to_string(path("file")).unwrap(), text);
            assert!(path("first").is_symlink() && path("below/second").is_symlink() && !path("file").is_symlink());
        }
        std::os::unix::fs::symlink("itself", path("itself")).unwrap();
        assert!(write_whole(&path("itself"), Access::ByUmask, |_| Ok(())).is_err());
    }

    #[test]
    fn what_is_open_is_written_to() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"before ").unwrap();
        let path = PathBuf::from(format!("{DESCRIPTORS}/{}", file.as_raw_fd()));
        check_writable(&path).unwrap();
        write_whole(&path, Access::Private, |out| out.write_all(b"after")).unwrap();
        file.rewind().unwrap();
        assert_eq!(io::read_to_string(file).unwrap(), "before after");
    }

    #[test]
    fn what_keeps_all_that_is_written_is_not_replaced() {
        let scratch = tempfile::tempdir().unwrap();
        let [path, link, pipe] = ["file", "link", "pipe"].map(|name| scratch.path().join(name));
        std::os::unix::fs::symlink("file", &link).unwrap();
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(is_replaced(&path) && is_replaced(&link), "they are new");
        let file = File::create(&path).unwrap();
        assert!(is_replaced(&path) && is_replaced(&link));
        let open = PathBuf::from(format!("{DESCRIPTORS}/{}", file.as_raw_fd()));
        assert!([&pipe, &open, Path::new("/dev/null")].iter().all(|kept| !is_replaced(kept)));
    }

    #[test]
    fn links_of_others_are_not_followed_where_everybody_may_make_them() {
        let scratch = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("file", scratch.path().join("link")).unwrap();
        let link = scratch.path().join("link").symlink_metadata().unwrap();
        let directory = || scratch.path().metadata().unwrap();
        std::fs::set_permissions(scratch.path(), Permissions::from_mode(0o1777)).unwrap();
        assert!(may_follow(&link, &directory()));
        // Only root can make another user's link.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::lchown(scratch.path().join("link"), Some(65534), None).unwrap();
            let refused = write_whole(&scratch.path().join("link"), Access::ByUmask, |_| Ok(())).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
            std::fs::set_permissions(scratch.path(), Permissions::from_mode(0o755)).unwrap();
            write_whole(&scratch.path().join("link"), Access::ByUmask, |_| Ok(())).unwrap();
        }
    }

    #[test]
    fn pipes_of_others_are_not_written_where_everybody_may_make_them() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::set_permissions(scratch.path(), Permissions::from_mode(0o1777)).unwrap();
        let pipe = scratch.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        check_writable(&pipe).unwrap();
        // Only root can make another user's pipe.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::lchown(&pipe, Some(65534), None).unwrap();
            for refused in [check_writable(&pipe), write_whole(&pipe, Access::Private, |_| Ok(()))] {
                assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
            }
            std::fs::set_permissions(scratch.path(), Permissions::from_mode(0o755)).unwrap();
            check_writable(&pipe).unwrap();
        }
    }

    /// It is put there once `behind_links` has looked.
    #[test]
    fn a_link_that_is_put_there_later_is_not_followed() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::set_permissions(scratch.path(), Permissions::from_mode(0o1777)).unwrap();
        let [file, path] = ["file", "link"].map(|name| scratch.path().join(name));
        std::fs::write(&file, "kept").unwrap();
        let goal = behind_links(&path).unwrap();
        std::os::unix::fs::symlink(&file, &path).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::lchown(&path, Some(65534), None).unwrap();
        }
        let found = goal.found().unwrap();
        assert!(found.is_symlink() && goal.is_kept(&found));
        assert_eq!(goal.check_kept(&found).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(goal.open_kept().is_err());
        // A name of the file itself, in place of a pipe.
        assert!(goal.check_kept(&file.metadata().unwrap()).is_err());
        // And where the kernel's link was, behind a directory that leads elsewhere now.
        assert!(Goal { path, is_open: true }.open_kept().is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
    }

    /// What a killed writer of the same process id left, or what another one is writing.
    #[test]
    fn a_file_beside_that_is_not_ours_stays_and_is_not_in_the_way() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("file");
        std::fs::write(&path, "before").unwrap();
        let beside = [(); 2].map(|()| {
            let beside = name_beside(&path);
            std::fs::write(&beside, "another's").unwrap();
            beside
        });
        check_writable(&path).unwrap();
        write_whole(&path, Access::ByUmask, |out| out.write_all(b"new")).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(beside.map(|beside| std::fs::read_to_string(beside).unwrap()), ["another's"; 2]);
        assert_eq!(names(scratch.path()).len(), 3);
    }

    #[test]
    fn new_directories_belong_to_the_user_who_called_sudo() {
        let scratch = tempfile::tempdir().unwrap();
        let own = rustix::process::geteuid().as_raw();
        let other = if own == 0 { 65534 } else { own };
        let group = rustix::process::getegid().as_raw();
        // Below a directory of that user, and below one of the caller.
        for (home, new) in [(other, other), (own, own)] {
            let state = scratch.path().join(home.to_string());
            create_directories(&state).unwrap();
            std::os::unix::fs::chown(&state, Some(home), None).unwrap();
            let below = state.join("inodyne/disks");
            for _ in 0..2 {
                create_directories_of(Some((other, group)), &below).unwrap();
            }
            let owners: Vec<u32> = below.ancestors().take(3).map(|path| path.metadata().unwrap().uid()).collect();
            assert_eq!(owners, [new, new, home]);
        }
        let below = scratch.path().join("kept");
        create_directories(&below).unwrap();
        std::fs::write(below.join("file"), "").unwrap();
        assert!(create_directories(&below.join("file/x")).is_err());
    }

    #[test]
    fn a_file_is_new_or_replaced_and_nothing_else_is_left() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("directory");
        std::fs::create_dir(&directory).unwrap();
        let path = directory.join("file");
        for text in ["first", "second"] {
            write_whole(&path, Access::ByUmask, |out| {
                assert!(names(&directory).iter().all(|name| name == "file"), "it has a name while it is written");
                out.write_all(text.as_bytes())
            })
            .unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        let failed = write_whole(&path, Access::ByUmask, |out| {
            out.write_all(b"half")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(names(&directory), ["file"]);
        std::fs::remove_dir_all(directory).unwrap();
        assert_eq!(write_whole(&path, Access::ByUmask, |_| Ok(())).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_private_file_is_its_owners_and_each_keeps_what_the_owner_allowed() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("file");
        let mode = || std::fs::metadata(&path).unwrap().mode() & 0o777;
        write_whole(&path, Access::Private, |_| Ok(())).unwrap();
        assert_eq!(mode(), 0o600);
        for (access, kept) in [(Access::Private, 0o640), (Access::ByUmask, 0o600), (Access::ByUmask, 0o666)] {
            std::fs::set_permissions(&path, Permissions::from_mode(kept)).unwrap();
            write_whole(&path, access, |_| Ok(())).unwrap();
            assert_eq!(mode(), kept);
        }
    }

    #[test]
    fn looking_whether_a_file_can_be_written_changes_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("file");
        check_writable(&path).unwrap();
        assert!(names(scratch.path()).is_empty());
        std::fs::write(&path, "kept").unwrap();
        check_writable(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
        assert_eq!(check_writable(&path.join("below")).unwrap_err().kind(), io::ErrorKind::NotADirectory);
        assert_eq!(check_writable(scratch.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(check_writable(&scratch.path().join("a/b")).unwrap_err().kind(), io::ErrorKind::NotFound);
        check_writable(Path::new("/dev/null")).unwrap();
    }
}
