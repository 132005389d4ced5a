//! How a helper process of ours stands apart from the one that it was forked from: no descriptors but its own, no
//! terminal, deaf to what a terminal sends to everybody at it. It ends when its work does, not when somebody is impatient.

use std::{ffi::CStr, os::fd::RawFd};

/// Signals that a terminal sends to everybody at it, or somebody who wants all to end nicely: no reason to end earlier
/// than the rest does.
const IGNORED: [libc::c_int; 8] = [
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGHUP,
    libc::SIGTERM,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGPIPE,
];

/// The ranges of descriptors between these.
pub(crate) fn all_but(mut kept: Vec<RawFd>) -> Vec<(RawFd, RawFd)> {
    kept.sort_unstable();
    let starts = std::iter::once(0).chain(kept.iter().map(|fd| fd + 1));
    let ends = kept.iter().map(|fd| fd - 1).chain([RawFd::MAX]);
    starts.zip(ends).filter(|(start, end)| start <= end).collect()
}

/// Closes these descriptors, and leaves terminal and directory. Only system calls are made, nothing is allocated.
///
/// # Safety
/// Only for a process that was just forked, which uses none of these descriptors.
pub(crate) unsafe fn stand_apart(closed: &[(RawFd, RawFd)], name: &CStr) {
    // SAFETY: system calls on numbers and on strings that live here; what is closed nobody uses, as the caller says.
    unsafe {
        for (first, last) in closed {
            libc::syscall(libc::SYS_close_range, *first, *last, 0);
        }
        libc::setsid();
        for signal in IGNORED {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        libc::chdir(c"/".as_ptr());
    }
}

#[cfg(test)]
mod tests {
    use super::all_but;

    #[test]
    fn what_is_kept_is_between_what_is_closed() {
        assert_eq!(all_but(vec![7, 3]), [(0, 2), (4, 6), (8, i32::MAX)]);
        assert_eq!(all_but(vec![0, 1]), [(2, i32::MAX)]);
    }
}
