//! Markers, which say when: the calls that a thread waited in, and the steps of the critical path.

use fxprof_processed_profile::{
    CategoryHandle, MarkerFieldFlags, MarkerFieldFormat, MarkerTiming, Profile, StaticSchemaMarker,
    StaticSchemaMarkerField, StringHandle, ThreadHandle,
};

use super::super::lives::comms;
use super::{Builder, category, timestamp};
use crate::line::escaped;
use crate::report::state::State;
use crate::report::words;
use crate::timeline::Interval;

/// A stretch of time, named by its call.
struct Stretch {
    name: StringHandle,
    category: CategoryHandle,
    /// What was done in it, or waited for.
    what: StringHandle,
    /// Who ended the wait, if it was one, or in which thread the path was.
    who: StringHandle,
}

impl StaticSchemaMarker for Stretch {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "inodyne";
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.what}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.name}: {marker.data.what}, {marker.data.who}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[field("what", "What"), field("who", "Who")];

    fn name(&self, _profile: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _profile: &mut Profile) -> CategoryHandle {
        self.category
    }

    fn string_field_value(&self, field: u32) -> StringHandle {
        if field == 0 { self.what } else { self.who }
    }

    fn number_field_value(&self, _field: u32) -> f64 {
        0.0
    }
}

const fn field(key: &'static str, label: &'static str) -> StaticSchemaMarkerField {
    StaticSchemaMarkerField { key, label, format: MarkerFieldFormat::String, flags: MarkerFieldFlags::SEARCHABLE }
}

/// Every time that a thread was blocked, or ready without a CPU.
pub(super) fn of_thread(builder: &mut Builder<'_>, track: ThreadHandle, intervals: &[Interval<'_>]) {
    for interval in intervals {
        let call = if interval.call.is_empty() { State::OutsideCalls.words() } else { escaped(interval.call) };
        let who = match interval.cause {
            Some(_) => format!("woken by {}", interval.woken_by()),
            None => "the CPU was taken from it".to_owned(),
        };
        let (wake, back) = (interval.wake_ns(), interval.back_ns());
        let blocked = interval.cause.map(|cause| (State::Blocked(cause), interval.out_ns, wake));
        for (state, from, to) in blocked.into_iter().chain([(State::Ready, wake, back)]) {
            add(builder, track, state, [&call, &state.words(), &who], (from, to));
        }
    }
}

/// Every step of the critical path, named by what took most of it.
pub(super) fn of_path(builder: &mut Builder<'_>, track: ThreadHandle) {
    let trace = builder.traced.trace;
    let comms = comms(trace);
    for (step, parts) in trace.path.iter() {
        let ns = parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.ns.0));
        let largest = parts.iter().max_by_key(|part| part.ns);
        let Some(row) = largest.and_then(|part| trace.path.rows.get(part.row as usize)) else { continue };
        let (subject, what, _) = words(row.kind, row.syscall.as_deref(), row.cause);
        let who = format!("in {}", comms.get(&step.thread).map_or_else(|| "?".to_owned(), |comm| escaped(comm)));
        let state = State::new(row.kind, row.cause);
        let between = (step.from_ns, step.from_ns.saturating_add(ns));
        add(builder, track, state, [&escaped(&subject), &escaped(&what), &who], between);
    }
}

/// Adds nothing if it would have no length.
fn add(builder: &mut Builder<'_>, track: ThreadHandle, state: State, texts: [&str; 3], (from, to): (u64, u64)) {
    if from < to {
        let [name, what, who] = texts.map(|text| builder.profile.intern_string(text));
        let stretch = Stretch { name, category: builder.category(category(state)), what, who };
        builder.profile.add_marker(track, MarkerTiming::Interval(timestamp(from), timestamp(to)), stretch);
    }
}
