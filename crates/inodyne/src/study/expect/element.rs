//! The elements of a recording's lists, under the names of the study: which part, place and command each is about, and its
//! JSON. And which elements a study can have at all, before anything has run.

use std::collections::BTreeMap;

use inodyne_model::case::{CaseKey, CasePair};
use inodyne_model::recording::Recording;
use inodyne_model::run::CacheState;
use inodyne_model::study::Compare;
use inodyne_model::trace::Trace;
use serde::Serialize;
use serde_json::{Value, json};

use super::fields::Root;
use crate::study::part::Part;

/// What an element is called, by the keys of selectors.
pub type Names = BTreeMap<&'static str, String>;

/// An element with its JSON.
pub struct Element {
    pub names: Names,
    pub value: Value,
}

impl Element {
    /// Whether a selector matches it.
    pub fn is_taken_by(&self, select: &[(String, String)]) -> bool {
        is_taken(&self.names, select)
    }
}

/// Whether everything that a selector says is true.
pub fn is_taken(names: &Names, select: &[(String, String)]) -> bool {
    select.iter().all(|(key, value)| names.get(key.as_str()).is_some_and(|name| name == value))
}

/// The word for a state of the caches, as files have it.
fn word(cache: CacheState) -> String {
    plain(cache).as_str().unwrap_or_default().to_owned()
}

/// As JSON. What a recording holds is plain data.
fn plain(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

fn of_case(part: &str, place: &str, command: &str, cache: CacheState) -> Names {
    [("part", part.to_owned()), ("place", place.to_owned()), ("command", command.to_owned()), ("cache", word(cache))]
        .into()
}

/// `a` and `b` are each a place and a command. What both have in common also counts as the element's.
fn of_case_pair(part: &str, a: (&str, &str), b: (&str, &str), cache: CacheState) -> Names {
    let mut names: Names = [("part", part.to_owned()), ("cache", word(cache))].into();
    for (keys, (place, command)) in [(["a.place", "a.command"], a), (["b.place", "b.command"], b)] {
        names.insert(keys[0], place.to_owned());
        names.insert(keys[1], command.to_owned());
    }
    names.extend((a.0 == b.0).then(|| ("place", a.0.to_owned())));
    names.extend((a.1 == b.1).then(|| ("command", a.1.to_owned())));
    names
}

/// What the elements of a list can be called, in the parts of the study that have at least `least_traced` traced runs; without what only
/// a measurement shows.
pub fn possible(root: Root, parts: &[Part], least_traced: u32) -> Vec<Names> {
    let measured = parts.iter().filter(|part| part.repetitions.traced >= least_traced);
    measured.flat_map(|part| if root.is_of_case_pairs() { case_pairs(part) } else { cases(part) }).collect()
}

fn cases(part: &Part) -> Vec<Names> {
    let mut names = Vec::new();
    for cache in &part.caches {
        for place in &part.places {
            names.extend(part.commands.iter().map(|command| of_case(&part.name, &place.name, &command.name, *cache)));
        }
    }
    names
}

fn case_pairs(part: &Part) -> Vec<Names> {
    let mut names = Vec::new();
    let (Some(first_place), Some(first_command)) = (part.places.first(), part.commands.first()) else { return names };
    for cache in &part.caches {
        for (at_place, place) in part.places.iter().enumerate() {
            for (at_command, command) in part.commands.iter().enumerate() {
                let b = (place.name.as_str(), command.name.as_str());
                let mut against = |a| names.push(of_case_pair(&part.name, a, b, *cache));
                if at_place > 0 && part.compare != Compare::Commands {
                    against((&first_place.name, &command.name));
                }
                if at_command > 0 && part.compare != Compare::Places {
                    against((&place.name, &first_command.name));
                }
            }
        }
    }
    names
}

/// The elements of a list. For traces, only what the path asks for next: the rest is large.
pub fn all(recording: &Recording, root: Root, next: Option<&str>) -> Vec<Element> {
    let part = |place: usize| {
        let part = recording.study.as_ref().and_then(|study| study.part_of_place(place));
        part.map_or("", |part| part.name.as_str())
    };
    let place = |at: usize| recording.places.get(at).map_or("", |place| place.label.as_str());
    let command = |at: usize| recording.commands.get(at).map_or("", |command| command.label.as_str());
    let case = |key: CaseKey| of_case(part(key.place), place(key.place), command(key.command), key.cache);
    let case_pair = |CasePair { a, b }: CasePair| {
        of_case_pair(part(a.place), (place(a.place), command(a.command)), (place(b.place), command(b.command)), a.cache)
    };
    let with = |mut names: Names, key: &'static str, name: String| {
        names.insert(key, name);
        names
    };
    match root {
        Root::Findings => {
            let element = |found: &inodyne_model::finding::Finding| Element {
                names: with(case(recording.case_of(found)), "id", found.id.clone()),
                value: plain(found),
            };
            recording.findings.iter().map(element).collect()
        }
        Root::Comparisons => {
            let element = |found: &inodyne_model::comparison::Comparison| Element {
                names: with(case_pair(found.cases), "metric", found.metric.to_string()),
                value: plain(found),
            };
            recording.comparisons.iter().map(element).collect()
        }
        Root::LedgerDifferences => {
            let element = |found: &inodyne_model::comparison::LedgerDifference| Element {
                names: case_pair(found.cases),
                value: plain(found),
            };
            recording.ledger_differences.iter().map(element).collect()
        }
        Root::Statistics => {
            let element = |found: &inodyne_model::statistics::RunStatistics| Element {
                names: case(found.case),
                value: plain(found),
            };
            recording.statistics.iter().map(element).collect()
        }
        Root::Runs => {
            let element = |run: &inodyne_model::run::Run| Element {
                names: with(case(run.key()), "traced", run.traced.to_string()),
                value: plain(run),
            };
            recording.runs.iter().map(element).collect()
        }
        Root::Traces => {
            let element = |trace: &Trace| Element {
                names: case(trace.key()),
                value: part_of_trace(trace, next.unwrap_or_default()),
            };
            recording.traces.iter().map(element).collect()
        }
    }
}

fn part_of_trace(trace: &Trace, next: &str) -> Value {
    let value = match next {
        "syscalls" => plain(&trace.syscalls),
        "ledger" => plain(&trace.ledger),
        "dtype" => plain(&trace.dtype),
        "wall_ns" => plain(trace.wall_ns),
        _ => Value::Null,
    };
    json!({ next: value })
}
