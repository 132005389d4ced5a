//! Profiles for the Firefox Profiler (its "processed profile format"): tracks with times, and tracks by stack.
//!
//! A track with times has samples where something happened: for the critical path each step, for a thread when it was on a CPU, blocked
//! (with its stack in the kernel) and waiting for a CPU. Its markers are the steps, and the calls that a thread waited in; calls that
//! never waited are counted where they are made, and not known one by one.
//!
//! Samples of what ran on a CPU are summed by stack where they are taken, so they have tracks of their own, in which they follow one
//! another in the order of their stacks: call tree, flame graph and search say how long, but the time axis does not say when.
//!
//! Weights are milliseconds.

mod markers;
mod moments;

use std::collections::HashMap;

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, ProcessHandle, Profile, ReferenceTimestamp,
    SamplingInterval, StackHandle, ThreadHandle, Timestamp, WeightType,
};
use inodyne_model::Nanos;
use inodyne_model::observed::ThreadNumber;
use inodyne_model::trace::{ThreadLedger, Trace};
use serde_json::{Value, json};

use super::perfetto::PATH;
use super::weighted::{Named, Part, Weighted, weighted};
use super::{Traced, View};
use crate::line::escaped;
use crate::report::state::State;

/// The end of the name of a track by stack.
pub(super) const BY_STACK: &str = "summed by stack";

/// The profile of a view as JSON.
pub fn firefox(traced: &Traced<'_>, view: View) -> String {
    let mut stacks = weighted(traced.trace, view);
    let mut builder = Builder::new(traced, view);
    if view == View::CriticalPath {
        stacks.sort_by(|a, b| a.frames.cmp(&b.frames));
        moments::of_path(&mut builder);
        builder.by_stack("critical path", (PATH, PATH), Nanos::ZERO, &stacks);
    }
    moments::of_threads(&mut builder);
    if view != View::CriticalPath {
        stacks.sort_by(|a, b| (a.time.thread, &a.frames).cmp(&(b.time.thread, &b.frames)));
        let Trace { threads, observed, .. } = traced.trace;
        let threads: HashMap<ThreadNumber, &ThreadLedger> =
            threads.iter().map(|thread| (thread.number, thread)).collect();
        let born: HashMap<ThreadNumber, Nanos> =
            observed.threads.iter().map(|thread| (thread.number, thread.born_ns)).collect();
        for of_thread in stacks.chunk_by(|a, b| a.time.thread == b.time.thread) {
            let number = of_thread[0].time.thread;
            if let Some(thread) = threads.get(&number) {
                let born = born.get(&number).map_or(Nanos::ZERO, |born| born.saturating_sub(observed.started_ns));
                builder.by_stack(&escaped(&thread.comm), (thread.pid, thread.tid), born, of_thread);
            }
        }
    }
    builder.json()
}

struct Builder<'a> {
    traced: Traced<'a>,
    profile: Profile,
    categories: HashMap<&'static str, CategoryHandle>,
    processes: HashMap<u32, ProcessHandle>,
    /// Every sample's weight, by the number that takes its place in the profile.
    weights: Vec<Nanos>,
}

/// On a CPU, in user mode or in the kernel: which of the two is not known for a single moment.
const ON_CPU: &str = "On a CPU";

const CATEGORIES: [(&str, CategoryColor); 7] = [
    ("User", CategoryColor::Green),
    ("Kernel", CategoryColor::Orange),
    (ON_CPU, CategoryColor::LightGreen),
    ("Call", CategoryColor::Yellow),
    ("Waiting for a CPU", CategoryColor::Purple),
    ("Blocked", CategoryColor::Blue),
    ("Other", CategoryColor::Gray),
];

