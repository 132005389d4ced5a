//! What a card says: a recording in one picture, for an issue or a chat, or at the top of a page. It is the first screen without
//! what to do next.

use std::cmp::Reverse;
use std::collections::HashMap;

use inodyne_model::Nanos;
use inodyne_model::comparison::Verdict;
use inodyne_model::count::Grouped;
use inodyne_model::ledger::Row;
use inodyne_model::metric::Metric;
use inodyne_model::recording::Recording;
use inodyne_model::trace::Trace;

use super::block::{Block, Headline, Page};
use super::case::Case;
use super::names::Names;
use super::state::State;
use super::{change, comparison, ledger, names, overhead, screen, verdict};
use crate::units::{counted, duration, duration_beside, percent};

/// Rows of a ledger, or states of several ledgers, that have a line of their own.
const MOST_ROWS: usize = 5;
/// States with a smaller part of the time cannot be seen in a bar.
const SMALLEST: f64 = 0.005;
/// Numbers that are shown separately.
const NUMBERS: usize = 3;
/// Cases that have a bar.
const MOST_BARS: usize = 6;
/// A name, in characters.
const WIDEST_NAME: usize = 48;

/// What a card says.
pub(crate) struct Card {
    /// What ran.
    pub(crate) title: String,
    /// Where it ran, unless each bar says so.
    pub(crate) place: String,
    /// The verdicts; for a single case, its time.
    pub(crate) verdicts: Vec<(String, String)>,
    /// Why, in a sentence; empty if that is not known.
    pub(crate) reason: String,
    /// The numbers that say most, each with what it is.
    pub(crate) numbers: Vec<(String, String)>,
    pub(crate) bars: Vec<Bar>,
    /// How many cases have no bar; empty if all have one.
    pub(crate) others: String,
    /// What the colours stand for: words, and what is to the right of them.
    pub(crate) legend: Vec<(State, String, String)>,
    /// What speaks against the figures.
    pub(crate) doubts: Vec<String>,
    /// How much tracing costs and what was lost: of several cases, the worst one.
    pub(crate) trust: String,
}

/// A case, as long as its time.
pub(crate) struct Bar {
    /// Empty if there is only one.
    pub(crate) name: String,
    pub(crate) time: String,
    /// Its time as a part of the longest, and how that is divided: parts that sum to it.
    pub(crate) parts: Vec<(State, f64)>,
}

/// The card of a recording; `None` if nothing was traced.
pub(crate) fn of(recording: &Recording) -> Option<Card> {
    let cases: Vec<Case<'_>> = Case::all(recording).into_iter().filter(|case| case.trace.is_some()).collect();
    let trace = cases.first()?.trace?;
    let traces = cases.iter().filter_map(|case| case.trace);
    let worst = traces
        .max_by(|a, b| a.lost.total().cmp(&b.lost.total()).then(a.overhead.ratio.total_cmp(&b.overhead.ratio)))?;
    let (trust, _) = overhead::trust(worst);
    let bars = bars(recording, &cases);
    let others = match cases.len() - bars.len() {
        0 => String::new(),
        left => format!("and {}", counted(left as u64, "more case", "more cases")),
    };
    Some(match cases.as_slice() {
        [case] => {
            let title = verdict::title(case);
            Card {
                title: title.command,
                place: title.place.trim_start().to_owned(),
                verdicts: vec![(title.time, title.likely)],
                reason: title.reason,
                numbers: numbers(case, trace),
                bars,
                others,
                legend: rows(trace),
                doubts: verdict::doubts(case),
                trust,
            }
        }
        cases => Card {
            title: subject(recording),
            place: String::new(),
            verdicts: verdicts(recording),
            reason: String::new(),
            numbers: numbers_of_several(recording),
            bars,
            others,
            legend: states(cases),
            doubts: Vec::new(),
            trust,
        },
    })
}

/// How long, how much of it is spent waiting for files, and how long it could be; for a window, what its threads did most.
fn numbers(case: &Case<'_>, trace: &Trace) -> Vec<(String, String)> {
    let share = |ns: Nanos| percent(ns.share_of(trace.ledger.wall_ns));
    if case.window().is_some() {
        let states = by_state([trace]).into_iter().take(NUMBERS);
        return states.map(|(state, ns)| (share(ns), state.words())).collect();
    }
    let durable = case.statistics().and_then(|found| found.durable.as_ref());
    let until = if durable.is_some() { "to exit" } else { "wall-clock time" };
    let mut numbers = vec![(duration(case.wall()), until.to_owned())];
    numbers.extend(durable.map(|times| (duration(times.spread.median_ns), "to durable".to_owned())));
    if trace.tracer.divides_calls() {
        numbers.push((percent(screen::waits_for_files(trace)), "waiting for files".to_owned()));
    }
    match case.findings.first().filter(|_| verdict::likely(case).is_some()) {
        Some(finding) => {
            let time = duration_beside(finding.predicted.of(case.wall()), case.wall());
            numbers.push((format!("about {time}"), format!("if {} were fixed", finding.id)));
        }
        None => {
            let (state, ns) = by_state([trace]).into_iter().next().unwrap_or((State::Unexplained, Nanos::ZERO));
            numbers.push((share(ns), state.words()));
        }
    }
    numbers.truncate(NUMBERS);
    numbers
}

