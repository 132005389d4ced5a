//! Entries of a directory in the order of their inodes.
//!
//! ext4 lists names in the order of their hashes, so its inodes come in no order at all: each unlink would touch another
//! block of the inode table, read it, and lock it in the journal. In the order of the inodes, sixteen neighbours share a
//! block, and workers that take pieces of the order stay out of each other's blocks. GNU rm sorts large directories too.

use std::{
    ffi::CStr,
    mem,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::node::Node;

/// Names that have been read and wait to be sorted.
#[derive(Default)]
pub(super) struct Unsorted {
    text: Vec<u8>,
    /// Inode, and where the name begins in `text`.
    entries: Vec<(u64, u32)>,
}

impl Unsorted {
    /// As many as are sorted together: a few megabytes for each worker at most.
    pub const ENOUGH: usize = 1 << 16;

    pub fn push(&mut self, inode: u64, name: &CStr) {
        self.entries.push((inode, self.text.len() as u32));
        self.text.extend_from_slice(name.to_bytes_with_nul());
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Calls `remove` with each name, in the order of their inodes. Nothing is left afterwards.
    pub fn drain(&mut self, remove: impl FnMut(&CStr)) {
        self.entries.sort_unstable();
        self.names(0..self.entries.len()).for_each(remove);
        self.entries.clear();
        self.text.clear();
    }

    /// Takes all names, for several workers to remove them from `directory`.
    pub fn share(&mut self, directory: &Arc<Node>) -> Shared {
        let mut names = mem::take(self);
        names.entries.sort_unstable();
        Shared { directory: directory.clone(), names, next: AtomicUsize::new(0) }
    }

    fn names(&self, range: Range<usize>) -> impl Iterator<Item = &CStr> {
        self.entries[range]
            .iter()
            .filter_map(|&(_, start)| CStr::from_bytes_until_nul(&self.text[start as usize..]).ok())
    }
}

/// Sorted names of one directory, from which workers take one piece after the other, so that all end at the same time.
pub(super) struct Shared {
    pub directory: Arc<Node>,
    names: Unsorted,
    next: AtomicUsize,
}

impl Shared {
    /// A few blocks of the inode table.
    const PIECE: usize = 64;

    /// The next names in the order of their inodes; none once everything is taken.
    pub fn piece(&self) -> Option<impl Iterator<Item = &CStr>> {
        let first = self.next.fetch_add(Self::PIECE, Ordering::Relaxed);
        let end = first.saturating_add(Self::PIECE).min(self.names.len());
        (first < end).then(|| self.names.names(first..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn four() -> Unsorted {
        let mut names = Unsorted::default();
        for (inode, name) in [(7, c"seven"), (1, c"one"), (9, c""), (3, c"\xff")] {
            names.push(inode, name);
        }
        names
    }

    const SORTED: [&CStr; 4] = [c"one", c"\xff", c"seven", c""];

    #[test]
    fn names_come_in_the_order_of_their_inodes() {
        let (mut names, mut seen) = (four(), Vec::new());
        names.drain(|name| seen.push(name.to_owned()));
        assert_eq!(seen, SORTED.map(CStr::to_owned));
        assert_eq!(names.len(), 0);
        names.drain(|_| panic!("nothing is left"));
    }

    #[test]
    fn shared_names_are_taken_once() {
        let mut names = four();
        let shared = names.share(&Node::base(b""));
        assert_eq!(names.len(), 0);
        assert!(shared.piece().is_some_and(|piece| piece.eq(SORTED)));
        assert!(shared.piece().is_none() && shared.piece().is_none());

        (0..1000).for_each(|inode| names.push(inode, c"x"));
        let shared = names.share(&Node::base(b""));
        let count = || std::iter::from_fn(|| shared.piece()).map(Iterator::count).sum::<usize>();
        let taken = std::thread::scope(|scope| [scope.spawn(count), scope.spawn(count)].map(|it| it.join().unwrap()));
        assert_eq!(taken.iter().sum::<usize>(), 1000);
    }
}
