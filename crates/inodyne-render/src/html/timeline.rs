//! The timeline: the critical path through time, and below it, for the threads that did most, when they were on a CPU, blocked
//! or ready. `page.js` draws it.
//!
//! A run of minutes has millions of intervals and a screen some thousand columns. So the longest are kept as they are, and
//! the shorter ones become shares of each small part of the time, by state. Nothing is left out of the sums; what is lost is the
//! order of short intervals within such a part. The page says where the border lies.
//!
//! ```text
//! kept    |▓▓▓▓▓▓▓▓|        |▓▓▓|      longest first, at most MOST
//! summed           |▒ 34% ▒|   |▒ 5% ▒ the rest, in PARTS parts of the time
//! ```
//!
//! | type | what it knows |
//! |---|---|
//! | `Lane` | a thread or helper, and the path's own |
//! | `Stretch` | a stretch of time in one state: from when, how long, which colour, which words, and from which share of the height to which |
//! | `Stretches` | keeps the longest, sums the rest |

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use inodyne_model::Nanos;
use inodyne_model::count::Grouped;
use inodyne_model::ledger::{Row, View};
use inodyne_model::observed::ThreadNumber;
use inodyne_model::path::{CriticalPath, StepPart};
use inodyne_model::trace::Trace;
use serde_json::{Value, json};

use super::builder::Html;
use super::colours::{self, LEGEND};
use super::threads::{MOST_THREADS, ordered};
use crate::line::escaped;
use crate::profile::weighed::State;
use crate::text::ledger::parts;
use crate::timeline::{Interval, Intervals};
use crate::units::{duration, percent};

/// Stretches kept as they are: of the path, and of all threads together.
const MOST: usize = 20_000;
/// Parts of the time in which shorter ones are summed.
const PARTS: u64 = 1_500;
/// The height of a lane.
const HEIGHT: u64 = 1_000;
/// Helpers that have a lane.
const MOST_HELPERS: usize = 12;
/// Rows named of a stretch in which a thread did many things.
const MOST_NAMED: usize = 4;

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

/// A stretch of time in one state.
#[derive(Clone)]
struct Stretch {
    /// An index into the lanes; none where the thread has no lane.
    lane: Option<usize>,
    from: u64,
    ns: u64,
    class: u64,
    words: u64,
    /// From which part of the height to which, in thousandths.
    low: u64,
    high: u64,
}

/// Texts by number.
#[derive(Default)]
struct Words {
    all: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl Words {
    fn number(&mut self, words: String) -> u64 {
        let all = &mut self.all;
        *self.numbers.entry(words).or_insert_with_key(|words| {
            all.push(words.clone());
            all.len() as u64 - 1
        })
    }
}

/// The words of intervals, of which there are few different ones.
struct Said<'a> {
    words: Words,
    numbers: HashMap<(State, &'a str), u64>,
}

impl<'a> Said<'a> {
    fn number(&mut self, state: State, call: &'a str) -> u64 {
        let words = &mut self.words;
        *self.numbers.entry((state, call)).or_insert_with(|| {
            let call = if call.is_empty() { String::new() } else { format!(" in {}", escaped(call)) };
            words.number(format!("{}{call}", state.words()))
        })
    }
}

/// Stretches, the longest as they are and the others as sums.
#[derive(Default)]
struct Stretches {
    /// By lane, in the order of time.
    kept: Vec<Stretch>,
    /// By lane, part of the time and class.
    summed: BTreeMap<(Option<usize>, u64, u64), u64>,
    short: usize,
    /// The longest that was summed.
    border: Nanos,
}

impl Stretches {
    fn new(mut all: Vec<Stretch>, end_ns: u64) -> Stretches {
        all.sort_by_key(|one| Reverse(one.ns));
        let short = all.split_off(all.len().min(MOST));
        let mut summed: BTreeMap<_, u64> = BTreeMap::new();
        for one in &short {
            let part = u128::from(one.from) * u128::from(PARTS) / u128::from(end_ns.max(1));
            let part = part.min(u128::from(PARTS - 1)) as u64;
            let ns = (u128::from(one.ns) * u128::from(one.high - one.low) / u128::from(HEIGHT)) as u64;
            let sum = summed.entry((one.lane, part, one.class)).or_default();
            *sum = sum.saturating_add(ns);
        }
        all.sort_by_key(|one| (one.lane, one.from, one.low));
        let border = Nanos(short.first().map_or(0, |one| one.ns));
        Stretches { kept: all, summed, short: short.len(), border }
    }

    fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    fn in_words(&self, what: &str, end_ns: u64) -> String {
        if self.short == 0 {
            return String::new();
        }
        format!(
            "{} {what} are drawn as they were; {} shorter ones, of {} at most, as their share of each {}. ",
            Grouped(self.kept.len() as u64),
            Grouped(self.short as u64),
            duration(self.border),
            duration(Nanos(end_ns / PARTS)),
        )
    }

