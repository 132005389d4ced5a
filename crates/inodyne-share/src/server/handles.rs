//! Files that guests have open, and the locks they hold.
//!
//! Locks are the host's own, so they hold between guests and against programs on the host. A flock(2) lock belongs to the
//! descriptor of the open file. An fcntl(2) lock belongs to a process in the guest, which is represented here by a descriptor of its
//! own that takes an open file description lock (`F_OFD_SETLK`). An open file description lock of the guest's looks the same
//! from here, except that nobody says when it ends; so it ends with the open file.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, RandomState},
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::io::Errno;

use super::nodes::{GuestId, NodeId};

/// A guest's number for a file that it has open. Numbers mean something only together with the guest: a guest that was connected to another
/// host goes on with those that it has.
type Key = (GuestId, u64);

/// A file that a guest has open.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub node: NodeId,
    pub file: Arc<OwnedFd>,
}

/// Who holds fcntl(2) locks, and on what.
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
    /// Each with the open file through which it was last used.
    locks: HashMap<LockOwner, (Key, Arc<OwnedFd>)>,
    /// The same the other way round.
    locked_by: HashMap<Key, HashSet<LockOwner>>,
    of_guest: HashMap<GuestId, OfGuest>,
}

/// How many entries are a guest's.
#[derive(Debug, Default)]
struct OfGuest {
    files: usize,
    locks: usize,
}

/// What is to be closed once the table is unlocked.
type Closed = Vec<Arc<OwnedFd>>;

impl Handles {
    /// At most this many open files, and as many owners of locks. No guest has more than three quarters of them, so that others have some, too.
    pub fn new(most: usize) -> Self {
        // So that numbers given by another host are different.
        let last = AtomicU64::new(RandomState::new().hash_one(most) >> 1);
        Self { last, tables: Mutex::default(), most }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an open file, and returns its number.
    pub fn add(&self, guest: GuestId, node: NodeId, file: OwnedFd) -> Result<u64, Errno> {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.put(guest, number, node, file).map(|()| number)
    }

    /// The same, under a number that the guest already has for it.
    pub fn put(&self, guest: GuestId, number: u64, node: NodeId, file: OwnedFd) -> Result<(), Errno> {
        let mut tables = self.tables();
        self.has_room(&tables, guest)?;
        if tables.files.contains_key(&(guest, number)) {
            return Err(Errno::NFILE);
        }
        tables.files.insert((guest, number), Arc::new(OpenFile { node, file: Arc::new(file) }));
        tables.of_guest.entry(guest).or_default().files += 1;
        tables.by_node.entry(node).or_default().push((guest, number));
        Ok(())
    }

    /// Whether a guest may open another file.
    pub fn check_room(&self, guest: GuestId) -> Result<(), Errno> {
        self.has_room(&self.tables(), guest)
    }

    fn has_room(&self, tables: &Tables, guest: GuestId) -> Result<(), Errno> {
        let own = tables.of_guest.get(&guest).map_or(0, |of_guest| of_guest.files);
        if tables.files.len() < self.most && own < self.most_each() { Ok(()) } else { Err(Errno::NFILE) }
    }

    fn most_each(&self) -> usize {
        self.most - self.most / 4
    }

    /// A guest's open file. One that is not open here is one that the guest had open at another host and could not carry on with.
    pub fn get(&self, guest: GuestId, number: u64) -> Result<Arc<OpenFile>, Errno> {
        self.tables().files.get(&(guest, number)).cloned().ok_or(Errno::STALE)
    }

    /// Some open file of a node: it is the node's file, whether it still has a name or not.
    pub fn of_node(&self, node: NodeId) -> Option<Arc<OwnedFd>> {
        let tables = self.tables();
        let key = tables.by_node.get(&node)?.first()?;
        tables.files.get(key).map(|file| file.file.clone())
    }

    /// Closes an open file, with the locks of those who used it last. Says whether there was one.
    pub fn remove(&self, guest: GuestId, number: u64) -> bool {
        let removed = self.tables().take((guest, number));
        removed.is_some()
    }

    /// The descriptor that stands for an owner of locks, who uses them through the open file with this number; `open` makes it.
    pub fn lock_owner(
        &self,
        owner: LockOwner,
        number: u64,
        open: impl FnOnce() -> Result<OwnedFd, Errno>,
    ) -> Result<Arc<OwnedFd>, Errno> {
        let key = (owner.0, number);
        if let Some(found) = self.tables().used_by(owner, key, None)? {
            return Ok(found);
        }
        let new = Arc::new(open()?);
        let mut tables = self.tables();
        let own = tables.of_guest.get(&owner.0).map_or(0, |of_guest| of_guest.locks);
        let new = (tables.locks.len() < self.most && own < self.most_each()).then_some(new);
        tables.used_by(owner, key, new)?.ok_or(Errno::NOLCK)
    }

    /// The descriptor that stands for an owner of locks, if there is one.
    pub fn known_lock_owner(&self, owner: &LockOwner) -> Option<Arc<OwnedFd>> {
        self.tables().locks.get(owner).map(|(_, descriptor)| descriptor.clone())
    }

    /// Releases all locks of an owner.
    pub fn unlock(&self, owner: &LockOwner) {
        let _closed_after_the_lock_on_the_table = self.tables().unlock(owner);
    }

    /// Closes everything of a guest.
    pub fn leave(&self, guest: GuestId) {
        let mut tables = self.tables();
        let keys: Vec<Key> = tables.files.keys().filter(|(other, _)| *other == guest).copied().collect();
        let files: Vec<_> = keys.into_iter().filter_map(|key| tables.take(key)).collect();
        tables.of_guest.remove(&guest);
        drop(tables);
        drop(files);
    }

    /// How many files are open.
    pub fn count(&self) -> usize {
        self.tables().files.len()
    }
}

impl Tables {
    /// The descriptor of an owner of locks, or `new` where there is none yet, noted as used by an open file. The file must still be open:
    /// nobody would release the lock otherwise.
    fn used_by(
        &mut self,
        owner: LockOwner,
        key: Key,
        new: Option<Arc<OwnedFd>>,
    ) -> Result<Option<Arc<OwnedFd>>, Errno> {
        if !self.files.contains_key(&key) {
            return Err(Errno::STALE);
        }
        let Some(descriptor) = self.unlock(&owner).or(new) else { return Ok(None) };
        self.locks.insert(owner, (key, descriptor.clone()));
        self.of_guest.entry(owner.0).or_default().locks += 1;
        self.locked_by.entry(key).or_default().insert(owner);
        Ok(Some(descriptor))
    }

