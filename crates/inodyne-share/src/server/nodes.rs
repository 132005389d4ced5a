//! What guests know of the directory that is shared: a table of nodes, fed by what they are told and what they forget.
//!
//! A node's number is ours and means one file for ever, though the file system uses its own numbers again: it is made of what tells the
//! file from every other one, device, inode number and time of birth. So a host that was started anew gives a file the number that
//! the host before it gave, and a guest that kept the number may go on with it (`resume`). Where the file system knows no time of
//! birth, numbers are given one after the other, and mean nothing to another host.
//!
//! A node holds no descriptor; it knows under which names it was last seen, and is found again by them (`export`). Its directories stay
//! known as long as it does, for the sake of their names.

use std::{
    collections::HashMap,
    ffi::{CStr, CString},
    hash::{BuildHasher, RandomState},
};

use ring::digest::{SHA256, digest};

/// A node's number: what the kernel's protocol calls a node id.
pub(crate) type NodeId = u64;

/// The number of a guest.
pub(crate) type GuestId = u32;

/// The directory that is shared.
pub(crate) const ROOT: NodeId = crate::fuse::abi::ROOT;

/// More names of one file than this are forgotten, the oldest first.
const MOST_NAMES: usize = 8;

/// What tells a file from every other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub device: u64,
    pub inode: u64,
    /// Nanoseconds since 1970; 0 where the file system does not know it.
    pub born: i128,
}

impl Identity {
    /// The same in 64 bits, as seen from a share whose root is on this device.
    pub fn digest(&self, root: u64) -> u64 {
        let device = if self.device == root { 0 } else { self.device };
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&device.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.inode.to_le_bytes());
        bytes[16..].copy_from_slice(&self.born.to_le_bytes());
        let digest = digest(&SHA256, &bytes);
        digest.as_ref().first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
    }
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub directory: NodeId,
    pub name: CString,
}

#[derive(Debug)]
struct Node {
    identity: Identity,
    /// The latest last.
    names: Vec<Name>,
    /// Who was told of it how often, less how often he forgot it.
    holders: Vec<(GuestId, u64)>,
    /// How many names of other nodes are in this directory.
    names_below: usize,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Nodes {
    nodes: HashMap<NodeId, Node>,
    numbers: HashMap<Identity, NodeId>,
    /// The device of the root: it may have another number after the machine has started anew.
    device: u64,
    /// The last number that was given to a file without a time of birth.
    last: NodeId,
}

/// Numbers that are made of what files are. Those that are given one after the other do not have this bit.
const MADE: NodeId = 1 << 63;

impl Nodes {
    /// With the root only.
    pub fn new(root: Identity) -> Self {
        let node = Node { identity: root, names: Vec::new(), holders: Vec::new(), names_below: 0 };
        // Those of another host mean nothing here.
        let last = RandomState::new().hash_one(ROOT) & (MADE - 1) | 1 << 32;
        let (nodes, numbers) = (HashMap::from([(ROOT, node)]), HashMap::from([(root, ROOT)]));
        Self { nodes, numbers, device: root.device, last }
    }

    /// Notes that a guest is told of the file that has this name now, and says under which number.
    pub fn tell(&mut self, guest: GuestId, identity: Identity, directory: NodeId, name: &CStr) -> NodeId {
        let number = self.numbers.get(&identity).copied().unwrap_or_else(|| {
            let number = self.new_number(&identity);
            let node = Node { identity, names: Vec::new(), holders: Vec::new(), names_below: 0 };
            self.nodes.insert(number, node);
            self.numbers.insert(identity, number);
            number
        });
        self.named(number, directory, name);
        if number != ROOT
            && let Some(node) = self.nodes.get_mut(&number)
        {
            match node.holders.iter_mut().find(|(holder, _)| *holder == guest) {
                Some((_, times)) => *times += 1,
                None => node.holders.push((guest, 1)),
            }
        }
        number
    }

    fn new_number(&mut self, identity: &Identity) -> NodeId {
        if identity.born == 0 {
            self.last = (self.last + 1) & (MADE - 1);
            return self.last;
        }
        let mut number = identity.digest(self.device) | MADE;
        while self.nodes.contains_key(&number) {
            number = number.wrapping_add(1) | MADE;
        }
        number
    }

