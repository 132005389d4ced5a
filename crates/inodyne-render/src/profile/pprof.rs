//! Stacks for pprof: `profile.proto` of github.com/google/pprof, compressed with gzip. Two values a stack, a count (samples
//! or waits) and nanoseconds; the thread, the call and the cause are labels.
//!
//! The few kinds of field that the message needs are encoded here: numbers, texts, messages, and lists of numbers.

use std::collections::HashMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

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
    let mut strings = Strings::new();
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
    for stack in weighted(traced.trace, view) {
        profile.message(2, &sample(&stack, traced, &mut strings, &mut functions));
    }
    // A location for each function, and both with the same number; zero is none.
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

fn sample(stack: &Weighted<'_>, traced: &Traced<'_>, strings: &mut Strings, functions: &mut Strings) -> Message {
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
    if let Some(thread) = traced.trace.threads.iter().find(|thread| thread.number == stack.time.thread) {
        label("pid", None, thread.pid.into());
        label("tid", None, thread.tid.into());
    }
    message
}

/// Texts by number, in the order of their first use.
#[derive(Default)]
struct Strings {
    all: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl Strings {
    /// With the empty text as number zero, as the format asks for.
    fn new() -> Strings {
        let mut strings = Strings::default();
        strings.index("");
        strings
    }

    fn index(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.all.len() as u64;
        self.all.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// A protobuf message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

const VARINT: u64 = 0;
const LENGTH_DELIMITED: u64 = 2;

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | VARINT);
        self.varint(value);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | LENGTH_DELIMITED);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, message: &Message) {
        self.bytes(field, &message.0);
    }

    fn numbers(&mut self, field: u64, values: &[u64]) {
        let mut packed = Message::default();
        for value in values {
            packed.varint(*value);
        }
        self.message(field, &packed);
    }
}
