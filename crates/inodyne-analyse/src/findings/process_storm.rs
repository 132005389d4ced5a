//! `process-storm`: a process for each little thing. Starting and ending it takes longer than its work.

use std::collections::{BTreeMap, BTreeSet};

use inodyne_model::count::Grouped;
use inodyne_model::finding::Finding;
use inodyne_model::ledger::RowKind;
use inodyne_model::observed::ThreadNumber;

use super::case::Case;
use super::estimate::{self, Diagnosed};
use super::families::starts_processes;
use super::remedy::Remedy;
use super::stat_users::base_name;
use crate::units::{percent, seconds};

/// Fewer processes than this are an ordinary script.
const LEAST_PROCESSES: usize = 50;
/// A process that lives longer has work to do, in nanoseconds.
const SHORT: f64 = 30e6;
/// At least this share of the wall-clock time passes in such processes.
const LEAST_SHARE: f64 = 0.3;
/// At least this part of their time is starting and ending.
const LEAST_PART: f64 = 0.3;
/// User time up to this, in nanoseconds, is taken for a program's loading (a dynamic linker needs less, an interpreter more);
/// what a compiler does beyond it is its work.
const LOADING: f64 = 3e6;
/// How much of a process's user time is its loading, and how much its work, is not known.
const UNCERTAIN: f64 = 0.3;

/// What the processes of one program did.
#[derive(Default)]
struct Of {
    count: usize,
    lifetime: f64,
    /// The same without waiting for a CPU.
    active: f64,
    /// In calls that start, map and end programs, and outside of calls.
    starting: f64,
    threads: BTreeSet<u32>,
}

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let trace = case.trace;
    let by_thread: BTreeMap<u32, &str> = trace
        .observed
        .programs
        .iter()
        .map(|program| (program.thread, base_name(program.args.first().unwrap_or(&program.file))))
        .collect();
    let mut programs = BTreeMap::<&str, Of>::new();
    for thread in trace.observed.threads.iter().filter(|thread| thread.parent != 0) {
        let Some(name) = by_thread.get(&thread.number) else { continue };
        let lifetime = thread.lifetime_ns().0 as f64;
        // A busy machine makes lives longer, not the work in them.
        let active = lifetime - thread.runqueue_ns.0 as f64;
        if active > SHORT {
            continue;
        }
        let of = programs.entry(name).or_default();
        let kernel = thread.kernel_ns.iter().filter(|(call, _)| starts_processes(call)).map(|(_, ns)| ns.0 as f64);
        of.count += 1;
        of.lifetime += lifetime;
        of.active += active;
        of.starting += kernel.sum::<f64>() + (thread.user_ns.0 as f64).min(LOADING);
        of.threads.insert(thread.number);
    }
    let (name, of) = programs.into_iter().max_by(|a, b| a.1.lifetime.total_cmp(&b.1.lifetime))?;
    let on_path = case.threads_on_path(&of.threads).min(waited_for(case));
    let share = on_path / case.wall();
    let part = of.starting / of.active.max(1.0);
    if of.count < LEAST_PROCESSES || share < LEAST_SHARE || part < LEAST_PART {
        return None;
    }
    // The path leads through some of the processes; those are like the others.
    let part_on_path = (on_path / of.lifetime.max(1.0)).min(1.0);
    let saved = (of.starting + making(case, &of)) * part_on_path;
    let evidence = vec![
        format!("{} processes of {name}, {} each", Grouped(of.count as u64), seconds(of.active / of.count as f64)),
        format!("{} of that to start, load and end them; the rest is their work", percent(part)),
    ];
    Some(
        Diagnosed {
            title: format!(
                "{} processes of {name} that each do little: {} of the time",
                Grouped(of.count as u64),
                percent(share)
            ),
            share,
            evidence,
            predicted: estimate::without(case, saved, UNCERTAIN),
            cure: vec![
                Remedy::advice(format!(
                    "give one {name} many files: xargs without -n 1, find -exec {name} {{}} + instead of \\;"
                )),
                Remedy::advice(
                    "or do it in the program that starts them: a shell's own [ ], ${name##*/}, a loop in awk or python",
                ),
            ],
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}

/// What the ledger leaves for processes: waits of its thread for others, calls that make them, and theirs on the path. All of
/// it where the path is known.
fn waited_for(case: &Case<'_>) -> f64 {
    use inodyne_model::cause::Cause;
    if case.path.is_some() {
        return case.wall();
    }
    case.ledger(|row| {
        let of_others =
            matches!(row.cause, Some(Cause::Child | Cause::Pipe | Cause::Poll | Cause::Other | Cause::Futex));
        let makes = row.syscall.as_deref().is_some_and(|call| starts_processes(call) || call == "wait4");
        of_others || makes || !row.via.is_empty() || matches!(row.kind, RowKind::User | RowKind::Runqueue)
    })
}

/// What their parents spend on making them: of what each spends on all its children, their part.
fn making(case: &Case<'_>, of: &Of) -> f64 {
    let threads = &case.trace.observed.threads;
    let mut children = BTreeMap::<ThreadNumber, (f64, f64)>::new();
    for thread in threads {
        let (theirs, all) = children.entry(thread.parent).or_default();
        *theirs += f64::from(u8::from(of.threads.contains(&thread.number)));
        *all += 1.0;
    }
    let making = threads.iter().map(|thread| {
        let (theirs, all) = children.get(&thread.number).copied().unwrap_or_default();
        let makes = |call: &str| matches!(call, "clone" | "clone3" | "vfork" | "fork");
        let spent = thread.kernel_ns.iter().filter(|(call, _)| makes(call)).map(|(_, ns)| ns.0 as f64);
        spent.sum::<f64>() * theirs / all.max(1.0)
    });
    making.sum()
}
