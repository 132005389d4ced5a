//! The window itself: drains the tracer until the time is over, somebody interrupts, or nobody is left.

use std::time::{Duration, Instant};

use inodyne_trace::{Tracer, Whom};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::target::Target;
use crate::failure::{ExitStatus, Failure};

/// How often the ring buffers are drained, and a control group is looked at.
const EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// The signals that end a window, and nothing else: what was seen is reported.
pub struct Signals {
    arriving: SignalFd,
    before: SigSet,
}

impl Signals {
    /// Takes them from their default actions until it is dropped, except for those that are ignored (`nohup`).
    ///
    /// # Errors
    /// The system does not allow that.
    pub fn watch() -> Result<Signals, Failure> {
        let lacking = |errno| Failure::new(ExitStatus::Lacking, format_args!("cannot watch signals: {errno}"));
        let all = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
        let set: SigSet =
            all.into_iter().filter(|signal| !inodyne_launch::is_ignored(*signal).unwrap_or(false)).collect();
        let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(lacking)?;
        let arriving = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map_err(lacking)?;
        Ok(Signals { arriving, before })
    }

    /// Waits for one, or until it is time to drain; returns whether one came.
    fn came(&mut self) -> bool {
        let mut descriptors = [PollFd::new(&self.arriving, PollFlags::IN)];
        // Interrupted or not, what is there is read.
        let _ = poll(&mut descriptors, Some(&EVERY));
        matches!(self.arriving.read_signal(), Ok(Some(_)))
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // The mask is one that was there before.
        let _ = self.before.thread_set_mask();
    }
}

/// Watches until the window ends.
///
/// # Errors
/// Those who come later cannot be followed.
pub fn watch(
    tracer: &mut Tracer,
    target: &Target,
    length: Option<Duration>,
    signals: &mut Signals,
) -> Result<(), Failure> {
    let end = length.map(|length| Instant::now() + length);
    let mut known = target.whom().ok();
    let mut was_anyone = tracer.follows_anyone();
    loop {
        if signals.came() || end.is_some_and(|end| Instant::now() >= end) {
            return Ok(());
        }
        tracer.drain();
        if target.may_grow() {
            // A control group may be removed under us: then nobody is in it.
            let now = target.whom().unwrap_or(Whom::Processes(Vec::new()));
            if known.as_ref() != Some(&now) {
                tracer.join(&now)?;
                known = Some(now);
            }
        }
        let is_anyone = tracer.follows_anyone();
        if was_anyone && !is_anyone {
            return Ok(());
        }
        was_anyone |= is_anyone;
    }
}
