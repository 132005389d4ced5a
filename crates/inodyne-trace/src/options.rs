//! What a tracer is asked to do.

use std::str::FromStr;

use crate::contract::CALLS_64;
use crate::names;

/// What marks the requests that a server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestMarks {
    /// Data are read from a socket, and some are written to it.
    Sockets,
    /// These two calls on the same descriptor, by number.
    Calls(u16, u16),
}

/// Not the names of two calls.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two system calls on a descriptor are wanted, as in read,write, or sockets: not {0:?}")]
pub struct NoSuchMarks(String);

impl FromStr for RequestMarks {
    type Err = NoSuchMarks;

    fn from_str(text: &str) -> Result<RequestMarks, NoSuchMarks> {
        if text == "sockets" {
            return Ok(RequestMarks::Sockets);
        }
        let number = |name: &str| (0..CALLS_64 as u16).find(|number| names::call(*number).as_deref() == Some(name));
        let calls = text.split_once(',').and_then(|(read, write)| Some((number(read)?, number(write)?)));
        calls.map(|(read, write)| RequestMarks::Calls(read, write)).ok_or_else(|| NoSuchMarks(text.to_owned()))
    }
}

/// How much a tracer may record. The defaults suit everything but tests and very long runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// On-CPU samples per second and CPU; 0 switches sampling off. 997 is not a multiple of any timer's rate.
    pub sample_hz: u32,
    /// Whether to keep the timeline.
    pub timeline: bool,
    /// Size that the timeline's ring buffer may grow to, in bytes: a power of two, at least 4096.
    pub timeline_bytes: u32,
    /// Size that the ring buffer for ended threads and executed programs may grow to: a power of two, at least 4096. It may be larger if
    /// all of `max_threads` would otherwise not fit when they end at once.
    pub records_bytes: u32,
    /// Off-CPU intervals that the timeline has room for, with twice as many pieces of work: it ends if there are more.
    pub max_intervals: usize,
    /// How many different paths are kept of those looked up; 0: none are asked for.
    pub max_paths: u32,
    /// How many different files are kept of those used, one for each command that uses it; 0: none are asked for.
    pub max_files: u32,
    /// What marks the requests that are to be reported one by one. Needs the timeline for what they wait for.
    pub requests: Option<RequestMarks>,
    /// Threads alive at the same time, besides those that exist at the beginning and may be joined.
    pub max_threads: u32,
    /// Rows that the tables of waits and of samples have room for in the kernel. For a window, those of ended threads are taken out in time.
    pub max_rows: u32,
    /// Threads outside the command, alive at the same time, that are followed because the command waits for them.
    pub max_helpers: u32,
    /// Whether threads that are already running are to be joined ([`crate::Tracer::join`]).
    pub joins: bool,
    /// Whether only what a live view reads is to be looked at ([`crate::LiveTracer`]).
    pub live: bool,
    /// For tests: the name of a probe that the kernel is to refuse.
    pub refuse: Option<String>,
    /// For tests: whether kernel stacks that are recognised are unwound, too ([`crate::Tracer::known_stacks`]).
    pub check_known_stacks: bool,
}

/// The most intervals that are kept by default.
const MOST_INTERVALS: u64 = 4_000_000;
/// What an interval takes at most, with its pieces of work, when the critical path is walked.
const BYTES_PER_INTERVAL: u64 = 384;

/// How many intervals take no more than a sixteenth of this memory.
fn intervals_that_fit(memory_bytes: u64) -> usize {
    (memory_bytes / 16 / BYTES_PER_INTERVAL).min(MOST_INTERVALS) as usize
}

/// How many threads there are: the number after the slash in /proc/loadavg (proc_loadavg(5)).
fn threads_in(loadavg: &str) -> Option<u32> {
    loadavg.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

impl Options {
    /// How many existing threads may be joined.
    pub(crate) fn threads_there(&self) -> u32 {
        let there =
            if self.joins { threads_in(&std::fs::read_to_string("/proc/loadavg").unwrap_or_default()) } else { None };
        there.unwrap_or_default()
    }

    /// How many threads there must be room for.
    pub(crate) fn room_for_threads(&self) -> u32 {
        self.max_threads.saturating_add(self.threads_there())
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            sample_hz: 997,
            timeline: true,
            timeline_bytes: 16 << 20,
            records_bytes: 8 << 20,
            max_intervals: intervals_that_fit(rustix::system::sysinfo().totalram as u64),
            max_paths: 0,
            max_files: 0,
            requests: None,
            max_threads: 32_768,
            max_rows: 131_072,
            max_helpers: 256,
            joins: false,
            live: false,
            refuse: None,
            check_known_stacks: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_machine_keeps_fewer_intervals() {
        assert_eq!(intervals_that_fit(64 << 30), 4_000_000);
        assert_eq!(intervals_that_fit(2 << 30), 349_525);
    }

    #[test]
    fn marks_are_two_calls_or_sockets() {
        let (read, write) = (libc::SYS_read as u16, libc::SYS_write as u16);
        assert_eq!("read,write".parse(), Ok(RequestMarks::Calls(read, write)));
        assert_eq!("sockets".parse(), Ok(RequestMarks::Sockets));
        for wrong in ["", "read", "read,", "read,wrote", "read,write,close", "i386:read,write"] {
            assert_eq!(wrong.parse::<RequestMarks>(), Err(NoSuchMarks(wrong.to_owned())));
        }
    }

    #[test]
    fn a_machine_says_how_many_threads_it_has() {
        assert_eq!(threads_in("7.43 7.53 9.73 10/213 7716\n"), Some(213));
        assert_eq!(threads_in(""), None);
        let joining = Options { joins: true, ..Options::default() };
        assert!(joining.room_for_threads() > Options::default().room_for_threads());
        assert_eq!(Options::default().room_for_threads(), Options::default().max_threads);
    }
}
