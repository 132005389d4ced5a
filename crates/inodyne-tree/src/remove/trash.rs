//! Rename aside first, delete after: the name is free at once, and a crash leaves nothing half-deleted under it.
//!
//! Operands move into a directory `.inodyne-trash-…` beside them, which stays on the same file system and in a place that
//! the user may write to. Its maker holds a lock on it, which the kernel releases however the maker ends. So a later
//! run can tell what was left behind from what is still being deleted, and deletes it too.

use std::{
    ffi::{CStr, CString, OsStr, OsString},
    os::{
        fd::OwnedFd,
        unix::ffi::{OsStrExt, OsStringExt},
    },
    time::SystemTime,
};

use rustix::{
    fs::{CWD, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, flock, fstat, mkdirat, openat, renameat_with},
    io::Errno,
    process::geteuid,
};

use super::{
    Control, Observer, RemoveOptions, RemoveReport,
    node::split_operand,
    open::{self, Crossing},
    remove,
};

const PREFIX: &str = ".inodyne-trash-";

/// As [`remove`], but every operand that can be renamed loses its name before anything is deleted. Also deletes what
/// earlier runs left beside the operands.
pub fn remove_aside(
    operands: &[OsString],
    options: &RemoveOptions,
    control: &Control,
    observer: &dyn Observer,
) -> RemoveReport {
    let mut trees = Vec::new();
    let mut aside: Vec<Aside> = Vec::new();
    for operand in operands {
        let (prefix, name, _) = split_operand(operand.as_bytes());
        if !aside.iter().any(|aside| aside.prefix == prefix)
            && let Ok(new) = Aside::open(prefix)
        {
            trees.extend(new.abandoned());
            aside.push(new);
        }
        let place = aside.iter_mut().find(|aside| aside.prefix == prefix);
        if place.is_none_or(|place| place.take(name).is_err()) {
            // What cannot be renamed, such as a mount point, is deleted where it is.
            trees.push(operand.clone());
        }
    }
    trees.extend(aside.iter().filter_map(Aside::path));
    remove(&trees, options, control, observer)
}

/// The place beside some operands.
struct Aside {
    prefix: Vec<u8>,
    parent: OwnedFd,
    made: Option<(CString, OwnedFd)>,
}

impl Aside {
    fn open(prefix: &[u8]) -> Result<Self, Errno> {
        let path = if prefix.is_empty() { OsStr::new(".") } else { OsStr::from_bytes(prefix) };
        let parent = openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { prefix: prefix.to_vec(), parent, made: None })
    }

    /// Moves `name` aside.
    fn take(&mut self, name: &[u8]) -> Result<(), Errno> {
        const ATTEMPTS: usize = 4;
        let name = CString::new(name).map_err(|_| Errno::INVAL)?;
        for _ in 0..ATTEMPTS {
            let (_, directory) = match &self.made {
                Some(made) => made,
                None => self.made.insert(self.make()?),
            };
            match renameat_with(&self.parent, &name, directory, &name, RenameFlags::NOREPLACE) {
                // Between its making and its locking, somebody took it for abandoned.
                Err(Errno::NOENT) if fstat(directory)?.st_nlink == 0 => self.made = None,
                answer => return answer,
            }
        }
        Err(Errno::AGAIN)
    }

    /// Makes and locks a directory.
    fn make(&self) -> Result<(CString, OwnedFd), Errno> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let name = format!("{PREFIX}{}-{:x}", std::process::id(), now.as_nanos());
        let name = CString::new(name).map_err(|_| Errno::INVAL)?;
        mkdirat(&self.parent, &name, Mode::RWXU)?;
        let directory = open::directory(&self.parent, &name, Crossing::Refused)?;
        flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
        Ok((name, directory))
    }

    fn path(&self) -> Option<OsString> {
        self.made.as_ref().map(|(name, _)| self.path_of(name))
    }

    fn path_of(&self, name: &CStr) -> OsString {
        OsString::from_vec([&self.prefix, name.to_bytes()].concat())
    }

    /// Places like this one whose maker is gone.
    fn abandoned(&self) -> Vec<OsString> {
        let Ok(entries) = Dir::read_from(&self.parent) else { return Vec::new() };
        let names = entries.flatten().map(|entry| entry.file_name().to_owned());
        let ours = names.filter(|name| name.to_bytes().starts_with(PREFIX.as_bytes()));
        ours.filter(|name| self.is_abandoned(name).unwrap_or(false)).map(|name| self.path_of(&name)).collect()
    }

    fn is_abandoned(&self, name: &CStr) -> Result<bool, Errno> {
        let directory = open::directory(&self.parent, name, Crossing::Refused)?;
        let stat = fstat(&directory)?;
        let private = stat.st_mode & 0o777 == 0o700 && FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        // The lock ends with this descriptor. Two runs that find the same place both delete it, which does no harm.
        Ok(private
            && stat.st_uid == geteuid().as_raw()
            && flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok())
    }
}
