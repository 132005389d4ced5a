//! The timeline: the critical path through time, and below it, for the threads that did most, when they were on a CPU, blocked
//! or ready. `page.js` draws it. What gets a lane is decided here; what is drawn in it, in `stretches`.
//!
//! Threads are in the order of the process tree. One that begins after another has ended may share its row, so that
//! a build of hundreds of processes has only as many rows as ran at once:
//!
//! ```text
//! row 0  |make                                  |
//! row 1    |sh cc1 a.c   |  |sh cc1 b.c     |
//! row 2       |as a.o|         |as b.o|
//! ```
//!
//! Below them are helpers, and journals with their commits. If it is not known when threads were on a CPU, only what the path saw of them
//! is drawn, and nothing if there is no path.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use inodyne_model::Nanos;
use inodyne_model::block::Journal;
use inodyne_model::ledger::View;
use inodyne_model::observed::ThreadNumber;
use inodyne_model::trace::Trace;
use serde_json::{Value, json};

use super::builder::Html;
use super::stretches::{self, Gathered, HEIGHT, PARTS, Said, Stretches, Words};
use crate::colours;
use crate::line::escaped;
use crate::process::{Process, Processes};
use crate::report::threads::ordered;
use crate::timeline::{Intervals, known_until};
use crate::units::{counted, duration};

/// The most threads that have a lane.
const MOST_THREADS: usize = 400;
/// The most rows for these; if they need more, only this many threads have a lane.
const MOST_ROWS: usize = 40;
/// The most helpers that have a lane.
const MOST_HELPERS: usize = 12;
/// The most journals that have one, those with the most commits.
const MOST_JOURNALS: usize = 3;

pub(super) fn heading(trace: &Trace) -> &'static str {
    if trace.ledger.view == View::CriticalPath { "Critical path" } else { "Timeline" }
}

pub(super) fn show(page: &mut Html, trace: &Trace) {
    let drawn = Drawn::new(trace);
    if drawn.path.is_empty() && drawn.threads.is_empty() {
        return;
    }
    page.element("p", &[("class", "dim")], &drawn.in_words());
    page.inside("div", &[("class", "widget timeline")], |page| {
        page.data("timeline", &drawn.json());
        page.element("p", &[("class", "noscript")], "The timeline needs scripts, which are switched off here.");
    });
}

/// What is drawn of a trace.
struct Drawn {
    end_ns: u64,
    /// When the timeline ran out of room.
    until_ns: Option<u64>,
    lanes: Vec<Lane>,
    /// Threads of the command that have no lane.
    undrawn: usize,
    path: Stretches,
    threads: Stretches,
    words: Words,
}

/// What a lane belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// A thread of the command.
    Thread,
    /// A thread for which only what the path saw is drawn: it is not the command's, or it is not known when threads were on a CPU.
    Seen,
    /// A journal: its commits.
    Journal,
}

impl Whose {
    /// What is said about a time at which nothing is drawn.
    fn otherwise(self) -> &'static str {
        match self {
            Whose::Thread => "on a CPU, or off it for too short a time to be drawn",
            Whose::Seen => "only what the path saw of it is known here",
            Whose::Journal => "no commit",
        }
    }
}

/// What has a time of its own: a thread, or a journal.
struct Lane {
    /// The text in it.
    label: String,
    /// The same with its number.
    name: String,
    /// Where it is, counted from 0.
    row: usize,
    born_ns: u64,
    ended_ns: u64,
    whose: Whose,
}

impl Drawn {
    fn new(trace: &Trace) -> Drawn {
        let (mut lanes, lane_of, undrawn) = lanes(trace);
        let last = lanes.iter().map(|lane| lane.ended_ns).max().unwrap_or(0);
        // Not that of the ledger, which of a window is the time of all threads together.
        let end_ns = last.max(trace.wall_ns.0).max(1);
        let mut words = Words::default();
        let (mut path, mut threads) = (Gathered::new(end_ns), Gathered::new(end_ns));
        stretches::of_path(&trace.path, &lane_of, &mut words, &mut path);
        let mut said = Said { words, numbers: HashMap::new() };
        for interval in Intervals::new(trace).iter() {
            // What a helper did for others does not concern the command.
            let lane = lane_of.get(&interval.thread).copied().filter(|lane| lanes[*lane].whose == Whose::Thread);
            if let Some(lane) = lane {
                stretches::of_interval(lane, &interval, &mut said).for_each(|one| threads.add(one));
            }
        }
        let with_commits = trace.journals.iter().filter(|journal| !journal.each.is_empty());
        for journal in with_commits.take(MOST_JOURNALS) {
            stretches::of_commits(lanes.len(), journal, &mut said.words).for_each(|one| threads.add(one));
            lanes.push(of_journal(journal, rows(&lanes), end_ns));
        }
        let (path, threads) = (path.finish(), threads.finish());
        let until_ns = trace.observed.timeline.until_ns;
        Drawn { end_ns, until_ns, lanes, undrawn, path, threads, words: said.words }
    }

