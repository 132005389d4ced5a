//! Attributes of directories, which the host sends with its answer to a request that changed them. A change in a directory makes the kernel
//! forget the directory's attributes, and ask for them before the next change; that is answered here.
//!
//! What the host said holds until the directory changes again. So it is forgotten with the next request that changes the directory or its
//! access time, and when the host says that somebody else has changed it. It is not even noted where either came between the request and
//! its answer: the host may have looked before that.
//!
//! To be renamed or removed changes a directory too, and such a request does not say which directory that is. So whatever is known is forgotten
//! when one is removed; nobody can change names in it meanwhile (`vfs_rmdir` holds its lock). While a directory is renamed they can, but
//! most that is renamed is none: where it was one, the host says so, by the attributes beside its answer, and only then everything is
//! forgotten, what is under way as well.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use zerocopy::FromBytes;

use crate::fuse::abi::{AttrOut, GETATTR_FH, GetAttrIn, InHeader, changes_a_name, opcode, renames_into};

/// For attributes that are not asked for within this time, the host is asked again.
const VALID: Duration = Duration::from_secs(1);

/// The most directories that are kept.
const MOST: usize = 1024;

/// What is known of directories, and what is being changed in them.
#[derive(Default)]
pub(super) struct Parents {
    known: HashMap<u64, (AttrOut, Instant)>,
    /// Requests that are not answered yet, by number: which directory each of them changes.
    asked: HashMap<u64, u64>,
    changing: HashMap<u64, Changing>,
    /// Those that rename something.
    renaming: HashSet<u64>,
}

#[derive(Default)]
struct Changing {
    requests: usize,
    /// What the answers say may not be the latest.
    is_mixed: bool,
}

impl Parents {
    /// Notes what the kernel asks. Returns the attributes it asks for, if they are known; only once.
    pub fn asks(&mut self, header: &InHeader, body: &[u8], now: Instant) -> Option<AttrOut> {
        match header.opcode {
            opcode::GETATTR => {
                let (ask, _) = GetAttrIn::read_from_prefix(body).ok()?;
                if ask.flags & GETATTR_FH != 0 {
                    return None;
                }
                let (attributes, noted) = self.known.remove(&header.node)?;
                return (now.duration_since(noted) < VALID).then_some(attributes);
            }
            number if changes_a_name(number) => {
                if number == opcode::RMDIR {
                    self.known.clear();
                }
                self.known.remove(&header.node);
                self.asked.insert(header.unique, header.node);
                let changing = self.changing.entry(header.node).or_default();
                changing.requests += 1;
                changing.is_mixed |= changing.requests > 1;
            }
            opcode::RENAME | opcode::RENAME2 => {
                self.renaming.insert(header.unique);
                self.forget(header.node);
                if let Some(new) = renames_into(body) {
                    self.forget(new);
                }
            }
            opcode::SETATTR | opcode::SETXATTR | opcode::REMOVEXATTR | opcode::READDIR | opcode::READDIRPLUS => {
                self.forget(header.node);
            }
            _ => {}
        }
        None
    }

    /// A request is answered, and the host has said what its directory is like.
    pub fn is_answered(&mut self, unique: u64, said: Option<(u64, AttrOut)>, now: Instant) {
        if self.renaming.remove(&unique) {
            return if said.is_some() {
                self.forget_all()
            };
        }
        let Some(directory) = self.asked.remove(&unique) else { return };
        let Some(changing) = self.changing.get_mut(&directory) else { return };
        changing.requests -= 1;
        let is_mixed = changing.is_mixed;
        if changing.requests == 0 {
            self.changing.remove(&directory);
        }
        if let Some((node, attributes)) = said
            && node == directory
            && !is_mixed
        {
            if self.known.len() >= MOST {
                self.known.retain(|_, (_, noted)| now.duration_since(*noted) < VALID);
            }
            if self.known.len() < MOST {
                self.known.insert(node, (attributes, now));
            }
        }
    }

    /// A directory has changed, or is not known any more.
    pub fn forget(&mut self, directory: u64) {
        self.known.remove(&directory);
        if let Some(changing) = self.changing.get_mut(&directory) {
            changing.is_mixed = true;
        }
    }

