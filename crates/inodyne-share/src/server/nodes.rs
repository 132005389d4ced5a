//! What guests know of the directory that is shared: a table of nodes, fed by what they are told and what they forget.
//!
//! A node's number is ours and means one file for ever, though the file system reuses its own numbers: it is derived from what distinguishes the
//! file from every other one: device, inode number and birth time. So a host that was restarted gives a file the number that
//! the host before it gave, and a guest that kept the number may carry on with it (`resume`). Where the file system has no birth
//! time, numbers are given one after the other, and mean nothing to another host.
//!
//! A node holds no descriptor; it knows under which names it was last seen, and is found again by them (`export`). Its directories stay
//! known as long as it does, for the sake of their names.

use std::{
    collections::HashMap,
    ffi::{CStr, CString},
    hash::{BuildHasher, Hash, RandomState},
};

use ring::digest::{SHA256, digest};
use smallvec::SmallVec;

/// A node's number: what the kernel's protocol calls a node id.
pub(crate) type NodeId = u64;

/// The number of a guest.
pub(crate) type GuestId = u32;

/// The directory that is shared.
pub(crate) const ROOT: NodeId = crate::fuse::abi::ROOT;

/// More names of one file than this are forgotten, the oldest first.
const MOST_NAMES: usize = 8;

/// Room for this many nodes is always kept.
const FEW: usize = 1024;

/// What tells a file from every other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub device: u64,
    pub inode: u64,
    /// Nanoseconds since 1970; 0 where the file system does not know it.
    pub born: i64,
}

impl Identity {
    /// The same in 64 bits, as seen from a share whose root is on this device.
    pub fn digest(&self, root: u64) -> u64 {
        let device = if self.device == root { 0 } else { self.device };
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&device.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.inode.to_le_bytes());
        bytes[16..].copy_from_slice(&i128::from(self.born).to_le_bytes());
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

/// There may be millions; most have one name, which needs no list of its own.
#[derive(Debug)]
struct Node {
    identity: Identity,
    /// The latest last.
    names: SmallVec<[Name; 1]>,
    /// How many guests hold it.
    holders: u32,
    /// How many names of other nodes are in this directory.
    names_below: u32,
}

impl Node {
    /// Without a name, held by nobody.
    fn new(identity: Identity) -> Self {
        Self { identity, names: SmallVec::new(), holders: 0, names_below: 0 }
    }
}

/// The table.
#[derive(Debug)]
pub(crate) struct Nodes {
    nodes: HashMap<NodeId, Node>,
    numbers: HashMap<Identity, NodeId>,
    /// What each guest holds, the root apart: how often it was told of a node, less how often it forgot it.
    held: HashMap<GuestId, HashMap<NodeId, u64>>,
    /// The device of the root: it may have another number after the machine has restarted.
    device: u64,
    /// The last number that was given to a file without a birth time.
    last: NodeId,
}

/// Set in numbers that are derived from what files are. Those that are given one after the other do not have this bit.
const MADE: NodeId = 1 << 63;

impl Nodes {
    /// With the root only.
    pub fn new(root: Identity) -> Self {
        // Those of another host mean nothing here.
        let last = RandomState::new().hash_one(ROOT) & (MADE - 1) | 1 << 32;
        let (nodes, numbers) = (HashMap::from([(ROOT, Node::new(root))]), HashMap::from([(root, ROOT)]));
        Self { nodes, numbers, held: HashMap::new(), device: root.device, last }
    }

