//! Time by stack: the rows of each thread's ledger, divided among the stacks that were seen in them.
//!
//! ```text
//! row     kernel: newfstatat 100 ms                    blocked: newfstatat, device-read 40 ms
//! seen    60 samples in A, 20 in B                     waits: 30 ms at C, 9 ms at D (1 ms was lost)
//! parts   A 75 ms, B 25 ms                             C 30 ms, D 9 ms, without a stack 1 ms
//! ```
//!
//! Where in the program a thread was blocked is known from samples of its blocked time by call, so each part is divided once
//! more in their proportion: an estimate, as if all stacks of a call waited alike.
//!
//! So the parts of a row sum to it exactly, whatever the sampling rate was and whatever was lost. A row in which nothing
//! was sampled is one part without a stack.

use std::collections::{BTreeMap, HashMap};

use inodyne_model::Nanos;
use inodyne_model::ledger::{RowKey, RowKind};
use inodyne_model::observed::{BlockedSample, Observed, Sample, Wait};
use inodyne_model::profile::{StackTime, StackTimes};
use inodyne_model::stack::StackId;
use inodyne_model::trace::ThreadLedger;

use crate::causes::Classifier;
use crate::faults::Outside;
use crate::threads::{by_thread, call_of};

/// The time of all threads, by stack.
pub(crate) fn times(observed: &Observed, threads: &[ThreadLedger], classifier: &Classifier<'_>) -> StackTimes {
    let samples = by_thread(&observed.samples, |sample| sample.thread);
    let waits = by_thread(&observed.waits, |wait| wait.thread);
    let blocked = by_thread(&observed.blocked_samples, |sample| sample.thread);
    let mut times = StackTimes::default();
    for thread in threads {
        let mut samples = grouped(samples.get(&thread.number), |sample| sample_row(sample, classifier));
        let mut waits = grouped(waits.get(&thread.number), |wait| wait_row(wait, classifier));
        let blocked = blocked.get(&thread.number).map_or(&[][..], Vec::as_slice);
        for (row, ns) in rows(thread) {
            let blank = blank(thread.number, &row);
            match row.kind {
                RowKind::User | RowKind::Kernel => {
                    times.on_cpu.extend(sampled(&blank, ns, &samples.remove(&row).unwrap_or_default()));
                }
                RowKind::Blocked => {
                    let from: Vec<_> = blocked.iter().copied().filter(|one| one.syscall == row.syscall).collect();
                    for part in waited(&blank, ns, &waits.remove(&row).unwrap_or_default()) {
                        times.off_cpu.extend(divided(part, &from));
                    }
                }
                RowKind::Runqueue | RowKind::InCall | RowKind::OutsideCalls | RowKind::Unexplained => {
                    times.off_cpu.push(StackTime { ns, ..blank });
                }
            }
        }
    }
    times
}

/// The rows of a ledger; those with the same names are one.
fn rows(thread: &ThreadLedger) -> BTreeMap<RowKey, Nanos> {
    let mut rows = BTreeMap::new();
    for row in &thread.rows {
        *rows.entry(RowKey::from(row)).or_default() += row.ns;
    }
    rows
}

fn grouped<'a, T>(all: Option<&Vec<&'a T>>, row: impl Fn(&T) -> RowKey) -> HashMap<RowKey, Vec<&'a T>> {
    let mut groups: HashMap<RowKey, Vec<&T>> = HashMap::new();
    for one in all.into_iter().flatten() {
        groups.entry(row(one)).or_default().push(one);
    }
    groups
}

/// The row that a sample was taken in: as `faults` divides the time outside of calls.
pub(crate) fn sample_row(sample: &Sample, classifier: &Classifier<'_>) -> RowKey {
    let outside = || classifier.stack(sample.stack).map_or(Outside::Border, Outside::of).name().map(str::to_owned);
    let (kind, syscall) = match &sample.syscall {
        Some(call) => (RowKind::Kernel, Some(call.clone())),
        None if sample.user_mode => (RowKind::User, None),
        None => (RowKind::Kernel, outside()),
    };
    RowKey { kind, syscall, cause: None }
}

fn wait_row(wait: &Wait, classifier: &Classifier<'_>) -> RowKey {
    let syscall = call_of(wait, classifier).map(str::to_owned);
    RowKey { kind: RowKind::Blocked, syscall, cause: Some(classifier.cause(wait)) }
}

pub(crate) fn blank(thread: u32, row: &RowKey) -> StackTime {
    StackTime {
        thread,
        kind: row.kind,
        syscall: row.syscall.clone(),
        cause: row.cause,
        stack: StackId(0),
        user_stack: StackId(0),
        waker: None,
        waker_stack: StackId(0),
        ns: Nanos::ZERO,
        count: 0,
    }
}

