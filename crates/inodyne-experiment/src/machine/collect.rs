//! What traces a command: the BPF programs, or strace where these cannot be loaded.

use std::borrow::Cow;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use inodyne_launch::{LaunchSpec, Started};
use inodyne_model::run::Exit;
use inodyne_model::trace::Trace;
use inodyne_trace::{IdleTracer, Options, TraceError, Tracer};
use nix::sys::signal::Signal;

use super::strace::{self, Strace};
use crate::error::ExperimentError;
use crate::event::Event;

/// What is to trace commands.
#[derive(Debug, Clone)]
pub enum Collector {
    /// The BPF programs.
    Bpf(Options),
    /// strace, which is at this path.
    Strace(PathBuf),
    /// The BPF programs, or strace where the kernel refuses them.
    BpfOrStrace(Options, PathBuf),
}

/// What traces one execution, ready for it to begin.
pub(super) enum Collecting {
    Bpf(Box<Tracer>),
    Strace { strace: Strace, ns_per_call: f64 },
}

/// A collector, and what it has loaded.
pub(super) struct Tracers {
    collector: Collector,
    idle: Option<IdleTracer>,
}

impl Tracers {
    /// With nothing loaded yet.
    pub(super) fn new(collector: Collector) -> Tracers {
        Tracers { collector, idle: None }
    }

    /// Gets ready for an execution. What the kernel has refused once is not tried again.
    pub(super) fn ready(
        &mut self,
        spec: &LaunchSpec,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<Collecting, ExperimentError> {
        if let Some(Ok(tracer)) = self.idle.take().map(IdleTracer::begin) {
            return Ok(Collecting::Bpf(Box::new(tracer)));
        }
        match &mut self.collector {
            Collector::Bpf(options) => Ok(Collecting::Bpf(Box::new(Tracer::new(options)?))),
            Collector::BpfOrStrace(options, program) => match Tracer::new(options) {
                Err(error @ (TraceError::Load { .. } | TraceError::Attach { .. })) => {
                    tell(Event::StraceInstead { reason: &error.to_string() });
                    self.collector = Collector::Strace(std::mem::take(program));
                    self.ready(spec, tell)
                }
                tracer => Ok(Collecting::Bpf(Box::new(tracer?))),
            },
            Collector::Strace(program) => {
                let ns_per_call = strace::cost(program, spec);
                Ok(Collecting::Strace { strace: Strace::new(program, spec)?, ns_per_call })
            }
        }
    }

    /// Keeps what an execution had loaded, for the next one.
    pub(super) fn keep(&mut self, idle: Option<IdleTracer>) {
        self.idle = idle;
    }
}

impl Collecting {
    /// What is to be started for the command to be traced.
    pub(super) fn around<'a>(&self, spec: &'a LaunchSpec) -> Result<Cow<'a, LaunchSpec>, ExperimentError> {
        match self {
            Collecting::Bpf(_) => Ok(Cow::Borrowed(spec)),
            Collecting::Strace { strace, .. } => strace.around(spec).map(Cow::Owned),
        }
    }

    /// The program with which the command's process arms the tracer.
    pub(super) fn arm_program(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Collecting::Bpf(tracer) => Some(tracer.arm_program()),
            Collecting::Strace { .. } => None,
        }
    }

    /// Readable once [`Collecting::drain`] is to be called sooner than in some milliseconds.
    pub(super) fn filling(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Collecting::Bpf(tracer) => Some(tracer.filling()),
            Collecting::Strace { .. } => None,
        }
    }

    /// Takes what has been traced so far. Must be called every few milliseconds.
    pub(super) fn drain(&self) {
        if let Collecting::Bpf(tracer) = self {
            tracer.drain();
        }
    }

    /// Calls so far, where that is known.
    pub(super) fn calls_so_far(&self) -> Option<u64> {
        match self {
            Collecting::Bpf(tracer) => Some(tracer.calls_so_far()),
            Collecting::Strace { .. } => None,
        }
    }

    /// Passes a signal on to the command. strace itself accepts none while it runs one.
    pub(super) fn signal(&self, started: &Started, signal: Signal) {
        match self {
            Collecting::Bpf(_) => started.signal(signal),
            Collecting::Strace { .. } => started.signal_children(signal),
        }
    }

    /// Says that the command has ended, and only what it left to be written is still to be observed.
    pub(super) fn command_ended(&mut self) {
        if let Collecting::Bpf(tracer) = self {
            tracer.command_ended();
        }
    }

    /// The trace, once the command has ended, and what may serve another execution.
    pub(super) fn finish(self, exit: Exit) -> Result<(Trace, Option<IdleTracer>), ExperimentError> {
        match self {
            Collecting::Bpf(tracer) => tracer.finish_and_keep().map_err(|error| not_traced(error, exit)),
            Collecting::Strace { strace, ns_per_call } => Ok((strace.finish(ns_per_call)?, None)),
        }
    }
}

/// Nothing is traced of a command that a signal ended while it was being started, Ctrl-C for example.
fn not_traced(error: TraceError, exit: Exit) -> ExperimentError {
    match (error, exit) {
        (TraceError::NoStart, Exit::Signal(signal)) => ExperimentError::KilledEarly { signal },
        (error, _) => error.into(),
    }
}
