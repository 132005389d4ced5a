//! A command without its standard output, which it inherits: ours leads to nowhere meanwhile.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use crate::failure::{Failure, LACKING};

/// Ends with it.
pub struct Silence(OwnedFd);

impl Silence {
    /// Leads standard output to nowhere.
    pub fn begin() -> Result<Silence, Failure> {
        let lacking = |error: io::Error| Failure::new(LACKING, format_args!("cannot silence the command: {error}"));
        // What was printed before stands before.
        let _ = io::stdout().flush();
        let nowhere = File::options().write(true).open("/dev/null").map_err(lacking)?;
        let before = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3).map_err(|errno| lacking(errno.into()))?;
        lead_to(&nowhere).map_err(lacking)?;
        Ok(Silence(before))
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // Should it fail, there is nowhere to say so.
        let _ = lead_to(&self.0);
    }
}

fn lead_to(target: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: both are open descriptors; standard output is replaced as a whole, and stays open.
    match unsafe { libc::dup2(target.as_raw_fd(), libc::STDOUT_FILENO) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
