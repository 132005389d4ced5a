//! The timeline: for the threads that did most, when they were on a CPU, blocked or ready. `page.js` draws it.
//!
//! A run of minutes has millions of intervals and a screen some thousand columns. So the longest are kept as they are, and of the
//! shorter ones each thread keeps how much of each small part of the time they took, by state. Nothing is left out of
//! the sums; what is lost is the order of short intervals within such a part. The page says where the border lies.
//!
//! ```text
//! kept    |▓▓▓▓▓▓▓▓|        |▓▓▓|      longest first, at most MOST
//! summed           |▒ 34% ▒|   |▒ 5% ▒ the rest, in PARTS parts of the time
//! ```

use std::cmp::Reverse;
use std::collections::HashMap;

use inodyne_model::Nanos;
use inodyne_model::count::Grouped;
use inodyne_model::trace::Trace;
use serde_json::{Value, json};

use super::builder::Html;
use super::colours::{self, LEGEND};
use super::threads::{MOST_THREADS, ordered};
use crate::line::escaped;
use crate::profile::weighed::State;
use crate::timeline::{Interval, Intervals};
use crate::units::duration;

/// Intervals kept as they are.
const MOST: usize = 30_000;
/// Parts of the time in which shorter ones are summed.
const PARTS: u64 = 1_500;

pub(super) fn show(page: &mut Html, trace: &Trace) {
    if trace.observed.timeline.is_empty() {
        return;
    }
    let drawn = Drawn::new(trace);
    page.element("h3", &[], "Timeline");
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
    threads: usize,
    /// Words by number: what an interval was.
    words: Vec<String>,
    kept: usize,
    summed: usize,
    /// The longest interval that was summed up.
    border: Nanos,
}

/// A thread. Intervals are flat lists, which are half as long as lists of objects.
struct Lane {
    name: String,
    born_ns: u64,
    ended_ns: u64,
    /// Begin, length, class, words.
    kept: Vec<u64>,
    /// Part, class, nanoseconds.
    summed: Vec<u64>,
}

/// A stretch of an interval in one state.
struct Stretch<'a> {
    lane: usize,
    from: u64,
    ns: u64,
    state: State,
    interval: Interval<'a>,
}

impl Drawn {
    fn new(trace: &Trace) -> Drawn {
        let intervals = Intervals::new(trace);
        let started = trace.observed.started_ns;
        let lives: HashMap<u32, (u64, u64)> = trace
            .observed
            .threads
            .iter()
            .map(|t| (t.number, (t.born_ns.saturating_sub(started).0, t.ended_ns.saturating_sub(started).0)))
            .collect();
        let threads = ordered(trace);
        let mut lanes = Vec::new();
        let mut lane_of = HashMap::new();
        for thread in threads.iter().take(MOST_THREADS) {
            let (born_ns, ended_ns) = lives.get(&thread.number).copied().unwrap_or_default();
            lane_of.insert(thread.number, lanes.len());
            let name = escaped(&format!("{} {}", thread.comm, thread.tid));
            lanes.push(Lane { name, born_ns, ended_ns, kept: Vec::new(), summed: Vec::new() });
        }
        let end_ns = lanes.iter().map(|lane| lane.ended_ns).max().unwrap_or(0).max(trace.ledger.wall_ns.0).max(1);
        let mut stretches: Vec<Stretch<'_>> = intervals
            .iter()
            .filter_map(|interval| Some((*lane_of.get(&interval.thread)?, interval)))
            .flat_map(|(lane, interval)| stretches(lane, interval))
            .collect();
        stretches.sort_by_key(|stretch| Reverse(stretch.ns));
        let short = stretches.split_off(stretches.len().min(MOST));
        let mut drawn = Drawn {
            end_ns,
            lanes,
            threads: threads.len(),
            words: Vec::new(),
            kept: stretches.len(),
            summed: short.len(),
            border: Nanos(short.first().map_or(0, |stretch| stretch.ns)),
        };
        drawn.keep(stretches);
        drawn.sum(&short);
        drawn
    }

