//! Signals to inodyne while a command runs.
//!
//! A terminal's Ctrl-C goes to the whole foreground group: the command has it already, and decides; inodyne waits and
//! reports. A signal that somebody sent to inodyne alone is passed on. The second one, of either kind, stops at once.

use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
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

/// The signals that arrived, and how many before.
pub struct Interrupts {
    signals: SignalFd,
    seen: u32,
}

impl Interrupts {
    /// Takes the signals from their default actions.
    pub fn watch() -> Result<Interrupts, Failure> {
        let lacking = |error| Failure::new(LACKING, format_args!("cannot watch signals: {error}"));
        let mut set = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
            set.add(signal);
        }
        set.thread_block().map_err(lacking)?;
        let signals = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map_err(lacking)?;
        Ok(Interrupts { signals, seen: 0 })
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
}

impl AsFd for Interrupts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }
}
