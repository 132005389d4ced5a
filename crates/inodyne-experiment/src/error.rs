//! Why an experiment ends early. Each is one line that says what is wrong.

use std::path::PathBuf;

use inodyne_lab::LabError;
use inodyne_launch::LaunchError;
use inodyne_model::run::Exit;
use inodyne_trace::TraceError;

/// Why an experiment ends early.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A place could not be made, filled, or brought into the state that was asked for.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The command could not be traced.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A command could not be started, or its guard is gone.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A command is to start outside its place.
    #[error("{} is not a directory below the place", .0.display())]
    NotBelow(PathBuf),
    /// What is to be made anew before each run is one of the user's directories.
    #[error("{0} is not made here, so it cannot be made anew before each run")]
    NotMadeHere(String),
    /// Comparing places with different data would say nothing.
    #[error("{first} and {second} were filled with different data{difference}; data must be the same each time")]
    DifferentData {
        /// A place.
        first: String,
        /// Another place.
        second: String,
        /// Where they differ first, as the rest of a sentence; empty where that was not looked at.
        difference: String,
    },
    /// A place made anew holds different data than before.
    #[error("{place} was filled with other data than before; data must be the same each time")]
    ChangedData {
        /// The place.
        place: String,
    },
    /// The shell command that prepares a run, or the one that cleans up after it, failed.
    #[error("'{script}' failed with exit code {code}")]
    Script {
        /// The shell command.
        script: String,
        /// Its exit code.
        code: i32,
    },
    /// The shell command that reads a number from what a command printed gives none.
    #[error("'{script}' printed {printed:?}, not a number above 0, when given what the command printed")]
    NoNumber {
        /// The shell command.
        script: String,
        /// The beginning of what it printed.
        printed: String,
    },
    /// The recording to continue is of something else.
    #[error("the recording to go on from is of something else: {what} {now} instead of {then}")]
    OtherExperiment {
        /// What differs.
        what: String,
        /// What it is now.
        now: String,
        /// What it was then.
        then: String,
    },
    /// A run did not end as it must.
    #[error("'{label}' ended otherwise than expected: with {}, not {}", words(*.exit), words(*.expected))]
    UnexpectedExit {
        /// The command.
        label: String,
        /// How it ended.
        exit: Exit,
        /// How it had to end.
        expected: Exit,
    },
    /// The user ended it before anything was measured.
    #[error("interrupted before anything was measured")]
    InterruptedEarly,
    /// A signal ended the command while it was being started.
    #[error("signal {signal} killed the command before it began")]
    KilledEarly {
        /// Its number.
        signal: i32,
    },
    /// The user ended it at once.
    #[error("interrupted: the command was killed")]
    Killed,
    /// strace ran, but its log holds no call.
    #[error("strace traced nothing: it may not, or the command never began")]
    NothingFromStrace,
    /// Signals or the command cannot be waited for.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

fn words(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
    }
}
