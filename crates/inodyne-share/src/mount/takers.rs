//! Threads of the guest that may be about to take an answer about files.
//!
//! What an answer says of a file is put into the kernel's caches by the thread that asked, a moment after the answer was written, or much
//! later on a busy machine. If the kernel is told in between that the file has changed, the thread may still bring in what is no longer
//! valid: for a file that the kernel does not know, or forgets in between, it does not note the change. (A lookup notes the epoch when it
//! asks, and is no longer believed after a new one; a directory is read with the epoch at which its entries are taken: Linux 6.16,
//! fs/fuse/readdir.c, `fuse_direntplus_link`.)
//!
//! Whoever looks up a name or reads a directory holds the directory's lock, shared, until that is done. So a thread has taken its answer
//! once it asks for anything else, once somebody changes the directory, which takes the lock exclusively, and once we have held the lock
//! ourselves. While somebody changes it, only names that the kernel already knows are looked up in it (`fuse_dentry_revalidate`); for
//! their files, the kernel notes what it is told.

use std::{
    collections::BTreeSet,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use zerocopy::FromBytes;

use crate::fuse::abi::{InHeader, changes_a_name, opcode};

/// How long a thread may take to take an answer: longer than a thread waits for a CPU on a machine that works at all.
const TAKING: Duration = Duration::from_secs(2);

/// The same while somebody here changes a directory and waits for the answer, so that two guests never wait for each other for longer:
/// whoever renames a file or removes a directory may hold the lock that we wait for while waiting for the one that the change holds.
const TAKING_AND_CHANGING: Duration = Duration::from_millis(20);

/// A thread that has not taken an answer for this long has ended, or was killed. Threads that come and go would fill the list otherwise.
const FORGOTTEN: Duration = Duration::from_secs(10);

/// Who may be about to take an answer.
#[derive(Default)]
pub(super) struct Takers {
    asked: Mutex<Asked>,
    fewer: Condvar,
}

#[derive(Default)]
struct Asked {
    takers: Vec<Taker>,
    /// The number of the last one.
    last: u64,
    /// What is not answered yet.
    changes: Vec<Change>,
}

struct Taker {
    /// The thread's number; 0 where the mounter's namespace has none.
    thread: u32,
    directory: u64,
    /// In the order in which they came here.
    number: u64,
    /// The kernel's number for the request. It grows; but requests are read by several threads, and may come here in another order.
    unique: u64,
    /// When the answer was written.
    answered: Option<Instant>,
    /// The host that was to answer is gone; another one will answer later.
    is_put_off: bool,
}

/// A change by a thread that holds the locks of directories exclusively.
struct Change {
    unique: u64,
    directory: u64,
    /// Where a name goes to, if it is renamed.
    second: Option<u64>,
    since: Instant,
}

impl Change {
    /// The change that is asked for, if it is one.
    fn asked(header: &InHeader, body: &[u8]) -> Option<Self> {
        let second = match header.opcode {
            opcode::RENAME | opcode::RENAME2 => u64::read_from_prefix(body).ok().map(|(new, _)| new),
            opcode::SETATTR | opcode::SETXATTR | opcode::REMOVEXATTR => None,
            number if changes_a_name(number) => None,
            _ => return None,
        };
        Some(Self { unique: header.unique, directory: header.node, second, since: Instant::now() })
    }

    fn is_in(&self, directory: u64) -> bool {
        self.directory == directory || self.second == Some(directory)
    }
}

impl Takers {
    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what the kernel asks.
    pub fn asks(&self, header: &InHeader, body: &[u8]) {
        // The kernel sends these by itself, or lets them wait while the thread goes on.
        if matches!(
            header.opcode,
            opcode::FORGET
                | opcode::BATCH_FORGET
                | opcode::INTERRUPT
                | opcode::RELEASE
                | opcode::RELEASEDIR
                | opcode::READ
                | opcode::WRITE
        ) {
            return;
        }
        let mut asked = self.asked();
        let Asked { takers, last, changes } = &mut *asked;
        let change = Change::asked(header, body);
        let is_by_thread = |taker: &Taker| taker.thread == header.pid && header.pid != 0;
        let is_there = |taker: &Taker| change.as_ref().is_some_and(|change| change.is_in(taker.directory));
        takers.retain(|taker| taker.unique > header.unique || !is_by_thread(taker) && !is_there(taker));
        takers.retain(|taker| taker.answered.is_none_or(|answered| answered.elapsed() < FORGOTTEN));
        let takes = matches!(header.opcode, opcode::LOOKUP | opcode::READDIRPLUS);
        if takes && !changes.iter().any(|change| change.is_in(header.node)) {
            *last += 1;
            let (thread, directory, number, unique) = (header.pid, header.node, *last, header.unique);
            takers.push(Taker { thread, directory, number, unique, answered: None, is_put_off: false });
        }
        changes.extend(change);
        self.fewer.notify_all();
    }

    /// Notes that a request is about to be answered.
    pub fn is_answered(&self, unique: u64) {
        let mut asked = self.asked();
        asked.changes.retain(|change| change.unique != unique);
        if let Some(taker) = asked.takers.iter_mut().find(|taker| taker.unique == unique) {
            taker.answered = Some(Instant::now());
            taker.is_put_off = false;
        }
    }

    /// The host is gone: those it has not answered get no answer from it.
    pub fn are_put_off(&self) {
        let mut asked = self.asked();
        asked.takers.iter_mut().filter(|taker| taker.answered.is_none()).for_each(|taker| taker.is_put_off = true);
        self.fewer.notify_all();
    }

    /// The number of the last one that has asked, for [`Takers::are_done`].
    pub fn last(&self) -> u64 {
        self.asked().last
    }

    /// Whoever asked up to this number in this directory is done.
    pub fn are_done(&self, directory: u64, number: u64) {
        self.asked().takers.retain(|taker| taker.directory != directory || taker.number > number);
        self.fewer.notify_all();
    }

    /// Waits until all those that have asked so far in directories that are meant are done, or until that takes too long. `hurry` gets
    /// each of their directories.
    pub fn wait(&self, is_meant: impl Fn(u64) -> bool, hurry: impl FnMut(u64)) {
        let began = Instant::now();
        let mut asked = self.asked();
        let last = asked.last;
        let meant = |taker: &&Taker| taker.number <= last && !taker.is_put_off && is_meant(taker.directory);
        let directories: BTreeSet<u64> = asked.takers.iter().filter(meant).map(|taker| taker.directory).collect();
        directories.into_iter().for_each(hurry);
        while asked.takers.iter().any(|taker| meant(&taker)) {
            let since = asked.changes.iter().map(|change| change.since.max(began)).min();
            let until = since.map_or(began + TAKING, |since| (since + TAKING_AND_CHANGING).min(began + TAKING));
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            asked = self.fewer.wait_timeout(asked, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(takers: &Takers, pid: u32, opcode: u32, node: u64, body: &[u8]) {
        let unique = takers.asked().last + 1;
        takers.asks(&InHeader { pid, opcode, node, unique, ..InHeader::default() }, body);
    }

    /// The directories of those who are waited for.
    fn waited_for(takers: &Takers) -> Vec<u64> {
        let asked = takers.asked();
        let directories: BTreeSet<u64> = asked.takers.iter().map(|taker| taker.directory).collect();
        directories.into_iter().collect()
    }

    #[test]
    fn who_asks_again_has_taken_its_answer() {
        let takers = Takers::default();
        ask(&takers, 1, opcode::READDIRPLUS, 7, &[]);
        ask(&takers, 2, opcode::LOOKUP, 7, &[]);
        ask(&takers, 3, opcode::LOOKUP, 8, &[]);
        assert_eq!(waited_for(&takers), [7, 8]);
        ask(&takers, 1, opcode::FORGET, 9, &[]);
        ask(&takers, 2, opcode::OPEN, 9, &[]);
        assert_eq!(waited_for(&takers), [7, 8]);
        ask(&takers, 1, opcode::READDIRPLUS, 10, &[]);
        assert_eq!(waited_for(&takers), [8, 10]);
    }

    #[test]
    fn what_the_kernel_sends_later_or_is_read_later_says_nothing() {
        let takers = Takers::default();
        let ask = |opcode, unique| {
            takers.asks(&InHeader { pid: 1, opcode, node: 7, unique, ..InHeader::default() }, &[]);
        };
        ask(opcode::LOOKUP, 10);
        ask(opcode::RELEASE, 12);
        ask(opcode::OPEN, 8);
        ask(opcode::UNLINK, 9);
        assert_eq!(waited_for(&takers), [7]);
        ask(opcode::OPEN, 11);
        assert!(waited_for(&takers).is_empty());
    }

    #[test]
    fn who_changes_a_name_has_the_directory_alone() {
        let takers = Takers::default();
        for (pid, node) in [(1, 7), (2, 8), (3, 9)] {
            ask(&takers, pid, opcode::READDIRPLUS, node, &[]);
        }
        ask(&takers, 4, opcode::UNLINK, 7, b"name\0");
        ask(&takers, 4, opcode::GETATTR, 8, &[]);
        assert_eq!(waited_for(&takers), [8, 9]);
        ask(&takers, 4, opcode::RENAME2, 6, &[&9u64.to_ne_bytes()[..], &[0; 8]].concat());
        assert_eq!(waited_for(&takers), [8]);
    }

    #[test]
    fn what_is_looked_up_during_a_change_is_known() {
        let takers = Takers::default();
        let ask = |opcode, node, unique| {
            takers.asks(&InHeader { pid: 0, opcode, node, unique, ..InHeader::default() }, &8u64.to_ne_bytes());
        };
        ask(opcode::RENAME2, 7, 10);
        ask(opcode::SETATTR, 9, 12);
        // Read later than requests that were made after it.
        ask(opcode::LOOKUP, 7, 9);
        (7..=10).for_each(|directory| ask(opcode::LOOKUP, directory, 20 + directory));
        assert_eq!(waited_for(&takers), [10]);
        takers.is_answered(12);
        (7..=9).for_each(|directory| ask(opcode::LOOKUP, directory, 30 + directory));
        assert_eq!(waited_for(&takers), [9, 10]);
    }

    #[test]
    fn who_was_answered_long_ago_has_ended() {
        let takers = Takers::default();
        (1..=3).for_each(|thread| ask(&takers, thread, opcode::LOOKUP, 6 + u64::from(thread), &[]));
        (1..=2).for_each(|unique| takers.is_answered(unique));
        takers.asked().takers[0].answered = Instant::now().checked_sub(FORGOTTEN);
        ask(&takers, 4, opcode::GETATTR, 9, &[]);
        assert_eq!(waited_for(&takers), [8, 9]);
    }

    #[test]
    fn who_may_wait_for_a_change_is_not_waited_for_long() {
        let takers = Takers::default();
        ask(&takers, 1, opcode::READDIRPLUS, 7, &[]);
        ask(&takers, 2, opcode::UNLINK, 8, b"name\0");
        let began = Instant::now();
        takers.wait(|directory| directory == 7, |_| ());
        assert!((TAKING_AND_CHANGING..TAKING).contains(&began.elapsed()));
        assert_eq!(waited_for(&takers), [7]);
    }

    #[test]
    fn who_is_answered_by_another_host_is_not_waited_for_before() {
        let takers = Takers::default();
        (1..=2).for_each(|thread| ask(&takers, thread, opcode::LOOKUP, 7, &[]));
        takers.is_answered(1);
        takers.are_put_off();
        let mut hurried = 0;
        takers.are_done(7, 1);
        takers.wait(|_| true, |_| hurried += 1);
        assert_eq!(hurried, 0);
        takers.is_answered(2);
        std::thread::scope(|scope| {
            takers.wait(
                |_| true,
                |_| {
                    hurried += 1;
                    scope.spawn(|| takers.are_done(7, 2));
                },
            );
        });
        assert_eq!(hurried, 1);
    }

    #[test]
    fn who_asks_later_is_not_waited_for() {
        let takers = Takers::default();
        ask(&takers, 0, opcode::READDIRPLUS, 7, &[]);
        ask(&takers, 0, opcode::READDIRPLUS, 8, &[]);
        std::thread::scope(|scope| {
            let mut directories = Vec::new();
            let hurry = |directory| {
                directories.push(directory);
                let takers = &takers;
                scope.spawn(move || {
                    let number = takers.last();
                    ask(takers, 0, opcode::READDIRPLUS, directory, &[]);
                    takers.are_done(directory, number);
                });
            };
            takers.wait(|_| true, hurry);
            assert_eq!(directories, [7, 8]);
        });
        assert_eq!(waited_for(&takers), [7, 8]);
    }
}
