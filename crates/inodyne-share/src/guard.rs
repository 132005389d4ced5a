//! Something that is to be done when this process ends, whatever ends it.
//!
//! A process cannot rely on doing anything at its own end. So a second one waits for it: it holds nothing but one end of a socket, sees the
//! other one close whatever the reason, and does what is to be done. It is not limited by what this process has given up in the meantime.

use std::{
    io::{self, Read, Write},
    os::{fd::AsRawFd, unix::net::UnixStream},
};

use rustix::process::setsid;

use crate::ShareError;

/// The second process. Dropped, it is told that all is done, and waited for.
#[derive(Debug)]
pub(crate) struct Guard {
    pid: libc::pid_t,
    life: Option<UnixStream>,
}

impl Guard {
    /// Starts it, from a process with one thread, and returns once it holds nothing of what is open here: a mount that it still held would
    /// be busy for whoever unmounts it. `at_the_end` must need nothing that is open now.
    pub fn start(at_the_end: impl FnOnce()) -> Result<Self, ShareError> {
        let failed = |source| ShareError::System { what: "start a guard", source };
        let (mut ours, its) = UnixStream::pair().map_err(failed)?;
        // SAFETY: there is one thread, and the child uses copies of what was made before and never returns.
        match unsafe { libc::fork() } {
            -1 => Err(failed(io::Error::last_os_error())),
            0 => {
                watch(its, at_the_end);
                // SAFETY: ends the copy, and nothing else.
                unsafe { libc::_exit(0) }
            }
            pid => {
                drop(its);
                let is_ready = ours.read_exact(&mut [0]);
                let guard = Self { pid, life: Some(ours) };
                is_ready.map(|()| guard).map_err(failed)
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.life.take());
        // SAFETY: no memory is passed; the process is ours.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

/// The guard's whole life.
fn watch(mut life: UnixStream, at_the_end: impl FnOnce()) {
    // A signal to the terminal's process group is not meant for it.
    let _ = setsid();
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: ignoring a signal runs no code.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let own = life.as_raw_fd() as u32;
    // SAFETY: closes what this copy does not use: everything but its end of the socket.
    unsafe {
        libc::close_range(own + 1, u32::MAX, 0);
        if own > 0 {
            libc::close_range(0, own - 1, 0);
        }
        libc::prctl(libc::PR_SET_NAME, c"share-guard".as_ptr());
    }
    let _ = rustix::process::chdir("/");
    // If nobody is left to be told, the end has already come.
    let _ = life.write_all(&[0]);
    let _ = life.read(&mut [0]);
    at_the_end();
}
