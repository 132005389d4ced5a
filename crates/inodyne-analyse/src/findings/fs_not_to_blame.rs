//! `fs-not-to-blame`: the time is spent on something that has nothing to do with files. A bound, and often the answer that
//! was looked for.

use inodyne_model::cause::Cause;
use inodyne_model::finding::Finding;
use inodyne_model::ledger::{PAGE_FAULT, Row, RowKind};

use super::case::Case;
use super::estimate::{self, Diagnosed, percent, seconds};
use super::families::concerns_files;
use super::remedy::advice;

/// From this share of the wall-clock time on, something else is the reason.
const LEAST_SHARE: f64 = 0.5;
/// And files have at most this share.
const MOST_OF_FILES: f64 = 0.15;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let elsewhere = case.ledger(is_elsewhere);
    let files = case.ledger(is_of_files);
    let share = elsewhere / case.wall();
    if share < LEAST_SHARE || files / case.wall() > MOST_OF_FILES {
        return None;
    }
    let mut rows: Vec<&Row> = case.trace.ledger.rows.iter().filter(is_elsewhere).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.ns));
    let top: Vec<_> = rows.iter().take(3).map(|row| format!("{} {}", named(row), seconds(row.ns.0 as f64))).collect();
    Some(
        Diagnosed {
            title: format!("{} of the time has nothing to do with files", percent(share)),
            share,
            evidence: vec![
                format!("most of it: {}", top.join(", ")),
                format!("everything that concerns files took {} of the time", percent(files / case.wall())),
            ],
            predicted: estimate::at_best(case, files),
            cure: advice(&["nothing here: no file system, mount option or disk can save more than that"]),
            avoidable_calls: None,
            bound: true,
        }
        .finding(case),
    )
}

/// Sleeps, sockets, terminals: what no file system has a part in. Children, pipes and locks are others' work, which may be
/// with files, and so neither here nor there.
fn is_elsewhere(row: &&Row) -> bool {
    match (row.kind, row.cause) {
        // Others' work, for a call of ours: it is the call that says what it is about.
        _ if !row.via.is_empty() => !is_of_files(row),
        (RowKind::User, _) => true,
        (RowKind::Blocked, Some(Cause::Sleep | Cause::Socket | Cause::Poll | Cause::Stopped)) => true,
        (RowKind::Kernel, _) => !is_of_files(row),
        _ => false,
    }
}

fn is_of_files(row: &&Row) -> bool {
    let of_call = row.syscall.as_deref().is_some_and(|call| concerns_files(call) || call == PAGE_FAULT);
    match (row.kind, row.cause) {
        _ if !row.via.is_empty() => of_call,
        (RowKind::Kernel, _) => of_call,
        (
            RowKind::Blocked,
            Some(
                Cause::Sleep | Cause::Socket | Cause::Poll | Cause::Stopped | Cause::Child | Cause::Pipe | Cause::Futex,
            ),
        ) => false,
        (RowKind::Blocked, _) => true,
        _ => false,
    }
}

fn named(row: &Row) -> String {
    match (row.kind, row.cause) {
        (RowKind::User, _) => "user mode".to_owned(),
        (_, Some(cause)) => cause.to_string(),
        _ => row.syscall.clone().unwrap_or_else(|| "entry and exit of calls".to_owned()),
    }
}
