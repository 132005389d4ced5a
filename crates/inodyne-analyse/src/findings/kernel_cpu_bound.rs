//! `kernel-cpu-bound`: most of the time is the kernel's work on a CPU. A bound: no faster device can help with that.

use inodyne_model::cause::Cause;
use inodyne_model::finding::Finding;
use inodyne_model::ledger::{PAGE_FAULT, RowKind};

use super::case::Case;
use super::estimate::{self, Diagnosed};
use super::families::concerns_files;
use super::remedy::advice;
use crate::units::{percent, seconds};

/// From this share of the wall-clock time on, this is what the command does.
const LEAST_SHARE: f64 = 0.5;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let kernel = case.ledger(|row| row.kind == RowKind::Kernel);
    let share = kernel / case.wall();
    if case.ledger_at_least(|row| row.kind == RowKind::Kernel) / case.wall() < LEAST_SHARE {
        return None;
    }
    let mut rows: Vec<_> = case.trace.ledger.rows.iter().filter(|row| row.kind == RowKind::Kernel).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.ns));
    let top = rows.iter().take(3).map(|row| {
        let call = row.syscall.as_deref().unwrap_or("system-call overhead");
        format!("{call} {}", seconds(row.ns.0 as f64))
    });
    let of_top = rows.first().and_then(|row| row.syscall.as_deref());
    let cure = match of_top {
        Some(PAGE_FAULT) => {
            "take fewer page faults: use memory again rather than ask for new pages (glibc.malloc.trim_threshold, a pool), map files at once (MAP_POPULATE), or use huge pages"
        }
        Some(call) if concerns_files(call) => {
            "make fewer calls, or use a file system that does less work in each: inodyne compare shows which"
        }
        _ => {
            "make fewer of these calls: a profile (perf record -g) says who makes them, and what the kernel does in them"
        }
    };
    let device = case.ledger(|row| row.cause.is_some_and(Cause::is_of_device));
    Some(
        Diagnosed {
            title: format!("The kernel works on a CPU for {} of the time", percent(share)),
            share,
            evidence: vec![
                format!("on a CPU in the kernel: {}", top.collect::<Vec<_>>().join(", ")),
                format!("a device of no delay at all would save {} at most", seconds(device)),
            ],
            predicted: estimate::at_best(case, device),
            cure: advice(&[cure]),
            avoidable_calls: None,
            bound: true,
        }
        .finding_if(case, "the device took no time"),
    )
}
