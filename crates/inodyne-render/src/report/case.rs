//! A case: one command in one place in one state of the caches, with all that is known about it.

use inodyne_model::Nanos;
use inodyne_model::case::CaseKey;
use inodyne_model::finding::Finding;
use inodyne_model::place::Place;
use inodyne_model::recording::Recording;
use inodyne_model::run::{CacheState, Run, median};
use inodyne_model::statistics::RunStatistics;
use inodyne_model::trace::Trace;

use super::{names, window};

/// Everything a section may want to know.
#[derive(Clone)]
pub(crate) struct Case<'a> {
    pub(crate) recording: &'a Recording,
    /// Which case it is.
    pub(crate) key: CaseKey,
    /// The trace, if one was made.
    pub(crate) trace: Option<&'a Trace>,
    /// How many traces there are.
    pub(crate) traces: usize,
    /// The trace's findings.
    pub(crate) findings: Vec<&'a Finding>,
    /// All runs of the case.
    pub(crate) runs: Vec<&'a Run>,
}

impl<'a> Case<'a> {
    /// One for each place, command and cache state. Sorted by command and cache state, and then in the order in which
    /// the places were given, whatever the schedule ran first. If there are several traces, the one with the median wall time
    /// stands for all.
    pub(crate) fn all(recording: &'a Recording) -> Vec<Case<'a>> {
        let mut cases: Vec<Case<'a>> = Vec::new();
        let mut traces: Vec<(usize, &'a Trace)> = recording.traces.iter().enumerate().collect();
        traces.sort_by_key(|(index, trace)| (trace.wall_ns, *index));
        for first in &recording.traces {
            let key = first.key();
            if cases.iter().any(|case| case.key == key) {
                continue;
            }
            let of_case: Vec<_> = traces.iter().filter(|(_, t)| t.key() == key).collect();
            let (index, trace) = *of_case[(of_case.len() - 1) / 2];
            let findings = recording.findings.iter().filter(|f| f.trace == index).collect();
            cases.push(Case { recording, key, trace: Some(trace), traces: of_case.len(), findings, runs: Vec::new() });
        }
        for run in &recording.runs {
            let key = run.key();
            if !cases.iter().any(|case| case.key == key) {
                cases.push(Case { recording, key, trace: None, traces: 0, findings: Vec::new(), runs: Vec::new() });
            }
            for case in cases.iter_mut().filter(|case| case.key == key) {
                case.runs.push(run);
            }
        }
        let caches: Vec<CacheState> = cases.iter().map(Case::cache).collect();
        let begun = |cache| caches.iter().position(|one| *one == cache);
        cases.sort_by_key(|case| (case.key.command, begun(case.cache()), case.key.place));
        cases
    }

    pub(crate) fn place(&self) -> Option<&'a Place> {
        self.recording.places.get(self.key.place)
    }

    pub(crate) fn cache(&self) -> CacheState {
        self.key.cache
    }

    /// What speaks against predictions.
    pub(crate) fn doubts(&self) -> &'a [String] {
        self.trace.map_or(&[], |trace| &trace.doubts)
    }

    /// The trace, if it is of a window of running processes.
    pub(crate) fn window(&self) -> Option<&'a Trace> {
        self.trace.filter(|trace| window::is_window(trace))
    }

    /// The command as it is called in reports.
    pub(crate) fn command(&self) -> &'a str {
        self.recording.commands.get(self.key.command).map_or("?", |command| &command.label)
    }

    /// The place's name, or where it is.
    pub(crate) fn place_name(&self) -> String {
        names::place(self.recording, self.key.place)
    }

    /// The run that was traced.
    pub(crate) fn traced_run(&self) -> Option<&'a Run> {
        let is_shown = |trace: &Trace| self.trace.is_some_and(|shown| std::ptr::eq(shown, trace));
        self.recording.run_of(self.recording.traces.iter().position(is_shown)?)
    }

    pub(crate) fn untraced(&self) -> impl Iterator<Item = &'a Run> {
        self.runs.iter().copied().filter(|run| !run.traced)
    }

    /// What its untraced runs say; `None` if it has none.
    pub(crate) fn statistics(&self) -> Option<&'a RunStatistics> {
        self.recording.statistics.iter().find(|found| found.case == self.key)
    }

    /// The time of the case: the median of its untraced runs, otherwise that of the trace.
    pub(crate) fn wall(&self) -> Nanos {
        let untraced = median(&self.recording.untraced_walls(self.key));
        untraced.or(self.trace.map(|trace| trace.wall_ns)).or(self.runs.first().map(|r| r.wall_ns)).unwrap_or_default()
    }
}
