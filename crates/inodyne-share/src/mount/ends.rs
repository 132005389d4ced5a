//! Where directories end. The host says so with the answer that holds the last entry; the kernel asks all the same for what comes after
//! it, and is answered here. Whoever reads a directory may never ask, and what is made there later may come after that entry: where
//! positions are counts (overlayfs, tmpfs), somebody else who has read as far would not find it. So an end is forgotten with each name
//! that is made.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use crate::fuse::abi::{InHeader, makes_a_name, opcode, renames_into};

/// For an end that is not asked for within this time, the host is asked again: as long as anything is held of a share that is not watched.
const VALID: Duration = Duration::from_secs(1);

/// The most ends that are kept.
const MOST: usize = 4096;

/// The ends of directories that are being read: by node, the position after the last entry, and when it was noted.
#[derive(Debug, Default)]
pub(super) struct Ends(HashMap<u64, (u64, Instant)>);

impl Ends {
    /// Notes one.
    pub fn put(&mut self, directory: u64, position: u64, now: Instant) {
        if self.0.len() >= MOST {
            self.0.retain(|_, (_, noted)| now.duration_since(*noted) < VALID);
        }
        if self.0.len() < MOST {
            self.0.insert(directory, (position, now));
        }
    }

    /// Notes what the kernel asks: nobody tells the guest of a name that it makes itself.
    pub fn asks(&mut self, header: &InHeader, body: &[u8]) {
        match header.opcode {
            number if makes_a_name(number) => self.forget(header.node),
            opcode::RENAME | opcode::RENAME2 => {
                // Two files may be swapped.
                self.forget(header.node);
                if let Some(new) = renames_into(body) {
                    self.forget(new);
                }
            }
            _ => {}
        }
    }

    /// Whether nothing comes at this position. It holds only once: whoever reads the directory again asks the host.
    pub fn take(&mut self, directory: u64, position: u64, now: Instant) -> bool {
        let is_it = |(end, noted): &(u64, Instant)| *end == position && now.duration_since(*noted) < VALID;
        self.0.get(&directory).is_some_and(is_it) && self.0.remove(&directory).is_some()
    }

    /// The directory has changed, or is no longer known and may change without notice.
    pub fn forget(&mut self, directory: u64) {
        self.0.remove(&directory);
    }

    /// All have.
    pub fn forget_all(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_known_once_and_for_a_while() {
        let (mut ends, now) = (Ends::default(), Instant::now());
        ends.put(1, 10, now);
        ends.put(2, 10, now);
        ends.put(3, 10, now);
        assert!(!ends.take(1, 11, now));
        assert!(ends.take(1, 10, now) && !ends.take(1, 10, now));
        ends.forget(2);
        assert!(!ends.take(2, 10, now));
        assert!(!ends.take(3, 10, now + VALID));
        (0..2 * MOST as u64).for_each(|node| ends.put(node, 0, now));
        assert_eq!(ends.0.len(), MOST);
        ends.forget_all();
        assert!(!ends.take(7, 0, now));
    }

    #[test]
    fn what_the_guest_makes_may_come_after_the_end() {
        let ask = |opcode, node, body: &[u8]| {
            let (mut ends, now) = (Ends::default(), Instant::now());
            (1..=3).for_each(|directory| ends.put(directory, 10, now));
            ends.asks(&InHeader { opcode, node, ..InHeader::default() }, body);
            [1, 2, 3].map(|directory| ends.take(directory, 10, now))
        };
        for opcode in [opcode::CREATE, opcode::MKNOD, opcode::MKDIR, opcode::SYMLINK, opcode::LINK] {
            assert_eq!(ask(opcode, 1, b"name\0"), [false, true, true], "{opcode}");
        }
        for opcode in [opcode::RENAME, opcode::RENAME2] {
            assert_eq!(ask(opcode, 1, &2u64.to_le_bytes()), [false, false, true], "{opcode}");
        }
        for opcode in [opcode::LOOKUP, opcode::UNLINK, opcode::READDIRPLUS] {
            assert_eq!(ask(opcode, 1, b"name\0"), [true; 3], "{opcode}");
        }
    }
}
