//! `cpu-limited`: the command is ready to run, but its cgroup has used up the CPU time that it is allowed.

use inodyne_model::finding::Finding;
use inodyne_model::ledger::RowKind;

use super::case::Case;
use super::estimate::{self, Diagnosed};
use super::remedy::advice;
use crate::units::{percent, seconds};

/// Below this share of the wall-clock time it costs nobody anything.
const LEAST_SHARE: f64 = 0.15;
/// The cgroup counts each CPU on which it was held; which of that the path waited for is not known.
const UNCERTAIN: f64 = 0.25;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let limit = case.trace.limits.iter().filter(|limit| limit.held_ns.0 > 0).max_by_key(|limit| limit.held_ns)?;
    let held = held(case, limit.held_ns.0 as f64);
    let share = held / case.wall();
    if share < LEAST_SHARE {
        return None;
    }
    Some(
        Diagnosed {
            title: format!("The command's cgroup allows it {limit}, and it waits for more: {} of the time", percent(share)),
            share,
            evidence: vec![
                format!("{} says so", limit.file),
                format!("its threads were kept from running for {}, summed over CPUs", seconds(limit.held_ns.0 as f64)),
            ],
            predicted: estimate::without(case, held, UNCERTAIN),
            cure: advice(&[
                "raise the limit (docker run --cpus, systemd CPUQuota, a pod's limits), or run it in another cgroup",
                "or start fewer threads: many use up the time of a period at once, and all stand still for the rest of it",
            ]),
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}

/// How much of the path was waiting for a CPU because of the limit, at most.
fn held(case: &Case<'_>, held_ns: f64) -> f64 {
    case.ledger(|row| row.kind == RowKind::Runqueue).min(held_ns)
}
