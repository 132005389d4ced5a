//! Keeps the number of open directories bounded, whatever the shape of the tree.
//!
//! Each worker notes the directories that it opened. When there are too many, those that are gone are forgotten, and
//! if that does not help, the oldest, and so the one highest in the tree, is parked: in depth-first order it is the one that
//! will not be needed for longest. The same idea keeps `fts` within its limits.

use std::{
    collections::VecDeque,
    os::fd::OwnedFd,
    sync::{Arc, Weak},
};

use rustix::io::Errno;

use super::node::Node;

/// The directories that one worker opened and that may still be open. Another worker that runs out of descriptors may
/// park some of them too.
pub(super) struct DirFdCache {
    opened: VecDeque<Weak<Node>>,
    limit: usize,
}

impl DirFdCache {
    pub fn new(limit: usize) -> Self {
        Self { opened: VecDeque::new(), limit: limit.max(2) }
    }

    /// The descriptor of a directory, which counts as opened here if it had been parked.
    pub fn descriptor(&mut self, node: &Arc<Node>) -> Result<Arc<OwnedFd>, Errno> {
        if let Some(open) = node.if_open() {
            return Ok(open);
        }
        let descriptor = node.descriptor()?;
        self.note(node);
        Ok(descriptor)
    }

    /// Notes an open directory; parks the oldest if there are too many.
    pub fn note(&mut self, node: &Arc<Node>) {
        // The directory that an operand is in must stay open: only a path leads there, and that may lead elsewhere by now.
        if node.parent.is_none() {
            return;
        }
        if self.opened.len() >= self.limit {
            self.opened.retain(|node| node.strong_count() > 0);
        }
        while self.opened.len() >= self.limit {
            self.park_oldest();
        }
        self.opened.push_back(Arc::downgrade(node));
    }

    /// Parks half of what is open, because descriptors ran out; false if there was nothing to park.
    pub fn close_half(&mut self) -> bool {
        let half = self.opened.len().div_ceil(2);
        (0..half).for_each(|_| self.park_oldest());
        half > 0
    }

    fn park_oldest(&mut self) {
        if let Some(node) = self.opened.pop_front().and_then(|node| node.upgrade()) {
            node.park();
        }
    }
}
