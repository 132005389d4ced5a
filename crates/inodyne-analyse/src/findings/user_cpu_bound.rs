//! `user-cpu-bound`: most of the time the program itself computes. A bound: nothing below it can help with that.

use inodyne_model::finding::Finding;
use inodyne_model::ledger::{Row, RowKind};

use super::case::Case;
use super::estimate::{self, Diagnosed};
use super::fs_not_to_blame::{Kind, kind_of, may_be_of_files};
use super::remedy::advice;
use crate::units::{percent, seconds};

/// From this share of the wall-clock time on, this is what the command does.
const LEAST_SHARE: f64 = 0.5;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    // What a server computes meanwhile is not the program's own.
    let is_own = |row: &&Row| row.kind == RowKind::User && row.via.is_empty();
    let user = case.ledger(is_own);
    let share = user / case.wall();
    if case.ledger_at_least(is_own) / case.wall() < LEAST_SHARE {
        return None;
    }
    let rest = case.ledger(|row| row.kind == RowKind::Kernel || kind_of(row) == Kind::Files || may_be_of_files(row));
    Some(
        Diagnosed {
            title: format!("The program computes for {} of the time", percent(share)),
            share,
            evidence: vec![
                format!("{} in user mode", seconds(user)),
                format!(
                    "the kernel and all that concerns files, or may, took {}: no file system can save more",
                    seconds(rest)
                ),
            ],
            predicted: estimate::at_best(case, rest),
            cure: advice(&["profile the program (perf record) to see where; files are not the reason"]),
            avoidable_calls: None,
            bound: true,
        }
        .finding_if(case, "kernel and I/O took no time"),
    )
}
