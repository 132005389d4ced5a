//! Adds up what the walk charges, and makes rows of it; keeps what was charged when.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use inodyne_model::Nanos;
use inodyne_model::cause::Cause;
use inodyne_model::column::push;
use inodyne_model::ledger::{Ledger, Row, RowKind, View};
use inodyne_model::observed::{Observed, Sample, ThreadNumber};
use inodyne_model::path::{CriticalPath, Step, StepPart};
use inodyne_model::stack::StackId;

use crate::causes::Classifier;
use crate::faults;
use crate::threads::frames;

/// What makes two charges the same row.
pub(super) use inodyne_model::path::PathRow as Key;

#[derive(Default)]
struct Sum {
    /// Its place in the rows of the path.
    number: u32,
    ns: u64,
    count: u64,
    estimated: bool,
    /// For the cause `other` only.
    stacks: HashMap<StackId, u64>,
}

/// How often a thread waited.
#[derive(Debug, Clone, Copy)]
pub(super) enum Times {
    /// Once, and for exactly so long.
    Once,
    /// This often, in proportion to a longer time.
    Estimated(u64),
}

/// All charges so far.
#[derive(Default)]
pub(super) struct Rows {
    sums: HashMap<Key, Sum>,
    /// Time outside of calls, by thread of the command and whether it is known exactly: samples divide it.
    outside: BTreeMap<ThreadNumber, (u64, bool)>,
    /// From the end back to the beginning, at first in absolute time.
    path: CriticalPath,
    /// How many of the path's parts belong to steps that are complete.
    taken: usize,
}

impl Rows {
    /// Adds time on a CPU; returns the row's number in the path.
    pub(super) fn ran(&mut self, key: Key, ns: u64, estimated: bool) -> u32 {
        let sum = self.sum(key);
        sum.ns = sum.ns.saturating_add(ns);
        sum.estimated |= estimated;
        let row = sum.number;
        push(&mut self.path.parts, StepPart { row, ns: Nanos(ns) });
        row
    }

    /// The sum of a row, and the row itself where it is new.
    fn sum(&mut self, key: Key) -> &mut Sum {
        let rows = &mut self.path.rows;
        self.sums.entry(key).or_insert_with_key(|key| {
            rows.push(key.clone());
            Sum { number: rows.len() as u32 - 1, ..Sum::default() }
        })
    }

    /// Everything that was charged since the last call of this was one step, which began at `from`.
    pub(super) fn step(&mut self, from: u64, thread: ThreadNumber) {
        let CriticalPath { steps, parts, .. } = &mut self.path;
        let (before, new) = parts.split_at_mut(self.taken);
        // What continues in the step after it is no step of its own.
        if let ([only], Some(later), Some(part)) = (&*new, steps.last_mut(), before.last_mut())
            && (later.thread, later.count, part.row) == (thread, 1, only.row)
        {
            later.from_ns = from;
            part.ns += only.ns;
            parts.truncate(self.taken);
        } else if !new.is_empty() {
            push(steps, Step { from_ns: from, thread, first: self.taken as u32, count: new.len() as u32 });
            self.taken = parts.len();
        }
    }

    /// Adds time of a thread of the command outside of calls; returns the row's number in the path.
    pub(super) fn ran_outside(&mut self, thread: ThreadNumber, ns: u64, estimated: bool) -> u32 {
        let (sum, any) = self.outside.entry(thread).or_default();
        *sum = sum.saturating_add(ns);
        *any |= estimated;
        let outside = Key { kind: RowKind::User, syscall: None, cause: None, via: Vec::new() };
        let row = self.sum(outside).number;
        push(&mut self.path.parts, StepPart { row, ns: Nanos(ns) });
        row
    }

    /// Adds time off the CPU; returns the row's number in the path.
    pub(super) fn waited(&mut self, key: Key, ns: u64, stack: StackId, times: Times) -> u32 {
        let is_other = key.cause == Some(Cause::Other);
        let sum = self.sum(key);
        sum.ns = sum.ns.saturating_add(ns);
        match times {
            Times::Once => sum.count += 1,
            Times::Estimated(count) => {
                sum.count = sum.count.saturating_add(count);
                sum.estimated = true;
            }
        }
        if is_other {
            let of_stack = sum.stacks.entry(stack).or_default();
            *of_stack = of_stack.saturating_add(ns);
        }
        let row = sum.number;
        push(&mut self.path.parts, StepPart { row, ns: Nanos(ns) });
        row
    }

    /// The ledger of `wall_ns`, in which what was not charged to anything is the residual, and the path through time.
    pub(super) fn finish(
        mut self,
        wall_ns: Nanos,
        observed: &Observed,
        classifier: &Classifier<'_>,
    ) -> (Ledger, CriticalPath) {
        let mut path = std::mem::take(&mut self.path);
        path.steps.reverse();
        for step in &mut path.steps {
            step.from_ns = step.from_ns.saturating_sub(observed.started_ns.0);
        }
        let mut rows: Vec<Row> = Vec::new();
        let mut samples: HashMap<ThreadNumber, Vec<&Sample>> = HashMap::new();
        for sample in observed.samples.iter().filter(|sample| self.outside.contains_key(&sample.thread)) {
            samples.entry(sample.thread).or_default().push(sample);
        }
        for (thread, (ns, estimated)) in std::mem::take(&mut self.outside) {
            let samples = samples.get(&thread).map_or(&[][..], Vec::as_slice);
            for row in faults::split(Nanos(ns), samples.iter().copied(), |sample| classifier.stack(sample.stack)) {
                let key = Key { kind: row.kind, syscall: row.syscall, cause: None, via: Vec::new() };
                let sum = self.sum(key);
                sum.ns = sum.ns.saturating_add(row.ns.0);
                sum.estimated |= estimated || row.estimated;
            }
        }
        let mut sums: Vec<(Key, Sum)> = self.sums.into_iter().filter(|(_, sum)| sum.ns > 0).collect();
        sums.sort_by(|(a, sum_a), (b, sum_b)| (Reverse(sum_a.ns), a).cmp(&(Reverse(sum_b.ns), b)));
        for (Key { kind, syscall, cause, via }, sum) in sums {
            let longest = sum.stacks.into_iter().max_by_key(|(id, ns)| (*ns, *id)).map(|(id, _)| id);
            let stack = longest.and_then(|id| classifier.stack(id)).map_or_else(Vec::new, frames);
            let Sum { ns, count, estimated, .. } = sum;
            rows.push(Row { kind, syscall, cause, via, ns: Nanos(ns), count, estimated, began_before: false, stack });
        }
        let explained: Nanos = rows.iter().map(|row| row.ns).sum();
        let unexplained_ns = wall_ns.saturating_sub(explained);
        rows.push(Row::new(RowKind::Unexplained, unexplained_ns));
        (Ledger { view: View::CriticalPath, wall_ns, unexplained_ns, rows }, path)
    }
}
