//! What tracing adds to one system call on this machine, now: the same cheap call in a loop, and one for which the kernel does more, without and
//! with the programs attached and this thread followed. Also what the programs learn about this kernel from such a thread.

use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use crate::perf_event;

/// What a loop calls.
#[derive(Debug, Clone, Copy)]
pub enum Loop {
    /// `getppid`, of which nearly all is the way into the kernel and back.
    Cheap,
    /// `openat` of a device file, and `close`: what the kernel runs in between displaces the tracer's code and is displaced by it.
    Opens,
}

impl Loop {
    /// Makes so many calls.
    fn run(self, calls: u32) {
        match self {
            Loop::Cheap => {
                for _ in 0..calls {
                    // SAFETY: getppid takes nothing and always succeeds.
                    unsafe { libc::syscall(libc::SYS_getppid) };
                }
            }
            Loop::Opens => {
                for _ in 0..calls / 2 {
                    // Whether it can be opened does not matter: then the call is cheaper.
                    let _ = std::fs::File::open("/dev/null");
                }
            }
        }
    }

    /// How many rounds, and of how many calls.
    fn rounds(self) -> (usize, u32) {
        match self {
            Loop::Cheap => (7, 3000),
            Loop::Opens => (5, 200),
        }
    }

    /// The same for rounds in which the kernel's own measurement of programs is read: one term of a difference, and start-up waits for it.
    fn measured_rounds(self) -> (usize, u32) {
        match self {
            Loop::Cheap => (3, 1000),
            Loop::Opens => (3, 200),
        }
    }
}

/// The time of one call, in nanoseconds: the fastest of several rounds, so that an interruption does not count.
pub fn nanoseconds_per_call(calls: Loop) -> f64 {
    let (rounds, each) = calls.rounds();
    let timed = || {
        let start = Instant::now();
        calls.run(each);
        start.elapsed().as_nanos() as f64 / f64::from(each)
    };
    (0..rounds).map(|_| timed()).fold(f64::INFINITY, f64::min)
}

/// How long programs run for one call, in nanoseconds, given a reading of their total run time so far; again the fastest of several
/// rounds.
pub fn nanoseconds_in_programs(calls: Loop, so_far: impl Fn() -> u64) -> f64 {
    let (rounds, each) = calls.measured_rounds();
    let measured = || {
        let before = so_far();
        calls.run(each);
        so_far().saturating_sub(before) as f64 / f64::from(each)
    };
    (0..rounds).map(|_| measured()).fold(f64::INFINITY, f64::min)
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
