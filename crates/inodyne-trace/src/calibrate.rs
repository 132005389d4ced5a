//! What tracing adds to one system call on this machine, now: the same cheap call in a loop, without and with the
//! programs attached and this thread followed. Also what the programs learn about this kernel from such a thread.

use std::os::unix::fs::FileExt;
use std::time::Instant;

const ROUNDS: usize = 7;
const CALLS: u32 = 3000;
/// Rounds that read the kernel's own measurement of programs are shorter: it is one term of a difference, and start-up waits for it.
const MEASURED_ROUNDS: usize = 3;
const MEASURED_CALLS: u32 = 1000;

/// The time of one `getppid`, in nanoseconds: the fastest of several rounds, so that an interruption does not count.
pub fn nanoseconds_per_call() -> f64 {
    let timed = || {
        let start = Instant::now();
        round(CALLS);
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (0..ROUNDS).map(|_| timed()).fold(f64::INFINITY, f64::min)
}

/// How long programs run for one `getppid`, in nanoseconds, given a reading of their total run time so far; again the fastest of several
/// rounds.
pub fn nanoseconds_in_programs(so_far: impl Fn() -> u64) -> f64 {
    let measured = || {
        let before = so_far();
        round(MEASURED_CALLS);
        so_far().saturating_sub(before) as f64 / f64::from(MEASURED_CALLS)
    };
    (0..MEASURED_ROUNDS).map(|_| measured()).fold(f64::INFINITY, f64::min)
}

/// Reads the first page of this program's own file through the page cache. What is read, and whether that works, does not matter.
pub fn read_a_page() {
    let mut byte = [0];
    let _ = std::fs::File::open("/proc/self/exe").and_then(|file| file.read_at(&mut byte, 0));
}

fn round(calls: u32) {
    for _ in 0..calls {
        // SAFETY: getppid takes nothing and always succeeds.
        unsafe { libc::syscall(libc::SYS_getppid) };
    }
}
