//! `repeated-stat`: the attributes of the same paths are asked for again and again. Only known with `--paths`.

use inodyne_model::count::{Grouped, counted};
use inodyne_model::finding::Finding;
use inodyne_model::syscall::SyscallStats;
use inodyne_model::trace::PathCount;

use super::case::{Case, Time, active, total};
use super::estimate::{self, Diagnosed, INSIDE};
use super::families::stats;
use super::remedy::advice;
use crate::units::{percent, seconds};

/// Fewer repetitions take no time.
const LEAST_REPETITIONS: u64 = 500;
/// A path asked for twice is looked at before and after; from this often on it is a habit.
const LEAST_TIMES: u64 = 3;
/// Below this share of the wall-clock time, it does not matter.
const LEAST_SHARE: f64 = 0.05;
/// What a program would do instead is not known.
const UNCERTAIN: f64 = 0.25;
/// How many paths are named.
const NAMED: usize = 5;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let paths = case.trace.paths.as_ref()?;
    let mut time = Time::of_threads(case.threads_of(stats));
    // Of the paths that are too long to be kept, many may end alike.
    let is_whole = |path: &str| !path.starts_with('…');
    let is_again = |p: &&PathCount| stats(&p.syscall) && p.calls >= LEAST_TIMES && is_whole(&p.path);
    let mut repeated: Vec<_> = paths.looked_up.iter().filter(is_again).collect();
    repeated.sort_by(|a, b| (std::cmp::Reverse(a.calls), &a.path).cmp(&(std::cmp::Reverse(b.calls), &b.path)));
    for path in &repeated {
        let again = path.calls - 1;
        let active = case.calls(|call| call == path.syscall).map(active).next().unwrap_or(1.0);
        let ns = path.wall_ns.0 as f64 * active * again as f64 / path.calls as f64;
        time.add_active_calls(&path.syscall, ns, again);
    }
    let share = case.share(&time);
    if time.count < LEAST_REPETITIONS || share < LEAST_SHARE {
        return None;
    }
    let all = total(case.calls(stats).map(|call| call.calls));
    let top: Vec<_> =
        repeated.iter().take(NAMED).map(|path| format!("{} ({})", path.path, Grouped(path.calls))).collect();
    let each = (time.mean() - case.cost() * INSIDE).max(time.mean() * 0.2) + estimate::around(case, &time);
    let parallel = time.ns / case.on_path(&time).max(1.0);
    let is_repeated = |call: &SyscallStats| repeated.iter().any(|path| path.syscall == call.name);
    let who = case.who_makes(&time, |call| if is_repeated(call) { call.calls } else { 0 });
    Some(
        Diagnosed {
            title: format!(
                "{who} asks for the attributes of the same files again and again: {} of the time",
                percent(share)
            ),
            share,
            evidence: vec![
                format!(
                    "{} of {} asked for what had been asked for before, {} each",
                    Grouped(time.count),
                    Grouped(all),
                    seconds(time.mean())
                ),
                format!("{}, the most {}", counted(repeated.len() as u64, "path", "paths"), top.join(", ")),
            ],
            predicted: estimate::without(case, each * time.count as f64 / parallel, UNCERTAIN),
            cure: advice(&[
                "remember the answer for as long as it may be slightly out of date",
                "or be told of changes: inotify, fanotify, watchman",
            ]),
            avoidable_calls: Some(time.count),
            bound: false,
        }
        .finding(case),
    )
}
