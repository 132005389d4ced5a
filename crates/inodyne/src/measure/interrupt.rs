//! Signals to inodyne while a command runs.
//!
//! A terminal's Ctrl-C goes to the whole foreground group: the command has it already, and decides; inodyne waits and
//! reports. A signal that somebody sent to inodyne alone is passed on. The second one, of either kind, stops at once.
//! Either way no further run is begun.

use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::failure::{Failure, LACKING};

/// What the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// The command knows already.
    Wait,
    /// Pass it on.
    Tell(Signal),
    /// Kill the command and end.
    Stop,
}

/// The signals that arrive from here on until it is dropped. One that comes between two runs is seen at the end of the
/// next one, or before it. Before and after they do what they do to any program: they end it, and with it goes whatever
/// was made.
pub struct Interrupts {
    signals: SignalFd,
    before: SigSet,
    seen: u32,
}

const WATCHED: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

impl Interrupts {
    /// Takes the signals from their default actions, except for those that are ignored (`nohup`, a background job).
    pub fn watch() -> Result<Interrupts, Failure> {
        let lacking = |error| Failure::new(LACKING, format_args!("cannot watch signals: {error}"));
        let set: SigSet = WATCHED.into_iter().filter(|signal| !is_ignored(*signal)).collect();
        let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(lacking)?;
        let signals = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map_err(lacking)?;
        Ok(Interrupts { signals, before, seen: 0 })
    }

    /// The next signal's meaning; none where none has arrived.
    pub fn next(&mut self) -> Option<Wish> {
        /// From the kernel itself, as a terminal's signals are (include/uapi/asm-generic/siginfo.h).
        const SI_KERNEL: i32 = 0x80;
        let arrived = self.signals.read_signal().ok().flatten()?;
        self.seen += 1;
        Some(match Signal::try_from(arrived.ssi_signo as i32) {
            _ if self.seen > 1 => Wish::Stop,
            Ok(signal) if arrived.ssi_code != SI_KERNEL => Wish::Tell(signal),
            _ => Wish::Wait,
        })
    }

    /// Whether any signal came so far.
    pub fn any_seen(&mut self) -> bool {
        self.take_all();
        self.seen > 0
    }

    fn take_all(&mut self) {
        while self.next().is_some() {}
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        // What was not taken would end inodyne now, instead of at the time it came.
        self.take_all();
        // The mask is one that was there before.
        let _ = self.before.thread_set_mask();
    }
}

fn is_ignored(signal: Signal) -> bool {
    // SAFETY: plain old data, valid when zero.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is changed, and the pointer is valid for writing.
    let asked = unsafe { libc::sigaction(signal as i32, std::ptr::null(), &mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}

impl AsFd for Interrupts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }
}