    fn in_words(&self) -> String {
        let mut words = String::new();
        if !self.path.is_empty() {
            words.push_str(
                "The topmost lane is what the end of the command had to wait for, from instant to instant; the line below a \
                 thread shows when the path ran through it. ",
            );
        }
        let has = |whose: Whose| self.lanes.iter().any(|lane| lane.whose == whose);
        if has(Whose::Thread) {
            words.push_str("Threads, by process and start time: when each was on a CPU, waiting for one, or blocked. ");
        } else {
            words.push_str("When threads were on a CPU is not known. ");
        }
        if has(Whose::Journal) {
            words.push_str("At the bottom, each commit of a journal, whoever it was for. ");
        }
        words.push_str(&self.path.in_words("stretches of the path", self.end_ns));
        words.push_str(&self.threads.in_words("stretches off the CPU", self.end_ns));
        if let Some(until) = self.until_ns {
            let until = duration(Nanos(until));
            words.push_str(&format!("The timeline was full after {until}: threads are drawn up to there. "));
        }
        if self.undrawn > 0 {
            let threads =
                counted(self.undrawn as u64, "thread with less CPU time is", "threads with less CPU time are");
            words.push_str(&format!("{threads} not drawn. "));
        }
        words
    }

    fn json(&self) -> Value {
        let lanes: Vec<Value> = self
            .lanes
            .iter()
            .map(|lane| {
                json!({
                    "label": lane.label, "name": lane.name, "row": lane.row, "born": lane.born_ns, "ended": lane.ended_ns,
                    "thin": lane.whose != Whose::Thread, "otherwise": lane.whose.otherwise(),
                })
            })
            .collect();
        json!({
            "end": self.end_ns, "parts": PARTS, "height": HEIGHT, "legend": colours::legend(), "words": self.words.all,
            "lanes": lanes, "path": self.path.json(), "threads": self.threads.json(),
        })
    }
}

/// The lanes of the threads that are drawn, then of the helpers on the path; which thread has which lane; how many threads have none.
fn lanes(trace: &Trace) -> (Vec<Lane>, HashMap<ThreadNumber, usize>, usize) {
    let observed = &trace.observed;
    let since = |ns: Nanos| ns.saturating_sub(observed.started_ns).0;
    let is_drawn = trace.knows_who_was_on_cpu() || !trace.path.steps.is_empty();
    let most_active: Vec<ThreadNumber> =
        ordered(trace).iter().filter(|_| is_drawn).map(|thread| thread.number).collect();
    let processes = Processes::new(trace);
    let (mut lanes, mut numbers) =
        of_threads(trace, &processes, most_active.iter().take(MOST_THREADS).copied().collect());
    if rows(&lanes) > MOST_ROWS {
        (lanes, numbers) = of_threads(trace, &processes, most_active.iter().take(MOST_ROWS).copied().collect());
    }
    let undrawn = most_active.len().saturating_sub(lanes.len());
    let mut on_path: HashMap<ThreadNumber, Nanos> = HashMap::new();
    for (step, parts) in trace.path.iter() {
        *on_path.entry(step.thread).or_default() += parts.iter().map(|part| part.ns).sum();
    }
    let time = |number: &ThreadNumber| on_path.get(number).copied().unwrap_or_default();
    let mut helpers: Vec<_> = observed.helpers.iter().filter(|helper| time(&helper.number) > Nanos::ZERO).collect();
    helpers.sort_by_key(|helper| (Reverse(time(&helper.number)), helper.number));
    let first = rows(&lanes);
    for (at, helper) in helpers.into_iter().take(MOST_HELPERS).enumerate() {
        numbers.push(helper.number);
        let name = escaped(&format!("{} {} (not the command's)", helper.comm, helper.tid));
        lanes.push(Lane {
            label: name.clone(),
            name,
            row: first + at,
            born_ns: since(helper.adopted_ns),
            ended_ns: since(helper.ended_ns),
            whose: Whose::Seen,
        });
    }
    let lane_of = numbers.into_iter().enumerate().map(|(lane, number)| (number, lane)).collect();
    (lanes, lane_of, undrawn)
}

