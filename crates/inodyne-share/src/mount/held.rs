//! What the kernel knows, so that it can be made known to a host that does not: nodes by the names under which they were last seen, and open
//! files. It is learnt from requests and their answers.
//!
//! It is not a cache: the kernel gets no answer from it. A node takes about 150 bytes.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    ffi::CStr,
    hash::{BuildHasher, RandomState},
};

use zerocopy::FromBytes;

use crate::{
    fuse::{
        abi::{Dirent, EntryOut, LK_FLOCK, LkIn, OpenOut, ROOT, padded},
        request::{Operation, Request, is_component},
    },
    protocol::resume::Kept,
};

/// RENAME2's flag that swaps two names.
const EXCHANGE: u32 = 1 << 1;

/// What the kernel knows.
#[derive(Debug, Default)]
pub(super) struct Held {
    nodes: HashMap<u64, Node>,
    /// Nodes by a digest of where they were last seen. Two with the same digest get in each other's way, and one of them is not found again
    /// after it was renamed.
    places: HashMap<u64, u64>,
    digest: RandomState,
    files: BTreeMap<u64, File>,
    /// Nodes on which somebody may hold a lock of fcntl(2), and who: such a lock is on the file, however often a process has it open.
    locks: BTreeSet<(u64, u64)>,
}

#[derive(Debug)]
struct Node {
    directory: u64,
    name: Box<CStr>,
    /// How often the kernel was told of it, less how often it forgot it.
    lookups: u64,
}

#[derive(Debug)]
struct File {
    node: u64,
    /// How it is open.
    access: u8,
    /// Who may hold a lock of flock(2), which is on what was opened.
    locks: BTreeSet<u64>,
}

impl Held {
    /// Learns from a request that was answered without an error.
    pub fn learn(&mut self, request: &Request<'_>, answer: &[u8]) {
        let Ok(operation) = request.operation() else { return };
        let node = request.header.node;
        match operation {
            Operation::Lookup { name }
            | Operation::MkNod { name, .. }
            | Operation::MkDir { name, .. }
            | Operation::Symlink { name, .. }
            | Operation::Link { name, .. } => drop(self.told(node, name, answer)),
            Operation::Create { ask, name } => {
                if let Some((made, rest)) = self.told(node, name, answer) {
                    self.opened(made, ask.flags, rest);
                }
            }
            Operation::ReadDir { plus: true, .. } => self.listed(node, answer),
            Operation::Open(ask) => self.opened(node, ask.flags, answer),
            Operation::Rename { new_dir, flags, name, new_name } => {
                self.renamed((node, name), (new_dir, new_name), flags & EXCHANGE != 0);
            }
            Operation::SetLk { ask, .. } => self.locked(&ask),
            Operation::Flush(ask) => self.unlocked(node, ask.lock_owner),
            _ => {}
        }
    }

