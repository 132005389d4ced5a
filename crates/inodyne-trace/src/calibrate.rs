//! What tracing adds to one system call on this machine, now: the same cheap call in a loop, without and with the
//! programs attached and this thread followed.

use std::time::Instant;

const ROUNDS: usize = 7;
/// Calls in a round.
pub const CALLS: u32 = 3000;

/// The time of one `getppid`, in nanoseconds: the fastest of several rounds, so that an interruption does not count.
pub fn nanoseconds_per_call() -> f64 {
    let timed = || {
        let start = Instant::now();
        round();
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (0..ROUNDS).map(|_| timed()).fold(f64::INFINITY, f64::min)
}

/// One round of calls.
pub fn round() {
    for _ in 0..CALLS {
        // SAFETY: getppid takes nothing and always succeeds.
        unsafe { libc::syscall(libc::SYS_getppid) };
    }
}
