//! Descriptors of recently used nodes, so that not every request resolves names anew; and never more than a fixed number, whatever a
//! guest asks for. Which one goes is decided by the second-chance algorithm: a hand goes round and takes the first that was not used since
//! it last came by.

use std::{collections::HashMap, os::fd::OwnedFd, sync::Arc};

use super::nodes::NodeId;

#[derive(Debug)]
struct Slot {
    node: NodeId,
    descriptor: Arc<OwnedFd>,
    was_used: bool,
}

/// The descriptors.
#[derive(Debug)]
pub(crate) struct Descriptors {
    slots: Vec<Slot>,
    places: HashMap<NodeId, usize>,
    most: usize,
    hand: usize,
}

impl Descriptors {
    /// At most this many.
    pub fn new(most: usize) -> Self {
        Self { slots: Vec::new(), places: HashMap::new(), most: most.max(1), hand: 0 }
    }

    /// That of a node, if it is there.
    pub fn get(&mut self, node: NodeId) -> Option<Arc<OwnedFd>> {
        let slot = &mut self.slots[*self.places.get(&node)?];
        slot.was_used = true;
        Some(slot.descriptor.clone())
    }

    /// Keeps one.
    pub fn put(&mut self, node: NodeId, descriptor: Arc<OwnedFd>) {
        self.remove(node);
        if self.slots.len() < self.most {
            self.places.insert(node, self.slots.len());
            self.slots.push(Slot { node, descriptor, was_used: false });
            return;
        }
        while std::mem::take(&mut self.slots[self.hand].was_used) {
            self.hand = (self.hand + 1) % self.slots.len();
        }
        let old = std::mem::replace(&mut self.slots[self.hand], Slot { node, descriptor, was_used: false });
        self.places.remove(&old.node);
        self.places.insert(node, self.hand);
        self.hand = (self.hand + 1) % self.slots.len();
    }

    /// Closes that of a node, once nobody uses it.
    pub fn remove(&mut self, node: NodeId) {
        let Some(at) = self.places.remove(&node) else { return };
        self.slots.swap_remove(at);
        if let Some(moved) = self.slots.get(at) {
            self.places.insert(moved.node, at);
        }
        self.hand = if self.slots.is_empty() { 0 } else { self.hand % self.slots.len() };
    }

    /// Closes all.
    pub fn clear(&mut self) {
        *self = Self::new(self.most);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use proptest::prelude::*;

    use super::*;

    fn descriptor() -> Arc<OwnedFd> {
        Arc::new(File::open("/dev/null").unwrap().into())
    }

    #[test]
    fn what_was_used_stays() {
        let mut descriptors = Descriptors::new(3);
        (1..=3).for_each(|node| descriptors.put(node, descriptor()));
        assert!(descriptors.get(1).is_some());
        descriptors.put(4, descriptor());
        assert!(descriptors.get(1).is_some() && descriptors.get(2).is_none());
    }

    proptest! {
        #[test]
        fn there_are_never_too_many_and_each_is_its_node_s(steps in prop::collection::vec((0u64..9, 0u8..4), 0..200)) {
            let mut descriptors = Descriptors::new(4);
            let all: Vec<_> = (0..9).map(|_| descriptor()).collect();
            for (node, what) in steps {
                match what {
                    0 | 1 => descriptors.put(node, all[node as usize].clone()),
                    2 => descriptors.remove(node),
                    _ => drop(descriptors.get(node)),
                }
                prop_assert!(descriptors.count() <= 4);
                for node in 0..9 {
                    if let Some(found) = descriptors.get(node) {
                        prop_assert!(Arc::ptr_eq(&found, &all[node as usize]));
                    }
                }
                prop_assert_eq!(descriptors.places.len(), descriptors.count());
            }
        }
    }
}
