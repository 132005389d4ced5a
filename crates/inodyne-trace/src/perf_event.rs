//! Opening perf's events: perf_event_open(2).

use std::os::fd::{FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys;

/// Whether this process may open perf events of tracepoints, one of which has this number: some distributions require more than
/// CAP_PERFMON (their `kernel.perf_event_paranoid` of 3).
pub fn may_open_tracepoint(id: u64) -> bool {
    let attributes = libbpf_sys::perf_event_attr {
        type_: libbpf_sys::PERF_TYPE_TRACEPOINT,
        config: id,
        size: size_of::<libbpf_sys::perf_event_attr>() as u32,
        ..Default::default()
    };
    open(&attributes, 0).is_ok()
}

/// A timer on one CPU that fires `hz` times a second, whoever runs there.
///
/// # Errors
/// The kernel refuses it, or there is no such CPU.
pub fn cpu_clock(cpu: i32, hz: u32) -> std::io::Result<OwnedFd> {
    let mut attributes = libbpf_sys::perf_event_attr {
        type_: libbpf_sys::PERF_TYPE_SOFTWARE,
        config: libbpf_sys::PERF_COUNT_SW_CPU_CLOCK.into(),
        size: size_of::<libbpf_sys::perf_event_attr>() as u32,
        ..Default::default()
    };
    attributes.__bindgen_anon_1.sample_freq = hz.into();
    attributes.set_freq(1);
    open(&attributes, cpu)
}

/// Opens an event for all processes on one CPU.
fn open(attributes: &libbpf_sys::perf_event_attr, cpu: i32) -> std::io::Result<OwnedFd> {
    const PERF_FLAG_FD_CLOEXEC: u64 = 8; // include/uapi/linux/perf_event.h
    // SAFETY: the attributes are valid for their stated size; all processes (-1) on one CPU, no group.
    let descriptor = unsafe { libc::syscall(libc::SYS_perf_event_open, attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC) };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}
