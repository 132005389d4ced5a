//! What a guest asks, done on the host.
//!
//! | module | what it does |
//! |---|---|
//! | `names` | finds, makes, removes and renames |
//! | `attributes` | reads and sets attributes |
//! | `directories` | reads directories |
//! | `data` | opens, reads and writes files |
//! | `xattrs` | extended attributes |
//! | `locks` | locks |
//!
//! Each operation works on descriptors of nodes (`export`) and single names; none resolves a path from a guest. It notes what it has changed
//! in `changes`, so that other guests are told before this one is answered.

mod attributes;
mod data;
mod directories;
mod locks;
mod names;
mod xattrs;

use std::{ffi::CStr, os::fd::OwnedFd, sync::atomic::Ordering::Relaxed, time::Duration};

use rustix::{fs::Statx, io::Errno};

use super::{
    attributes::{UNWATCHED, View, entry},
    export::{identity, stat_at},
    guest::{Guest, Waiting},
    host::Host,
    nodes::{NodeId, ROOT},
};
use crate::{
    fuse::{
        abi::{EPOCH_SINCE, EntryOut, InHeader, InitIn, InitOut, MAJOR, MINOR, init, makes_a_name, opcode},
        reply::Reply,
        request::{Malformed, Operation, Request},
    },
    protocol::{frame::MOST_DATA, invalidation::Invalidation},
};

/// How many files a guest may make at the same time: more than there are threads that do it.
const MOST_AT_ONCE: usize = 64;

/// One request that is being done.
pub(super) struct Call<'a> {
    pub host: &'a Host,
    pub guest: &'a Guest,
    pub header: InHeader,
    pub reply: Reply,
    pub changes: Vec<Invalidation>,
}

/// What became of a request.
pub(super) enum Done {
    /// It is answered: with what `reply` holds, or with this error.
    Answer(Result<(), Errno>),
    /// It has no answer.
    Silent,
    /// It will be answered when its lock is free.
    Waits(Waiting),
}

