//! Stacks with their weights: which frames, what each of them is, and how long.
//!
//! ```text
//! find ; main ; walk ; newfstatat ; do_syscall_64 ; … ; io_schedule ; [blocked: device-read]   7,500,000 ns
//! command | user mode | call      | kernel                          | state
//! ```
//!
//! A wait always ends in a frame that names its cause, so that one graph can show running and waiting together: whatever is
//! below such a frame waited, everything else ran. If nothing was sampled, a frame says so.
//!
//! On the critical path a wait does not end there if it is known who worked in the meantime:
//!
//! ```text
//! sync ; main ; fsync ; … ; [blocked: journal] ; jbd2 ; … ; io_schedule ; [blocked: device-write]
//! command | user mode | call | kernel | its wait | who was waited for | kernel | state
//! ```

use std::collections::HashMap;

use inodyne_model::Nanos;
use inodyne_model::cause::Cause;
use inodyne_model::ledger::RowKind;
use inodyne_model::observed::ThreadNumber;
use inodyne_model::path::PathTime;
use inodyne_model::profile::StackTime;
use inodyne_model::stack::{Frame, Stack, StackId};
use inodyne_model::trace::Trace;

use super::View;
use crate::line::escaped;
use crate::report::state::State;
use crate::timeline::Interval;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Part {
    /// The name of the command whose thread it is, or of the helper that was waited for.
    Command,
    /// A function in user mode.
    User,
    /// A system call, `page-fault` or `interrupt`.
    Call,
    /// A function of the kernel.
    Kernel,
    /// No function: what the thread waited for while others did what follows.
    Waiting(Cause),
    /// No function: what the thread did there.
    State,
}

/// A frame with its name, which cannot harm a terminal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Named {
    pub(crate) part: Part,
    pub(crate) name: String,
}

/// A stack, root first, and its time.
#[derive(Debug, Clone)]
pub(crate) struct Weighted<'a> {
    pub(crate) frames: Vec<Named>,
    pub(crate) state: State,
    pub(crate) time: &'a StackTime,
}

impl Weighted<'_> {
    pub(crate) fn ns(&self) -> Nanos {
        self.time.ns
    }
}

/// All stacks of a view that took any time.
pub(crate) fn weighted(trace: &Trace, view: View) -> Vec<Weighted<'_>> {
    let names = Names::new(trace);
    if view == View::CriticalPath {
        let times = trace.path.stacks.iter().filter(|part| part.time.ns > Nanos::ZERO);
        return times.map(|part| names.on_path(part)).collect();
    }
    let on_cpu = trace.stacks.on_cpu.iter().filter(|_| view != View::OffCpu);
    let off_cpu = trace.stacks.off_cpu.iter().filter(|_| view != View::OnCpu);
    let times = on_cpu.chain(off_cpu).filter(|time| time.ns > Nanos::ZERO);
    times.map(|time| names.of_thread(time)).collect()
}

/// What the numbers of a trace stand for.
pub(super) struct Names<'a> {
    stacks: HashMap<StackId, &'a Stack>,
    comms: HashMap<ThreadNumber, &'a str>,
}

impl<'a> Names<'a> {
    pub(super) fn new(trace: &'a Trace) -> Names<'a> {
        let stacks = trace.observed.stacks.iter().map(|stack| (stack.id, stack)).collect();
        let comms = trace.threads.iter().map(|thread| (thread.number, thread.comm.as_str())).collect();
        Names { stacks, comms }
    }

    fn of_thread(&self, time: &'a StackTime) -> Weighted<'a> {
        let mut frames = self.thread(time.thread, time.user_stack);
        self.in_kernel(time.syscall.as_deref(), time.stack, &mut frames);
        weigh(frames, time, time.count > 0)
    }

    /// Where a thread of this name was off the CPU. Its stack in user mode is not known for a single interval.
    pub(super) fn of_interval(&self, comm: &str, interval: &Interval<'_>, state: State) -> Vec<Named> {
        let mut frames = vec![named(Part::Command, comm)];
        self.in_kernel(Some(interval.call).filter(|call| !call.is_empty()), interval.stack, &mut frames);
        frames.push(named(Part::State, &format!("[{}]", state.words())));
        frames
    }

    fn on_path(&self, part: &'a PathTime) -> Weighted<'a> {
        let time = &part.time;
        if time.kind == RowKind::Unexplained {
            return weigh(Vec::new(), time, false);
        }
        let mut frames = self.thread(part.of(), time.user_stack);
        for wait in &part.waits {
            self.in_kernel(wait.syscall.as_deref(), wait.stack, &mut frames);
            let waiting =
                wait.cause.map(|cause| (Part::Waiting(cause), format!("[{}]", State::Blocked(cause).words())));
            frames.extend(waiting.map(|(part, name)| Named { part, name }));
            frames.push(named(Part::Command, &wait.helper));
        }
        self.in_kernel(time.syscall.as_deref(), time.stack, &mut frames);
        // A helper's stack in user mode is not known.
        let is_sampled = if part.waits.is_empty() { time.count > 0 } else { !time.stack.is_none() };
        weigh(frames, time, is_sampled)
    }

    fn thread(&self, thread: ThreadNumber, user_stack: StackId) -> Vec<Named> {
        let mut frames = vec![named(Part::Command, self.comms.get(&thread).copied().unwrap_or("?"))];
        self.of_stack(Part::User, user_stack, &mut frames);
        frames
    }

    fn in_kernel(&self, call: Option<&str>, stack: StackId, frames: &mut Vec<Named>) {
        frames.extend(call.map(|call| named(Part::Call, call)));
        self.of_stack(Part::Kernel, stack, frames);
    }

    fn of_stack(&self, part: Part, id: StackId, frames: &mut Vec<Named>) {
        let Some(stack) = self.stacks.get(&id) else {
            if !id.is_none() {
                frames.push(named(Part::State, "[lost stack]"));
            }
            return;
        };
        if stack.truncated {
            frames.push(named(Part::State, "[cut off]"));
        }
        frames.extend(stack.frames.iter().rev().map(|frame| named(part, &frame_name(frame))));
    }
}

pub(super) fn named(part: Part, name: &str) -> Named {
    Named { part, name: escaped(name) }
}

/// Ends a stack with what was done there.
fn weigh(mut frames: Vec<Named>, time: &StackTime, is_sampled: bool) -> Weighted<'_> {
    let state = State::new(time.kind, time.cause);
    match state {
        State::User | State::Kernel if !is_sampled => {
            frames.push(named(Part::State, &format!("[{}, not sampled]", state.words())));
        }
        State::User if time.user_stack.is_none() => frames.push(named(Part::State, "[user]")),
        State::User | State::Kernel => {}
        state => frames.push(named(Part::State, &format!("[{}]", state.words()))),
    }
    Weighted { frames, state, time }
}

/// A function's name, or the address that no symbol covers.
pub(crate) fn frame_name(frame: &Frame) -> String {
    match frame {
        Frame::Symbol(name) => name.clone(),
        Frame::InFile { file, .. } => format!("[{file}]"),
        Frame::Unknown { address } => format!("{address:#x}"),
    }
}