    /// All have.
    pub fn forget_all(&mut self) {
        self.known.clear();
        self.changing.values_mut().for_each(|changing| changing.is_mixed = true);
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;

    use super::*;

    fn ask(parents: &mut Parents, opcode: u32, node: u64, unique: u64, body: &[u8]) -> Option<u64> {
        let header = InHeader { opcode, node, unique, ..InHeader::default() };
        parents.asks(&header, body, Instant::now()).map(|answer| answer.attr.size)
    }

    fn said(node: u64, size: u64) -> Option<(u64, AttrOut)> {
        let mut attributes = AttrOut::default();
        attributes.attr.size = size;
        Some((node, attributes))
    }

    fn get(parents: &mut Parents, node: u64) -> Option<u64> {
        ask(parents, opcode::GETATTR, node, 0, GetAttrIn::default().as_bytes())
    }

    #[test]
    fn what_the_host_says_of_a_directory_holds_once_and_for_a_while() {
        let (mut parents, now) = (Parents::default(), Instant::now());
        ask(&mut parents, opcode::UNLINK, 1, 10, b"a\0");
        assert_eq!(get(&mut parents, 1), None);
        parents.is_answered(10, said(1, 5), now);
        assert_eq!((get(&mut parents, 1), get(&mut parents, 1)), (Some(5), None));

        ask(&mut parents, opcode::UNLINK, 1, 11, b"b\0");
        parents.is_answered(11, said(1, 4), now.checked_sub(VALID).unwrap());
        assert_eq!(get(&mut parents, 1), None);
        // Of another directory, of a request that nobody made, and nothing.
        ask(&mut parents, opcode::MKDIR, 1, 12, b"c\0");
        parents.is_answered(12, said(2, 3), now);
        parents.is_answered(13, said(1, 3), now);
        ask(&mut parents, opcode::MKDIR, 1, 14, b"c\0");
        parents.is_answered(14, None, now);
        assert_eq!((get(&mut parents, 1), get(&mut parents, 2)), (None, None));
        assert!(parents.asked.is_empty() && parents.changing.is_empty());
    }

    /// Whatever may change it between the host's look and the kernel's question.
    #[test]
    fn what_may_have_changed_again_is_not_known() {
        let now = Instant::now();
        type Event = fn(&mut Parents);
        let events: [Event; 7] = [
            |parents| parents.forget(1),
            Parents::forget_all,
            |parents| _ = ask(parents, opcode::SETATTR, 1, 20, &[]),
            |parents| _ = ask(parents, opcode::READDIRPLUS, 1, 20, &[]),
            |parents| _ = ask(parents, opcode::RENAME2, 2, 20, &1u64.to_le_bytes()),
            // It is what is renamed.
            |parents| {
                _ = ask(parents, opcode::RENAME, 2, 20, &3u64.to_le_bytes());
                parents.is_answered(20, said(2, 1), Instant::now());
            },
            |parents| _ = ask(parents, opcode::CREATE, 1, 20, &[]),
        ];
        for (number, event) in events.into_iter().enumerate() {
            let mut parents = Parents::default();
            ask(&mut parents, opcode::UNLINK, 1, 10, b"a\0");
            event(&mut parents);
            parents.is_answered(10, said(1, 5), now);
            assert_eq!(get(&mut parents, 1), None, "{number}, before it is answered");

            let mut parents = Parents::default();
            ask(&mut parents, opcode::UNLINK, 1, 10, b"a\0");
            parents.is_answered(10, said(1, 5), now);
            event(&mut parents);
            assert_eq!(get(&mut parents, 1), None, "{number}, afterwards");
        }
        // Changed in while it is renamed.
        for is_directory in [true, false] {
            let mut parents = Parents::default();
            ask(&mut parents, opcode::RENAME2, 2, 20, &3u64.to_le_bytes());
            ask(&mut parents, opcode::UNLINK, 1, 10, b"a\0");
            parents.is_answered(10, said(1, 5), now);
            parents.is_answered(20, is_directory.then(|| said(2, 1)).flatten(), now);
            assert_eq!(get(&mut parents, 1), (!is_directory).then_some(5));
            assert!(parents.renaming.is_empty());
        }
        // It may be what is removed, and nothing can be changed in it meanwhile; nor in what something is renamed from or to.
        for (opcode, body) in [(opcode::RMDIR, b"d\0".to_vec()), (opcode::RENAME, 1u64.to_le_bytes().to_vec())] {
            let mut parents = Parents::default();
            ask(&mut parents, opcode::UNLINK, 1, 10, b"a\0");
            parents.is_answered(10, said(1, 5), now);
            ask(&mut parents, opcode, 2, 20, &body);
            assert_eq!(get(&mut parents, 1), None);
        }
        // What is changed elsewhere meanwhile stays known.
        let mut parents = Parents::default();
        ask(&mut parents, opcode::UNLINK, 1, 10, b"a\0");
        ask(&mut parents, opcode::RMDIR, 2, 20, b"d\0");
        parents.is_answered(10, said(1, 5), now);
        assert_eq!(get(&mut parents, 1), Some(5));
        // Two at the same time, answered in either order: neither is known to be the last.
        for order in [[10, 11], [11, 10]] {
            let mut parents = Parents::default();
            for unique in [10, 11] {
                ask(&mut parents, opcode::UNLINK, 1, unique, b"a\0");
            }
            order.into_iter().for_each(|unique| parents.is_answered(unique, said(1, unique), now));
            assert_eq!(get(&mut parents, 1), None);
            ask(&mut parents, opcode::UNLINK, 1, 12, b"a\0");
            parents.is_answered(12, said(1, 12), now);
            assert_eq!(get(&mut parents, 1), Some(12));
        }
    }

    #[test]
    fn few_are_kept() {
        let (mut parents, now) = (Parents::default(), Instant::now());
        for node in 0..2 * MOST as u64 {
            ask(&mut parents, opcode::UNLINK, node, node, b"a\0");
            parents.is_answered(node, said(node, 1), now);
        }
        assert_eq!(parents.known.len(), MOST);
    }
}
