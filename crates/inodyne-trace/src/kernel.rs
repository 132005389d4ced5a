//! Properties of this kernel that CO-RE cannot ask about: told by the names that its type information has or lacks.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::perf_event::may_open_tracepoint;
use crate::types;

/// Names that only occur together where programs at tracepoints are preemptible: what guards tracepoints from then on
/// (`DEFINE_SRCU_FAST(tracepoint_srcu)`, kernel/tracepoint.c), and a field of it that the guard of the same name before Linux 6.13 did
/// not have.
const PREEMPTIBLE: [&[u8]; 2] = [b"\0tracepoint_srcu_srcu_data\0", b"\0srcu_ctrs\0"];

/// A request flag that is a macro before Linux 6.11, and from then on a constant of an anonymous enum, which CO-RE cannot look for.
const NUMBERED: &[u8] = b"\0__RQF_IO_STAT\0";

/// What is attached to one of three tracepoints that were added together in Linux 6.12.
const SHOWS_PAGES: &[u8] = b"\0btf_trace_mm_filemap_get_pages\0";

/// Where libbpf looks up the number by which perf knows an event.
const EVENTS: [&str; 2] = ["/sys/kernel/debug/tracing/events", "/sys/kernel/tracing/events"];

/// Whether programs at tracepoints keep their CPU on a kernel (`bpf/preempt.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Programs {
    /// They keep their CPU until they are done.
    KeepCpu,
    /// They can lose it. Programs at the perf events of the same tracepoints keep it, and this process may open such events.
    KeepCpuAtEvents,
    /// They can lose it, and there is no alternative.
    LoseCpu,
}

impl Programs {
    /// For this kernel.
    pub fn here() -> Programs {
        if !programs_lose_cpu() {
            Programs::KeepCpu
        } else if has_perf_events() {
            Programs::KeepCpuAtEvents
        } else {
            Programs::LoseCpu
        }
    }
}

/// What was found in the type information.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    preemptible: bool,
    numbered: bool,
    shows_pages: bool,
}

fn found() -> Found {
    static KNOWN: OnceLock<Found> = OnceLock::new();
    let look = |names: &[u8]| Found {
        preemptible: PREEMPTIBLE.iter().all(|sign| has(names, sign)),
        numbered: has(names, NUMBERED),
        shows_pages: has(names, SHOWS_PAGES),
    };
    *KNOWN.get_or_init(|| types::names_of_kernel().map(look).unwrap_or_default())
}

/// Bytes per page: 4 KiB, or 16 or 64 KiB on some arm64 kernels.
pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Whether this kernel may preempt programs at tracepoints (`bpf/preempt.h`).
pub fn programs_lose_cpu() -> bool {
    found().preemptible
}

/// Whether request flags are numbered by an enum, named or not (`probes/block/kernel.h`).
pub fn request_flags_are_numbered() -> bool {
    found().numbered
}

/// Whether this kernel shows which pages of the page cache are asked for (`probes/page_cache`).
pub fn shows_pages_asked_for() -> bool {
    found().shows_pages
}

/// Whether programs can be attached to perf events of tracepoints, which are known by numbers in tracefs.
fn has_perf_events() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    let id = |events: &&str| {
        let text = fs::read_to_string(Path::new(events).join("raw_syscalls/sys_enter/id")).ok()?;
        text.trim().parse().ok()
    };
    *KNOWN.get_or_init(|| EVENTS.iter().find_map(id).is_some_and(may_open_tracepoint))
}

fn has(names: &[u8], sign: &[u8]) -> bool {
    memchr::memmem::find(names, sign).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_kernels_names_are_found_whole() {
        let names = types::names_of_kernel().expect("a kernel with type information");
        assert!(has(names, b"\0task_struct\0") && has(names, b"\0sum_exec_runtime\0"));
        assert!(!has(names, b"\0no_such_name_in_any_kernel\0"));
    }
}
