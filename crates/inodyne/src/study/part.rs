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

impl Part {
    /// How many pairs of cases are compared.
    pub fn comparisons(&self) -> usize {
        let (places, commands) = (self.places.len(), self.commands.len());
        let of_places = commands * places.saturating_sub(1);
        let of_commands = places * commands.saturating_sub(1);
        let in_a_state = match self.compare {
            Compare::Places => of_places,
            Compare::Commands => of_commands,
            Compare::Both => of_places + of_commands,
        };
        in_a_state * self.caches.len()
    }
}

/// A command, ready to be run.
#[derive(Debug)]
pub struct Command {
    pub name: String,
    pub argv: Vec<OsString>,
    /// The program without which it is left out.
    pub if_found: Option<String>,
}
