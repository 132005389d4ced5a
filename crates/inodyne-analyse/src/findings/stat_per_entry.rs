//! `stat-per-entry`: a program that removes files asks for the attributes of each, although the directory has said which
//! of them are directories.

use inodyne_model::count::Grouped;
use inodyne_model::finding::Finding;
use inodyne_model::observed::ThreadNumber;

use super::case::{Case, Time, active, total};
use super::estimate::{self, Diagnosed, INSIDE};
use super::families::{reads, removes, stats, writes};
use super::programs::ProgramsByThread;
use super::remedy::advice;
use super::stat_users::decides_by_attributes;
use crate::units::{percent, seconds};

/// Fewer entries take no time.
const LEAST_ENTRIES: u64 = 500;
/// Both stats and removals cover at least this part of the entries that were read: so the stats are for the removals.
const LEAST_PART: f64 = 0.9;
/// A program that reads and writes more than this fraction of them has other things to do with the files, and removes what it
/// made only for a moment, as `git add` does.
const MOST_CONTENTS: f64 = 0.5;
/// Below this share of the wall-clock time, it does not matter. Small, since it is a defect of the program whatever it costs here.
const LEAST_SHARE: f64 = 0.002;
/// The removal then has to look the name up itself: up to this part of the stat's time comes back.
const COMES_BACK: f64 = 0.3;
const UNCERTAIN: f64 = 0.35;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let dtype = &case.trace.dtype;
    let entries = dtype.entries;
    // Without types the stats are needed: that is `dtype-missing`.
    if entries < LEAST_ENTRIES || dtype.unknown > 0 {
        return None;
    }
    let mut time = Time::of_threads(case.threads_of(stats));
    for call in case.calls(stats) {
        time.add_active_calls(&call.name, call.wall_ns.0 as f64 * active(call), call.calls);
    }
    let removed = total(case.calls(removes).map(|call| call.calls.saturating_sub(call.errors)));
    let covers = |count: u64| count as f64 >= entries as f64 * LEAST_PART;
    // Who removes what is old or large has to ask for more than the type.
    let programs = ProgramsByThread::of(case.trace);
    let decides = |thread: &ThreadNumber| programs.of_thread(*thread).is_some_and(decides_by_attributes);
    if time.threads.iter().any(decides) {
        return None;
    }
    let share = case.share(&time);
    let contents = total(case.calls(|call| reads(call) || writes(call)).map(|call| call.calls));
    let is_remover = (contents as f64) < entries as f64 * MOST_CONTENTS;
    if !covers(time.count) || !covers(removed) || !is_remover || share < LEAST_SHARE {
        return None;
    }
    let avoidable = time.count.min(entries);
    let each = (time.mean() * (1.0 - COMES_BACK) - case.cost() * INSIDE).max(0.0) + estimate::around(case, &time);
    let parallel = time.ns / case.on_path(&time).max(1.0);
    let who = case.who_makes(&time, |call| if stats(&call.name) { call.calls } else { 0 });
    Some(
        Diagnosed {
            title: format!(
                "{who} asks for the attributes of each entry that it removes: {} of the time",
                percent(share)
            ),
            share,
            evidence: vec![
                format!("{} entries were read, all with their type", Grouped(entries)),
                format!(
                    "{} of them removed, {} asked for first, {} each",
                    Grouped(removed),
                    Grouped(time.count),
                    seconds(time.mean())
                ),
            ],
            predicted: estimate::without(case, each * avoidable as f64 / parallel, UNCERTAIN),
            cure: advice(&["take the type from readdir (d_type), and ask only where it is DT_UNKNOWN"]),
            avoidable_calls: Some(avoidable),
            bound: false,
        }
        .finding(case),
    )
}
