//! The guard process: parent of the command, adoptive parent of what the command leaves behind, and the one that
//! cleans up should inodyne die.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use inodyne_model::Nanos;
use inodyne_model::run::Exit;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{ForkResult, Pid as NixPid};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Pid;

use super::child::{self, NotRunning, Running};
use super::protocol::{Channel, Order, Report};
use super::{Ended, LaunchSpec, Leftovers};
use crate::clock::monotonic_ns;
use crate::detach::{all_except, close_ranges};
use crate::signals;
use crate::urgent::Urgent;

/// Forks the guard. Returns in the parent only.
pub fn fork(spec: &LaunchSpec, channel: Channel, arm_program: Option<BorrowedFd<'_>>) -> io::Result<Pid> {
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

fn serve(spec: &LaunchSpec, channel: &Channel, arm_program: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let [input, output] = spec.named_files();
    close_ours(&[Some(channel.as_fd().as_raw_fd()), arm_program.map(|program| program.as_raw_fd()), input, output]);
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    signals::hear_of_children();
    let ignored = signals::inherited_ignores()?;
    // The command's process inherits this mask, so that signals sent to it while it starts stay pending until it is released.
    SigSet::all().thread_set_mask()?;
    signals::ignore_those_not_for_helpers();
    let mut children = SigSet::empty();
    children.add(Signal::SIGCHLD);
    let child_ended = SignalFd::with_flags(&children, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;

    let command = match child::spawn(spec, channel, arm_program, &ignored) {
        Ok(command) => command,
        Err(NotRunning::Failed((stage, errno))) => return channel.send_report(&Report::NotStarted { stage, errno }),
        Err(NotRunning::Killed { signal }) => return channel.send_report(&Report::Killed { signal }),
        Err(NotRunning::Abandoned) => return Ok(()),
    };
    // Once the command has its own, the guard must not keep the other end of a pipe open.
    let kept = [0, 1, 2, channel.as_fd().as_raw_fd(), child_ended.as_raw_fd()];
    // SAFETY: nothing in this process uses another descriptor, nor closes one: it ends by `_exit`.
    unsafe { close_ranges(&all_except(kept.to_vec())) };
    // The guard reads the clock when it learns of the command's end: on a busy machine it must not wait for a CPU first. The command has been
    // started, and is not affected.
    Urgent::from_now_on();
    let fate = follow(&command, channel, &child_ended);
    // An error means that inodyne is gone: it may have been killed together with the command, and nobody is there to hear of its end.
    if !matches!(fate, Ok(Leftovers::Leave)) {
        kill_all();
    }
    fate.map(|_| ())
}

/// Reports the command's end, and waits for the order that says what becomes of what it leaves behind.
fn follow(command: &Running, channel: &Channel, child_ended: &SignalFd) -> io::Result<Leftovers> {
    let mut reported = false;
    loop {
        let mut ready = [PollFd::new(child_ended, PollFlags::IN), PollFd::new(channel, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut ready, None))?;
        let (a_child, an_order) = (!ready[0].revents().is_empty(), !ready[1].revents().is_empty());
        if a_child {
            while child_ended.read_signal()?.is_some() {}
            let ended_ns = monotonic_ns();
            let (of_command, is_alone) = reap(command.pid);
            if let Some((status, usage)) = of_command
                && !reported
            {
                reported = true;
                let left_running = if is_alone { 0 } else { running_children() };
                channel.send_report(&Report::Ended(ended(status, &usage, command, ended_ns, left_running)))?;
            }
        }
        if an_order {
            match channel.next_order() {
                Ok(Some(Order::Leave)) => return Ok(Leftovers::Leave),
                Ok(Some(Order::Release)) => {}
                Ok(Some(Order::Kill) | None) | Err(_) => return Ok(Leftovers::Kill),
            }
        }
    }
}

/// Closes the descriptors that inodyne opened, all of which are marked to be closed on exec, in the guard's copy: it must
/// not keep the tracing programs attached, nor a mount or a loop device in use, after inodyne is gone. The others were
/// inherited, and are for the command.
fn close_ours(kept: &[Option<RawFd>]) {
    let kept: Vec<RawFd> = kept.iter().flatten().copied().collect();
    let Ok(listed) = std::fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<i32> = listed.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|fd| *fd > 2 && !kept.contains(fd)) {
        // SAFETY: asks for the flags of a descriptor, which does no harm where it is closed by now (the listing's own).
        let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFD) };
        if flags >= 0 && flags & libc::FD_CLOEXEC != 0 {
            // SAFETY: a descriptor of the parent's copy that nothing in this process will use or close again.
            unsafe { libc::close(descriptor) };
        }
    }
}

/// Waits for all children that have ended; returns the command's status if it is among them, and whether no child is left. That takes two
/// calls where the command leaves nothing behind, whereas looking for children among all processes takes milliseconds.
fn reap(command: NixPid) -> (Option<(i32, libc::rusage)>, bool) {
    let mut found = None;
    loop {
        let mut status = 0;
        // SAFETY: plain old data, valid when zero.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are valid for writing.
        let pid = unsafe { libc::wait4(-1, &mut status, libc::WNOHANG, &mut usage) };
        match pid {
            // ECHILD: there are none.
            ..0 => return (found, true),
            0 => return (found, false),
            _ if pid == command.as_raw() => found = Some((status, usage)),
            _ => {}
        }
    }
}

fn ended(status: i32, account: &libc::rusage, command: &Running, ended_ns: Nanos, left_running: u32) -> Ended {
    Ended {
        released_ns: command.released_ns,
        ended_ns,
        exit: Exit::of_status(status.cast_unsigned()),
        usage: child::usage(account).since(&command.used),
        left_running,
    }
}

/// How many of the guard's children are still running.
fn running_children() -> u32 {
    children().iter().filter(|(_, runs)| *runs).count() as u32
}

/// Kills everything below the guard. A killed process's children come to the guard (it is their subreaper), so this
/// ends when there are no more. Ended ones are killed too: where only the first thread has ended, the others live on.
fn kill_all() {
    loop {
        for (child, _) in children() {
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

/// The guard's children, from /proc, and whether any of their threads is still running.
fn children() -> Vec<(NixPid, bool)> {
    let me = std::process::id();
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let known = pids.filter_map(|pid| Some((pid, Stat::of(pid)?)));
    known.filter(|(_, stat)| stat.parent == me).map(|(pid, stat)| (NixPid::from_raw(pid), stat.runs)).collect()
}

/// What the guard needs from `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    runs: bool,
}

impl Stat {
    fn of(pid: i32) -> Option<Stat> {
        Stat::parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name is in parentheses and may hold anything, so this counts from the last one: `) STATE PPID …`.
    fn parse(stat: &[u8]) -> Option<Stat> {
        let after = &stat[stat.iter().rposition(|b| *b == b')')? + 1..];
        let mut fields = std::str::from_utf8(after).ok()?.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let threads: u32 = fields.nth(15)?.parse().ok()?;
        Some(Stat { parent, runs: state != "Z" || threads > 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(state: &str, threads: u32) -> Option<Stat> {
        Stat::parse(format!("7 (a) b) {state} 5 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 {threads} 0 900").as_bytes())
    }

    #[test]
    fn a_process_runs_until_its_last_thread_has_ended() {
        assert_eq!(stat("S", 1), Some(Stat { parent: 5, runs: true }));
        assert_eq!(stat("Z", 1), Some(Stat { parent: 5, runs: false }));
        assert_eq!(stat("Z", 2), Some(Stat { parent: 5, runs: true }), "only its first thread has ended");
    }
}
