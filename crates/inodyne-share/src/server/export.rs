//! The directory that is shared, as descriptors: finding the file of a node, and nothing outside of the directory.
//!
//! A file is found by the names of its node, from the nearest directory whose descriptor is at hand, in one `openat2` that follows no
//! symbolic link, goes through no magic link and never leads above where it began. What is found must be the very file (device, inode
//! number, birth time), or the node is stale. Getting a descriptor this way neither opens nor changes the file (`O_PATH`); only regular
//! files and directories are ever opened from it, by the name that the process has for it in /proc. So a device node does
//! nothing, whoever puts it there, and whenever.

use std::{
    ffi::{CStr, CString},
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags, StatxTimestamp, openat, openat2, statx,
    },
    io::Errno,
    process::{Resource, getrlimit},
};

use super::{
    descriptors::Descriptors,
    nodes::{Identity, NodeId, Nodes, ROOT},
};
use crate::ShareError;

/// What is asked of a file: everything that `stat` says, and its birth time.
const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

/// Descriptors that are kept where the process may have many.
const MOST_DESCRIPTORS: usize = 4096;

/// The shared directory.
pub(crate) struct Export {
    root: Arc<OwnedFd>,
    /// `/proc/self/fd`.
    own: OwnedFd,
    nodes: Mutex<Nodes>,
    descriptors: Mutex<Descriptors>,
}

impl Export {
    /// A descriptor of a directory; getting it neither opens nor changes the directory.
    pub fn open_root(directory: &Path) -> Result<OwnedFd, ShareError> {
        openat(CWD, directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| ShareError::directory("share", directory, io::Error::from(errno)))
    }

    /// From such a descriptor; `directory` is what it is called.
    pub fn new(directory: &Path, root: OwnedFd) -> Result<Self, ShareError> {
        let failed = |errno: Errno| ShareError::directory("share", directory, io::Error::from(errno));
        let own = openat(CWD, "/proc/self/fd", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let own = own.map_err(|errno| ShareError::lacking(format!("/proc is needed to share a directory: {errno}")))?;
        let identity = identity(&stat(&root).map_err(failed)?);
        // Half of what the process may open is left for open files.
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 2;
        let most = usize::try_from(limit).unwrap_or(usize::MAX).min(MOST_DESCRIPTORS);
        Ok(Self {
            root: Arc::new(root),
            own,
            nodes: Mutex::new(Nodes::new(identity)),
            descriptors: Mutex::new(Descriptors::new(most)),
        })
    }

    /// What guests know.
    pub fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn descriptors(&self) -> MutexGuard<'_, Descriptors> {
        self.descriptors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The root's own descriptor.
    pub fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// How many descriptors of nodes are open.
    pub fn descriptor_count(&self) -> usize {
        self.descriptors().count()
    }

    /// A descriptor of a node's file; getting it neither opens nor changes the file.
    pub fn find(&self, node: NodeId) -> Result<Arc<OwnedFd>, Errno> {
        if node == ROOT {
            return Ok(self.root.clone());
        }
        if let Some(descriptor) = self.descriptors().get(node) {
            return Ok(descriptor);
        }
        let (identity, names) = {
            let nodes = self.nodes();
            let names: Vec<_> = nodes.names(node).map(|name| (name.directory, name.name.clone())).collect();
            (nodes.identity(node).ok_or(Errno::STALE)?, names)
        };
        let found = names.into_iter().find_map(|(directory, name)| {
            let descriptor = self.walk(directory, name).ok()?;
            (self::identity(&stat(&descriptor).ok()?) == identity).then_some(descriptor)
        });
        let found = Arc::new(found.ok_or(Errno::STALE)?);
        self.descriptors().put(node, found.clone());
        Ok(found)
    }

    /// Goes down the names from the nearest directory at hand.
    fn walk(&self, mut directory: NodeId, name: CString) -> Result<OwnedFd, Errno> {
        let mut path = vec![name];
        let start = loop {
            if directory == ROOT {
                break self.root.clone();
            }
            if let Some(descriptor) = self.descriptors().get(directory) {
                break descriptor;
            }
            let nodes = self.nodes();
            let name = nodes.names(directory).next().ok_or(Errno::STALE)?;
            // Names that were not seen at the same time could form a cycle.
            if path.len() > usize::from(u8::MAX) * 16 {
                return Err(Errno::STALE);
            }
            path.push(name.name.clone());
            directory = name.directory;
        };
        path.reverse();
        // The kernel takes paths of a limited length; a longer one is walked in pieces.
        let mut at = start;
        let pieces = path.chunks(8);
        let last = pieces.len() - 1;
        for (number, piece) in path.chunks(8).enumerate() {
            let joined = piece.iter().map(|name| name.to_bytes()).collect::<Vec<_>>().join(&b'/');
            let joined = CString::new(joined).map_err(|_| Errno::INVAL)?;
            let descriptor = open_beneath(&at, &joined)?;
            if number == last {
                return Ok(descriptor);
            }
            at = Arc::new(descriptor);
        }
        Err(Errno::STALE)
    }

    /// Forgets descriptors of nodes that are not known any more.
    pub fn drop_descriptors(&self, nodes: &[NodeId]) {
        let mut descriptors = self.descriptors();
        nodes.iter().for_each(|node| descriptors.remove(*node));
    }

    /// Closes the descriptor of a regular file that has lost its last name, so that what it takes up on the disk is free as soon as no guest has it
    /// open. Others stay as long as there is room for them: a directory may be the working directory of a guest's program, and nothing else
    /// would lead to it.
    pub fn drop_removed(&self, node: NodeId) {
        let Some(descriptor) = self.descriptors().get(node) else { return };
        let is_removed =
            |stat: Statx| stat.stx_nlink == 0 && FileType::from_raw_mode(stat.stx_mode.into()) == FileType::RegularFile;
        if stat(&descriptor).is_ok_and(is_removed) {
            self.descriptors().remove(node);
        }
    }

    /// Closes all descriptors: something was moved out of the shared directory, and they would still lead there.
    pub fn drop_all_descriptors(&self) {
        self.descriptors().clear();
    }

    /// What a descriptor is called in a path relative to [`Export::own`].
    pub fn link(descriptor: &OwnedFd) -> CString {
        CString::new(descriptor.as_raw_fd().to_string()).unwrap_or_default()
    }

    /// Where such names are.
    pub fn own(&self) -> &OwnedFd {
        &self.own
    }

    /// Opens a regular file or a directory that was found.
    pub fn open(&self, found: &OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
        match FileType::from_raw_mode(stat(found)?.stx_mode.into()) {
            FileType::RegularFile | FileType::Directory => {}
            FileType::Symlink => return Err(Errno::LOOP),
            _ => return Err(Errno::ACCESS),
        }
        openat(&self.own, Self::link(found), flags | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK, Mode::empty())
    }
}

/// A name in an open directory, not followed if it is a link.
pub(crate) fn open_beneath(directory: &OwnedFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    // EAGAIN: something was renamed meanwhile, so that the kernel cannot tell whether it left the directory.
    for _ in 0..64 {
        match openat2(directory, name, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            done => return done,
        }
    }
    Err(Errno::AGAIN)
}

/// Everything about an open file, however it was opened.
pub(crate) fn stat(descriptor: &OwnedFd) -> Result<Statx, Errno> {
    statx(descriptor, c"", AtFlags::EMPTY_PATH, WANTED)
}

/// Everything about a name in a directory.
pub(crate) fn stat_at(directory: &OwnedFd, name: &CStr) -> Result<Statx, Errno> {
    statx(directory, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT, WANTED)
}

/// What tells a file from every other one.
pub(crate) fn identity(stat: &Statx) -> Identity {
    let born = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
    Identity {
        device: rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor),
        inode: stat.stx_ino,
        born: if born { nanos(&stat.stx_btime) } else { 0 },
    }
}

