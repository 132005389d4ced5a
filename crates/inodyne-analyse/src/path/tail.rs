//! What is known about a thread after the timeline ran out of room: its sums, less what the timeline says about the time before.
//!
//! ```text
//! timeline     run │ blocked │ run │ bloc|ked │                      a wait that began before its end is in it as a whole
//! sums         ────────────────────────────────────────────────▶     of the whole life
//! tail                                        └── the difference ──▶ how much of what, but not when
//! ```

use std::collections::HashMap;

use inodyne_model::observed::{Observed, ThreadNumber, Waker};
use inodyne_model::stack::StackId;

use super::history::{Histories, History, Off, Who};

/// What a thread did after its timeline ended.
pub(super) struct Tail {
    /// From when on, on the monotonic clock.
    pub(super) from: u64,
    ends: u64,
    parts: Vec<Part>,
}

/// One of the things that it did.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) what: What,
    pub(super) ns: u64,
    pub(super) count: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    /// Ran in this call.
    Ran(u32),
    /// Was ready.
    Ready,
    /// Waited like this; when is not known.
    Blocked(Off),
}

impl Tail {
    /// The parts of a stretch of `ns` nanoseconds, in proportion. They sum to no more than the stretch, and to less where the thread's
    /// sums do not explain all of its life.
    pub(super) fn of_stretch(&self, ns: u64) -> impl Iterator<Item = Part> + '_ {
        let known: u128 = self.parts.iter().map(|part| u128::from(part.ns)).sum();
        let whole = known.max(u128::from(self.ends.saturating_sub(self.from))).max(1);
        let share = move |part: u128| (part * u128::from(ns) / whole) as u64;
        let mut before = 0u128;
        self.parts.iter().map(move |part| {
            let until = before + u128::from(part.ns);
            let ns = share(until) - share(before);
            before = until;
            Part { what: part.what, ns, count: share(u128::from(part.count)).max(1) }
        })
    }
}

/// The tails of all threads that have one.
#[derive(Default)]
pub(super) struct Tails {
    of: HashMap<ThreadNumber, Tail>,
}

impl Tails {
    /// The tails of a trace with these histories. None where the timeline has room for everything.
    pub(super) fn new(observed: &Observed, histories: &mut Histories<'_>) -> Tails {
        if observed.timeline.until_ns.is_none() {
            return Tails::default();
        }
        let waits = waits_beyond(observed, histories);
        let until = histories.until;
        let tail = |(number, history): (&ThreadNumber, _)| Some((*number, tail(history, until, waits.get(number))?));
        Tails { of: histories.of.iter().filter_map(tail).collect() }
    }

    /// The tail of a thread.
    pub(super) fn of(&self, thread: ThreadNumber) -> Option<&Tail> {
        self.of.get(&thread)
    }
}

/// What makes two waits of a thread the same: the number of its call, where it waited, who ended it, and where the waker was.
type WaitKey = (u32, StackId, Waker, StackId);

/// The waits of a thread: how long, and how often.
type Waits = HashMap<WaitKey, (u64, u64)>;

/// How long and how often each thread waited beyond what is in the timeline.
fn waits_beyond(observed: &Observed, histories: &mut Histories<'_>) -> HashMap<ThreadNumber, Waits> {
    let mut all: HashMap<ThreadNumber, Waits> = HashMap::new();
    for wait in &observed.waits {
        let call = histories.number_of(wait.syscall.as_deref().unwrap_or(""));
        let key = (call, wait.stack, wait.waker, wait.waker_stack);
        let sum = all.entry(wait.thread).or_default().entry(key).or_default();
        *sum = (sum.0.saturating_add(wait.ns.0), sum.1.saturating_add(wait.count));
    }
    for (number, waits) in &mut all {
        let Some(history) = histories.of.get(number) else { continue };
        for off in history.offs.iter().filter(|off| off.is_blocked()) {
            if let Some(sum) = waits.get_mut(&(off.call, off.stack, off.waker, off.waker_stack)) {
                *sum = (sum.0.saturating_sub(off.wake.saturating_sub(off.out)), sum.1.saturating_sub(1));
            }
        }
    }
    all
}

/// The tail of a thread whose timeline is complete until `until`; none for one that had ended, or that the timeline has to its end.
fn tail(history: &History<'_>, until: u64, waits: Option<&Waits>) -> Option<Tail> {
    let Who::Command(thread) = history.who else { return None };
    let (begins, ends) = (history.begins(), history.ends());
    let last_back = history.offs.last().map_or(0, |off| off.back);
    let from = until.max(begins).max(last_back);
    if from >= ends {
        return None;
    }
    // What ran after the last piece belongs to the tail, except for what was before the timeline's end.
    let ran: u64 = history.last.iter().fold(0, |sum, (_, ns)| sum.saturating_add(*ns));
    let last_seen = last_back.max(begins).max(history.pieces.last().map_or(0, |piece| piece.at));
    let before = until.saturating_sub(last_seen).min(ran);
    let rest = |ns: u64| (u128::from(ns) * u128::from(ran - before) / u128::from(ran.max(1))) as u64;
    let mut parts: Vec<Part> =
        history.last.iter().map(|(call, ns)| Part { what: What::Ran(*call), ns: rest(*ns), count: 1 }).collect();
    let ready = history.offs.iter().fold(0u64, |sum, off| sum.saturating_add(off.back.saturating_sub(off.wake)));
    parts.push(Part { what: What::Ready, ns: thread.runqueue_ns.0.saturating_sub(ready), count: 1 });
    let mut blocked: Vec<Part> =
        waits.into_iter().flatten().map(|(key, (ns, count))| blocked(key, *ns, *count)).collect();
    blocked.sort_by_key(|part| match part.what {
        What::Blocked(off) => (off.call, off.stack, off.waker, off.waker_stack),
        _ => unreachable!("all of these are waits"),
    });
    parts.extend(blocked);
    parts.retain(|part| part.ns > 0);
    Some(Tail { from, ends, parts })
}

fn blocked(&(call, stack, waker, waker_stack): &WaitKey, ns: u64, count: u64) -> Part {
    let off = Off { out: 0, wake: 0, back: 0, call, stack, waker, waker_thread: 0, waker_stack };
    Part { what: What::Blocked(off), ns, count }
}
