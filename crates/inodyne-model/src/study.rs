//! A study: several questions measured one after the other and kept in one recording, with what was expected of them.
//!
//! A part has places and commands of its own in the recording, so runs of different parts are never compared.

use serde::{Deserialize, Serialize};

/// What makes a recording a study.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Study {
    /// Its name: that of its file without the extension.
    pub name: String,
    /// The question.
    pub title: String,
    /// Where the question comes from, and what to make of the answer.
    pub about: String,
    /// Whether it was measured in its quick form, with less data and fewer runs.
    pub quick: bool,
    /// The parts that were begun, in order.
    pub parts: Vec<Part>,
    /// What was expected of the result; empty where the study did not run to its end.
    pub expectations: Vec<Expectation>,
}

/// Places and commands that were measured together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// What it asks.
    pub title: String,
    /// Indices into the recording's places.
    pub places: Vec<usize>,
    /// Indices into the recording's commands.
    pub commands: Vec<usize>,
    /// What is compared with what.
    pub compare: Compare,
    /// What was left out of it, and why: one line each.
    pub left_out: Vec<String>,
}

/// What in a part is compared with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compare {
    /// Every place with the first, for each command.
    Places,
    /// Every command with the first, in each place.
    Commands,
    /// Both.
    #[default]
    Both,
}

/// Something that the result should say, and what it says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Expectation {
    /// In words; the expression where the study has none.
    pub says: String,
    /// What was looked at: an expression as in study files.
    pub what: String,
    /// What it should be.
    pub expected: String,
    /// What it is.
    pub seen: String,
    /// Whether that is as expected.
    pub held: bool,
}

impl Study {
    /// The part that a place belongs to.
    pub fn part_of_place(&self, place: usize) -> Option<&Part> {
        self.parts.iter().find(|part| part.places.contains(&place))
    }

    /// The expectations that do not hold.
    pub fn failed(&self) -> impl Iterator<Item = &Expectation> {
        self.expectations.iter().filter(|expectation| !expectation.held)
    }
}
