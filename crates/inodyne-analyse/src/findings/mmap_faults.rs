//! `mmap-faults`: a mapped file is read by page faults, a page or a few at a time.
//!
//! Many small files that are mapped one after the other take a fault or two each, however they are read: that is `cold-program`.

use std::collections::BTreeMap;

use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::finding::Finding;
use inodyne_model::ledger::PAGE_FAULT;
use inodyne_model::observed::ThreadNumber;

use super::case::{Case, Waited, total};
use super::contents::for_each_file;
use super::estimate::{self, Diagnosed};
use super::remedy::advice;
use crate::units::{percent, seconds};

/// Below this share of the wall-clock time, faults are a cost that any program has.
const LEAST_SHARE: f64 = 0.2;
/// Starting a program from a cold cache takes some dozens of waits, or a hundred and more where it is large.
const LEAST_WAITS_OF_PROCESS: u64 = 200;
/// Waits for each file that is opened: with fewer, there is nothing in a file to read in larger pieces.
const LEAST_PER_FILE: f64 = 2.0;
/// Read in large pieces, the same data takes about this fraction of the time.
const STAYS: f64 = 0.3;
const UNCERTAIN: f64 = 0.35;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let time = case.waiting(is_of_device);
    let share = case.share(&time);
    if !reads_by_faults(case) || share < LEAST_SHARE {
        return None;
    }
    let who = case.who(&time);
    Some(
        Diagnosed {
            title: format!("{who} reads mapped files by page faults: {} of the time", percent(share)),
            share,
            evidence: vec![format!(
                "{} page faults waited for the device, {} each, {} together",
                Grouped(time.count),
                seconds(time.mean()),
                seconds(time.ns)
            )],
            predicted: estimate::without(case, case.on_path(&time) * (1.0 - STAYS), UNCERTAIN),
            cure: advice(&[
                "tell the kernel what will be needed: madvise MADV_WILLNEED, MADV_POPULATE_READ, or MAP_POPULATE; MADV_SEQUENTIAL if it is read in order",
                "do not use MADV_RANDOM, which turns read-ahead off, unless access is random",
                "or read() the file in large pieces",
                "a program and its libraries are mapped files, too: load them into memory beforehand (vmtouch -t, cat FILES >/dev/null)",
            ]),
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}

/// A fault that waits for the device.
fn is_of_device(waited: &Waited<'_>) -> bool {
    waited.call == PAGE_FAULT && waited.cause == Cause::DeviceRead
}

/// Whether a process waits more often than the start of its program accounts for, and more than once or so for each file.
pub(super) fn reads_by_faults(case: &Case<'_>) -> bool {
    let faults = total(case.waits().filter(is_of_device).map(|waited| waited.wait.count));
    waits_often(case) && for_each_file(case, faults) >= LEAST_PER_FILE
}

/// Whether a process waits more often than the start of its program accounts for.
pub(super) fn waits_often(case: &Case<'_>) -> bool {
    let threads = &case.trace.observed.threads;
    let process: BTreeMap<ThreadNumber, u32> = threads.iter().map(|thread| (thread.number, thread.pid)).collect();
    let mut by_process = BTreeMap::<Option<&u32>, u64>::new();
    for waited in case.waits().filter(is_of_device) {
        let of_process = by_process.entry(process.get(&waited.wait.thread)).or_default();
        *of_process = of_process.saturating_add(waited.wait.count);
    }
    by_process.values().any(|count| *count >= LEAST_WAITS_OF_PROCESS)
}