    /// Notes that a guest knows a node more often.
    pub fn tell_more(&mut self, guest: GuestId, number: NodeId, times: u64) {
        let holders = self.nodes.get_mut(&number).map(|node| &mut node.holders);
        if let Some((_, known)) = holders.into_iter().flatten().find(|(holder, _)| *holder == guest) {
            *known = known.saturating_add(times);
        }
    }

    /// Notes that a guest has forgotten what it was told so often. Returns the nodes that are not known any more.
    pub fn forget(&mut self, guest: GuestId, number: NodeId, times: u64) -> Vec<NodeId> {
        if let Some(node) = self.nodes.get_mut(&number)
            && let Some(at) = node.holders.iter().position(|(holder, _)| *holder == guest)
        {
            let known = &mut node.holders[at].1;
            *known = known.saturating_sub(times);
            if *known == 0 {
                node.holders.swap_remove(at);
            }
        }
        self.sweep(number)
    }

    /// Notes that a guest is gone. Returns the nodes that are not known any more.
    pub fn leave(&mut self, guest: GuestId) -> Vec<NodeId> {
        for node in self.nodes.values_mut() {
            node.holders.retain(|(holder, _)| *holder != guest);
        }
        let all: Vec<NodeId> = self.nodes.keys().copied().collect();
        all.into_iter().flat_map(|number| self.sweep(number)).collect()
    }

    /// Removes a node that nobody needs, and what was there only for its names.
    fn sweep(&mut self, number: NodeId) -> Vec<NodeId> {
        let mut gone = Vec::new();
        let mut look_at = vec![number];
        while let Some(number) = look_at.pop() {
            let is_needed = |node: &Node| number == ROOT || !node.holders.is_empty() || node.names_below > 0;
            if self.nodes.get(&number).is_none_or(is_needed) {
                continue;
            }
            let Some(node) = self.nodes.remove(&number) else { continue };
            if self.numbers.get(&node.identity) == Some(&number) {
                self.numbers.remove(&node.identity);
            }
            for name in node.names {
                self.release(name.directory);
                look_at.push(name.directory);
            }
            gone.push(number);
        }
        gone
    }

    fn release(&mut self, directory: NodeId) {
        if let Some(directory) = self.nodes.get_mut(&directory) {
            directory.names_below = directory.names_below.saturating_sub(1);
        }
    }

    /// Notes that a file has this name.
    pub fn named(&mut self, number: NodeId, directory: NodeId, name: &CStr) {
        let Some(node) = self.nodes.get_mut(&number).filter(|_| number != ROOT && number != directory) else { return };
        let is_same = |known: &Name| known.directory == directory && *known.name == *name;
        if node.names.last().is_some_and(is_same) {
            return;
        }
        if let Some(at) = node.names.iter().position(is_same) {
            // The latest last.
            node.names[at..].rotate_left(1);
            return;
        }
        node.names.push(Name { directory, name: name.into() });
        let oldest = (node.names.len() > MOST_NAMES).then(|| node.names.remove(0));
        if let Some(directory) = self.nodes.get_mut(&directory) {
            directory.names_below += 1;
        }
        if let Some(oldest) = oldest {
            self.release(oldest.directory);
        }
    }

    /// Notes that a file has this name no more.
    pub fn unnamed(&mut self, number: NodeId, directory: NodeId, name: &CStr) -> Vec<NodeId> {
        let Some(node) = self.nodes.get_mut(&number) else { return Vec::new() };
        let is_it = |known: &Name| known.directory == directory && *known.name == *name;
        if let Some(at) = node.names.iter().position(is_it) {
            node.names.remove(at);
            self.release(directory);
        }
        self.sweep(directory)
    }

    /// The number of a file, if anybody knows it.
    pub fn number(&self, identity: &Identity) -> Option<NodeId> {
        self.numbers.get(identity).copied()
    }

    /// What a number means.
    pub fn identity(&self, number: NodeId) -> Option<Identity> {
        self.nodes.get(&number).map(|node| node.identity)
    }

    /// The names of a node, the latest first.
    pub fn names(&self, number: NodeId) -> impl Iterator<Item = &Name> {
        self.nodes.get(&number).into_iter().flat_map(|node| node.names.iter().rev())
    }

    /// The guests that hold a node; of the root all that there are.
    pub fn holds(&self, guest: GuestId, number: NodeId) -> bool {
        let held = |node: &Node| node.holders.iter().any(|(holder, _)| *holder == guest);
        number == ROOT || self.nodes.get(&number).is_some_and(held)
    }

