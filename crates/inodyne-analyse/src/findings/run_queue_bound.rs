//! `run-queue-bound`: threads are ready and have no CPU. A bound: neither disk nor file system can help.

use inodyne_model::finding::Finding;
use inodyne_model::ledger::RowKind;

use super::case::Case;
use super::estimate::{self, Diagnosed};
use super::remedy::advice;
use crate::units::{percent, seconds};

/// From this share of the wall-clock time on, CPUs are what is missing. Wake-ups alone take a tenth on a virtual machine.
const LEAST_SHARE: f64 = 0.35;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let ready = case.ledger(|row| row.kind == RowKind::Runqueue);
    let share = ready / case.wall();
    if share < LEAST_SHARE {
        return None;
    }
    let cpus = case.recording.host.cpus;
    let own: f64 = case.trace.observed.threads.iter().map(|thread| thread.cpu_ns().0 as f64).sum::<f64>() / case.wall();
    let by_itself = own > f64::from(cpus) * 0.7;
    let whose = match by_itself {
        true => "its own threads take them from each other",
        false => "others had them, or a limit keeps it from them",
    };
    Some(
        Diagnosed {
            title: format!("Waiting for a CPU accounts for {} of the time: {whose}", percent(share)),
            share,
            evidence: vec![format!(
                "{} ready without a CPU; it used {own:.1} of {cpus} CPUs on average",
                seconds(ready)
            )],
            predicted: estimate::at_best_of(case, share),
            cure: match by_itself {
                true => advice(&["more CPUs, or less work; fewer threads than CPUs switch less"]),
                false => advice(&[
                    "measure on a quiet machine, or give it CPUs of its own (cpuset, cpu.weight)",
                    "or lift what limits it: cpu.max of its cgroup (docker run --cpus), taskset",
                ]),
            },
            avoidable_calls: None,
            bound: true,
        }
        .finding(case),
    )
}
