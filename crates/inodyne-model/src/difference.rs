//! Two recordings compared with each other: what the new one says that the old one did not.
//!
//! Cases of the same command, place and state of the caches are compared. Their counts are exact; their times were not measured
//! alternately, so a difference between them may be due to the machine. All of this is derived, and is in no recording.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::comparison::{Comparison, Interval, LedgerDifference};
use crate::gate::Gate;
use crate::run::CacheState;

/// What a machine-readable difference starts with.
pub const SCHEMA: &str = "inodyne-diff/1";

/// Something from the old recording and the same from the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Sides<T> {
    /// From the old recording.
    pub old: T,
    /// From the new recording.
    pub new: T,
}

impl<T> Sides<T> {
    /// The same of both.
    pub fn map<U>(self, of: impl Fn(T) -> U) -> Sides<U> {
        Sides { old: of(self.old), new: of(self.new) }
    }
}

impl<T: PartialEq> Sides<T> {
    /// Whether it is not the same in both.
    pub fn differ(&self) -> bool {
        self.old != self.new
    }
}

impl Sides<u64> {
    /// How much more the new recording has.
    pub fn change(&self) -> i64 {
        let change = i128::from(self.new) - i128::from(self.old);
        i64::try_from(change).unwrap_or(if change < 0 { i64::MIN } else { i64::MAX })
    }
}

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The old recording.
    Old,
    /// The new recording.
    New,
}

/// What comparing two recordings comes to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// What differs besides what was measured: the machine, the program.
    pub differs: Vec<Differing>,
    /// The cases that both have, in the order of the new recording.
    pub cases: Vec<CaseDifference>,
    /// The cases that only one of them has.
    pub unmatched: Vec<Unmatched>,
    /// What was not to get worse: the first gate for each of `cases`, in their order, then the next gate. Without cases, each gate once.
    pub gates: Vec<GateResult>,
}

impl Difference {
    /// Whether something got worse that was not to, or what a gate asks for was not measured.
    pub fn fails(&self) -> bool {
        self.gates.iter().any(|gate| gate.outcome.fails())
    }
}

/// Something that is not the same in both, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Differing {
    /// What it is: `kernel`.
    pub what: &'static str,
    /// What it was and what it is.
    #[serde(flatten)]
    pub sides: Sides<String>,
}

/// A case by the names that people use for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseName {
    /// The label of the command.
    pub command: String,
    /// The label of the place, or its path.
    pub place: String,
    /// State of the caches beforehand.
    pub cache: CacheState,
}

/// A case that only one of the two has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmatched {
    /// Which of them has it.
    pub only: Side,
    /// The case.
    #[serde(flatten)]
    pub case: CaseName,
}

/// A case that both have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseDifference {
    /// What it is called in the new recording.
    #[serde(flatten)]
    pub case: CaseName,
    /// What else differs: how the place was made, how the command was started, how it ended.
    pub differs: Vec<Differing>,
    /// What makes counts and times inexact, one sentence each: events that were lost, and ledgers that cannot be subtracted.
    pub inexact: Vec<String>,
    /// The wall-clock time, to the end and until everything was durable. `a` is the case in the old recording and `b` in the new one;
    /// the first run is paired with the first, and so on.
    pub times: Vec<Comparison>,
    /// Traced runs of each.
    pub traces: Sides<usize>,
    /// Their ledgers, subtracted. None without a trace of each, like everything that follows, and where they divide different things.
    pub ledger: Option<LedgerDifference>,
    /// All calls together.
    pub total: Option<Counts>,
    /// Each system call of either, largest change first. With several traces on a side, the median.
    pub calls: Vec<CallDifference>,
    /// Findings that most traces of one side have and those of the other do not.
    pub findings: Changed<FindingName>,
    /// The paths that were looked up, where both have them.
    pub paths: Option<PathsDifference>,
}

/// Calls, of one system call or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Calls that returned.
    pub calls: Sides<u64>,
    /// Calls that returned an error.
    pub errors: Sides<u64>,
    /// Bytes moved.
    pub bytes: Sides<u64>,
}

impl Counts {
    /// Whether any of these differ.
    pub fn differ(&self) -> bool {
        self.calls.differ() || self.errors.differ() || self.bytes.differ()
    }
}

/// One system call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallDifference {
    /// Its name.
    pub name: String,
    /// What was counted.
    #[serde(flatten)]
    pub counts: Counts,
    /// The errors by name.
    pub errors_by_errno: BTreeMap<String, Sides<u64>>,
}

impl CallDifference {
    /// Whether anything that was counted differs: also where as many calls failed, but for another reason.
    pub fn differs(&self) -> bool {
        self.counts.differ() || self.errors_by_errno.values().any(Sides::differ)
    }
}

/// What came and what went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed<T> {
    /// Only the new recording has it.
    pub new: Vec<T>,
    /// Only the old recording had it.
    pub gone: Vec<T>,
}

impl<T> Changed<T> {
    /// Whether nothing came or went.
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.gone.is_empty()
    }
}

impl<T> Default for Changed<T> {
    fn default() -> Changed<T> {
        Changed { new: Vec::new(), gone: Vec::new() }
    }
}

/// A finding, as it is reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FindingName {
    /// Its stable name.
    pub id: String,
    /// What it says.
    pub title: String,
}

/// Paths that were looked up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathsDifference {
    /// How many different ones.
    pub count: Sides<u64>,
    /// Look-ups of paths that found no room in the table: if there are any, there may be more paths than were counted. With several
    /// traces on a side, the median, as for the count.
    pub not_kept: Sides<u64>,
    /// Paths that no trace of the other side has, most calls first.
    #[serde(flatten)]
    pub changed: Changed<ChangedPath>,
}

/// A path that one side looked up and the other did not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedPath {
    /// The path, as it was given to the calls.
    pub path: String,
    /// How often, by all calls together; the highest of any trace.
    pub calls: u64,
    /// How often nothing was there.
    pub not_found: u64,
}

/// The outcome of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateOutcome {
    /// Nothing became worse than allowed.
    Held,
    /// Something did.
    Failed,
    /// The runs cannot tell.
    Undecided,
    /// What it asks for was not measured.
    NotMeasured,
}

impl GateOutcome {
    /// Whether whoever set the gate is to be stopped. A gate for which nothing was measured would otherwise hold forever.
    pub fn fails(self) -> bool {
        matches!(self, GateOutcome::Failed | GateOutcome::NotMeasured)
    }
}

/// A gate and a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GateResult {
    /// What must not become true.
    pub gate: Gate,
    /// For which case; none where the two recordings have none in common.
    pub case: Option<CaseName>,
    /// Its outcome.
    pub outcome: GateOutcome,
    /// The counts that decided; for a time, the medians in nanoseconds; for a finding, whether it is there.
    pub figures: Option<Sides<u64>>,
    /// For a time, the ratio with its interval, where that has two ends.
    pub ratio: Option<Interval>,
    /// Why it is not decided.
    pub reason: Option<String>,
}
