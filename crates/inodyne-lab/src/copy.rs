//! Copying a directory into a place: files, directories, symbolic links and hard links, with modes and times.
//!
//! The source is only read, and its access times are left alone (except those of symbolic links, which cannot be read that way). The copy
//! is written beneath the place's root through descriptors that refuse symbolic links, so a source that changes in the meantime cannot lead
//! out of it. Owners, extended attributes and holes are not kept; devices, sockets and pipes are reported as left out.

use std::{
    collections::HashMap,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, Statx, Timespec, Timestamps, chmodat, fchmod, futimens, linkat, mkdirat,
        openat, readlinkat, symlinkat, utimensat,
    },
    io::{Errno, fcntl_dupfd_cloexec},
};

use crate::{
    LabError,
    beneath::Beneath,
    error::still_wanted,
    walk::{Entry, open_quietly, walk},
};

/// Bytes of a file that are copied before checking again whether the user still wants it.
const PIECE: u64 = 16 << 20;

/// Copies what is in `source` into `target`, which exists; returns what was left out.
pub(crate) fn copy(source: &Path, target: &Path) -> Result<Vec<PathBuf>, LabError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, target, flags, Mode::empty()).map_err(|errno| LabError::io("open", target, errno))?;
    let mut copy = Copy {
        beneath: Beneath::new(root),
        source,
        target,
        links: HashMap::new(),
        directories: vec![],
        left_out: Vec::new(),
    };
    // A link at the end is the user's way to name the directory; only inside it are links left alone.
    let real = source.canonicalize().map_err(|error| LabError::io("open", source, error))?;
    walk(&real, &mut |entry| copy.entry(entry))?;
    copy.finish_directories()?;
    Ok(copy.left_out)
}

struct Copy<'a> {
    beneath: Beneath,
    source: &'a Path,
    target: &'a Path,
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
        let parent = self.beneath.directory(above).map_err(writing)?;
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
                    let parent = fcntl_dupfd_cloexec(parent, 0).map_err(writing)?;
                    let above = self.beneath.directory(first.parent().unwrap_or(Path::new(""))).map_err(writing)?;
                    let name = first.file_name().unwrap_or_default();
                    return linkat(above, name, &parent, entry.name, AtFlags::empty()).map_err(writing);
                }
                let from = match open_quietly(entry.parent, entry.name, OFlags::empty()) {
                    Err(Errno::NOENT | Errno::LOOP) => return Ok(()),
                    result => File::from(result.map_err(reading)?),
                };
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let to = openat(parent, entry.name, flags, Mode::RUSR | Mode::WUSR).map_err(writing)?;
                let mut to = File::from(to);
                loop {
                    still_wanted()?;
                    let copied = std::io::copy(&mut (&from).take(PIECE), &mut to);
                    if copied.map_err(|error| LabError::io("copy to", &target, error))? == 0 {
                        break;
                    }
                }
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
    fn finish_directories(&mut self) -> Result<(), LabError> {
        for (path, mode, times) in self.directories.iter().rev() {
            let writing = |errno: Errno| LabError::io("write", self.target.join(path), errno);
            let above = self.beneath.directory(path.parent().unwrap_or(Path::new(""))).map_err(writing)?;
            let name = path.file_name().unwrap_or_default();
            chmodat(above, name, *mode, AtFlags::empty()).map_err(writing)?;
            utimensat(above, name, times, AtFlags::SYMLINK_NOFOLLOW).map_err(writing)?;
        }
        Ok(())
    }
}

fn times(stat: &Statx) -> Timestamps {
    let spec = |time: &rustix::fs::StatxTimestamp| Timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_nsec.into() };
    Timestamps { last_access: spec(&stat.stx_atime), last_modification: spec(&stat.stx_mtime) }
}
