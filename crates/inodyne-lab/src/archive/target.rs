//! Where an archive is unpacked to: every entry is made by one name in a directory that is open, so that a path is walked once
//! and no symbolic link is followed.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read, Seek, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, fchmod, futimens, linkat, openat, statat, symlinkat,
        unlinkat, utimensat,
    },
    io::Errno,
};

use crate::beneath::Beneath;

/// Bytes that are copied at once.
const PIECE: usize = 256 << 10;

/// A directory that is being filled.
pub(super) struct Target {
    beneath: Beneath,
    /// Modes and times, in seconds, that must wait until a directory is full.
    directories: Vec<(PathBuf, u32, u64)>,
    buffer: Vec<u8>,
}

impl Target {
    pub fn open(root: &Path) -> io::Result<Self> {
        let root = openat(CWD, root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { beneath: Beneath::new(root), directories: Vec::new(), buffer: vec![0; PIECE] })
    }

    /// Makes a directory. Its mode and time are set at the end: that way one without write permission can be filled, and keeps its time.
    pub fn directory(&mut self, path: PathBuf, mode: u32, seconds: u64) -> io::Result<()> {
        self.beneath.make_directory(&path)?;
        self.directories.push((path, mode, seconds));
        Ok(())
    }

    /// Makes a file with what `content` gives. In a sparse one, what is zero is left out as a hole. `EINTR` if the user no longer
    /// wants it.
    pub fn file(
        &mut self,
        path: &Path,
        mode: u32,
        seconds: u64,
        is_sparse: bool,
        content: &mut dyn Read,
    ) -> io::Result<()> {
        let (parent, name) = place_of(&mut self.beneath, path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(in_place(parent, name, || openat(parent, name, flags, Mode::RUSR | Mode::WUSR))?);
        loop {
            if inodyne_launch::is_asked_to_end() {
                return Err(Errno::INTR.into());
            }
            let length = read_full(content, &mut self.buffer)?;
            let piece = &self.buffer[..length];
            if is_sparse && piece.iter().all(|byte| *byte == 0) {
                file.seek_relative(length as i64)?;
            } else {
                file.write_all(piece)?;
            }
            if length < self.buffer.len() {
                break;
            }
        }
        if is_sparse {
            let end = file.stream_position()?;
            file.set_len(end)?;
        }
        fchmod(&file, Mode::from_raw_mode(mode & 0o7777))?;
        futimens(&file, &times(seconds))?;
        Ok(())
    }

    /// Makes a symbolic link.
    pub fn symlink(&mut self, path: &Path, to: &Path, seconds: u64) -> io::Result<()> {
        let (parent, name) = place_of(&mut self.beneath, path)?;
        in_place(parent, name, || symlinkat(to, parent, name))?;
        utimensat(parent, name, &times(seconds), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(())
    }

    /// Gives the file `to` a second name.
    pub fn link(&mut self, path: &Path, to: &Path) -> io::Result<()> {
        let (above, first) = place_of(&mut self.beneath, to)?;
        // A file that has several names and was archived twice is there a second time as a link to itself.
        if path == to {
            statat(above, first, AtFlags::SYMLINK_NOFOLLOW)?;
            return Ok(());
        }
        let above = rustix::io::fcntl_dupfd_cloexec(above, 0)?;
        let (parent, name) = place_of(&mut self.beneath, path)?;
        in_place(parent, name, || linkat(&above, first, parent, name, AtFlags::empty()))?;
        Ok(())
    }

    /// Sets what had to wait, those below before those above.
    pub fn finish_directories(mut self) -> io::Result<()> {
        self.directories.sort_by(|a, b| b.0.cmp(&a.0));
        for (path, mode, seconds) in &self.directories {
            let directory = self.beneath.directory(path)?;
            // The root's mode is the place's business.
            if !path.as_os_str().is_empty() {
                fchmod(directory, Mode::from_raw_mode(mode & 0o7777))?;
            }
            futimens(directory, &times(*seconds))?;
        }
        Ok(())
    }
}

/// The directory in which `path` is, made where it is missing, and its name there.
fn place_of<'a, 'b>(beneath: &'a mut Beneath, path: &'b Path) -> Result<(&'a OwnedFd, &'b OsStr), Errno> {
    let name = path.file_name().ok_or(Errno::ISDIR)?;
    Ok((beneath.make_directory(path.parent().unwrap_or(Path::new("")))?, name))
}

/// Makes something under a name, in place of what an earlier entry has put there.
fn in_place<T>(parent: &OwnedFd, name: &OsStr, mut make: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    match make() {
        Err(Errno::EXIST) => {
            unlinkat(parent, name, AtFlags::empty())?;
            make()
        }
        result => result,
    }
}

/// Fills the buffer, unless the content ends before that.
fn read_full(content: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match content.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

fn times(seconds: u64) -> Timestamps {
    let time = Timespec { tv_sec: i64::try_from(seconds).unwrap_or_default(), tv_nsec: 0 };
    Timestamps { last_access: time, last_modification: time }
}
