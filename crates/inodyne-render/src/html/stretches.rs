//! Stretches of time in one state, of the critical path and of threads, as the timeline draws them.
//!
//! A run of several minutes has millions of intervals, and a screen a few thousand columns. So the longest are kept as they are, and
//! the shorter ones become shares of each small part of the time, by state. Nothing is left out of the sums; only the order of
//! short intervals within such a part is lost. The page says where the cutoff is.
//!
//! ```text
//! kept    |▓▓▓▓▓▓▓▓|        |▓▓▓|      longest first, at most MOST
//! summed           |▒ 34% ▒|   |▒ 5% ▒ the rest, in PARTS parts of the time
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use inodyne_model::Nanos;
use inodyne_model::block::Journal;
use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::ledger::Row;
use inodyne_model::observed::ThreadNumber;
use inodyne_model::path::{CriticalPath, PathRow, StepPart};
use serde_json::{Value, json};

use crate::colours;
use crate::line::escaped;
use crate::report::row_in_words as parts;
use crate::report::state::State;
use crate::timeline::Interval;
use crate::units::{counted, duration, percent};

/// The most stretches kept as they are: of the path, and of all threads together.
pub(super) const MOST: usize = 8_000;
/// The number of parts of the time over which shorter ones are summed.
pub(super) const PARTS: u64 = 1_500;
/// The height of a lane.
pub(super) const HEIGHT: u64 = 1_000;
/// The most rows named for a stretch in which a thread did many things.
const MOST_NAMED: usize = 4;

/// A stretch of time in one state.
#[derive(Clone)]
pub(super) struct Stretch {
    /// An index into the lanes; `None` if the thread has no lane.
    pub(super) lane: Option<usize>,
    pub(super) from: u64,
    pub(super) ns: u64,
    pub(super) class: u64,
    pub(super) words: u64,
    /// Where in the height it begins and ends, in thousandths.
    pub(super) low: u64,
    pub(super) high: u64,
}

