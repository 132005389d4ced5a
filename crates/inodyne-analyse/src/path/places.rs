//! Adds up where the path's time was spent: in which thread, inside of which waits, in which call, at which stack.
//!
//! ```text
//! find ; getdents64 ; … io_schedule                               blocked: device-read          the command's own wait
//! sync ; fsync ; … jbd2_log_wait_commit ; jbd2 ; … wait_on_bit    blocked: device-write         a wait, and a helper's inside of it
//! ```
//!
//! Waits have their stack; time on a CPU is divided by the samples of its thread in the same call, and all that a thread waited for is
//! divided by the samples of where the program called from, as in `stacks`. Every part keeps its row of the ledger, and the parts of a row sum to
//! it.

use std::collections::HashMap;

use inodyne_model::Nanos;
use inodyne_model::ledger::{RowKey, RowKind};
use inodyne_model::observed::{BlockedSample, Observed, Sample, ThreadNumber};
use inodyne_model::path::{PathRow, PathTime, PathWait};
use inodyne_model::profile::StackTime;
use inodyne_model::stack::StackId;

use crate::causes::Classifier;
use crate::faults;
use crate::stacks::{divided, sample_row, sampled};

/// The number that means "inside of no wait".
pub(super) const ALONE: u32 = 0;

/// What a helper did is divided by its own stacks and by who called what waits for it. Where that gives more than this many parts, only by
/// its own: a helper with a thousand stacks, for which a call from a thousand places waits, would give a million.
const MOST_PARTS: usize = 1024;

/// A place on the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    /// The waits around it, by their number.
    pub(super) waits: u32,
    pub(super) thread: ThreadNumber,
    /// The number of its call.
    pub(super) call: u32,
    /// Where in the kernel it was blocked.
    pub(super) stack: StackId,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    ns: u64,
    count: u64,
}

/// All that was added up so far.
#[derive(Default)]
pub(super) struct Places {
    /// By place and row of the path.
    sums: HashMap<(u32, Place), Sum>,
    /// Waits with the number of what is around them; the first has the number 1.
    waits: Vec<(u32, PathWait)>,
    numbers: HashMap<(u32, PathWait), u32>,
}

impl Places {
    /// The number of this wait inside of those around it.
    pub(super) fn inside(&mut self, around: u32, wait: PathWait) -> u32 {
        let waits = &mut self.waits;
        *self.numbers.entry((around, wait)).or_insert_with_key(|one| {
            waits.push(one.clone());
            waits.len() as u32
        })
    }

    /// Adds time of a row of the path.
    pub(super) fn add(&mut self, row: u32, place: Place, ns: u64) {
        let sum = self.sums.entry((row, place)).or_default();
        sum.ns = sum.ns.saturating_add(ns);
        sum.count += 1;
    }

    /// The parts, in an order that depends only on them.
    pub(super) fn finish(self, rows: &[PathRow], name: impl Fn(u32) -> String, seen: &Seen<'_>) -> Vec<PathTime> {
        let mut sums: Vec<((u32, Place), Sum)> = self.sums.iter().map(|(key, sum)| (*key, *sum)).collect();
        sums.sort_unstable_by_key(|(key, _)| *key);
        let mut all = Vec::new();
        for ((row, place), sum) in sums {
            let Some(row) = rows.get(row as usize) else { continue };
            let waits = self.around(place.waits);
            let named = || Some(name(place.call)).filter(|name| !name.is_empty());
            let time = StackTime {
                thread: place.thread,
                kind: row.kind,
                syscall: if waits.is_empty() { row.syscall.clone() } else { named() },
                cause: row.cause,
                stack: place.stack,
                user_stack: StackId(0),
                waker: None,
                waker_stack: StackId(0),
                ns: Nanos(sum.ns),
                count: sum.count,
            };
            let parts = seen.divided(row, &waits, time);
            let parts = parts.into_iter().filter(|(_, time)| time.ns > Nanos::ZERO);
            all.extend(parts.map(|(row, time)| PathTime { row, waits: waits.clone(), time }));
        }
        all
    }

    /// The waits with this number, the outermost first.
    fn around(&self, mut number: u32) -> Vec<PathWait> {
        let mut waits = Vec::new();
        while let Some((around, wait)) = number.checked_sub(1).and_then(|at| self.waits.get(at as usize)) {
            waits.push(wait.clone());
            number = *around;
        }
        waits.reverse();
        waits
    }
}

