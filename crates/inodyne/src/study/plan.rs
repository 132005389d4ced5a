//! What a study does in one of its forms: everything looked up, filled in and checked before anything happens.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use inodyne_analyse::statistics::verdict;
use inodyne_experiment::{Repetitions, is_below};
use inodyne_lab::DataSpec;
use inodyne_model::command::words;
use inodyne_model::run::CacheState;
use inodyne_model::study::Compare;
use toml::Spanned;

use super::expect::Expected;
use super::file::{self, File, Form, Quick, Text};
use super::inputs::Recipe;
use super::mistake::Mistake;
use super::part::{Command, Part};
use super::places::{self, Named};
use super::words::{Dictionary, instead, is_name};
use crate::options;

/// A study, ready to be run.
#[derive(Debug)]
pub struct Plan {
    pub title: String,
    pub about: String,
    pub margin: f64,
    /// The inputs that this form needs.
    pub inputs: Vec<Recipe>,
    pub parts: Vec<Part>,
    pub expectations: Vec<Expected>,
}

/// What is outside the file.
pub struct Surroundings<'a> {
    /// Where the file is; none for a built-in study.
    pub beside: Option<&'a Path>,
    /// Where inputs are kept.
    pub cache: &'a Path,
}

const DEFAULT_RUNS: u32 = 10;
const DEFAULT_TRACED: u32 = 1;

impl Plan {
    /// From the file, in one of its forms.
    ///
    /// # Errors
    /// All that is wrong, in the order of the file.
    pub fn new(file: &File, form: Form, surroundings: &Surroundings<'_>) -> Result<Plan, Vec<Mistake>> {
        let mut planner = Planner { file, form, mistakes: Vec::new(), used: BTreeSet::new() };
        let plan = planner.plan(surroundings);
        let Planner { mut mistakes, .. } = planner;
        mistakes.sort_by_key(Mistake::position);
        mistakes.dedup();
        if mistakes.is_empty() { Ok(plan) } else { Err(mistakes) }
    }

    /// How many runs there are.
    pub fn runs(&self) -> u64 {
        let of = |part: &Part| {
            let Repetitions { warmup, untraced, traced, .. } = part.repetitions;
            let cases = part.places.len() * part.commands.len() * part.caches.len();
            cases as u64 * [warmup, untraced, traced].map(u64::from).iter().sum::<u64>()
        };
        self.parts.iter().map(of).sum()
    }
}

/// A verdict takes so many pairs of runs, whatever the difference, and the more, the more is compared at once: with `until`, that many are made.
fn make_enough(parts: &mut [Part]) {
    let needed = verdict::pairs_needed(parts.iter().map(Part::comparisons).sum()) as u32;
    for Repetitions { untraced, .. } in
        parts.iter_mut().map(|part| &mut part.repetitions).filter(|of_part| of_part.until.is_some())
    {
        *untraced = needed.max(*untraced);
    }
}

/// A plan in the making, with what is wrong so far.
struct Planner<'f> {
    file: &'f File,
    form: Form,
    mistakes: Vec<Mistake>,
    /// Names of inputs that this form needs.
    used: BTreeSet<String>,
}

impl<'f> Planner<'f> {
    fn plan(&mut self, surroundings: &Surroundings<'_>) -> Plan {
        let file = self.file;
        let mut recipes = BTreeMap::new();
        for input in &file.inputs {
            let name = input.name.get_ref();
            if !is_name(name) || name == "inodyne" {
                self.wrong(&input.name, "an input's name is made of small letters, digits and dashes");
            }
            let recipe = Recipe::read(input, surroundings.beside);
            if let Some(recipe) = self.keep(recipe)
                && recipes.insert(name.as_str(), recipe).is_some()
            {
                self.wrong(&input.name, format_args!("there is an input '{name}' already"));
            }
        }
        let mut dictionary = Dictionary::default();
        let program = std::env::current_exe().unwrap_or_else(|_| "inodyne".into());
        dictionary.fixed.insert("inodyne", program.display().to_string());
        for (name, recipe) in &recipes {
            dictionary.fixed.insert(name, recipe.directory(surroundings.cache).display().to_string());
        }
        let of_parts = file.parts.iter().map(|part| &part.quick.values);
        for values in [&file.values, &file.quick.values].into_iter().chain(of_parts) {
            self.check_values(values, &recipes);
        }
        self.values(&mut dictionary, &file.values);
        if self.form == Form::Quick {
            self.values(&mut dictionary, &file.quick.values);
        }
        let mut parts = self.parts(&dictionary);
        make_enough(&mut parts);
        let margin = file.margin.as_ref().map(|margin| self.parse(margin, options::part));
        let expectations = self.expectations(&parts);
        Plan {
            title: file.title.clone(),
            about: file.about.split_whitespace().collect::<Vec<_>>().join(" "),
            margin: margin.flatten().unwrap_or(inodyne_model::comparison::DEFAULT_MARGIN),
            inputs: recipes
                .into_iter()
                .filter(|(name, _)| self.used.contains(*name))
                .map(|(_, recipe)| recipe)
                .collect(),
            parts,
            expectations,
        }
    }

