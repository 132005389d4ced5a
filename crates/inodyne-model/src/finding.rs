//! A diagnosis: what is wrong, what it costs, what to change.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// One diagnosis about one traced run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Its stable name (`dtype-missing`); `docs/findings/ID.md` explains it.
    pub id: String,
    /// One line that says what is wrong and what it costs.
    pub title: String,
    /// Index into the recording's places.
    pub place: usize,
    /// Index into the recording's commands.
    pub command: usize,
    /// Index into the recording's traces: the evidence.
    pub trace: usize,
    /// The part of the wall-clock time that it concerns, 0.0 to 1.0.
    pub share_of_wall: f64,
    /// What was seen, a line each.
    pub evidence: Vec<String>,
    /// Calls that the cure would make unnecessary, where the finding is about calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub avoidable_calls: Option<u64>,
    /// The wall-clock time to expect once cured.
    pub predicted: Prediction,
    /// What to do, a line each, the best first.
    pub cure: Vec<String>,
    /// What was measured once the cure was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proved: Option<Proof>,
}

/// A prediction of the wall-clock time, stated before the cure is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prediction {
    /// The most likely value.
    pub wall_ns: Nanos,
    /// The lower end of the interval.
    pub low_ns: Nanos,
    /// The upper end of the interval.
    pub high_ns: Nanos,
}

/// The score of a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The measured wall-clock time with the cure.
    pub wall_ns: Nanos,
    /// Whether it lies in the predicted interval.
    pub within: bool,
}
