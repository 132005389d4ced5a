//! Rename aside first, delete afterwards: the name is free at once, and a crash leaves nothing half-deleted under it.
//!
//! Operands move into `.inodyne-trash-…/trash/` beside them, which stays on the same file system and in a place that the
//! user may write to. Its maker holds a lock on it, which the kernel releases however the maker ends. So a later
//! run can tell what was left behind from what is still being deleted, and deletes it too.
//!
//! Whoever may write to that place can give any directory such a name, but not put a `trash` into a private directory of
//! somebody else's. So only a private directory of the user's with a `trash` in it is taken for what was left; `trash`
//! itself is there until all else is gone. And since they can also give that name to another directory at any moment, only the one that
//! was looked at, or made, is deleted.
//!
//! A mount below an operand would be renamed with it: out of its user's sight, to where everything is deleted. So such an operand is
//! deleted where it is, and nothing that is mounted in what was moved aside is emptied, whatever the options say.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{CStr, CString, OsStr, OsString},
    os::{
        fd::OwnedFd,
        unix::ffi::{OsStrExt, OsStringExt},
    },
    time::SystemTime,
};

use rustix::{
    fs::{
        AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, Stat, flock, fstat, mkdirat, openat, renameat, statat,
        unlinkat,
    },
    io::Errno,
    process::geteuid,
};

use super::{
    Control, Observer, RemoveOptions, RemoveReport,
    mounts::MountPoints,
    node::split_operand,
    open::{self, Crossing, Identity},
    remove, remove_known,
};
use crate::descriptors::descriptor_budget;

const PREFIX: &str = ".inodyne-trash-";

/// Where operands go, in the directory with that prefix.
const INNER: &CStr = c"trash";

/// Like [`remove`], but every operand that can be renamed loses its name before anything is deleted. Also deletes what
/// earlier runs left beside the operands.
pub fn remove_aside(
    operands: &[OsString],
    options: &RemoveOptions,
    control: &Control,
    observer: &dyn Observer,
) -> RemoveReport {
    // Each place keeps a lock open while its trees are deleted.
    let most_places = descriptor_budget() / 4;
    let mounts = MountPoints::now();
    let (mut moved, mut trees) = (BTreeMap::new(), Vec::new());
    let mut locked = Vec::new();
    let mut place: Option<Aside> = None;
    for operand in operands {
        let (prefix, name, _) = split_operand(operand.as_bytes());
        if place.as_ref().is_none_or(|place| place.prefix != prefix) {
            locked.extend(place.take().and_then(Aside::locked));
            place = if locked.len() < most_places { Aside::open(prefix).ok() } else { None };
            moved.extend(place.iter().flat_map(Aside::abandoned));
        }
        let take = |place: &mut Aside| place.take(name, mounts.as_ref(), options.one_device).is_err();
        if control.is_stopped() || place.as_mut().is_none_or(take) {
            // What cannot be renamed, such as a mount point, is deleted where it is; what nobody wants deleted any more keeps its name.
            trees.push(operand.clone());
        }
    }
    locked.extend(place.and_then(Aside::locked));
    moved.extend(locked.iter().map(|(path, identity, _)| (path.clone(), *identity)));
    remove_moved(&moved, options, control, observer).and(remove(&trees, options, control, observer))
}

/// Removes what was moved aside.
fn remove_moved(
    trees: &BTreeMap<OsString, Identity>,
    options: &RemoveOptions,
    control: &Control,
    observer: &dyn Observer,
) -> RemoveReport {
    let operands: Vec<_> = trees.keys().cloned().collect();
    remove_known(&operands, trees, &RemoveOptions { cross_mounts: false, ..options.clone() }, control, observer)
}

/// Removes what earlier runs of [`remove_aside`] left beside these operands, which need not be there any more.
pub fn remove_left_behind(
    operands: &[OsString],
    options: &RemoveOptions,
    control: &Control,
    observer: &dyn Observer,
) -> RemoveReport {
    let places: BTreeSet<_> = operands.iter().map(|operand| split_operand(operand.as_bytes()).0).collect();
    let open = places.into_iter().filter_map(|prefix| Aside::open(prefix).ok());
    let trees = open.flat_map(|place| place.abandoned()).collect();
    remove_moved(&trees, options, control, observer)
}

/// The place beside some operands.
struct Aside {
    prefix: Vec<u8>,
    parent: OwnedFd,
    made: Option<Made>,
}

/// A directory that was made for operands.
struct Made {
    name: CString,
    identity: Identity,
    inner: OwnedFd,
    lock: OwnedFd,
}

