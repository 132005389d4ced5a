//! `failed-lookups`: most look-ups of paths find nothing, since a search path is long or its order unlucky.

use inodyne_model::count::Grouped;
use inodyne_model::finding::Finding;
use inodyne_model::syscall::SyscallStats;

use super::case::{Case, Time, failed, total};
use super::estimate::{self, Diagnosed, INSIDE};
use super::families::looks_up;
use super::remedy::advice;
use crate::units::{percent, seconds};

/// A program that starts fails some hundred times; that is nothing to look into.
const LEAST_FAILURES: u64 = 500;
/// At least one in this many uses of a call finds nothing: a search, not a question with an expected "no".
const LEAST_PART: u64 = 2;
/// Below this share of the wall-clock time a search path is not worth shortening.
const LEAST_SHARE: f64 = 0.05;
/// The failing look-ups look at directories and at names that are not there; the look-up that remains may then have to do so.
const UNCERTAIN: f64 = 0.2;
/// How many paths are named.
const NAMED: usize = 5;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let searching: Vec<&SyscallStats> =
        case.calls(looks_up).filter(|call| missing(call) >= LEAST_FAILURES.max(call.calls / LEAST_PART)).collect();
    let mut time = Time::of_threads(case.threads_of(|call| searching.iter().any(|s| s.name == call)));
    for call in &searching {
        let of_missing = failed(call) * missing(call) as f64 / (call.errors.max(1)) as f64;
        // What a few of them waited for, an interrupt or a block from the device, would not be saved by a shorter search.
        let usual = if call.p90_ns.0 == 0 { f64::INFINITY } else { call.p90_ns.0 as f64 };
        let of_missing = of_missing.min(missing(call) as f64 * usual);
        time.add_active_calls(&call.name, of_missing, missing(call));
    }
    let share = case.share(&time);
    if searching.is_empty() || share < LEAST_SHARE {
        return None;
    }
    let is_search = |call: &SyscallStats| searching.iter().any(|searching| searching.name == call.name);
    let who = case.who_makes(&time, |call| if is_search(call) { missing(call) } else { 0 });
    let mut evidence: Vec<String> = searching
        .iter()
        .map(|call| format!("{} of {} {} found nothing", Grouped(missing(call)), Grouped(call.calls), call.name))
        .collect();
    evidence.push(format!("{} each, {} together", seconds(time.mean()), seconds(time.ns)));
    evidence.extend(top_paths(case));
    // Time between calls is only known as an average. Where nearly all calls are such look-ups, it is theirs; a program that does other
    // things as well (a dynamic linker relocates what it has found) spends it on those.
    let all = total(case.calls(|_| true).map(|call| call.calls));
    let of_all = (time.count as f64 / all.max(1) as f64).min(1.0);
    let around = estimate::around(case, &time);
    let each = (time.mean() - case.cost() * INSIDE).max(time.mean() * 0.2) + around * of_all;
    let uncertain = UNCERTAIN.hypot(around * (1.0 - of_all) / 2.0 / each.max(1.0));
    let parallel = time.ns / case.on_path(&time).max(1.0);
    Some(
        Diagnosed {
            title: format!("{who} looks for files where they are not: {} of the time", percent(share)),
            share,
            evidence,
            predicted: estimate::without(case, each * time.count as f64 / parallel, uncertain),
            cure: advice(&[
                "shorten the search path, or put first the directory in which most is found (PATH, PYTHONPATH, -I, RPATH)",
                "or let the program remember what it has found: bootsnap, ldconfig, an index of the package manager",
            ]),
            avoidable_calls: Some(time.count),
            bound: false,
        }
        .finding(case),
    )
}

/// Calls that found nothing at the path.
fn missing(call: &SyscallStats) -> u64 {
    total(["ENOENT", "ENOTDIR"].iter().filter_map(|errno| call.errors_by_errno.get(*errno).copied()))
}

/// With `--paths`: the directories in which the most look-ups found nothing.
fn top_paths(case: &Case<'_>) -> Option<String> {
    let paths = case.trace.paths.as_ref()?;
    let mut by_directory = std::collections::BTreeMap::<&str, u64>::new();
    for path in &paths.looked_up {
        let directory = match path.path.rsplit_once('/') {
            Some(("", _)) => "/",
            Some((directory, _)) => directory,
            None => ".",
        };
        let of_directory = by_directory.entry(directory).or_default();
        *of_directory = of_directory.saturating_add(path.not_found);
    }
    let mut top: Vec<_> = by_directory.into_iter().filter(|(_, count)| *count > 0).collect();
    top.sort_by_key(|(directory, count)| (std::cmp::Reverse(*count), *directory));
    let named: Vec<_> = top.iter().take(NAMED).map(|(name, count)| format!("{name} ({})", Grouped(*count))).collect();
    (!named.is_empty()).then(|| format!("most in {}", named.join(", ")))
}