    fn keep(&mut self, mut stretches: Vec<Stretch<'_>>) {
        stretches.sort_by_key(|stretch| (stretch.lane, stretch.from));
        let mut numbers: HashMap<String, u64> = HashMap::new();
        for Stretch { lane, from, ns, state, interval } in stretches {
            let call = if interval.call.is_empty() { String::new() } else { format!(" in {}", escaped(interval.call)) };
            let words = format!("{}{call}", state.words());
            let all = &mut self.words;
            let number = *numbers.entry(words).or_insert_with_key(|words| {
                all.push(words.clone());
                all.len() as u64 - 1
            });
            self.lanes[lane].kept.extend([from, ns, class_of(state), number]);
        }
    }

    /// Adds short stretches to the part of the time in which they begin.
    fn sum(&mut self, short: &[Stretch<'_>]) {
        let mut sums: HashMap<(usize, u64, u64), u64> = HashMap::new();
        for stretch in short {
            let part =
                (u128::from(stretch.from) * u128::from(PARTS) / u128::from(self.end_ns)).min(u128::from(PARTS - 1));
            let sum = sums.entry((stretch.lane, part as u64, class_of(stretch.state))).or_default();
            *sum = sum.saturating_add(stretch.ns);
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_unstable();
        for ((lane, part, class), ns) in sums {
            self.lanes[lane].summed.extend([part, class, ns]);
        }
    }

    fn in_words(&self) -> String {
        let mut words = "When each thread was on a CPU, blocked or ready. ".to_owned();
        if self.summed > 0 {
            words.push_str(&format!(
                "{} stretches off the CPU are drawn as they were; {} shorter ones, of {} at most, as their share of each {}. ",
                Grouped(self.kept as u64),
                Grouped(self.summed as u64),
                duration(self.border),
                duration(Nanos(self.end_ns / PARTS)),
            ));
        } else {
            words.push_str(&format!("All {} stretches off the CPU are drawn. ", Grouped(self.kept as u64)));
        }
        if self.threads > self.lanes.len() {
            let rest = self.threads - self.lanes.len();
            words.push_str(&format!("{} threads with less CPU time are not drawn. ", Grouped(rest as u64)));
        }
        words
    }

    fn json(&self) -> Value {
        let lanes: Vec<Value> = self
            .lanes
            .iter()
            .map(|lane| {
                json!({
                    "name": lane.name, "born": lane.born_ns, "ended": lane.ended_ns, "kept": lane.kept,
                    "summed": lane.summed,
                })
            })
            .collect();
        json!({ "end": self.end_ns, "parts": PARTS, "legend": LEGEND, "words": self.words, "lanes": lanes })
    }
}

fn class_of(state: State) -> u64 {
    let class = colours::of_state(state);
    LEGEND.iter().position(|(known, _)| *known == class).unwrap_or(LEGEND.len() - 1) as u64
}

/// Blocked first, then ready; what has no length is left out.
fn stretches(lane: usize, interval: Interval<'_>) -> impl Iterator<Item = Stretch<'_>> {
    let wake = interval.out_ns.saturating_add(interval.blocked_ns);
    let blocked = interval.cause.map(|cause| (interval.out_ns, interval.blocked_ns, State::Blocked(cause)));
    let ready = Some((wake, interval.ready_ns, State::Ready));
    let all = [blocked, ready].into_iter().flatten().filter(|(_, ns, _)| *ns > 0);
    all.map(move |(from, ns, state)| Stretch { lane, from, ns, state, interval })
}

#[cfg(test)]
mod tests {
    use inodyne_model::observed::{Timeline, Waker};
    use inodyne_model::sample;

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
            waker_stack: vec![0; n],
            calls: vec![String::new()],
            stacks: vec![inodyne_model::stack::StackId(0)],
        };
        inodyne_analyse::explain(&mut recording);
        let drawn = Drawn::new(&recording.traces[0]);
        assert_eq!(drawn.kept, MOST);
        assert!(
            drawn.in_words().contains("30,000 stretches off the CPU are drawn as they were"),
            "{}",
            drawn.in_words()
        );
        let kept: u64 = drawn.lanes[0].kept.chunks(4).map(|chunk| chunk[1]).sum();
        let summed: u64 = drawn.lanes[0].summed.chunks(3).map(|chunk| chunk[2]).sum();
        assert_eq!(kept + summed, (0..count).map(|at| at % 500 + 3).sum::<u64>());
    }
}