impl Aside {
    fn open(prefix: &[u8]) -> Result<Self, Errno> {
        let path = if prefix.is_empty() { OsStr::new(".") } else { OsStr::from_bytes(prefix) };
        let parent = openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { prefix: prefix.to_vec(), parent, made: None })
    }

    /// Moves `name` aside. On one device only if it is on that of its parent, as what is below an operand is to be.
    fn take(&mut self, name: &[u8], mounts: Option<&MountPoints>, one_device: bool) -> Result<(), Errno> {
        if mounts.is_none_or(|mounts| mounts.any_at(&self.parent, name)) {
            return Err(Errno::BUSY);
        }
        let name = CString::new(name).map_err(|_| Errno::INVAL)?;
        let device = |stat: Stat| stat.st_dev;
        // A subvolume of btrfs can be renamed, and has a device number of its own.
        if one_device
            && statat(&self.parent, &name, AtFlags::SYMLINK_NOFOLLOW).map(device) != fstat(&self.parent).map(device)
        {
            return Err(Errno::XDEV);
        }
        let made = match &self.made {
            Some(made) => made,
            None => self.made.insert(self.make()?),
        };
        renameat(&self.parent, &name, &made.inner, &name)
    }

    /// Makes and locks a directory. While it is not yet locked, others may find and remove it.
    fn make(&self) -> Result<Made, Errno> {
        const AGAIN: usize = 3;
        (0..AGAIN).find_map(|_| self.try_to_make().ok()).map_or_else(|| self.try_to_make(), Ok)
    }

    fn try_to_make(&self) -> Result<Made, Errno> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let name = format!("{PREFIX}{}-{:x}", std::process::id(), now.as_nanos());
        let name = CString::new(name).map_err(|_| Errno::INVAL)?;
        mkdirat(&self.parent, &name, Mode::RWXU)?;
        let filled = open::directory(&self.parent, &name, Crossing::Refused).and_then(|directory| {
            flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
            mkdirat(&directory, INNER, Mode::RWXU)?;
            let inner = open::directory(&directory, INNER, Crossing::Refused)?;
            Ok((Identity::of(&directory)?, inner, directory))
        });
        match filled {
            Ok((identity, inner, lock)) => Ok(Made { name, identity, inner, lock }),
            Err(errno) => {
                self.remove_empty(&name);
                Err(errno)
            }
        }
    }

    /// Removes a trash directory if nothing is in it.
    fn remove_empty(&self, name: &CStr) {
        // What cannot be removed now is tried again by a later run.
        let _ = unlinkat(&self.parent, name, AtFlags::REMOVEDIR);
    }

    /// What was made, if anything, and the lock on it.
    fn locked(self) -> Option<(OsString, Identity, OwnedFd)> {
        let path = self.made.as_ref().map(|made| self.path_of(&made.name))?;
        self.made.map(|made| (path, made.identity, made.lock))
    }

    fn path_of(&self, name: &CStr) -> OsString {
        OsString::from_vec([&self.prefix, name.to_bytes()].concat())
    }

    /// Places like this one whose maker is gone.
    fn abandoned(&self) -> Vec<(OsString, Identity)> {
        let Ok(entries) = Dir::read_from(&self.parent) else { return Vec::new() };
        let names = entries.flatten().map(|entry| entry.file_name().to_owned());
        let ours = names.filter(|name| name.to_bytes().starts_with(PREFIX.as_bytes()));
        let identified = |name: CString| Some((self.path_of(&name), self.if_abandoned(&name).ok()??));
        ours.filter_map(identified).collect()
    }

    /// Which directory it is, if its maker is gone.
    fn if_abandoned(&self, name: &CStr) -> Result<Option<Identity>, Errno> {
        let directory = open::directory(&self.parent, name, Crossing::Refused)?;
        let stat = fstat(&directory)?;
        if stat.st_uid != geteuid().as_raw() || stat.st_mode & 0o777 != 0o700 {
            return Ok(None);
        }
        // The lock ends with this descriptor. Two runs that find the same place both delete it, which does no harm.
        flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
        let has_trash = open::directory(&directory, INNER, Crossing::Refused).is_ok();
        if !has_trash {
            self.remove_empty(name);
            return Ok(None);
        }
        Identity::of(&directory).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, DirBuilder},
        os::unix::fs::{DirBuilderExt, symlink},
        path::Path,
    };

    use super::*;
    use crate::Failure;

    struct Nobody;

    impl Observer for Nobody {
        fn failed(&self, _: &Failure<'_>) {}
    }

    fn made(path: &Path) {
        DirBuilder::new().recursive(true).mode(0o700).create(path.join("trash")).expect("made");
        fs::write(path.join("trash/file"), "").expect("written");
    }

    /// Whoever owns the place can do that between the look and the delete.
    #[test]
    fn what_takes_the_name_of_what_was_left_stays() {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| scratch.path().join(name);
        let left = path(".inodyne-trash-1-a");
        made(&left);
        let place = Aside::open(path("").as_os_str().as_bytes()).expect("opened");
        let remove = |trees: &BTreeMap<_, _>| remove_moved(trees, &RemoveOptions::default(), &Control::new(), &Nobody);
        let trees = place.abandoned().into_iter().collect();
        fs::rename(&left, path("elsewhere")).expect("renamed");
        fs::create_dir(&left).expect("made");
        assert_eq!(remove(&trees).failures, 1, "even an empty one");
        fs::remove_dir(&left).expect("still there");
        symlink("elsewhere", &left).expect("linked");
        assert_eq!(remove(&trees).failures, 1, "nor a link");
        fs::remove_file(&left).expect("still there");
        made(&left);
        assert_eq!(remove(&trees).failures, 1);
        assert!(left.join("trash/file").exists() && path("elsewhere/trash/file").exists());
        fs::remove_dir_all(&left).expect("removed");
        fs::rename(path("elsewhere"), &left).expect("renamed");
        assert_eq!(remove(&trees).failures, 0);
        assert_eq!(fs::read_dir(scratch.path()).expect("there").count(), 0);
    }
}