    fn check_values(&mut self, values: &BTreeMap<String, Text>, recipes: &BTreeMap<&str, Recipe>) {
        for (name, value) in values {
            if !is_name(name) || name == "inodyne" || recipes.contains_key(name.as_str()) {
                self.wrong(
                    value,
                    format_args!(
                        "'{name}' cannot name a value: use small letters, digits and dashes, and no name of an input"
                    ),
                );
            }
        }
    }

    /// Adds values of the form at hand. What replaces a value must replace an existing one.
    fn values(&mut self, dictionary: &mut Dictionary<'f>, values: &'f BTreeMap<String, Text>) {
        let file = self.file;
        for (name, value) in values {
            if !file.values.contains_key(name) {
                self.wrong(value, format_args!("there is no value '{name}' that this could replace"));
            }
            dictionary.values.insert(name, value);
        }
    }

    fn parts(&mut self, dictionary: &Dictionary<'f>) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        if self.file.parts.is_empty() {
            self.mistakes.push(Mistake::at(0, "there is no [[part]]: nothing to measure"));
        }
        for part in &self.file.parts {
            let name = part.name.get_ref();
            self.check_name(&part.name);
            if parts.iter().any(|other| other.name == *name) {
                self.wrong(&part.name, format_args!("there is a part '{name}' already"));
            }
            let mut own = Dictionary { values: dictionary.values.clone(), fixed: dictionary.fixed.clone() };
            if self.form == Form::Quick {
                self.values(&mut own, &part.quick.values);
            }
            let planned = self.part(part, &own);
            parts.push(planned);
        }
        parts
    }

    fn part(&mut self, part: &'f file::Part, dictionary: &Dictionary<'_>) -> Part {
        let places = self.places(part, dictionary);
        let compares = places.len() > 1 && part.compare != Compare::Commands
            || part.commands.len() > 1 && part.compare != Compare::Places;
        let caches = self.caches(part, &places);
        let mut text = |text: &Option<Text>| text.as_ref().and_then(|text| self.put_in(text, dictionary));
        let [data, prepare, cleanup, cwd] = [&part.data, &part.prepare, &part.cleanup, &part.cwd].map(&mut text);
        let data = data.and_then(|data| {
            let parsed = data.get_ref().parse::<DataSpec>().map_err(|error| Mistake::of(&data, error));
            self.keep(parsed)
        });
        if (part.fresh || data.is_some()) && places.iter().any(|place| !place.is_made()) {
            let what = if part.fresh { "fresh" } else { "data" };
            self.wrong(&part.name, format_args!("{what} needs places that are made here, such as ext4"));
        }
        let cwd = cwd.map(|cwd| {
            let path = PathBuf::from(cwd.get_ref());
            if !is_below(&path) {
                self.wrong(&cwd, "cwd is a directory below the place");
            }
            path
        });
        let shell = |script: Option<Text>| script.map(|script| OsString::from(script.into_inner()));
        Part {
            name: part.name.get_ref().clone(),
            title: part.title.clone(),
            places,
            commands: self.commands(part, dictionary),
            data,
            caches,
            fresh: part.fresh,
            prepare: shell(prepare),
            cleanup: shell(cleanup),
            cwd,
            timeout: part.timeout.as_ref().and_then(|timeout| self.parse(timeout, options::time)),
            compare: part.compare,
            repetitions: self.repetitions(part, compares),
        }
    }

    /// What differs in the form at hand: for this part first, then for all.
    fn quick(&self, part: &'f file::Part) -> [Option<&'f Quick>; 2] {
        match self.form {
            Form::Full => [None, None],
            Form::Quick => [Some(&part.quick), Some(&self.file.quick)],
        }
    }

    fn repetitions(&mut self, part: &'f file::Part, compares: bool) -> Repetitions {
        let [own, all] = self.quick(part);
        fn first<'q, T>(quick: [Option<&'q Quick>; 2], of: fn(&'q Quick) -> Option<T>) -> Option<T> {
            quick.into_iter().flatten().find_map(of)
        }
        let quick = [own, all];
        let runs = first(quick, |quick| quick.runs.as_ref()).or(part.runs.as_ref());
        if let Some(runs) = runs.filter(|runs| *runs.get_ref() == 0) {
            self.wrong(runs, "runs must be 1 or more");
        }
        let until = first(quick, |quick| quick.until.as_ref()).or(part.until.as_ref());
        if let Some(until) = until.filter(|_| !compares) {
            self.wrong(until, "nothing is compared in this part, so there is no interval to make narrower");
        }
        let max_time = first(quick, |quick| quick.max_time.as_ref()).or(part.max_time.as_ref());
        Repetitions {
            warmup: first(quick, |quick| quick.warmup).or(part.warmup).unwrap_or(0),
            untraced: runs.map_or(DEFAULT_RUNS, |runs| *runs.get_ref()),
            traced: first(quick, |quick| quick.traced).or(part.traced).unwrap_or(DEFAULT_TRACED),
            until: until.and_then(|until| self.parse(until, options::part)),
            max_time: max_time.and_then(|time| self.parse(time, options::time)),
        }
    }

    fn places(&mut self, part: &'f file::Part, dictionary: &Dictionary<'_>) -> Vec<Named> {
        let quick = self.quick(part).into_iter().flatten().find_map(|quick| quick.places.as_ref());
        let names = quick.unwrap_or(&part.places);
        let all = places::all(&self.file.places, dictionary).unwrap_or_else(|mistakes| {
            self.mistakes.extend(mistakes);
            Vec::new()
        });
        if names.is_empty() {
            self.wrong(&part.name, "the part has no places");
        }
        let mut chosen: Vec<Named> = Vec::new();
        for name in names {
            if chosen.iter().any(|place| place.name == *name.get_ref()) {
                self.wrong(name, format_args!("'{}' is named twice", name.get_ref()));
            }
            match all.iter().find(|place| place.name == *name.get_ref()) {
                Some(place) => {
                    self.used.extend(place.used.iter().cloned());
                    chosen.push(place.clone());
                }
                // Those with mistakes have been reported already.
                None if self.file.places.iter().any(|place| place.name.get_ref() == name.get_ref()) => {}
                None => {
                    let there = places::there(&self.file.places);
                    self.wrong(name, format_args!("there is no place '{}': {there}", name.get_ref()));
                }
            }
        }
        chosen
    }

    fn caches(&mut self, part: &'f file::Part, places: &[Named]) -> Vec<CacheState> {
        let quick = self.quick(part).into_iter().flatten().find_map(|quick| quick.caches.as_ref());
        let caches = quick.unwrap_or(&part.caches);
        for (at, cache) in caches.iter().enumerate() {
            if caches[..at].iter().any(|other| other.get_ref() == cache.get_ref()) {
                self.wrong(cache, format_args!("'{}' is named twice", cache.get_ref()));
            }
            if let Some(place) = places.iter().find(|place| place.is_tmpfs() && *cache.get_ref() == CacheState::Cold) {
                self.wrong(cache, format_args!("{} is in memory and cannot be cold", place.name));
            }
        }
        if caches.is_empty() { vec![CacheState::AsIs] } else { caches.iter().map(|cache| *cache.get_ref()).collect() }
    }

    fn commands(&mut self, part: &'f file::Part, dictionary: &Dictionary<'_>) -> Vec<Command> {
        let mut commands: Vec<Command> = Vec::new();
        if part.commands.is_empty() {
            self.wrong(&part.name, "the part has no commands");
        }
        for command in &part.commands {
            let name = command.name.get_ref();
            self.check_name(&command.name);
            if commands.iter().any(|other| other.name == *name) {
                self.wrong(&command.name, format_args!("there is a command '{name}' already"));
            }
            let Some(run) = self.put_in(&command.run, dictionary) else { continue };
            let argv = words(run.get_ref()).ok_or_else(|| Mistake::of(&run, "a command is empty"));
            let Some(argv) = self.keep(argv) else { continue };
            let if_found = command.if_found.as_ref().map(|program| program.get_ref().clone());
            commands.push(Command { name: name.clone(), argv, if_found });
        }
        commands
    }

    fn expectations(&mut self, parts: &[Part]) -> Vec<Expected> {
        // What is missing would be reported again by every expectation that names it.
        if !self.mistakes.is_empty() {
            return Vec::new();
        }
        let mut all = Vec::new();
        let file = self.file;
        for expectation in &file.expectations {
            if expectation.only.is_none_or(|form| form == self.form) {
                let expected = Expected::new(expectation, parts);
                all.extend(self.keep(expected));
            }
        }
        all
    }

    fn put_in(&mut self, text: &Text, dictionary: &Dictionary<'_>) -> Option<Text> {
        let put_in = dictionary.put_in(text);
        let (done, used) = self.keep(put_in)?;
        self.used.extend(used);
        Some(instead(text, done))
    }

    /// Names appear in expectations, between brackets and commas.
    fn check_name(&mut self, name: &Text) {
        let text = name.get_ref();
        if text.trim().is_empty() || text.contains(|c: char| "[],=".contains(c) || c.is_control()) {
            self.wrong(name, format_args!("'{text}' is not a name: leave out [ ] , = and do not leave it empty"));
        }
    }

    fn parse<T>(&mut self, text: &Text, parse: fn(&str) -> Result<T, String>) -> Option<T> {
        let parsed =
            parse(text.get_ref()).map_err(|problem| Mistake::of(text, format_args!("'{}': {problem}", text.get_ref())));
        self.keep(parsed)
    }

    fn keep<T>(&mut self, result: Result<T, Mistake>) -> Option<T> {
        result.map_err(|mistake| self.mistakes.push(mistake)).ok()
    }

    fn wrong<T>(&mut self, at: &Spanned<T>, what: impl std::fmt::Display) {
        self.mistakes.push(Mistake::of(at, what));
    }
}
