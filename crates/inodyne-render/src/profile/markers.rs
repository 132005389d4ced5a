//! When something happened, for the Firefox Profiler: its samples are sums, but markers have their times. Each wait of a thread is one,
//! and each step of the critical path.

use std::collections::HashMap;

use fxprof_processed_profile::{
    CategoryHandle, MarkerFieldFlags, MarkerFieldFormat, MarkerTiming, Profile, StaticSchemaMarker,
    StaticSchemaMarkerField, StringHandle, ThreadHandle, Timestamp,
};
use inodyne_model::observed::ThreadNumber;
use inodyne_model::trace::Trace;

use crate::line::escaped;
use crate::report::state::State;
use crate::report::words;
use crate::timeline::Intervals;

/// The category of a state, by its name.
pub(super) type Categories = HashMap<&'static str, CategoryHandle>;

/// A stretch of time with a name.
struct Stretch {
    name: StringHandle,
    category: CategoryHandle,
    /// The call it was in, or the thread that the path was in.
    place: StringHandle,
}

impl StaticSchemaMarker for Stretch {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "inodyne";
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.in}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.name} in {marker.data.in}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "in",
        label: "In",
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }];

    fn name(&self, _profile: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _profile: &mut Profile) -> CategoryHandle {
        self.category
    }

    fn string_field_value(&self, _field: u32) -> StringHandle {
        self.place
    }

    fn number_field_value(&self, _field: u32) -> f64 {
        0.0
    }
}

/// Every time that these threads were blocked, or ready without a CPU.
pub(super) fn of_threads(
    profile: &mut Profile,
    categories: &Categories,
    trace: &Trace,
    threads: &HashMap<ThreadNumber, ThreadHandle>,
) {
    for interval in Intervals::new(trace).iter() {
        let Some(thread) = threads.get(&interval.thread) else { continue };
        let wake = interval.out_ns.saturating_add(interval.blocked_ns);
        let place = profile.intern_string(&escaped(interval.call));
        let blocked = interval.cause.map(|cause| (State::Blocked(cause), "Blocked", interval.out_ns, wake));
        let ready = (State::Ready, "Ready", wake, wake.saturating_add(interval.ready_ns));
        for (state, category, from, to) in blocked.into_iter().chain([ready]) {
            let name = profile.intern_string(&state.words());
            let stretch = Stretch { name, category: category_of(categories, category), place };
            add(profile, *thread, stretch, from, to);
        }
    }
}

/// Every step of the critical path, named by what took most of it.
pub(super) fn of_path(profile: &mut Profile, categories: &Categories, trace: &Trace, track: ThreadHandle) {
    let observed = &trace.observed;
    let threads = observed.threads.iter().map(|thread| (thread.number, &thread.comm));
    let helpers = observed.helpers.iter().map(|helper| (helper.number, &helper.comm));
    let comms: HashMap<ThreadNumber, &String> = threads.chain(helpers).collect();
    for (step, parts) in trace.path.iter() {
        let ns = parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.ns.0));
        let largest = parts.iter().max_by_key(|part| part.ns);
        let Some(row) = largest.and_then(|part| trace.path.rows.get(part.row as usize)) else { continue };
        let (subject, what, _) = words(row.kind, row.syscall.as_deref(), row.cause);
        let name = profile.intern_string(&escaped(format!("{subject} {what}").trim_end()));
        let place = profile.intern_string(&comms.get(&step.thread).map_or_else(String::new, |comm| escaped(comm)));
        let category = match State::new(row.kind, row.cause) {
            State::User | State::OutsideCalls => "User",
            State::Kernel | State::InCall => "Kernel",
            State::Ready => "Ready",
            State::Blocked(_) => "Blocked",
            State::Unexplained => "Other",
        };
        let stretch = Stretch { name, category: category_of(categories, category), place };
        add(profile, track, stretch, step.from_ns, step.from_ns.saturating_add(ns));
    }
}

fn category_of(categories: &Categories, name: &str) -> CategoryHandle {
    categories.get(name).copied().unwrap_or(CategoryHandle::OTHER)
}

/// Nothing, where it would have no length.
fn add(profile: &mut Profile, thread: ThreadHandle, stretch: Stretch, from: u64, to: u64) {
    if from < to {
        let [from, to] = [from, to].map(Timestamp::from_nanos_since_reference);
        profile.add_marker(thread, MarkerTiming::Interval(from, to), stretch);
    }
}
