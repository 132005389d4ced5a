//! What a trace knows about stacks and time, in the formats that other programs read.
//!
//! | module | what it makes |
//! |---|---|
//! | `folded` | one line per stack, also for the difference of two traces |
//! | `flame_svg` | flame graphs as pictures |
//! | `firefox` | stacks and the timeline, for the Firefox Profiler |
//! | `speedscope`, `pprof` | stacks for these programs |
//! | `lives` | which threads are drawn on a timeline |
//! | `perfetto` | the timeline |
//! | `protobuf` | messages as pprof and Perfetto read them |
//! | `weighted` | which stacks, how long, and what their frames are called |
//!
//! All of them but the timeline show the same: the critical path by stack ([`PathTime`](inodyne_model::path::PathTime)), which is as
//! wide as the wall-clock time, or all threads ([`StackTimes`](inodyne_model::profile::StackTimes)), whose parts sum to their ledgers.
//! Their stacks do not say when something happened, since samples are summed where they are taken; in the Firefox Profiler, the stacks of
//! waits, each of which the timeline knows, are also shown at their times.

mod firefox;
mod flame_svg;
mod folded;
mod lives;
mod perfetto;
mod pprof;
mod protobuf;
mod speedscope;
#[cfg(test)]
mod tests;
pub(crate) mod weighted;

use std::fmt;
use std::str::FromStr;

use inodyne_model::recording::Recording;
use inodyne_model::trace::Trace;

use crate::report::names;

pub use firefox::firefox;
pub use flame_svg::{NoFlameGraph, flame_graph, flame_graph_difference};
pub use folded::{folded, folded_difference};
pub use perfetto::perfetto;
pub use pprof::pprof;
pub use speedscope::speedscope;

/// Which time a profile is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// What the end of the command had to wait for: as wide as the wall-clock time.
    CriticalPath,
    /// All threads, on a CPU and off it together: as wide as their lifetimes.
    Wall,
    /// All threads on a CPU: from samples, as wide as the CPU time of the ledgers.
    OnCpu,
    /// All threads, blocked or ready without a CPU: from the waits themselves.
    OffCpu,
}

impl View {
    /// All of them, the most telling first.
    pub const ALL: [View; 4] = [View::CriticalPath, View::Wall, View::OnCpu, View::OffCpu];

    /// What is shown of a trace by default: the critical path, unless it could not be walked.
    pub(crate) fn first_of(trace: &Trace) -> View {
        if trace.path.stacks.is_empty() { View::Wall } else { View::CriticalPath }
    }

    /// The name used on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            View::CriticalPath => "critical-path",
            View::Wall => "wall",
            View::OnCpu => "on-cpu",
            View::OffCpu => "off-cpu",
        }
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that is not a view's; its text lists the valid names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no view {0:?}: use {views}", views = View::ALL.map(View::as_str).join(", "))]
pub struct UnknownView(String);

impl FromStr for View {
    type Err = UnknownView;

    fn from_str(name: &str) -> Result<View, UnknownView> {
        View::ALL.into_iter().find(|view| view.as_str() == name).ok_or_else(|| UnknownView(name.to_owned()))
    }
}

/// A trace together with the recording that it is from.
#[derive(Debug, Clone, Copy)]
pub struct Traced<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) trace: &'a Trace,
}

impl<'a> Traced<'a> {
    /// All traces of a recording, in its order.
    pub fn all(recording: &'a Recording) -> Vec<Traced<'a>> {
        recording.traces.iter().map(|trace| Traced { recording, trace }).collect()
    }

    /// Whether both are of the same command, place and state of the caches.
    pub fn is_same_case(&self, other: &Traced<'_>) -> bool {
        self.trace.key() == other.trace.key()
    }

    /// The one with the median wall time; for an even number the faster of the two in the middle. `None` if there are none.
    pub fn middle(all: &[Traced<'a>]) -> Option<Traced<'a>> {
        let mut by_time: Vec<Traced<'a>> = all.to_vec();
        by_time.sort_by_key(|one| one.trace.wall_ns);
        by_time.get(by_time.len().checked_sub(1)? / 2).copied()
    }

    /// The views that there are of it, the first of which is shown by default.
    pub fn views(&self) -> &'static [View] {
        match View::first_of(self.trace) {
            // A log has no stacks of threads.
            _ if !self.trace.tracer.divides_calls() => &View::ALL[..1],
            View::CriticalPath => &View::ALL,
            _ => &View::ALL[1..],
        }
    }

    /// Whether its tracer could divide the time of calls.
    pub fn divides_calls(&self) -> bool {
        self.trace.tracer.divides_calls()
    }

    /// What ran where: `find . on slow (cold)`.
    pub fn title(&self) -> String {
        let command = self.recording.commands.get(self.trace.command).map_or("?", |command| &command.label);
        let place = names::place(self.recording, self.trace.place);
        crate::line::escaped(&format!("{command} on {place} ({})", self.trace.cache))
    }
}
