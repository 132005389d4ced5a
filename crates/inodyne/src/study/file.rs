//! The shape of a study's file: TOML, nothing looked up yet. `studies/study.schema.json` says the same to editors.
//!
//! Values that can be wrong in themselves know where they are (`Spanned`), so that a mistake is reported with its line.

use std::collections::BTreeMap;

use inodyne_model::run::CacheState;
use inodyne_model::study::Compare;
use serde::Deserialize;
use toml::Spanned;

use super::mistake::Mistake;

/// A text with its place in the file.
pub type Text = Spanned<String>;

/// A whole study.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The question, in a line.
    pub title: String,
    /// Where it comes from, and what to make of the answer.
    #[serde(default)]
    pub about: String,
    /// Differences below this part count as none: `2%`.
    pub margin: Option<Text>,
    /// Words that stand for others: `{name}` in any text below.
    #[serde(default)]
    pub values: BTreeMap<String, Text>,
    /// Files that have to be made or fetched first.
    #[serde(default, rename = "input")]
    pub inputs: Vec<Input>,
    #[serde(rename = "place")]
    pub places: Vec<Place>,
    #[serde(rename = "part")]
    pub parts: Vec<Part>,
    /// What differs in the quick form, in all parts.
    #[serde(default)]
    pub quick: Quick,
    #[serde(default, rename = "expect")]
    pub expectations: Vec<Expect>,
}

/// Files that a script makes once, in a directory of the user's cache. `{name}` is that directory.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    pub name: Text,
    /// A shell script, beside the study or built in. It runs in the directory to fill.
    pub script: Text,
    /// Files that the script finds there.
    #[serde(default)]
    pub files: Vec<Text>,
}

/// A place that parts can name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    pub name: Text,
    /// As `--at` takes it.
    pub at: Text,
    /// What an overlay lies over or a bind mount shows: the name of another place, of which it gets its own instance.
    pub over: Option<Text>,
    /// Files under /sys and /proc/sys, and what to write into them for as long as the place exists.
    #[serde(default)]
    pub settings: BTreeMap<String, Text>,
}

/// What is measured together: every command in every place, in each state of the caches.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    pub name: Text,
    #[serde(default)]
    pub title: String,
    pub places: Vec<Text>,
    pub commands: Vec<Command>,
    /// As `--data` takes it.
    pub data: Option<Text>,
    #[serde(default)]
    pub caches: Vec<Spanned<CacheState>>,
    /// Make and fill the place anew before each run.
    #[serde(default)]
    pub fresh: bool,
    pub prepare: Option<Text>,
    pub cleanup: Option<Text>,
    /// Where commands start, below the place.
    pub cwd: Option<Text>,
    pub timeout: Option<Text>,
    #[serde(default)]
    pub compare: Compare,
    pub runs: Option<Spanned<u32>>,
    pub traced: Option<u32>,
    pub warmup: Option<u32>,
    pub until: Option<Text>,
    pub max_time: Option<Text>,
    #[serde(default)]
    pub quick: Quick,
}

/// A command of a part.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    pub name: Text,
    pub run: Text,
    /// Leave it out where this program is not installed.
    pub if_found: Option<Text>,
}

/// What differs in the quick form.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quick {
    #[serde(default)]
    pub values: BTreeMap<String, Text>,
    pub places: Option<Vec<Text>>,
    pub caches: Option<Vec<Spanned<CacheState>>>,
    pub runs: Option<Spanned<u32>>,
    pub traced: Option<u32>,
    pub warmup: Option<u32>,
    pub until: Option<Text>,
    pub max_time: Option<Text>,
}

/// Something that the result should say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The same in words.
    pub says: Option<String>,
    /// What to look at in the JSON of the result.
    pub what: Text,
    /// Divide by this.
    pub per: Option<Text>,
    /// What to make of several numbers.
    pub take: Option<Spanned<Take>>,
    /// Any of these words.
    pub is: Option<Spanned<Words>>,
    pub min: Option<Spanned<f64>>,
    pub max: Option<Spanned<f64>>,
    /// Only in this form of the study.
    pub only: Option<Form>,
}

/// What to make of several numbers, instead of looking at each, or at their sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Take {
    /// The one in the middle: what fewer than half of the runs saw does not matter.
    Median,
}

/// One word, or several of which any will do.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "a word, or a list of words")]
pub enum Words {
    One(String),
    Any(Vec<String>),
}

impl Words {
    pub fn all(&self) -> &[String] {
        match self {
            Words::One(word) => std::slice::from_ref(word),
            Words::Any(words) => words,
        }
    }
}

/// Which form of a study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    Full,
    Quick,
}

/// Reads a study's text.
pub fn read(text: &str) -> Result<File, Mistake> {
    toml::from_str(text).map_err(|error| Mistake::of_toml(&error))
}
