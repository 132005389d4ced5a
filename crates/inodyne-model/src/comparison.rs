//! What comparing two cases says: is B slower than A, by how much, is that real, and where does the difference lie?
//!
//! A [case](crate::case) is a command in a place in a state of the caches. `a` is always the base, `b` what is compared with it; a
//! ratio is `b / a`, so above 1 `b` is slower. All of this is derived: `inodyne_analyse::explain` computes it anew.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::case::CasePair;
use crate::cause::Cause;
use crate::ledger::{RowKind, View};
use crate::metric::Metric;
use crate::trace::Trace;

/// Differences below this part are called none, unless the recording says otherwise: 2%.
pub const DEFAULT_MARGIN: f64 = 0.02;

/// With fewer pairs no outcome is rare enough (five pairs all going one way has a probability of 6%), and intervals are too
/// narrow to be shown.
pub const LEAST_PAIRS: usize = 6;

/// One quantity of two cases, compared pair by pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Which two cases.
    #[serde(flatten)]
    pub cases: CasePair,
    /// What was compared.
    pub metric: Metric,
    /// Whether the values come from traced runs.
    pub traced: bool,
    /// Pairs of runs from the same block (of traced runs: in the order in which they were made).
    pub pairs: usize,
    /// How many of the paired runs did not succeed. They are kept; if there are any, there is no verdict.
    pub failed: usize,
    /// Median of `a`.
    pub a_median_ns: Nanos,
    /// Median of `b`.
    pub b_median_ns: Nanos,
    /// The median of the pairs' ratios `b / a`. None with fewer than two pairs, or where `a` is zero.
    pub ratio: Option<f64>,
    /// Lower end of its 95% interval.
    pub ci_low: Option<f64>,
    /// Upper end of its 95% interval. Also none where there is no upper end because `a` is zero in some pairs.
    pub ci_high: Option<f64>,
    /// The ratio of the medians. The verdict is about `ratio`, in which what slows a whole block cancels out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_of_medians: Option<Interval>,
    /// The ratio of the means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_of_means: Option<Interval>,
    /// How likely such pairs are if there is no difference (two-sided).
    pub p: f64,
    /// The same, corrected for everything else that was compared alongside.
    pub p_corrected: f64,
    /// The part below which a difference counts as none.
    pub margin: f64,
    /// How many pairs it takes for a decision to be possible at all, given what it is corrected for; 0 where that is not known.
    #[serde(default)]
    pub needs_pairs: usize,
    /// What it comes to.
    pub verdict: Verdict,
}

/// A value and its 95% interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// What a comparison comes to, seen from `b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// `b` takes less time than `a`.
    Faster,
    /// `b` takes more time than `a`.
    Slower,
    /// The whole interval lies within the margin: a difference as large as the margin is excluded.
    NoDifference,
    /// Neither a difference nor its absence is shown.
    NotEnoughRuns,
    /// Runs failed, so what their times mean is not known.
    Withheld,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NoDifference => "no difference",
            Verdict::NotEnoughRuns => "not enough runs",
            Verdict::Withheld => "withheld",
        })
    }
}

/// Why the ledgers of these traces cannot be subtracted from each other: they divide different things. None where they can. For a
/// single thread, the critical path is everything it did.
pub fn unlike_ledgers<'a>(traces: impl IntoIterator<Item = &'a Trace>) -> Option<String> {
    let view = |trace: &Trace| match trace.ledger.view {
        View::RootThread if trace.threads.len() <= 1 => View::CriticalPath,
        view => view,
    };
    let (mut views, mut divides) = (BTreeSet::new(), BTreeSet::new());
    for trace in traces {
        views.insert(view(trace));
        divides.insert(trace.tracer.divides_calls());
    }
    if divides.len() > 1 {
        return Some("the ledgers are not subtracted: a log does not say what a call did, as the others do".to_owned());
    }
    let words: Vec<&str> = views.iter().rev().map(|view| view.words()).collect();
    let is_mixed = words.len() > 1;
    is_mixed.then(|| format!("the ledgers are not subtracted: some divide {}", words.join(", others ")))
}

/// Two ledgers subtracted row by row: where the difference comes from. The rows sum to the difference in wall time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerDifference {
    /// Which two cases.
    #[serde(flatten)]
    pub cases: CasePair,
    /// Pairs of traces that were subtracted; the times are means over them.
    pub pairs: usize,
    /// What the ledgers divide.
    #[serde(default)]
    pub view: View,
    /// The whole of `a`: its wall-clock time; for [`View::Window`], the time of all threads together.
    pub a_wall_ns: Nanos,
    /// The whole of `b`.
    pub b_wall_ns: Nanos,
    /// The rows of either ledger, largest difference first.
    pub rows: Vec<RowDifference>,
}

/// One row of two ledgers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowDifference {
    /// What the time was.
    pub kind: RowKind,
    /// As in a ledger's row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscall: Option<String>,
    /// As in a ledger's row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Mean time in `a`.
    pub a_ns: Nanos,
    /// Mean time in `b`.
    pub b_ns: Nanos,
    /// `b - a`; below zero where `b` spends less.
    pub difference_ns: i64,
    /// Lower end of its 95% interval, with several traces of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_ns: Option<i64>,
    /// Upper end of its 95% interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_ns: Option<i64>,
}
