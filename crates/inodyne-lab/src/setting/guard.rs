//! The process that restores a setting when the one that changed it has ended without doing so.
//!
//! It holds a pipe, the setting's file, and nothing else: no mount is in use by it, no loop device, no terminal, no control group. When
//! the other end of the pipe is gone, it writes the old value and ends; when it is told that all is restored, it only ends.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd},
    time::Duration,
};

use inodyne_launch::{all_except, detach};
use rustix::{
    io::retry_on_intr,
    pipe::{PipeFlags, pipe_with},
};

/// How often a value is written where the kernel is busy with what a setting belongs to: for a second in all.
pub(super) const TRIES: u32 = 100;
/// How long to wait each time.
pub(super) const PAUSE: Duration = Duration::from_millis(10);
/// By which errors the kernel says that it is busy.
pub(super) const BUSY: [i32; 3] = [libc::EAGAIN, libc::EBUSY, libc::EINTR];

/// Roots of the hierarchies by which services, sessions and containers are ended: that of version 2, alone or beside version 1, and systemd's
/// own of version 1.
const CGROUP_ROOTS: [&str; 3] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"];

/// The guard, seen from the process that it guards.
#[derive(Debug)]
pub(super) struct Guard {
    pub(super) pid: libc::pid_t,
    pipe: OwnedFd,
}

impl Guard {
    /// Starts a guard that will write these values to these files if this process ends before the guard is dropped, and waits
    /// until nothing but that can end it.
    pub fn fork(restored: &[(BorrowedFd<'_>, &[u8])]) -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        let (is_armed, armed) = pipe_with(PipeFlags::CLOEXEC)?;
        // Nothing may be allocated in the child: another thread may have held the allocator's lock.
        let restored: Vec<_> = restored.iter().map(|(fd, value)| (fd.as_raw_fd(), *value)).collect();
        let pipes = [read.as_raw_fd(), armed.as_raw_fd()];
        let closed = all_except(restored.iter().map(|(fd, _)| *fd).chain(pipes).collect());
        // SAFETY: the child makes system calls on memory that was ready before, and never returns.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => serve(&closed, pipes, &restored),
            pid => {
                drop(armed);
                let guard = Self { pid, pipe: write };
                match retry_on_intr(|| rustix::io::read(&is_armed, &mut [0_u8; 1]))? {
                    0 => Err(io::Error::other("it has ended")),
                    _ => {
                        guard.leave_cgroups();
                        Ok(guard)
                    }
                }
            }
        }
    }

    /// Whoever ends a service or a CI job kills everything in its control group at once (`cgroup.kill`), the guard with what it guards. Where
    /// leaving is not allowed, as without that file system in a container, it stays.
    fn leave_cgroups(&self) {
        for root in CGROUP_ROOTS {
            let members = OpenOptions::new().write(true).open(format!("{root}/cgroup.procs"));
            let _ = members.and_then(|mut members| write!(members, "{}", self.pid));
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // A word rather than the pipe's end: a process that is just being started may hold the pipe for a moment.
        let _ = rustix::io::write(&self.pipe, b".");
        // SAFETY: no pointer is followed; a guard that somebody else has waited for is simply no child any more.
        while unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) } < 0
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
    }
}

/// Whether to leave a value at that: all of it was written, or none of it ever can be. Should that fail for good, there is nobody left to
/// tell: the file has vanished with its device. What is invalid may be so only until another guard has restored what it depends on: the
/// kernel takes no `min_ratio` above `max_ratio`.
fn is_settled(written: isize, length: usize, error: i32) -> bool {
    match usize::try_from(written) {
        Ok(written) => written == length,
        Err(_) => error != libc::EINVAL && !BUSY.contains(&error),
    }
}

/// The guard's whole life.
fn serve(closed: &[(RawFd, RawFd)], [pipe, armed]: [RawFd; 2], restored: &[(RawFd, &[u8])]) -> ! {
    let pause = libc::timespec { tv_sec: 0, tv_nsec: PAUSE.subsec_nanos().into() };
    // SAFETY: system calls on numbers, constant strings and memory of the parent's copy, all of which live here.
    unsafe {
        detach(closed, c"inodyne-guard");
        let mut byte = b'.';
        libc::write(armed, (&raw const byte).cast(), 1);
        libc::close(armed);
        let mut heard = libc::read(pipe, (&raw mut byte).cast(), 1);
        while heard < 0 && *libc::__errno_location() == libc::EINTR {
            heard = libc::read(pipe, (&raw mut byte).cast(), 1);
        }
        for (fd, value) in restored.iter().filter(|_| heard != 1) {
            for _ in 0..TRIES {
                let written = libc::pwrite(*fd, value.as_ptr().cast(), value.len(), 0);
                if is_settled(written, value.len(), *libc::__errno_location()) {
                    break;
                }
                libc::nanosleep(&pause, std::ptr::null_mut());
            }
        }
        libc::_exit(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_yet_be_taken_is_written_again() {
        assert!(is_settled(4, 4, 0) && !is_settled(3, 4, 0) && !is_settled(0, 4, 0));
        assert!(is_settled(-1, 4, libc::ENODEV) && BUSY.iter().all(|busy| !is_settled(-1, 4, *busy)));
        assert!(!is_settled(-1, 4, libc::EINVAL));
        // What failed before is no matter where something was written.
        assert!(!is_settled(3, 4, libc::ENODEV) && is_settled(4, 4, libc::EBUSY));
    }
}