/// As long as the command.
fn of_journal(journal: &Journal, row: usize, ended_ns: u64) -> Lane {
    let name = escaped(&format!("journal of {}", journal.name));
    Lane { label: name.clone(), name, row, born_ns: 0, ended_ns, whose: Whose::Journal }
}

fn rows(lanes: &[Lane]) -> usize {
    lanes.iter().map(|lane| lane.row + 1).max().unwrap_or(0)
}

/// The lanes of these threads and the threads' numbers, each lane in the first row below that of its process's parent that no
/// other thread occupies at the same time.
fn of_threads(trace: &Trace, processes: &Processes, wanted: HashSet<ThreadNumber>) -> (Vec<Lane>, Vec<ThreadNumber>) {
    let observed = &trace.observed;
    let whose = if trace.knows_who_was_on_cpu() { Whose::Thread } else { Whose::Seen };
    let since = |ns: Nanos| ns.saturating_sub(observed.started_ns).0;
    let by_number: HashMap<ThreadNumber, _> = observed.threads.iter().map(|thread| (thread.number, thread)).collect();
    let (mut lanes, mut numbers): (Vec<Lane>, Vec<ThreadNumber>) = (Vec::new(), Vec::new());
    let mut taken: Vec<Vec<(u64, u64)>> = Vec::new();
    let mut row_of: Vec<Option<usize>> = vec![None; processes.all.len()];
    for (at, process) in processes.all.iter().enumerate() {
        let below = process.parent.and_then(|parent| row_of[parent]).map_or(0, |row| row + 1);
        for thread in process.threads.iter().filter(|number| wanted.contains(number)).map(|number| by_number[number]) {
            let life = (since(thread.born_ns), since(thread.ended_ns));
            let is_free = |row: &usize| {
                taken
                    .get(*row)
                    .is_none_or(|lives| lives.iter().all(|(born, ended)| life.0 >= *ended || life.1 <= *born))
            };
            let row = (below..).find(is_free).expect("an empty row is free");
            taken.resize_with(taken.len().max(row + 1), Vec::new);
            taken[row].push(life);
            row_of[at].get_or_insert(row);
            let (label, name) = names(process, &thread.comm, thread.tid);
            let ended_ns = known_until(trace, life.0, life.1);
            lanes.push(Lane { label, name, row, born_ns: life.0, ended_ns, whose });
            numbers.push(thread.number);
        }
    }
    (lanes, numbers)
}

/// The text in the lane of a thread, and the same with its number: a process's first thread has the name of the process.
fn names(process: &Process, comm: &str, tid: u32) -> (String, String) {
    let label = if tid == process.pid { process.name.clone() } else { format!("{comm} {tid}") };
    let name =
        if tid == process.pid { format!("{} ({tid})", process.name) } else { format!("{label} of {}", process.name) };
    (escaped(&label), escaped(&name))
}

#[cfg(test)]
mod tests {
    use inodyne_model::ledger::RowKind;
    use inodyne_model::observed::{ThreadObserved, Timeline, Waker};
    use inodyne_model::path::{CriticalPath, PathRow, Step, StepPart};
    use inodyne_model::sample;
    use inodyne_model::trace::Tracer;

    use super::stretches::MOST;
    use super::*;

