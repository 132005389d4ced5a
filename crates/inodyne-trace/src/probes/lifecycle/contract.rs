//! What both sides share about lives; the C is in `intf.h`.

use crate::contract::{constants, structures};

structures! {
    /// An ended thread.
    ThreadRecord = thread_record;
    /// An executed program.
    ProgramRecord = program_record;
    /// A process that ended.
    ExitRecord = exit_record;
}

constants! {
    record_kind { RECORD_THREAD: u32, RECORD_PROGRAM: u32, RECORD_EXIT: u32 }
    program_limits { PROGRAM_ARGS: usize }
}
