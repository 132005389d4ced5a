//! `dtype-missing`: directories give no types, so a program asks for each entry with a separate call.
//!
//! The evidence is exact: the collecting side has counted the entries that came as `DT_UNKNOWN`, and the first look-up
//! of each by the process that had read it. Look-ups of directories are not counted as avoidable, since most programs
//! make them in any case. Nothing is said where nobody asked, where only programs asked that stat every entry anyway
//! (see [`super::stat_users`]), or where the calls took less than [`LEAST_SHARE`] of the time.

mod cure;
mod paid;
mod prediction;

use inodyne_model::Nanos;
use inodyne_model::count::Grouped;
use inodyne_model::finding::Finding;
use inodyne_model::trace::{DtypeFs, Trace};

use super::case::Case;
use super::estimate::Diagnosed;
use crate::units::seconds;
use paid::Paid;

/// Below this share of the wall-clock time nobody cares.
const LEAST_SHARE: f64 = 0.01;
/// How many directories are named.
const NAMED_DIRECTORIES: usize = 3;
/// How many directories a trace keeps; if it has this many, there may be more.
const KEPT_DIRECTORIES: usize = 4_096;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let trace = case.trace;
    let paid = Paid::of(case);
    let share = (paid.files.active_ns.as_secs_f64() / paid.parallel / trace.wall_ns.as_secs_f64()).min(1.0);
    if paid.files.calls == 0 || !share.is_finite() || share < LEAST_SHARE {
        return None;
    }
    let who = paid.who();
    Some(
        Diagnosed {
            title: format!("readdir gives no types, so {who} asks for each: {:.0}% of the time", share * 100.0),
            share,
            evidence: evidence(case, &paid, share),
            predicted: prediction::predict(case, &paid),
            cure: cure::for_file_systems(trace.dtype.filesystems.iter().filter(|fs| fs.unknown > 0)),
            avoidable_calls: Some(paid.files.calls),
            bound: false,
        }
        .finding(case),
    )
}

fn evidence(case: &Case<'_>, paid: &Paid, share: f64) -> Vec<String> {
    let trace = case.trace;
    let (files, directories) = (&paid.files, &paid.directories);
    let mut lines: Vec<String> =
        trace.dtype.filesystems.iter().filter(|fs| fs.unknown > 0).map(|fs| entries_of(case, fs)).collect();
    if let Some(line) = top_directories(trace) {
        lines.push(line);
    }
    for (name, calls) in &paid.calls {
        let all = trace.syscalls.iter().find(|s| &s.name == name).map_or(*calls, |s| s.calls);
        lines.push(format!("{} of {} {name} only ask for the type", Grouped(*calls), Grouped(all)));
    }
    let blocked = match files.blocked_ns {
        Nanos::ZERO => String::new(),
        blocked => format!(", {} of it blocked", seconds(blocked.0 as f64)),
    };
    let of_threads = if paid.parallel > 1.05 { " in threads side by side" } else { "" };
    lines.push(format!(
        "these calls took {}{blocked}{of_threads}: {:.0}% of the wall-clock time with tracing",
        seconds(files.active_ns.0 as f64),
        share * 100.0
    ));
    if directories.calls > 0 {
        lines.push(format!(
            "{} more turned out to be directories; most programs look these up in any case",
            Grouped(directories.calls)
        ));
    }
    if !paid.assumed.is_empty() {
        let names: Vec<_> = paid.assumed.iter().map(String::as_str).collect();
        let need = if names.len() == 1 { "needs" } else { "need" };
        lines.push(format!("assumed, not known: {} {need} no more than the type", names.join(", ")));
    }
    lines
}

fn entries_of(case: &Case<'_>, fs: &DtypeFs) -> String {
    let trace = case.trace;
    let place = case.recording.places.get(trace.place);
    let source = place.filter(|p| p.fs == fs.fs && !p.source.is_empty()).map(|p| p.source.as_str());
    let device = source.map_or_else(|| format!("device {}", fs.device), str::to_owned);
    let (unknown, entries) = (Grouped(fs.unknown), Grouped(fs.entries));
    format!("{unknown} of {entries} entries on {device} ({}) came as DT_UNKNOWN", fs.fs)
}

fn top_directories(trace: &Trace) -> Option<String> {
    let directories = &trace.dtype.directories;
    if directories.is_empty() {
        return None;
    }
    let top = directories.iter().take(NAMED_DIRECTORIES);
    let top: Vec<_> = top.map(|d| format!("{} ({})", d.path, Grouped(d.unknown))).collect();
    let all = Grouped(directories.len() as u64);
    let of = match directories.len() {
        all if all <= top.len() => "in ".to_owned(),
        KEPT_DIRECTORIES => format!("in at least {all} directories, the most in "),
        _ => format!("in {all} directories, the most in "),
    };
    Some(format!("{of}{}", top.join(", ")))
}

#[cfg(test)]
mod tests;
