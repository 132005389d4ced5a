//! How much of the critical path a wait, a call or a thread makes up.
//!
//! Sums over threads say what was done; the path says what the end of the command had to wait for. Each question here is
//! answered with time on the path, so no answer is ever more than what the ledger shows.

use std::collections::HashMap;
use std::hash::Hash;

use inodyne_model::observed::{ThreadNumber, Wait};
use inodyne_model::path::{Doing, DoingKind, WaitPlace};
use inodyne_model::trace::Trace;

/// Nanoseconds by the key that they are looked up by.
type Sums<K> = HashMap<K, f64>;
/// A wait by its thread, its call, and where it was.
type WaitKey<'a> = (ThreadNumber, Option<&'a str>, WaitPlace);

/// The doings on the path of one trace, to be looked up.
#[derive(Default)]
pub(crate) struct OnPath<'a> {
    waiting: Sums<WaitKey<'a>>,
    followed: Sums<WaitKey<'a>>,
    /// How many rows of the table of waits have this key. An interrupt is in several, one for each kind of thread that it broke into.
    rows: Sums<WaitKey<'a>>,
    running: Sums<(ThreadNumber, Option<&'a str>)>,
    ready: Sums<Option<&'a str>>,
    calls: Sums<&'a str>,
    threads: Sums<ThreadNumber>,
}

impl<'a> OnPath<'a> {
    /// The sums for a trace; none where its path could not be walked.
    pub(crate) fn of(trace: &'a Trace) -> Option<OnPath<'a>> {
        fn add<K: Hash + Eq>(sums: &mut Sums<K>, key: K, ns: f64) {
            *sums.entry(key).or_default() += ns;
        }
        if trace.path.doings.is_empty() {
            return None;
        }
        let mut all = OnPath::default();
        for wait in &trace.observed.waits {
            add(&mut all.rows, key(wait), 1.0);
        }
        for Doing { thread, syscall, kind, ns } in &trace.path.doings {
            let (call, ns) = (syscall.as_deref(), ns.0 as f64);
            match *kind {
                // The time belongs to another thread, and is counted there.
                DoingKind::Followed(place) => {
                    add(&mut all.followed, (*thread, call, place), ns);
                    continue;
                }
                DoingKind::Waiting(place) => add(&mut all.waiting, (*thread, call, place), ns),
                DoingKind::Running => add(&mut all.running, (*thread, call), ns),
                DoingKind::Ready => add(&mut all.ready, call, ns),
            }
            add(&mut all.threads, *thread, ns);
            if let Some(call) = call {
                add(&mut all.calls, call, ns);
            }
        }
        Some(all)
    }

    /// Time in a wait, whoever worked for it meanwhile. Of rows that are alike, each has its part.
    pub(super) fn waiting(&self, wait: &Wait) -> f64 {
        self.of_row(&self.waiting, wait)
    }

    /// Time in which the path was in another thread of the command, which this wait was for. Of rows that are alike, each has its part.
    pub(super) fn followed(&self, wait: &Wait) -> f64 {
        self.of_row(&self.followed, wait)
    }

    fn of_row(&self, sums: &Sums<WaitKey<'a>>, wait: &Wait) -> f64 {
        of(sums, &key(wait)) / of(&self.rows, &key(wait)).max(1.0)
    }

    /// Time on a CPU in a call of a thread, or outside of its calls.
    pub(super) fn running(&self, thread: ThreadNumber, call: Option<&str>) -> f64 {
        of(&self.running, &(thread, call))
    }

    /// Time without a CPU in this call, or outside of calls.
    pub(super) fn ready(&self, call: Option<&str>) -> f64 {
        of(&self.ready, &call)
    }

    /// Time in a call, of whatever kind.
    pub(super) fn in_call(&self, call: &str) -> f64 {
        of(&self.calls, &call)
    }

    /// Time of a thread, of whatever kind.
    pub(super) fn in_thread(&self, thread: ThreadNumber) -> f64 {
        of(&self.threads, &thread)
    }
}

fn key(wait: &Wait) -> WaitKey<'_> {
    let Wait { thread, stack, waker, waker_stack, .. } = *wait;
    (thread, wait.syscall.as_deref(), WaitPlace { stack, waker, waker_stack })
}

fn of<K: Hash + Eq>(sums: &Sums<K>, key: &K) -> f64 {
    sums.get(key).copied().unwrap_or(0.0)
}
