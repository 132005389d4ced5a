//! A script of the user's that makes data: run in the place, as the user that the command will run as.
//!
//! It and all that it starts live in a process namespace of their own, whose first process it is: when it ends, or we do, the
//! kernel kills whatever is left of them, so that nothing goes on writing into the place or keeps it from being unmounted.
//! What it prints is nobody's business unless it fails.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::{Command, Output, Stdio},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{PidfdFlags, Signal, getpid, pidfd_open, set_parent_process_death_signal},
    thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe},
};

use crate::{LabError, Owner};

/// Where a script finds its seed: the same one must make the same data.
const SEED: &str = "INODYNE_SEED";

/// Runs `script` in `directory` to its end.
pub(crate) fn run(script: &Path, seed: u64, directory: &Path, owner: Owner) -> Result<(), LabError> {
    let failed = |problem: String| LabError::Script { path: script.into(), problem };
    // It starts in another directory.
    let program = script.canonicalize().map_err(|error| failed(error.to_string()))?;
    let us = pidfd_open(getpid(), PidfdFlags::empty()).map_err(|errno| failed(errno.to_string()))?;
    let watched = us.as_raw_fd();
    let mut command = Command::new(&program);
    command.current_dir(directory).env(SEED, seed.to_string()).stdin(Stdio::null());
    if owner != Owner::ROOT {
        command.uid(owner.uid).gid(owner.gid);
    }
    let die_with_us = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // Its parent has no number in its namespace, so it is asked otherwise whether it is still there.
        // SAFETY: the descriptor is closed by the exec that follows, and not before.
        let us = unsafe { BorrowedFd::borrow_raw(watched) };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut [PollFd::new(&us, PollFlags::IN)], Some(&now))? {
            0 => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    };
    // SAFETY: between fork and exec only system calls are made, nothing is allocated; after the change of user, which would
    // take the signal back.
    unsafe { command.pre_exec(die_with_us) };
    let output = in_namespace_of_its_own(|| command.output()).map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(complaint(&output))),
    }
}

/// Starts what is started by `start` in a new process namespace.
fn in_namespace_of_its_own<T>(start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let ours = File::open("/proc/thread-self/ns/pid")?;
    // SAFETY: decides where later children of this thread are born, and shares nothing otherwise.
    unsafe { unshare_unsafe(UnshareFlags::NEWPID) }?;
    let started = start();
    move_into_link_name_space(ours.as_fd(), Some(LinkNameSpaceType::ProcessID))?;
    started
}

/// How it ended, with the last that it said.
fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    match text.lines().map(str::trim).rfind(|line| !line.is_empty()) {
        Some(line) => format!("{}: {line}", output.status),
        None => output.status.to_string(),
    }
}
