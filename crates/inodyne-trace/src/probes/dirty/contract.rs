//! What both sides share about dirty pages; the C is in `intf.h`.

use crate::contract::structures;

structures! {
    /// Who, and of which file system.
    Key = dirty_key;
    /// How much.
    Sum = dirty_sum;
}
