//! What comes through the ring buffer of the timeline while the command runs: intervals off the CPU and pieces of work.
//!
//! There may be millions of them, so they are kept as the columns of a recording from the start. What is known only at the end, which
//! numbers threads have and what stacks say, is filled in then.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::mem::offset_of;

use inodyne_model::Nanos;
use inodyne_model::column::push;
use inodyne_model::observed::{Timeline, Waker, Work};
use inodyne_model::stack::StackId;

use super::contract::{IntervalRecord, TIMELINE_INTERVAL, TIMELINE_WORK, WorkPart, WorkRecord};
use super::waker;
use crate::call_slots::CallSlots;
use crate::contract::CALL_SLOTS;
use crate::map::record;
use crate::names;
use crate::thread_numbers::ThreadNumbers;

/// What has arrived so far. Times are those of the monotonic clock, threads have the kernel side's numbers.
#[derive(Default)]
pub struct Arrived {
    timeline: Timeline,
    /// For each part, the call's slot.
    work: Work,
    /// Numbers of calls, by their index in the timeline.
    calls: Index<u16>,
    stacks: Index<StackId>,
}

impl Arrived {
    /// Takes a record.
    pub fn take(&mut self, bytes: &[u8]) {
        match bytes.first_chunk().map(|kind| u32::from_ne_bytes(*kind)) {
            Some(TIMELINE_INTERVAL) => self.add_interval(&record(bytes)),
            Some(TIMELINE_WORK) => self.add_work(bytes),
            _ => unreachable!("the programs send two kinds of records"),
        }
    }

    /// How many intervals there are.
    pub fn intervals(&self) -> usize {
        self.timeline.len()
    }

    /// Whether it holds as much as is to be kept. Two pieces for each interval: one ends where a thread leaves its CPU, one where it
    /// wakes another.
    pub fn is_full(&self, max_intervals: usize) -> bool {
        self.intervals() >= max_intervals || self.work.thread.len() / 2 >= max_intervals
    }

    pub(super) fn add_interval(&mut self, interval: &IntervalRecord) {
        let Timeline { thread, out_ns, blocked_ns, ready_ns, call, stack, .. } = &mut self.timeline;
        push(thread, interval.thread);
        push(out_ns, interval.out);
        push(blocked_ns, interval.wake.saturating_sub(interval.out));
        push(ready_ns, interval.r#in.saturating_sub(interval.wake));
        push(call, self.calls.of(interval.call));
        push(stack, self.stacks.of(StackId(interval.stack)));
        let Timeline { waker: kind, waker_tid, waker_thread, waker_stack, .. } = &mut self.timeline;
        push(kind, waker(interval.waker));
        push(waker_tid, interval.waker_tid);
        push(waker_thread, interval.waker_number);
        push(waker_stack, self.stacks.of(StackId(interval.waker_stack)));
    }

    /// A piece is sent with as many parts as it has.
    fn add_work(&mut self, bytes: &[u8]) {
        let field = |at: usize| u32::from_ne_bytes(*bytes[at..].first_chunk().expect("a piece has a head"));
        let at = bytes[offset_of!(WorkRecord, at)..].first_chunk().expect("a piece has a head");
        let count = field(offset_of!(WorkRecord, count));
        push(&mut self.work.thread, field(offset_of!(WorkRecord, thread)));
        push(&mut self.work.at_ns, u64::from_ne_bytes(*at));
        push(&mut self.work.parts, count);
        let parts = bytes[offset_of!(WorkRecord, part)..].chunks_exact(size_of::<WorkPart>());
        for WorkPart { call_slot, ns, .. } in parts.take(count as usize).map(record::<WorkPart>) {
            push(&mut self.work.call, call_slot);
            push(&mut self.work.ns, ns);
        }
    }

    /// All of it in the form of a recording. A waker whose stack is one of these was an interrupt.
    pub fn finish(
        self,
        started: Nanos,
        interrupts: &HashSet<StackId>,
        call_slots: &CallSlots,
        numbers: ThreadNumbers,
    ) -> (Timeline, Work) {
        let Arrived { mut timeline, mut work, calls, stacks } = self;
        let mut names: Index<String> = Index::default();
        let of_call: Vec<u32> = calls.values.iter().map(|call| names.of(names::call(*call).unwrap_or_default())).collect();
        timeline.call.iter_mut().for_each(|call| *call = of_call[*call as usize]);
        let mut of_slot: HashMap<u32, u32> = HashMap::new();
        for slot in &mut work.call {
            *slot = *of_slot.entry(*slot).or_insert_with_key(|slot| {
                let outside = *slot as usize == CALL_SLOTS;
                names.of(if outside { String::new() } else { call_slots.name(*slot) })
            });
        }
        let threads = [&mut timeline.thread, &mut timeline.waker_thread, &mut work.thread];
        threads.into_iter().flatten().for_each(|number| *number = numbers.of(*number));
        let times = [&mut timeline.out_ns, &mut work.at_ns];
        times.into_iter().flatten().for_each(|at| *at = at.saturating_sub(started.0));
        let is_interrupt: Vec<bool> = stacks.values.iter().map(|stack| interrupts.contains(stack)).collect();
        for (waker, stack) in timeline.waker.iter_mut().zip(&timeline.waker_stack) {
            if is_interrupt[*stack as usize] {
                *waker = Waker::Interrupt;
            }
        }
        timeline.calls = names.values;
        timeline.stacks = stacks.values;
        (timeline, work)
    }
}

/// Small numbers for values, in the order of their first use.
struct Index<T> {
    numbers: HashMap<T, u32>,
    values: Vec<T>,
}

impl<T> Default for Index<T> {
    fn default() -> Index<T> {
        Index { numbers: HashMap::new(), values: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Index<T> {
    fn of(&mut self, value: T) -> u32 {
        if let Some(number) = self.numbers.get(&value) {
            return *number;
        }
        let number = self.values.len() as u32;
        self.values.push(value.clone());
        self.numbers.insert(value, number);
        number
    }
}
