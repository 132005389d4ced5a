//! Cases, and which of them are compared.

use std::collections::BTreeMap;

use inodyne_model::comparison::Side;
use inodyne_model::recording::Recording;
use inodyne_model::run::{CacheState, Run};
use inodyne_model::study::Compare;
use inodyne_model::trace::Trace;

/// Everything measured of a command in a place in a state of the caches.
pub(super) struct Case<'a> {
    pub(super) side: Side,
    pub(super) cache: CacheState,
    /// Untraced runs by their block.
    untraced: BTreeMap<u32, Vec<&'a Run>>,
    /// Traced runs by their block.
    traced: BTreeMap<u32, Vec<&'a Run>>,
    /// Traces in the order in which they were made.
    traces: Vec<&'a Trace>,
}

/// Two cases that differ in one thing.
pub(super) struct Couple<'c> {
    pub(super) a: &'c Case<'c>,
    pub(super) b: &'c Case<'c>,
}

/// All cases: in the order of the caches' first runs, then of commands and places.
pub(super) fn all(recording: &Recording) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    let mut case_of = |side: Side, cache: CacheState| {
        let at = cases.iter().position(|case| (case.side, case.cache) == (side, cache)).unwrap_or(cases.len());
        if at == cases.len() {
            let (untraced, traced) = (BTreeMap::new(), BTreeMap::new());
            cases.push(Case { side, cache, untraced, traced, traces: Vec::new() });
        }
        at
    };
    let runs: Vec<usize> = recording.runs.iter().map(|r| case_of(Side::new(r.place, r.command), r.cache)).collect();
    let traces: Vec<usize> = recording.traces.iter().map(|t| case_of(Side::new(t.place, t.command), t.cache)).collect();
    for (at, run) in runs.into_iter().zip(&recording.runs) {
        let blocks = if run.traced { &mut cases[at].traced } else { &mut cases[at].untraced };
        blocks.entry(run.block).or_default().push(run);
    }
    for (at, trace) in traces.into_iter().zip(&recording.traces) {
        cases[at].traces.push(trace);
    }
    let caches: Vec<CacheState> = cases.iter().map(|case| case.cache).collect();
    let begun = |cache| caches.iter().position(|one| *one == cache);
    cases.sort_by_key(|case| (begun(case.cache), case.side.command, case.side.place));
    cases
}

/// In each state of the caches: every place with the first one that ran the same command, and every command with the
/// first one that ran in the same place. A part of a study may want only one of the two.
pub(super) fn couples<'c>(recording: &Recording, cases: &'c [Case<'c>]) -> Vec<Couple<'c>> {
    let wanted = |place| {
        let part = recording.study.as_ref().and_then(|study| study.part_of_place(place));
        part.map_or(Compare::Both, |part| part.compare)
    };
    let mut couples = Vec::new();
    for (at, b) in cases.iter().enumerate() {
        let mut earlier = cases[..at].iter().filter(|case| case.cache == b.cache);
        let same_command = earlier.clone().find(|case| case.side.command == b.side.command);
        let same_place = earlier.find(|case| case.side.place == b.side.place);
        let (same_command, same_place) = match wanted(b.side.place) {
            Compare::Places => (same_command, None),
            Compare::Commands => (None, same_place),
            Compare::Both => (same_command, same_place),
        };
        couples.extend(same_command.into_iter().chain(same_place).map(|a| Couple { a, b }));
    }
    couples
}

impl<'c> Couple<'c> {
    /// Runs of the same block, side by side.
    pub(super) fn runs(&self, traced: bool) -> Vec<(&'c Run, &'c Run)> {
        let blocks = |case: &'c Case<'c>| if traced { &case.traced } else { &case.untraced };
        let (a, b) = (blocks(self.a), blocks(self.b));
        let of_block = |(block, a): (&u32, &'c Vec<&'c Run>)| {
            let b = b.get(block).map_or(&[][..], Vec::as_slice);
            a.iter().copied().zip(b.iter().copied()).collect::<Vec<_>>()
        };
        a.iter().flat_map(of_block).collect()
    }

    /// Traces side by side, the first with the first.
    pub(super) fn traces(&self) -> Vec<(&'c Trace, &'c Trace)> {
        self.a.traces.iter().copied().zip(self.b.traces.iter().copied()).collect()
    }

    /// Whether both have an untraced run.
    pub(super) fn has_untraced(&self) -> bool {
        !self.a.untraced.is_empty() && !self.b.untraced.is_empty()
    }
}

/// How many of the runs did not end with success.
pub(super) fn failures(pairs: &[(&Run, &Run)]) -> usize {
    pairs.iter().flat_map(|(a, b)| [a, b]).filter(|run| !run.exit.success()).count()
}