impl Call<'_> {
    /// Does what a request asks.
    pub fn perform(&mut self, request: &Request<'_>) -> Done {
        let operation = match request.operation() {
            Ok(operation) => operation,
            Err(Malformed) => return Done::Answer(Err(Errno::INVAL)),
        };
        if !self.guest.has_xattrs && is_of_xattrs(&operation) {
            // Its kernel never asks again.
            return Done::Answer(Err(Errno::NOSYS));
        }
        if self.host.options.read_only && changes_something(&operation) {
            return Done::Answer(Err(Errno::ROFS));
        }
        // The guest already holds the file that a link is made to.
        if makes_a_name(self.header.opcode) && self.header.opcode != opcode::LINK && self.is_full() {
            return Done::Answer(Err(Errno::NFILE));
        }
        let node = self.header.node;
        Done::Answer(match operation {
            Operation::Init(ask) => self.init(&ask),
            Operation::Destroy => Ok(()),
            Operation::Interrupt { unique } => {
                self.guest.interrupt(unique);
                return Done::Silent;
            }
            Operation::Forget { lookups } => {
                self.host.forget(self.guest.id, node, lookups);
                return Done::Silent;
            }
            Operation::BatchForget(list) => {
                list.iter().for_each(|one| self.host.forget(self.guest.id, one.node, one.lookups));
                return Done::Silent;
            }
            Operation::Lookup { name } => self.lookup(name),
            Operation::GetAttr(ask) => self.get_attributes(&ask),
            Operation::SetAttr(ask) => self.set_attributes(&ask),
            Operation::ReadLink => self.read_link(),
            Operation::Symlink { name, target } => self.symlink(name, target),
            Operation::MkNod { ask, name } => self.make_node(&ask, name),
            Operation::MkDir { ask, name } => self.make_directory(&ask, name),
            Operation::Unlink { name } => self.remove(name, false),
            Operation::RmDir { name } => self.remove(name, true),
            Operation::Rename { new_dir, flags, name, new_name } => self.rename(new_dir, flags, name, new_name),
            Operation::Link { old, name } => self.link(old, name),
            Operation::Open(ask) => self.open(&ask),
            Operation::Create { ask, name } => self.create(&ask, name),
            Operation::Read(ask) => self.read(&ask),
            Operation::Write { ask, data } => self.write(&ask, data),
            Operation::Flush(ask) => self.flush(&ask),
            Operation::Release(ask) => {
                self.release(&ask);
                return Done::Silent;
            }
            Operation::Fsync { ask, is_directory } => self.sync(&ask, is_directory),
            Operation::SyncFs => self.open_again(ROOT).and_then(|root| rustix::fs::syncfs(&*root)),
            Operation::StatFs => self.stat_file_system(),
            Operation::SetXattr { flags, name, value } => self.set_xattr(flags, name, value),
            Operation::GetXattr { size, name } => self.get_xattr(size, name),
            Operation::ListXattr { size } => self.list_xattrs(size),
            Operation::RemoveXattr { name } => self.remove_xattr(name),
            Operation::OpenDir => self.open_directory(),
            Operation::Unknown => Err(Errno::NOSYS),
            Operation::ReleaseDir => Ok(()),
            Operation::ReadDir { ask, plus } => self.read_directory(&ask, plus),
            Operation::GetLk(ask) => self.get_lock(&ask),
            Operation::SetLk { ask, wait } => match self.set_lock(&ask) {
                Err(Errno::AGAIN) if wait => return Done::Waits(Waiting { unique: self.header.unique, node, ask }),
                done => done,
            },
            Operation::Fallocate(ask) => self.allocate(&ask),
            Operation::Lseek(ask) => self.seek(&ask),
            Operation::CopyFileRange(ask) => self.copy(&ask),
            Operation::Ioctl => Err(Errno::NOTTY),
        })
    }

    fn init(&mut self, ask: &InitIn) -> Result<(), Errno> {
        if ask.major != MAJOR {
            return Err(Errno::PROTO);
        }
        let offered = u64::from(ask.flags) | u64::from(ask.flags2) << 32;
        // Emptying a file as it is opened is not wanted: the guest's kernel asks only afterwards whether the file is a program that is running.
        let mut wanted = init::ASYNC_READ
            | init::BIG_WRITES
            | init::AUTO_INVAL_DATA
            | init::ASYNC_DIO
            | init::PARALLEL_DIROPS
            | init::MAX_PAGES
            | init::CACHE_SYMLINKS
            | init::NO_OPENDIR_SUPPORT
            | init::HANDLE_KILLPRIV_V2
            | init::POSIX_LOCKS
            | init::FLOCK_LOCKS
            | init::INIT_EXT;
        if !self.host.options.withhold_types {
            wanted |= init::DO_READDIRPLUS;
        }
        // Without these the kernel would ask in ways that are not answered here.
        let needed = init::NO_OPENDIR_SUPPORT | init::MAX_PAGES | init::BIG_WRITES;
        if offered & needed != needed {
            return Err(Errno::PROTO);
        }
        self.guest.has_epoch.store(ask.minor >= EPOCH_SINCE, Relaxed);
        let agreed = offered & wanted;
        self.reply.put(&InitOut {
            major: MAJOR,
            minor: MINOR.min(ask.minor),
            max_readahead: ask.max_readahead,
            flags: agreed as u32,
            flags2: (agreed >> 32) as u32,
            max_background: 64,
            congestion_threshold: 48,
            max_write: MOST_DATA as u32,
            time_gran: 1,
            max_pages: (MOST_DATA / 4096) as u16,
            ..InitOut::default()
        });
        Ok(())
    }

    fn view(&self) -> &View {
        &self.guest.view
    }

    /// What a guest is told of the file that a name refers to, by a look at it. From now on the guest holds it, and hears of its changes.
    fn entry_of(
        &self,
        parent: NodeId,
        name: &CStr,
        look: impl Fn() -> Result<Statx, Errno>,
    ) -> Result<EntryOut, Errno> {
        let before = self.host.coherence.before();
        let mut stat = look()?;
        let mut identity = identity(&stat);
        if !self.host.may_hold(self.guest.id, &identity) {
            return Err(Errno::NFILE);
        }
        let mut node = self.host.export.nodes().tell(self.guest.id, identity, parent, name);
        // At most as often as other files come under the same name, and not for ever.
        for _ in 0..16 {
            if !self.host.coherence.is_missed(before) {
                break;
            }
            let again = look();
            stat = again.inspect_err(|_| self.host.forget(self.guest.id, node, 1))?;
            if identity == self::identity(&stat) {
                break;
            }
            self.host.forget(self.guest.id, node, 1);
            identity = self::identity(&stat);
            node = self.host.export.nodes().tell(self.guest.id, identity, parent, name);
        }
        Ok(entry(node, self.guest.view.attr(&stat), self.valid(identity.device)))
    }

    /// Whether a file that the guest makes may be one too many for it. All that it asks for at the same time has room.
    fn is_full(&self) -> bool {
        self.host.export.nodes().held_count(self.guest.id) + MOST_AT_ONCE > self.host.options.most_nodes
    }

    /// Tells the guest of a name and its file.
    fn put_entry(&mut self, parent: NodeId, directory: &OwnedFd, name: &CStr) -> Result<NodeId, Errno> {
        let entry = self.entry_of(parent, name, || stat_at(directory, name))?;
        self.reply.put(&entry);
        Ok(entry.node)
    }

    /// How long the guest may believe what it is told of something on a device.
    fn valid(&self, device: u64) -> Duration {
        if self.guest.is_told { self.host.valid(device) } else { UNWATCHED }
    }

    /// Whether the guest is told of what happens on a device.
    fn is_told(&self, device: u64) -> bool {
        self.guest.is_told && self.host.is_told(device)
    }

    /// The device that a node is on.
    fn device(&self, node: NodeId) -> u64 {
        self.host.export.nodes().identity(node).map_or(0, |identity| identity.device)
    }
}

/// Whether an operation is about extended attributes.
fn is_of_xattrs(operation: &Operation<'_>) -> bool {
    matches!(
        operation,
        Operation::SetXattr { .. }
            | Operation::GetXattr { .. }
            | Operation::ListXattr { .. }
            | Operation::RemoveXattr { .. }
    )
}

/// Whether an operation may change the shared directory.
fn changes_something(operation: &Operation<'_>) -> bool {
    match operation {
        Operation::SetAttr(_)
        | Operation::Symlink { .. }
        | Operation::MkNod { .. }
        | Operation::MkDir { .. }
        | Operation::Unlink { .. }
        | Operation::RmDir { .. }
        | Operation::Rename { .. }
        | Operation::Link { .. }
        | Operation::Create { .. }
        | Operation::Write { .. }
        | Operation::SetXattr { .. }
        | Operation::RemoveXattr { .. }
        | Operation::Fallocate(_)
        | Operation::CopyFileRange(_) => true,
        Operation::Open(ask) => {
            let flags = ask.flags as i32;
            flags & libc::O_ACCMODE != libc::O_RDONLY || flags & libc::O_TRUNC != 0
        }
        _ => false,
    }
}
