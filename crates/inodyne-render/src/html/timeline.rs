//! The timeline: the critical path through time, and below it, for the threads that did most, when they were on a CPU, blocked
//! or ready. `page.js` draws it. Who has a lane is decided here; what is drawn in it, in `stretches`.

use std::cmp::Reverse;
use std::collections::HashMap;

use inodyne_model::Nanos;
use inodyne_model::count::Grouped;
use inodyne_model::ledger::View;
use inodyne_model::observed::ThreadNumber;
use inodyne_model::trace::Trace;
use serde_json::{Value, json};

use super::builder::Html;
use super::colours::LEGEND;
use super::stretches::{self, HEIGHT, PARTS, Said, Stretches, Words};
use crate::line::escaped;
use crate::report::threads::ordered;
use crate::timeline::Intervals;

/// Threads that have a lane.
const MOST_THREADS: usize = 40;
/// Helpers that have a lane.
const MOST_HELPERS: usize = 12;

pub(super) fn show(page: &mut Html, trace: &Trace) {
    let drawn = Drawn::new(trace);
    if drawn.path.is_empty() && drawn.threads.is_empty() {
        return;
    }
    page.element("h3", &[], if trace.ledger.view == View::CriticalPath { "Critical path" } else { "Timeline" });
    page.element("p", &[("class", "dim")], &drawn.in_words());
    page.inside("div", &[("class", "widget timeline")], |page| {
        page.data("timeline", &drawn.json());
        page.element("p", &[("class", "noscript")], "The timeline needs scripts, which are switched off here.");
    });
}

/// What is drawn of a trace.
struct Drawn {
    end_ns: u64,
    lanes: Vec<Lane>,
    /// Threads of the command that have no lane.
    undrawn: usize,
    path: Stretches,
    threads: Stretches,
    words: Words,
}

/// A thread.
struct Lane {
    name: String,
    born_ns: u64,
    ended_ns: u64,
    /// Of a helper only what the path saw of it is drawn.
    is_helper: bool,
}

impl Drawn {
    fn new(trace: &Trace) -> Drawn {
        let (lanes, lane_of, undrawn) = lanes(trace);
        let last = lanes.iter().map(|lane| lane.ended_ns).max().unwrap_or(0);
        let end_ns = last.max(trace.ledger.wall_ns.0).max(1);
        let mut words = Words::default();
        let path = stretches::of_path(&trace.path, &lane_of, &mut words);
        let mut threads = Vec::new();
        let mut said = Said { words, numbers: HashMap::new() };
        for interval in Intervals::new(trace).iter() {
            // What a helper did for others does not concern the command.
            let lane = lane_of.get(&interval.thread).copied().filter(|lane| !lanes[*lane].is_helper);
            if let Some(lane) = lane {
                threads.extend(stretches::of_interval(lane, &interval, &mut said));
            }
        }
        let (path, threads) = (Stretches::new(path, end_ns), Stretches::new(threads, end_ns));
        Drawn { end_ns, lanes, undrawn, path, threads, words: said.words }
    }

    fn in_words(&self) -> String {
        let mut words = String::new();
        if !self.path.is_empty() {
            words.push_str(
                "The topmost lane is what the end of the command had to wait for, from instant to instant; the line below a \
                 thread shows when the path ran through it. ",
            );
        }
        words.push_str("Threads: when each was on a CPU, blocked, or waiting for one. ");
        words.push_str(&self.path.in_words("stretches of the path", self.end_ns));
        words.push_str(&self.threads.in_words("stretches off the CPU", self.end_ns));
        if self.undrawn > 0 {
            words.push_str(&format!("{} threads with less CPU time are not drawn. ", Grouped(self.undrawn as u64)));
        }
        words
    }

    fn json(&self) -> Value {
        let lanes: Vec<Value> = self
            .lanes
            .iter()
            .map(|lane| {
                json!({ "name": lane.name, "born": lane.born_ns, "ended": lane.ended_ns, "helper": lane.is_helper })
            })
            .collect();
        json!({
            "end": self.end_ns, "parts": PARTS, "height": HEIGHT, "legend": LEGEND, "words": self.words.all,
            "lanes": lanes, "path": self.path.json(), "threads": self.threads.json(),
        })
    }
}

