//! A window of processes that are already running, as a recording: drains the tracer until the time is up, somebody interrupts, or nobody is left.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use inodyne_disk::Kept;
use inodyne_launch::{ASKING_TO_END, SignalReader, Urgent};
use inodyne_model::command::CommandSpec;
use inodyne_model::place::Place;
use inodyne_model::recording::Recording;
use inodyne_model::trace::Trace;
use inodyne_trace::{Options, Tracer, Whom, capability};
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::failure::{ExitStatus, Failure};
use crate::host;
use crate::target::{Target, join_all};

/// How often the ring buffers are drained, and a control group is checked.
const EVERY: Duration = Duration::from_millis(10);
/// How often those in a list that has changed are joined: a process that was being created (CLONE_INTO_CGROUP) is in it before it can be.
const LOOKS: u32 = 3;

/// The signals that end a window, and nothing else: what was seen is reported.
const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Why a window ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The user wanted it.
    Interrupted,
    /// The time is up.
    InTime,
    /// Nobody is left.
    NobodyLeft,
}

/// Waits for the given time for somebody who wants a window to end, and returns whether somebody does; no longer than until there is
/// something to read from the descriptor.
pub type Interrupts<'a> = dyn FnMut(Duration, BorrowedFd<'_>) -> bool + 'a;

/// Reads the signals that end a window.
///
/// # Errors
/// The system does not allow that.
pub fn ending_signals() -> Result<SignalReader, Failure> {
    reads(&ENDING)
}

/// The same and SIGQUIT: for who draws on a terminal, which that would otherwise leave in the state that it is drawn on in.
///
/// # Errors
/// The system does not allow that.
pub fn all_ending_signals() -> Result<SignalReader, Failure> {
    reads(&ASKING_TO_END)
}

fn reads(signals: &[Signal]) -> Result<SignalReader, Failure> {
    let unwatched = |error| Failure::new(ExitStatus::Lacking, format_args!("cannot watch signals: {error}"));
    SignalReader::of(signals.iter().copied()).map_err(unwatched)
}

/// Watches whom `who` names for one window, once `tell` has been told how many threads are followed; returns it explained, and why it
/// ended. `disks` is what disks can do.
///
/// # Errors
/// The machine lacks something, or there is nobody to follow.
pub fn window(
    target: &Target,
    options: &Options,
    disks: &Kept,
    length: Option<Duration>,
    who: &mut dyn FnMut() -> Result<Whom, Failure>,
    interrupts: &mut Interrupts<'_>,
    tell: impl FnOnce(u32),
) -> Result<(Recording, Ended), Failure> {
    capability::require_for_tracing().map_err(|missing| Failure::new(ExitStatus::Lacking, missing))?;
    let label = target.label();
    // A path leads to an end, and a window has none: so the timeline is not kept, except for requests, which end.
    let timeline = options.requests.is_some();
    let mut tracer = Tracer::new(&Options { joins: true, timeline, ..options.clone() })?;
    // What arrives must be read before there is no more room for it, even where those who are followed keep all CPUs busy.
    let urgent = Urgent::now();
    let (threads, whom) = join_all(&mut tracer, who)?;
    if threads == 0 && !target.may_grow() {
        return Err(Failure::new(ExitStatus::Usage, format_args!("{label}: there is no thread to follow")));
    }
    tell(threads);
    let ended = watch(&mut tracer, target, who, whom, threads > 0, length, interrupts)?;
    drop(urgent);
    let mut trace = tracer.finish()?;
    if let Some(block) = &mut trace.block {
        disks.add_to(block);
    }
    let mut recording = recording(&label, trace);
    inodyne_analyse::explain(&mut recording);
    Ok((recording, ended))
}

/// A recording of no run, with one trace.
fn recording(label: &str, trace: Trace) -> Recording {
    let mut recording = Recording::new(env!("CARGO_PKG_VERSION"), host::now_unix_s(), host::describe());
    recording.commands.push(CommandSpec { label: label.to_owned(), ..CommandSpec::default() });
    recording.places.push(Place { label: "this machine".to_owned(), ..Place::default() });
    let overhead = trace.estimated_overhead(trace.wall_ns);
    recording.traces.push(Trace { overhead, ..trace });
    recording
}

/// Lets signals end this process again, except those that have arrived: they were meant for what is over now.
pub fn forget(mut signals: SignalReader) {
    while signals.arrived().is_some() {}
}

/// Waits for a signal, but no longer than this, or until there is something to read from `other`; returns whether one came.
pub fn came_within(signals: &mut SignalReader, time: Duration, other: Option<BorrowedFd<'_>>) -> bool {
    let mut descriptors = vec![PollFd::new(&*signals, PollFlags::IN)];
    descriptors.extend(other.map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN)));
    // Interrupted or not, what is there is read.
    let _ = poll(&mut descriptors, Timespec::try_from(time).ok().as_ref());
    signals.arrived().is_some()
}

/// Watches until the window ends. Those that were joined may have ended before this begins, and if others may come, a window that has a
/// length waits for them, such as a service that is restarted. `known` are those that were joined: any that have come since are joined too.
fn watch(
    tracer: &mut Tracer,
    target: &Target,
    who: &mut dyn FnMut() -> Result<Whom, Failure>,
    mut known: Whom,
    mut was_anyone: bool,
    length: Option<Duration>,
    interrupts: &mut Interrupts<'_>,
) -> Result<Ended, Failure> {
    let end = length.map(|length| Instant::now() + length);
    let mut looks = LOOKS;
    loop {
        if interrupts(EVERY, tracer.filling()) {
            return Ok(Ended::Interrupted);
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            return Ok(Ended::InTime);
        }
        tracer.drain();
        if target.may_grow() {
            // A control group may be removed under us: then nobody is in it.
            let now = who().unwrap_or(Whom::Processes(Vec::new()));
            if known != now {
                looks = LOOKS;
            }
            if looks > 0 {
                looks -= 1;
                tracer.join(&now)?;
            }
            known = now;
        }
        let is_anyone = tracer.follows_anyone();
        if was_anyone && !is_anyone && !(target.may_grow() && end.is_some()) {
            return Ok(Ended::NobodyLeft);
        }
        was_anyone |= is_anyone;
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::raise;

    use super::*;

    #[test]
    fn signals_that_came_while_something_was_finished_do_not_end_it_afterwards() {
        let signals = ending_signals().expect("signals can be read");
        for signal in ENDING {
            raise(signal).expect("a signal");
        }
        forget(signals);
    }
}
