//! What both sides share about switches; the C is in `intf.h`.

use crate::contract::{constants, structures};

structures! {
    /// Who waited where, and who ended it.
    WaitKey = wait_key;
    /// How long and how often.
    WaitSum = wait_sum;
    /// An interval off the CPU.
    IntervalRecord = interval_record;
    /// A piece of work, with room for all its parts.
    WorkRecord = work_record;
    /// The part of a piece in one call.
    WorkPart = work_part;
}

constants! {
    timeline_kind { TIMELINE_INTERVAL: u32, TIMELINE_WORK: u32 }
}