    /// Everything that a guest holds.
    pub fn held_by(&self, guest: GuestId) -> Vec<NodeId> {
        self.nodes.keys().copied().filter(|number| self.holds(guest, *number)).collect()
    }

    /// How many nodes are known.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn identity(inode: u64) -> Identity {
        Identity { device: 1, inode, born: 0 }
    }

    #[test]
    fn a_number_lasts_until_every_guest_has_forgotten_it_and_never_comes_back() {
        let mut nodes = Nodes::new(identity(2));
        let number = nodes.tell(1, identity(10), ROOT, c"a");
        assert_eq!(nodes.tell(2, identity(10), ROOT, c"b"), number);
        assert_eq!(nodes.names(number).map(|name| name.name.as_c_str()).collect::<Vec<_>>(), [c"b", c"a"]);
        assert!(nodes.forget(1, number, 1).is_empty());
        assert!(nodes.holds(2, number) && !nodes.holds(1, number));
        assert_eq!(nodes.forget(2, number, 9), [number]);
        assert_ne!(nodes.tell(1, identity(10), ROOT, c"a"), number);
        assert_eq!(nodes.tell(1, identity(2), ROOT, c"."), ROOT);
    }

    #[test]
    fn another_host_gives_a_file_its_number_again_or_one_that_nobody_knows() {
        let told = |device, inode, born| {
            let mut nodes = Nodes::new(Identity { device, inode: 2, born: 1 });
            nodes.tell(1, Identity { device, inode, born }, ROOT, c"a")
        };
        assert_eq!(told(1, 10, 7), told(1, 10, 7));
        assert_eq!(told(1, 10, 7), told(5, 10, 7));
        assert_ne!(told(1, 10, 7), told(1, 10, 8));
        assert_ne!(told(1, 10, 7), told(1, 11, 7));
        assert_ne!(told(1, 10, 0), told(1, 10, 0));
    }

    #[test]
    fn two_files_never_have_one_number() {
        let file = Identity { device: 1, inode: 10, born: 7 };
        let mut nodes = Nodes::new(Identity { device: 1, inode: 2, born: 1 });
        let number = nodes.tell(1, file, ROOT, c"a");
        // As if another one had the same digest.
        nodes.numbers.remove(&file);
        assert_ne!(nodes.tell(1, file, ROOT, c"b"), number);
    }

    #[test]
    fn a_directory_stays_for_what_is_below_it() {
        let mut nodes = Nodes::new(identity(2));
        let directory = nodes.tell(1, identity(10), ROOT, c"d");
        let file = nodes.tell(1, identity(11), directory, c"f");
        assert!(nodes.forget(1, directory, 1).is_empty());
        assert_eq!(nodes.forget(1, file, 1), [file, directory]);
        assert_eq!(nodes.count(), 1);
    }

    proptest! {
        #[test]
        fn nothing_is_left_of_guests_that_are_gone(
            steps in prop::collection::vec((0u32..3, 3u64..12, 0u64..12, 0usize..3, 0u8..4), 0..120),
        ) {
            let mut nodes = Nodes::new(identity(2));
            for (guest, inode, directory, name, what) in steps {
                let name = [c"a", c"b", c"c"][name];
                let directory = nodes.number(&identity(directory)).unwrap_or(ROOT);
                let number = nodes.number(&identity(inode)).unwrap_or(ROOT);
                match what {
                    0 | 1 => drop(nodes.tell(guest, identity(inode), directory, name)),
                    2 => drop(nodes.forget(guest, number, 1)),
                    _ => drop(nodes.unnamed(number, directory, name)),
                }
                for number in nodes.held_by(guest) {
                    prop_assert!(nodes.identity(number).is_some());
                }
            }
            for guest in 0..3 {
                nodes.leave(guest);
            }
            // Directories that were made to hold each other, which no file system has, keep each other.
            let is_cycle_free = nodes.nodes.values().all(|node| node.names.iter().all(|name| name.directory == ROOT));
            if is_cycle_free {
                prop_assert_eq!(nodes.count(), 1);
            }
            let below = nodes.nodes.values().map(|node| node.names_below).sum::<usize>();
            prop_assert_eq!(below, nodes.nodes.values().map(|node| node.names.len()).sum::<usize>());
        }
    }
}
