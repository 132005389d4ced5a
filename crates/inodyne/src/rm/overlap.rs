//! Operands inside other operands: a delete finds them gone or done with, a dry run must not count them twice.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    path::Path,
};

use rustix::{
    fs::{CWD, Mode, OFlags, Stat, fstat, openat},
    io::Errno,
};

/// Device and inode.
type Identity = (u64, u64);

/// All operands, and which of them have been counted.
pub struct Overlap {
    directories: HashSet<Identity>,
    counted: HashSet<(Identity, OsString)>,
    cross_mounts: bool,
}

impl Overlap {
    /// For the operands that are directories.
    pub fn new<'a>(directories: impl Iterator<Item = &'a Stat>, cross_mounts: bool) -> Self {
        Self { directories: directories.map(identity).collect(), counted: HashSet::new(), cross_mounts }
    }

    /// Whether another operand covers, or will cover, this one. Asking about an operand marks it as counted.
    pub fn has(&mut self, operand: &OsStr) -> bool {
        self.look_up(Path::new(operand)).unwrap_or(false)
    }

    fn look_up(&mut self, operand: &Path) -> Result<bool, Errno> {
        const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
        let parent = operand.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut directory = openat(CWD, parent, DIRECTORY, Mode::empty())?;
        let mut here = identity(&fstat(&directory)?);
        if !self.counted.insert((here, operand.file_name().unwrap_or_default().into())) {
            return Ok(true);
        }
        loop {
            if self.directories.contains(&here) {
                return Ok(true);
            }
            directory = openat(&directory, c"..", DIRECTORY, Mode::empty())?;
            let above = identity(&fstat(&directory)?);
            // What is mounted in an operand is left alone, so it is not part of it.
            if above == here || above.0 != here.0 && !self.cross_mounts {
                return Ok(false);
            }
            here = above;
        }
    }
}

fn identity(stat: &Stat) -> Identity {
    (stat.st_dev, stat.st_ino)
}
