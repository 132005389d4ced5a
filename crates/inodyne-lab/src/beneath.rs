//! Directories below a root, opened by descriptors over real directories only: no symbolic link and no `..` leads out.

use std::{
    ffi::OsStr,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags, ResolveFlags, mkdirat, openat2},
    io::Errno,
};

/// As much of a path as is given to the kernel at once; it takes 4095 bytes (`PATH_MAX`).
const MOST_BYTES: usize = 4000;

/// The directories below a root. Remembers the last one, since neighbours in a walk or an archive mostly share it.
#[derive(Debug)]
pub(crate) struct Beneath {
    root: OwnedFd,
    /// A directory below it, with its path.
    last: Option<(PathBuf, OwnedFd)>,
}

impl Beneath {
    /// Below a directory that is open.
    pub fn new(root: OwnedFd) -> Self {
        Self { root, last: None }
    }

    /// The directory at `path`, which has plain names only.
    pub fn directory(&mut self, path: &Path) -> Result<&OwnedFd, Errno> {
        self.open(path, false)
    }

    /// The same; makes it and what is missing above it.
    pub fn make_directory(&mut self, path: &Path) -> Result<&OwnedFd, Errno> {
        self.open(path, true)
    }

    fn open(&mut self, path: &Path, makes: bool) -> Result<&OwnedFd, Errno> {
        if path.as_os_str().is_empty() {
            return Ok(&self.root);
        }
        if self.last.as_ref().is_none_or(|(last, _)| last != path) {
            let below =
                self.last.as_ref().and_then(|(last, directory)| Some((directory, path.strip_prefix(last).ok()?)));
            let (start, rest) = below.unwrap_or((&self.root, path));
            let directory = match (descend(start, rest), makes) {
                (Err(Errno::NOENT), true) => make(start, rest)?,
                (result, _) => result?,
            };
            self.last = Some((path.into(), directory));
        }
        Ok(self.last.as_ref().map_or(&self.root, |(_, directory)| directory))
    }
}

fn descend(start: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let mut opened = None;
    let mut piece = PathBuf::new();
    for name in path {
        if piece.as_os_str().len() + name.len() > MOST_BYTES {
            opened = Some(open(opened.as_ref().unwrap_or(start), &piece)?);
            piece = PathBuf::new();
        }
        piece.push(name);
    }
    open(opened.as_ref().unwrap_or(start), &piece)
}

fn make(start: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let mut opened = None;
    for name in path {
        let above = opened.as_ref().unwrap_or(start);
        match mkdirat(above, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
            Err(Errno::EXIST) | Ok(()) => {}
            Err(errno) => return Err(errno),
        }
        opened = Some(open(above, Path::new(name))?);
    }
    opened.ok_or(Errno::INVAL)
}

fn open(directory: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(directory.as_fd(), path, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)
}

/// A path's plain names, without what only says "below here": a leading slash, dots, double slashes. `None` where it has `..`.
pub(crate) fn plain(path: &Path) -> Option<PathBuf> {
    let names = path.as_os_str().as_bytes().split(|byte| *byte == b'/');
    let names = names.filter(|name| !matches!(*name, b"" | b".")).map(OsStr::from_bytes);
    names.map(|name| (name != "..").then_some(name)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn below(path: &Path) -> Beneath {
        Beneath::new(fs::File::open(path).expect("opened").into())
    }

    #[test]
    fn links_are_not_followed() {
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir(root.path().join("real")).expect("made");
        std::os::unix::fs::symlink("real", root.path().join("link")).expect("linked");
        let mut beneath = below(root.path());
        assert!(beneath.make_directory(Path::new("real/a/b")).is_ok());
        assert!(root.path().join("real/a/b").is_dir());
        assert_eq!(beneath.directory(Path::new("link")).expect_err("a link"), Errno::LOOP);
        assert_eq!(beneath.make_directory(Path::new("link/c")).expect_err("a link"), Errno::LOOP);
        assert_eq!(beneath.directory(Path::new("real/none")).expect_err("missing"), Errno::NOENT);
        assert!(!root.path().join("real/c").exists());
    }

    #[test]
    fn depth_has_no_limit() {
        let root = tempfile::tempdir().expect("a directory");
        let path: PathBuf = std::iter::repeat_n("a name that is not short", 400).collect();
        assert!(path.as_os_str().len() > 2 * MOST_BYTES);
        assert!(below(root.path()).make_directory(&path).is_ok());
        assert!(below(root.path()).directory(&path).is_ok());
    }

    #[test]
    fn only_what_leads_up_is_not_plain() {
        let of = |path: &str| plain(Path::new(path));
        assert_eq!(of("/a//b/./c/"), Some("a/b/c".into()));
        assert_eq!(of("./"), Some("".into()));
        assert_eq!(of("a/../b"), None);
    }
}