    /// An entry, and what follows it.
    fn told<'a>(&mut self, directory: u64, name: &CStr, answer: &'a [u8]) -> Option<(u64, &'a [u8])> {
        let (entry, rest) = EntryOut::read_from_prefix(answer).ok()?;
        self.entry(entry.node, directory, name);
        Some((entry.node, rest))
    }

    fn entry(&mut self, node: u64, directory: u64, name: &CStr) {
        // 0 says that there is nothing.
        if matches!(node, 0 | ROOT) || !is_component(name) {
            return;
        }
        let place = self.digest.hash_one((directory, name));
        let known = self.nodes.entry(node).or_insert_with(|| Node { directory, name: name.into(), lookups: 0 });
        known.lookups = known.lookups.saturating_add(1);
        if known.directory != directory || *known.name != *name {
            let before = self.digest.hash_one((known.directory, &*known.name));
            (known.directory, known.name) = (directory, name.into());
            if self.places.get(&before) == Some(&node) {
                self.places.remove(&before);
            }
        }
        self.places.insert(place, node);
    }

    fn listed(&mut self, directory: u64, mut answer: &[u8]) {
        while let Ok((entry, rest)) = EntryOut::read_from_prefix(answer)
            && let Ok((dirent, names)) = Dirent::read_from_prefix(rest)
            && let Some(name) = names.get(..dirent.namelen as usize)
        {
            if let Ok(name) = std::ffi::CString::new(name) {
                self.entry(entry.node, directory, &name);
            }
            answer = names.get(padded(name.len())..).unwrap_or_default();
        }
    }

    fn opened(&mut self, node: u64, flags: u32, answer: &[u8]) {
        if let Ok((open, _)) = OpenOut::read_from_prefix(answer) {
            let access = (flags as i32 & libc::O_ACCMODE) as u8;
            self.files.insert(open.fh, File { node, access, locks: BTreeSet::new() });
        }
    }

    fn renamed(&mut self, from: (u64, &CStr), to: (u64, &CStr), are_swapped: bool) {
        let [moved, other] = [from, to].map(|place| self.remove_place(place));
        if let Some(node) = moved {
            self.put_place(node, to);
        }
        if let Some(node) = other
            && are_swapped
        {
            self.put_place(node, from);
        }
    }

    /// The node that was last seen there.
    fn remove_place(&mut self, (directory, name): (u64, &CStr)) -> Option<u64> {
        let place = self.digest.hash_one((directory, name));
        let node = *self.places.get(&place)?;
        let known = self.nodes.get(&node)?;
        if known.directory != directory || *known.name != *name {
            return None;
        }
        self.places.remove(&place);
        Some(node)
    }

    fn put_place(&mut self, node: u64, (directory, name): (u64, &CStr)) {
        if let Some(known) = self.nodes.get_mut(&node) {
            (known.directory, known.name) = (directory, name.into());
            self.places.insert(self.digest.hash_one((directory, name)), node);
        }
    }

    fn locked(&mut self, ask: &LkIn) {
        let Some(file) = self.files.get_mut(&ask.fh) else { return };
        let node = file.node;
        let is_of_flock = ask.flags & LK_FLOCK != 0;
        let releases_all = ask.lock.start == 0 && ask.lock.end >= i64::MAX as u64;
        match (ask.lock.kind as i32 == libc::F_UNLCK, is_of_flock) {
            (false, true) => _ = file.locks.insert(ask.owner),
            (false, false) => _ = self.locks.insert((node, ask.owner)),
            (true, _) if !releases_all => {}
            (true, true) => _ = file.locks.remove(&ask.owner),
            (true, false) => self.unlocked(node, ask.owner),
        }
    }

    /// A process has released all of its locks of fcntl(2) on a file, or has closed one of its descriptors of it.
    pub fn unlocked(&mut self, node: u64, owner: u64) {
        self.locks.remove(&(node, owner));
    }

    fn has_lock(&self, node: u64) -> bool {
        self.locks.range((node, 0)..=(node, u64::MAX)).next().is_some()
    }

    /// The kernel has forgotten this many of the times that it was told of a node.
    pub fn forgot(&mut self, node: u64, lookups: u64) {
        let Some(known) = self.nodes.get_mut(&node) else { return };
        known.lookups = known.lookups.saturating_sub(lookups);
        if known.lookups == 0 {
            self.drop_node(node);
        }
    }

    fn drop_node(&mut self, node: u64) {
        if let Some(known) = self.nodes.remove(&node) {
            let place = self.digest.hash_one((known.directory, &*known.name));
            if self.places.get(&place) == Some(&node) {
                self.places.remove(&place);
            }
        }
    }

    /// A file is no longer open. Returns whether it was.
    pub fn closed(&mut self, handle: u64) -> bool {
        let Some(file) = self.files.remove(&handle) else { return false };
        // Locks end with the last of its descriptors at the latest.
        if self.has_lock(file.node) && !self.files.values().any(|other| other.node == file.node) {
            self.locks.retain(|(node, _)| *node != file.node);
        }
        true
    }

    /// All that the kernel holds something of.
    pub fn nodes(&self) -> impl Iterator<Item = (u64, u64, &CStr)> {
        self.nodes.iter().map(|(node, known)| (*node, known.directory, &*known.name))
    }

    /// What a host is to be told, directories before what is in them. Left out are files on which somebody may hold a lock, since others may
    /// have held it in the meantime (all that are open of a file if it is a lock of fcntl(2)), and, if the host's machine `has_crashed`, those
    /// that are open for writing: what was written may be lost, and an fsync must not say that it is not.
    pub fn list(&self, has_crashed: bool) -> Vec<Kept> {
        let mut below: HashMap<u64, Vec<u64>> = HashMap::new();
        self.nodes.iter().for_each(|(node, known)| below.entry(known.directory).or_default().push(*node));
        let mut list = Vec::with_capacity(self.nodes.len() + self.files.len());
        let mut directories = VecDeque::from([ROOT]);
        while let Some(directory) = directories.pop_front() {
            // Once each, even where names that were not seen at the same time form a cycle.
            for node in below.remove(&directory).unwrap_or_default() {
                let Some(known) = self.nodes.get(&node) else { continue };
                let name = known.name.clone().into();
                list.push(Kept::Node { node, directory, lookups: known.lookups, name });
                directories.push_back(node);
            }
        }
        let is_locked = |file: &File| !file.locks.is_empty() || self.has_lock(file.node);
        let is_kept = |file: &File| !is_locked(file) && (file.access == libc::O_RDONLY as u8 || !has_crashed);
        list.extend(self.files.iter().filter(|(_, file)| is_kept(file)).map(|(handle, file)| Kept::File {
            handle: *handle,
            node: file.node,
            access: file.access,
        }));
        list
    }

    /// The host does not know it, nor will it.
    pub fn lost(&mut self, kept: &Kept) {
        match kept {
            Kept::Node { node, .. } => self.drop_node(*node),
            Kept::File { handle, .. } => drop(self.files.remove(handle)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use zerocopy::IntoBytes;

    use super::*;
    use crate::fuse::abi::{FileLock, InHeader, OpenIn, opcode};

    fn learn(held: &mut Held, opcode: u32, node: u64, body: &[&[u8]], answer: &[u8]) {
        let body = body.concat();
        let header = InHeader { len: (40 + body.len()) as u32, opcode, node, ..InHeader::default() };
        held.learn(&Request::parse(&[header.as_bytes(), &body].concat()).unwrap(), answer);
    }

    fn look_up(held: &mut Held, directory: u64, name: &[u8], node: u64) {
        learn(held, opcode::LOOKUP, directory, &[name, b"\0"], EntryOut { node, ..EntryOut::default() }.as_bytes());
    }

    fn open(held: &mut Held, node: u64, flags: i32, fh: u64) {
        let ask = OpenIn { flags: flags as u32, open_flags: 0 };
        learn(held, opcode::OPEN, node, &[ask.as_bytes()], OpenOut { fh, ..OpenOut::default() }.as_bytes());
    }

    fn lock(held: &mut Held, fh: u64, kind: i32, end: u64) {
        lock_of(held, fh, (1, 0), kind, end);
    }

    fn lock_of(held: &mut Held, fh: u64, (owner, flags): (u64, u32), kind: i32, end: u64) {
        let lock = FileLock { kind: kind as u32, end, ..FileLock::default() };
        let ask = LkIn { fh, owner, flags, lock, ..LkIn::default() };
        learn(held, opcode::SETLK, 0, &[ask.as_bytes()], &[]);
    }

    fn node(node: u64, directory: u64, name: &str, lookups: u64) -> Kept {
        Kept::Node { node, directory, lookups, name: CString::new(name).unwrap() }
    }

    fn file(handle: u64, node: u64, access: u8) -> Kept {
        Kept::File { handle, node, access }
    }

    #[test]
    fn directories_come_before_what_is_in_them() {
        let mut held = Held::default();
        look_up(&mut held, 1, b"d", 900);
        look_up(&mut held, 900, b"f", 20);
        look_up(&mut held, 900, b"f", 20);
        look_up(&mut held, 900, b"none", 0);
        look_up(&mut held, 1, b".", 1);
        let list = [node(900, 1, "d", 1), node(20, 900, "f", 2)];
        assert_eq!(held.list(false), list);
        held.forgot(20, 1);
        assert_eq!(held.list(false), [node(900, 1, "d", 1), node(20, 900, "f", 1)]);
        held.forgot(900, 1);
        assert_eq!(held.list(false), []);
        held.forgot(20, 9);
        assert!(held.nodes.is_empty() && held.places.is_empty());
    }

    #[test]
    fn a_list_of_a_directory_tells_of_its_entries() {
        let mut held = Held::default();
        let mut answer = Vec::new();
        for (number, name) in [(0, "."), (0, ".."), (7, "a"), (8, "longer name"), (0, "unread")] {
            answer.extend(EntryOut { node: number, ..EntryOut::default() }.as_bytes());
            answer.extend(Dirent { namelen: name.len() as u32, ..Dirent::default() }.as_bytes());
            answer.extend(name.bytes());
            answer.resize(answer.len().next_multiple_of(8), 0);
        }
        let ask = crate::fuse::abi::ReadIn::default();
        learn(&mut held, opcode::READDIRPLUS, 1, &[ask.as_bytes()], &answer);
        let mut list = held.list(false);
        list.sort_by_key(|one| matches!(one, Kept::Node { node: 8, .. }));
        assert_eq!(list, [node(7, 1, "a", 1), node(8, 1, "longer name", 1)]);
        // Cut off anywhere, it says less.
        (0..answer.len())
            .for_each(|length| learn(&mut held, opcode::READDIRPLUS, 1, &[ask.as_bytes()], &answer[..length]));
    }

    #[test]
    fn names_move() {
        let rename = |held: &mut Held, flags: u32, from: &[u8], to: &[u8]| {
            let (directory, flags) = (1u64.to_le_bytes(), flags.to_le_bytes());
            learn(held, opcode::RENAME2, 1, &[&directory, &flags, &[0; 4], from, b"\0", to, b"\0"], &[]);
        };
        let mut held = Held::default();
        look_up(&mut held, 1, b"a", 7);
        look_up(&mut held, 1, b"b", 8);
        rename(&mut held, EXCHANGE, b"a", b"b");
        let sorted = |held: &Held| {
            let mut list = held.list(false);
            list.sort_by_key(|one| matches!(one, Kept::Node { node: 8, .. }));
            list
        };
        assert_eq!(sorted(&held), [node(7, 1, "b", 1), node(8, 1, "a", 1)]);
        // Over another, which then has no name any more; it is not found, and is then said to be lost.
        rename(&mut held, 0, b"b", b"a");
        assert_eq!(sorted(&held), [node(7, 1, "a", 1), node(8, 1, "a", 1)]);
        held.lost(&node(8, 1, "a", 1));
        rename(&mut held, 0, b"a", b"c");
        assert_eq!(sorted(&held), [node(7, 1, "c", 1)]);
    }

    #[test]
    fn only_files_that_can_go_on_are_told_of() {
        let mut held = Held::default();
        open(&mut held, 7, libc::O_RDONLY, 50);
        open(&mut held, 7, libc::O_RDWR | libc::O_APPEND, 51);
        assert_eq!(held.list(false), [file(50, 7, 0), file(51, 7, 2)]);
        assert_eq!(held.list(true), [file(50, 7, 0)]);
        const ALL: u64 = i64::MAX as u64;
        lock(&mut held, 50, libc::F_RDLCK, 9);
        assert_eq!(held.list(false), [], "a lock is on the file, not on what was opened");
        lock(&mut held, 50, libc::F_UNLCK, 5);
        lock_of(&mut held, 50, (2, 0), libc::F_UNLCK, ALL);
        lock_of(&mut held, 50, (1, LK_FLOCK), libc::F_UNLCK, ALL);
        assert_eq!(held.list(false), [], "others have released none of it");
        lock(&mut held, 51, libc::F_UNLCK, ALL);
        assert_eq!(held.list(false), [file(50, 7, 0), file(51, 7, 2)]);
        lock_of(&mut held, 50, (1, LK_FLOCK), libc::F_WRLCK, ALL);
        assert_eq!(held.list(false), [file(51, 7, 2)]);
        lock_of(&mut held, 50, (1, LK_FLOCK), libc::F_UNLCK, ALL);
        assert_eq!(held.list(false), [file(50, 7, 0), file(51, 7, 2)]);
        lock(&mut held, 51, libc::F_RDLCK, 9);
        let flush = crate::fuse::abi::FlushIn { fh: 50, lock_owner: 1, ..Default::default() };
        learn(&mut held, opcode::FLUSH, 7, &[flush.as_bytes()], &[]);
        assert_eq!(held.list(false), [file(50, 7, 0), file(51, 7, 2)], "who closes a file gives up all of its locks");
        assert!(held.closed(50) && !held.closed(50));
        held.lost(&file(51, 7, 2));
        assert_eq!(held.list(false), []);
    }

    #[test]
    fn what_was_made_is_known_and_open() {
        let mut held = Held::default();
        let ask = crate::fuse::abi::CreateIn { flags: libc::O_WRONLY as u32, ..Default::default() };
        let (entry, open) = (EntryOut { node: 7, ..EntryOut::default() }, OpenOut { fh: 5, ..OpenOut::default() });
        let answer = [entry.as_bytes(), open.as_bytes()].concat();
        learn(&mut held, opcode::CREATE, 1, &[ask.as_bytes(), b"new\0"], &answer);
        assert_eq!(held.list(false), [node(7, 1, "new", 1), file(5, 7, 1)]);
    }
}
