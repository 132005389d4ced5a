//! Cases, and which of them are compared.

use std::collections::BTreeMap;

use inodyne_model::case::{CaseKey, CasePair};
use inodyne_model::recording::Recording;
use inodyne_model::run::{CacheState, Run};
use inodyne_model::study::Compare;
use inodyne_model::trace::Trace;

/// Everything measured for a command in a place in a state of the caches.
pub(crate) struct MeasuredCase<'a> {
    pub(crate) key: CaseKey,
    /// Untraced runs by their block.
    untraced: BTreeMap<u32, Vec<&'a Run>>,
    /// Traced runs by their block.
    traced: BTreeMap<u32, Vec<&'a Run>>,
    /// Traces in the order in which they were made.
    traces: Vec<&'a Trace>,
}

impl<'a> MeasuredCase<'a> {
    /// The same with a block for each run, in the order of the blocks: for comparison with a case of another recording, whose blocks
    /// have nothing to do with these.
    pub(crate) fn run_by_run(self) -> MeasuredCase<'a> {
        let one_by_one = |blocks: BTreeMap<u32, Vec<&'a Run>>| {
            (0..).zip(blocks.into_values().flatten()).map(|(number, run)| (number, vec![run])).collect()
        };
        let MeasuredCase { key, untraced, traced, traces } = self;
        MeasuredCase { key, untraced: one_by_one(untraced), traced: one_by_one(traced), traces }
    }

    /// All runs, the untraced ones first.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &'a Run> {
        self.untraced.values().chain(self.traced.values()).flatten().copied()
    }

    /// Traces in the order in which they were made.
    pub(crate) fn traces(&self) -> &[&'a Trace] {
        &self.traces
    }
}

/// Two cases that differ in one thing.
pub(crate) struct PairedCases<'c> {
    pub(crate) a: &'c MeasuredCase<'c>,
    pub(crate) b: &'c MeasuredCase<'c>,
}

/// All cases, ordered by when their state of the caches first occurs, then by command and place.
pub(crate) fn all(recording: &Recording) -> Vec<MeasuredCase<'_>> {
    let mut cases: Vec<MeasuredCase<'_>> = Vec::new();
    let mut case_of = |key: CaseKey| {
        let at = cases.iter().position(|case| case.key == key).unwrap_or(cases.len());
        if at == cases.len() {
            let (untraced, traced) = (BTreeMap::new(), BTreeMap::new());
            cases.push(MeasuredCase { key, untraced, traced, traces: Vec::new() });
        }
        at
    };
    let runs: Vec<usize> = recording.runs.iter().map(|run| case_of(run.key())).collect();
    let traces: Vec<usize> = recording.traces.iter().map(|trace| case_of(trace.key())).collect();
    for (at, run) in runs.into_iter().zip(&recording.runs) {
        let blocks = if run.traced { &mut cases[at].traced } else { &mut cases[at].untraced };
        blocks.entry(run.block).or_default().push(run);
    }
    for (at, trace) in traces.into_iter().zip(&recording.traces) {
        cases[at].traces.push(trace);
    }
    let caches: Vec<CacheState> = cases.iter().map(|case| case.key.cache).collect();
    let begun = |cache| caches.iter().position(|one| *one == cache);
    cases.sort_by_key(|case| (begun(case.key.cache), case.key.command, case.key.place));
    cases
}

/// In each state of the caches: every place paired with the first one that ran the same command, and every command with
/// the first one that ran in the same place. A part of a study may want only one of the two.
pub(crate) fn case_pairs<'c>(recording: &Recording, cases: &'c [MeasuredCase<'c>]) -> Vec<PairedCases<'c>> {
    let wanted = |place| {
        let part = recording.study.as_ref().and_then(|study| study.part_of_place(place));
        part.map_or(Compare::Both, |part| part.compare)
    };
    let mut case_pairs = Vec::new();
    for (at, b) in cases.iter().enumerate() {
        let mut earlier = cases[..at].iter().filter(|case| case.key.cache == b.key.cache);
        let same_command = earlier.clone().find(|case| case.key.command == b.key.command);
        let same_place = earlier.find(|case| case.key.place == b.key.place);
        let (same_command, same_place) = match wanted(b.key.place) {
            Compare::Places => (same_command, None),
            Compare::Commands => (None, same_place),
            Compare::Both => (same_command, same_place),
        };
        case_pairs.extend(same_command.into_iter().chain(same_place).map(|a| PairedCases { a, b }));
    }
    case_pairs
}

impl<'c> PairedCases<'c> {
    /// Which two cases they are.
    pub(crate) fn keys(&self) -> CasePair {
        CasePair { a: self.a.key, b: self.b.key }
    }

    /// Runs of the same block, side by side.
    pub(crate) fn runs(&self, traced: bool) -> Vec<(&'c Run, &'c Run)> {
        let blocks = |case: &'c MeasuredCase<'c>| if traced { &case.traced } else { &case.untraced };
        let (a, b) = (blocks(self.a), blocks(self.b));
        let of_block = |(block, a): (&u32, &'c Vec<&'c Run>)| {
            let b = b.get(block).map_or(&[][..], Vec::as_slice);
            a.iter().copied().zip(b.iter().copied()).collect::<Vec<_>>()
        };
        a.iter().flat_map(of_block).collect()
    }

    /// Traces side by side, the first with the first.
    pub(crate) fn traces(&self) -> Vec<(&'c Trace, &'c Trace)> {
        self.a.traces.iter().copied().zip(self.b.traces.iter().copied()).collect()
    }

    /// Whether both have an untraced run.
    pub(crate) fn has_untraced(&self) -> bool {
        !self.a.untraced.is_empty() && !self.b.untraced.is_empty()
    }
}

/// How many of the runs did not succeed.
pub(crate) fn failures(pairs: &[(&Run, &Run)]) -> usize {
    pairs.iter().flat_map(|(a, b)| [a, b]).filter(|run| !run.exit.success()).count()
}
