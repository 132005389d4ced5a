//! Removing a directory when the last of its entries is gone, and then its parent, and so on up.
//!
//! Whoever ends the last piece of work in a directory removes it; a loop climbs, so a chain of a million directories
//! that all become empty at once needs no stack.

use std::{
    os::fd::OwnedFd,
    sync::{Arc, atomic::Ordering},
};

use rustix::{
    fs::{AtFlags, unlinkat},
    io::Errno,
};

use super::{
    Removed,
    engine::{Engine, Worker},
    node::Node,
};

/// What became of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing in it is left to do; it may be removed itself.
    Empty,
    /// It is not there any more.
    Gone,
    /// Something in it, or it itself, could not be removed.
    Stays,
}

/// How often a directory is read again because it is not empty after all: files appear, or a file system's listing skips
/// entries while others are removed.
pub(super) const REREADS: u32 = 8;

impl Engine<'_> {
    /// Ends one piece of work in a directory; the last one removes it.
    pub fn settle(&self, worker: &Worker, node: Arc<Node>) {
        if node.settle() {
            let outcome = if node.is_spoiled() { Outcome::Stays } else { Outcome::Empty };
            self.conclude(worker, node, outcome);
        }
    }

    /// Deals with a directory in which nothing is going on any more, and with those above it.
    pub fn conclude(&self, worker: &Worker, mut node: Arc<Node>, mut outcome: Outcome) {
        while let Some(parent) = node.parent.clone() {
            if outcome == Outcome::Empty {
                outcome = match self.remove_directory(worker, &node, &parent) {
                    // Or somebody else was faster.
                    Ok(()) | Err(Errno::NOENT) => Outcome::Gone,
                    Err(Errno::NOTEMPTY | Errno::EXIST) if node.rereads.fetch_add(1, Ordering::Relaxed) < REREADS => {
                        node.expect(1);
                        return self.enter_later(worker.id.index, node);
                    }
                    Err(errno @ Errno::NOTDIR) => self.unlink_replacement(worker, &node, &parent, errno),
                    Err(errno) => {
                        self.refuse(&node, None, errno);
                        Outcome::Stays
                    }
                };
            }
            if outcome == Outcome::Stays {
                parent.spoil();
            }
            if let Some(operand) = node.operand {
                self.operand_finished(operand.number);
            }
            if !parent.settle() {
                return;
            }
            outcome = if parent.is_spoiled() { Outcome::Stays } else { Outcome::Empty };
            node = parent;
        }
    }

    /// Removes a directory that should be empty; in a dry run only counts it.
    pub fn remove_directory(&self, worker: &Worker, node: &Arc<Node>, parent: &Arc<Node>) -> Result<(), Errno> {
        if !self.dry_run {
            let descriptor = match parent.if_open() {
                Some(open) => open,
                None => self.reopen_parent(worker, node, parent)?,
            };
            unlinkat(&*descriptor, &node.name, AtFlags::REMOVEDIR)?;
        }
        self.removed_directory(node);
        Ok(())
    }

    /// The descriptor of a directory above that was parked in the meantime.
    fn reopen_parent(&self, worker: &Worker, node: &Node, parent: &Arc<Node>) -> Result<Arc<OwnedFd>, Errno> {
        let descriptor = self.retry_without_descriptors(worker, || match node.if_open() {
            Some(own) => parent.descriptor_from(&own),
            None => parent.descriptor(),
        })?;
        self.fd_cache(worker).note(parent);
        Ok(descriptor)
    }

    /// Counts a directory as gone and tells whoever wants to know.
    pub fn removed_directory(&self, node: &Node) {
        self.control.directories.fetch_add(1, Ordering::Relaxed);
        if self.observer.wants_removed() {
            self.observer.removed(&node.path(None), Removed::Directory);
        }
    }
}
