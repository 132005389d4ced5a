//! Files that guests have open, and the locks they hold.
//!
//! Locks are the host's own, so they hold between guests and against programs of the host. One of flock(2) belongs to the
//! descriptor of the open file. One of fcntl(2) belongs to a process of the guest, for which a descriptor of its own stands
//! here, whose lock is one of the open file description (`F_OFD_SETLK`).

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::io::Errno;

use super::nodes::{GuestId, NodeId};

/// A guest's number of a file that it has open. Numbers mean something only together with the guest: one that was connected to another host
/// goes on with those that it has.
type Key = (GuestId, u64);

/// A file that a guest has open.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub node: NodeId,
    pub file: Arc<OwnedFd>,
}

/// Who holds locks of fcntl(2), and on what.
pub(crate) type LockOwner = (GuestId, NodeId, u64);

/// All of them.
#[derive(Debug)]
pub(crate) struct Handles {
    /// The last number that was given.
    last: AtomicU64,
    tables: Mutex<Tables>,
    most: usize,
}

#[derive(Debug, Default)]
struct Tables {
    files: HashMap<Key, Arc<OpenFile>>,
    by_node: HashMap<NodeId, Vec<Key>>,
    locks: HashMap<LockOwner, Arc<OwnedFd>>,
}

impl Handles {
    /// At most so many open files, and as many owners of locks.
    pub fn new(most: usize) -> Self {
        // So that those that another host has given are others.
        let last = AtomicU64::new(RandomState::new().hash_one(most) >> 1);
        Self { last, tables: Mutex::default(), most }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an open file, and says under which number.
    pub fn add(&self, guest: GuestId, node: NodeId, file: OwnedFd) -> Result<u64, Errno> {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.put(guest, number, node, file).map(|()| number)
    }

    /// The same under a number that the guest has for it.
    pub fn put(&self, guest: GuestId, number: u64, node: NodeId, file: OwnedFd) -> Result<(), Errno> {
        let mut tables = self.tables();
        if tables.files.len() >= self.most || tables.files.contains_key(&(guest, number)) {
            return Err(Errno::NFILE);
        }
        tables.files.insert((guest, number), Arc::new(OpenFile { node, file: Arc::new(file) }));
        tables.by_node.entry(node).or_default().push((guest, number));
        Ok(())
    }

    /// A guest's open file. One that is not open here it had open at another host, and could not go on with.
    pub fn get(&self, guest: GuestId, number: u64) -> Result<Arc<OpenFile>, Errno> {
        self.tables().files.get(&(guest, number)).cloned().ok_or(Errno::STALE)
    }

    /// Some open file of a node: it is the node's file, whether it still has a name or not.
    pub fn of_node(&self, node: NodeId) -> Option<Arc<OwnedFd>> {
        let tables = self.tables();
        let key = tables.by_node.get(&node)?.first()?;
        tables.files.get(key).map(|file| file.file.clone())
    }

    /// Gives an open file back, to be closed where the caller drops it.
    pub fn remove(&self, guest: GuestId, number: u64) -> Option<Arc<OpenFile>> {
        self.tables().take((guest, number))
    }

    /// The descriptor that stands for an owner of locks; `open` makes it.
    pub fn lock_owner(
        &self,
        owner: LockOwner,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
    ) -> Result<Arc<OwnedFd>, Errno> {
        if let Some(found) = self.tables().locks.get(&owner) {
            return Ok(found.clone());
        }
        let new = Arc::new(open()?);
        let mut tables = self.tables();
        if tables.locks.len() >= self.most {
            return Err(Errno::NOLCK);
        }
        Ok(tables.locks.entry(owner).or_insert(new).clone())
    }

    /// Releases all locks of an owner.
    pub fn unlock(&self, owner: &LockOwner) {
        let _closed_after_the_lock_on_the_table = self.tables().locks.remove(owner);
    }

    /// Closes everything of a guest.
    pub fn leave(&self, guest: GuestId) {
        let mut tables = self.tables();
        let keys: Vec<Key> = tables.files.keys().filter(|(other, _)| *other == guest).copied().collect();
        let files: Vec<_> = keys.into_iter().filter_map(|key| tables.take(key)).collect();
        let owners: Vec<_> = tables.locks.keys().filter(|owner| owner.0 == guest).copied().collect();
        let locks: Vec<_> = owners.iter().filter_map(|owner| tables.locks.remove(owner)).collect();
        drop(tables);
        drop((files, locks));
    }

    /// How many files are open.
    pub fn count(&self) -> usize {
        self.tables().files.len()
    }
}

impl Tables {
    fn take(&mut self, key: Key) -> Option<Arc<OpenFile>> {
        let file = self.files.remove(&key)?;
        if let Some(keys) = self.by_node.get_mut(&file.node) {
            keys.retain(|other| *other != key);
            if keys.is_empty() {
                self.by_node.remove(&file.node);
            }
        }
        Some(file)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_guest_s_files_are_its_own_and_go_with_it() {
        let handles = Handles::new(2);
        let null = || File::open("/dev/null").unwrap().into();
        let (one, other) = (handles.add(1, 5, null()).unwrap(), handles.add(2, 5, null()).unwrap());
        assert_eq!(handles.add(1, 6, null()), Err(Errno::NFILE));
        assert!(handles.get(1, one).is_ok());
        assert_eq!(handles.get(1, other).unwrap_err(), Errno::STALE);
        assert!(handles.remove(1, other).is_none());
        handles.leave(1);
        assert_eq!(handles.get(1, one).unwrap_err(), Errno::STALE);
        assert!(handles.of_node(5).is_some());
        // Its number may be another's too, who has it from elsewhere.
        handles.put(3, other, 6, null()).unwrap();
        assert_eq!(handles.put(3, other, 7, null()), Err(Errno::NFILE));
        assert_eq!((handles.get(2, other).unwrap().node, handles.get(3, other).unwrap().node), (5, 6));
        handles.remove(2, other).unwrap();
        assert!(handles.of_node(5).is_none());
    }
}
