//! What both sides share about files; the C is in `intf.h`.

use crate::contract::{constants, structures};

structures! {
    /// Which file, and used by whom.
    Key = file_key;
    /// How it is used.
    Sum = file_sum;
}

constants! {
    file_use {
        USED_OTHERWISE: usize, USED_OPEN: usize, USED_READ: usize, USED_WRITE: usize, USED_LIST: usize, USED_SYNC: usize,
        USED_MAP: usize,
    }
}
