//! What a study expects of its result: a value in the JSON, and what it should be.
//!
//! ```toml
//! [[expect]]
//! says = "find asks for the type of each entry, where readdir does not give it"
//! what = "traces[place=slow, command=find].dtype.forced.calls"
//! per = "traces[place=slow, command=find].dtype.entries"
//! min = 0.9
//! ```
//!
//! | the path ends in | it says |
//! |---|---|
//! | things | how many there are lies between `min` and `max` |
//! | numbers | each lies between `min` and `max`; with `per`, their sum divided by the other's does |
//! | numbers, with `take = "median"` | their median does; with `per`, their median divided by the other's |
//! | words | each is one of `is` |
//!
//! If nothing is found, only a number of things can hold. What could not hold in any run is a mistake in the file: names that the study
//! does not have, findings that do not exist, a minimum above the maximum.
//!
//! | module | what it knows |
//! |---|---|
//! | `path` | how a path is written |
//! | `fields` | which fields there are, and what they hold |
//! | `element` | what the elements of a recording are called in the study |

mod element;
mod fields;
mod path;

use inodyne_model::cause::Cause;
use inodyne_model::comparison::Verdict;
use inodyne_model::ledger::RowKind;
use inodyne_model::metric::Metric;
use inodyne_model::recording::Recording;
use inodyne_model::study::Expectation;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as WordError, StrDeserializer};
use serde_json::Value;

use super::file::{Expect, Take, Text};
use super::mistake::Mistake;
use super::part::{Command, Part};
use fields::{Kind, Root};
use path::{Path, Step};

/// An expectation that can be looked up.
#[derive(Debug)]
pub struct Expected {
    says: Option<String>,
    what: Path,
    root: Root,
    kind: Kind,
    per: Option<(Path, Root, Kind)>,
    takes_median: bool,
    is: Vec<String>,
    min: Option<f64>,
    max: Option<f64>,
}

impl Expected {
    /// Checks it against the parts of the study.
    pub fn new(expect: &Expect, parts: &[Part]) -> Result<Expected, Mistake> {
        let (what, root, kind) = looked_up(&expect.what, parts)?;
        let per = expect.per.as_ref().map(|per| Ok((per, looked_up(per, parts)?))).transpose()?;
        let at_what = |problem: &str| Err(Mistake::of(&expect.what, problem));
        let has_bounds = expect.min.is_some() || expect.max.is_some();
        match (kind, &expect.is) {
            (Kind::Word, None) => return at_what("this is a word: say which by is = \"…\""),
            (Kind::Word, Some(_)) if has_bounds => return at_what("this is a word: it has no min and no max"),
            (Kind::Count | Kind::Number, Some(is)) => {
                return Err(Mistake::of(is, "this is a number: say by min = … or max = … what it should be"));
            }
            (Kind::Count | Kind::Number, None) if !has_bounds => return at_what("say by min or max what it should be"),
            _ => {}
        }
        if let (Some(min), Some(max)) = (&expect.min, &expect.max)
            && min.get_ref() > max.get_ref()
        {
            return Err(Mistake::of(
                max,
                format_args!("no number is {} or more and {} or less", min.get_ref(), max.get_ref()),
            ));
        }
        for bound in [&expect.min, &expect.max].into_iter().flatten() {
            if !bound.get_ref().is_finite() {
                return Err(Mistake::of(bound, "write a finite number"));
            }
        }
        if let (Kind::Count, Some(max)) = (kind, expect.max.as_ref().filter(|max| *max.get_ref() < 0.0)) {
            return Err(Mistake::of(max, "there are never less than none"));
        }
        if let Some((text, (_, _, of_per))) = &per
            && (kind == Kind::Word || *of_per == Kind::Word)
        {
            return Err(Mistake::of(text, "only numbers can be divided"));
        }
        let takes_median = expect.take.as_ref().is_some_and(|take| *take.get_ref() == Take::Median);
        if let (Some(take), true) = (
            &expect.take,
            [Some(kind), per.as_ref().map(|(_, (_, _, kind))| *kind)].into_iter().flatten().any(|k| k != Kind::Number),
        ) {
            return Err(Mistake::of(take, "only numbers have a median"));
        }
        let mut words = Vec::new();
        if let Some(is) = &expect.is {
            words = is.get_ref().all().to_vec();
            if let Some(wrong) = words.iter().find(|word| !is_word_of::<Verdict>(word)) {
                let there = "faster, slower, no-difference, not-enough-runs, withheld";
                return Err(Mistake::of(is, format_args!("'{wrong}' is not a verdict: there are {there}")));
            }
            if words.is_empty() {
                return Err(Mistake::of(is, "nothing is one of no words"));
            }
        }
        Ok(Expected {
            says: expect.says.clone(),
            what,
            root,
            kind,
            per: per.map(|(_, looked_up)| looked_up),
            takes_median,
            is: words,
            min: expect.min.as_ref().map(|min| *min.get_ref()),
            max: expect.max.as_ref().map(|max| *max.get_ref()),
        })
    }

