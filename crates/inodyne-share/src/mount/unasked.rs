//! What the host need not be asked, since its answer follows from what the guest itself has asked before.
//!
//! - Closing a file ends its process's fcntl(2) locks on it, and does nothing else: data is on the host when a write is answered. Where
//!   no process in the guest has asked for such a lock on the file, there is none to end.
//! - Where owners are squashed, the host gives its guests no extended attributes that give a file rights (`is_given` in
//!   `server/operations/xattrs.rs`). The kernel asks for one of them before it changes a file.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use rustix::io::Errno;
use zerocopy::FromBytes;

use crate::{
    fuse::abi::{GetXattrIn, InHeader, LK_FLOCK, LkIn, ReleaseIn, opcode},
    protocol::xattrs::is_privileged,
};

/// What has been asked, as far as it matters.
#[derive(Debug, Default)]
pub(super) struct Unasked {
    is_squashed: bool,
    /// Files on which fcntl(2) locks were asked for, and by which open files. When one of these ends, whoever has set a lock has closed the file.
    locked: Mutex<HashMap<u64, HashSet<u64>>>,
    /// Another host may have lost open files, and is to say so when they are closed.
    is_another_host: AtomicBool,
}

impl Unasked {
    /// With what the host has said of owners.
    pub fn new(is_squashed: bool) -> Self {
        Self { is_squashed, ..Self::default() }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<u64, HashSet<u64>>> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what a request asks. Returns the answer to it, if the host need not give it.
    pub fn answer(&self, header: &InHeader, body: &[u8]) -> Option<Result<(), Errno>> {
        match header.opcode {
            opcode::SETLK | opcode::SETLKW => {
                if let Ok((ask, _)) = LkIn::read_from_prefix(body)
                    && ask.flags & LK_FLOCK == 0
                {
                    self.locked().entry(header.node).or_default().insert(ask.fh);
                }
                None
            }
            opcode::RELEASE => {
                if let Ok((ask, _)) = ReleaseIn::read_from_prefix(body) {
                    self.released(header.node, ask.fh);
                }
                None
            }
            opcode::FLUSH if !self.is_another_host.load(Relaxed) && !self.locked().contains_key(&header.node) => {
                Some(Ok(()))
            }
            opcode::GETXATTR if self.is_squashed => {
                let name = body.get(size_of::<GetXattrIn>()..)?.split(|byte| *byte == 0).next()?;
                is_privileged(name).then_some(Err(Errno::NODATA))
            }
            _ => None,
        }
    }

    fn released(&self, node: u64, handle: u64) {
        let mut locked = self.locked();
        if let Some(handles) = locked.get_mut(&node) {
            handles.remove(&handle);
            if handles.is_empty() {
                locked.remove(&node);
            }
        }
    }

    /// The host is lost. From now on there may be another one.
    pub fn is_lost(&self) {
        self.is_another_host.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;

    use super::*;

    fn ask(unasked: &Unasked, opcode: u32, node: u64, body: &[u8]) -> Option<Result<(), Errno>> {
        unasked.answer(&InHeader { opcode, node, ..InHeader::default() }, body)
    }

    #[test]
    fn who_closes_a_file_without_locks_does_not_ask() {
        let unasked = Unasked::default();
        let lock = |fh, flags| LkIn { fh, flags, ..LkIn::default() };
        let release = |fh| {
            assert_eq!(ask(&unasked, opcode::RELEASE, 8, ReleaseIn { fh, ..ReleaseIn::default() }.as_bytes()), None);
        };
        assert_eq!(ask(&unasked, opcode::SETLK, 7, lock(1, LK_FLOCK).as_bytes()), None);
        assert_eq!(ask(&unasked, opcode::SETLKW, 8, lock(1, 0).as_bytes()), None);
        assert_eq!(ask(&unasked, opcode::SETLK, 8, lock(2, 0).as_bytes()), None);
        assert_eq!(ask(&unasked, opcode::FLUSH, 7, &[]), Some(Ok(())));
        release(1);
        release(3);
        assert_eq!(ask(&unasked, opcode::FLUSH, 8, &[]), None, "whoever locked it by another one has that still");
        release(2);
        assert_eq!(ask(&unasked, opcode::FLUSH, 8, &[]), Some(Ok(())));
        unasked.is_lost();
        assert_eq!(ask(&unasked, opcode::FLUSH, 8, &[]), None);
    }

    #[test]
    fn rights_of_files_are_not_asked_for_where_there_are_none() {
        let named = |name: &[u8]| [GetXattrIn::default().as_bytes(), name, b"\0"].concat();
        let squashed = Unasked::new(true);
        let asked = |unasked, name| ask(unasked, opcode::GETXATTR, 7, &named(name));
        assert_eq!(asked(&squashed, b"security.capability"), Some(Err(Errno::NODATA)));
        assert_eq!(asked(&squashed, b"user.capability"), None);
        assert_eq!(asked(&Unasked::default(), b"security.capability"), None);
    }
}
