//! The matrix: the checks of `checks.toml` on the kernels of `kernels.toml`.
//!
//! What came of each kernel is kept as JSON beside the sources (`results`), so that one kernel or one check may be tried again,
//! on another machine too, and the page (`docs/kernels.md`) still shows all.

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
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Where it failed: the last line of its standard error, or how it ended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What was tried: `inodyne --version`, and the commit of the sources.
    pub inodyne: String,
    /// How long it took in the guest. Not kept: it is different each time.
    #[serde(skip)]
    pub wall: Duration,
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
    /// Refuses names of kernels and checks that do not exist: nothing would be run for them.
    ///
    /// # Errors
    /// There is no such kernel or check.
    pub fn check_names(&self) -> Result<(), Failure> {
        self.kernels.iter().try_for_each(|name| kernel::named(name).map(drop))?;
        let known: Vec<String> = checks().into_iter().map(|check| check.name).collect();
        if let Some(name) = self.checks.iter().find(|name| !known.contains(name)) {
            let names = known.join(", ");
            return Err(Failure::new(format_args!("no check {name} in tests/vm/checks.toml; there are {names}")));
        }
        Ok(())
    }

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
    let inodyne = format!("{version} ({})", suite.commit());
    let mut results = Results {
        kernel: entry.name.clone(),
        release: vm.kernel().to_owned(),
        package: machine.kernel.package,
        outcomes: Vec::new(),
    };
    for check in selection.checks(entry) {
        let started = Instant::now();
        let ended = vm.run(Task::shell(&check.run).timeout(Duration::from_secs(check.seconds)));
        let outcome = match &ended {
            Ok(ended) => outcome(&check, &inodyne, ended),
            Err(failure) => lost(&check, &inodyne, failure, started.elapsed()),
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

fn outcome(check: &Check, inodyne: &str, ended: &Ended) -> Outcome {
    let said = last_line(&ended.stderr);
    let reason = match ended.status {
        Status::Exit(0) => String::new(),
        Status::Exit(_) if !said.is_empty() => said,
        Status::Exit(code) => format!("exit code {code}"),
        Status::Signal(signal) => format!("killed by signal {signal}"),
        Status::TimedOut => format!("not done after {} s", check.seconds),
    };
    Outcome {
        check: check.name.clone(),
        passed: ended.succeeded(),
        note: last_line(&ended.stdout),
        reason,
        inodyne: inodyne.to_owned(),
        wall: ended.wall,
    }
}

fn lost(check: &Check, inodyne: &str, failure: &Failure, wall: Duration) -> Outcome {
    let reason = failure.to_string().lines().next().unwrap_or_default().to_owned();
    let inodyne = inodyne.to_owned();
    Outcome { check: check.name.clone(), passed: false, note: String::new(), reason, inodyne, wall }
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

/// Where results are kept: `tests/vm/results`.
#[must_use]
pub fn results() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("results")
}

fn kept(directory: &Path, kernel: &str) -> PathBuf {
    directory.join(format!("{kernel}.json"))
}

/// Keeps results in a directory. What came of other checks before stays, whatever inodyne it was, if the kernel is the same
/// package still.
///
/// # Errors
/// The directory cannot be written, or what is kept there is not readable.
pub fn save(directory: &Path, results: &Results) -> Result<(), Failure> {
    fs::create_dir_all(directory).map_err(Failure::writing(directory))?;
    let path = kept(directory, &results.kernel);
    let mut json = serde_json::to_string_pretty(&together(read(&path)?, results)).map_err(Failure::new)?;
    json.push('\n');
    fs::write(&path, json).map_err(Failure::writing(&path))
}

fn together(before: Option<Results>, now: &Results) -> Results {
    let is_same = |before: &Results| before.package == now.package;
    let others = before.filter(is_same).map(|before| before.outcomes).unwrap_or_default();
    let is_other = |outcome: &Outcome| now.outcomes.iter().all(|newer| newer.check != outcome.check);
    let mut all = now.clone();
    all.outcomes.extend(others.into_iter().filter(is_other));
    let order: Vec<String> = checks().into_iter().map(|check| check.name).collect();
    let place = |outcome: &Outcome| order.iter().position(|name| *name == outcome.check);
    // A check that no longer exists has no column either.
    all.outcomes.retain(|outcome| place(outcome).is_some());
    all.outcomes.sort_by_key(place);
    all
}

fn read(path: &Path) -> Result<Option<Results>, Failure> {
    if !path.exists() {
        return Ok(None);
    }
    let json = fs::read(path).map_err(Failure::reading(path))?;
    let unreadable = |error| Failure::new(format_args!("{}: {error}", path.display()));
    serde_json::from_slice(&json).map(Some).map_err(unreadable)
}

/// The results that a directory keeps, in the order of `kernels.toml`.
///
/// # Errors
/// A file of results is not readable as such.
pub fn saved(directory: &Path) -> Result<Vec<(Entry, Results)>, Failure> {
    let mut all = Vec::new();
    for entry in kernel::all() {
        if let Some(results) = read(&kept(directory, &entry.name))? {
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
            inodyne: inodyne.into(),
            wall: Duration::from_secs(1),
        };
        Results {
            kernel: "6.1".into(),
            release: "6.1.0-1".into(),
            package: "linux 1".into(),
            outcomes: checks.iter().map(of).collect(),
        }
    }

    fn checks_of(results: &Results) -> Vec<(&str, bool, &str)> {
        results.outcomes.iter().map(|one| (one.check.as_str(), one.passed, one.inodyne.as_str())).collect()
    }

    #[test]
    fn a_check_that_is_tried_again_replaces_only_itself() {
        let before = results("a", &[("run", false), ("rm", true)]);
        let all = together(Some(before), &results("a", &[("run", true)]));
        assert_eq!(checks_of(&all), [("run", true, "a"), ("rm", true, "a")]);
    }

    #[test]
    fn results_of_another_inodyne_stay_and_say_of_which_they_are() {
        let before = results("a", &[("run", true), ("rm", true)]);
        let all = together(Some(before), &results("b", &[("rm", false)]));
        assert_eq!(checks_of(&all), [("run", true, "a"), ("rm", false, "b")]);
    }

    #[test]
    fn results_of_another_package_go_and_so_do_those_of_checks_that_are_no_more() {
        let mut before = results("a", &[("run", true), ("rm", true)]);
        before.package = "linux 0".into();
        assert_eq!(checks_of(&together(Some(before), &results("a", &[("rm", true)]))), [("rm", true, "a")]);
        let before = results("a", &[("no-such-check", true)]);
        assert_eq!(checks_of(&together(Some(before), &results("a", &[("rm", true)]))), [("rm", true, "a")]);
    }

    #[test]
    fn what_is_saved_is_in_the_order_of_the_checks_and_without_times() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (checks, passed) in [(["rm", "run"], true), (["cold", "run"], false)] {
            save(directory.path(), &results("a", &checks.map(|check| (check, passed)))).expect("it is ours");
        }
        let all = saved(directory.path()).expect("just saved");
        let [(entry, kept)] = &all[..] else { panic!("{all:?}") };
        assert_eq!(entry.name, "6.1");
        assert_eq!(checks_of(kept), [("run", false, "a"), ("cold", false, "a"), ("rm", true, "a")]);
        assert!(kept.outcomes.iter().all(|outcome| outcome.wall == Duration::ZERO));
    }

    #[test]
    fn the_page_is_that_of_the_results_and_every_result_is_of_a_kernel_of_the_list() {
        let all = saved(&super::results()).expect("tests/vm/results");
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kernels.md");
        let kept = fs::read_to_string(&kept).expect("docs/kernels.md");
        assert!(kept == page(&all), "write it anew: inodyne-vm page >docs/kernels.md");
        let files = fs::read_dir(super::results()).expect("tests/vm/results").count();
        assert_eq!(files, all.len(), "a file there is not of a kernel of kernels.toml");
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
    fn names_that_do_not_exist_are_refused() {
        let selection = |kernel: &str, check: &str| Selection {
            kernels: vec![kernel.into()],
            checks: vec![check.into()],
            ..Selection::default()
        };
        assert!(selection("6.12", "strace").check_names().is_ok());
        for (kernel, check, says) in [("6.12", "load", "no check load in"), ("4.1", "strace", "no kernel 4.1 in")] {
            let said = selection(kernel, check).check_names().expect_err("unknown").to_string();
            assert!(said.starts_with(says), "{said}");
        }
    }

    #[test]
    fn tests_are_built_only_for_checks_that_run_them() {
        let only = |check: &str| Selection { checks: vec![check.into()], ..Selection::default() };
        assert!(only("strace").needs_tests());
        assert!(!only("programs").needs_tests());
    }
}
