//! What could not be recorded. A loss is a number in the report, never silence.

use serde::{Deserialize, Serialize};

/// Counts of events that happened but are not in the trace, by what was full or failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Lost {
    /// Calls that are in no table: the table of (command, call) pairs was full.
    pub calls: u64,
    /// Threads that were not followed: the table of live threads was full.
    pub threads: u64,
    /// Records of ended threads and executed programs that found no room in the ring buffer.
    pub records: u64,
    /// Off-CPU intervals missing from the timeline: its ring buffer or its bound was full.
    pub intervals: u64,
    /// Waits that are in no (thread, call, stack) row: that table was full. Their time is kept as `other`.
    pub waits: u64,
    /// Samples that found no room.
    pub samples: u64,
    /// Stacks that could not be taken or kept.
    pub stacks: u64,
    /// Directory reads or forced look-ups that could not be classed.
    pub dtype: u64,
    /// Pieces of work, and intervals of helpers, that found no room.
    pub work: u64,
    /// Wake-ups by threads of others that were not followed: there were too many of these.
    pub helpers: u64,
    /// Program runs that the kernel skipped (recursion on one CPU).
    pub skipped: u64,
}

impl Lost {
    /// Everything that was lost.
    pub fn total(&self) -> u64 {
        let Lost { calls, threads, records, intervals, waits, samples, stacks, dtype, work, helpers, skipped } = *self;
        [calls, threads, records, intervals, waits, samples, stacks, dtype, work, helpers, skipped]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}