/// The results of a study; otherwise the first comparison.
fn numbers_of_several(recording: &Recording) -> Vec<(String, String)> {
    if let Some(study) = &recording.study {
        let held = study.expectations.len() - study.failed().count();
        let number = |count: usize, one: &str, several: &str| {
            (Grouped(count as u64).to_string(), if count == 1 { one } else { several }.to_owned())
        };
        return vec![
            (format!("{held} of {}", study.expectations.len()), "expectations hold".to_owned()),
            number(study.parts.len(), "part", "parts"),
            number(recording.runs.len(), "run", "runs"),
        ];
    }
    let Some(first) = recording.comparisons.iter().find(|one| one.metric == Metric::Wall) else { return Vec::new() };
    let names = Names::of(recording, first.cases);
    let [a, b] = names::short(&names.both(), WIDEST_NAME);
    let time = |ns| duration_beside(ns, first.a_median_ns);
    let is_decided = matches!(first.verdict, Verdict::Faster | Verdict::Slower | Verdict::NoDifference);
    let change = first.ratio.filter(|_| is_decided).map(|ratio| (change::change(ratio), format!("{b} against {a}")));
    change.into_iter().chain([(time(first.a_median_ns), a), (time(first.b_median_ns), b)]).collect()
}

/// What all cases have in common.
fn subject(recording: &Recording) -> String {
    match recording.commands.as_slice() {
        [command] => command.label.clone(),
        commands => format!("{} commands", commands.len()),
    }
}

fn verdicts(recording: &Recording) -> Vec<(String, String)> {
    let mut page = Page::new(None);
    comparison::headlines(&mut page, recording, |_| true, |_| None);
    let headlines = page.blocks.into_iter().filter_map(|block| match block {
        Block::Headlines(headlines) => Some(headlines),
        _ => None,
    });
    let said = |headline: Headline| {
        let facts: Vec<&str> = headline.facts.iter().map(String::as_str).filter(|fact| !fact.is_empty()).collect();
        (headline.sentence(WIDEST_NAME).text().to_owned(), facts.join("  "))
    };
    headlines.flatten().take(MOST_BARS / 2).map(said).collect()
}

fn bars(recording: &Recording, cases: &[Case<'_>]) -> Vec<Bar> {
    let shown = || cases.iter().take(MOST_BARS).filter_map(|case| Some((case, case.trace?)));
    let longest = shown().map(|(case, _)| case.wall()).max().unwrap_or_default();
    let bar = |(case, trace): (&Case<'_>, &Trace)| {
        let place = names::case(recording, case.key.place, case.key.command);
        let name = if cases.len() > 1 { format!("{place}, {}", case.cache()) } else { String::new() };
        // The ledger is that of the traced run, but its bar is as long as the other runs take.
        let scale = case.wall().share_of(longest) / trace.ledger.wall_ns.0.max(1) as f64;
        let parts = by_state([trace]).into_iter().map(|(state, ns)| (state, ns.0 as f64 * scale)).collect();
        Bar { name, time: duration(case.wall()), parts }
    };
    shown().map(bar).collect()
}

/// The largest rows of a ledger.
fn rows(trace: &Trace) -> Vec<(State, String, String)> {
    let row = |row: &Row| {
        let words = ledger::parts(row);
        let what = [words.subject, words.what, words.via].join(" ");
        let share = percent(row.ns.share_of(trace.ledger.wall_ns));
        (State::new(row.kind, row.cause), what.trim().to_owned(), format!("{}  {share}", duration(row.ns)))
    };
    trace.ledger.rows.iter().take(MOST_ROWS).map(row).collect()
}

/// The states that took most of the time of all cases.
fn states(cases: &[Case<'_>]) -> Vec<(State, String, String)> {
    let mut sums = by_state(cases.iter().filter_map(|case| case.trace));
    let all: Nanos = sums.iter().map(|(_, ns)| *ns).sum();
    sums.retain(|(_, ns)| ns.share_of(all) >= SMALLEST);
    sums.into_iter().take(MOST_ROWS).map(|(state, _)| (state, state.words(), String::new())).collect()
}

/// How much of each state the ledgers contain, the most first; the residual is one of their rows.
pub(super) fn by_state<'a>(traces: impl IntoIterator<Item = &'a Trace>) -> Vec<(State, Nanos)> {
    let mut sums = HashMap::<State, Nanos>::new();
    for trace in traces {
        for row in &trace.ledger.rows {
            *sums.entry(State::new(row.kind, row.cause)).or_default() += row.ns;
        }
    }
    let mut sums: Vec<(State, Nanos)> = sums.into_iter().filter(|(_, ns)| *ns > Nanos::ZERO).collect();
    sums.sort_by_key(|(state, ns)| (Reverse(*ns), *state));
    sums
}
