//! How many descriptors there are to use, and how to have room for them at no cost later.

use std::os::fd::AsRawFd;

use rustix::{
    event::{EventfdFlags, eventfd},
    io::fcntl_dupfd_cloexec,
    process::{Resource, getrlimit},
};

/// Descriptors that directories may take, all workers together: what the process may have, less a reserve for the rest
/// of the process and for short moments.
pub(crate) fn descriptor_budget() -> usize {
    const RESERVE: u64 = 24;
    const ENOUGH: u64 = 4096;
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    (limit - RESERVE.min(limit / 2)).clamp(4, ENOUGH) as usize
}

/// Makes room for `wanted` more descriptors at once, while there is one thread. With several, the kernel waits for all
/// processors (`synchronize_rcu` in `expand_files`, fs/file.c) each time the table grows: tens of milliseconds.
pub(crate) fn widen_descriptor_table(wanted: usize) {
    let Ok(lowest) = eventfd(0, EventfdFlags::CLOEXEC) else { return };
    // Without it the rest is slower, not wrong.
    let _ = fcntl_dupfd_cloexec(&lowest, lowest.as_raw_fd() + wanted as i32);
}
