//! Tracks whose samples are at their times: the critical path step by step, and each thread as the timeline has it.
//!
//! The profiler gives each sample the time halfway to its neighbours. So a stretch of time has two samples, one at each end, each with
//! half of its weight: then it is drawn from its beginning to its end.
//!
//! If it is not known when threads were off a CPU, nothing says that they were on one: their tracks have the waits that are known.

use std::collections::HashMap;

use fxprof_processed_profile::{StackHandle, ThreadHandle};
use inodyne_model::Nanos;
use inodyne_model::observed::ThreadNumber;
use inodyne_model::path::PathRow;
use inodyne_model::stack::StackId;

use super::super::lives::{self, comms};
use super::super::perfetto::PATH;
use super::super::weighted::{Named, Names, Part, named};
use super::{Builder, ON_CPU, category, markers, timestamp};
use crate::report::state::State;
use crate::timeline::{Interval, Intervals};

/// What a thread did for a stretch of time.
struct Stretch {
    from: u64,
    to: u64,
    /// Whether it had a CPU.
    ran: bool,
    stack: Option<StackHandle>,
}

/// The path, from the command's start to its end: unexplained time is a stretch as well.
pub(super) fn of_path(builder: &mut Builder<'_>) {
    let trace = builder.traced.trace;
    let track = builder.track("critical path", (PATH, PATH), true, Nanos::ZERO);
    let comms = comms(trace);
    let mut at = 0;
    for (step, parts) in trace.path.iter() {
        unexplained(builder, track, at, step.from_ns);
        at = at.max(step.from_ns);
        // The order in which a running thread did its parts is not known.
        for part in parts {
            let Some(row) = trace.path.rows.get(part.row as usize) else { continue };
            let state = State::new(row.kind, row.cause);
            let frames = of_row(comms.get(&step.thread).copied().unwrap_or("?"), row, state);
            let stack = builder.stack(track, category(state), &frames);
            let to = at.saturating_add(part.ns.0);
            add(builder, track, &Stretch { from: at, to, ran: matches!(state, State::User | State::Kernel), stack });
            at = to;
        }
    }
    unexplained(builder, track, at, trace.wall_ns.0);
    builder.profile.set_thread_end_time(track, timestamp(at.max(trace.wall_ns.0)));
    markers::of_path(builder, track);
}

/// Who was in which call, through whom, and in what state.
fn of_row(comm: &str, row: &PathRow, state: State) -> Vec<Named> {
    let call = row.syscall.as_deref().map(|call| named(Part::Call, call));
    let via = row.via.iter().map(|helper| named(Part::Command, helper));
    let what = named(Part::State, &format!("[{}]", state.words()));
    [named(Part::Command, comm)].into_iter().chain(call).chain(via).chain([what]).collect()
}

fn unexplained(builder: &mut Builder<'_>, track: ThreadHandle, from: u64, to: u64) {
    let state = State::Unexplained;
    let stack = builder.stack(track, category(state), &[named(Part::State, &format!("[{}]", state.words()))]);
    add(builder, track, &Stretch { from, to, ran: false, stack });
}

/// Each thread of the command and each helper, from when it is first known to when it ends.
pub(super) fn of_threads(builder: &mut Builder<'_>) {
    let trace = builder.traced.trace;
    let names = Names::new(trace);
    let knows_cpu = trace.knows_who_was_on_cpu();
    let mut of_thread: HashMap<ThreadNumber, Vec<Interval<'_>>> = HashMap::new();
    for interval in Intervals::new(trace).iter() {
        of_thread.entry(interval.thread).or_default().push(interval);
    }
    for life in lives::lives(trace) {
        let track = builder.track(&life.comm, (life.pid, life.tid), life.pid == life.tid, Nanos(life.from));
        let intervals = of_thread.remove(&life.number).unwrap_or_default();
        let on_cpu = [named(Part::Command, &life.comm), named(Part::State, "[on a CPU]")];
        let on_cpu = knows_cpu.then(|| builder.stack(track, ON_CPU, &on_cpu));
        let ran = |builder: &mut Builder<'_>, from, to| {
            if let Some(stack) = on_cpu {
                add(builder, track, &Stretch { from, to, ran: true, stack });
            }
        };
        let mut stacks = Stacks { names: &names, comm: &life.comm, track, known: HashMap::new() };
        let mut at = life.from;
        for interval in &intervals {
            ran(builder, at, interval.out_ns);
            if let Some(cause) = interval.cause {
                let stack = stacks.of(builder, interval, State::Blocked(cause));
                add(builder, track, &Stretch { from: interval.out_ns, to: interval.wake_ns(), ran: false, stack });
            }
            let stack = stacks.of(builder, interval, State::Ready);
            add(builder, track, &Stretch { from: interval.wake_ns(), to: interval.back_ns(), ran: false, stack });
            at = interval.back_ns();
        }
        ran(builder, at, life.to);
        builder.profile.set_thread_end_time(track, timestamp(at.max(life.to)));
        markers::of_thread(builder, track, &intervals);
    }
}

/// Where a thread was off the CPU: a few places, again and again.
struct Stacks<'a> {
    names: &'a Names<'a>,
    comm: &'a str,
    track: ThreadHandle,
    known: HashMap<(State, StackId, &'a str), Option<StackHandle>>,
}

impl<'a> Stacks<'a> {
    fn of(&mut self, builder: &mut Builder<'_>, interval: &Interval<'a>, state: State) -> Option<StackHandle> {
        *self.known.entry((state, interval.stack, interval.call)).or_insert_with(|| {
            let frames = self.names.of_interval(self.comm, interval, state);
            builder.stack(self.track, category(state), &frames)
        })
    }
}

/// Adds nothing if it would have no length.
fn add(builder: &mut Builder<'_>, track: ThreadHandle, stretch: &Stretch) {
    let Some(ns) = stretch.to.checked_sub(stretch.from).filter(|ns| *ns > 0) else { return };
    let ran = if stretch.ran { ns } else { 0 };
    builder.sample(track, stretch.from, stretch.stack, Nanos::ZERO, Nanos(ns / 2));
    builder.sample(track, stretch.to - 1, stretch.stack, Nanos(ran), Nanos(ns - ns / 2));
}
