//! Stacks with their weights: which frames, what each of them is, and how long.
//!
//! ```text
//! find ; main ; walk ; newfstatat ; do_syscall_64 ; … ; io_schedule ; [blocked: device-read]   7,500,000 ns
//! command | user mode | call      | kernel                          | state
//! ```
//!
//! Waiting always ends in a frame that names its cause, so that one graph can show running and waiting together: what lies
//! below such a frame waited, everything else ran. Where nothing was sampled a frame says so.

use std::collections::HashMap;

use inodyne_model::Nanos;
use inodyne_model::ledger::RowKind;
use inodyne_model::profile::StackTime;
use inodyne_model::stack::{Frame, Stack, StackId};
use inodyne_model::trace::Trace;

use super::View;
use crate::line::escaped;
use crate::report::state::State;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Part {
    /// The name of the command whose thread it is.
    Command,
    /// A function in user mode.
    User,
    /// A system call, `page-fault` or `interrupt`.
    Call,
    /// A function of the kernel.
    Kernel,
    /// No function: what the thread did there.
    State,
}

/// A frame with its name, in which nothing can do harm to a terminal.
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
pub(crate) fn weighted<'a>(trace: &'a Trace, view: View) -> Vec<Weighted<'a>> {
    let stacks: HashMap<StackId, &Stack> = trace.observed.stacks.iter().map(|stack| (stack.id, stack)).collect();
    let comms: HashMap<u32, &str> = trace.threads.iter().map(|thread| (thread.number, thread.comm.as_str())).collect();
    let on_cpu = trace.stacks.on_cpu.iter().filter(|_| view != View::OffCpu);
    let off_cpu = trace.stacks.off_cpu.iter().filter(|_| view != View::OnCpu);
    let times = on_cpu.chain(off_cpu).filter(|time| time.ns > Nanos::ZERO);
    let one = |time: &'a StackTime| {
        let comm = comms.get(&time.thread).copied().unwrap_or("?");
        Weighted { frames: frames(time, comm, &stacks), state: State::new(time.kind, time.cause), time }
    };
    times.map(one).collect()
}

fn frames(time: &StackTime, comm: &str, stacks: &HashMap<StackId, &Stack>) -> Vec<Named> {
    let named = |part, name: &str| Named { part, name: escaped(name) };
    let mut frames = vec![named(Part::Command, comm)];
    let of_stack = |part, id: StackId, frames: &mut Vec<Named>| {
        let Some(stack) = stacks.get(&id) else {
            if !id.is_none() {
                frames.push(named(Part::State, "[lost stack]"));
            }
            return;
        };
        if stack.truncated {
            frames.push(named(Part::State, "[cut off]"));
        }
        frames.extend(stack.frames.iter().rev().map(|frame| named(part, &frame_name(frame))));
    };
    of_stack(Part::User, time.user_stack, &mut frames);
    if let Some(call) = &time.syscall {
        frames.push(named(Part::Call, call));
    }
    of_stack(Part::Kernel, time.stack, &mut frames);
    match State::new(time.kind, time.cause) {
        State::User | State::Kernel if time.count == 0 => {
            let kind = if time.kind == RowKind::User { "user" } else { "kernel" };
            frames.push(named(Part::State, &format!("[{kind}, not sampled]")));
        }
        State::User if time.user_stack.is_none() => frames.push(named(Part::State, "[user]")),
        State::User | State::Kernel => {}
        state => frames.push(named(Part::State, &format!("[{}]", state.words()))),
    }
    frames
}

/// A function's name, or the address that no symbol covers.
pub(crate) fn frame_name(frame: &Frame) -> String {
    match frame {
        Frame::Symbol(name) => name.clone(),
        Frame::InFile { file, .. } => format!("[{file}]"),
        Frame::Unknown { address } => format!("{address:#x}"),
    }
}