    /// Flat lists, which are half as long as lists of objects: lane (-1: none), begin, length, class, words, low, high; and lane,
    /// part, class, nanoseconds.
    fn json(&self) -> Value {
        let lane = |lane: Option<usize>| lane.map_or(-1, |lane| i64::try_from(lane).unwrap_or(-1));
        let mut kept: Vec<Value> = Vec::with_capacity(self.kept.len() * 7);
        for one in &self.kept {
            kept.push(lane(one.lane).into());
            kept.extend([one.from, one.ns, one.class, one.words, one.low, one.high].map(Value::from));
        }
        let mut summed: Vec<Value> = Vec::with_capacity(self.summed.len() * 4);
        for ((of, part, class), ns) in &self.summed {
            summed.push(lane(*of).into());
            summed.extend([*part, *class, *ns].map(Value::from));
        }
        json!({ "kept": kept, "summed": summed })
    }
}

impl Drawn {
    fn new(trace: &Trace) -> Drawn {
        let (lanes, lane_of, undrawn) = lanes(trace);
        let last = lanes.iter().map(|lane| lane.ended_ns).max().unwrap_or(0);
        let end_ns = last.max(trace.ledger.wall_ns.0).max(1);
        let mut words = Words::default();
        let path = path_stretches(&trace.path, &lane_of, &mut words);
        let mut threads = Vec::new();
        let mut said = Said { words, numbers: HashMap::new() };
        for interval in Intervals::new(trace).iter() {
            // What a helper did for others does not concern the command.
            let lane = lane_of.get(&interval.thread).copied().filter(|lane| !lanes[*lane].is_helper);
            if let Some(lane) = lane {
                threads.extend(stretches(lane, &interval, &mut said));
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
        words.push_str("Threads: when each was on a CPU, blocked or ready. ");
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

/// One for each state in each step: what a thread did in one go lies one above the other, since its order is not known.
fn path_stretches(path: &CriticalPath, lane_of: &HashMap<ThreadNumber, usize>, words: &mut Words) -> Vec<Stretch> {
    let of_row: Vec<(u64, String)> = path
        .rows
        .iter()
        .map(|row| {
            let row = Row {
                syscall: row.syscall.clone(),
                cause: row.cause,
                via: row.via.clone(),
                ..Row::new(row.kind, Nanos::ZERO)
            };
            let said = parts(&row);
            let words = [said.subject, said.what, said.via];
            let words: Vec<&str> = words.iter().map(String::as_str).filter(|words| !words.is_empty()).collect();
            (class_of(State::new(row.kind, row.cause)), escaped(&words.join(" ")))
        })
        .collect();
    let length = |parts: &[StepPart]| parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.ns.0));
    let mut lengths: Vec<u64> = path.iter().map(|(_, parts)| length(parts)).collect();
    lengths.sort_unstable_by_key(|ns| Reverse(*ns));
    // Shorter ones are not kept, so nobody reads their words.
    let least = lengths.get(MOST).copied().unwrap_or(0);
    let mut all = Vec::new();
    for (step, parts) in path.iter() {
        let ns = length(parts);
        let mut of_class: BTreeMap<u64, u64> = BTreeMap::new();
        for part in parts {
            let class = of_row.get(part.row as usize).map_or(0, |(class, _)| *class);
            *of_class.entry(class).or_default() += part.ns.0;
        }
        let said = if ns >= least { step_in_words(parts, ns, &of_row) } else { String::new() };
        let words = words.number(said);
        let lane = lane_of.get(&step.thread).copied();
        let mut below = 0u128;
        for (class, of_it) in of_class {
            let share = |below: u128| (below * u128::from(HEIGHT) / u128::from(ns.max(1))) as u64;
            let (low, high) = (share(below), share(below + u128::from(of_it)));
            below += u128::from(of_it);
            all.push(Stretch { lane, from: step.from_ns, ns, class, words, low, high });
        }
    }
    all
}

/// `newfstatat kernel 62%, user 20%, …`; the share is left out where there is only one.
fn step_in_words(parts: &[StepPart], ns: u64, of_row: &[(u64, String)]) -> String {
    let name = |part: &StepPart| of_row.get(part.row as usize).map_or("?", |(_, words)| words.as_str());
    if let [only] = parts {
        return name(only).to_owned();
    }
    let mut largest: Vec<&StepPart> = parts.iter().collect();
    largest.sort_by_key(|part| Reverse(part.ns));
    let named = largest.iter().take(MOST_NAMED);
    let mut words: Vec<String> =
        named.map(|part| format!("{} {}", name(part), percent(part.ns.share_of(Nanos(ns))))).collect();
    if largest.len() > MOST_NAMED {
        words.push("…".to_owned());
    }
    words.join(", ")
}

fn class_of(state: State) -> u64 {
    let class = colours::of_state(state);
    LEGEND.iter().position(|(known, _)| *known == class).unwrap_or(LEGEND.len() - 1) as u64
}

/// Blocked first, then ready; what has no length is left out.
fn stretches<'a>(lane: usize, interval: &Interval<'a>, said: &mut Said<'a>) -> impl Iterator<Item = Stretch> {
    let wake = interval.out_ns.saturating_add(interval.blocked_ns);
    let blocked = interval.cause.map(|cause| (interval.out_ns, interval.blocked_ns, State::Blocked(cause)));
    let ready = Some((wake, interval.ready_ns, State::Ready));
    let mut one = |(from, ns, state): (u64, u64, State)| {
        let words = said.number(state, interval.call);
        Stretch { lane: Some(lane), from, ns, class: class_of(state), words, low: 0, high: HEIGHT }
    };
    let both = [blocked.map(&mut one), ready.map(&mut one)];
    both.into_iter().flatten().filter(|one| one.ns > 0)
}

#[cfg(test)]
mod tests {
    use inodyne_model::ledger::RowKind;
    use inodyne_model::observed::{Timeline, Waker};
    use inodyne_model::path::{PathRow, Step};
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
        };
        let drawn = Drawn::new(trace);
        let kept: Vec<_> = drawn.path.kept.iter().map(|one| (one.from, one.ns, one.low, one.high)).collect();
        assert_eq!(kept, [(0, 100, 0, 400), (0, 100, 400, 1_000), (100, 7, 0, 1_000)]);
        assert_eq!(drawn.words.all, ["read kernel 50%, user 40%, openat kernel 10%", "read kernel"]);
    }
}
