//! What is to be measured, as data.

use std::ffi::OsString;
use std::path::{Component, Path};
use std::time::Duration;

use inodyne_lab::{DataSpec, PlaceSpec, Where};
use inodyne_model::case::CaseKey;
use inodyne_model::command::CommandSpec;
use inodyne_model::run::{CacheState, Exit};

use crate::error::ExperimentError;
use crate::race::Race;

/// What is to be measured.
///
/// A set of settings that is tried is part of a place's description (`set=FILE=VALUE`).
#[derive(Debug, Clone)]
pub struct Experiment {
    /// Where commands run.
    pub places: Vec<PlaceSetup>,
    /// What runs, each with its own conditions.
    pub commands: Vec<CommandSpec>,
    /// Which cases are measured, one group after the other.
    pub groups: Vec<Group>,
    /// How often.
    pub repetitions: Repetitions,
    /// For the order within each block.
    pub seed: u64,
    /// Make and fill the place anew before each run. Then never more than one of the places exists at a time.
    pub fresh: bool,
    /// Kill a run after this long.
    pub timeout: Option<Duration>,
    /// Also time how long it takes until everything that was written is on the device, in untraced runs.
    pub durable: bool,
    /// A shell command that is given what the command printed in an untraced run, and prints a number read from it.
    pub number: Option<OsString>,
    /// Differences below this fraction count as none; the recording's own margin where there is none.
    pub margin: Option<f64>,
    /// How every run must end; one that ends differently ends the experiment. None where any end is a result.
    pub expected_exit: Option<Exit>,
    /// Whether a run that the user cut short is kept if it is the only one. Its time is not fit for comparison.
    pub keep_cut_short: bool,
    /// Whether the cases of a group race against its first one. Then a place other than the first that cannot be made only leaves
    /// the race, and none but the first is made before it is needed.
    pub race: Option<Race>,
    /// Whether what the command prints is shown once for each case: from the traced run, or from the first one where none is traced.
    pub output_once: bool,
}

impl Experiment {
    /// Whether what a run of this block prints is shown, where there is anything to show.
    pub(crate) fn shows_output(&self, block: u32, traced: bool) -> bool {
        !self.output_once || if self.repetitions.traced > 0 { traced } else { block == 0 }
    }
}

/// A place and what is put into it first.
#[derive(Debug, Clone)]
pub struct PlaceSetup {
    /// The place.
    pub spec: PlaceSpec,
    /// Its data; nothing is put into an existing directory.
    pub data: Option<DataSpec>,
}

/// Cases that take turns: every block has each of them once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Their places and commands are indices into those of the experiment.
    pub cases: Vec<CaseKey>,
}

/// How often cases run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Repetitions {
    /// Blocks that are thrown away.
    pub warmup: u32,
    /// Blocks of untraced runs; at least this many where there is a precision to reach.
    pub untraced: u32,
    /// Blocks of traced runs.
    pub traced: u32,
    /// How far intervals may reach to either side, as a fraction of the ratio.
    pub until: Option<f64>,
    /// Begin no further block after this long, except for the first untraced and the first traced one of each group.
    pub max_time: Option<Duration>,
}

impl Group {
    /// Every place with every command, with a group of its own for each state of the caches.
    pub fn crossed(places: usize, commands: usize, caches: &[CacheState]) -> Vec<Group> {
        let group = |cache: &CacheState| {
            let of_place = |place| (0..commands).map(move |command| CaseKey::new(place, command, *cache));
            Group { cases: (0..places).flat_map(of_place).collect() }
        };
        caches.iter().map(group).collect()
    }

    /// The state of the caches that the group's cases have in common, if they do.
    pub fn cache(&self) -> Option<CacheState> {
        let first = self.cases.first()?.cache;
        self.cases.iter().all(|case| case.cache == first).then_some(first)
    }
}

impl Experiment {
    /// Whether it makes sense: checked before anything happens.
    ///
    /// # Errors
    /// What does not make sense.
    pub fn check(&self) -> Result<(), ExperimentError> {
        let outside = self.commands.iter().filter_map(|command| command.cwd.as_deref()).find(|cwd| !is_below(cwd));
        if let Some(cwd) = outside {
            return Err(ExperimentError::NotBelow(cwd.to_owned()));
        }
        // A directory that is only shown still holds what it did when it is shown anew.
        let can_be_anew = |spec: &PlaceSpec| match self.race {
            Some(_) => matches!(spec.place(), Where::Made(_)),
            None => spec.is_made(),
        };
        match self.places.iter().find(|place| self.fresh && !can_be_anew(&place.spec)) {
            Some(place) => Err(ExperimentError::NotMadeHere(place.spec.name())),
            None => Ok(()),
        }
    }
}

/// Whether a path cannot lead out of the directory that it begins in, except over a symbolic link.
pub fn is_below(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_crossed_with_every_command_in_each_state_of_the_caches() {
        let groups = Group::crossed(2, 2, &[CacheState::Cold, CacheState::Warm]);
        let cases =
            |cache| [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(place, command)| CaseKey::new(place, command, cache));
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[0].cases, cases(CacheState::Cold));
        assert_eq!(groups[1].cases, cases(CacheState::Warm));
        assert_eq!(groups[1].cache(), Some(CacheState::Warm));
        let mixed = Group { cases: groups.iter().flat_map(|group| group.cases.clone()).collect() };
        assert_eq!(mixed.cache(), None);
    }

    #[test]
    fn a_directory_below_stays_below() {
        assert!(is_below(Path::new("a/./b")) && !is_below(Path::new("a/../b")) && !is_below(Path::new("/a")));
    }
}
