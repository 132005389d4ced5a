//! The timeline, for Perfetto and everything else that reads the "trace event" format: for each thread when it was on a CPU,
//! when blocked and on what, and when ready without a CPU.
//!
//! ```text
//! recorded     out        wake   in             out  in (preempted)
//!               |-blocked--|ready-|              |ready|
//! drawn   on CPU|          |      | on CPU       |     | on CPU … until the thread's end
//! ```
//!
//! Which functions ran meanwhile is not in it: samples are summed where they are taken.

use std::collections::HashMap;
use std::fmt::Write;

use inodyne_model::observed::{ThreadObserved, Waker};
use inodyne_model::stack::{Stack, StackId};
use serde_json::{Value, json};

use super::Traced;
use super::weighed::{State, frame_name};
use crate::line::escaped;
use crate::timeline::{Interval, Intervals};

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
            events.slice(thread, "ready, no CPU", wake, back, &json!({ "call": escaped(interval.call) }));
            at = back;
        }
        events.slice(thread, "on CPU", at, end, &json!({}));
    }
    events.finish()
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
