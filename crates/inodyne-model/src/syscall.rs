//! What is known about one system call over a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::histogram::Histogram;

/// Counts and times of one system call. The wall time of a call is from its entry to its return, and is always
/// CPU + run queue + blocked; where the tracer does not divide calls ([`crate::trace::Tracer`]) these three are zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyscallStats {
    /// The kernel's name, as strace prints it (`newfstatat`); the name of a 32-bit call is prefixed with `i386:`. See [`plain_name`].
    pub name: String,
    /// Calls that returned. `exit` and `exit_group` never do.
    pub calls: u64,
    /// Calls that returned an error (-4095 to -1, as strace counts).
    pub errors: u64,
    /// The same by the error's name (`ENOENT`).
    pub errors_by_errno: BTreeMap<String, u64>,
    /// The part of the wall-clock time in calls that returned an error.
    #[serde(default)]
    pub failed_ns: Nanos,
    /// Bytes moved, for calls that return a number of them (`read`, `write` and their like).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Total wall-clock time.
    pub wall_ns: Nanos,
    /// The part on a CPU.
    pub cpu_ns: Nanos,
    /// The part ready but without a CPU.
    pub runqueue_ns: Nanos,
    /// The part not able to run.
    pub blocked_ns: Nanos,
    /// The shortest call.
    pub min_ns: Nanos,
    /// The longest call.
    pub max_ns: Nanos,
    /// Median of the wall time of a call, within 6.25%.
    pub p50_ns: Nanos,
    /// 90th percentile, within 6.25%.
    pub p90_ns: Nanos,
    /// 99th percentile, within 6.25%.
    pub p99_ns: Nanos,
    /// Distribution of the wall time of a call.
    pub histogram: Histogram,
}

impl SyscallStats {
    /// An empty row for a call.
    pub fn new(name: String) -> SyscallStats {
        SyscallStats {
            name,
            calls: 0,
            errors: 0,
            errors_by_errno: BTreeMap::new(),
            failed_ns: Nanos::ZERO,
            bytes: None,
            wall_ns: Nanos::ZERO,
            cpu_ns: Nanos::ZERO,
            runqueue_ns: Nanos::ZERO,
            blocked_ns: Nanos::ZERO,
            min_ns: Nanos(u64::MAX),
            max_ns: Nanos::ZERO,
            p50_ns: Nanos::ZERO,
            p90_ns: Nanos::ZERO,
            p99_ns: Nanos::ZERO,
            histogram: Histogram::default(),
        }
    }

    /// Adds the calls of another row, and recomputes the percentiles.
    pub fn merge(&mut self, other: &SyscallStats) {
        self.calls = self.calls.saturating_add(other.calls);
        self.errors = self.errors.saturating_add(other.errors);
        for (errno, count) in &other.errors_by_errno {
            let sum = self.errors_by_errno.entry(errno.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
        self.failed_ns += other.failed_ns;
        if let Some(bytes) = other.bytes {
            self.bytes = Some(self.bytes.unwrap_or_default().saturating_add(bytes));
        }
        self.wall_ns += other.wall_ns;
        self.cpu_ns += other.cpu_ns;
        self.runqueue_ns += other.runqueue_ns;
        self.blocked_ns += other.blocked_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.histogram.merge(&other.histogram);
        self.compute_percentiles();
    }

    /// Sets the percentiles from the histogram.
    pub fn compute_percentiles(&mut self) {
        let quantile = |q| self.histogram.quantile(q, self.min_ns, self.max_ns);
        (self.p50_ns, self.p90_ns, self.p99_ns) = (quantile(0.50), quantile(0.90), quantile(0.99));
    }
}

/// The prefix to the name of a call made by a 32-bit program, by processor.
pub const OF_32_BITS: [&str; 2] = ["i386:", "arm:"];

/// The name by which a call is known in 64 bits: `i386:stat64` does what `stat` does. Numbers, which older recordings have in
/// place of 32-bit names, are kept.
pub fn plain_name(name: &str) -> &str {
    let Some(name) = OF_32_BITS.iter().find_map(|processor| name.strip_prefix(processor)) else { return name };
    match name {
        "oldstat" | "stat64" => "stat",
        "oldlstat" | "lstat64" => "lstat",
        "oldfstat" | "fstat64" => "fstat",
        "fstatat64" => "newfstatat",
        "statfs64" => "statfs",
        "fstatfs64" => "fstatfs",
        "_llseek" => "lseek",
        "_newselect" => "select",
        "waitpid" => "wait4",
        "fcntl64" => "fcntl",
        "mmap2" => "mmap",
        "sendfile64" => "sendfile",
        "truncate64" => "truncate",
        "ftruncate64" => "ftruncate",
        "chown32" => "chown",
        "lchown32" => "lchown",
        "fchown32" => "fchown",
        "fadvise64_64" => "fadvise64",
        "utimensat_time64" => "utimensat",
        "futex_time64" => "futex",
        "clock_nanosleep_time64" => "clock_nanosleep",
        "ppoll_time64" => "ppoll",
        "pselect6_time64" => "pselect6",
        "io_pgetevents_time64" => "io_pgetevents",
        "recvmmsg_time64" => "recvmmsg",
        _ => name,
    }
}

/// Whether a call of this name looks up a path, and may find nothing there. A log may name 32-bit calls without saying that they are.
pub fn looks_up(name: &str) -> bool {
    matches!(
        plain_name(name),
        "stat"
            | "stat64"
            | "lstat"
            | "lstat64"
            | "newfstatat"
            | "fstatat64"
            | "statx"
            | "open"
            | "openat"
            | "openat2"
            | "access"
            | "faccessat"
            | "faccessat2"
            | "readlink"
            | "readlinkat"
            | "execve"
            | "execveat"
    )
}

/// Whether a call of this name returns the number of bytes that it has moved between a file and the process, or between two files.
pub fn returns_bytes(name: &str) -> bool {
    matches!(
        plain_name(name),
        "read"
            | "write"
            | "pread64"
            | "pwrite64"
            | "readv"
            | "writev"
            | "preadv"
            | "pwritev"
            | "preadv2"
            | "pwritev2"
            | "sendfile"
            | "splice"
            | "copy_file_range"
            | "recvfrom"
            | "sendto"
            | "recvmsg"
            | "sendmsg"
            | "getdents64"
    )
}

/// The calls of all processes with one command name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommCalls {
    /// The command name (`comm`) at the time of the call's return.
    pub comm: String,
    /// Its calls, most wall time first.
    pub syscalls: Vec<SyscallStats>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_32_bits_are_what_they_do() {
        assert_eq!(
            ["i386:stat64", "i386:read", "i386:futex_time64", "stat"].map(plain_name),
            ["stat", "read", "futex", "stat"]
        );
        // What older recordings say.
        assert_eq!(plain_name("i386:195"), "195");
        assert_eq!(plain_name("arm:fstatat64"), "newfstatat");
        assert!(looks_up("i386:fstatat64") && looks_up("openat") && !looks_up("i386:getpid"));
        assert!(returns_bytes("i386:pread64") && !returns_bytes("i386:_llseek"));
    }
}
