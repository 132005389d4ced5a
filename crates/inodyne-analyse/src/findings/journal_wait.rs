//! `journal-wait`: calls that do not ask for durability wait for the journal all the same: it commits, or is full.

use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::finding::Finding;

use super::case::Case;
use super::estimate::{self, Draft, percent, seconds};

/// Below this share of the wall-clock time the journal keeps up.
const LEAST_SHARE: f64 = 0.1;
/// A single wait is one commit that came at the wrong time.
const LEAST_WAITS: u64 = 3;
/// With a larger journal the same blocks are written later; some of them still during the run.
const UNCERTAIN: f64 = 0.4;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let time = case.waiting(|waited| waited.cause == Cause::Journal && !waited.is_sync() && !waited.is_copy_up());
    let share = case.share(&time);
    if time.count < LEAST_WAITS || share < LEAST_SHARE {
        return None;
    }
    let mut evidence: Vec<String> = time
        .top_calls()
        .iter()
        .take(3)
        .map(|(call, ns, count)| {
            format!("{call} waited {} times for the journal, {} together", Grouped(*count), seconds(*ns))
        })
        .collect();
    let space = case.waiting(|waited| {
        waited.cause == Cause::Journal
            && waited.passes(|function| {
                matches!(
                    function,
                    "__jbd2_log_wait_for_space"
                        | "jbd2_log_do_checkpoint"
                        | "add_transaction_credits"
                        | "xlog_grant_head_wait"
                        | "xlog_grant_head_check"
                )
            })
    });
    if space.ns > time.ns * 0.3 {
        evidence.push(format!(
            "{} of it for room in the journal: it is too small for this load",
            percent(space.ns / time.ns)
        ));
    }
    let larger = match case.fs() {
        "xfs" => "make the log larger: mkfs.xfs -l size=512m, and mount with logbsize=256k",
        "btrfs" => "commit less often: mount with commit=120",
        _ => {
            "make the journal larger: tune2fs -O ^has_journal, then tune2fs -J size=1024 (unmounted); mke2fs -J size=1024"
        }
    };
    Some(
        Draft {
            title: format!("Calls wait for the journal of the file system: {} of the time", percent(share)),
            share,
            evidence,
            predicted: estimate::without(case, case.on_path(&time), UNCERTAIN),
            cure: vec![
                larger.to_owned(),
                "or let others sync less: every fsync on this file system commits the work of all".to_owned(),
                "or put the journal on a faster device".to_owned(),
            ],
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}
