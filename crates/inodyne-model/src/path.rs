//! The critical path through time: what the end of the command had to wait for, from instant to instant. Derived.
//!
//! The rows of [`Trace::ledger`](crate::trace::Trace::ledger) say how long each thing took in all; this says when. It is as long as the
//! timeline, so it is computed when a recording is explained, and not kept in files.

use crate::Nanos;
use crate::cause::Cause;
use crate::ledger::RowKind;
use crate::observed::ThreadNumber;

/// The path from its beginning to its end. Empty where it could not be walked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CriticalPath {
    /// In the order of time. Gaps are what is unexplained.
    pub steps: Vec<Step>,
    /// What the steps consist of, one step's after the other.
    pub parts: Vec<StepPart>,
    /// What the parts name.
    pub rows: Vec<PathRow>,
}

/// A stretch in one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Its beginning, nanoseconds after [`Observed::started_ns`](crate::observed::Observed::started_ns).
    pub from_ns: u64,
    /// In which thread.
    pub thread: ThreadNumber,
    /// Its first part: an index into [`CriticalPath::parts`].
    pub first: u32,
    /// How many parts. Several where a thread ran: in which order it did them is not known.
    pub count: u32,
}

/// A part of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepPart {
    /// What it was: an index into [`CriticalPath::rows`].
    pub row: u32,
    /// How long.
    pub ns: Nanos,
}

/// What a part was, in the words of the ledger. Time outside of calls is all `user` here: samples divide sums, not instants.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathRow {
    /// See [`Row::kind`](crate::ledger::Row::kind).
    pub kind: RowKind,
    /// See [`Row::syscall`](crate::ledger::Row::syscall).
    pub syscall: Option<String>,
    /// See [`Row::cause`](crate::ledger::Row::cause).
    pub cause: Option<Cause>,
    /// See [`Row::via`](crate::ledger::Row::via).
    pub via: Vec<String>,
}

impl CriticalPath {
    /// The steps with their parts.
    pub fn iter(&self) -> impl Iterator<Item = (&Step, &[StepPart])> {
        self.steps.iter().map(|step| {
            let first = step.first as usize;
            (step, self.parts.get(first..first.saturating_add(step.count as usize)).unwrap_or(&[]))
        })
    }
}
