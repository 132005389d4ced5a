//! What many runs of the same case say: how they spread, and what about them asks for a second look.
//!
//! Nothing here removes a run. An outlier is marked, a trend is stated; the median stays the median of all runs.

use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::case::CaseKey;
use crate::histogram::Bucket;

/// The untraced runs of one case, and its calls over the traced ones. Derived.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStatistics {
    /// Which case.
    #[serde(flatten)]
    pub case: CaseKey,
    /// How many of the runs did not succeed. They are part of everything that follows.
    pub failed: usize,
    /// Wall-clock time of the untraced runs, to their end.
    pub wall: Spread,
    /// Lower end of the 95% interval of the median. None with fewer than six runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_low_ns: Option<Nanos>,
    /// Upper end of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_high_ns: Option<Nanos>,
    /// Runs far from the middle: indices into the recording's runs.
    pub outliers: Vec<usize>,
    /// Each run slower (or faster) than the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trend: Option<Trend>,
    /// From one run on, everything is slower (or faster).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_point: Option<ChangePoint>,
    /// The runs fall into two groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modes: Option<Modes>,
    /// The same for the times until everything was durable, where these were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable: Option<Times>,
    /// Each system call's wall-clock time in a run, over the traced runs; where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallSpread>,
}

impl RunStatistics {
    /// The 95% interval of the median, where there is one.
    pub fn median_interval(&self) -> Option<(Nanos, Nanos)> {
        self.median_low_ns.zip(self.median_high_ns)
    }

    /// What is known about the times to the end, in the same form as those to durable.
    pub fn to_exit(&self) -> Times {
        let (spread, outliers) = (self.wall.clone(), self.outliers.clone());
        Times { spread, outliers, trend: self.trend, change_point: self.change_point, modes: self.modes }
    }
}

/// Times of runs, in their order: how they spread, and what asks for a second look. As in [`RunStatistics`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Times {
    /// How they spread.
    pub spread: Spread,
    /// Runs far from the middle: indices into the recording's runs.
    pub outliers: Vec<usize>,
    /// Each run slower (or faster) than the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trend: Option<Trend>,
    /// From one run on, everything is slower (or faster).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_point: Option<ChangePoint>,
    /// The runs fall into two groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modes: Option<Modes>,
}

/// How values spread.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spread {
    /// How many values.
    pub n: usize,
    /// The smallest.
    pub min_ns: Nanos,
    /// The average.
    pub mean_ns: Nanos,
    /// The middle.
    pub median_ns: Nanos,
    /// The largest.
    pub max_ns: Nanos,
    /// Standard deviation, estimated from the values (with n - 1). Zero for one value.
    pub sd_ns: Nanos,
    /// Buckets of equal width from the smallest to the largest, empty ones included.
    pub histogram: Vec<Bucket>,
}

/// One system call over several traced runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSpread {
    /// Its name.
    pub name: String,
    /// The sum of its calls in a run.
    pub wall: Spread,
}

/// A straight line through the runs in chronological order.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// How much slower each run is than the one before; below zero: faster.
    pub slope_ns_per_run: f64,
    /// From the first to the last run, as a fraction of the median.
    pub change: f64,
    /// How likely such a line is if the order means nothing.
    pub p: f64,
}

/// A step in the times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ChangePoint {
    /// The first run after the step: index into the recording's runs.
    pub run: usize,
    /// Median before.
    pub before_ns: Nanos,
    /// Median from there on.
    pub after_ns: Nanos,
    /// How likely such a step is if the order means nothing.
    pub p: f64,
}

/// Two groups with a gap between them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Modes {
    /// Median of the lower group.
    pub low_ns: Nanos,
    /// Median of the upper group.
    pub high_ns: Nanos,
    /// How many of the runs are in the upper group.
    pub high_runs: usize,
    /// Distance of the groups' means in standard deviations within the groups.
    pub separation: f64,
}
