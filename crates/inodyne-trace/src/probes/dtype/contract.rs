//! What both sides share about directory entries; the C is in `intf.h`.

use crate::contract::{constants, structures};

structures! {
    /// Work in progress, and what a CPU has seen so far.
    Walk = walk;
    /// Reads of a file system that gave entries without a type.
    FilesystemSum = dtype_fs;
    /// Which directory.
    DirectoryKey = directory_key;
    /// Its path and its entries.
    Directory = directory;
    /// Who looked, and by which call.
    ForcedKey = forced_key;
    /// How often and how long.
    ForcedSum = forced_sum;
}

constants! {
    dtype_limits { PATH_NAME: usize }
}
