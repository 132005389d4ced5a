//! The intervals of a trace's timeline, one by one and with their causes.
//!
//! The recording keeps them as columns without causes. A cause follows from where the thread waited and where the
//! waker was, so it is taken from the wait with the same places.

use std::collections::HashMap;

use inodyne_model::cause::Cause;
use inodyne_model::observed::{ThreadNumber, Waker};
use inodyne_model::stack::StackId;
use inodyne_model::trace::Trace;

/// One time that a thread was off the CPU. Times are nanoseconds after the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval<'a> {
    pub(crate) thread: ThreadNumber,
    pub(crate) out_ns: u64,
    pub(crate) blocked_ns: u64,
    pub(crate) ready_ns: u64,
    /// The call it was in; empty outside of calls.
    pub(crate) call: &'a str,
    /// Why it was blocked; `None` if it was preempted.
    pub(crate) cause: Option<Cause>,
    pub(crate) stack: StackId,
    pub(crate) waker: Waker,
    pub(crate) waker_tid: u32,
    /// 0 if it was not followed.
    pub(crate) waker_thread: ThreadNumber,
}

impl Interval<'_> {
    /// When it was ready again.
    pub(crate) fn wake_ns(&self) -> u64 {
        self.out_ns.saturating_add(self.blocked_ns)
    }

    /// When it had a CPU again.
    pub(crate) fn back_ns(&self) -> u64 {
        self.wake_ns().saturating_add(self.ready_ns)
    }

    /// Who ended it, in words.
    pub(crate) fn woken_by(&self) -> String {
        match self.waker {
            Waker::Traced => format!("thread {}", self.waker_tid),
            Waker::OtherProcess => format!("thread {} of another process", self.waker_tid),
            Waker::KernelThread => format!("kernel thread {}", self.waker_tid),
            Waker::Interrupt => "an interrupt".to_owned(),
            Waker::Unknown => "unknown".to_owned(),
        }
    }
}

/// Until when it is known what a thread with this lifetime did, in nanoseconds after the start: to its end, or until the timeline
/// ran out of room.
pub(crate) fn known_until(trace: &Trace, born_ns: u64, ended_ns: u64) -> u64 {
    trace.observed.timeline.until_ns.map_or(ended_ns, |until| ended_ns.min(until.max(born_ns)))
}

/// The intervals of a trace.
pub(crate) struct Intervals<'a> {
    trace: &'a Trace,
    causes: HashMap<(StackId, StackId, Waker), Cause>,
}

impl<'a> Intervals<'a> {
    pub(crate) fn new(trace: &'a Trace) -> Intervals<'a> {
        let of_wait =
            |time: &inodyne_model::profile::StackTime| Some(((time.stack, time.waker_stack, time.waker?), time.cause?));
        Intervals { trace, causes: trace.stacks.off_cpu.iter().filter_map(of_wait).collect() }
    }

    /// In the order in which the threads came back. If columns are damaged, the list ends with the shortest.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Interval<'a>> {
        let timeline = &self.trace.observed.timeline;
        (0..timeline.len()).map_while(|index| self.interval(index))
    }

    fn interval(&self, index: usize) -> Option<Interval<'a>> {
        let timeline = &self.trace.observed.timeline;
        let stack_of = |column: &Vec<u32>| {
            let at = usize::try_from(*column.get(index)?).ok()?;
            Some(timeline.stacks.get(at).copied().unwrap_or_default())
        };
        let (stack, waker_stack) = (stack_of(&timeline.stack)?, stack_of(&timeline.waker_stack)?);
        let waker = *timeline.waker.get(index)?;
        let known = || self.causes.get(&(stack, waker_stack, waker)).copied().unwrap_or(Cause::Other);
        let blocked_ns = *timeline.blocked_ns.get(index)?;
        Some(Interval {
            thread: *timeline.thread.get(index)?,
            out_ns: *timeline.out_ns.get(index)?,
            blocked_ns,
            ready_ns: *timeline.ready_ns.get(index)?,
            call: timeline.calls.get(usize::try_from(*timeline.call.get(index)?).ok()?).map_or("", String::as_str),
            cause: (blocked_ns > 0 || !stack.is_none()).then(known),
            stack,
            waker,
            waker_tid: *timeline.waker_tid.get(index)?,
            waker_thread: timeline.waker_thread.get(index).copied().unwrap_or(0),
        })
    }
}
