//! Experiments: which commands run in which places, how often, in which order, and what is kept of it.
//!
//! Everything that measures does so with an [`Experiment`]: `run`, `compare`, `study`, `prove` and `tune` only build one and hand it to
//! the one scheduler ([`run()`]). An experiment is data: it knows nothing about a command line, and neither prints nor saves. What
//! happens meanwhile is reported as [`Event`]s to an [`Observer`].
//!
//! ```text
//!            Experiment ──> scheduler ──> Executor: make a place, run a script, run the command
//!                               │            ├── Machine      lab + launch + tracer
//!               Observer <── Event           └── (in tests)   a simulated clock
//!                               v
//!                           Recording
//! ```
//!
//! | module | what it knows |
//! |---|---|
//! | [`experiment`] | what is to be measured, as data, checked before anything happens |
//! | [`order`] | in which order the runs of a block take place: seeded shuffles, each forwards and backwards |
//! | [`race`] | when an alternative has lost and takes no further part |
//! | [`scheduler`] | the loop: warm-up, blocks, precision, time limits, interruptions |
//! | [`tuner`] | several alternatives raced against a base, and the best of them confirmed on fresh runs |
//! | [`executor`] | what the scheduler asks of a machine, and what it gets |
//! | [`machine`] | the real machine: the lab's places, held commands, the tracer, signals |
//! | [`event`] | what is reported while it happens |
//! | [`resume`] | what an earlier recording holds, to be taken instead of running it again |
//! | [`record`] | from an execution to the recording |
//! | [`error`] | why an experiment ends early |

pub mod error;
pub mod event;
pub mod executor;
pub mod experiment;
pub mod machine;
pub mod order;
pub mod race;
pub mod record;
pub mod resume;
pub mod scheduler;
#[cfg(test)]
mod simulated;
pub mod tuner;

pub use error::ExperimentError;
pub use event::{Event, Observer, Phase};
pub use executor::{Execution, Executor};
pub use experiment::{Experiment, Group, PlaceSetup, Repetitions, is_below};
pub use machine::{Collector, Machine};
pub use race::Race;
pub use resume::Earlier;
pub use scheduler::{Measured, run};