/// Since 1970; within 292 years of it.
fn nanos(time: &StatxTimestamp) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.into())
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt, symlink},
    };

    use super::*;

    fn export_of(directory: &Path) -> Export {
        Export::new(directory, Export::open_root(directory).unwrap()).unwrap()
    }

    /// Tells a guest of a name, as LOOKUP does.
    fn tell(export: &Export, directory: NodeId, name: &CStr) -> NodeId {
        let stat = stat_at(&export.find(directory).unwrap(), name).unwrap();
        export.nodes().tell(1, identity(&stat), directory, name)
    }

    #[test]
    fn a_node_is_its_file_or_stale() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir_all(path("a/b")).unwrap();
        fs::write(path("a/b/file"), "inside").unwrap();
        let export = export_of(directory.path());
        let a = tell(&export, ROOT, c"a");
        let b = tell(&export, a, c"b");
        let file = tell(&export, b, c"file");
        let inode = || stat(&*export.find(file)?).map(|stat| stat.stx_ino);
        assert_eq!(inode(), Ok(fs::metadata(path("a/b/file")).unwrap().ino()));

        // Another file under the same name is not it.
        export.drop_all_descriptors();
        fs::rename(path("a/b/file"), path("elsewhere")).unwrap();
        fs::write(path("a/b/file"), "another").unwrap();
        assert_eq!(inode(), Err(Errno::STALE));
        export.nodes().named(file, ROOT, c"elsewhere");
        assert!(inode().is_ok());

        // Nor does a link lead anywhere, in the middle or at the end.
        export.drop_all_descriptors();
        fs::rename(path("a"), path("moved")).unwrap();
        symlink(path("moved"), path("a")).unwrap();
        export.nodes().unnamed(file, ROOT, c"elsewhere");
        assert_eq!(inode(), Err(Errno::STALE));
        assert_eq!(export.find(b).unwrap_err(), Errno::STALE);
    }

    #[test]
    fn descriptors_are_few_and_long_paths_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let export = export_of(directory.path());
        let name = CString::new("n".repeat(250)).unwrap();
        let mut node = ROOT;
        for _ in 0..40 {
            rustix::fs::mkdirat(&*export.find(node).unwrap(), name.as_c_str(), Mode::RWXU).unwrap();
            node = tell(&export, node, &name);
        }
        let before = stat(&export.find(node).unwrap()).unwrap().stx_ino;
        export.drop_all_descriptors();
        assert_eq!(stat(&export.find(node).unwrap()).unwrap().stx_ino, before);
        assert_eq!(export.descriptor_count(), 1);
    }

    #[test]
    fn devices_and_pipes_are_not_opened() {
        let export = export_of(Path::new("/dev"));
        let null = open_beneath(export.root(), c"null").unwrap();
        assert_eq!(export.open(&null, OFlags::RDWR).unwrap_err(), Errno::ACCESS);
        for name in [c"..", c"/etc", c"../etc"] {
            assert_eq!(open_beneath(export.root(), name).unwrap_err(), Errno::XDEV);
        }
    }
}
