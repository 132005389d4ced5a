//! What both sides share about samples; the C is in `intf.h`.

use crate::contract::{constants, structures};

structures! {
    /// Whose sample, and where.
    SampleKey = sample_key;
    /// A stack in user mode.
    UserFrames = user_frames;
    /// One frame of it.
    UserFrame = user_frame;
}

constants! {
    sample_limits { FRAME_IN_FILE: i32 }
}
