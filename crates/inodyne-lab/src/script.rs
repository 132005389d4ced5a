//! A script of the user's that makes data: run in the place, as the user that the command will run as.
//!
//! It and all that it starts live in a PID namespace of their own, of which it is the first process: when it ends, or we do, the
//! kernel kills whatever is left of them, so that nothing goes on writing into the place or keeps it from being unmounted.
//! What it prints is nobody's business unless it fails.

use std::{
    fs::File,
    io::{self, Read, Seek},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

use inodyne_launch::User;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{MemfdFlags, memfd_create},
    io::retry_on_intr,
    process::{Pid, PidfdFlags, Signal, getegid, geteuid, getpid, pidfd_open, set_parent_process_death_signal},
    thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe},
};

use crate::{LabError, Owner};

/// Where a script finds its seed: the same one must make the same data.
const SEED: &str = "INODYNE_SEED";

/// Runs `script` in `directory` to its end, or until the user no longer wants it.
pub(crate) fn run(script: &Path, seed: u64, directory: &Path, owner: Owner) -> Result<(), LabError> {
    let failed = |problem: String| LabError::Script { path: script.into(), problem };
    // It starts in another directory.
    let program = script.canonicalize().map_err(|error| failed(error.to_string()))?;
    let us = pidfd_open(getpid(), PidfdFlags::empty()).map_err(|errno| failed(errno.to_string()))?;
    let watched = us.as_raw_fd();
    let said = memfd_create(c"inodyne-script", MemfdFlags::CLOEXEC).map_err(|errno| failed(errno.to_string()))?;
    let mut said = File::from(said);
    let heard = said.try_clone().map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new(&program);
    command.current_dir(directory).env(SEED, seed.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(heard);
    let user = user_for(owner);
    if let Some(user) = &user {
        command.envs(user.variables());
    }
    let begin = move || {
        inodyne_launch::unblock_all()?;
        if let Some(user) = &user {
            user.take_over()?;
        }
        // After the change of user, which would reset the signal.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent has no PID in the child's namespace, so whether it is still there is asked in another way.
        // SAFETY: the descriptor is closed by the exec that follows, and not before.
        let us = unsafe { BorrowedFd::borrow_raw(watched) };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut [PollFd::new(&us, PollFlags::IN)], Some(&now))? {
            0 => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    };
    // SAFETY: between fork and exec only system calls are made, nothing is allocated.
    unsafe { command.pre_exec(begin) };
    let child = in_namespace_of_its_own(|| command.spawn());
    let status = child.and_then(end_of).map_err(|error| failed(error.to_string()))?;
    match status.success() {
        true => Ok(()),
        false => Err(failed(complaint(status, &mut said))),
    }
}

/// How often to check whether the user still wants it.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Waits for the end. A terminal's Ctrl-C does nothing to the first process of a namespace that does not ask for it.
fn end_of(mut child: Child) -> io::Result<ExitStatus> {
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    while !inodyne_launch::is_asked_to_end() {
        let mut ended = [PollFd::new(&process, PollFlags::IN)];
        if retry_on_intr(|| poll(&mut ended, Some(&LOOK_EVERY)))? > 0 {
            return child.wait();
        }
    }
    child.kill()?;
    child.wait()
}

/// Whom the process has to become; none where it is that user already. A user without an entry has only a number, and no home.
fn user_for(owner: Owner) -> Option<User> {
    if (owner.uid, owner.gid) == (geteuid().as_raw(), getegid().as_raw()) {
        return None;
    }
    Some(match User::with_id(owner.uid) {
        Some(user) => User { gid: owner.gid, ..user },
        None => User {
            name: owner.uid.to_string(),
            uid: owner.uid,
            gid: owner.gid,
            groups: vec![owner.gid],
            home: "/".into(),
        },
    })
}

/// Starts what `start` starts in a new PID namespace.
fn in_namespace_of_its_own<T>(start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let ours = File::open("/proc/thread-self/ns/pid")?;
    // SAFETY: decides where later children of this thread are born, and shares nothing otherwise.
    unsafe { unshare_unsafe(UnshareFlags::NEWPID) }?;
    let started = start();
    move_into_link_name_space(ours.as_fd(), Some(LinkNameSpaceType::ProcessID))?;
    started
}

/// How it ended, with the last that it said.
fn complaint(status: ExitStatus, said: &mut File) -> String {
    let mut bytes = Vec::new();
    // What cannot be read is as if it had not been said.
    let _ = said.rewind().and_then(|()| said.read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    match text.lines().map(str::trim).rfind(|line| !line.is_empty()) {
        Some(line) => format!("{status}: {line}"),
        None => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_user_comes_with_groups_and_home_and_the_own_one_stays() {
        let own = Owner { uid: geteuid().as_raw(), gid: getegid().as_raw() };
        assert_eq!(user_for(own), None);
        let known = user_for(Owner { uid: 65534, gid: 7 }).expect("another");
        assert_eq!((known.uid, known.gid, Some(known.home)), (65534, 7, User::with_id(65534).map(|user| user.home)));
        let unknown = user_for(Owner { uid: 4_000_000, gid: 7 }).expect("another");
        assert_eq!((unknown.name.as_str(), unknown.groups, unknown.gid), ("4000000", vec![7], 7));
    }

    /// A script with this text, in a directory of its own where anybody may write.
    fn script(text: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let script = directory.path().join("make");
        // Written by another process, since a test beside this one may fork while it is open for writing (ETXTBSY).
        let mut write = Command::new("sh");
        write.args(["-c", r#"printf %s "$1" >"$0" && chmod 755 "$0" && chmod 777 "${0%/*}""#]).arg(&script).arg(text);
        assert!(write.status().expect("sh runs").success());
        (directory, script)
    }

    /// Blocks SIGTERM in this thread, as while signals are read from a descriptor.
    fn block_term() -> libc::sigset_t {
        // SAFETY: a plain structure for which zero is valid; all pointers are live.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigaddset(&mut set, libc::SIGTERM);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            set
        }
    }

    #[test]
    fn one_that_hangs_ends_when_the_user_wants_no_more() {
        let (directory, script) = script("#!/bin/sh\ntrap '' TERM INT\necho hangs >&2\nsleep 1000 & wait\n");
        let set = block_term();
        // SAFETY: the signal is sent to this thread, which blocks it, and taken below.
        unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGTERM) };
        let error = run(&script, 1, directory.path(), Owner { uid: 0, gid: 0 }).expect_err("it was ended");
        // SAFETY: the set holds a signal that is pending, and what was sent with it is not asked for.
        assert_eq!(unsafe { libc::sigwaitinfo(&set, std::ptr::null_mut()) }, libc::SIGTERM);
        assert!(error.to_string().contains("signal: 9"), "{error}");
    }

    #[test]
    fn what_a_failing_one_said_last_is_told() {
        let (directory, script) = script("#!/bin/sh\necho first >&2\necho last >&2\nexit 3\n");
        let error = run(&script, 1, directory.path(), Owner { uid: 0, gid: 0 }).expect_err("it fails");
        assert!(error.to_string().ends_with("exit status: 3: last"), "{error}");
    }

    #[test]
    fn it_starts_as_its_user_with_no_signal_blocked() {
        let text = "#!/bin/sh\necho $HOME $USER $(id -u) $(id -G) $(grep SigBlk: /proc/self/status)>told\n";
        let (directory, script) = script(text);
        block_term();
        run(&script, 1, directory.path(), Owner { uid: 4_000_000, gid: 7 }).expect("it runs");
        let told = std::fs::read_to_string(directory.path().join("told")).expect("it was told");
        assert_eq!(told.trim(), "/ 4000000 4000000 7 SigBlk: 0000000000000000");
    }
}
