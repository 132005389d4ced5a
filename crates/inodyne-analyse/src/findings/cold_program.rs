//! `cold-program`: programs and libraries come from the device as their pages are touched, since they are not in memory yet.
//!
//! A process that waits more often than the start of a program does is `mmap-faults`, unless it maps so many files that each takes a fault
//! or two.

use inodyne_model::cause::Cause;
use inodyne_model::cure::{CacheChange, Change};
use inodyne_model::finding::Finding;
use inodyne_model::ledger::PAGE_FAULT;
use inodyne_model::page_cache::{Asked, FilePages};

use super::at_device::AtDevice;
use super::case::{Case, Waited};
use super::contents::work_in_faults_of_files;
use super::estimate::{self, Diagnosed};
use super::mmap_faults;
use super::remedy::Remedy;
use crate::units::{percent, seconds, times};

/// Below this share of the wall-clock time most of the program is in memory.
const LEAST_SHARE: f64 = 0.2;
/// Fewer waits may be chance.
const LEAST_WAITS: u64 = 5;
/// From this share of the time of all reads from the device on, it is the program that comes from there, not what it works on.
const MOST: f64 = 0.5;
/// What is in memory is still mapped by a fault, but not brought in: this fraction of the work in faults goes away.
const BRINGING_IN: f64 = 0.7;
const UNCERTAIN: f64 = 0.25;
/// How many files are named at most, and how much of a file there must be for it to be named, in bytes.
const MOST_FILES: usize = 3;
const LARGE_FILE: u64 = 100_000;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let time = case.waiting(is_of_program);
    let share = case.share(&time);
    if share < LEAST_SHARE || time.count < LEAST_WAITS || mmap_faults::reads_by_faults(case) {
        return None;
    }
    let reading = case.waiting(|waited| waited.cause == Cause::DeviceRead);
    let [on_path, all_on_path] = [&time, &reading].map(|time| case.on_path(time));
    if on_path < all_on_path * MOST {
        return None;
    }
    let faults = work_in_faults_of_files(case);
    let programs = case.trace.observed.programs.len();
    let mut evidence = vec![
        format!(
            "{} a page of a mapped file was not in memory, {} each, {} together",
            times(time.count),
            seconds(time.mean()),
            seconds(time.ns)
        ),
        format!("{programs} {} started", if programs == 1 { "program was" } else { "programs were" }),
    ];
    evidence.extend(case.trace.page_cache.as_ref().and_then(|cache| cache.asked.as_ref()).and_then(brought));
    evidence.extend(AtDevice::of(case).and_then(|device| device.line()));
    Some(
        Diagnosed {
            title: format!(
                "Mapped files (programs, libraries) come from the device as they are touched: {} of the time",
                percent(share)
            ),
            share,
            evidence,
            predicted: estimate::without(case, all_on_path + faults * BRINGING_IN, UNCERTAIN),
            cure: vec![
                Remedy::new(
                    "load them into memory beforehand: start the program once, vmtouch -t, or cat FILES >/dev/null, which reads in order",
                    Change::Cache(CacheChange::Warm),
                ),
                match mmap_faults::waits_often(case) {
                    true => Remedy::advice("or touch several files at once (threads, make -j), or pack many small ones into a large one"),
                    false => {
                        let stays = "or start one program that stays, and ask that; smaller and fewer libraries are read sooner";
                        Remedy::advice(stays).answering(1)
                    }
                },
            ],
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}

/// `into memory came 125.0 MB of f0, 0.2 MB of libc.so.6`; none where that is not known.
fn brought(asked: &Asked) -> Option<String> {
    let of_file = |file: &FilePages| format!("{:.1} MB of {}", file.used.distinct_bytes as f64 / 1e6, file.called());
    let large = asked.files.iter().filter(|file| file.used.distinct_bytes >= LARGE_FILE);
    let files: Vec<String> = large.take(MOST_FILES).map(of_file).collect();
    (!files.is_empty()).then(|| format!("into memory came {}", files.join(", ")))
}

/// Whether it is for a page of a program, or of anything else that is mapped: outside of calls, or in the one that starts a program.
fn is_of_program(waited: &Waited<'_>) -> bool {
    waited.cause == Cause::DeviceRead && matches!(waited.call, PAGE_FAULT | "execve" | "execveat")
}
