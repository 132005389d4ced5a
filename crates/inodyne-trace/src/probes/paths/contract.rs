//! What both sides share about paths; the C is in `intf.h`.

use crate::contract::structures;

structures! {
    /// A path in one kind of call.
    Counted = path_count;
}
