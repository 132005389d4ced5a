//! Which case of the old recording corresponds to which of the new one: those of the same command, place and state of the caches, by
//! their labels.
//!
//! Where both recordings have only one case, these two are matched, whatever they are called: a baseline may come from another directory.

use inodyne_model::case::CaseKey;
use inodyne_model::difference::{CaseName, Side, Sides, Unmatched};
use inodyne_model::place::Place;
use inodyne_model::recording::Recording;

use crate::comparison::cases::{self, MeasuredCase};

/// Which cases belong together, and which are alone.
pub(super) struct Matched {
    /// Indices into the cases of both.
    pub(super) pairs: Vec<Sides<usize>>,
    pub(super) unmatched: Vec<Unmatched>,
}

/// The cases of a recording, for comparison with those of another.
pub(super) fn cases(recording: &Recording) -> Vec<MeasuredCase<'_>> {
    cases::all(recording).into_iter().map(MeasuredCase::run_by_run).collect()
}

/// What a person calls a case.
pub(super) fn name(recording: &Recording, key: CaseKey) -> CaseName {
    let unknown = || "?".to_owned();
    CaseName {
        command: recording.commands.get(key.command).map_or_else(unknown, |command| command.label.clone()),
        place: recording.places.get(key.place).map_or_else(unknown, Place::name),
        cache: key.cache,
    }
}

/// The cases of both, each paired with the first of the same name and settings that has no partner yet.
pub(super) fn matched(recordings: &Sides<&Recording>, cases: &Sides<Vec<MeasuredCase<'_>>>) -> Matched {
    let named = |recording: &Recording, cases: &[MeasuredCase<'_>]| -> Vec<(CaseName, usize)> {
        cases.iter().map(|case| (name(recording, case.key), case.key.settings)).collect()
    };
    let (old, new) = (named(recordings.old, &cases.old), named(recordings.new, &cases.new));
    if old.len() == 1 && new.len() == 1 {
        return Matched { pairs: vec![Sides { old: 0, new: 0 }], unmatched: Vec::new() };
    }
    let mut pairs: Vec<Sides<usize>> = Vec::new();
    for (at, name) in new.iter().enumerate() {
        let is_free = |before: &usize| pairs.iter().all(|pair| pair.old != *before);
        let partner = (0..old.len()).find(|before| old[*before] == *name && is_free(before));
        pairs.extend(partner.map(|before| Sides { old: before, new: at }));
    }
    let alone = |only: Side, names: &[(CaseName, usize)], has: &dyn Fn(usize) -> bool| -> Vec<Unmatched> {
        let without = names.iter().enumerate().filter(|(at, _)| !has(*at));
        without.map(|(_, (case, _))| Unmatched { only, case: case.clone() }).collect()
    };
    let mut unmatched = alone(Side::Old, &old, &|at| pairs.iter().any(|pair| pair.old == at));
    unmatched.extend(alone(Side::New, &new, &|at| pairs.iter().any(|pair| pair.new == at)));
    Matched { pairs, unmatched }
}
