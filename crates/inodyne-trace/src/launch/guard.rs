//! The guard process: parent of the command, adoptive parent of what the command leaves behind, and the one who
//! cleans up should inodyne die.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use inodyne_model::Nanos;
use inodyne_model::run::Exit;
use nix::sys::signal::{SigHandler, SigSet, Signal, kill, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{ForkResult, Pid as NixPid};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Pid;

use super::child;
use super::protocol::{Channel, Order, Report, Stage};
use super::{Ended, Spec};
use crate::session::monotonic_ns;

/// Signals that a terminal sends to the whole foreground group, or that a user may send to it: for the command to act on,
/// not for the guard.
const NOT_FOR_THE_GUARD: [Signal; 8] = [
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGHUP,
    Signal::SIGTERM,
    Signal::SIGTSTP,
    Signal::SIGTTIN,
    Signal::SIGTTOU,
    Signal::SIGPIPE,
];

/// Forks the guard. Returns in the parent only.
pub fn fork(spec: &Spec, channel: Channel, arm_program: Option<BorrowedFd<'_>>) -> io::Result<Pid> {
    // SAFETY: the process has one thread (a condition of `start`), so the copy is whole.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Parent { child } => Ok(Pid::from_raw(child.as_raw()).expect("fork returns a pid")),
        ForkResult::Child => {
            let failed = serve(spec, &channel, arm_program).is_err();
            // SAFETY: ends the copy without running the parent's destructors (its mounts, its files).
            unsafe { libc::_exit(i32::from(failed)) }
        }
    }
}

fn serve(spec: &Spec, channel: &Channel, arm_program: Option<BorrowedFd<'_>>) -> io::Result<()> {
    close_all_but(&[Some(channel.as_fd()), arm_program]);
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    for ignored in NOT_FOR_THE_GUARD {
        // SAFETY: no handler is installed.
        unsafe { signal(ignored, SigHandler::SigIgn) }?;
    }
    let mut children = SigSet::empty();
    children.add(Signal::SIGCHLD);
    children.thread_set_mask()?;
    let child_ended = SignalFd::with_flags(&children, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;

    let held = match child::fork(spec, arm_program) {
        Ok(held) => held,
        Err((stage, errno)) => return channel.send_report(&Report::NotStarted { stage, errno }),
    };
    channel.send_report(&Report::Ready { pid: held.pid.as_raw() })?;
    if channel.next_order()? != Some(Order::Release) {
        kill_all();
        return Ok(());
    }
    let command = held.pid;
    let released_ns = monotonic_ns();
    if let Err((stage, errno)) = held.release() {
        return channel.send_report(&Report::NotStarted { stage, errno });
    }
    let mut reported = false;
    loop {
        let mut ready = [PollFd::new(&child_ended, PollFlags::IN), PollFd::new(channel, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut ready, None))?;
        let (a_child, an_order) = (!ready[0].revents().is_empty(), !ready[1].revents().is_empty());
        if a_child {
            while child_ended.read_signal()?.is_some() {}
            let ended_ns = monotonic_ns();
            if let Some((status, usage)) = reap(command)
                && !reported
            {
                reported = true;
                let ended = ended(status, &usage, released_ns, ended_ns);
                channel.send_report(&Report::Ended(ended))?;
            }
        }
        if an_order {
            match channel.next_order() {
                Ok(Some(Order::Leave)) => return Ok(()),
                Ok(Some(Order::Release)) => {}
                Ok(Some(Order::Kill) | None) | Err(_) => {
                    kill_all();
                    return Ok(());
                }
            }
        }
    }
}

/// Closes every descriptor above standard error but these. The guard must not keep the tracing programs attached, nor
/// a mount or loop device in use, after inodyne is gone.
fn close_all_but(kept: &[Option<BorrowedFd<'_>>]) {
    let mut kept: Vec<u32> = kept.iter().flatten().map(|fd| fd.as_raw_fd() as u32).collect();
    kept.sort_unstable();
    let mut first = 3;
    for fd in kept.into_iter().chain([u32::MAX]) {
        if first < fd {
            // SAFETY: descriptors of the parent's copy that nothing in this process will use or close again.
            unsafe { libc::syscall(libc::SYS_close_range, first, fd - 1, 0) };
        }
        first = fd.saturating_add(1);
    }
}

/// Waits for all children that have ended; returns the command's status if it is among them.
fn reap(command: NixPid) -> Option<(i32, libc::rusage)> {
    let mut found = None;
    loop {
        let mut status = 0;
        // SAFETY: plain old data, valid when zero.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are valid for writing.
        let pid = unsafe { libc::wait4(-1, &mut status, libc::WNOHANG, &mut usage) };
        match pid {
            ..=0 => return found,
            _ if pid == command.as_raw() => found = Some((status, usage)),
            _ => {}
        }
    }
}

fn ended(status: i32, usage: &libc::rusage, released_ns: Nanos, ended_ns: Nanos) -> Ended {
    let nanos = |time: libc::timeval| Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000);
    let exit = if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    };
    Ended {
        released_ns,
        ended_ns,
        exit,
        user_ns: nanos(usage.ru_utime),
        sys_ns: nanos(usage.ru_stime),
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
        major_faults: usage.ru_majflt as u64,
        minor_faults: usage.ru_minflt as u64,
        max_rss_bytes: usage.ru_maxrss as u64 * 1024,
        left_running: children().len() as u32,
    }
}

/// Kills everything below the guard. A killed process's children come to the guard (it is their subreaper), so this
/// ends when there are no more.
fn kill_all() {
    loop {
        for child in children() {
            // ESRCH: it has just ended.
            let _ = kill(child, Signal::SIGKILL);
        }
        let mut status = 0;
        // SAFETY: the pointer is valid for writing.
        if unsafe { libc::waitpid(-1, &mut status, 0) } < 0 {
            return;
        }
    }
}

/// The guard's children, from /proc.
fn children() -> Vec<NixPid> {
    let me = std::process::id();
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| parent_of(*pid) == Some(me)).map(NixPid::from_raw).collect()
}

fn parent_of(pid: i32) -> Option<u32> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything, so count from the last one: ") S PPID".
    let after = &stat[stat.iter().rposition(|b| *b == b')')? + 1..];
    let mut fields = std::str::from_utf8(after).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (state != "Z").then_some(parent)
}

/// A pipe, closed on exec.
pub(super) fn pipe() -> Result<(OwnedFd, OwnedFd), (Stage, i32)> {
    let mut ends = [0; 2];
    // SAFETY: an array of two, as pipe2 wants.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } < 0 {
        return Err((Stage::Prepare, nix::errno::Errno::last_raw()));
    }
    // SAFETY: two new descriptors that nobody else owns.
    unsafe { Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))) }
}
