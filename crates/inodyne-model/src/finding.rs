//! A diagnosis: what is wrong, what it costs, what to change.

use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::comparison::LEAST_PAIRS;
use crate::cure::Cure;

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
    /// What was seen, one line each.
    pub evidence: Vec<String>,
    /// Calls that the cure would make unnecessary, where the finding is about calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub avoidable_calls: Option<u64>,
    /// The wall-clock time to expect with the cure.
    pub predicted: Prediction,
    /// What to do, one line each, the best first.
    pub cure: Vec<String>,
    /// What a program can do about it: one for each line in `cure`. None in older recordings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cures: Vec<Cure>,
    /// True where it only says what the limit is: what is predicted is then the best that could be had, not what a cure gains.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bound: bool,
    /// What a bound assumes where that is not what `cure` says, as in "if files took no time".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_if: Option<String>,
    /// What was measured once the cure was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proved: Option<Proof>,
}

/// A prediction of the wall-clock time, stated before the cure is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prediction {
    /// The time without the cure that it starts from: without tracing, as far as the cost of that is known.
    #[serde(default)]
    pub now_ns: Nanos,
    /// The most likely value.
    pub wall_ns: Nanos,
    /// The lower end of the interval.
    pub low_ns: Nanos,
    /// The upper end of the interval.
    pub high_ns: Nanos,
}

impl Finding {
    /// Below this fraction of the current time, a saving alone is not worth a change.
    pub const LEAST_SAVING: f64 = 0.05;

    /// Whether it answers where the time goes: by what a cure gains, or by what the limit is. Calls that need not be made are
    /// reported however little they cost, and then are no answer to that.
    pub fn is_an_answer(&self) -> bool {
        self.bound || self.predicted.saving() >= Finding::LEAST_SAVING
    }
}

impl Prediction {
    /// The fraction of the current time that goes away, 0.0 to 1.0.
    pub fn saving(&self) -> f64 {
        self.now_ns.saturating_sub(self.wall_ns).share_of(self.now_ns)
    }

    /// What a run that takes `wall` would take with the cure: less by the same fraction. A traced run takes longer than the current time.
    pub fn of(&self, wall: Nanos) -> Nanos {
        Nanos::rounded(wall.0 as f64 * (1.0 - self.saving()))
    }

    /// The fraction of the current time that will be saved: low, likely, high.
    pub fn savings(&self) -> [f64; 3] {
        let part = |wall: Nanos| 1.0 - wall.share_of(self.now_ns);
        [part(self.high_ns), part(self.wall_ns), part(self.low_ns)]
    }

    /// Whether the fraction saved lies in the interval if a run takes `ratio` times as long with the cure.
    pub fn allows(&self, ratio: f64) -> bool {
        let [low, _, high] = self.savings();
        (low..=high).contains(&(1.0 - ratio))
    }
}

/// In place of a score, where the recording is no basis for a prediction ([`Trace::doubts`](crate::trace::Trace::doubts)).
pub const NOTHING_PREDICTED: &str = "nothing was predicted";

/// What a trial says about a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Score {
    /// What was saved is what was predicted.
    AsPredicted,
    /// So far it is, but there are too few pairs for an interval.
    AsPredictedSoFar,
    /// It may or may not be: what was measured lies outside the predicted interval, but its own interval reaches into that one.
    Undecided,
    /// So far it is not, but there are too few pairs for an interval.
    TooFewPairs,
    /// The two intervals have nothing in common.
    Otherwise,
}

impl Score {
    /// What the ratio of the times of this many pairs (with the cure over without it) and its interval say about a prediction. A ratio
    /// without an interval refutes nothing.
    pub fn of(predicted: &Prediction, pairs: usize, ratio: f64, interval: [f64; 2]) -> Score {
        let [low, _, high] = predicted.savings();
        let [most, least] = interval.map(|ratio| 1.0 - ratio);
        match (predicted.allows(ratio), pairs >= LEAST_PAIRS) {
            (true, true) => Score::AsPredicted,
            (true, false) => Score::AsPredictedSoFar,
            (false, false) => Score::TooFewPairs,
            (false, true) if least <= high && most >= low => Score::Undecided,
            (false, true) => Score::Otherwise,
        }
    }

    /// As it is worded in reports.
    pub fn words(self) -> &'static str {
        match self {
            Score::AsPredicted => "as predicted",
            Score::AsPredictedSoFar => "as predicted so far",
            Score::Undecided => "not decided, the runs vary too much",
            Score::TooFewPairs => "not decided, there are too few pairs",
            Score::Otherwise => "not as predicted",
        }
    }
}

/// The score of a prediction: the cure was tried, alternating with the original.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// What was done, in words.
    pub how: String,
    /// How many pairs of runs were measured.
    pub pairs: u32,
    /// Median of the wall-clock times without the cure, measured beside it: the machine may be faster or slower than it was
    /// when the recording was made.
    pub base_ns: Nanos,
    /// Median of the wall-clock times with the cure.
    pub wall_ns: Nanos,
    /// Median of the ratios of the pairs, with over without.
    pub ratio: f64,
    /// Lower end of its 95% interval; the same as `ratio` where there are too few pairs.
    pub ci_low: f64,
    /// Upper end of it.
    pub ci_high: f64,
    /// Whether the fraction saved, 1 − ratio, lies in the predicted interval.
    pub within: bool,
}

impl Proof {
    /// What it says about this prediction, the one that it was made for.
    pub fn score(&self, predicted: &Prediction) -> Score {
        Score::of(predicted, self.pairs as usize, self.ratio, [self.ci_low, self.ci_high])
    }

    /// The 95% interval of the ratio, where there are enough pairs for one.
    pub fn interval(&self) -> Option<(f64, f64)> {
        (self.pairs as usize >= LEAST_PAIRS).then_some((self.ci_low, self.ci_high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_is_refuted_only_where_the_measured_interval_lies_outside_of_it() {
        let predicted =
            Prediction { now_ns: Nanos(1_000), wall_ns: Nanos(400), low_ns: Nanos(300), high_ns: Nanos(500) };
        let score_of = |pairs, ci_low, ratio, ci_high| {
            let within = (0.3..=0.5).contains(&ratio);
            let proof = Proof {
                how: String::new(),
                pairs,
                base_ns: Nanos(1_000),
                wall_ns: Nanos::rounded(1_000.0 * ratio),
                ratio,
                ci_low,
                ci_high,
                within,
            };
            assert_eq!(proof.interval().is_some(), pairs >= 6);
            proof.score(&predicted)
        };
        let score = |ci_low, ratio, ci_high| score_of(6, ci_low, ratio, ci_high);
        assert_eq!(score(0.2, 0.4, 0.9), Score::AsPredicted);
        assert_eq!(score(0.45, 0.6, 0.7), Score::Undecided);
        assert_eq!(score(0.1, 0.2, 0.35), Score::Undecided);
        assert_eq!(score(0.55, 0.6, 0.7), Score::Otherwise);
        assert_eq!(score(0.1, 0.2, 0.25), Score::Otherwise);
        // A single pair has no interval that could lie outside of it.
        assert_eq!(
            [0.2, 0.4, 0.6].map(|ratio| score_of(1, ratio, ratio, ratio)),
            [Score::TooFewPairs, Score::AsPredictedSoFar, Score::TooFewPairs]
        );
        assert_eq!(score_of(5, 0.55, 0.6, 0.7), Score::TooFewPairs);
    }
}
