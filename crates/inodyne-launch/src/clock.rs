//! The clock on which starts and ends are told.

use std::time::Duration;

use inodyne_model::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC`, the clock of all trace times too: BPF reads it as `bpf_ktime_get_ns`.
pub fn monotonic_ns() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// CPU time of this process, of all its threads.
pub fn own_cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}
