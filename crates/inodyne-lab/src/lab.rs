//! Where made places are mounted, so that nobody else sees them and nothing remains.
//!
//! The first place that is made gives the process a mount namespace of its own: when its last process ends, by whatever
//! signal, the kernel unmounts everything in it. Where all places are existing directories, nothing changes: a command
//! that mounts something there mounts it for everybody, as it would without us. Mount events still come in from outside
//! (`MS_SLAVE`, not `MS_PRIVATE`): a disk that somebody unmounts in the meantime must not stay busy in here. None go out.
//!
//! The mount points themselves must not remain on disk either. So the first place mounts a small tmpfs over an
//! existing directory, in this namespace only, and all mount points are made in that. The directory must hide nothing
//! that the command could need: it is the first of [`CANDIDATES`] that is empty, is not a mount itself, is not given as a place,
//! is not above the current directory or above where images are made, and is not in the words of those who may write there, or
//! what `INODYNE_MOUNT` names. The mount points are called `place-1`, `place-2`: names of the same length, so that no place has longer
//! paths than another.
//!
//! Images are made in `INODYNE_SCRATCH`, otherwise in `/var/tmp`, which unlike `/tmp` is a disk on every distribution.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use rustix::{
    fs::{AtFlags, CWD, StatxFlags, statx},
    io::Errno,
    mount::{MountPropagationFlags, mount_change},
    thread::{CapabilitySet, UnshareFlags, capabilities, unshare_unsafe},
};

use crate::{LabError, mount::Mount};

/// Directories that exist nearly everywhere and are nearly always empty.
const CANDIDATES: [&str; 4] = ["/mnt", "/media", "/srv", "/sys/fs/pstore"];

/// The private corner in which places are made.
#[derive(Debug)]
pub struct Lab {
    scratch: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The mount namespace that the process was in before it got its own.
    outside: Option<Arc<OwnedFd>>,
    /// Mounted as long as a place needs it.
    mount_points: Weak<MountPoints>,
    /// Existing directories that are places, and must not be mounted over.
    taken: Vec<PathBuf>,
    /// What may name others that are still empty.
    words: Vec<OsString>,
}

impl Lab {
    /// A lab without places, which changes nothing yet.
    pub fn new() -> Self {
        let scratch = env::var_os("INODYNE_SCRATCH").filter(|path| !path.is_empty());
        Self { scratch: scratch.map_or("/var/tmp".into(), PathBuf::from), state: Mutex::default() }
    }

    /// The same, with images in another directory than the environment says.
    pub fn with_scratch(mut self, scratch: impl Into<PathBuf>) -> Self {
        self.scratch = scratch.into();
        self
    }

    /// The same, but mounting over no directory that these words may name: those of a command that makes files there for others, or files
    /// that are written once it has ended.
    pub fn sparing(self, words: impl IntoIterator<Item = OsString>) -> Self {
        self.state().words.extend(words);
        self
    }

    /// Where images are made.
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// Makes sure that no mount of ours hides this directory, from now on; an error where one does.
    pub(crate) fn keep_visible(&self, directory: &Path) -> Result<(), LabError> {
        let mut state = self.state();
        if state.mount_points.upgrade().is_some_and(|mounted| directory.starts_with(&mounted.directory)) {
            return Err(LabError::Hidden(directory.into()));
        }
        state.taken.push(directory.into());
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A directory to mount on.
    pub(crate) fn mount_point(&self) -> Result<MountPoint, LabError> {
        let mut state = self.state();
        let outside = match &state.outside {
            Some(outside) => outside.clone(),
            None => state.outside.insert(enter_private_namespace()?).clone(),
        };
        let all = match state.mount_points.upgrade() {
            Some(all) => all,
            None => {
                let all = Arc::new(MountPoints::open(&state, &self.scratch, outside)?);
                state.mount_points = Arc::downgrade(&all);
                all
            }
        };
        MountPoint::new(all)
    }
}

impl Default for Lab {
    fn default() -> Self {
        Self::new()
    }
}

/// Leaves the mount namespace of all others, which it returns, for one of its own.
fn enter_private_namespace() -> Result<Arc<OwnedFd>, LabError> {
    require_admin()?;
    let file = "/proc/thread-self/ns/mnt";
    let outside = fs::File::open(file).map_err(|error| LabError::io("open", file, error))?;
    // SAFETY: CLONE_NEWNS unshares the mount namespace and the working directory, no memory and no descriptors.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }
        .map_err(|errno| LabError::io("make a mount namespace for", "/", errno))?;
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC).map_err(|errno| match errno {
        // After a chroot into a plain directory.
        Errno::INVAL => LabError::RootIsNoMount,
        _ => LabError::io("make mounts private below", "/", errno),
    })?;
    Ok(Arc::new(outside.into()))
}

