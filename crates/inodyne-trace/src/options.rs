//! What a tracer is asked for.

/// How much a tracer may record. The defaults suit everything but tests and very long runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// On-CPU samples a second and CPU; 0 switches sampling off. 997 is not a multiple of any timer's rate.
    pub sample_hz: u32,
    /// Whether to keep the timeline.
    pub timeline: bool,
    /// Size of the timeline's ring buffer in bytes: a power of two, at least 4096.
    pub timeline_bytes: u32,
    /// Size of the ring buffer for ended threads and executed programs: a power of two, at least 4096.
    pub records_bytes: u32,
    /// Intervals kept of a run; the rest is counted as lost.
    pub max_intervals: usize,
    /// Different paths kept of those looked up; 0: none are asked for.
    pub max_paths: u32,
    /// Different files kept of those used, one for each command that uses it; 0: none are asked for.
    pub max_files: u32,
    /// Threads alive at the same time.
    pub max_threads: u32,
    /// Threads of others, alive at the same time, that are followed because the command waits for them.
    pub max_helpers: u32,
    /// Different (command, call) pairs, at most 65,534.
    pub max_call_stats: u32,
    /// Whether threads that run already are to be joined ([`crate::Tracer::join`]).
    pub joins: bool,
    /// Whether only what a live view reads is to be looked at ([`crate::LiveTracer`]).
    pub live: bool,
    /// For tests: the name of a probe that the kernel is to refuse.
    pub refuse: Option<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            sample_hz: 997,
            timeline: true,
            timeline_bytes: 16 << 20,
            records_bytes: 8 << 20,
            max_intervals: 4_000_000,
            max_paths: 0,
            max_files: 0,
            max_threads: 8192,
            max_helpers: 256,
            max_call_stats: 1024,
            joins: false,
            live: false,
            refuse: None,
        }
    }
}