/// Texts by number.
#[derive(Default)]
pub(super) struct Words {
    pub(super) all: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl Words {
    pub(super) fn number(&mut self, words: String) -> u64 {
        let all = &mut self.all;
        *self.numbers.entry(words).or_insert_with_key(|words| {
            all.push(words.clone());
            all.len() as u64 - 1
        })
    }
}

/// The words for intervals; there are few different ones.
pub(super) struct Said<'a> {
    pub(super) words: Words,
    pub(super) numbers: HashMap<(State, &'a str), u64>,
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

/// Stretches while they are gathered: never many more than are kept.
pub(super) struct Gathered {
    end_ns: u64,
    /// The longest so far and those added since; in order of arrival where they are equally long.
    longest: Vec<Stretch>,
    /// A stretch no longer than this cannot be among the longest any more.
    least: Option<u64>,
    summed: HashMap<(Option<usize>, u64, u64), u64>,
    short: usize,
    border: Nanos,
}

impl Gathered {
    /// For a time that ends at `end_ns`.
    pub(super) fn new(end_ns: u64) -> Gathered {
        let (longest, summed) = Default::default();
        Gathered { end_ns, longest, least: None, summed, short: 0, border: Nanos::ZERO }
    }

    pub(super) fn add(&mut self, one: Stretch) {
        if self.least.is_some_and(|least| one.ns <= least) {
            return self.sum(&one);
        }
        self.longest.push(one);
        if self.longest.len() >= 4 * MOST {
            self.choose();
        }
    }

    /// Keeps the longest, and sums the others.
    fn choose(&mut self) {
        let mut all = std::mem::take(&mut self.longest);
        all.sort_by_key(|one| Reverse(one.ns));
        all.drain(all.len().min(MOST)..).for_each(|one| self.sum(&one));
        if all.len() == MOST {
            self.least = all.last().map(|one| one.ns);
        }
        self.longest = all;
    }

    /// Adds to each part of the time what falls into it: what is rounded down in one part goes into the next.
    fn sum(&mut self, one: &Stretch) {
        let [end, parts, from] = [self.end_ns.max(1), PARTS, one.from].map(u128::from);
        let length = u128::from(one.ns.max(1));
        let part_at = |ns: u128| (ns * parts / end).min(parts - 1);
        let whole = u128::from(one.ns) * u128::from(one.high - one.low) / u128::from(HEIGHT);
        let (first, last) = (part_at(from), part_at(from + length - 1));
        let mut before = 0;
        for part in first..=last {
            let until = if part == last { whole } else { whole * (((part + 1) * end).div_ceil(parts) - from) / length };
            if until > before {
                let sum = self.summed.entry((one.lane, part as u64, one.class)).or_default();
                *sum = sum.saturating_add((until - before) as u64);
            }
            before = until;
        }
        self.short += 1;
        self.border = self.border.max(Nanos(one.ns));
    }

    pub(super) fn finish(mut self) -> Stretches {
        self.choose();
        let Gathered { longest: mut kept, summed, short, border, .. } = self;
        kept.sort_by_key(|one| (one.lane, one.from, one.low));
        Stretches { kept, summed: summed.into_iter().collect(), short, border }
    }
}

/// Stretches, the longest as they are and the others as sums.
#[derive(Default)]
pub(super) struct Stretches {
    /// By lane, in chronological order.
    pub(super) kept: Vec<Stretch>,
    /// By lane, part of the time and class.
    pub(super) summed: BTreeMap<(Option<usize>, u64, u64), u64>,
    short: usize,
    /// The longest that was summed.
    border: Nanos,
}

impl Stretches {
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    pub(super) fn in_words(&self, what: &str, end_ns: u64) -> String {
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
    pub(super) fn json(&self) -> Value {
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

/// One for each state in each step: the things that a thread did in one step are stacked, since their order is not known.
pub(super) fn of_path(
    path: &CriticalPath,
    lane_of: &HashMap<ThreadNumber, usize>,
    words: &mut Words,
    gathered: &mut Gathered,
) {
    let of_row: Vec<(u64, String)> = path.rows.iter().map(row_in_words).collect();
    let length = |parts: &[StepPart]| parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.ns.0));
    let mut lengths: Vec<u64> = path.iter().map(|(_, parts)| length(parts)).collect();
    // Shorter ones are not kept, so their words are never read.
    let least = match lengths.len() > MOST {
        true => *lengths.select_nth_unstable_by_key(MOST, |ns| Reverse(*ns)).1,
        false => 0,
    };
    drop(lengths);
    for (step, parts) in path.iter() {
        let ns = length(parts);
        let mut of_class: BTreeMap<u64, u64> = BTreeMap::new();
        for part in parts {
            let class = of_row.get(part.row as usize).map_or(0, |(class, _)| *class);
            let sum = of_class.entry(class).or_default();
            *sum = sum.saturating_add(part.ns.0);
        }
        let said = if ns >= least { step_in_words(parts, ns, &of_row) } else { String::new() };
        let words = words.number(said);
        let lane = lane_of.get(&step.thread).copied();
        let mut below = 0u128;
        for (class, of_it) in of_class {
            let share = |part: u128| (part * u128::from(HEIGHT) / u128::from(ns.max(1))).min(HEIGHT.into()) as u64;
            let low = share(below);
            below += u128::from(of_it);
            let high = share(below);
            gathered.add(Stretch { lane, from: step.from_ns, ns, class, words, low, high });
        }
    }
}

/// A row's colour, and what it was.
fn row_in_words(row: &PathRow) -> (u64, String) {
    let PathRow { kind, syscall, cause, via } = row.clone();
    let said = parts(&Row { syscall, cause, via, ..Row::new(kind, Nanos::ZERO) });
    let words = [said.subject, said.what, said.via];
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|words| !words.is_empty()).collect();
    (class_of(State::new(kind, cause)), escaped(&words.join(" ")))
}

/// `newfstatat kernel 62%, user 20%, …`; the share is left out if there is only one.
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

/// The commits of a journal. If only an instant is known of one, it is drawn as thin as possible.
pub(super) fn of_commits<'a>(
    lane: usize,
    journal: &'a Journal,
    words: &'a mut Words,
) -> impl Iterator<Item = Stretch> + 'a {
    let class = class_of(State::Blocked(Cause::Journal));
    journal.each.iter().map(move |commit| {
        let from = commit.from_ns.unwrap_or(commit.to_ns);
        let blocks =
            commit.blocks.map_or_else(String::new, |blocks| format!(" of {}", counted(blocks, "block", "blocks")));
        let words = words.number(format!("commit{blocks}"));
        let ns = commit.to_ns.saturating_sub(from).0.max(1);
        Stretch { lane: Some(lane), from: from.0, ns, class, words, low: 0, high: HEIGHT }
    })
}

