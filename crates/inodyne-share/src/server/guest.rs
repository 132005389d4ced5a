//! One guest, as everything that serves it knows it: who it is, the locks it waits for, and what it has asked.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use rustix::io::Errno;

use super::{attributes::View, nodes::GuestId};
use crate::{
    coherence::Link,
    fuse::{
        abi::{LkIn, REQUESTS},
        reply::Reply,
    },
    keys::PublicKey,
    protocol::{greeting::Session, status::GuestStatus},
};

/// More interruptions than this are not remembered. The oldest are forgotten: they were of requests that wait for no lock.
const MOST_INTERRUPTED: usize = 1024;

/// A guest.
pub(crate) struct Guest {
    pub id: GuestId,
    pub link: Arc<Link>,
    pub view: View,
    /// Whether it is told of changes, where anybody can tell of them. A guest that is not believes nothing for long.
    pub is_told: bool,
    /// Whether it gets extended attributes.
    pub has_xattrs: bool,
    /// Whether its kernel can be told at once that no name it holds is valid (Linux 6.16).
    pub has_epoch: AtomicBool,
    /// Its key, where it had to show one.
    key: Option<PublicKey>,
    session: Option<Session>,
    since: Instant,
    locks: Mutex<Locks>,
    /// Requests by number.
    counts: [AtomicU64; 64],
}

/// Locks that processes of the guest wait for.
#[derive(Default)]
pub(super) struct Locks {
    pub waiting: Vec<Waiting>,
    /// Requests that are to be given up but have not begun to wait yet, the latest last.
    interrupted: VecDeque<u64>,
    /// A thread is trying those that are waited for.
    pub is_tried: bool,
    /// The guest has gone.
    pub is_over: bool,
}

/// A lock that somebody else holds, and a process of the guest waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub unique: u64,
    pub node: u64,
    pub ask: LkIn,
}

impl Locks {
    /// Notes that a request is to be given up.
    fn interrupt(&mut self, unique: u64) {
        self.interrupted.push_back(unique);
        if self.interrupted.len() > MOST_INTERRUPTED {
            self.interrupted.pop_front();
        }
    }

    /// Whether a request that is about to wait is to be given up.
    pub fn is_interrupted(&mut self, unique: u64) -> bool {
        let at = self.interrupted.iter().position(|one| *one == unique);
        at.and_then(|at| self.interrupted.remove(at)).is_some()
    }
}

impl Guest {
    /// One that has just connected.
    pub fn new(
        view: View,
        link: Arc<Link>,
        is_told: bool,
        has_xattrs: bool,
        key: Option<PublicKey>,
        session: Option<Session>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id: link.guest,
            view,
            link,
            is_told,
            has_xattrs,
            has_epoch: AtomicBool::new(false),
            key,
            session,
            since: Instant::now(),
            locks: Mutex::default(),
            counts: [const { AtomicU64::new(0) }; 64],
        })
    }

    /// Whether it is an earlier connection of the same mount.
    pub(super) fn is(&self, session: Session, key: Option<PublicKey>) -> bool {
        self.session == Some(session) && self.key == key
    }

    /// The locks that it waits for.
    pub(super) fn locks(&self) -> MutexGuard<'_, Locks> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up all locks that are waited for, as if everybody who waits had been interrupted.
    pub fn interrupt_locks(&self) {
        let waiting = std::mem::take(&mut self.locks().waiting);
        waiting.iter().for_each(|one| self.answer_lock(one.unique, Err(Errno::INTR)));
    }

    /// The guest is gone: nobody tries its locks any more.
    pub fn end_locks(&self) {
        self.locks().is_over = true;
    }

    /// Counts a request of this number.
    pub fn count(&self, opcode: u32) {
        if let Some(count) = self.counts.get(opcode as usize) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Notes that a request is to be given up.
    pub fn interrupt(&self, unique: u64) {
        let mut locks = self.locks();
        if let Some(at) = locks.waiting.iter().position(|waiting| waiting.unique == unique) {
            locks.waiting.swap_remove(at);
            drop(locks);
            self.answer_lock(unique, Err(Errno::INTR));
        } else {
            locks.interrupt(unique);
        }
    }

    /// Answers a request for a lock.
    pub(super) fn answer_lock(&self, unique: u64, done: Result<(), Errno>) {
        self.link.outbox.send(&Reply::reusing(Vec::new()).finish(unique, done));
    }

    /// The status of a guest whose kernel holds this many nodes.
    pub fn status(&self, nodes_held: u64) -> GuestStatus {
        let counted = |(number, name): &(u32, &str)| {
            let count = self.counts.get(*number as usize)?.load(Relaxed);
            (count > 0).then(|| ((*name).to_owned(), count))
        };
        let requests: BTreeMap<_, _> = REQUESTS.iter().filter_map(counted).collect();
        GuestStatus {
            guest: self.id,
            key: self.key.map(|key| key.to_string()),
            connected_seconds: self.since.elapsed().as_secs(),
            nodes_held,
            round_trips: requests.iter().filter(|(name, _)| has_an_answer(name)).map(|(_, count)| count).sum(),
            requests,
            told_of_changes: self.is_told,
            invalidations_sent: self.link.told.load(Relaxed),
            invalidations_acknowledged: self.link.acknowledged.load(Relaxed),
        }
    }
}

/// Whether anybody waits for the answer to such a request.
fn has_an_answer(name: &str) -> bool {
    !matches!(name, "forget" | "batch_forget" | "interrupt" | "release")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its process could not even be killed while somebody else has the lock.
    #[test]
    fn whoever_is_interrupted_before_it_waits_for_a_lock_does_not_wait_however_often_others_were() {
        let mut locks = Locks::default();
        let last = 3 * MOST_INTERRUPTED as u64;
        (0..=last).for_each(|unique| locks.interrupt(unique));
        assert_eq!(locks.interrupted.len(), MOST_INTERRUPTED);
        assert!(!locks.is_interrupted(last + 1));
        assert!(locks.is_interrupted(last) && locks.is_interrupted(last - 1));
        assert!(!locks.is_interrupted(last), "once");
    }
}
