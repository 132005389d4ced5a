//! Locks, which are the host's own.

use std::{
    os::fd::{AsRawFd, OwnedFd},
    sync::Arc,
};

use rustix::{
    fs::{FlockOperation, OFlags, flock},
    io::Errno,
};

use super::Call;
use crate::{
    fuse::abi::{FileLock, LK_FLOCK, LkIn},
    server::handles::{LockOwner, OpenFile},
};

impl Call<'_> {
    /// Sets or releases a lock; `AGAIN` where somebody else holds one that excludes it.
    pub(in crate::server) fn set_lock(&mut self, ask: &LkIn) -> Result<(), Errno> {
        let kind = ask.lock.kind as i32;
        if ask.flags & LK_FLOCK != 0 {
            let operation = match kind {
                libc::F_RDLCK => FlockOperation::NonBlockingLockShared,
                libc::F_WRLCK => FlockOperation::NonBlockingLockExclusive,
                libc::F_UNLCK => FlockOperation::NonBlockingUnlock,
                _ => return Err(Errno::INVAL),
            };
            return flock(&*self.host.handles.get(self.guest.id, ask.fh)?.file, operation);
        }
        let (file, owner) = self.lock_owner(ask)?;
        let owner = self.host.handles.lock_owner(owner, ask.fh, || {
            // A lock for writing needs a descriptor for writing.
            let open = |flags| self.host.export.open(&file.file, flags);
            open(OFlags::RDWR).or_else(|_| open(OFlags::RDONLY))
        })?;
        locked(&owner, libc::F_OFD_SETLK, &mut lock_of(&ask.lock)?)
    }

    pub(super) fn get_lock(&mut self, ask: &LkIn) -> Result<(), Errno> {
        let (file, owner) = self.lock_owner(ask)?;
        let mut lock = lock_of(&ask.lock)?;
        // An owner who has no lock needs no descriptor: the open file has no lock of this kind either.
        let asks = self.host.handles.known_lock_owner(&owner).unwrap_or_else(|| file.file.clone());
        locked(&asks, libc::F_OFD_GETLK, &mut lock)?;
        let end = if lock.l_len == 0 { i64::MAX as u64 } else { (lock.l_start + lock.l_len - 1) as u64 };
        // Which process of which machine holds it cannot be told.
        let kind = i32::from(lock.l_type) as u32;
        self.reply.put(&FileLock { start: lock.l_start as u64, end, kind, pid: 0 });
        Ok(())
    }

    /// An open file, and who asks for a lock on it.
    fn lock_owner(&self, ask: &LkIn) -> Result<(Arc<OpenFile>, LockOwner), Errno> {
        let file = self.host.handles.get(self.guest.id, ask.fh)?;
        let owner = (self.guest.id, file.node, ask.owner);
        Ok((file, owner))
    }
}

fn lock_of(lock: &FileLock) -> Result<libc::flock, Errno> {
    let start = i64::try_from(lock.start).map_err(|_| Errno::INVAL)?;
    let length = match lock.end {
        end if end >= i64::MAX as u64 => 0,
        end => i64::try_from(end).ok().and_then(|end| end.checked_sub(start)).map_or(-1, |length| length + 1),
    };
    if length < 0 {
        return Err(Errno::INVAL);
    }
    Ok(libc::flock {
        l_type: lock.kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: length,
        l_pid: 0,
    })
}

/// An fcntl(2) call about an open file description lock.
fn locked(file: &OwnedFd, command: libc::c_int, lock: &mut libc::flock) -> Result<(), Errno> {
    // SAFETY: the descriptor is open, and the structure is the one that these commands read and write.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), command, std::ptr::from_mut(lock)) };
    if done == 0 {
        return Ok(());
    }
    Err(match Errno::from_io_error(&std::io::Error::last_os_error()) {
        Some(Errno::ACCESS | Errno::AGAIN) | None => Errno::AGAIN,
        Some(errno) => errno,
    })
}
