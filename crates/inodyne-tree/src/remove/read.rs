//! Entering a directory: open it, list it, and deal with each entry at once or hand it to a remover.
//!
//! The listing's own types are trusted, so a typed entry costs one call. An untyped one is unlinked like a file; the
//! kernel refuses that for a directory, which is then entered, so even there no call is needed beforehand.

use std::{
    ffi::CStr,
    os::fd::OwnedFd,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use rustix::{
    fs::{AtFlags, FileType, RawDir, statat, unlinkat},
    io::Errno,
};

use super::{
    Reason, Removed,
    engine::{Engine, READERS, Worker},
    finish::{Outcome, REREADS},
    names::Names,
    node::Node,
    open::changes_device,
    order::{Shared, Unsorted},
    report::telling,
};
use crate::pool::WorkerId;

/// Unlinking fewer takes no longer than waking another worker, unless they are large.
const FEW: usize = 16;

/// The directory that was found last: whoever found it reads it next, unless what comes before takes so long that another worker should.
#[derive(Default)]
struct Latest {
    directory: Option<Arc<Node>>,
    found: Option<Instant>,
}

impl Latest {
    /// Puts a new one in place of the one before, which is then for others.
    fn found(&mut self, directory: Arc<Node>) -> Option<Arc<Node>> {
        self.found = Some(Instant::now());
        self.directory.replace(directory)
    }

    /// Takes out the latest, if it was found so long ago that it is for others.
    fn in_time(&mut self, worth_company: Duration) -> Option<Arc<Node>> {
        let found = self.found;
        self.directory.take_if(|_| found.is_some_and(|found| found.elapsed() >= worth_company))
    }
}

impl Engine<'_> {
    /// Does all of a directory that this worker can do now.
    pub fn enter(&self, worker: &mut Worker, node: Arc<Node>) {
        if self.is_stopped() {
            return;
        }
        match self.open(worker, &node) {
            Ok(descriptor) => self.resume(worker, node, descriptor),
            Err(errno) => {
                let outcome = self.not_entered(worker, &node, errno);
                self.conclude(worker, node, outcome);
            }
        }
    }

    /// Reads what has not been read yet of an open directory.
    pub fn resume(&self, worker: &mut Worker, node: Arc<Node>, descriptor: Arc<OwnedFd>) {
        if self.read(worker, &node, &descriptor) {
            drop(descriptor);
            self.settle(worker, node);
        }
    }

    fn open(&self, worker: &mut Worker, node: &Arc<Node>) -> Result<Arc<OwnedFd>, Errno> {
        // Opened again even when it is only read again: whoever has moved it elsewhere in the meantime keeps what appeared in it there.
        let parent = self.descriptor(worker, node.parent())?;
        let opened = self.retry_without_descriptors(worker, || node.open_in(&parent, self.crossing))?;
        if self.one_device && node.operand.is_none() && changes_device(&*parent, &opened)? {
            return Err(Errno::XDEV);
        }
        let descriptor = Arc::new(opened);
        node.set_open(descriptor.clone());
        self.fd_cache(worker).note(node);
        Ok(descriptor)
    }

    /// What becomes of a directory that could not be opened.
    fn not_entered(&self, worker: &Worker, node: &Arc<Node>, errno: Errno) -> Outcome {
        let parent = node.parent();
        match errno {
            Errno::NOENT => Outcome::Gone,
            Errno::XDEV => {
                self.fail(node, None, Reason::OtherDevice);
                Outcome::Stays
            }
            errno if node.only().is_some() => self.not_meant(node, errno),
            Errno::LOOP | Errno::NOTDIR => self.unlink_replacement(worker, node, parent, errno),
            // An empty directory need not be readable to be removed.
            errno => {
                let removed = if self.dry_run { Err(errno) } else { self.remove_directory(worker, node, parent) };
                match removed {
                    Ok(()) | Err(Errno::NOENT) => Outcome::Gone,
                    Err(removing) => {
                        self.fail(node, None, telling(errno, removing));
                        Outcome::Stays
                    }
                }
            }
        }
    }

    /// What has the name of the only directory that is meant may be something else now: it stays, even if it is a link or empty.
    fn not_meant(&self, node: &Node, errno: Errno) -> Outcome {
        let is_another_kind = matches!(errno, Errno::LOOP | Errno::NOTDIR);
        self.refuse(node, None, if is_another_kind { Errno::STALE } else { errno });
        Outcome::Stays
    }

    /// Somebody put something else in a directory's place; that is in the tree too. It may be a directory again by then, but not for ever: a
    /// server may say that a directory is none, while the kernel still knows it as one.
    pub fn unlink_replacement(&self, worker: &Worker, node: &Arc<Node>, parent: &Arc<Node>, errno: Errno) -> Outcome {
        if node.only().is_some() {
            return self.not_meant(node, errno);
        }
        let round = node.rereads.load(Ordering::Relaxed);
        if round >= REREADS {
            self.fail(node, None, Reason::Unread(errno));
            return Outcome::Stays;
        }
        match self.descriptor(worker, parent) {
            // Somebody else has removed all of it.
            Err(Errno::NOENT) => Outcome::Gone,
            Ok(descriptor) => {
                let gone = self.unlink(parent, &descriptor, &node.name, worker.id.index, round + 1);
                self.control.files.fetch_add(gone, Ordering::Relaxed);
                Outcome::Gone
            }
            Err(errno) => {
                self.refuse(node, None, errno);
                Outcome::Stays
            }
        }
    }

    /// Lists a directory and deals with its entries; false if stopped on the way.
    fn read(&self, worker: &mut Worker, node: &Arc<Node>, descriptor: &Arc<OwnedFd>) -> bool {
        let queue = worker.id.index;
        let mut entries = RawDir::new(descriptor, &mut worker.buffer);
        let mut gone = 0;
        let mut batch = Names::of(node);
        let alone = self.is_alone();
        let mut hand_over = self.plan.readers > 0 && !alone;
        let (mut first, mut takes_long) = (true, false);
        let mut latest = Latest::default();
        loop {
            if entries.is_buffer_empty() {
                // The next step asks the kernel for more names.
                if batch.count > 0 {
                    self.unlink_later(queue, std::mem::replace(&mut batch, Names::of(node)));
                }
                if worker.unsorted.len() >= Unsorted::ENOUGH {
                    if let Some(directory) = latest.directory.take() {
                        self.enter_later(queue, directory);
                    }
                    gone += self.unlink_sorted(&mut worker.unsorted, node, descriptor, queue);
                }
                if takes_long {
                    // Too large for one thread: the others go on from here.
                    self.resume_later(queue, node, descriptor);
                    break;
                } else if alone {
                    // Perhaps that was all. What comes now is for the others, too.
                    takes_long = !first && !self.is_alone();
                    hand_over = takes_long && !self.dry_run;
                } else if self.plan.readers > 0 {
                    self.gate.wait(|| self.is_stopped() || self.pool.is_short_of_threads());
                } else {
                    hand_over = !first && !self.dry_run && self.pool.has_idle(READERS);
                }
                first = false;
            }
            if self.is_stopped() {
                break;
            }
            let entry = match entries.next() {
                Some(Ok(entry)) => entry,
                // Somebody else removed the directory itself meanwhile.
                None | Some(Err(Errno::NOENT)) => break,
                Some(Err(errno)) => {
                    self.fail(node, None, Reason::Unread(errno));
                    break;
                }
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let is_directory = entry.file_type() == FileType::Directory;
            let for_others = if is_directory {
                latest.found(Node::child(node, name, entry.ino()))
            } else {
                latest.in_time(self.plan.worth_company)
            };
            if let Some(directory) = for_others {
                self.enter_later(queue, directory);
            }
            if is_directory {
                continue;
            }
            if self.plan.sorted {
                worker.unsorted.push(entry.ino(), name);
            } else if hand_over {
                batch.push(name);
            } else {
                gone += self.unlink(node, descriptor, name, queue, 0);
            }
        }
        match latest.directory {
            Some(directory) if worker.unsorted.len() < FEW => self.enter_next(queue, directory),
            Some(directory) => self.enter_later(queue, directory),
            None => {}
        }
        gone += self.unlink_sorted(&mut worker.unsorted, node, descriptor, queue);
        self.control.files.fetch_add(gone, Ordering::Relaxed);
        if batch.count > 0 {
            self.unlink_later(queue, batch);
        }
        !self.is_stopped()
    }

    /// Unlinks what was read in the order of its inodes, with another worker's help where there is a lot and one has nothing
    /// to do. Returns how many are gone.
    fn unlink_sorted(&self, names: &mut Unsorted, node: &Arc<Node>, descriptor: &OwnedFd, queue: usize) -> u64 {
        /// Worth waking somebody up.
        const MUCH: usize = 1024;
        if names.len() < MUCH || self.dry_run || self.is_alone() {
            let (mut gone, begun, mut offered) = (0, Instant::now(), false);
            names.drain(|name| {
                if !self.is_stopped() {
                    gone += self.unlink(node, descriptor, name, queue, 0);
                }
                // A single file may take seconds: then others are to have what this worker would do next.
                if !offered && begun.elapsed() >= self.plan.worth_company {
                    offered = true;
                    self.pool.offer(WorkerId { group: READERS, index: queue });
                }
            });
            return gone;
        }
        let names = Arc::new(names.share(node));
        let (mut gone, mut helped) = (0, false);
        while let Some(piece) = names.piece() {
            // Only one: with more they wait for the directory's lock, and spin for it (2 workers 1.3 times as fast as 1, 4 only 1.2).
            if !helped && self.pool.has_idle(READERS) {
                self.help_later(queue, &names);
                helped = true;
            }
            gone += self.unlink_all(piece, node, descriptor, queue);
        }
        gone
    }

    /// Removes some of the names that another worker removes too.
    pub fn help(&self, worker: &mut Worker, names: &Shared) {
        // Without a descriptor the other one does it all.
        if let Ok(descriptor) = self.descriptor(worker, &names.directory) {
            let mut gone = 0;
            while let Some(piece) = names.piece() {
                gone += self.unlink_all(piece, &names.directory, &descriptor, worker.id.index);
            }
            self.control.files.fetch_add(gone, Ordering::Relaxed);
        }
        if !self.is_stopped() {
            self.settle(worker, names.directory.clone());
        }
    }

    fn unlink_all<'n>(
        &self,
        names: impl Iterator<Item = &'n CStr>,
        node: &Arc<Node>,
        descriptor: &OwnedFd,
        queue: usize,
    ) -> u64 {
        names.take_while(|_| !self.is_stopped()).map(|name| self.unlink(node, descriptor, name, queue, 0)).sum()
    }

    /// Unlinks names that a reader handed over.
    pub fn unlink_batch(&self, worker: &mut Worker, names: Names) {
        self.gate.take();
        match self.descriptor(worker, &names.directory) {
            Ok(descriptor) => {
                let queue = worker.id.index;
                let gone = self.unlink_all(names.iter(), &names.directory, &descriptor, queue);
                self.control.files.fetch_add(gone, Ordering::Relaxed);
            }
            Err(Errno::NOENT) => {}
            Err(errno) => self.refuse(&names.directory, None, errno),
        }
        if !self.is_stopped() {
            self.settle(worker, names.directory);
        }
    }

    /// Removes one entry that is not a directory; 1 if this call removed it. If it is a directory after all, it is
    /// entered later, in its `round`.
    fn unlink(&self, node: &Arc<Node>, descriptor: &OwnedFd, name: &CStr, queue: usize, round: u32) -> u64 {
        if self.dry_run {
            return self.count(node, descriptor, name, queue, round);
        }
        match unlinkat(descriptor, name, AtFlags::empty()) {
            Ok(()) => {
                if self.observer.wants_removed() {
                    self.observer.removed(&node.path(Some(name)), Removed::File);
                }
                return 1;
            }
            // Somebody else was faster.
            Err(Errno::NOENT) => {}
            Err(Errno::ISDIR) => self.enter_after_all(queue, node, name, round),
            // A directory in one that may not be changed: what is below may still be removable.
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS)
                if statat(descriptor, name, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory) =>
            {
                self.enter_after_all(queue, node, name, round);
            }
            Err(errno) => self.refuse(node, Some(name), errno),
        }
        0
    }

    fn enter_after_all(&self, queue: usize, parent: &Arc<Node>, name: &CStr, round: u32) {
        let node = Node::child(parent, name, 0);
        node.rereads.store(round, Ordering::Relaxed);
        self.enter_later(queue, node);
    }

    /// The dry run's way of dealing with an entry.
    fn count(&self, node: &Arc<Node>, descriptor: &OwnedFd, name: &CStr, queue: usize, round: u32) -> u64 {
        match statat(descriptor, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                self.enter_after_all(queue, node, name, round);
                0
            }
            Ok(stat) => {
                self.control.count_allocated(&stat);
                if self.observer.wants_removed() {
                    self.observer.removed(&node.path(Some(name)), Removed::File);
                }
                1
            }
            Err(Errno::NOENT) => 0,
            Err(errno) => {
                self.refuse(node, Some(name), errno);
                0
            }
        }
    }
}