fn class_of(state: State) -> u64 {
    colours::number(state) as u64
}

/// Blocked first, then ready; stretches with no length are left out.
pub(super) fn of_interval<'a>(
    lane: usize,
    interval: &Interval<'a>,
    said: &mut Said<'a>,
) -> impl Iterator<Item = Stretch> {
    let blocked = interval.cause.map(|cause| (interval.out_ns, interval.blocked_ns, State::Blocked(cause)));
    let ready = Some((interval.wake_ns(), interval.ready_ns, State::Ready));
    let mut one = |(from, ns, state): (u64, u64, State)| {
        let words = said.number(state, interval.call);
        Stretch { lane: Some(lane), from, ns, class: class_of(state), words, low: 0, high: HEIGHT }
    };
    let both = [blocked.map(&mut one), ready.map(&mut one)];
    both.into_iter().flatten().filter(|one| one.ns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of a stretch that is too short to be kept, by part of a time of `end_ns` nanoseconds.
    fn summed(end_ns: u64, from: u64, ns: u64, high: u64) -> Vec<(u64, u64)> {
        let mut gathered = Gathered::new(end_ns);
        gathered.sum(&Stretch { lane: None, from, ns, class: 0, words: 0, low: 0, high });
        gathered.finish().summed.into_iter().map(|((_, part, _), ns)| (part, ns)).collect()
    }

    #[test]
    fn a_long_stretch_is_in_all_parts_that_it_covers() {
        let end = PARTS * 10;
        assert_eq!(summed(end, 12, 3, HEIGHT), [(1, 3)]);
        assert_eq!(summed(end, 15, 10, HEIGHT), [(1, 5), (2, 5)]);
        assert_eq!(summed(end, 15, 20, HEIGHT / 2), [(1, 2), (2, 5), (3, 3)]);
        let all = summed(end, 0, end, HEIGHT);
        assert!(all.len() as u64 == PARTS && all.iter().all(|(_, ns)| *ns == 10));
    }

    /// Whatever its length and position: also beyond the end, and in parts that are not whole nanoseconds.
    #[test]
    fn nothing_of_a_stretch_is_lost() {
        for end in [1, 7, 1_499, 1_501, 1_234_567, u64::MAX] {
            for (from, ns) in [(0, end), (end / 3, end / 2), (end - 1, 5), (end, 9), (u64::MAX, u64::MAX), (3, 0)] {
                let all = summed(end, from, ns, HEIGHT);
                assert_eq!(
                    all.iter().map(|(_, ns)| u128::from(*ns)).sum::<u128>(),
                    u128::from(ns),
                    "{from} {ns} {end}"
                );
                assert!(all.iter().all(|(part, _)| *part < PARTS));
                let most = u128::from(end).div_ceil(u128::from(PARTS));
                let last = PARTS - 1;
                assert!(all.iter().all(|(part, ns)| *part == last || u128::from(*ns) <= most), "{all:?}");
            }
        }
    }
}
