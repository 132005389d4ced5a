//! A part of a study, ready to be run.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use inodyne_experiment::Repetitions;
use inodyne_lab::DataSpec;
use inodyne_model::run::CacheState;
use inodyne_model::study::Compare;

use super::places::Named;

/// A part, ready to be run.
#[derive(Debug)]
pub struct Part {
    pub name: String,
    pub title: String,
    pub places: Vec<Named>,
    pub commands: Vec<Command>,
    pub data: Option<DataSpec>,
    pub caches: Vec<CacheState>,
    pub fresh: bool,
    pub prepare: Option<OsString>,
    pub cleanup: Option<OsString>,
    pub cwd: Option<PathBuf>,
    pub timeout: Option<Duration>,
    pub compare: Compare,
    pub repetitions: Repetitions,
}

/// A command, ready to be run.
#[derive(Debug)]
pub struct Command {
    pub name: String,
    pub argv: Vec<OsString>,
    /// The program without which it is left out.
    pub if_found: Option<String>,
}
