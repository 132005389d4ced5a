//! From an execution to the recording.

use inodyne_model::Nanos;
use inodyne_model::case::CaseKey;
use inodyne_model::command::CommandSpec;
use inodyne_model::place::Place;
use inodyne_model::recording::Recording;
use inodyne_model::run::{Run, median};
use inodyne_model::trace::{Overhead, Trace};

use crate::executor::Execution;
use crate::order::RunKey;

/// Where the places and commands of an experiment begin in the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offset {
    /// Places of earlier experiments.
    pub(crate) places: usize,
    /// Commands of earlier experiments.
    pub(crate) commands: usize,
}

impl Offset {
    /// The key of a run within the recording.
    pub(crate) fn apply(self, key: RunKey) -> RunKey {
        RunKey { case: self.of_case(key.case), ..key }
    }

    /// The key of a run of the recording within the experiment.
    pub(crate) fn remove(self, key: RunKey) -> RunKey {
        let mut case = key.case;
        case.place -= self.places;
        case.command -= self.commands;
        RunKey { case, ..key }
    }

    /// The key of a case within the recording.
    pub(crate) fn of_case(self, mut case: CaseKey) -> CaseKey {
        case.place += self.places;
        case.command += self.commands;
        case
    }
}

/// The places, under names that tell them apart.
pub(crate) fn places(mut places: Vec<Place>) -> Vec<Place> {
    let labels = distinct(places.iter().map(|place| place.label.clone()).collect());
    places.iter_mut().zip(labels).for_each(|(place, label)| place.label = label);
    places
}

/// The commands, told apart as well.
pub(crate) fn commands(commands: &[CommandSpec]) -> Vec<CommandSpec> {
    let mut commands = commands.to_vec();
    let labels = distinct(commands.iter().map(|command| command.label.clone()).collect());
    commands.iter_mut().zip(labels).for_each(|(command, label)| command.label = label);
    commands
}

/// Numbers the labels that repeat an earlier one, skipping numbers with which it would be like another ("find #2").
fn distinct(given: Vec<String>) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for (at, label) in given.iter().enumerate() {
        let is_free = |numbered: &String| !given.contains(numbered) && !labels.contains(numbered);
        let numbered = || (2..).map(|number| format!("{label} #{number}")).find(is_free).unwrap_or_default();
        let own = if given[..at].contains(label) { numbered() } else { label.clone() };
        labels.push(own);
    }
    labels
}

/// Adds a run and, where it was traced, its trace. The key is that within the recording.
pub(crate) fn add(recording: &mut Recording, key: RunKey, execution: Execution) {
    let ended = execution.ended;
    let (wall_ns, durable_ns) = (execution.wall_ns(), execution.durable_ns());
    recording.push_run(Run {
        place: key.case.place,
        command: key.case.command,
        cache: key.case.cache,
        settings: key.case.settings,
        block: key.block,
        traced: key.traced,
        wall_ns: ended.wall_ns(),
        durable_ns,
        number: execution.number,
        usage: ended.usage,
        device_read_bytes: execution.moved.map(|moved| moved.read_bytes),
        device_write_bytes: execution.moved.map(|moved| moved.write_bytes),
        exit: ended.exit,
    });
    if let Some(collected) = execution.collected {
        let overhead = overhead(recording, key, &collected, wall_ns);
        recording.traces.push(Trace {
            place: key.case.place,
            command: key.case.command,
            cache: key.case.cache,
            settings: key.case.settings,
            wall_ns,
            overhead,
            ..collected
        });
    }
}

/// Measured against the median of the untraced runs of the same case where there are any; estimated otherwise, and where something else than
/// tracing made the difference.
fn overhead(recording: &Recording, key: RunKey, collected: &Trace, wall_ns: Nanos) -> Overhead {
    let untraced = median(&recording.untraced_walls(key.case));
    match untraced.filter(|untraced| collected.is_explained_by_tracing(wall_ns, *untraced)) {
        Some(median) => {
            let ratio = wall_ns.as_secs_f64() / median.as_secs_f64();
            Overhead { ratio, estimated: false, ..collected.overhead }
        }
        None => collected.estimated_overhead(wall_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_one_name_is_told_apart() {
        let labels = |given: &[&str]| distinct(given.iter().map(|label| (*label).to_owned()).collect());
        assert_eq!(labels(&["x", "y", "x", "x"]), ["x", "y", "x #2", "x #3"]);
        assert_eq!(labels(&["x", "x", "x #2", "x"]), ["x", "x #3", "x #2", "x #4"]);
    }
}
