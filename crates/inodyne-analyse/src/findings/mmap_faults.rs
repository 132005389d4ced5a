//! `mmap-faults`: a mapped file is read by page faults, a page or a few at a time.

use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::finding::Finding;
use inodyne_model::ledger::PAGE_FAULT;

use super::case::Case;
use super::estimate::{self, Diagnosed};
use super::remedy::advice;
use crate::units::{percent, seconds};

/// Below this share of the wall-clock time faults are the price of any program.
const LEAST_SHARE: f64 = 0.2;
/// Starting a program from a cold cache takes some dozens of waits.
const LEAST_WAITS: u64 = 200;
/// Read in large pieces, the same data takes this part of the time, more or less.
const STAYS: f64 = 0.3;
const UNCERTAIN: f64 = 0.35;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let time = case.waiting(|waited| waited.call == PAGE_FAULT && waited.cause == Cause::DeviceRead);
    let share = case.share(&time);
    if time.count < LEAST_WAITS || share < LEAST_SHARE {
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
                "say what will be needed: madvise MADV_WILLNEED, MADV_POPULATE_READ, or MAP_POPULATE; MADV_SEQUENTIAL where it is read in order",
                "do not say MADV_RANDOM, which switches reading ahead off, unless it is",
                "or read() the file in large pieces",
            ]),
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}
