//! Reads the table of waits, the timeline, and the pieces of work.

use std::collections::{HashMap, HashSet};

use inodyne_model::Nanos;
use inodyne_model::observed::{ThreadNumber, Timeline, Wait, Waker, Work};
use inodyne_model::stack::{Stack, StackId};

use crate::intf::{
    HELPER_FIRST, ORDINALS, WAKER_INTERRUPT, WAKER_KTHREAD, WAKER_PROCESS, WAKER_TRACED, WaitKey, WaitSum,
};
use crate::names;
use crate::probes::calls::Ordinals;
use crate::stream::Arrived;

/// Functions that run with somebody else as the current task: a waker below one of these is an interrupt.
const INTERRUPTS: [&str; 5] = ["asm_sysvec_", "asm_common_interrupt", "handle_softirqs", "asm_exc_nmi", "irq_exit_rcu"];

/// The waits as the kernel side summed them; wakers are not told from interrupts yet.
pub fn waits(pairs: Vec<(WaitKey, WaitSum)>) -> Vec<Wait> {
    let wait = |(key, sum): (WaitKey, WaitSum)| Wait {
        thread: key.thread,
        syscall: names::call(key.call),
        stack: StackId(key.stack),
        waker: waker(key.waker),
        waker_stack: StackId(key.waker_stack),
        ns: Nanos(sum.ns),
        count: sum.count,
        max_ns: Nanos(sum.max_ns),
    };
    pairs.into_iter().map(wait).collect()
}

/// A waker whose stack shows an interrupt was only there by chance.
pub fn find_interrupts(waits: &mut [Wait], stacks: &[Stack]) {
    let interrupts = interrupt_stacks(stacks);
    for wait in waits.iter_mut().filter(|wait| interrupts.contains(&wait.waker_stack)) {
        wait.waker = Waker::Interrupt;
    }
}

/// Gives helpers the numbers after those of the command's threads.
#[derive(Clone, Copy)]
pub struct Numbers {
    /// How many threads the command had.
    pub threads: u32,
}

impl Numbers {
    /// The number of a thread in the recording.
    pub fn of(self, number: u32) -> ThreadNumber {
        if number < HELPER_FIRST {
            number
        } else {
            (number - HELPER_FIRST).saturating_add(self.threads).saturating_add(1)
        }
    }
}

/// The intervals and the pieces of work as columns.
pub fn timeline(
    arrived: &Arrived,
    started: Nanos,
    stacks: &[Stack],
    ordinals: &Ordinals,
    numbers: Numbers,
) -> (Timeline, Work) {
    let interrupts = interrupt_stacks(stacks);
    let mut calls = Index::default();
    let mut stack_ids = Index::default();
    let mut timeline = Timeline::default();
    for interval in &arrived.intervals {
        timeline.thread.push(numbers.of(interval.thread));
        timeline.out_ns.push(interval.out.saturating_sub(started.0));
        timeline.blocked_ns.push(interval.wake.saturating_sub(interval.out));
        timeline.ready_ns.push(interval.back.saturating_sub(interval.wake));
        timeline.call.push(calls.of(names::call(interval.call).unwrap_or_default()));
        timeline.stack.push(stack_ids.of(StackId(interval.stack)));
        let waker_stack = StackId(interval.waker_stack);
        let interrupt = interrupts.contains(&waker_stack);
        timeline.waker.push(if interrupt { Waker::Interrupt } else { waker(interval.waker) });
        timeline.waker_tid.push(interval.waker_tid);
        timeline.waker_thread.push(numbers.of(interval.waker_number));
        timeline.waker_stack.push(stack_ids.of(waker_stack));
    }
    let mut work = Work::default();
    for piece in &arrived.work {
        work.thread.push(numbers.of(piece.thread));
        work.at_ns.push(piece.at.saturating_sub(started.0));
        work.parts.push(piece.count);
    }
    for part in &arrived.work_parts {
        let outside = part.ordinal as usize == ORDINALS;
        work.call.push(calls.of(if outside { String::new() } else { ordinals.name(part.ordinal) }));
        work.ns.push(part.ns);
    }
    timeline.calls = calls.values;
    timeline.stacks = stack_ids.values;
    (timeline, work)
}

fn waker(kind: u8) -> Waker {
    match kind {
        WAKER_TRACED => Waker::Traced,
        WAKER_PROCESS => Waker::OtherProcess,
        WAKER_KTHREAD => Waker::KernelThread,
        WAKER_INTERRUPT => Waker::Interrupt,
        _ => Waker::Unknown,
    }
}

fn interrupt_stacks(stacks: &[Stack]) -> HashSet<StackId> {
    let is_interrupt = |name: &str| INTERRUPTS.iter().any(|prefix| name.starts_with(prefix));
    stacks.iter().filter(|stack| stack.symbols().any(is_interrupt)).map(|stack| stack.id).collect()
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

impl<T: Clone + Eq + std::hash::Hash> Index<T> {
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
