//! `dtype-missing`: directories give no types, so a program asks for each entry by a call of its own.
//!
//! The evidence is exact: the collecting side has counted the entries that came as `DT_UNKNOWN`, and the first look-up
//! of each by the process that had read it. Look-ups of directories are not counted as avoidable, since most programs
//! make them in any case. Nothing is said where nobody asked, where only programs asked that stat every entry anyway
//! (see [`super::stat_users`]), or where the calls took less than [`LEAST_SHARE`] of the time.

mod cure;
mod prediction;

use std::collections::{BTreeMap, BTreeSet};

use inodyne_model::Nanos;
use inodyne_model::count::Grouped;
use inodyne_model::finding::Finding;
use inodyne_model::observed::{Program, ThreadNumber};
use inodyne_model::trace::{DtypeFs, ForcedLookup, Trace};

use super::case::{Case, parallel};
use super::estimate::seconds;
use super::stat_users::{Gain, base_name, gain};

/// Below this share of the wall-clock time nobody cares.
const LEAST_SHARE: f64 = 0.01;
/// How many directories are named.
const NAMED_DIRECTORIES: usize = 3;
/// How many directories a trace keeps; with so many there may be more.
const KEPT_DIRECTORIES: usize = 4_096;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let trace = case.trace;
    let paid = Paid::of(trace);
    let share = (paid.files.wall_ns.as_secs_f64() / paid.parallel / trace.wall_ns.as_secs_f64()).min(1.0);
    if paid.files.calls == 0 || !share.is_finite() || share < LEAST_SHARE {
        return None;
    }
    let who = paid.programs.iter().next().map_or("the program", String::as_str);
    Some(Finding {
        id: String::new(),
        title: format!("readdir gives no types, so {who} asks for each: {:.0}% of the time", share * 100.0),
        place: trace.place,
        command: trace.command,
        trace: case.index,
        share_of_wall: share,
        evidence: evidence(case, &paid, share),
        avoidable_calls: Some(paid.files.calls),
        predicted: prediction::predict(case, &paid),
        cure: cure::for_file_systems(trace.dtype.filesystems.iter().filter(|fs| fs.unknown > 0)),
        bound: false,
        proved: None,
    })
}

/// Forced look-ups added up.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    calls: u64,
    wall_ns: Nanos,
    cpu_ns: Nanos,
    blocked_ns: Nanos,
}

impl Sum {
    fn add(&mut self, forced: &ForcedLookup) {
        self.calls = self.calls.saturating_add(forced.calls);
        self.wall_ns += forced.wall_ns;
        self.cpu_ns += forced.cpu_ns.min(forced.wall_ns);
        self.blocked_ns += forced.blocked_ns.min(forced.wall_ns);
    }
}

/// What programs that would gain from types have paid for their absence.
#[derive(Debug)]
struct Paid {
    /// Look-ups that the cure makes unnecessary.
    files: Sum,
    /// Look-ups of what turned out to be directories.
    directories: Sum,
    /// The avoidable calls by name.
    calls: BTreeMap<String, u64>,
    /// Who made them, by program name.
    programs: BTreeSet<String>,
    /// Those of whom it is not known whether they need more than the type.
    assumed: BTreeSet<String>,
    /// The threads that made them.
    threads: BTreeSet<ThreadNumber>,
    /// How many of these threads lived at the same time, on average.
    parallel: f64,
}

impl Paid {
    fn of(trace: &Trace) -> Paid {
        let mut paid = Paid {
            files: Sum::default(),
            directories: Sum::default(),
            calls: BTreeMap::new(),
            programs: BTreeSet::new(),
            assumed: BTreeSet::new(),
            threads: BTreeSet::new(),
            parallel: 1.0,
        };
        let programs = ProgramsByThread::of(trace);
        for forced in &trace.dtype.forced {
            let program = programs.of_thread(forced.thread);
            let gains = program.map_or(Gain::Unknown, gain);
            if gains == Gain::None {
                continue;
            }
            if forced.directory {
                paid.directories.add(forced);
                continue;
            }
            paid.files.add(forced);
            let calls = paid.calls.entry(forced.syscall.clone()).or_default();
            *calls = calls.saturating_add(forced.calls);
            paid.threads.insert(forced.thread);
            let name = program.map_or("the program", |p| base_name(p.args.first().unwrap_or(&p.file))).to_owned();
            if gains == Gain::Unknown {
                paid.assumed.insert(name.clone());
            }
            paid.programs.insert(name);
        }
        paid.parallel = parallel(trace, &paid.threads);
        paid
    }
}

/// Which program a thread was running.
struct ProgramsByThread<'a> {
    by_pid: BTreeMap<u32, &'a Program>,
    /// Process and parent of each thread.
    threads: BTreeMap<ThreadNumber, (u32, ThreadNumber)>,
}

impl<'a> ProgramsByThread<'a> {
    fn of(trace: &'a Trace) -> ProgramsByThread<'a> {
        ProgramsByThread {
            by_pid: trace.observed.programs.iter().map(|program| (program.pid, program)).collect(),
            threads: trace.observed.threads.iter().map(|t| (t.number, (t.pid, t.parent))).collect(),
        }
    }

    /// The last program of its process; of a process that executed none, that of the process it was forked from.
    fn of_thread(&self, mut number: ThreadNumber) -> Option<&'a Program> {
        // A chain of parents is at most as long as there are threads: damaged ones may be a ring.
        for _ in 0..self.threads.len() {
            let (pid, parent) = self.threads.get(&number)?;
            if let Some(program) = self.by_pid.get(pid) {
                return Some(program);
            }
            number = *parent;
        }
        None
    }
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
        seconds(files.wall_ns.0 as f64),
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
        lines.push(format!("assumed, not known: {} needs no more than the type", names.join(", ")));
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
