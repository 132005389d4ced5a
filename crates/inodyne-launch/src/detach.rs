//! How a helper process leaves behind what it was forked with: no descriptors but its own, a session of its own without a
//! terminal, and ignoring what a terminal sends to everybody at it. It ends when its work does.

use std::{ffi::CStr, os::fd::RawFd};

use crate::signals;

/// The ranges of descriptors (first and last) that [`detach`] is to close so that only `kept` stay open.
pub fn all_except(mut kept: Vec<RawFd>) -> Vec<(RawFd, RawFd)> {
    kept.sort_unstable();
    let starts = std::iter::once(0).chain(kept.iter().map(|fd| fd + 1));
    let ends = kept.iter().map(|fd| fd - 1).chain([RawFd::MAX]);
    starts.zip(ends).filter(|(start, end)| start <= end).collect()
}

/// Closes these descriptors, and leaves session, terminal and directory. `name` is what `ps` shows for the process. Only
/// system calls are made, nothing is allocated: another thread of the parent may have held the allocator's lock.
///
/// # Safety
/// Only for a process that was just forked, which uses none of these descriptors.
pub unsafe fn detach(closed: &[(RawFd, RawFd)], name: &CStr) {
    // SAFETY: nobody uses what is closed, as the caller promises.
    unsafe { close_ranges(closed) };
    signals::ignore_those_not_for_helpers();
    // SAFETY: system calls on strings that live here. None of them can fail in a process that was just forked.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        libc::chdir(c"/".as_ptr());
    }
}

/// Closes descriptors; it is not an error if some in a range are not open.
///
/// # Safety
/// Nothing in this process uses or closes them later.
pub(crate) unsafe fn close_ranges(ranges: &[(RawFd, RawFd)]) {
    for (first, last) in ranges {
        // SAFETY: numbers only; nobody uses what is closed, as the caller promises. Linux 5.9 and newer have the call.
        unsafe { libc::syscall(libc::SYS_close_range, *first, *last, 0) };
    }
}

#[cfg(test)]
mod tests {
    use super::all_except;

    #[test]
    fn what_is_kept_is_between_what_is_closed() {
        assert_eq!(all_except(vec![7, 3]), [(0, 2), (4, 6), (8, i32::MAX)]);
        assert_eq!(all_except(vec![0, 1]), [(2, i32::MAX)]);
    }
}
