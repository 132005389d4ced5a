//! What the kernel knows of a directory that is shown through a server: each file that it has looked up and not yet
//! forgotten, as a descriptor that neither opens nor changes it (`O_PATH`).
//!
//! Our number for a file is the file's own inode number where it can be, so that `ls -i` shows the same as without us. It cannot
//! be for files on another device, nor for the number 1, which in FUSE is the root's. A descriptor keeps its inode from being
//! reused, so a number means one file as long as the kernel knows it.

use std::{
    collections::HashMap,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::{
    fs::{Stat, fstat},
    io::Errno,
};

/// Device and inode number.
type Identity = (u64, u64);

#[derive(Debug)]
pub(super) struct Nodes {
    root: Identity,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    nodes: HashMap<u64, Node>,
    numbers: HashMap<Identity, u64>,
    next: u64,
}

#[derive(Debug)]
struct Node {
    file: Arc<OwnedFd>,
    identity: Identity,
    /// How often the kernel was told of it, less how often it has forgotten it.
    known: u64,
}

/// The root's number, as FUSE has it.
pub(super) const ROOT: u64 = 1;

/// From here on numbers are made up.
const FIRST_OF_OURS: u64 = 1 << 63;

impl Nodes {
    /// For a directory that is open.
    pub fn new(root: OwnedFd) -> Result<Self, Errno> {
        let identity = identity(&fstat(&root)?);
        let node = Node { file: Arc::new(root), identity, known: 1 };
        let table = Table {
            nodes: HashMap::from([(ROOT, node)]),
            numbers: HashMap::from([(identity, ROOT)]),
            next: FIRST_OF_OURS,
        };
        Ok(Self { root: identity, table: Mutex::new(table) })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file with this number.
    pub fn file(&self, number: u64) -> Result<Arc<OwnedFd>, Errno> {
        self.table().nodes.get(&number).map(|node| node.file.clone()).ok_or(Errno::STALE)
    }

    /// Notes that the kernel is told of this file, and returns its number.
    pub fn tell(&self, file: OwnedFd, stat: &Stat) -> u64 {
        let identity = identity(stat);
        let mut table = self.table();
        if let Some(&number) = table.numbers.get(&identity) {
            if let Some(node) = table.nodes.get_mut(&number) {
                node.known += 1;
            }
            return number;
        }
        let number = if identity.0 == self.root.0 && (ROOT + 1..FIRST_OF_OURS).contains(&identity.1) {
            identity.1
        } else {
            table.next += 1;
            table.next
        };
        table.numbers.insert(identity, number);
        table.nodes.insert(number, Node { file: Arc::new(file), identity, known: 1 });
        number
    }

    /// Notes that the kernel has forgotten a file this many times.
    pub fn forget(&self, number: u64, times: u64) {
        let mut table = self.table();
        let Some(node) = table.nodes.get_mut(&number).filter(|_| number != ROOT) else { return };
        node.known = node.known.saturating_sub(times);
        if node.known == 0 {
            let identity = node.identity;
            table.nodes.remove(&number);
            table.numbers.remove(&identity);
        }
    }
}

fn identity(stat: &Stat) -> Identity {
    (stat.st_dev, stat.st_ino)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, Mode, OFlags, openat};

    use super::*;

    #[test]
    fn a_file_has_one_number_until_it_is_forgotten_as_often_as_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("a"), "").unwrap();
        std::fs::hard_link(path("a"), path("b")).unwrap();
        std::fs::write(path("c"), "").unwrap();
        let open = |name: &str| openat(CWD, path(name), OFlags::PATH, Mode::empty()).unwrap();
        let nodes = Nodes::new(open("")).unwrap();
        let tell = |name: &str| {
            let file = open(name);
            let stat = fstat(&file).unwrap();
            nodes.tell(file, &stat)
        };
        let number = tell("a");
        assert_eq!((tell("b"), number), (number, fstat(open("a")).unwrap().st_ino));
        assert_ne!(tell("c"), number);
        assert_eq!(tell(""), ROOT);
        nodes.forget(number, 1);
        assert!(nodes.file(number).is_ok());
        nodes.forget(number, 1);
        assert_eq!(nodes.file(number).unwrap_err(), Errno::STALE);
        nodes.forget(ROOT, 9);
        assert!(nodes.file(ROOT).is_ok());
    }
}
