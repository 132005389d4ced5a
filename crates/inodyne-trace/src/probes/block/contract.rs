//! What both sides share about requests to block devices; the C is in `intf.h`.

use crate::contract::{constants, structures};

structures! {
    /// What requests that are counted together have in common.
    Key = block_key;
    /// Requests that are counted together.
    Row = block_row;
    /// A disk.
    DiskTotals = block_disk;
}

constants! {
    block_flag {
        BLOCK_SYNC: u16, BLOCK_META: u16, BLOCK_READ_AHEAD: u16, BLOCK_FUA: u16, BLOCK_PREFLUSH: u16, BLOCK_BACKGROUND: u16,
        BLOCK_SWAP: u16,
    }
    block_asker { BLOCK_OF_COMMAND: u8, BLOCK_OF_KERNEL: u8, BLOCK_OF_OTHERS: u8 }
}
