//! What is reported while an experiment runs. Who prints it, and how, is up to the observer.

use std::time::Duration;

use inodyne_lab::{LabError, PlaceSpec};
use inodyne_model::Nanos;
use inodyne_model::recording::Recording;
use inodyne_model::run::{CacheState, Exit};

use crate::experiment::Repetitions;
use crate::order::RunKey;

/// Is told what happens, and keeps what was measured.
pub trait Observer {
    /// Something happened.
    fn event(&mut self, event: &Event<'_>);

    /// This much has been measured so far: it should survive whatever comes next. Called from time to time. An observer that
    /// cannot keep it says so itself; the experiment goes on.
    fn keep(&mut self, recording: &Recording);
}

/// What a block is for, with its number among those of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Its runs are thrown away.
    WarmUp(u32),
    /// Its runs are timed.
    Untraced(u32),
    /// Its runs are traced.
    Traced(u32),
}

/// What became of processes that a command left running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Killed, since the run took too long.
    TimedOut,
    /// Killed, since their place is being removed.
    Killed,
    /// They keep running, untraced.
    Left,
}

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A place is being made; `again` where it is made anew.
    PlaceStarted {
        /// Which one.
        place: &'a PlaceSpec,
        /// Whether it was there before.
        again: bool,
    },
    /// Devices, sockets or pipes in the data were not put into the place.
    DataLeftOut {
        /// How many.
        count: usize,
    },
    /// The lab has something to say about a place that was made.
    PlaceNote {
        /// The place's name.
        place: String,
        /// What it is.
        note: String,
    },
    /// All places are ready; the runs begin.
    Started {
        /// How many there will be.
        repetitions: Repetitions,
    },
    /// A block of runs begins.
    BlockStarted {
        /// The state of the caches of its group.
        cache: Option<CacheState>,
        /// Groups that come after this one.
        later_groups: u32,
        /// What it is for.
        phase: Phase,
        /// Since the first block began.
        elapsed: Duration,
    },
    /// A run begins.
    RunStarted {
        /// Which one.
        key: RunKey,
    },
    /// The kernel refuses the BPF programs, and strace traces from here on.
    StraceInstead {
        /// Why.
        reason: &'a str,
    },
    /// A traced command is running; reported every half second or so.
    Running {
        /// Since its release.
        elapsed: Duration,
        /// System calls per second, since the last report.
        calls_per_s: f64,
    },
    /// A run has ended.
    RunFinished {
        /// Which one.
        key: RunKey,
        /// How.
        exit: Exit,
        /// From release to end.
        wall_ns: Nanos,
    },
    /// A run was killed because it took too long.
    TimedOut {
        /// The time it had.
        timeout: Duration,
    },
    /// It is not known when a run became durable.
    NotDurable {
        /// Why.
        error: &'a LabError,
    },
    /// The command left processes running.
    LeftRunning {
        /// How many.
        count: u32,
        /// What became of them.
        fate: Fate,
    },
    /// The user ended the experiment.
    Interrupted,
    /// The runs are over.
    Finished,
}