/// What was sampled, by what it divides.
pub(super) struct Seen<'a> {
    classifier: &'a Classifier<'a>,
    /// Of the command's threads.
    samples: HashMap<(ThreadNumber, RowKey), Vec<&'a Sample>>,
    outside: HashMap<ThreadNumber, Vec<&'a Sample>>,
    /// Of helpers, by call and whether they were in user mode.
    helpers: HashMap<(ThreadNumber, Option<&'a str>, bool), Vec<&'a Sample>>,
    blocked: HashMap<(ThreadNumber, Option<&'a str>), Vec<&'a BlockedSample>>,
}

impl<'a> Seen<'a> {
    pub(super) fn new(observed: &'a Observed, classifier: &'a Classifier<'a>) -> Seen<'a> {
        let (samples, outside, helpers, blocked) = Default::default();
        let mut seen = Seen { classifier, samples, outside, helpers, blocked };
        for sample in &observed.samples {
            seen.samples.entry((sample.thread, sample_row(sample, classifier))).or_default().push(sample);
            if sample.syscall.is_none() {
                seen.outside.entry(sample.thread).or_default().push(sample);
            }
        }
        for sample in &observed.helper_samples {
            let key = (sample.thread, sample.syscall.as_deref(), sample.user_mode);
            seen.helpers.entry(key).or_default().push(sample);
        }
        for sample in &observed.blocked_samples {
            seen.blocked.entry((sample.thread, sample.syscall.as_deref())).or_default().push(sample);
        }
        seen
    }

    /// Time at a place by row and stack.
    fn divided(&self, row: &PathRow, waits: &[PathWait], time: StackTime) -> Vec<(PathRow, StackTime)> {
        let of_row = |time| (row.clone(), time);
        match (time.kind, waits.first()) {
            (RowKind::User, None) => self.outside_of_calls(row, &time),
            (RowKind::Kernel, None) => self.on_cpu(&time).into_iter().map(of_row).collect(),
            (RowKind::User | RowKind::Kernel, Some(first)) => {
                let key = (time.thread, time.syscall.as_deref(), time.kind == RowKind::User);
                let samples = self.helpers.get(&key).map_or(&[][..], Vec::as_slice);
                let times = sampled(&time, time.ns, samples);
                let callers = self.callers(first.thread, first.syscall.as_deref());
                let callers = if times.len().saturating_mul(callers.len()) > MOST_PARTS { &[][..] } else { callers };
                times.into_iter().flat_map(|time| divided(time, callers)).map(of_row).collect()
            }
            (RowKind::Blocked, None) => {
                let (thread, call) = (time.thread, time.syscall.clone());
                self.called_from(time, thread, call.as_deref()).into_iter().map(of_row).collect()
            }
            (_, Some(first)) => {
                let times = self.called_from(time, first.thread, first.syscall.as_deref());
                times.into_iter().map(of_row).collect()
            }
            (_, None) => vec![of_row(time)],
        }
    }

    /// Time of a thread of the command outside of calls: the same rows as in the ledger.
    fn outside_of_calls(&self, row: &PathRow, time: &StackTime) -> Vec<(PathRow, StackTime)> {
        let samples = self.outside.get(&time.thread).map_or(&[][..], Vec::as_slice);
        let rows = faults::split(time.ns, samples.iter().copied(), |sample| self.classifier.stack(sample.stack));
        let mut all = Vec::new();
        for split in rows {
            let row = PathRow { kind: split.kind, syscall: split.syscall, ..row.clone() };
            let time = StackTime { kind: row.kind, syscall: row.syscall.clone(), ns: split.ns, ..time.clone() };
            all.extend(self.on_cpu(&time).into_iter().map(|time| (row.clone(), time)));
        }
        all
    }

    /// Time of a thread of the command on a CPU, by its samples.
    fn on_cpu(&self, time: &StackTime) -> Vec<StackTime> {
        let row = RowKey { kind: time.kind, syscall: time.syscall.clone(), cause: None };
        let samples = self.samples.get(&(time.thread, row)).map_or(&[][..], Vec::as_slice);
        sampled(&StackTime { count: 0, ..time.clone() }, time.ns, samples)
    }

    /// What a thread of the command waited for in a call, by where it called from.
    fn called_from(&self, time: StackTime, thread: ThreadNumber, call: Option<&str>) -> Vec<StackTime> {
        divided(time, self.callers(thread, call))
    }

    /// The places from which a thread of the command called what it waited in.
    fn callers<'s>(&'s self, thread: ThreadNumber, call: Option<&'s str>) -> &'s [&'s BlockedSample] {
        self.blocked.get(&(thread, call)).map_or(&[], Vec::as_slice)
    }
}
