//! What a tracer has seen up to an instant, while it is still running.
//!
//! All of these are sums that grow, so the later of two snapshots minus the earlier is what happened in between.

use std::collections::HashMap;
use std::num::NonZero;

use crate::Nanos;
use crate::loss::Lost;
use crate::observed::{Observed, ThreadNumber};

/// What was seen up to an instant.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// The instant, on the monotonic clock.
    pub at_ns: Nanos,
    /// The accounts, up to the instant, of all threads that are alive and of those that have ended since the previous snapshot; their
    /// waits; and the stacks that no previous snapshot had.
    pub observed: Observed,
    /// What else is known about each of the threads.
    pub threads: HashMap<ThreadNumber, ThreadSoFar>,
    /// What could not be recorded.
    pub lost: Lost,
}

/// What is known about a thread besides its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadSoFar {
    /// Calls that it has made.
    pub calls: u64,
    /// The id that its process has where this program runs, as in `/proc`; none where it is not visible there.
    pub pid_here: Option<NonZero<u32>>,
    /// The time that it ran in calls that were not timed, and in user mode between those calls. Its account has it under neither.
    pub untimed_ns: Nanos,
    /// By how much the time in calls is too large in its account, since each call that was timed stands for others: an estimate of how much of
    /// `untimed_ns` was in calls.
    pub stood_ns: Nanos,
}
