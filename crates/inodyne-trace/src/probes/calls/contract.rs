//! What both sides share about system calls; the C is in `intf.h`.

use crate::contract::{constants, structures};

structures! {
    /// Calls of one kind by one command, on one CPU.
    CallStats = call_stats;
    /// What the tables of calls have given out so far.
    CallsUsed = calls_used;
}

constants! {
    call_limits {
        ERRNO_PLAIN: usize, ERRNO_RESTARTS: usize, ERRNO_OTHERS: usize, HISTOGRAM_BUCKETS: usize,
    }
}

const _: () = assert!(HISTOGRAM_BUCKETS == inodyne_model::histogram::BUCKETS, "both sides have the same histogram");