/// A directory to mount on, which goes with its holder.
#[derive(Debug)]
pub(crate) struct MountPoint {
    pub directory: PathBuf,
    all: Arc<MountPoints>,
}

impl MountPoint {
    fn new(all: Arc<MountPoints>) -> Result<Self, LabError> {
        for number in 1.. {
            let directory = all.directory.join(format!("place-{number}"));
            match fs::create_dir(&directory) {
                Ok(()) => return Ok(Self { directory, all }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(LabError::io("make directory", directory, error)),
            }
        }
        unreachable!("numbers do not run out")
    }

    /// The mount namespace in which this process was before.
    pub fn outside(&self) -> BorrowedFd<'_> {
        self.all.outside.as_fd()
    }

    /// Another one beside it.
    pub fn another(&self) -> Result<Self, LabError> {
        Self::new(self.all.clone())
    }
}

impl Drop for MountPoint {
    fn drop(&mut self) {
        // If something still uses it, it goes with the namespace.
        let _ = fs::remove_dir(&self.directory);
    }
}

/// The tmpfs that holds the mount points.
#[derive(Debug)]
struct MountPoints {
    directory: PathBuf,
    _mount: Mount,
    outside: Arc<OwnedFd>,
}

impl MountPoints {
    fn open(state: &State, scratch: &Path, outside: Arc<OwnedFd>) -> Result<Self, LabError> {
        let directory = directory_for_mount_points(state, scratch)?;
        let mount = Mount::new("tmpfs", "inodyne", "size=1M,mode=755,nosuid,nodev", &directory)?;
        Ok(Self { directory, _mount: mount, outside })
    }
}

fn directory_for_mount_points(state: &State, scratch: &Path) -> Result<PathBuf, LabError> {
    let wanted = env::var_os("INODYNE_MOUNT").filter(|path| !path.is_empty()).map(PathBuf::from);
    let here = env::current_dir().unwrap_or_default();
    let is_named = |directory: &str| state.words.iter().any(|word| may_name(word, directory, &here));
    let candidates: Vec<PathBuf> = match wanted {
        Some(wanted) => vec![wanted],
        None => CANDIDATES.into_iter().filter(|directory| !is_named(directory)).map(PathBuf::from).collect(),
    };
    // Images are on a disk; if a mount of ours hid their directory, they would be in memory.
    // It may not be there yet.
    let scratch = scratch.ancestors().find_map(|path| path.canonicalize().ok()).unwrap_or_default();
    let is_free = |directory: &PathBuf| {
        let is_used = state.taken.iter().chain([&here, &scratch]).any(|used| used.starts_with(directory));
        !is_used && is_empty(directory) && !is_mount(directory)
    };
    let tried = || candidates.iter().map(|directory| directory.display().to_string()).collect::<Vec<_>>().join(", ");
    let found = candidates.iter().filter_map(|directory| directory.canonicalize().ok()).find(is_free);
    found.ok_or_else(|| LabError::NoMountDirectory { tried: tried() })
}

