//! What expectations can look at: the lists of a recording, their fields, and the keys that select elements. FORMAT.md says what each means.

use super::path::{Path, Step};

/// What is at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Things: how many there are is what counts.
    Count,
    /// Numbers.
    Number,
    /// Words.
    Word,
}

/// A list of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    Findings,
    Comparisons,
    Statistics,
    Traces,
    Runs,
    LedgerDifferences,
}

const CASE: &[&str] = &["part", "place", "command", "cache"];
const CASE_PAIR: &[&str] = &["part", "place", "command", "cache", "a.place", "b.place", "a.command", "b.command"];

impl Root {
    pub const ALL: [(&'static str, Root); 6] = [
        ("findings", Root::Findings),
        ("comparisons", Root::Comparisons),
        ("statistics", Root::Statistics),
        ("traces", Root::Traces),
        ("runs", Root::Runs),
        ("ledger_differences", Root::LedgerDifferences),
    ];

    /// The key that selects its elements, besides [`Root::keys`].
    pub fn own_key(self) -> Option<&'static str> {
        match self {
            Root::Findings => Some("id"),
            Root::Comparisons => Some("metric"),
            Root::Runs => Some("traced"),
            Root::Statistics | Root::Traces | Root::LedgerDifferences => None,
        }
    }

    /// Which of the study's names select its elements.
    pub fn keys(self) -> &'static [&'static str] {
        if self.is_of_case_pairs() { CASE_PAIR } else { CASE }
    }

    /// Whether its elements are about two cases.
    pub fn is_of_case_pairs(self) -> bool {
        matches!(self, Root::Comparisons | Root::LedgerDifferences)
    }

    /// Whether it is empty without traced runs.
    pub fn needs_traces(self) -> bool {
        matches!(self, Root::Findings | Root::Traces | Root::LedgerDifferences)
    }
}

/// Things with their own selectors: where they are, and which of their fields select them.
const LISTS: [(&str, &[&str]); 8] = [
    ("statistics.trend", &[]),
    ("statistics.change_point", &[]),
    ("statistics.modes", &[]),
    ("statistics.calls", &["name"]),
    ("traces.syscalls", &["name"]),
    ("traces.ledger.rows", &["kind", "syscall", "cause"]),
    ("traces.dtype.forced", &["syscall"]),
    ("ledger_differences.rows", &["kind", "syscall", "cause"]),
];

/// Fields, by what they belong to.
const NUMBERS: [(&str, &[&str]); 17] = [
    ("findings", &["share_of_wall", "avoidable_calls"]),
    ("findings.predicted", &["now_ns", "wall_ns", "low_ns", "high_ns"]),
    (
        "comparisons",
        &["pairs", "failed", "a_median_ns", "b_median_ns", "ratio", "ci_low", "ci_high", "p", "p_corrected"],
    ),
    ("statistics", &["failed"]),
    ("statistics.wall", &["n", "min_ns", "mean_ns", "median_ns", "max_ns", "sd_ns"]),
    ("statistics.trend", &["slope_ns_per_run", "change", "p"]),
    ("statistics.change_point", &["before_ns", "after_ns", "p"]),
    ("statistics.modes", &["low_ns", "high_ns", "high_runs", "separation"]),
    ("statistics.calls.wall", &["n", "min_ns", "mean_ns", "median_ns", "max_ns", "sd_ns"]),
    ("traces", &["wall_ns"]),
    (
        "traces.syscalls",
        &[
            "calls",
            "errors",
            "failed_ns",
            "bytes",
            "wall_ns",
            "cpu_ns",
            "runqueue_ns",
            "blocked_ns",
            "min_ns",
            "max_ns",
            "p50_ns",
            "p90_ns",
            "p99_ns",
        ],
    ),
    ("traces.ledger", &["wall_ns", "unexplained_ns"]),
    ("traces.ledger.rows", &["ns", "count"]),
    ("traces.dtype", &["reads", "entries", "unknown"]),
    ("traces.dtype.forced", &["calls", "wall_ns", "cpu_ns", "blocked_ns"]),
    (
        "runs",
        &[
            "wall_ns",
            "user_ns",
            "sys_ns",
            "voluntary_switches",
            "involuntary_switches",
            "major_faults",
            "minor_faults",
            "max_rss_bytes",
            "device_read_bytes",
            "device_write_bytes",
        ],
    ),
    ("ledger_differences.rows", &["a_ns", "b_ns", "difference_ns", "low_ns", "high_ns"]),
];

/// The full names of all fields that are numbers.
pub fn numbers() -> impl Iterator<Item = String> {
    NUMBERS.iter().flat_map(|(of, fields)| fields.iter().map(move |field| format!("{of}.{field}")))
}

/// The only field whose value is a word that means something.
const VERDICT: &str = "comparisons.verdict";

/// Where a path begins, and what is at its end.
pub fn look_up(path: &Path) -> Result<(Root, Kind), String> {
    let known = Root::ALL.into_iter().find(|(name, _)| *name == path.root.field);
    let (_, root) = known.ok_or_else(|| {
        let names = Root::ALL.map(|(name, _)| name);
        format!("'{}' is not a list of a recording: there are {}", path.root.field, names.join(", "))
    })?;
    let keys: Vec<&str> = root.keys().iter().copied().chain(root.own_key()).collect();
    check_keys(&path.root, &keys)?;
    let mut name = path.root.field.clone();
    for step in &path.steps {
        name = format!("{name}.{}", step.field);
        let keys = LISTS.iter().find(|(list, _)| *list == name).map_or(&[][..], |(_, keys)| keys);
        check_keys(step, keys)?;
    }
    let kind = match name.as_str() {
        VERDICT => Kind::Word,
        _ if path.steps.is_empty() || LISTS.iter().any(|(list, _)| *list == name) => Kind::Count,
        _ if numbers().any(|known| known == name) => Kind::Number,
        _ => return Err(format!("there is no {name}: there are {}", beside(&name).join(", "))),
    };
    Ok((root, kind))
}

fn check_keys(step: &Step, keys: &[&str]) -> Result<(), String> {
    for (key, _) in &step.select {
        if keys.is_empty() {
            return Err(format!("'{}' takes no [{key}=…]", step.field));
        }
        if !keys.contains(&key.as_str()) {
            return Err(format!("nothing in '{}' is taken by '{key}': there are {}", step.field, keys.join(", ")));
        }
    }
    Ok(())
}

/// What there is near a name that does not exist.
fn beside(name: &str) -> Vec<String> {
    let all: Vec<String> =
        LISTS.iter().map(|(list, _)| (*list).to_owned()).chain(numbers()).chain([VERDICT.to_owned()]).collect();
    let mut of = name;
    while let Some((shorter, _)) = of.rsplit_once('.') {
        of = shorter;
        let beside: Vec<String> = all
            .iter()
            .filter(|known| known.strip_prefix(of).is_some_and(|rest| rest.starts_with('.')))
            .cloned()
            .collect();
        if !beside.is_empty() {
            return beside;
        }
    }
    all
}
