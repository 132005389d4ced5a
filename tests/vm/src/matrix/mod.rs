//! The matrix: the checks of `checks.toml` on the kernels of `kernels.toml`.
//!
//! What came of each kernel is kept in the cache as JSON, so that one kernel may be tried again and the page
//! (`docs/kernels.md`) still shows all.

mod page;
mod suite;
mod toolchain;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

pub use page::page;
pub use suite::Suite;

use crate::failure::Failure;
use crate::kernel::{self, Entry};
use crate::vm::{Ended, Task, Vm};
use crate::wire::Status;

const LIST: &str = include_str!("../../checks.toml");

/// A line of `checks.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// One word.
    pub name: String,
    /// The column.
    pub title: String,
    /// Lines for a shell in the guest.
    pub run: String,
    /// Killed after so many seconds.
    #[serde(default = "five_minutes")]
    pub seconds: u64,
    /// Whether it belongs to the short matrix.
    #[serde(default)]
    pub short: bool,
    /// Whether it is for the kernels that are not supported, and for these only.
    #[serde(default)]
    pub refusal: bool,
}

fn five_minutes() -> u64 {
    300
}

/// All checks, in order.
#[must_use]
pub fn checks() -> Vec<Check> {
    #[derive(Deserialize)]
    struct List {
        check: Vec<Check>,
    }
    let list: List = toml::from_str(LIST).expect("checks.toml is well-formed");
    list.check
}

/// What came of one check.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// Its name.
    pub check: String,
    /// Whether it passed.
    pub passed: bool,
    /// The last line that it printed.
    pub note: String,
    /// Where it failed: the last line of its standard error, or how it ended.
    pub reason: String,
    /// How long it took in the guest, in milliseconds.
    pub wall_ms: u64,
}

/// What came of one kernel.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    /// Its name in `kernels.toml`.
    pub kernel: String,
    /// `uname -r`.
    pub release: String,
    /// The package and its version.
    pub package: String,
    /// What was tried: `inodyne --version`, and the commit of the sources.
    pub inodyne: String,
    /// How long it took to boot, in milliseconds.
    pub boot_ms: u64,
    /// In the order of `checks.toml`.
    pub outcomes: Vec<Outcome>,
}

/// Which part of the matrix to run.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Only kernels of these names; all of this machine's architecture where none is given.
    pub kernels: Vec<String>,
    /// Only checks of these names; all where none is given.
    pub checks: Vec<String>,
    /// Only what belongs to the short matrix.
    pub short: bool,
}

impl Selection {
    /// The kernels, oldest first.
    #[must_use]
    pub fn kernels(&self) -> Vec<Entry> {
        let native = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
        let is_meant = |entry: &Entry| match self.kernels.is_empty() {
            true => entry.arch == native && (entry.short || !self.short),
            false => self.kernels.contains(&entry.name),
        };
        kernel::all().into_iter().filter(is_meant).collect()
    }

    /// Whether a check of it needs the project's own tests, which take long to build.
    #[must_use]
    pub fn needs_tests(&self) -> bool {
        let uses = |check: &Check| check.run.contains(suite::IN_GUEST);
        self.kernels().iter().any(|entry| self.checks(entry).iter().any(uses))
    }

    fn checks(&self, entry: &Entry) -> Vec<Check> {
        let is_chosen = |check: &Check| match self.checks.is_empty() {
            true => check.short || !self.short,
            false => self.checks.contains(&check.name),
        };
        let is_meant = |check: &Check| check.refusal != entry.supported && is_chosen(check);
        checks().into_iter().filter(is_meant).collect()
    }
}

/// Runs the checks on one kernel; `tell` is told of each as it ends. Where one fails, what it printed and the kernel's log
/// are kept in `logs`.
///
/// # Errors
/// The guest does not boot, or is lost.
pub fn run(
    entry: &Entry,
    selection: &Selection,
    suite: &Suite,
    logs: &Path,
    tell: &mut dyn FnMut(&Outcome),
) -> Result<Results, Failure> {
    let machine = suite.machine(&entry.name)?;
    let mut vm = Vm::boot(&machine)?;
    let version = vm.shell("inodyne --version")?.text().trim().to_owned();
    let mut results = Results {
        kernel: entry.name.clone(),
        release: vm.kernel().to_owned(),
        package: machine.kernel.package,
        inodyne: format!("{version} ({})", suite.commit()),
        boot_ms: vm.booted_in().as_millis() as u64,
        outcomes: Vec::new(),
    };
    for check in selection.checks(entry) {
        let started = Instant::now();
        let ended = vm.run(Task::shell(&check.run).timeout(Duration::from_secs(check.seconds)));
        let outcome = match &ended {
            Ok(ended) => outcome(&check, ended),
            Err(failure) => lost(&check, failure, started.elapsed()),
        };
        tell(&outcome);
        if !outcome.passed {
            keep(logs, entry, &check, ended.as_ref(), &vm.console())?;
        }
        results.outcomes.push(outcome);
        if ended.is_err() {
            break;
        }
    }
    Ok(results)
}

fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned()
}

