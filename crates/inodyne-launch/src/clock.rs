//! The clock by which starts and ends are timed.

use std::time::Duration;

use inodyne_model::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC`, which is also the clock of all trace times: BPF reads it as `bpf_ktime_get_ns`.
pub fn monotonic_ns() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// CPU time of this process, for all its threads.
pub fn own_cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}
