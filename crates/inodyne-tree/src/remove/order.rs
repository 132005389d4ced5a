//! Entries of a directory in the order of their inodes.
//!
//! ext4 lists names in the order of their hashes, so its inodes come in no order at all: each unlink would touch another
//! block of the inode table, read it, and lock it in the journal. In the order of the inodes, sixteen neighbours share a
//! block, and workers that take pieces of the order stay out of each other's blocks. GNU rm sorts large directories too.

use std::ffi::CStr;

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

    /// Calls `use_piece` with pieces of at most `most` names, which follow each other in the order of their inodes. Nothing
    /// is left then.
    pub fn drain(&mut self, most: usize, mut use_piece: impl FnMut(&mut dyn Iterator<Item = &CStr>)) {
        self.entries.sort_unstable();
        let name = |&(_, start): &(u64, u32)| CStr::from_bytes_until_nul(&self.text[start as usize..]).ok();
        for piece in self.entries.chunks(most.max(1)) {
            use_piece(&mut piece.iter().filter_map(name));
        }
        self.entries.clear();
        self.text.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_in_the_order_of_their_inodes() {
        let mut names = Unsorted::default();
        for (inode, name) in [(7, c"seven"), (1, c"one"), (9, c""), (3, c"\xff")] {
            names.push(inode, name);
        }
        let mut seen = Vec::new();
        names.drain(3, |piece| seen.push(piece.map(CStr::to_owned).collect::<Vec<_>>()));
        assert_eq!(seen, [vec![c"one".to_owned(), c"\xff".to_owned(), c"seven".to_owned()], vec![c"".to_owned()]]);
        assert_eq!(names.len(), 0);
        names.drain(3, |_| panic!("nothing is left"));
    }
}
