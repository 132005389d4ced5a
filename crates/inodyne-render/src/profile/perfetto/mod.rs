//! The timeline, for Perfetto and everything else that reads the "trace event" format: for each thread when it was on a CPU,
//! when blocked and on what, and when ready without a CPU.
//!
//! ```text
//! recorded     out        wake   in             out  in (preempted)
//!               |-blocked--|ready-|              |ready|
//! drawn   on CPU|          |      | on CPU       |     | on CPU … until the thread's end
//! ```
//!
//! The critical path is a track of its own, a slice a step, named by what took most of it.
//!
//! Which functions ran meanwhile is not in it: samples are summed where they are taken.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::Write;

use inodyne_model::Nanos;
use inodyne_model::observed::{ThreadNumber, ThreadObserved, Waker};
use inodyne_model::path::StepPart;
use inodyne_model::stack::{Stack, StackId};
use inodyne_model::trace::Trace;
use serde_json::{Value, json};

use super::Traced;
use super::weighted::frame_name;
use crate::line::escaped;
use crate::report::state::State;
use crate::report::words;
use crate::timeline::{Interval, Intervals};
use crate::units::duration;

/// The timeline as JSON, an event a line.
pub fn perfetto(traced: &Traced<'_>) -> String {
    let trace = traced.trace;
    let intervals = Intervals::new(trace);
    let stacks: HashMap<StackId, &Stack> = trace.observed.stacks.iter().map(|stack| (stack.id, stack)).collect();
    let mut events = Events::new(&traced.title());
    let mut of_thread: HashMap<u32, Vec<Interval<'_>>> = HashMap::new();
    for interval in intervals.iter() {
        of_thread.entry(interval.thread).or_default().push(interval);
    }
    for thread in &trace.observed.threads {
        events.names(thread);
        let mut at = thread.born_ns.saturating_sub(trace.observed.started_ns).0;
        let end = thread.ended_ns.saturating_sub(trace.observed.started_ns).0;
        for interval in of_thread.get(&thread.number).into_iter().flatten() {
            events.slice(thread, "on CPU", at, interval.out_ns, &json!({}));
            let wake = interval.out_ns.saturating_add(interval.blocked_ns);
            let back = wake.saturating_add(interval.ready_ns);
            if let Some(cause) = interval.cause {
                let name = State::Blocked(cause).words();
                events.slice(thread, &name, interval.out_ns, wake, &details(interval, &stacks));
            }
            events.slice(thread, "waiting for a CPU", wake, back, &json!({ "call": escaped(interval.call) }));
            at = back;
        }
        events.slice(thread, "on CPU", at, end, &json!({}));
    }
    critical_path(&mut events, trace);
    events.finish()
}

/// No process has the number of the path's track: Linux gives none beyond 2²². Zero would be the idle task's to Perfetto.
pub(super) const PATH: u32 = (1 << 22) + 1;

fn critical_path(events: &mut Events, trace: &Trace) {
    let path = &trace.path;
    if path.steps.is_empty() {
        return;
    }
    events.event(&json!({ "ph": "M", "name": "process_name", "pid": PATH, "args": { "name": "critical path" } }));
    let row = |part: &StepPart| {
        let row = path.rows.get(part.row as usize)?;
        let (subject, what, _) = words(row.kind, row.syscall.as_deref(), row.cause);
        let via = row.via.join(" > ");
        let words = [subject, what, via].into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>();
        Some((escaped(&words.join(" ")), part.ns))
    };
    let threads = trace.observed.threads.iter().map(|thread| (thread.number, &thread.comm));
    let helpers = trace.observed.helpers.iter().map(|helper| (helper.number, &helper.comm));
    let comms: HashMap<ThreadNumber, &String> = threads.chain(helpers).collect();
    let track = ThreadObserved { pid: PATH, tid: PATH, ..ThreadObserved::default() };
    for (step, parts) in path.iter() {
        let mut parts: Vec<(String, Nanos)> = parts.iter().filter_map(row).collect();
        parts.sort_by_key(|(_, ns)| Reverse(*ns));
        let ns: u64 = parts.iter().fold(0, |sum, (_, ns)| sum.saturating_add(ns.0));
        let Some((name, _)) = parts.first().cloned() else { continue };
        let of: Vec<String> = parts.iter().map(|(words, ns)| format!("{words}: {}", duration(*ns))).collect();
        let thread = comms.get(&step.thread).map_or_else(String::new, |comm| escaped(comm));
        let args = json!({ "in": thread, "of": of.join(", ") });
        events.slice(&track, &name, step.from_ns, step.from_ns.saturating_add(ns), &args);
    }
}

fn details(interval: &Interval<'_>, stacks: &HashMap<StackId, &Stack>) -> Value {
    let names = |id| {
        let frames = stacks.get(&id).map_or(&[][..], |stack| stack.frames.as_slice());
        frames.iter().map(|frame| escaped(&frame_name(frame))).collect::<Vec<_>>().join(" < ")
    };
    let waker = match interval.waker {
        Waker::Traced => format!("thread {}", interval.waker_tid),
        Waker::OtherProcess => format!("thread {} of another process", interval.waker_tid),
        Waker::KernelThread => format!("kernel thread {}", interval.waker_tid),
        Waker::Interrupt => "an interrupt".to_owned(),
        Waker::Unknown => "unknown".to_owned(),
    };
    json!({ "call": escaped(interval.call), "woken by": waker, "stack": names(interval.stack) })
}

/// The file as it grows.
struct Events(String);

impl Events {
    fn new(title: &str) -> Events {
        let head = json!({ "title": title, "exporter": format!("inodyne {}", env!("CARGO_PKG_VERSION")) });
        Events(format!("{{\"displayTimeUnit\":\"ns\",\"otherData\":{head},\"traceEvents\":[\n"))
    }

    fn event(&mut self, event: &Value) {
        if !self.0.ends_with("[\n") {
            self.0.push_str(",\n");
        }
        // Writing to a string does not fail.
        let _ = write!(self.0, "{event}");
    }

    fn names(&mut self, thread: &ThreadObserved) {
        let (pid, tid, name) = (thread.pid, thread.tid, escaped(&thread.comm));
        if pid == tid {
            self.event(&json!({ "ph": "M", "name": "process_name", "pid": pid, "args": { "name": name } }));
        }
        self.event(&json!({ "ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": { "name": name } }));
    }

    /// Nothing, where it would have no length.
    fn slice(&mut self, thread: &ThreadObserved, name: &str, from: u64, to: u64, args: &Value) {
        if to <= from {
            return;
        }
        let micros = |ns: u64| ns as f64 / 1e3;
        self.event(&json!({
            "ph": "X", "name": name, "pid": thread.pid, "tid": thread.tid,
            "ts": micros(from), "dur": micros(to - from), "args": args,
        }));
    }

    fn finish(mut self) -> String {
        self.0.push_str("\n]}\n");
        self.0
    }
}
