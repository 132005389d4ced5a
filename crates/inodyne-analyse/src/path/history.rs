//! What is known about each thread over time, in the order in which the walk needs it: from the end back to the beginning.
//!
//! Only checks what the file says, and sorts it. Indices that point at nothing become "unknown".

use std::collections::HashMap;

use inodyne_model::Nanos;
use inodyne_model::observed::{Helper, Observed, ThreadNumber, ThreadObserved, Waker};
use inodyne_model::stack::StackId;

/// A time off the CPU: `out <= wake <= back`, on the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Off {
    pub(super) out: u64,
    pub(super) wake: u64,
    pub(super) back: u64,
    pub(super) call: u32,
    /// Zero where it was preempted, or where the stack could not be taken.
    pub(super) stack: StackId,
    pub(super) waker: Waker,
    /// 0 where it was not followed.
    pub(super) waker_thread: ThreadNumber,
    pub(super) waker_stack: StackId,
}

impl Off {
    /// Whether it could not run. A thread that was preempted was ready all the time.
    pub(super) fn is_blocked(&self) -> bool {
        self.stack != StackId(0) || self.wake > self.out
    }
}

/// A piece of work: it ended at `at`, and its parts are `count` of all of them, from `first` on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) at: u64,
    pub(super) first: u32,
    pub(super) count: u32,
}

/// Whose history it is.
pub(super) enum Who<'a> {
    Command(&'a ThreadObserved),
    Helper(&'a Helper),
}

/// All that is known about one thread, oldest first.
pub(super) struct History<'a> {
    pub(super) who: Who<'a>,
    pub(super) offs: Vec<Off>,
    pub(super) pieces: Vec<Piece>,
    /// What ran after the last piece, by call; for threads of the command.
    pub(super) last: Vec<(u32, u64)>,
}

impl History<'_> {
    /// Which process the thread belongs to.
    pub(super) fn process(&self) -> u32 {
        match self.who {
            Who::Command(thread) => thread.pid,
            Who::Helper(helper) => helper.pid,
        }
    }

    /// From when on it is known.
    pub(super) fn begins(&self) -> u64 {
        match self.who {
            Who::Command(thread) => thread.born_ns.0,
            Who::Helper(helper) => helper.adopted_ns.0,
        }
    }

    /// Until when.
    pub(super) fn ends(&self) -> u64 {
        match self.who {
            Who::Command(thread) => thread.ended_ns.0,
            Who::Helper(helper) => helper.ended_ns.0,
        }
    }
}

/// A thread that a helper created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Created {
    pub(super) ended: u64,
    pub(super) born: u64,
    pub(super) number: ThreadNumber,
}

/// The histories of all threads, with the tables that they point into.
pub(super) struct Histories<'a> {
    pub(super) of: HashMap<ThreadNumber, History<'a>>,
    pub(super) calls: Vec<String>,
    /// The ends of the command's threads, in order of time.
    pub(super) ends: Vec<(u64, ThreadNumber)>,
    /// Likewise the ends of servers and of what they created.
    pub(super) ends_of_servers: Vec<(u64, ThreadNumber)>,
    /// Those that another helper created, with their births, in the order of their ends.
    pub(super) created_by_servers: Vec<Created>,
    /// Until when the timeline is complete.
    pub(super) until: u64,
    parts: Vec<(u32, u64)>,
}

