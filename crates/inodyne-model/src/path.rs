//! The critical path through time: what the end of the command had to wait for, from instant to instant. Derived.
//!
//! The rows of [`Trace::ledger`](crate::trace::Trace::ledger) say how long each thing took in total; this says when. It is as long as
//! the timeline, so it is computed when a recording is explained, and not kept in files.

use crate::Nanos;
use crate::cause::Cause;
use crate::ledger::RowKind;
use crate::observed::{ThreadNumber, Waker};
use crate::profile::StackTime;
use crate::stack::StackId;

/// The path from its beginning to its end. Empty where it could not be walked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CriticalPath {
    /// In chronological order. Gaps are what is unexplained.
    pub steps: Vec<Step>,
    /// What the steps consist of, one step after the other.
    pub parts: Vec<StepPart>,
    /// What the parts name.
    pub rows: Vec<PathRow>,
    /// The same time summed by what a thread of the command was doing.
    pub doings: Vec<Doing>,
    /// The same time summed by where it was spent, and what is unexplained: together the wall-clock time.
    pub stacks: Vec<PathTime>,
}

/// A part of a row of the ledger, by stack: divided among them as in [`StackTimes`](crate::profile::StackTimes), as if the path
/// had met the stacks of a thread as often as the samples did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathTime {
    /// The row.
    pub row: PathRow,
    /// The waits during which others did this, the outermost first, which is one of the command's. Empty where a thread of the
    /// command did it.
    pub waits: Vec<PathWait>,
    /// Whose time, in which call, and where in the kernel: those of the last helper where there are waits. The user-mode stack is that
    /// of the command's thread: where it ran, or from where it made the call that it waited in.
    pub time: StackTime,
}

impl PathTime {
    /// The thread of the command whose time this is, or that waited for it.
    pub fn of(&self) -> ThreadNumber {
        self.waits.first().map_or(self.time.thread, |wait| wait.thread)
    }
}

/// A wait that a helper ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathWait {
    /// Who waited.
    pub thread: ThreadNumber,
    /// In which call.
    pub syscall: Option<String>,
    /// For what; none where it was idle and waited for nothing of its own.
    pub cause: Option<Cause>,
    /// Where in the kernel.
    pub stack: StackId,
    /// Who ended it, by a name that people know.
    pub helper: String,
}

/// Time on the path, by what a thread of the command was doing. Apart from [`DoingKind::Followed`], these sum to all of the steps: what
/// others did for a thread that waited for them is time of its wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doing {
    /// The thread.
    pub thread: ThreadNumber,
    /// The call it was in; none outside of calls.
    pub syscall: Option<String>,
    /// What it did there.
    pub kind: DoingKind,
    /// How long, in all.
    pub ns: Nanos,
}

/// What a thread was doing while the path was in it, or with whoever it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DoingKind {
    /// It ran.
    Running,
    /// It was ready, without a CPU.
    Ready,
    /// It waited, for a device, a helper, or somebody who was not followed.
    Waiting(WaitPlace),
    /// It waited for another thread of the command, and the path was in that thread. So this time is also counted for that thread.
    Followed(WaitPlace),
}

/// Where a thread waited and who ended the wait: together with thread and call, the key of a [`Wait`](crate::observed::Wait).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaitPlace {
    /// Where it waited.
    pub stack: StackId,
    /// Who ended the wait.
    pub waker: Waker,
    /// Where the waker was.
    pub waker_stack: StackId,
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
    /// How many parts. Several where a thread ran: the order in which it did them is not known.
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
