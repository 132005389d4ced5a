//! What tracing adds to one system call on this machine, now: the same cheap call in a loop, without and with the
//! programs attached and this thread followed. And what programs learn of such a thread about this kernel.

use std::os::unix::fs::FileExt;
use std::time::Instant;

const ROUNDS: usize = 7;
const CALLS: u32 = 3000;
/// What the kernel measures of programs is asked for in shorter rounds: it is one part of a difference, and start-up waits for it.
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

/// How long programs run at one `getppid`, in nanoseconds, by a measurement of all that they have run so far; the fastest of several rounds,
/// too.
pub fn nanoseconds_in_programs(so_far: impl Fn() -> u64) -> f64 {
    let measured = || {
        let before = so_far();
        round(MEASURED_CALLS);
        so_far().saturating_sub(before) as f64 / f64::from(MEASURED_CALLS)
    };
    (0..MEASURED_ROUNDS).map(|_| measured()).fold(f64::INFINITY, f64::min)
}

/// Reads the first page of a file through the page cache: of this program's. What is read, and whether it can be, does not matter.
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