/// The threads that are drawn, then the helpers on the path; whose lane is which; how many threads have none.
fn lanes(trace: &Trace) -> (Vec<Lane>, HashMap<ThreadNumber, usize>, usize) {
    let observed = &trace.observed;
    let since = |ns: Nanos| ns.saturating_sub(observed.started_ns).0;
    let lives: HashMap<ThreadNumber, (u64, u64)> =
        observed.threads.iter().map(|t| (t.number, (since(t.born_ns), since(t.ended_ns)))).collect();
    let threads = ordered(trace);
    let (mut lanes, mut lane_of) = (Vec::new(), HashMap::new());
    for thread in threads.iter().take(MOST_THREADS) {
        let (born_ns, ended_ns) = lives.get(&thread.number).copied().unwrap_or_default();
        lane_of.insert(thread.number, lanes.len());
        let name = escaped(&format!("{} {}", thread.comm, thread.tid));
        lanes.push(Lane { name, born_ns, ended_ns, is_helper: false });
    }
    let mut on_path: HashMap<ThreadNumber, Nanos> = HashMap::new();
    for (step, parts) in trace.path.iter() {
        *on_path.entry(step.thread).or_default() += parts.iter().map(|part| part.ns).sum();
    }
    let time = |number: &ThreadNumber| on_path.get(number).copied().unwrap_or_default();
    let mut helpers: Vec<_> = observed.helpers.iter().filter(|helper| time(&helper.number) > Nanos::ZERO).collect();
    helpers.sort_by_key(|helper| (Reverse(time(&helper.number)), helper.number));
    for helper in helpers.into_iter().take(MOST_HELPERS) {
        lane_of.insert(helper.number, lanes.len());
        let name = escaped(&format!("{} {} (not the command's)", helper.comm, helper.tid));
        lanes.push(Lane { name, born_ns: since(helper.adopted_ns), ended_ns: since(helper.ended_ns), is_helper: true });
    }
    (lanes, lane_of, threads.len().saturating_sub(MOST_THREADS))
}

#[cfg(test)]
mod tests {
    use inodyne_model::ledger::RowKind;
    use inodyne_model::observed::{Timeline, Waker};
    use inodyne_model::path::{CriticalPath, PathRow, Step, StepPart};
    use inodyne_model::sample;

    use super::stretches::MOST;
    use super::*;

    /// More intervals than are kept: nothing of them is missing from the sums.
    #[test]
    fn what_is_not_kept_is_summed() {
        let mut recording = sample::find_recording();
        let count = MOST as u64 * 2;
        let n = count as usize;
        recording.traces[0].observed.timeline = Timeline {
            thread: vec![1; n],
            out_ns: (0..count).map(|at| at * 1_000).collect(),
            blocked_ns: (0..count).map(|at| at % 500).collect(),
            ready_ns: vec![3; n],
            call: vec![0; n],
            stack: vec![0; n],
            waker: vec![Waker::Unknown; n],
            waker_tid: vec![0; n],
            waker_thread: vec![0; n],
            waker_stack: vec![0; n],
            calls: vec![String::new()],
            stacks: vec![inodyne_model::stack::StackId(0)],
        };
        inodyne_analyse::explain(&mut recording);
        let drawn = Drawn::new(&recording.traces[0]);
        assert_eq!(drawn.threads.kept.len(), MOST);
        let words = drawn.in_words();
        assert!(words.contains("20,000 stretches off the CPU are drawn as they were"), "{words}");
        let kept: u64 = drawn.threads.kept.iter().map(|one| one.ns).sum();
        let summed: u64 = drawn.threads.summed.values().sum();
        assert_eq!(kept + summed, (0..count).map(|at| at % 500 + 3).sum::<u64>());
    }

    /// Every step to its full height, what was done in it one above the other.
    #[test]
    fn the_path_is_drawn_as_high_as_it_is_long() {
        let mut recording = sample::find_recording();
        inodyne_analyse::explain(&mut recording);
        let trace = &mut recording.traces[0];
        let row = |kind, syscall: &str| {
            let syscall = (!syscall.is_empty()).then(|| syscall.to_owned());
            PathRow { kind, syscall, cause: None, via: Vec::new() }
        };
        let part = |row, ns| StepPart { row, ns: Nanos(ns) };
        trace.path = CriticalPath {
            rows: vec![row(RowKind::User, ""), row(RowKind::Kernel, "read"), row(RowKind::Kernel, "openat")],
            parts: vec![part(0, 40), part(1, 50), part(2, 10), part(1, 7)],
            steps: vec![
                Step { from_ns: 0, thread: 1, first: 0, count: 3 },
                Step { from_ns: 100, thread: 1, first: 3, count: 1 },
            ],
            ..CriticalPath::default()
        };
        let drawn = Drawn::new(trace);
        let kept: Vec<_> = drawn.path.kept.iter().map(|one| (one.from, one.ns, one.low, one.high)).collect();
        assert_eq!(kept, [(0, 100, 0, 400), (0, 100, 400, 1_000), (100, 7, 0, 1_000)]);
        assert_eq!(drawn.words.all, ["read kernel 50%, user 40%, openat kernel 10%", "read kernel"]);
    }
}
