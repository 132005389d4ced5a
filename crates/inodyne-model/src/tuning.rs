//! A tuning: which settings were tried to make a command faster at a place, and what each came to.
//!
//! Settings are first screened, and dropped as soon as they show no gain; those that look better are measured again, on fresh runs
//! against the base. What a tuning says about them is here; its runs are in the recording.

use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::run::Run;

/// What makes a recording a tuning.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Tuning {
    /// What was to be improved.
    pub objective: Objective,
    /// The shell command that read a number from what the command printed, where that was to be improved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    /// Where it was tried, as described by the user.
    pub place: String,
    /// The command.
    pub command: String,
    /// What was tried, in the order in which it came up; combinations last.
    pub tried: Vec<Tried>,
    /// What to take: an index into `tried`. None where nothing helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<usize>,
    /// False where it ended early: because of the user, its time limit, or a failure.
    pub complete: bool,
}

/// What was to be improved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// The time until the command ends.
    #[default]
    Exit,
    /// The time until everything that it wrote is on the device.
    Durable,
    /// A number that the command prints: the lower, the better.
    Lowest,
    /// A number that the command prints: the higher, the better.
    Highest,
}

impl Objective {
    /// Whether it is a number that the command prints.
    pub fn is_number(self) -> bool {
        matches!(self, Objective::Lowest | Objective::Highest)
    }

    /// The time of a run that it is about: to durable, or to exit. None where that was not measured.
    pub fn time(self, run: &Run) -> Option<Nanos> {
        match self {
            Objective::Durable => run.durable_ns,
            _ => Some(run.wall_ns),
        }
    }

    /// What is to become smaller: a time in nanoseconds, the number, or its inverse. None where it was not measured.
    pub fn cost(self, run: &Run) -> Option<f64> {
        match self {
            Objective::Exit | Objective::Durable => self.time(run).map(|time| time.0 as f64),
            Objective::Lowest => run.number,
            Objective::Highest => run.number.map(f64::recip),
        }
    }

    /// A ratio of costs as a ratio of what is shown: times, or numbers.
    pub fn shown(self, ratio: f64) -> f64 {
        if self == Objective::Highest { ratio.recip() } else { ratio }
    }
}

/// A setting, or several at once, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// What was set.
    pub settings: Vec<Set>,
    /// What it came to.
    pub verdict: TuneVerdict,
    /// What was refused, or went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Against the base while it was screened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screened: Option<Measured>,
    /// Against the base on fresh runs, for those that looked better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<Measured>,
}

/// A setting with its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set {
    /// The setting's name on the command line.
    pub name: String,
    /// As somebody would write it: `commit=60`, `-J size=64`.
    pub written: String,
    /// What it risks.
    pub risk: Risk,
    /// The finding whose cure it is, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// What to write where, to make it permanent.
    pub permanent: String,
}

/// What a setting risks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// Nothing but a change in speed.
    #[default]
    None,
    /// Something that may be missed one day.
    Safety,
    /// Who may see or do what, where files come from people who are not trusted.
    Security,
    /// More is lost in a crash.
    Durability,
}

impl Risk {
    /// In a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Risk::None => "none",
            Risk::Safety => "safety",
            Risk::Security => "security",
            Risk::Durability => "durability",
        }
    }
}

/// What a setting came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TuneVerdict {
    /// Faster on fresh runs too, by more than the margin, corrected for everything that was confirmed.
    Helps,
    /// It looked better, but fresh runs do not show that it is.
    NotConfirmed,
    /// It looked better too, but more promising ones were confirmed.
    NotPursued,
    /// It showed no gain and was dropped.
    NoGain,
    /// The command ended differently with it.
    Failed,
    /// The kernel or mkfs refused it.
    Refused,
    /// The tuning ended first.
    NotTried,
}

impl TuneVerdict {
    /// In a few words.
    pub fn as_str(self) -> &'static str {
        match self {
            TuneVerdict::Helps => "helps",
            TuneVerdict::NotConfirmed => "not confirmed",
            TuneVerdict::NotPursued => "not pursued",
            TuneVerdict::NoGain => "no gain",
            TuneVerdict::Failed => "failed",
            TuneVerdict::Refused => "refused",
            TuneVerdict::NotTried => "not tried",
        }
    }
}

/// Runs with a setting against runs of the base in the same blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Pairs of runs.
    pub pairs: usize,
    /// Median time of the base.
    pub base_ns: Nanos,
    /// Median time with the setting.
    pub wall_ns: Nanos,
    /// Median of the base's numbers, where a number is to be improved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_number: Option<f64>,
    /// Median of the numbers with the setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<f64>,
    /// The median of the pairs' ratios; below 1 the setting is better. For times and lowest numbers, the value with the setting over
    /// that of the base; for highest ones, that of the base over the value with the setting.
    pub ratio: f64,
    /// Lower end of its 95% interval. None with too few pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci_low: Option<f64>,
    /// Upper end of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci_high: Option<f64>,
    /// How likely such pairs are if there is no difference, corrected for what was confirmed alongside; uncorrected while screened.
    pub p: f64,
}

impl Tried {
    /// Everything that was set, as somebody would write it: `commit=60 and noatime`.
    pub fn written(&self) -> String {
        self.settings.iter().map(|set| set.written.as_str()).collect::<Vec<_>>().join(" and ")
    }

    /// The greatest risk of what was set.
    pub fn risk(&self) -> Risk {
        self.settings.iter().map(|set| set.risk).max().unwrap_or_default()
    }
}

impl Measured {
    /// The 95% interval, where there is one.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.ci_low.zip(self.ci_high)
    }
}
