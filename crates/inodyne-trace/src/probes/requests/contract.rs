//! What both sides share about requests; the C is in `intf.h`.

use crate::contract::{constants, structures};

structures! {
    /// A request that has been answered.
    Record = request_record;
}

constants! {
    request_marks { REQUESTS_OF_SOCKETS: u32, REQUESTS_OF_CALLS: u32 }
    request_limits { REQUESTS_UNDER_WAY: u32 }
}
