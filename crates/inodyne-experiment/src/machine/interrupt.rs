//! Signals to inodyne while a command runs.
//!
//! A terminal's Ctrl-C goes to the whole foreground group: the command has it already, and decides; inodyne waits and
//! reports. A signal that somebody sent to inodyne alone is passed on. A second one, of either kind, stops at once, unless
//! it comes so soon that it belongs to the first: `timeout` signals both the process and its group; make, npm and shells pass on
//! what the group already has. Either way no further run is begun.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use inodyne_launch::{ASKING_TO_END, SignalReader};
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

/// The signals that arrive from now on until this is dropped. One that comes between two runs is seen at the end of the
/// next one, or before it. Before and after, they do what they do to any program: they end it, and whatever was made goes
/// with it.
pub(super) struct Interrupts {
    signals: SignalReader,
    /// The first one, and when it was seen.
    first: Option<(Signal, Instant)>,
}

/// A signal that comes this soon after the first is not a second one.
const SOON: Duration = Duration::from_millis(150);

impl Interrupts {
    /// Takes over the signals from their default actions, except for those that are ignored (`nohup`, a background job).
    pub(super) fn watch() -> Result<Interrupts, ExperimentError> {
        let lacking = |source| ExperimentError::System { what: "watch signals", source };
        Ok(Interrupts { signals: SignalReader::of(ASKING_TO_END).map_err(lacking)?, first: None })
    }

    /// The next signal's meaning; none where none has arrived.
    pub(super) fn next(&mut self) -> Option<SignalAction> {
        /// From the kernel itself, as a terminal's signals are (include/uapi/asm-generic/siginfo.h).
        const SI_KERNEL: i32 = 0x80;
        let arrived = self.signals.arrived()?;
        let signal = Signal::try_from(arrived.ssi_signo as i32).ok()?;
        Some(meaning(&mut self.first, signal, arrived.ssi_code == SI_KERNEL, Instant::now()))
    }

    /// Whether any signal has come so far.
    pub(super) fn any_seen(&mut self) -> bool {
        self.take_all();
        self.first.is_some()
    }

    fn take_all(&mut self) {
        while self.next().is_some() {}
    }
}

/// What a signal that is seen now means. One from a terminal has reached the whole group.
fn meaning(
    first: &mut Option<(Signal, Instant)>,
    signal: Signal,
    is_from_terminal: bool,
    now: Instant,
) -> SignalAction {
    match *first {
        Some((_, seen)) if now.saturating_duration_since(seen) > SOON => SignalAction::Kill,
        // The command has it already.
        Some((known, _)) if known == signal => SignalAction::Wait,
        _ => {
            first.get_or_insert((signal, now));
            if is_from_terminal { SignalAction::Wait } else { SignalAction::Forward(signal) }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_signal_delivered_twice_is_one_and_a_later_one_kills() {
        use SignalAction::{Forward, Kill, Wait};
        let begun = Instant::now();
        let (int, term) = (Signal::SIGINT, Signal::SIGTERM);
        let meanings = |arriving: &[(Signal, bool, u64)]| {
            let mut first = None;
            let meaning = |(signal, is_from_terminal, ms): &(Signal, bool, u64)| {
                meaning(&mut first, *signal, *is_from_terminal, begun + Duration::from_millis(*ms))
            };
            arriving.iter().map(meaning).collect::<Vec<_>>()
        };
        assert_eq!(meanings(&[(term, false, 0), (term, false, 2), (term, false, 200)]), [Forward(term), Wait, Kill]);
        assert_eq!(meanings(&[(int, true, 0), (int, false, 140), (int, true, 151)]), [Wait, Wait, Kill]);
        assert_eq!(meanings(&[(int, false, 0), (term, false, 5)]), [Forward(int), Forward(term)]);
    }
}