    /// Whether each of its paths can lead to something where only some of the study's commands are here: what is about the others, or
    /// compared with one of them, is not there.
    pub fn can_be_seen(&self, parts: &[Part], is_here: impl Fn(&Command) -> bool) -> bool {
        let are_all_here = |names: &element::Names| {
            let part = parts.iter().find(|part| names.get("part") == Some(&part.name));
            let named = ["command", "a.command", "b.command"].map(|key| names.get(key));
            let is_named = |command: &&Command| named.contains(&Some(&command.name));
            part.is_none_or(|part| part.commands.iter().filter(is_named).all(&is_here))
        };
        let per = self.per.iter().map(|(path, root, _)| (path, *root));
        let mut paths = std::iter::once((&self.what, self.root)).chain(per);
        paths.all(|(path, root)| taken(path, root, parts).iter().any(&are_all_here))
    }

    /// Looks it up.
    pub fn look(&self, recording: &Recording) -> Expectation {
        let values = values(recording, &self.what, self.root);
        let (held, seen) = match (self.kind, &self.per) {
            (Kind::Word, _) => words_of(&values, &self.is),
            (_, Some((per, root, of_per))) => {
                let below = self::values(recording, per, *root);
                // An empty list has a count, but no sum.
                let above = (self.kind == Kind::Count || !values.is_empty()).then(|| sum(&values, self.kind));
                let (above, below) = match self.takes_median {
                    true => (median(&numbers(&values)), median(&numbers(&below)).unwrap_or_default()),
                    false => (above, sum(&below, *of_per)),
                };
                self.within(&Vec::from_iter(above.and_then(|above| ratio(above, below))))
            }
            (Kind::Count, None) => self.within(&[values.len() as f64]),
            (Kind::Number, None) if self.takes_median => self.within(&Vec::from_iter(median(&numbers(&values)))),
            (Kind::Number, None) => self.within(&numbers(&values)),
        };
        let per = self.per.as_ref().map_or_else(String::new, |(per, ..)| format!(" per {per}"));
        let median = if self.takes_median { "median of " } else { "" };
        let what = format!("{median}{}{per}", self.what);
        let expected = self.expected();
        let says = self.says.clone().unwrap_or_else(|| format!("{what}: {expected}"));
        Expectation { says, what, expected, seen, held }
    }

    fn within(&self, numbers: &[f64]) -> (bool, String) {
        let fits = |n: &f64| self.min.is_none_or(|min| *n >= min) && self.max.is_none_or(|max| *n <= max);
        (!numbers.is_empty() && numbers.iter().all(fits), listed(numbers))
    }

    fn expected(&self) -> String {
        match (self.min, self.max) {
            _ if self.kind == Kind::Word => self.is.join(" or "),
            (Some(min), Some(max)) if min == max => number(min),
            (Some(min), Some(max)) => format!("{} to {}", number(min), number(max)),
            (Some(min), None) => format!("{} or more", number(min)),
            (None, Some(0.0)) => "0".to_owned(),
            (None, Some(max)) => format!("{} or less", number(max)),
            (None, None) => String::new(),
        }
    }
}

/// How many values are listed one by one.
const MOST_LISTED: usize = 4;

fn listed(numbers: &[f64]) -> String {
    let (Some(least), Some(most)) =
        (numbers.iter().copied().reduce(f64::min), numbers.iter().copied().reduce(f64::max))
    else {
        return "nothing".to_owned();
    };
    if numbers.len() <= MOST_LISTED {
        return numbers.iter().map(|n| number(*n)).collect::<Vec<_>>().join(", ");
    }
    if least == most {
        return format!("{} values, all {}", numbers.len(), number(least));
    }
    format!("{} values from {} to {}", numbers.len(), number(least), number(most))
}

/// Whole numbers as they are, others with three digits after the decimal point.
fn number(n: f64) -> String {
    let text = format!("{n:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn words_of(values: &[Value], is: &[String]) -> (bool, String) {
    let words: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
    let held = !words.is_empty() && words.iter().all(|word| is.iter().any(|one| one == word));
    let seen = if words.is_empty() { "nothing".to_owned() } else { words.join(", ") };
    (held, seen)
}

/// For things, their count; for numbers, their sum.
fn sum(values: &[Value], kind: Kind) -> f64 {
    if kind == Kind::Count { values.len() as f64 } else { values.iter().filter_map(Value::as_f64).sum() }
}

fn numbers(values: &[Value]) -> Vec<f64> {
    values.iter().filter_map(Value::as_f64).collect()
}

fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.get(sorted.len() / 2)?;
    // For an even number, the mean of the two in the middle.
    Some(if sorted.len() % 2 == 1 { *middle } else { (middle + sorted[sorted.len() / 2 - 1]) / 2.0 })
}

fn ratio(above: f64, below: f64) -> Option<f64> {
    (below != 0.0).then(|| above / below)
}

