//! The window itself: drains the tracer until the time is over, somebody interrupts, or nobody is left.

use std::time::{Duration, Instant};

use inodyne_launch::SignalReader;
use inodyne_trace::{Tracer, Whom};
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::target::Target;
use crate::failure::Failure;

/// How often the ring buffers are drained, and a control group is looked at.
const EVERY: Duration = Duration::from_millis(10);

/// The signals that end a window, and nothing else: what was seen is reported.
pub const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Why a window ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// A signal came.
    Interrupted,
    /// The time is over.
    InTime,
    /// Nobody is left.
    NobodyLeft,
}

/// Waits for a signal, but no longer than this; returns whether one came.
pub fn came_within(signals: &mut SignalReader, time: Duration) -> bool {
    let mut descriptors = [PollFd::new(&*signals, PollFlags::IN)];
    // Interrupted or not, what is there is read.
    let _ = poll(&mut descriptors, Timespec::try_from(time).ok().as_ref());
    signals.arrived().is_some()
}

/// Watches until the window ends.
///
/// # Errors
/// Those who come later cannot be followed.
pub fn watch(
    tracer: &mut Tracer,
    target: &Target,
    length: Option<Duration>,
    signals: &mut SignalReader,
) -> Result<Ended, Failure> {
    let end = length.map(|length| Instant::now() + length);
    let mut known = target.whom().ok();
    let mut was_anyone = tracer.follows_anyone();
    loop {
        if came_within(signals, EVERY) {
            return Ok(Ended::Interrupted);
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            return Ok(Ended::InTime);
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
            return Ok(Ended::NobodyLeft);
        }
        was_anyone |= is_anyone;
    }
}
