//! Stacks for pprof: `profile.proto` of github.com/google/pprof, compressed with gzip. Two values per stack, a count (samples
//! or waits) and nanoseconds; the thread, the call and the cause are labels.

use std::collections::HashMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use inodyne_model::observed::ThreadNumber;
use inodyne_model::trace::ThreadLedger;

use super::protobuf::{Message, Strings};
use super::weighted::{Weighted, weighted};
use super::{Traced, View};

/// The compressed profile of a view.
pub fn pprof(traced: &Traced<'_>, view: View) -> Vec<u8> {
    let message = encode(traced, view);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let _ = gzip.write_all(&message);
    gzip.finish().unwrap_or_default()
}

fn encode(traced: &Traced<'_>, view: View) -> Vec<u8> {
    let mut profile = Message::default();
    // The empty text is number zero, as the format requires.
    let mut strings = Strings::default();
    strings.index("");
    let (count, time) = match view {
        View::OnCpu => ("samples", "cpu"),
        View::OffCpu => ("waits", "delay"),
        View::Wall => ("samples and waits", "wall"),
        View::CriticalPath => ("samples and waits", "critical path"),
    };
    for (name, unit) in [(count, "count"), (time, "nanoseconds")] {
        profile.message(1, &value_type(&mut strings, name, unit));
    }
    let mut functions = Strings::default();
    let threads: HashMap<ThreadNumber, &ThreadLedger> =
        traced.trace.threads.iter().map(|thread| (thread.number, thread)).collect();
    for stack in weighted(traced.trace, view) {
        profile.message(2, &sample(&stack, &threads, &mut strings, &mut functions));
    }
    // A location for each function, with the same number for both; zero means none.
    for (index, name) in functions.all.iter().enumerate() {
        let id = index as u64 + 1;
        let mut line = Message::default();
        line.number(1, id);
        let mut location = Message::default();
        location.number(1, id);
        location.message(4, &line);
        profile.message(4, &location);
        let mut function = Message::default();
        function.number(1, id);
        function.number(2, strings.index(name));
        function.number(3, strings.index(name));
        profile.message(5, &function);
    }
    let default = strings.index(time);
    let period = value_type(&mut strings, time, "nanoseconds");
    let comment = strings.index(&traced.title());
    for text in &strings.all {
        profile.bytes(6, text.as_bytes());
    }
    profile.number(9, traced.recording.created_unix_s.saturating_mul(1_000_000_000));
    profile.number(10, traced.trace.wall_ns.0);
    profile.message(11, &period);
    let hz = u64::from(traced.trace.observed.sample_hz);
    profile.number(12, 1_000_000_000u64.checked_div(hz).unwrap_or(1));
    profile.number(13, comment);
    profile.number(14, default);
    profile.0
}

fn value_type(strings: &mut Strings, name: &str, unit: &str) -> Message {
    let mut message = Message::default();
    message.number(1, strings.index(name));
    message.number(2, strings.index(unit));
    message
}

fn sample(
    stack: &Weighted<'_>,
    threads: &HashMap<ThreadNumber, &ThreadLedger>,
    strings: &mut Strings,
    functions: &mut Strings,
) -> Message {
    let mut message = Message::default();
    let leaf_first: Vec<u64> = stack.frames.iter().rev().map(|frame| functions.index(&frame.name) + 1).collect();
    message.numbers(1, &leaf_first);
    message.numbers(2, &[stack.time.count, stack.ns().0]);
    let mut label = |key: &str, text: Option<&str>, number: u64| {
        let mut label = Message::default();
        label.number(1, strings.index(key));
        match text {
            Some(text) => label.number(2, strings.index(text)),
            None => label.number(3, number),
        }
        message.message(3, &label);
    };
    label("state", Some(&stack.state.words()), 0);
    if let Some(call) = &stack.time.syscall {
        label("syscall", Some(call), 0);
    }
    if let Some(thread) = threads.get(&stack.time.thread) {
        label("pid", None, thread.pid.into());
        label("tid", None, thread.tid.into());
    }
    message
}