fn outcome(check: &Check, ended: &Ended) -> Outcome {
    let said = last_line(&ended.stderr);
    let reason = match ended.status {
        Status::Exit(0) => String::new(),
        Status::Exit(_) if !said.is_empty() => said,
        Status::Exit(code) => format!("exit code {code}"),
        Status::Signal(signal) => format!("killed by signal {signal}"),
        Status::TimedOut => format!("not done after {} s", check.seconds),
    };
    let wall_ms = ended.wall.as_millis() as u64;
    Outcome { check: check.name.clone(), passed: ended.succeeded(), note: last_line(&ended.stdout), reason, wall_ms }
}

fn lost(check: &Check, failure: &Failure, elapsed: Duration) -> Outcome {
    let reason = failure.to_string().lines().next().unwrap_or_default().to_owned();
    let wall_ms = elapsed.as_millis() as u64;
    Outcome { check: check.name.clone(), passed: false, note: String::new(), reason, wall_ms }
}

fn keep(
    logs: &Path,
    entry: &Entry,
    check: &Check,
    ended: Result<&Ended, &Failure>,
    console: &str,
) -> Result<(), Failure> {
    let said = match ended {
        Ok(ended) => format!("{:?}\n\n## stdout\n{}\n## stderr\n{}", ended.status, ended.text(), ended.errors()),
        Err(failure) => failure.to_string(),
    };
    fs::create_dir_all(logs).map_err(Failure::writing(logs))?;
    let path = logs.join(format!("{}-{}.txt", entry.name, check.name));
    fs::write(&path, format!("{}\n{said}\n## console\n{console}", check.run)).map_err(Failure::writing(&path))
}

fn kept(cache: &Path, kernel: &str) -> PathBuf {
    cache.join("results").join(format!("{kernel}.json"))
}

/// Keeps results for the page. Those of other checks stay, if they are of the same kernel and the same inodyne.
///
/// # Errors
/// The cache cannot be written.
pub fn save(cache: &Path, results: &Results) -> Result<(), Failure> {
    let path = kept(cache, &results.kernel);
    let parent = path.parent().expect("below the cache");
    fs::create_dir_all(parent).map_err(Failure::writing(parent))?;
    let before = fs::read(&path).ok().and_then(|json| serde_json::from_slice::<Results>(&json).ok());
    let json = serde_json::to_vec_pretty(&together(before, results)).map_err(Failure::new)?;
    fs::write(&path, json).map_err(Failure::writing(&path))
}

fn together(before: Option<Results>, now: &Results) -> Results {
    let is_same = |before: &Results| before.package == now.package && before.inodyne == now.inodyne;
    let mut all = now.clone();
    let others = before.filter(is_same).map(|before| before.outcomes).unwrap_or_default();
    let is_other = |outcome: &Outcome| now.outcomes.iter().all(|newer| newer.check != outcome.check);
    all.outcomes.extend(others.into_iter().filter(is_other));
    all
}

/// The results that are kept, in the order of `kernels.toml`.
///
/// # Errors
/// A file of results is not readable as such.
pub fn saved(cache: &Path) -> Result<Vec<(Entry, Results)>, Failure> {
    let mut all = Vec::new();
    for entry in kernel::all() {
        let path = kept(cache, &entry.name);
        if let Ok(json) = fs::read(&path) {
            let results = serde_json::from_slice(&json)
                .map_err(|error| Failure::new(format_args!("{}: {error}", path.display())))?;
            all.push((entry, results));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(inodyne: &str, checks: &[(&str, bool)]) -> Results {
        let of = |&(check, passed): &(&str, bool)| Outcome {
            check: check.into(),
            passed,
            note: String::new(),
            reason: String::new(),
            wall_ms: 1,
        };
        Results {
            kernel: "6.1".into(),
            release: "6.1.0-1".into(),
            package: "linux 1".into(),
            inodyne: inodyne.into(),
            boot_ms: 1,
            outcomes: checks.iter().map(of).collect(),
        }
    }

    #[test]
    fn a_check_that_is_tried_again_replaces_only_itself() {
        let before = results("a", &[("run", false), ("rm", true)]);
        let all = together(Some(before), &results("a", &[("run", true)]));
        let passed: Vec<(&str, bool)> = all.outcomes.iter().map(|o| (o.check.as_str(), o.passed)).collect();
        assert_eq!(passed, [("run", true), ("rm", true)]);
    }

    #[test]
    fn results_of_another_inodyne_go() {
        let before = results("a", &[("rm", true)]);
        assert_eq!(together(Some(before), &results("b", &[("run", true)])).outcomes.len(), 1);
    }

    #[test]
    fn checks_have_different_names_and_there_is_one_for_kernels_that_are_refused() {
        let mut names: Vec<String> = checks().into_iter().map(|check| check.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(checks().iter().any(|check| check.refusal));
    }
    #[test]
    fn tests_are_built_only_for_checks_that_run_them() {
        let only = |check: &str| Selection { checks: vec![check.into()], ..Selection::default() };
        assert!(only("strace").needs_tests());
        assert!(!only("programs").needs_tests());
    }
}