impl<'a> Builder<'a> {
    fn new(traced: &Traced<'a>, view: View) -> Builder<'a> {
        let created = traced.recording.created_unix_s as f64 * 1e3;
        let reference = ReferenceTimestamp::from_millis_since_unix_epoch(created);
        let hz = u64::from(traced.trace.observed.sample_hz);
        let interval = SamplingInterval::from_nanos(1_000_000_000u64.checked_div(hz).unwrap_or(1_000_000));
        let mut profile = Profile::new(&format!("{} ({view})", traced.title()), reference, interval);
        let categories = CATEGORIES.map(|(name, colour)| (name, profile.add_category(name, colour))).into();
        Builder { traced: *traced, profile, categories, processes: HashMap::new(), weights: Vec::new() }
    }

    /// A track; its process is created if this is the first of its tracks. A main track has the same name as its process.
    fn track(&mut self, name: &str, (pid, tid): (u32, u32), is_main: bool, born: Nanos) -> ThreadHandle {
        let (profile, born) = (&mut self.profile, timestamp(born.0));
        let process = *self.processes.entry(pid).or_insert_with(|| profile.add_process(name, pid, born));
        let thread = profile.add_thread(process, tid, born, is_main);
        profile.set_thread_name(thread, name);
        profile.set_thread_samples_weight_type(thread, WeightType::TracingMs);
        thread
    }

    /// Stacks one after another.
    fn by_stack(&mut self, name: &str, ids: (u32, u32), from: Nanos, stacks: &[Weighted<'_>]) {
        let track = self.track(&format!("{name}, {BY_STACK}"), ids, false, from);
        let mut at = from;
        for stack in stacks {
            let frames = self.stack(track, category(stack.state), &stack.frames);
            let on_cpu = matches!(stack.state, State::User | State::Kernel);
            at += stack.ns();
            self.sample(track, at.0, frames, if on_cpu { stack.ns() } else { Nanos::ZERO }, stack.ns());
        }
        self.profile.set_thread_end_time(track, timestamp(at.0));
    }

    /// A sample of a track, with its weight and how long it ran since the one before.
    fn sample(&mut self, track: ThreadHandle, at: u64, stack: Option<StackHandle>, ran: Nanos, weight: Nanos) {
        // The crate accepts whole numbers only: `json` puts the real weight in its place.
        let placeholder = i32::try_from(self.weights.len()).unwrap_or(i32::MAX);
        self.profile.add_sample(track, timestamp(at), stack, CpuDelta::from_nanos(ran.0), placeholder);
        self.weights.push(weight);
    }

    /// A stack that ends in a state of this category.
    fn stack(&mut self, track: ThreadHandle, state: &str, frames: &[Named]) -> Option<StackHandle> {
        let frames: Vec<FrameInfo> = frames.iter().map(|frame| self.frame(frame, state)).collect();
        self.profile.intern_stack_frames(track, frames.into_iter())
    }

    fn frame(&mut self, named: &Named, state: &str) -> FrameInfo {
        let category = match named.part {
            Part::User => "User",
            Part::Kernel => "Kernel",
            Part::Call => "Call",
            Part::Waiting(_) => "Blocked",
            Part::State => state,
            Part::Command => "Other",
        };
        let category = self.category(category);
        let frame = Frame::Label(self.profile.intern_string(&named.name));
        FrameInfo { frame, category_pair: category.into(), flags: FrameFlags::empty() }
    }

    fn category(&self, name: &str) -> CategoryHandle {
        self.categories.get(name).copied().unwrap_or(CategoryHandle::OTHER)
    }

    fn json(self) -> String {
        // A profile is plain data: numbers and texts.
        let mut file = serde_json::to_value(&self.profile).unwrap_or(Value::Null);
        let threads = file.get_mut("threads").and_then(Value::as_array_mut);
        for thread in threads.into_iter().flatten() {
            let weights = thread.pointer_mut("/samples/weight").and_then(Value::as_array_mut);
            for weight in weights.into_iter().flatten() {
                let number = weight.as_u64().and_then(|number| self.weights.get(usize::try_from(number).ok()?));
                *weight = json!(number.map_or(0.0, |ns| ns.0 as f64 / 1e6));
            }
        }
        format!("{file}\n")
    }
}

/// The category of what a thread did.
fn category(state: State) -> &'static str {
    match state {
        State::User | State::OutsideCalls => "User",
        State::Kernel | State::InCall => "Kernel",
        State::Ready => "Waiting for a CPU",
        State::Blocked(_) => "Blocked",
        State::Unexplained => "Other",
    }
}

/// After the start.
fn timestamp(ns: u64) -> Timestamp {
    Timestamp::from_nanos_since_reference(ns)
}
