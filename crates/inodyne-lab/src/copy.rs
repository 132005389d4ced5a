//! Copying a directory into a place: files, directories, symbolic links and hard links, with modes and times.
//!
//! The source is only read, its access times left alone (but for symbolic links, which cannot be read so). The copy is written beneath the place's root by descriptors
//! that refuse symbolic links, so a source that changes meanwhile cannot lead out of it. Owners, extended attributes
//! and holes are not kept; devices, sockets and pipes are reported as left out.

use std::{
    collections::HashMap,
    fs::File,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Statx, Timespec, Timestamps, chmodat, fchmod, futimens,
        linkat, mkdirat, openat, openat2, readlinkat, symlinkat, utimensat,
    },
    io::Errno,
};

use crate::{
    LabError,
    walk::{Entry, open_quietly, walk},
};

/// Copies what is in `source` into `target`, which exists; returns what was left out.
pub(crate) fn copy(source: &Path, target: &Path) -> Result<Vec<PathBuf>, LabError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, target, flags, Mode::empty()).map_err(|errno| LabError::io("open", target, errno))?;
    let mut copy =
        Copy { root, source, target, parent: None, links: HashMap::new(), directories: vec![], left_out: Vec::new() };
    // A link at the end is the user's way to name the directory; only inside it are links left alone.
    let real = source.canonicalize().map_err(|error| LabError::io("open", source, error))?;
    walk(&real, &mut |entry| copy.entry(entry))?;
    copy.finish_directories()?;
    Ok(copy.left_out)
}

struct Copy<'a> {
    root: OwnedFd,
    source: &'a Path,
    target: &'a Path,
    /// The directory that was written to last, with its path.
    parent: Option<(PathBuf, OwnedFd)>,
    /// Where files with several names went first, by device and inode.
    links: HashMap<(u32, u32, u64), PathBuf>,
    /// Modes and times that must wait until a directory is full.
    directories: Vec<(PathBuf, Mode, Timestamps)>,
    /// Devices, sockets and pipes.
    left_out: Vec<PathBuf>,
}

impl Copy<'_> {
    fn entry(&mut self, entry: &Entry<'_>) -> Result<(), LabError> {
        let target = self.target.join(entry.path);
        let writing = |errno: Errno| LabError::io("write", &target, errno);
        let reading = |errno: Errno| LabError::io("read", self.source.join(entry.path), errno);
        let above = entry.path.parent().unwrap_or(Path::new(""));
        if self.parent.as_ref().is_none_or(|(path, _)| path != above) {
            self.parent = Some((above.into(), beneath(&self.root, above).map_err(writing)?));
        }
        let Some((_, parent)) = &self.parent else { unreachable!("set above") };
        let times = times(entry.stat);
        match entry.file_type() {
            FileType::Directory => {
                mkdirat(parent, entry.name, Mode::RWXU).map_err(writing)?;
                self.directories.push((entry.path.into(), entry.mode(), times));
            }
            FileType::Symlink => {
                let to = readlinkat(entry.parent, entry.name, Vec::new()).map_err(reading)?;
                symlinkat(&to, parent, entry.name).map_err(writing)?;
                utimensat(parent, entry.name, &times, AtFlags::SYMLINK_NOFOLLOW).map_err(writing)?;
            }
            FileType::RegularFile => {
                let key = (entry.stat.stx_dev_major, entry.stat.stx_dev_minor, entry.stat.stx_ino);
                if let Some(first) = self.links.get(&key) {
                    let above = beneath(&self.root, first.parent().unwrap_or(Path::new(""))).map_err(writing)?;
                    let name = first.file_name().unwrap_or_default();
                    return linkat(&above, name, parent, entry.name, AtFlags::empty()).map_err(writing);
                }
                let from = match open_quietly(entry.parent, entry.name, OFlags::empty()) {
                    Err(Errno::NOENT | Errno::LOOP) => return Ok(()),
                    result => File::from(result.map_err(reading)?),
                };
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let to = openat(parent, entry.name, flags, Mode::RUSR | Mode::WUSR).map_err(writing)?;
                let mut to = File::from(to);
                std::io::copy(&mut &from, &mut to).map_err(|error| LabError::io("copy to", &target, error))?;
                fchmod(&to, entry.mode()).map_err(writing)?;
                futimens(&to, &times).map_err(writing)?;
                if entry.stat.stx_nlink > 1 {
                    self.links.insert(key, entry.path.into());
                }
            }
            _ => self.left_out.push(entry.path.into()),
        }
        Ok(())
    }

    /// Writing into a directory changes its time, and needs permissions that it may not have.
    fn finish_directories(&self) -> Result<(), LabError> {
        for (path, mode, times) in self.directories.iter().rev() {
            let writing = |errno: Errno| LabError::io("write", self.target.join(path), errno);
            let above = beneath(&self.root, path.parent().unwrap_or(Path::new(""))).map_err(writing)?;
            let name = path.file_name().unwrap_or_default();
            chmodat(&above, name, *mode, AtFlags::empty()).map_err(writing)?;
            utimensat(&above, name, times, AtFlags::SYMLINK_NOFOLLOW).map_err(writing)?;
        }
        Ok(())
    }
}

/// Opens a directory below the root, over real directories only.
fn beneath(root: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat2(root.as_fd(), path, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)
}

fn times(stat: &Statx) -> Timestamps {
    let spec = |time: &rustix::fs::StatxTimestamp| Timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_nsec.into() };
    Timestamps { last_access: spec(&stat.stx_atime), last_modification: spec(&stat.stx_mtime) }
}