    /// There are more intervals than are kept, and nothing is missing from the sums.
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
            ..Timeline::default()
        };
        inodyne_analyse::explain(&mut recording);
        let drawn = Drawn::new(&recording.traces[0]);
        assert_eq!(drawn.threads.kept.len(), MOST);
        let words = drawn.in_words();
        assert!(words.contains("8,000 stretches off the CPU are drawn as they were"), "{words}");
        let kept: u64 = drawn.threads.kept.iter().map(|one| one.ns).sum();
        let summed: u64 = drawn.threads.summed.values().sum();
        assert_eq!(kept + summed, (0..count).map(|at| at % 500 + 3).sum::<u64>());
    }

    /// Two threads one after the other, beside one that lasts.
    #[test]
    fn a_row_holds_one_thread_after_the_other() {
        let mut recording = sample::find_recording();
        inodyne_analyse::explain(&mut recording);
        let trace = &mut recording.traces[0];
        let first = trace.observed.threads[0].clone();
        let thread = |number, parent, born, ended| ThreadObserved {
            number,
            parent,
            pid: number,
            tid: number,
            born_ns: first.born_ns + Nanos(born),
            ended_ns: first.born_ns + Nanos(ended),
            ..first.clone()
        };
        trace.observed.threads = vec![
            thread(1, 0, 0, 100),
            thread(2, 1, 10, 40),
            thread(3, 1, 50, 90),
            thread(4, 1, 20, 60),
            thread(5, 2, 20, 30),
        ];
        let (lanes, numbers) = of_threads(trace, &Processes::new(trace), (1..=5).collect());
        let told: Vec<(ThreadNumber, usize)> = numbers.into_iter().zip(lanes.iter().map(|lane| lane.row)).collect();
        assert_eq!(told, [(1, 0), (2, 1), (5, 2), (4, 3), (3, 1)]);
    }

    /// Below all threads, with each commit.
    #[test]
    fn a_journal_has_a_lane_of_its_own() {
        let mut recording = sample::find_recording();
        inodyne_analyse::explain(&mut recording);
        let trace = &mut recording.traces[0];
        let without = Drawn::new(trace);
        trace.journals = vec![sample::journal()];
        let drawn = Drawn::new(trace);
        let lane = drawn.lanes.last().expect("a lane");
        assert_eq!(
            (lane.name.as_str(), lane.row, lane.whose),
            ("journal of loop0", rows(&without.lanes), Whose::Journal)
        );
        let of_it: Vec<_> = drawn.threads.kept.iter().filter(|one| one.lane == Some(without.lanes.len())).collect();
        assert_eq!(of_it.len(), 30);
        assert_eq!((of_it[1].from, of_it[1].ns), (3_000_000, 1_700_000));
        assert_eq!(drawn.words.all[of_it[1].words as usize], "commit of 15 blocks");
        assert!(drawn.in_words().contains("each commit of a journal"));
        assert!(!without.in_words().contains("journal"));
    }

    /// The threads of a window without a timeline are not drawn as if they had run all the time: only its journals are, or nothing without any.
    #[test]
    fn threads_are_not_drawn_where_nothing_is_known_of_them() {
        let mut recording = sample::window_recording();
        inodyne_analyse::explain(&mut recording);
        let trace = &mut recording.traces[0];
        trace.journals.clear();
        let drawn = Drawn::new(trace);
        assert_eq!((drawn.lanes.len(), drawn.undrawn), (0, 0));
        trace.journals = vec![sample::journal()];
        let drawn = Drawn::new(trace);
        assert!(drawn.lanes.iter().all(|lane| lane.whose == Whose::Journal));
        assert!(!drawn.in_words().contains("when each was on a CPU"), "{}", drawn.in_words());
        // A strace log has a path, and what the path saw of each thread.
        let mut recording = sample::pipeline_recording();
        recording.traces[0].tracer = Tracer::Strace;
        inodyne_analyse::explain(&mut recording);
        let trace = &mut recording.traces[0];
        trace.path.steps = vec![Step { from_ns: 0, thread: 1, first: 0, count: 0 }];
        let drawn = Drawn::new(trace);
        assert_eq!(drawn.lanes.len(), trace.threads.len());
        assert!(drawn.lanes.iter().all(|lane| lane.whose == Whose::Seen));
    }

    /// And not as long as the lives of all its threads together, which its ledger divides.
    #[test]
    fn a_window_is_drawn_as_long_as_it_was() {
        let mut recording = sample::window_recording();
        recording.traces[0].journals = vec![sample::journal()];
        inodyne_analyse::explain(&mut recording);
        let trace = &recording.traces[0];
        assert!(trace.ledger.wall_ns > trace.wall_ns);
        let drawn = Drawn::new(trace);
        assert_eq!(drawn.end_ns, trace.wall_ns.0);
        assert_eq!(drawn.lanes.last().map(|lane| lane.ended_ns), Some(trace.wall_ns.0));
    }

    /// Every step takes the full height, with what was done in it stacked.
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
