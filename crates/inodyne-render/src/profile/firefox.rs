//! Stacks for the Firefox Profiler (its "processed profile format"): a track for each thread, weights in milliseconds.
//!
//! The samples stand one after the other, from the thread's birth on, in the order of their stacks: call tree, flame graph
//! and search say how long; the time axis does not say when. The markers do: waits, and the steps of the critical path.

use std::collections::HashMap;

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, Profile, ReferenceTimestamp,
    SamplingInterval, ThreadHandle, Timestamp, WeightType,
};
use inodyne_model::Nanos;
use inodyne_model::observed::ThreadNumber;
use serde_json::{Value, json};

use super::markers::{self, Categories};
use super::perfetto::PATH;
use super::weighted::{Part, Weighted, weighted};
use super::{Traced, View};
use crate::line::escaped;
use crate::report::state::State;

/// The profile of a view as JSON.
pub fn firefox(traced: &Traced<'_>, view: View) -> String {
    let mut stacks = weighted(traced.trace, view);
    let mut builder = Builder::new(traced, view);
    if view == View::CriticalPath {
        stacks.sort_by(|a, b| a.frames.cmp(&b.frames));
        builder.path(&stacks);
        return builder.json();
    }
    stacks.sort_by(|a, b| (a.time.thread, &a.frames).cmp(&(b.time.thread, &b.frames)));
    for of_thread in stacks.chunk_by(|a, b| a.time.thread == b.time.thread) {
        builder.thread(of_thread);
    }
    markers::of_threads(&mut builder.profile, &builder.categories, traced.trace, &builder.tracks);
    builder.json()
}

struct Builder<'a> {
    traced: Traced<'a>,
    profile: Profile,
    categories: Categories,
    tracks: HashMap<ThreadNumber, ThreadHandle>,
    processes: HashMap<u32, fxprof_processed_profile::ProcessHandle>,
    /// Every sample's weight, by the number that stands in its place in the profile.
    weights: Vec<Nanos>,
}

const CATEGORIES: [(&str, CategoryColor); 6] = [
    ("User", CategoryColor::Green),
    ("Kernel", CategoryColor::Orange),
    ("Call", CategoryColor::Yellow),
    ("Ready", CategoryColor::Purple),
    ("Blocked", CategoryColor::Blue),
    ("Other", CategoryColor::Gray),
];

impl<'a> Builder<'a> {
    fn new(traced: &Traced<'a>, view: View) -> Builder<'a> {
        let created = traced.recording.created_unix_s as f64 * 1e3;
        let reference = ReferenceTimestamp::from_millis_since_unix_epoch(created);
        let hz = u64::from(traced.trace.observed.sample_hz);
        let interval = SamplingInterval::from_nanos(1_000_000_000u64.checked_div(hz).unwrap_or(1_000_000));
        let product = format!("{} ({view}, summed by stack)", traced.title());
        let mut profile = Profile::new(&product, reference, interval);
        let categories = CATEGORIES.map(|(name, colour)| (name, profile.add_category(name, colour))).into();
        Builder {
            traced: *traced,
            profile,
            categories,
            tracks: HashMap::new(),
            processes: HashMap::new(),
            weights: Vec::new(),
        }
    }

    /// The stacks of one thread.
    fn thread(&mut self, stacks: &[Weighted<'_>]) {
        let number = stacks.first().map_or(0, |stack| stack.time.thread);
        let Some(ledger) = self.traced.trace.threads.iter().find(|thread| thread.number == number) else { return };
        let (comm, born) = (escaped(&ledger.comm), self.born(number));
        let handle = self.handle(&comm, ledger.pid, ledger.tid, born);
        self.samples(handle, born, stacks);
        self.tracks.insert(number, handle);
    }

    /// All stacks of the critical path, which goes through several threads.
    fn path(&mut self, stacks: &[Weighted<'_>]) {
        let handle = self.handle("critical path", PATH, PATH, Nanos::ZERO);
        self.samples(handle, Nanos::ZERO, stacks);
        markers::of_path(&mut self.profile, &self.categories, self.traced.trace, handle);
    }

    fn samples(&mut self, handle: ThreadHandle, from: Nanos, stacks: &[Weighted<'_>]) {
        let mut at = from;
        for stack in stacks {
            let frames: Vec<FrameInfo> =
                stack.frames.iter().map(|frame| self.frame(frame.part, stack.state, &frame.name)).collect();
            let stack_handle = self.profile.intern_stack_frames(handle, frames.into_iter());
            // The crate takes whole numbers only: `json` puts the real weight in its place.
            let placeholder = i32::try_from(self.weights.len()).unwrap_or(i32::MAX);
            let on_cpu = matches!(stack.state, State::User | State::Kernel);
            let cpu = if on_cpu { CpuDelta::from_nanos(stack.ns().0) } else { CpuDelta::ZERO };
            at += stack.ns();
            self.profile.add_sample(handle, timestamp(at), stack_handle, cpu, placeholder);
            self.weights.push(stack.ns());
        }
        self.profile.set_thread_end_time(handle, timestamp(at));
    }

    fn born(&self, number: u32) -> Nanos {
        let observed = &self.traced.trace.observed;
        let born = observed.threads.iter().find(|thread| thread.number == number).map_or(Nanos::ZERO, |t| t.born_ns);
        born.saturating_sub(observed.started_ns)
    }

    fn handle(&mut self, name: &str, pid: u32, tid: u32, born: Nanos) -> ThreadHandle {
        let (profile, born) = (&mut self.profile, timestamp(born));
        let process = *self.processes.entry(pid).or_insert_with(|| profile.add_process(name, pid, born));
        let thread = profile.add_thread(process, tid, born, pid == tid);
        profile.set_thread_name(thread, name);
        profile.set_thread_samples_weight_type(thread, WeightType::TracingMs);
        thread
    }

    fn frame(&mut self, part: Part, state: State, name: &str) -> FrameInfo {
        let category = match (part, state) {
            (Part::User, _) | (Part::State, State::User | State::OutsideCalls) => "User",
            (Part::Kernel, _) | (Part::State, State::Kernel | State::InCall) => "Kernel",
            (Part::Call, _) => "Call",
            (Part::State, State::Ready) => "Ready",
            (Part::Waiting(_), _) | (Part::State, State::Blocked(_)) => "Blocked",
            (Part::Command, _) | (Part::State, State::Unexplained) => "Other",
        };
        let category = self.categories.get(category).copied().unwrap_or(CategoryHandle::OTHER);
        let frame = Frame::Label(self.profile.intern_string(name));
        FrameInfo { frame, category_pair: category.into(), flags: FrameFlags::empty() }
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

fn timestamp(at: Nanos) -> Timestamp {
    Timestamp::from_nanos_since_reference(at.0)
}
