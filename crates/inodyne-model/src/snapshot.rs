//! What a tracer has seen up to an instant, while it goes on.
//!
//! All of it are sums that grow, so the later of two snapshots less the earlier is what happened in between.

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
    /// The accounts of all threads that live, up to the instant, and of those that have ended since the snapshot before; their waits;
    /// and the stacks that no snapshot before had.
    pub observed: Observed,
    /// What else is known of each of the threads.
    pub threads: HashMap<ThreadNumber, ThreadSoFar>,
    /// What could not be recorded.
    pub lost: Lost,
}

/// What is known of a thread besides its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadSoFar {
    /// Calls that it has made.
    pub calls: u64,
    /// Its process's id where this program runs, as `/proc` has it; none where that is not seen there.
    pub pid_here: Option<NonZero<u32>>,
    /// The time that it ran in calls that were not timed, and in user mode between them: in its account it is in neither.
    pub untimed_ns: Nanos,
    /// What its account has too much in calls, since each that was timed stands for others: an estimate of how much of `untimed_ns` was in
    /// calls.
    pub stood_ns: Nanos,
}