    /// Takes an owner of locks out, to be closed by the caller.
    fn unlock(&mut self, owner: &LockOwner) -> Option<Arc<OwnedFd>> {
        let (key, descriptor) = self.remove_lock(owner)?;
        if let Some(owners) = self.locked_by.get_mut(&key) {
            owners.remove(owner);
            if owners.is_empty() {
                self.locked_by.remove(&key);
            }
        }
        Some(descriptor)
    }

    fn remove_lock(&mut self, owner: &LockOwner) -> Option<(Key, Arc<OwnedFd>)> {
        let removed = self.locks.remove(owner)?;
        if let Some(of_guest) = self.of_guest.get_mut(&owner.0) {
            of_guest.locks = of_guest.locks.saturating_sub(1);
        }
        Some(removed)
    }

    /// Takes an open file out, and the descriptors of the owners of locks who last used it.
    fn take(&mut self, key: Key) -> Option<(Arc<OpenFile>, Closed)> {
        let file = self.files.remove(&key)?;
        let owners = self.locked_by.remove(&key).unwrap_or_default();
        let closed = owners.iter().filter_map(|owner| self.remove_lock(owner)).map(|(_, closed)| closed).collect();
        if let Some(of_guest) = self.of_guest.get_mut(&key.0) {
            of_guest.files = of_guest.files.saturating_sub(1);
        }
        if let Some(keys) = self.by_node.get_mut(&file.node) {
            keys.retain(|other| *other != key);
            if keys.is_empty() {
                self.by_node.remove(&file.node);
            }
        }
        Some((file, closed))
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
        assert!(!handles.remove(1, other));
        handles.leave(1);
        assert_eq!(handles.get(1, one).unwrap_err(), Errno::STALE);
        assert!(handles.of_node(5).is_some());
        // Another guest may have the same number, from elsewhere.
        handles.put(3, other, 6, null()).unwrap();
        assert_eq!(handles.put(3, other, 7, null()), Err(Errno::NFILE));
        assert_eq!((handles.get(2, other).unwrap().node, handles.get(3, other).unwrap().node), (5, 6));
        assert!(handles.remove(2, other));
        assert!(handles.of_node(5).is_none());
    }

    #[test]
    fn one_guest_does_not_take_what_others_need() {
        let handles = Handles::new(8);
        let null = || Ok(File::open("/dev/null").unwrap().into());
        let first: Vec<u64> = (0..6).map(|_| handles.add(1, 5, null().unwrap()).unwrap()).collect();
        assert_eq!(handles.add(1, 5, null().unwrap()), Err(Errno::NFILE));
        assert_eq!(handles.check_room(1), Err(Errno::NFILE));
        (0..6).for_each(|owner| drop(handles.lock_owner((1, 5, owner), first[0], null).unwrap()));
        assert_eq!(handles.lock_owner((1, 5, 6), first[0], null).unwrap_err(), Errno::NOLCK);
        let other = handles.add(2, 5, null().unwrap()).unwrap();
        assert!(handles.lock_owner((2, 5, 0), other, null).is_ok());
        // What is closed makes room.
        assert!(handles.remove(1, first[0]));
        let next = handles.add(1, 5, null().unwrap()).unwrap();
        assert!(handles.lock_owner((1, 5, 6), next, null).is_ok());
    }

    #[test]
    fn locks_go_with_the_file_by_which_they_were_last_used() {
        let handles = Handles::new(3);
        let null = || Ok(File::open("/dev/null").unwrap().into());
        let [one, other] = [(), ()].map(|()| handles.add(1, 5, null().unwrap()).unwrap());
        let (process, description) = ((1, 5, 70), (1, 5, 71));
        handles.lock_owner(process, one, null).unwrap();
        handles.lock_owner(process, other, || unreachable!("it is there")).unwrap();
        handles.lock_owner(description, one, null).unwrap();
        assert!(handles.remove(1, one));
        assert!(handles.known_lock_owner(&process).is_some() && handles.known_lock_owner(&description).is_none());
        assert_eq!(handles.lock_owner(description, one, null).unwrap_err(), Errno::STALE);
        // They can end before it, too.
        handles.unlock(&process);
        handles.lock_owner(process, other, null).unwrap();
        handles.leave(1);
        let tables = handles.tables();
        assert!(tables.locks.is_empty() && tables.locked_by.is_empty());
    }
}
