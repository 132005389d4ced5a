//! One execution of the command: held, released, followed to its end.

use std::time::{Duration, Instant};

use inodyne_lab::{Flusher, LabError};
use inodyne_model::Nanos;
use inodyne_trace::launch::{self, Ended, Others, Spec, Started};
use inodyne_trace::{Collected, Options, Tracer, monotonic_ns};
use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::interrupt::{Interrupts, Wish};
use super::progress::Progress;
use crate::failure::{Failure, INTERRUPTED, LACKING};

/// How often the ring buffers are drained.
const DRAIN_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// What one execution gave.
pub struct Execution {
    /// How it ended, and what it used.
    pub ended: Ended,
    /// What was traced of it.
    pub collected: Option<Collected>,
    /// When all that had been written was on the device, or why that is not known; none where nobody asked.
    pub durable: Option<Result<Nanos, LabError>>,
    /// Whether the user wants no more of it.
    pub interrupted: bool,
    /// Whether it was killed because it took too long.
    pub timed_out: bool,
}

/// Runs a command once, traced where options are given, killed after a time where one is given. With a `flusher`, what
/// it has written is flushed right after its end. Without `quiet`, shows progress meanwhile.
pub fn execute(
    spec: &Spec,
    tracing: Option<&Options>,
    others: Others,
    timeout: Option<Duration>,
    flusher: Option<&Flusher>,
    interrupts: &mut Interrupts,
    quiet: bool,
) -> Result<Execution, Failure> {
    let tracer = tracing.map(Tracer::new).transpose()?;
    let started = launch::start(spec, tracer.as_ref().map(Tracer::arm_program))?;
    started.release()?;
    let mut patience = Patience { until: timeout.map(|timeout| Instant::now() + timeout), timed_out: false };
    let progress = Progress::start(quiet);
    let ended = follow(&started, spec, tracer.as_ref(), interrupts, &mut patience, progress)?;
    // Whoever interrupted does not want to wait for a disk.
    let flusher = flusher.filter(|_| !interrupts.any_seen());
    let durable = flusher.map(|flusher| flusher.flush().map(|()| monotonic_ns()));
    let collected = tracer.map(Tracer::finish).transpose()?;
    let timed_out = patience.timed_out;
    started.finish(if timed_out { Others::Kill } else { others })?;
    Ok(Execution { ended, collected, durable, interrupted: interrupts.any_seen(), timed_out })
}

/// How long a command may take.
struct Patience {
    until: Option<Instant>,
    timed_out: bool,
}

impl Patience {
    /// Kills a command that takes too long, once.
    fn look_at(&mut self, started: &Started) {
        if self.until.is_some_and(|until| Instant::now() >= until) && !self.timed_out {
            self.timed_out = true;
            started.signal(Signal::SIGKILL);
        }
    }
}

fn follow(
    started: &Started,
    spec: &Spec,
    tracer: Option<&Tracer>,
    interrupts: &mut Interrupts,
    patience: &mut Patience,
    progress: Progress,
) -> Result<Ended, Failure> {
    loop {
        let (ended, interrupted) = {
            let mut ready = [PollFd::new(started, PollFlags::IN), PollFd::new(&*interrupts, PollFlags::IN)];
            rustix::io::retry_on_intr(|| poll(&mut ready, Some(&DRAIN_EVERY)))
                .map_err(|error| Failure::new(LACKING, error))?;
            (!ready[0].revents().is_empty(), !ready[1].revents().is_empty())
        };
        if let Some(tracer) = tracer {
            tracer.drain();
            progress.tick(|| tracer.calls_so_far());
        }
        if ended {
            return Ok(started.ended(spec)?);
        }
        patience.look_at(started);
        if interrupted {
            match interrupts.next() {
                Some(Wish::Tell(signal)) => started.signal(signal),
                // Dropping what was started kills it.
                Some(Wish::Stop) => return Err(Failure::new(INTERRUPTED, "interrupted: the command was killed")),
                Some(Wish::Wait) | None => {}
            }
        }
    }
}

/// Runs a command that is not measured.
pub fn to_the_end(spec: &Spec) -> Result<Ended, Failure> {
    let started = launch::start(spec, None)?;
    started.release()?;
    let ended = started.ended(spec)?;
    started.finish(Others::Leave)?;
    Ok(ended)
}

impl Execution {
    /// From the release until everything was durable, where that was measured.
    pub fn durable_ns(&self) -> Option<Nanos> {
        let at = self.durable.as_ref()?.as_ref().ok()?;
        Some(at.saturating_sub(self.ended.released_ns))
    }

    /// The wall-clock time: to the last instant on a CPU of the root process, where it was traced. Its parent learns of the
    /// end at another time: a few microseconds before, or, where it has to wait for a CPU, long after.
    pub fn wall_ns(&self) -> Nanos {
        let threads = self.collected.as_ref().map_or(&[][..], |collected| &collected.observed.threads);
        let root = threads.first().map(|thread| thread.pid);
        let of_root = threads.iter().filter(|thread| Some(thread.pid) == root && !thread.alive);
        let ended_ns = of_root.map(|thread| thread.ended_ns).max();
        ended_ns.unwrap_or(self.ended.ended_ns).saturating_sub(self.ended.released_ns)
    }
}
