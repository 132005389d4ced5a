//! Files and directories that were used by descriptor, one by one.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Which files were used, by which commands, for what.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Files {
    /// Those that found room, most time first. A file that several commands use is listed once for each.
    pub used: Vec<FileUse>,
    /// Calls on files that found no room in the table, or whose descriptor was gone when they returned.
    pub not_kept: u64,
}

/// A file as the processes of one command name used it: calls of 64-bit programs that take or return a descriptor.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FileUse {
    /// The path as the process saw it when it first used the file; its beginning is replaced by `…` where it is longer than what
    /// is kept.
    pub path: String,
    /// The command name.
    pub comm: String,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// How often it was opened.
    pub opens: u64,
    /// Calls that read from it: `read` and its kin, and the source of `sendfile`, `splice` and `copy_file_range`.
    pub reads: u64,
    /// What they read, in bytes.
    pub read_bytes: u64,
    /// Calls that wrote to it, the target of a copy included.
    pub writes: u64,
    /// What they wrote, in bytes.
    pub written_bytes: u64,
    /// Calls of `getdents64`.
    pub lists: u64,
    /// Calls of `fsync`, `fdatasync` and `sync_file_range`.
    pub syncs: u64,
    /// Calls of `mmap`. What is then read and written through memory is not seen.
    pub maps: u64,
    /// Other calls: `fstat`, `lseek`, `ftruncate`, `fallocate`, `fadvise64`, `readahead`, `flock`.
    pub others: u64,
    /// Wall-clock time of all these calls; that of a call on two files is counted with the one that is read.
    pub wall_ns: Nanos,
    /// The part of that time spent blocked.
    pub blocked_ns: Nanos,
    /// Its size when it was last used, in bytes.
    pub size: u64,
}
