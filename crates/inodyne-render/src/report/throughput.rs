//! How much a command does per second: calls of its traced run, the files that they are about or list, and the bytes that they move,
//! divided by the time of the case.

use inodyne_model::syscall::{SyscallStats, plain_name, returns_bytes};

use super::case::Case;
use crate::units;

/// Less than this in a run is not reported.
const LEAST_BYTES: u64 = 1_000_000;
const LEAST_FILES: u64 = 100;
const LEAST_CALLS: u64 = 1_000;

/// What is done per second; `None` for what is too little to matter.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Throughput {
    /// Read or written by the command, whichever is more.
    pub(super) bytes: Option<f64>,
    /// Opened, made, renamed or removed; or read as entries of directories, if these are more.
    pub(super) files: Option<f64>,
    /// Calls that returned.
    pub(super) calls: Option<f64>,
}

impl Throughput {
    /// That of a case; nothing for a window of running processes.
    pub(super) fn of(case: &Case<'_>) -> Throughput {
        let Some(trace) = case.trace.filter(|_| case.window().is_none()) else { return Throughput::default() };
        let seconds = case.wall().as_secs_f64();
        if seconds <= 0.0 {
            return Throughput::default();
        }
        let sum = |of: &dyn Fn(&SyscallStats) -> u64| trace.syscalls.iter().map(of).fold(0u64, u64::saturating_add);
        let moved = |is_meant: fn(&str) -> bool| {
            sum(&|call| call.bytes.filter(|_| is_meant(plain_name(&call.name))).unwrap_or_default())
        };
        let files = sum(&|call| if is_of_a_file(&call.name) { call.calls - call.errors.min(call.calls) } else { 0 });
        let rate = |count: u64, least: u64| (count >= least).then(|| count as f64 / seconds);
        Throughput {
            bytes: rate(moved(reads).max(moved(writes)), LEAST_BYTES),
            files: rate(files.max(trace.dtype.entries), LEAST_FILES),
            calls: rate(sum(&|call| call.calls), LEAST_CALLS),
        }
    }

    /// `27.2 MB/s, 1,203 files/s`; empty if there is nothing to say.
    pub(super) fn in_words(self) -> String {
        let count = |rate: Option<f64>, what| rate.map(|rate| format!("{} {what}/s", units::rate(rate)));
        let bytes = self.bytes.map(|rate| format!("{}/s", units::rate_of_bytes(rate)));
        let all = [bytes, count(self.files, "files"), count(self.calls, "calls")];
        all.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Calls that move bytes between two files, which is both reading and writing.
fn copies(call: &str) -> bool {
    matches!(call, "sendfile" | "splice" | "copy_file_range")
}

fn writes(call: &str) -> bool {
    copies(call) || returns_bytes(call) && (call.contains("write") || call.starts_with("send"))
}

fn reads(call: &str) -> bool {
    // File names are not data.
    copies(call) || returns_bytes(call) && !writes(call) && call != "getdents64"
}

/// Whether a call opens, makes, renames or removes a file.
fn is_of_a_file(call: &str) -> bool {
    const VERBS: [&str; 8] = ["open", "creat", "mkdir", "mknod", "link", "symlink", "rename", "unlink"];
    let name = plain_name(call);
    let is_one = |verb: &&str| name.strip_prefix(*verb).is_some_and(|end| matches!(end, "" | "at" | "at2" | "2"));
    VERBS.iter().any(is_one) || name == "rmdir"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_by_what_they_do() {
        let files = ["openat", "openat2", "creat", "unlinkat", "renameat2", "rmdir", "i386:mkdir"];
        assert!(files.into_iter().all(is_of_a_file));
        assert!(!["open_tree", "openat_x", "newfstatat", "read"].into_iter().any(is_of_a_file));
        assert!(reads("pread64") && writes("pwritev2") && reads("sendfile") && writes("sendfile"));
        assert!(!reads("getdents64") && !writes("read") && !reads("sendto"));
    }

    #[test]
    fn only_what_there_is_is_said() {
        let some = Throughput { bytes: Some(27_200_000.0), files: Some(1_203.0), calls: None };
        assert_eq!(some.in_words(), "27.2 MB/s, 1,203 files/s");
        let slow = Throughput { bytes: Some(1.4), files: Some(0.01), calls: None };
        assert_eq!(slow.in_words(), "1.4 bytes/s, <0.1 files/s");
        assert_eq!(Throughput::default().in_words(), "");
    }
}