    /// Notes that a guest is told of the file that has this name now, and returns its number.
    pub fn tell(&mut self, guest: GuestId, identity: Identity, directory: NodeId, name: &CStr) -> NodeId {
        let number = self.numbers.get(&identity).copied().unwrap_or_else(|| {
            let number = self.new_number(&identity);
            self.nodes.insert(number, Node::new(identity));
            self.numbers.insert(identity, number);
            number
        });
        let left = self.name(number, directory, name);
        if number != ROOT
            && let Some(node) = self.nodes.get_mut(&number)
        {
            let times = self.held.entry(guest).or_default().entry(number).or_default();
            node.holders += u32::from(*times == 0);
            *times = times.saturating_add(1);
        }
        if let Some(left) = left {
            self.sweep(left);
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

    /// Notes that a guest was told of a node this many times more.
    pub fn tell_more(&mut self, guest: GuestId, number: NodeId, times: u64) {
        if let Some(known) = self.held.get_mut(&guest).and_then(|held| held.get_mut(&number)) {
            *known = known.saturating_add(times);
        }
    }

    /// Notes that a guest has forgotten a node this many times. Returns the nodes that are not known any more.
    pub fn forget(&mut self, guest: GuestId, number: NodeId, times: u64) -> Vec<NodeId> {
        let held = self.held.get_mut(&guest);
        let Some((held, known)) = held.and_then(|held| Some((held.get(&number).copied()?, held))) else {
            return Vec::new();
        };
        if held > times {
            known.insert(number, held - times);
            return Vec::new();
        }
        known.remove(&number);
        shrink(known);
        self.release_holder(number);
        self.sweep(number)
    }

    /// Notes that a guest is gone. Returns the nodes that are not known any more.
    pub fn leave(&mut self, guest: GuestId) -> Vec<NodeId> {
        let held = self.held.remove(&guest).unwrap_or_default();
        held.keys().for_each(|number| self.release_holder(*number));
        held.into_keys().flat_map(|number| self.sweep(number)).collect()
    }

    fn release_holder(&mut self, number: NodeId) {
        if let Some(node) = self.nodes.get_mut(&number) {
            node.holders = node.holders.saturating_sub(1);
        }
    }

    /// Removes a node that nobody needs, and what was there only for its names.
    fn sweep(&mut self, number: NodeId) -> Vec<NodeId> {
        let mut gone = Vec::new();
        let mut look_at = vec![number];
        while let Some(number) = look_at.pop() {
            let is_needed = |node: &Node| number == ROOT || node.holders > 0 || node.names_below > 0;
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
        shrink(&mut self.nodes);
        shrink(&mut self.numbers);
        gone
    }

    fn release(&mut self, directory: NodeId) {
        if let Some(directory) = self.nodes.get_mut(&directory) {
            directory.names_below = directory.names_below.saturating_sub(1);
        }
    }

    /// Notes that a file has this name.
    pub fn named(&mut self, number: NodeId, directory: NodeId, name: &CStr) {
        if let Some(left) = self.name(number, directory, name) {
            self.sweep(left);
        }
    }

    /// The same. Returns the directory of a name that was forgotten to make room, which perhaps nobody needs any more.
    fn name(&mut self, number: NodeId, directory: NodeId, name: &CStr) -> Option<NodeId> {
        let node = self.nodes.get_mut(&number).filter(|_| number != ROOT && number != directory)?;
        let is_same = |known: &Name| known.directory == directory && *known.name == *name;
        if node.names.last().is_some_and(is_same) {
            return None;
        }
        if let Some(at) = node.names.iter().position(is_same) {
            // The latest last.
            node.names[at..].rotate_left(1);
            return None;
        }
        node.names.push(Name { directory, name: name.into() });
        let oldest = (node.names.len() > MOST_NAMES).then(|| node.names.remove(0).directory);
        if let Some(directory) = self.nodes.get_mut(&directory) {
            directory.names_below += 1;
        }
        oldest.inspect(|oldest| self.release(*oldest))
    }

    /// Notes that a file no longer has this name.
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

    /// Whether a guest holds a node; the root is held by all that there are.
    pub fn holds(&self, guest: GuestId, number: NodeId) -> bool {
        number == ROOT || self.held.get(&guest).is_some_and(|held| held.contains_key(&number))
    }

    /// Everything that a guest holds.
    pub fn held_by(&self, guest: GuestId) -> Vec<NodeId> {
        self.held.get(&guest).into_iter().flat_map(HashMap::keys).copied().chain([ROOT]).collect()
    }

    /// How many nodes a guest holds, the root apart.
    pub fn held_count(&self, guest: GuestId) -> usize {
        self.held.get(&guest).map_or(0, HashMap::len)
    }

    /// How many nodes are known.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }
}

/// Gives back memory of which little is used.
fn shrink<K: Eq + Hash, V>(map: &mut HashMap<K, V>) {
    let used = map.len().max(FEW);
    if map.capacity() > 8 * used {
        map.shrink_to(2 * used);
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
    fn however_often_a_guest_is_told_of_a_node_it_can_be_forgotten() {
        let mut nodes = Nodes::new(identity(2));
        let number = nodes.tell(1, identity(10), ROOT, c"a");
        nodes.tell_more(1, number, u64::MAX);
        (0..2).for_each(|_| assert_eq!(nodes.tell(1, identity(10), ROOT, c"a"), number));
        assert_eq!(nodes.forget(1, number, u64::MAX), [number]);
        assert_eq!(nodes.count(), 1);
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

    #[test]
    fn a_directory_of_which_a_name_was_forgotten_goes_too() {
        let mut nodes = Nodes::new(identity(2));
        for inode in 10..30 {
            let directory = nodes.tell(1, identity(inode), ROOT, c"d");
            nodes.tell(1, identity(9), directory, c"link");
            nodes.forget(1, directory, 1);
        }
        assert_eq!(
            (nodes.count(), nodes.held_count(1)),
            (2 + MOST_NAMES, 1),
            "the root, the file, and where it has its names"
        );
        nodes.leave(1);
        assert_eq!((nodes.count(), nodes.held_count(1)), (1, 0));
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
                let held = nodes.held_by(guest);
                prop_assert_eq!(held.len(), nodes.held_count(guest) + 1, "and the root");
                prop_assert!(held.iter().all(|number| nodes.identity(*number).is_some() && nodes.holds(guest, *number)));
            }
            for guest in 0..3 {
                nodes.leave(guest);
            }
            // Directories that were made to hold each other, which no file system has, keep each other.
            let is_cycle_free = nodes.nodes.values().all(|node| node.names.iter().all(|name| name.directory == ROOT));
            if is_cycle_free {
                prop_assert_eq!(nodes.count(), 1);
            }
            let below = nodes.nodes.values().map(|node| node.names_below as usize).sum::<usize>();
            prop_assert_eq!(below, nodes.nodes.values().map(|node| node.names.len()).sum::<usize>());
        }
    }
}
