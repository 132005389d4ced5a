//! Signals to inodyne while a command runs.
//!
//! A terminal's Ctrl-C goes to the whole foreground group: the command has it already, and decides; inodyne waits and
//! reports. A signal that somebody sent to inodyne alone is passed on. The second one, of either kind, stops at once.
//! Either way no further run is begun.

use std::os::fd::{AsFd, BorrowedFd};

use inodyne_launch::SignalReader;
use nix::sys::signal::Signal;

use crate::error::ExperimentError;

/// What to do about a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignalAction {
    /// The command has it already.
    Wait,
    /// Pass it on.
    Forward(Signal),
    /// Kill the command and end.
    Kill,
}

/// The signals that arrive from here on until it is dropped. One that comes between two runs is seen at the end of the
/// next one, or before it. Before and after they do what they do to any program: they end it, and with it goes whatever
/// was made.
pub(super) struct Interrupts {
    signals: SignalReader,
    seen: u32,
}

const WATCHED: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

impl Interrupts {
    /// Takes the signals from their default actions, except for those that are ignored (`nohup`, a background job).
    pub(super) fn watch() -> Result<Interrupts, ExperimentError> {
        let lacking = |source| ExperimentError::System { what: "watch signals", source };
        Ok(Interrupts { signals: SignalReader::of(WATCHED).map_err(lacking)?, seen: 0 })
    }

    /// The next signal's meaning; none where none has arrived.
    pub(super) fn next(&mut self) -> Option<SignalAction> {
        /// From the kernel itself, as a terminal's signals are (include/uapi/asm-generic/siginfo.h).
        const SI_KERNEL: i32 = 0x80;
        let arrived = self.signals.arrived()?;
        self.seen += 1;
        Some(match Signal::try_from(arrived.ssi_signo as i32) {
            _ if self.seen > 1 => SignalAction::Kill,
            Ok(signal) if arrived.ssi_code != SI_KERNEL => SignalAction::Forward(signal),
            _ => SignalAction::Wait,
        })
    }

    /// Whether any signal came so far.
    pub(super) fn any_seen(&mut self) -> bool {
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
    }
}

impl AsFd for Interrupts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }
}
