//! What the scheduler asks of a machine, and what it gets. The real one is [`crate::machine::Machine`]; tests have a simulated
//! one whose clock is a number.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use inodyne_lab::{DeviceStats, LabError};
use inodyne_launch::{Ended, Leftovers};
use inodyne_model::Nanos;
use inodyne_model::command::CommandSpec;
use inodyne_model::place::Place;
use inodyne_model::trace::Trace;

use crate::error::ExperimentError;
use crate::event::Observer;
use crate::experiment::{Experiment, PlaceSetup};
use crate::order::RunKey;

/// What carries out the steps of an experiment.
pub trait Executor {
    /// A place that is ready. Dropping it removes what was made.
    type Place;

    /// Makes a place and fills it.
    ///
    /// # Errors
    /// It cannot be made or filled.
    fn make_place(&mut self, setup: &PlaceSetup, observer: &mut dyn Observer) -> Result<Self::Place, ExperimentError>;

    /// Puts in force what a place requires of the machine, for what runs in it next. For a place that was just made, it already is.
    ///
    /// # Errors
    /// The machine does not accept it.
    fn enter(&mut self, place: &mut Self::Place) -> Result<(), ExperimentError>;

    /// Restores the machine to what it was, so that others can have their turn.
    fn leave(&mut self, place: &mut Self::Place);

    /// What the recording says about a place.
    fn describe(&self, place: &Self::Place) -> Place;

    /// The first path in which the contents of two places differ; none where they no longer differ.
    ///
    /// # Errors
    /// They cannot be read.
    fn first_difference(&self, a: &Self::Place, b: &Self::Place) -> Result<Option<PathBuf>, ExperimentError>;

    /// From here on signals do not end inodyne, but are seen by [`Executor::is_interrupted`].
    ///
    /// # Errors
    /// Signals cannot be watched.
    fn watch_signals(&mut self) -> Result<(), ExperimentError>;

    /// Whether the user has asked to end the experiment.
    fn is_interrupted(&mut self) -> bool;

    /// The time since some instant before the experiment.
    fn now(&self) -> Duration;

    /// Runs a shell command in the place, unmeasured, under the conditions of a command.
    ///
    /// # Errors
    /// It failed. One that the user ended does not count as failed.
    fn run_script(
        &mut self,
        place: &mut Self::Place,
        command: &CommandSpec,
        script: &OsStr,
    ) -> Result<(), ExperimentError>;

    /// Runs a command once, with the caches in the required state; none where the user ended it before it began.
    ///
    /// # Errors
    /// It cannot be started, traced or followed to its end.
    fn run_command(
        &mut self,
        place: &mut Self::Place,
        key: RunKey,
        experiment: &Experiment,
        observer: &mut dyn Observer,
    ) -> Result<Option<Execution>, ExperimentError>;
}

/// What one execution of a command gave.
pub struct Execution {
    /// How it ended, and what it used.
    pub ended: Ended,
    /// What was traced of it.
    pub collected: Option<Trace>,
    /// When everything that had been written was on the device, or why that is not known; none where nobody asked.
    pub durable: Option<Result<Nanos, LabError>>,
    /// The number that was read from what it printed; none where nobody asked.
    pub number: Option<f64>,
    /// What the place's device moved meanwhile, where it has one.
    pub moved: Option<DeviceStats>,
    /// Whether the user wants to stop.
    pub interrupted: bool,
    /// Whether it was killed because it took too long.
    pub timed_out: bool,
    /// What became of processes that it left running.
    pub leftovers: Leftovers,
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
        // A strace log has a clock of its own.
        if let Some(collected) = self.collected.as_ref().filter(|collected| !collected.tracer.divides_calls()) {
            return collected.wall_ns;
        }
        let threads = self.collected.as_ref().map_or(&[][..], |collected| &collected.observed.threads);
        let root = threads.first().map(|thread| thread.pid);
        let of_root = threads.iter().filter(|thread| Some(thread.pid) == root && !thread.alive);
        let ended_ns = of_root.map(|thread| thread.ended_ns).max();
        ended_ns.unwrap_or(self.ended.ended_ns).saturating_sub(self.ended.released_ns)
    }
}
