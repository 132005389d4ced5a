//! What tracing adds to one system call on this machine, now: the same cheap call in a loop, without and with the
//! programs attached and this thread followed. Also what the programs learn about this kernel from such a thread.

use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use crate::perf_event;

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

/// How often a timer interrupts this thread while its interrupts are measured, and for how long.
const TIMER_HZ: u32 = 10_000;
const TIMED_FOR: Duration = Duration::from_millis(1);
/// What takes a thread between two readings of the clock, unless it is interrupted.
const MOST_BETWEEN: Duration = Duration::from_micros(1);
/// Fewer interruptions than this tell nothing.
const ENOUGH_INTERRUPTS: usize = 5;

/// What one interrupt of the timer that samples takes from whatever runs, in nanoseconds, apart from its program: the median of some. None
/// where there are no such timers, or this thread was moved to another CPU meanwhile.
pub fn nanoseconds_per_timer_interrupt() -> Option<f64> {
    let _timer = perf_event::cpu_clock(rustix::thread::sched_getcpu() as i32, TIMER_HZ).ok()?;
    let mut gaps = Vec::with_capacity(2 * (TIMER_HZ as usize) / 1_000);
    let start = Instant::now();
    let mut last = start;
    while last - start < TIMED_FOR {
        let now = Instant::now();
        if now - last > MOST_BETWEEN {
            gaps.push(now - last);
        }
        last = now;
    }
    gaps.sort_unstable();
    (gaps.len() >= ENOUGH_INTERRUPTS).then(|| gaps[gaps.len() / 2].as_nanos() as f64)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_of_a_timer_are_seen() {
        assert!(rustix::process::geteuid().is_root(), "this test opens perf events of a CPU: run it as root");
        // Unless the thread is moved to another CPU each time.
        let seen = (0..20).find_map(|_| nanoseconds_per_timer_interrupt()).expect("the timer interrupts this thread");
        assert!((MOST_BETWEEN.as_nanos() as f64..1e9 / f64::from(TIMER_HZ)).contains(&seen), "{seen} ns");
    }
}