/// Everything at the end of a path.
fn values(recording: &Recording, path: &Path, root: Root) -> Vec<Value> {
    let next = path.steps.first().map(|step| step.field.as_str());
    let elements = element::all(recording, root, next);
    let taken = elements.into_iter().filter(|element| element.is_taken_by(&path.root.select));
    let mut values: Vec<Value> = taken.map(|element| element.value).collect();
    for step in &path.steps {
        values = values.into_iter().flat_map(|value| stepped(value, step)).collect();
    }
    values
}

/// A field of a value; for a list, all elements that are selected.
fn stepped(mut value: Value, step: &Step) -> Vec<Value> {
    let field = value.get_mut(&step.field).map(Value::take).unwrap_or_default();
    let all = match field {
        Value::Null => Vec::new(),
        Value::Array(elements) => elements,
        one => vec![one],
    };
    let is = |element: &Value, key: &str, value: &str| element.get(key).and_then(Value::as_str) == Some(value);
    all.into_iter().filter(|one| step.select.iter().all(|(key, value)| is(one, key, value))).collect()
}

/// A path that can lead to something in this study.
fn looked_up(text: &Text, parts: &[Part]) -> Result<(Path, Root, Kind), Mistake> {
    let wrong = |problem: String| Mistake::of(text, problem);
    let path = Path::parse(text.get_ref()).map_err(wrong)?;
    let (root, kind) = fields::look_up(&path).map_err(wrong)?;
    check_words(&path).map_err(wrong)?;
    let least_traced = least_traced(&path, root).map_err(wrong)?;
    let all = element::possible(root, parts, least_traced);
    let named = names_in(&path, root);
    if all.iter().any(|names| element::is_taken(names, &named)) {
        return Ok((path, root, kind));
    }
    if all.is_empty() && least_traced > 1 {
        return Err(wrong(format!(
            "calls and rows are compared over several traced runs, traced = {least_traced} or more"
        )));
    }
    Err(wrong(why_nothing(&all, &named, &path.root.field)))
}

/// What the study calls the elements that a path takes.
fn names_in(path: &Path, root: Root) -> Vec<(String, String)> {
    path.root.select.iter().filter(|(key, _)| Some(key.as_str()) != root.own_key()).cloned().collect()
}

/// The names of all elements that a path can take in this study.
fn taken(path: &Path, root: Root, parts: &[Part]) -> Vec<element::Names> {
    let mut all = element::possible(root, parts, least_traced(path, root).unwrap_or_default());
    let named = names_in(path, root);
    all.retain(|names| element::is_taken(names, &named));
    all
}

/// How many traced runs of each kind are needed for anything to be there.
fn least_traced(path: &Path, root: Root) -> Result<u32, String> {
    let metric = path.root.select.iter().find(|(key, _)| root == Root::Comparisons && key == "metric");
    match metric.and_then(|(_, value)| value.parse::<Metric>().ok()) {
        Some(Metric::Durable) => return Err("times to durable are not measured in studies".to_owned()),
        Some(Metric::SyscallWall(_) | Metric::SyscallCpu(_) | Metric::Ledger(_)) => return Ok(2),
        _ => {}
    }
    let is_of_calls = root == Root::Statistics && path.steps.first().is_some_and(|step| step.field == "calls");
    Ok(if is_of_calls { 2 } else { u32::from(root.needs_traces()) })
}

/// Which name leads nowhere, or that the names do not go together.
fn why_nothing(all: &[element::Names], named: &[(String, String)], root: &str) -> String {
    if all.is_empty() {
        return format!("there can be no {root}: the study has no traced runs, or nothing to compare");
    }
    for (key, value) in named {
        let mut there: Vec<&str> = all.iter().filter_map(|names| names.get(key.as_str())).map(String::as_str).collect();
        there.sort_unstable();
        there.dedup();
        if !there.contains(&value.as_str()) {
            return format!("no {root} have {key}={value}: there are {}", there.join(", "));
        }
    }
    let named: Vec<String> = named.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("no {root} have all of {}", named.join(", "))
}

/// Words of the model that a path can name.
fn check_words(path: &Path) -> Result<(), String> {
    for (key, value) in std::iter::once(&path.root).chain(&path.steps).flat_map(|step| &step.select) {
        let is_known = match key.as_str() {
            "id" => inodyne_analyse::finding_ids().any(|id| id == value),
            "metric" => value.parse::<Metric>().is_ok(),
            "traced" => matches!(value.as_str(), "true" | "false"),
            "kind" => is_word_of::<RowKind>(value),
            "cause" => is_word_of::<Cause>(value),
            _ => true,
        };
        if !is_known {
            let more = if key == "id" { ": 'inodyne explain' lists all of them" } else { "" };
            return Err(format!("there is no {key} '{value}'{more}"));
        }
    }
    Ok(())
}

fn is_word_of<T: for<'de> Deserialize<'de>>(word: &str) -> bool {
    let word: StrDeserializer<'_, WordError> = word.into_deserializer();
    T::deserialize(word).is_ok()
}

#[cfg(test)]
mod tests;