impl<'a> Histories<'a> {
    /// The histories of a trace. Linear in its events, except for sorting what does not come in order.
    pub(super) fn new(observed: &'a Observed) -> Histories<'a> {
        let history = |who| History { who, offs: Vec::new(), pieces: Vec::new(), last: Vec::new() };
        let threads = observed.threads.iter().map(|thread| (thread.number, history(Who::Command(thread))));
        let helpers = observed.helpers.iter().map(|helper| (helper.number, history(Who::Helper(helper))));
        let servers = observed.helpers.iter().filter(|helper| helper.server);
        let created = servers.clone().filter(|helper| helper.parent.is_some());
        let created = created.map(|of| Created { ended: of.ended_ns.0, born: of.adopted_ns.0, number: of.number });
        let mut all = Histories {
            of: helpers.chain(threads).collect(),
            calls: observed.timeline.calls.clone(),
            ends: observed.threads.iter().map(|thread| (thread.ended_ns.0, thread.number)).collect(),
            ends_of_servers: servers.map(|helper| (helper.ended_ns.0, helper.number)).collect(),
            created_by_servers: created.collect(),
            until: observed.timeline.until_ns.map_or(u64::MAX, |until| observed.started_ns.0.saturating_add(until)),
            parts: observed.work.call.iter().copied().zip(observed.work.ns.iter().copied()).collect(),
        };
        all.ends.sort_unstable();
        all.ends_of_servers.sort_unstable();
        all.created_by_servers.sort_unstable();
        all.add_intervals(observed);
        all.add_work(observed);
        for history in all.of.values_mut() {
            history.offs.sort_by_key(|off| off.back);
            history.pieces.sort_by_key(|piece| piece.at);
        }
        all.add_last_pieces();
        all
    }

    fn add_intervals(&mut self, observed: &Observed) {
        let timeline = &observed.timeline;
        self.reserve(&timeline.thread, |history, count| history.offs.reserve_exact(count));
        let stack = |index: Option<&u32>| {
            index.and_then(|index| timeline.stacks.get(*index as usize)).copied().unwrap_or_default()
        };
        for at in 0..timeline.len() {
            let column = |column: &[u64]| column.get(at).copied().unwrap_or(0);
            let out = observed.started_ns.0.saturating_add(column(&timeline.out_ns));
            let wake = out.saturating_add(column(&timeline.blocked_ns));
            let off = Off {
                out,
                wake,
                back: wake.saturating_add(column(&timeline.ready_ns)),
                call: timeline.call.get(at).copied().unwrap_or(u32::MAX),
                stack: stack(timeline.stack.get(at)),
                waker: timeline.waker.get(at).copied().unwrap_or(Waker::Unknown),
                waker_thread: timeline.waker_thread.get(at).copied().unwrap_or(0),
                waker_stack: stack(timeline.waker_stack.get(at)),
            };
            if let Some(history) = timeline.thread.get(at).and_then(|thread| self.of.get_mut(thread)) {
                history.offs.push(off);
            }
        }
    }

    /// Makes room for as much as there is for each thread: a timeline may have millions of rows, and a list that doubles while it is
    /// filled takes up to twice the memory.
    fn reserve(&mut self, threads: &[ThreadNumber], room: impl Fn(&mut History<'_>, usize)) {
        let mut counts: HashMap<ThreadNumber, usize> = HashMap::new();
        for thread in threads {
            *counts.entry(*thread).or_default() += 1;
        }
        for (thread, count) in counts {
            if let Some(history) = self.of.get_mut(&thread) {
                room(history, count);
            }
        }
    }

    fn add_work(&mut self, observed: &Observed) {
        let work = &observed.work;
        self.reserve(&work.thread, |history, count| history.pieces.reserve_exact(count));
        let mut first = 0u32;
        for ((thread, at), count) in work.thread.iter().zip(&work.at_ns).zip(&work.parts) {
            let at = observed.started_ns.0.saturating_add(*at);
            if let Some(history) = self.of.get_mut(thread) {
                history.pieces.push(Piece { at, first, count: *count });
            }
            first = first.saturating_add(*count);
        }
    }

    /// The last piece of a life is what its account holds beyond all other pieces.
    fn add_last_pieces(&mut self) {
        let numbers: HashMap<&str, u32> = (0..).zip(&self.calls).map(|(at, name)| (name.as_str(), at)).collect();
        let outside = numbers.get("").copied();
        let mut new = Vec::new();
        for (number, history) in &self.of {
            let Who::Command(thread) = history.who else { continue };
            let mut said: HashMap<u32, u64> = HashMap::new();
            for piece in &history.pieces {
                for (call, ns) in parts(&self.parts, piece) {
                    let sum = said.entry(*call).or_default();
                    *sum = sum.saturating_add(*ns);
                }
            }
            let kernel = thread.kernel_ns.iter().map(|(name, ns)| (name.as_str(), *ns));
            let all = kernel.chain([("", thread.user_ns)]);
            let left = all.filter_map(|(name, Nanos(ns))| {
                let call = if name.is_empty() { outside } else { numbers.get(name).copied() };
                let left = ns.saturating_sub(call.and_then(|call| said.get(&call)).copied().unwrap_or(0));
                (left > 0).then(|| (call, name.to_owned(), left))
            });
            new.push((*number, left.collect::<Vec<_>>()));
        }
        for (number, left) in new {
            let last: Vec<(u32, u64)> =
                left.into_iter().map(|(call, name, ns)| (call.unwrap_or_else(|| self.number_of(&name)), ns)).collect();
            if let Some(history) = self.of.get_mut(&number) {
                history.last = last;
            }
        }
    }

    /// The number of a call that may not be named by any interval.
    pub(super) fn number_of(&mut self, name: &str) -> u32 {
        let found = self.calls.iter().position(|known| known == name);
        found.unwrap_or_else(|| {
            self.calls.push(name.to_owned());
            self.calls.len() - 1
        }) as u32
    }

    /// What a piece consists of.
    pub(super) fn parts(&self, piece: &Piece) -> &[(u32, u64)] {
        parts(&self.parts, piece)
    }

    /// The name of a call; empty outside of calls and where the file does not say.
    pub(super) fn call(&self, call: u32) -> &str {
        self.calls.get(call as usize).map_or("", String::as_str)
    }
}

fn parts<'a>(all: &'a [(u32, u64)], piece: &Piece) -> &'a [(u32, u64)] {
    let first = piece.first as usize;
    all.get(first..first.saturating_add(piece.count as usize)).unwrap_or(&[])
}