/// A row on a CPU, in proportion to its samples. Rounded where the parts meet, so that nothing is left over.
pub(crate) fn sampled(blank: &StackTime, ns: Nanos, samples: &[&Sample]) -> Vec<StackTime> {
    let all = samples.iter().fold(0, |sum: u64, sample| sum.saturating_add(sample.count));
    if all == 0 {
        return vec![StackTime { ns, ..blank.clone() }];
    }
    let until = |count: u64| (u128::from(ns.0) * u128::from(count) / u128::from(all)) as u64;
    let mut before = 0u64;
    let part = |sample: &&Sample| {
        let begin = until(before);
        before = before.saturating_add(sample.count);
        let ns = Nanos(until(before) - begin);
        StackTime { stack: sample.stack, user_stack: sample.user_stack, ns, count: sample.count, ..blank.clone() }
    };
    samples.iter().map(part).collect()
}

/// A blocked row, by its waits; what they do not cover has no stack.
fn waited(blank: &StackTime, ns: Nanos, waits: &[&Wait]) -> Vec<StackTime> {
    let mut left = ns;
    let mut parts = Vec::new();
    for wait in waits {
        let ns = wait.ns.min(left);
        left = left - ns;
        let Wait { stack, waker, waker_stack, count, .. } = **wait;
        parts.push(StackTime { stack, waker: Some(waker), waker_stack, ns, count, ..blank.clone() });
    }
    if left > Nanos::ZERO {
        parts.push(StackTime { ns: left, ..blank.clone() });
    }
    parts
}

/// A part of a blocked row, in proportion to the samples of its call.
pub(crate) fn divided(part: StackTime, samples: &[&BlockedSample]) -> Vec<StackTime> {
    let all = samples.iter().fold(0u64, |sum, sample| sum.saturating_add(sample.count));
    if all == 0 {
        return vec![part];
    }
    let of = |whole: u64, count: u64| (u128::from(whole) * u128::from(count) / u128::from(all)) as u64;
    let mut before = 0u64;
    let piece = |sample: &&BlockedSample| {
        let after = before.saturating_add(sample.count).min(all);
        let piece = |whole: u64| of(whole, after) - of(whole, before);
        let (ns, count) = (Nanos(piece(part.ns.0)), piece(part.count));
        before = after;
        StackTime { user_stack: sample.user_stack, ns, count, ..part.clone() }
    };
    samples.iter().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use inodyne_model::recording::Recording;
    use inodyne_model::sample;
    use proptest::prelude::*;

    use super::*;

    fn explained(mut recording: Recording) -> Recording {
        crate::explain(&mut recording);
        recording
    }

    /// By thread and row.
    fn sums(times: &StackTimes) -> BTreeMap<(u32, RowKey), Nanos> {
        let mut sums = BTreeMap::new();
        for time in times.on_cpu.iter().chain(&times.off_cpu) {
            let row = RowKey { kind: time.kind, syscall: time.syscall.clone(), cause: time.cause };
            *sums.entry((time.thread, row)).or_default() += time.ns;
        }
        sums
    }

    #[test]
    fn the_parts_of_every_row_sum_to_it() {
        for recording in [sample::find_recording(), sample::pipeline_recording()] {
            for trace in explained(recording).traces {
                let of_ledgers: BTreeMap<_, _> = trace
                    .threads
                    .iter()
                    .flat_map(|thread| rows(thread).into_iter().map(|(row, ns)| ((thread.number, row), ns)))
                    .collect();
                assert_eq!(sums(&trace.stacks), of_ledgers);
            }
        }
    }

    #[test]
    fn a_wait_keeps_its_stack_and_cause() {
        let trace = &explained(sample::find_recording()).traces[0];
        let read = trace.stacks.off_cpu.iter().find(|time| time.stack == StackId(0xa2)).unwrap();
        assert_eq!(read.cause, Some(inodyne_model::cause::Cause::DeviceRead));
        assert_eq!((read.syscall.as_deref(), read.count), (Some("getdents64"), 97));
    }

    proptest! {
        #[test]
        fn samples_divide_a_wait_without_remainder(ns in any::<u64>(), counts in prop::collection::vec(any::<u64>(), 0..20)) {
            let sample = |count: &u64| BlockedSample { thread: 1, syscall: None, user_stack: StackId(1), count: *count };
            let samples: Vec<BlockedSample> = counts.iter().map(sample).collect();
            let row = RowKey { kind: RowKind::Blocked, syscall: None, cause: None };
            let part = StackTime { ns: Nanos(ns), count: 3, ..blank(1, &row) };
            let parts = divided(part, &samples.iter().collect::<Vec<_>>());
            prop_assert_eq!(parts.iter().map(|part| u128::from(part.ns.0)).sum::<u128>(), u128::from(ns));
            prop_assert_eq!(parts.iter().map(|part| part.count).sum::<u64>(), 3);
        }

        #[test]
        fn samples_divide_a_row_without_remainder(ns in any::<u64>(), counts in prop::collection::vec(any::<u64>(), 0..20)) {
            let sample = |count: &u64| Sample {
                thread: 1, syscall: None, user_mode: true, stack: StackId(1), user_stack: StackId(0), count: *count,
            };
            let samples: Vec<Sample> = counts.iter().map(sample).collect();
            let row = RowKey { kind: RowKind::User, syscall: None, cause: None };
            let parts = sampled(&blank(1, &row), Nanos(ns), &samples.iter().collect::<Vec<_>>());
            prop_assert_eq!(parts.iter().map(|part| u128::from(part.ns.0)).sum::<u128>(), u128::from(ns));
        }
    }
}
