//! What both sides share about the page cache; the C is in `intf.h`.

use crate::contract::{constants, structures};

structures! {
    /// Who, during which call, of which file system.
    Key = page_cache_key;
    /// How many pages.
    Row = page_cache_row;
    /// Which pages of which file.
    ChunkKey = page_chunk_key;
    /// What became of them.
    Chunk = page_chunk;
    /// Sums of a CPU.
    Totals = page_totals;
}

constants! {
    page_contents { PAGES_OF_METADATA: u8 }
}