/// Whether a word is a path at or below this directory, as seen from `here`, or contains one, as scripts and options do.
fn may_name(word: &OsStr, directory: &str, here: &Path) -> bool {
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    let bytes = word.as_bytes();
    let begins = bytes.windows(directory.len()).enumerate().filter(|(_, part)| *part == directory.as_bytes());
    let is_whole = |at: usize| {
        let (before, after) = (&bytes[..at], &bytes[at + directory.len()..]);
        !before.last().is_some_and(|byte| goes_on(byte) || *byte == b'/') && !after.first().is_some_and(goes_on)
    };
    let path = here.join(word);
    begins.map(|(at, _)| at).any(is_whole)
        || clean(&path).is_some_and(|path| path.starts_with(directory))
        || leads_below(&path, Path::new(directory))
}

/// Whether a path, or the directory where its last name is still to be made, is at or below this directory, following the links in both.
fn leads_below(path: &Path, directory: &Path) -> bool {
    let real = path.canonicalize().ok().or_else(|| path.parent()?.canonicalize().ok());
    real.zip(directory.canonicalize().ok()).is_some_and(|(path, directory)| path.starts_with(directory))
}

/// An absolute path without `.` and `..`; none for one that goes above the root.
fn clean(path: &Path) -> Option<PathBuf> {
    path.components().try_fold(PathBuf::new(), |mut path, component| match component {
        Component::ParentDir => path.pop().then_some(path),
        Component::CurDir => Some(path),
        _ => {
            path.push(component);
            Some(path)
        }
    })
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none())
}

/// Whether something is mounted there; an empty disk may be waiting for the command.
fn is_mount(directory: &Path) -> bool {
    let id = |path: &Path| statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).map(|stat| stat.stx_mnt_id);
    // On sysfs the kernel makes directories to mount on; what is there and empty serves nobody.
    let is_kernels = directory.starts_with("/sys");
    !is_kernels && directory.parent().is_some_and(|parent| id(parent).ok() != id(directory).ok())
}

fn require_admin() -> Result<(), LabError> {
    let has = capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN));
    let missing = LabError::MissingCapability { purpose: "making file systems", capability: "CAP_SYS_ADMIN" };
    if has { Ok(()) } else { Err(missing) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_may_name_a_directory_over_a_link() {
        let root = tempfile::tempdir().unwrap();
        let here = root.path().join("here");
        fs::create_dir_all(root.path().join("real/below")).unwrap();
        fs::create_dir(&here).unwrap();
        std::os::unix::fs::symlink("../real/below", here.join("results")).unwrap();
        std::os::unix::fs::symlink("real", root.path().join("named")).unwrap();
        let absolute = here.join("results/x.inodyne");
        for directory in ["real", "named", "real/below"].map(|name| root.path().join(name)) {
            let named = |word: &OsStr| may_name(word, directory.to_str().unwrap(), &here);
            for word in ["results/x.inodyne".as_ref(), "results".as_ref(), "./results/".as_ref(), absolute.as_os_str()]
            {
                assert!(named(word), "{word:?} in {directory:?}");
            }
            for word in ["", "x.inodyne", "result/x", "results/../x"] {
                assert!(!named(word.as_ref()) || word == "results/../x" && !directory.ends_with("below"), "{word}");
            }
        }
    }

    #[test]
    fn where_images_are_made_is_not_mounted_over() {
        let state = State::default();
        let first = directory_for_mount_points(&state, Path::new("/var/tmp")).expect("one is empty");
        let other = directory_for_mount_points(&state, &first);
        assert!(other.is_err() || other.is_ok_and(|other| other != first));
    }

    #[test]
    fn a_word_may_name_a_directory_in_many_ways() {
        let named = |word: &str| may_name(OsStr::new(word), "/srv", Path::new("/home/me"));
        for word in
            ["/srv", "/srv/out", "--target=/srv/out", "cp -r . /srv/", "cd /srv; make", "../../srv/x", "a:/srv:b"]
        {
            assert!(named(word), "{word}");
        }
        for word in ["", "srv", "/srv2", "/srv-old/x", "/opt/srv", "x/srv/y", "../srv", "../../../../srv", "//srv.d"] {
            assert!(!named(word), "{word}");
        }
    }
}
