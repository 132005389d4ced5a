//! Adds up what the walk charges, and makes rows of it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use inodyne_model::Nanos;
use inodyne_model::cause::Cause;
use inodyne_model::ledger::{Ledger, Row, RowKind, View};
use inodyne_model::observed::{Observed, Sample, ThreadNumber};
use inodyne_model::stack::StackId;

use crate::causes::Classifier;
use crate::faults;
use crate::threads::frames;

/// What makes two charges the same row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) kind: RowKind,
    pub(super) syscall: Option<String>,
    pub(super) cause: Option<Cause>,
    pub(super) via: Vec<String>,
}

#[derive(Default)]
struct Sum {
    ns: u64,
    count: u64,
    estimated: bool,
    /// Of the cause `other` only.
    stacks: HashMap<StackId, u64>,
}

/// All charges so far.
#[derive(Default)]
pub(super) struct Rows {
    sums: HashMap<Key, Sum>,
    /// Time outside of calls, by thread of the command and whether it is known exactly: samples divide it.
    outside: BTreeMap<ThreadNumber, (u64, bool)>,
}

impl Rows {
    /// Time on a CPU.
    pub(super) fn ran(&mut self, key: Key, ns: u64, estimated: bool) {
        let sum = self.sums.entry(key).or_default();
        sum.ns = sum.ns.saturating_add(ns);
        sum.estimated |= estimated;
    }

    /// Time of a thread of the command outside of calls.
    pub(super) fn ran_outside(&mut self, thread: ThreadNumber, ns: u64, estimated: bool) {
        let (sum, any) = self.outside.entry(thread).or_default();
        *sum = sum.saturating_add(ns);
        *any |= estimated;
    }

    /// Time off the CPU, once.
    pub(super) fn waited(&mut self, key: Key, ns: u64, stack: StackId) {
        let is_other = key.cause == Some(Cause::Other);
        let sum = self.sums.entry(key).or_default();
        sum.ns = sum.ns.saturating_add(ns);
        sum.count += 1;
        if is_other {
            let of_stack = sum.stacks.entry(stack).or_default();
            *of_stack = of_stack.saturating_add(ns);
        }
    }

    /// The ledger of `wall_ns`. What was charged to nothing is the residual.
    pub(super) fn ledger(mut self, wall_ns: Nanos, observed: &Observed, classifier: &Classifier<'_>) -> Ledger {
        let mut rows: Vec<Row> = Vec::new();
        let mut samples: HashMap<ThreadNumber, Vec<&Sample>> = HashMap::new();
        for sample in observed.samples.iter().filter(|sample| self.outside.contains_key(&sample.thread)) {
            samples.entry(sample.thread).or_default().push(sample);
        }
        for (thread, (ns, estimated)) in std::mem::take(&mut self.outside) {
            let samples = samples.get(&thread).map_or(&[][..], Vec::as_slice);
            for row in faults::split(Nanos(ns), samples.iter().copied(), |sample| classifier.stack(sample.stack)) {
                let key = Key { kind: row.kind, syscall: row.syscall, cause: None, via: Vec::new() };
                self.ran(key, row.ns.0, estimated || row.estimated);
            }
        }
        let mut sums: Vec<(Key, Sum)> = self.sums.into_iter().filter(|(_, sum)| sum.ns > 0).collect();
        sums.sort_by(|(a, sum_a), (b, sum_b)| (Reverse(sum_a.ns), a).cmp(&(Reverse(sum_b.ns), b)));
        for (Key { kind, syscall, cause, via }, sum) in sums {
            let longest = sum.stacks.into_iter().max_by_key(|(id, ns)| (*ns, *id)).map(|(id, _)| id);
            let stack = longest.and_then(|id| classifier.stack(id)).map_or_else(Vec::new, frames);
            let Sum { ns, count, estimated, .. } = sum;
            rows.push(Row { kind, syscall, cause, via, ns: Nanos(ns), count, estimated, stack });
        }
        let explained: Nanos = rows.iter().map(|row| row.ns).sum();
        let unexplained_ns = wall_ns.saturating_sub(explained);
        rows.push(Row::new(RowKind::Unexplained, unexplained_ns));
        Ledger { view: View::CriticalPath, wall_ns, unexplained_ns, rows }
    }
}
