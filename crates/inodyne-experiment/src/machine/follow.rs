//! One execution of a command: held, released, followed to its end.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use inodyne_lab::Flusher;
use inodyne_launch::{Ended, LaunchSpec, Leftovers, Started, Urgent, monotonic_ns};
use inodyne_model::run::Usage;
use inodyne_model::trace::Trace;
use inodyne_trace::IdleTracer;
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::collect::Collecting;
use super::interrupt::{Interrupts, SignalAction};
use super::limits::Limits;
use super::neighbours::Look;
use crate::error::ExperimentError;
use crate::event::Event;
use crate::executor::Execution;

/// How often the ring buffers are drained.
const DRAIN_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// How a command is to be followed.
pub(super) struct Following<'a> {
    /// None for an untraced run.
    pub(super) collecting: Option<Collecting>,
    /// What becomes of processes that it leaves running.
    pub(super) leftovers: Leftovers,
    /// Who keeps them instead, until they are dropped there.
    pub(super) keeper: Option<&'a mut Vec<Started>>,
    /// Kill it after this long.
    pub(super) timeout: Option<Duration>,
    /// What flushes what it has written, right after its end.
    pub(super) flusher: Option<&'a Flusher>,
}

/// Runs a command once. Returns what was loaded for it, too, to serve another execution.
pub(super) fn follow(
    spec: &LaunchSpec,
    following: Following<'_>,
    interrupts: &mut Interrupts,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<(Execution, Option<IdleTracer>), ExperimentError> {
    let mut collecting = following.collecting;
    let spec = match &collecting {
        Some(collecting) => collecting.around(spec)?,
        None => Cow::Borrowed(spec),
    };
    let started = inodyne_launch::start(&spec, collecting.as_ref().and_then(Collecting::arm_program))?;
    // Only a trace reports these.
    let mut watched = collecting.as_ref().map(|_| Watched { before: Look::now(), limits: Limits::new(), looked: None });
    if let Some(watched) = &mut watched {
        watched.look(&started);
    }
    // What arrives must be read before there is no more room for it, even where the command keeps all CPUs busy.
    let urgent = collecting.as_ref().map(|_| Urgent::now());
    started.release()?;
    let mut timeout = Timeout { until: following.timeout.map(|timeout| Instant::now() + timeout), passed: false };
    let mut ended = wait(&started, &spec, collecting.as_ref(), watched.as_mut(), interrupts, &mut timeout, tell)?;
    drop(urgent);
    if let Some(collecting) = &mut collecting {
        collecting.command_ended();
    }
    let neighbours = watched.as_ref().map(|watched| Look::now().since(&watched.before));
    // Whoever interrupted does not want to wait for a disk.
    let flusher = following.flusher.filter(|_| !interrupts.any_seen());
    let durable = flusher.map(|flusher| flusher.flush().map(|()| monotonic_ns()));
    // Times are those of untraced runs. In a traced one, this is for seeing what is written.
    let durable = durable.filter(|_| collecting.is_none());
    let limits = watched.map_or_else(Vec::new, |watched| watched.limits.finish());
    let (collected, idle) = collecting.map(|collecting| collecting.finish(ended.exit)).transpose()?.unzip();
    let collected = collected.map(|trace| Trace { limits, neighbours, ..trace });
    if collected.as_ref().is_some_and(|trace| !trace.tracer.divides_calls()) {
        // It includes strace's own, which cannot be told apart.
        ended.usage = Usage::default();
    }
    let leftovers = if timeout.passed { Leftovers::Kill } else { following.leftovers };
    match following.keeper {
        Some(keeper) if ended.left_running > 0 => keeper.push(started),
        _ => started.finish(leftovers)?,
    }
    let (interrupted, timed_out) = (interrupts.any_seen(), timeout.passed);
    let execution =
        Execution { ended, collected, durable, number: None, moved: None, interrupted, timed_out, leftovers };
    Ok((execution, idle.flatten()))
}

/// How long a command may take.
struct Timeout {
    until: Option<Instant>,
    passed: bool,
}

impl Timeout {
    /// Kills a command that takes too long, once.
    fn enforce(&mut self, started: &Started) {
        if self.until.is_some_and(|until| Instant::now() >= until) && !self.passed {
            self.passed = true;
            started.signal(Signal::SIGKILL);
        }
    }
}

fn wait(
    started: &Started,
    spec: &LaunchSpec,
    collecting: Option<&Collecting>,
    mut watched: Option<&mut Watched>,
    interrupts: &mut Interrupts,
    timeout: &mut Timeout,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Ended, ExperimentError> {
    let mut rate = CallRate::new();
    loop {
        let (ended, interrupted) = {
            let filling = collecting.and_then(Collecting::filling);
            let mut ready = vec![PollFd::new(started, PollFlags::IN), PollFd::new(&*interrupts, PollFlags::IN)];
            ready.extend(filling.map(|filling| PollFd::from_borrowed_fd(filling, PollFlags::IN)));
            rustix::io::retry_on_intr(|| poll(&mut ready, Some(&DRAIN_EVERY)))
                .map_err(|error| ExperimentError::System { what: "wait for the command", source: error.into() })?;
            (!ready[0].revents().is_empty(), !ready[1].revents().is_empty())
        };
        if let Some(collecting) = collecting {
            collecting.drain();
            if let Some(watched) = &mut watched {
                watched.look(started);
            }
            if let Some(event) = rate.event(|| collecting.calls_so_far()) {
                tell(event);
            }
        }
        if ended {
            return Ok(started.ended(spec)?);
        }
        timeout.enforce(started);
        if interrupted {
            match interrupts.next() {
                Some(SignalAction::Forward(signal)) => match collecting {
                    Some(collecting) => collecting.signal(started, signal),
                    None => started.signal(signal),
                },
                // Dropping what was started kills it.
                Some(SignalAction::Kill) => return Err(ExperimentError::Killed),
                Some(SignalAction::Wait) | None => {}
            }
        }
    }
}

/// What is around the command: the machine before it, and its cgroups, looked at from time to time.
struct Watched {
    before: Look,
    limits: Limits,
    looked: Option<Instant>,
}

/// How often: a command that moves itself to another cgroup does so at its beginning.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl Watched {
    fn look(&mut self, started: &Started) {
        if self.looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY) {
            self.limits.look(started.pid());
            self.looked = Some(Instant::now());
        }
    }
}

/// The number of calls per second, from time to time.
struct CallRate {
    started: Instant,
    last: Option<(Instant, u64)>,
}

/// Nothing is reported about a short command.
const FIRST_AFTER: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_millis(500);

impl CallRate {
    fn new() -> CallRate {
        CallRate { started: Instant::now(), last: None }
    }

    /// What to report when it is time; `calls` is only asked for then.
    fn event(&mut self, calls: impl FnOnce() -> Option<u64>) -> Option<Event<'static>> {
        let now = Instant::now();
        let (since, pause) = self.last.map_or((self.started, FIRST_AFTER - EVERY), |(last, _)| (last, EVERY));
        if now - since < pause {
            return None;
        }
        let calls = calls()?;
        // The first time, those are in it that the tracer made itself to measure what a call costs.
        let (_, before) = self.last.replace((now, calls))?;
        let calls_per_s = calls.saturating_sub(before) as f64 / (now - since).as_secs_f64();
        Some(Event::Running { elapsed: now - self.started, calls_per_s })
    }
}
