//! The ledger of one thread: rows that sum to its lifetime exactly.
//!
//! ```text
//! born                                                                              ended
//!   | user |  kernel: openat  |  blocked  | ready | kernel: openat | user | kernel: … |
//!   | user + page faults      |  by wait: call,   |                | split by samples |
//!   | + interrupts            |  stack -> cause   |                |                  |
//! ```
//!
//! The collecting side has summed each state, and the sums telescope to the lifetime. Here `blocked` is divided by
//! cause and `user` by samples, each so that the parts sum to the whole; blocked time that no wait covers is a row of
//! the cause `other`. In a damaged recording the sums may differ from the lifetime: then what is missing is a row
//! `unexplained`, and where there is too much, the sum counts as the lifetime.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use inodyne_model::Nanos;
use inodyne_model::cause::Cause;
use inodyne_model::ledger::{PAGE_FAULT, Row, RowKind};
use inodyne_model::observed::{Observed, Sample, ThreadNumber, ThreadObserved, Wait};
use inodyne_model::stack::{Frame, Stack};
use inodyne_model::trace::ThreadLedger;

use crate::causes::Classifier;
use crate::faults::{self, Outside};

/// The ledger of every thread, in the order of their numbers.
pub(crate) fn ledgers(observed: &Observed, classifier: &Classifier<'_>) -> Vec<ThreadLedger> {
    let waits = by_thread(&observed.waits, |wait| wait.thread);
    let samples = by_thread(&observed.samples, |sample| sample.thread);
    let one = |thread: &ThreadObserved| {
        let waits = waits.get(&thread.number).map_or(&[][..], Vec::as_slice);
        let samples = samples.get(&thread.number).map_or(&[][..], Vec::as_slice);
        ledger(thread, waits, samples, classifier)
    };
    observed.threads.iter().map(one).collect()
}

pub(crate) fn by_thread<T>(all: &[T], number: impl Fn(&T) -> ThreadNumber) -> HashMap<ThreadNumber, Vec<&T>> {
    let mut map: HashMap<ThreadNumber, Vec<&T>> = HashMap::new();
    for one in all {
        map.entry(number(one)).or_default().push(one);
    }
    map
}

fn ledger(thread: &ThreadObserved, waits: &[&Wait], samples: &[&Sample], classifier: &Classifier<'_>) -> ThreadLedger {
    let mut rows = faults::split(thread.user_ns, samples.iter().copied(), |sample| classifier.stack(sample.stack));
    rows.extend(
        thread.kernel_ns.iter().map(|(call, ns)| Row { syscall: Some(call.clone()), ..Row::new(RowKind::Kernel, *ns) }),
    );
    rows.push(Row { count: thread.switches(), ..Row::new(RowKind::Runqueue, thread.runqueue_ns) });
    rows.extend(blocked(thread.blocked_ns, waits, classifier));
    rows.retain(|row| row.ns > Nanos::ZERO);
    let sum: Nanos = rows.iter().map(|row| row.ns).sum();
    let lifetime_ns = thread.lifetime_ns().max(sum);
    rows.sort_by_key(|row| Reverse(row.ns));
    if lifetime_ns > sum {
        rows.push(Row::new(RowKind::Unexplained, lifetime_ns - sum));
    }
    let ThreadObserved { number, pid, tid, ref comm, .. } = *thread;
    ThreadLedger { number, pid, tid, comm: comm.clone(), lifetime_ns, rows }
}

/// Blocked time by call and cause. The rows sum to `total`: what the waits do not cover becomes a row of its own.
fn blocked(total: Nanos, waits: &[&Wait], classifier: &Classifier<'_>) -> Vec<Row> {
    let mut groups: BTreeMap<(Option<&str>, Cause, bool), Vec<&Wait>> = BTreeMap::new();
    for wait in waits {
        let key = (call_of(wait, classifier), classifier.cause(wait), wait.began_before);
        groups.entry(key).or_default().push(wait);
    }
    let mut left = total;
    let mut rows = Vec::new();
    for ((call, cause, began_before), waits) in groups {
        let waited: Nanos = waits.iter().map(|wait| wait.ns).sum();
        let ns = waited.min(left);
        left = left - ns;
        rows.push(Row {
            syscall: call.map(str::to_owned),
            cause: Some(cause),
            count: waits.iter().fold(0, |sum, wait| sum.saturating_add(wait.count)),
            began_before,
            stack: if cause == Cause::Other { longest_stack(&waits, classifier) } else { Vec::new() },
            ..Row::new(RowKind::Blocked, ns)
        });
    }
    rows.push(Row { cause: Some(Cause::Other), ..Row::new(RowKind::Blocked, left) });
    rows
}

/// The call of a wait; outside of calls what it was for, where its stack says so.
pub(crate) fn call_of<'a>(wait: &'a Wait, classifier: &Classifier<'_>) -> Option<&'a str> {
    let fault = || {
        let stack = classifier.stack(wait.stack)?;
        (Outside::of(stack) == Outside::PageFault).then_some(PAGE_FAULT)
    };
    wait.syscall.as_deref().or_else(fault)
}

/// The stack that took most of the time of these waits.
fn longest_stack(waits: &[&Wait], classifier: &Classifier<'_>) -> Vec<String> {
    let mut by_stack: BTreeMap<_, Nanos> = BTreeMap::new();
    for wait in waits {
        *by_stack.entry(wait.stack).or_default() += wait.ns;
    }
    let longest = by_stack.into_iter().max_by_key(|(_, ns)| *ns).and_then(|(id, _)| classifier.stack(id));
    longest.map_or_else(Vec::new, frames)
}

/// The names of a stack's frames, leaf first.
pub(crate) fn frames(stack: &Stack) -> Vec<String> {
    let name = |frame: &Frame| match frame {
        Frame::Symbol(name) => name.clone(),
        Frame::InFile { file, offset } => format!("{file}+{offset:#x}"),
        Frame::Unknown { address } => format!("{address:#x}"),
    };
    stack.frames.iter().map(name).collect()
}
