//! Adds up what threads of the command were doing while the path was in them, or with whoever they waited for.
//!
//! ```text
//! A     run │ …………… waits for a lock ……………│ run        the path in B during the wait of A is both B's doing,
//! B         └──── run │ waits for a disk ──┘            and time in which A's wait was followed
//! ```
//!
//! A diagnosis asks how much of the wall-clock time a wait is. The sum over all threads cannot say that: what waits beside
//! the path costs nobody anything.

use std::collections::HashMap;

use inodyne_model::Nanos;
use inodyne_model::cause::Cause;
use inodyne_model::observed::ThreadNumber;
use inodyne_model::path::{Doing, DoingKind, WaitPlace};

/// How many nested waits are followed at once; more only come from a damaged file.
const DEEPEST: usize = 32;

/// What a thread was doing, with the number of its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) thread: ThreadNumber,
    pub(super) call: u32,
    pub(super) kind: DoingKind,
}

/// A wait of a thread of the command, from its beginning on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) thread: ThreadNumber,
    pub(super) call: u32,
    pub(super) place: WaitPlace,
    pub(super) cause: Cause,
    pub(super) since: u64,
}

impl Waiting {
    /// The doing of whoever waits.
    pub(super) fn key(&self) -> Key {
        Key { thread: self.thread, call: self.call, kind: DoingKind::Waiting(self.place) }
    }
}

/// All that was added up so far.
#[derive(Default)]
pub(super) struct Doings {
    sums: HashMap<Key, u64>,
    followed: Vec<Waiting>,
}

impl Doings {
    /// Adds time of a thread.
    pub(super) fn add(&mut self, key: Key, ns: u64) {
        let sum = self.sums.entry(key).or_default();
        *sum = sum.saturating_add(ns);
    }

    /// The path leaves a wait for the thread of the command that ended it.
    pub(super) fn follow(&mut self, waiting: Waiting) {
        if self.followed.len() < DEEPEST {
            self.followed.push(waiting);
        }
    }

    /// The path goes back from `now` to `to`: this is time of all waits that began before; of those for the same cause, only of the last.
    pub(super) fn pass(&mut self, now: u64, to: u64) {
        self.followed.retain(|waiting| waiting.since < now);
        for at in 0..self.followed.len() {
            let Waiting { thread, call, place, cause, since } = self.followed[at];
            let to = to.max(since);
            let inner = self.followed[at + 1..].iter().filter(|other| is_alike(other.cause, cause));
            // One that began later takes the outer one's time only back to its own beginning.
            let until = inner.map(|other| other.since).fold(now, u64::min);
            if until > to {
                self.add(Key { thread, call, kind: DoingKind::Followed(place) }, until - to);
            }
        }
    }

    /// All of them, in an order that depends only on them.
    pub(super) fn finish(self, name: impl Fn(u32) -> String) -> Vec<Doing> {
        let mut all: Vec<Doing> = self
            .sums
            .into_iter()
            .filter(|(_, ns)| *ns > 0)
            .map(|(Key { thread, call, kind }, ns)| {
                let name = name(call);
                Doing { thread, syscall: (!name.is_empty()).then_some(name), kind, ns: Nanos(ns) }
            })
            .collect();
        all.sort_by(|a, b| (a.thread, &a.syscall, a.kind, a.ns).cmp(&(b.thread, &b.syscall, b.kind, b.ns)));
        all
    }
}

/// Whether two causes are the same to those who ask: all kernel locks are.
fn is_alike(a: Cause, b: Cause) -> bool {
    a == b || (a.is_lock() && b.is_lock())
}
