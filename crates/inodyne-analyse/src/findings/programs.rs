//! Which program a thread was running.

use std::collections::BTreeMap;

use inodyne_model::observed::{Program, ThreadNumber};
use inodyne_model::trace::Trace;

/// The programs of a trace, and which of them each thread belonged to.
pub(super) struct ProgramsByThread<'a> {
    by_pid: BTreeMap<u32, &'a Program>,
    /// Process and parent of each thread.
    threads: BTreeMap<ThreadNumber, (u32, ThreadNumber)>,
}

impl<'a> ProgramsByThread<'a> {
    pub(super) fn of(trace: &'a Trace) -> ProgramsByThread<'a> {
        ProgramsByThread {
            by_pid: trace.observed.programs.iter().map(|program| (program.pid, program)).collect(),
            threads: trace.observed.threads.iter().map(|t| (t.number, (t.pid, t.parent))).collect(),
        }
    }

    /// The last program of its process; for a process that executed none, that of the process it was forked from.
    pub(super) fn of_thread(&self, mut number: ThreadNumber) -> Option<&'a Program> {
        // A chain of parents is at most as long as the number of threads: damaged ones may be a cycle.
        for _ in 0..self.threads.len() {
            let (pid, parent) = self.threads.get(&number)?;
            if let Some(program) = self.by_pid.get(pid) {
                return Some(program);
            }
            number = *parent;
        }
        None
    }
}
