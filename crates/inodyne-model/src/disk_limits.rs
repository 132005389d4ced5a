//! What a disk can do, as measured on its own.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// What a disk can do: measured with `fio` on a file in a file system on it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiskLimits {
    /// When, in seconds since 1970.
    pub measured_unix_s: u64,
    /// The release of the kernel.
    pub kernel: String,
    /// The kind of the file system.
    pub fs: String,
    /// How much of the file was read and written.
    pub file_bytes: u64,
    /// How long a read of 4 KiB takes somewhere in the file, one at a time.
    pub read: Latency,
    /// How many such reads are answered per second, [`DiskLimits::AT_ONCE`] at once.
    pub reads_per_s: u64,
    /// How much is read per second sequentially, in pieces of 1 MiB.
    pub read_bytes_per_s: u64,
    /// How much is written per second in the same way.
    pub write_bytes_per_s: u64,
    /// How long `fdatasync` takes after a write of 4 KiB to the page cache.
    pub flush: Latency,
}

/// How long something takes that was done many times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Latency {
    /// Half of them were faster.
    pub p50_ns: Nanos,
    /// All but one in a hundred were.
    pub p99_ns: Nanos,
}

impl DiskLimits {
    /// How many reads are in flight at once where there are many.
    pub const AT_ONCE: u32 = 32;
}
