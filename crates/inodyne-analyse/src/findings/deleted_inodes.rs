//! `deleted-inodes`: ext4 without a journal looks at every inode that was deleted in the last minutes before it creates a file.
//!
//! It reuses none of these until its block of the inode table can be expected to be on the device (`recently_deleted()` in
//! fs/ext4/ialloc.c: `RECENTCY_MIN` is 60 s since Linux 5.7, and `RECENTCY_DIRTY`, 300 s, comes on top while the block is dirty), and
//! looks for one from the start of the group each time. Deletion times are whole seconds, and those of the current second do not count.

use inodyne_model::cure::{Change, PlaceChange};
use inodyne_model::finding::Finding;

use super::case::Case;
use super::estimate::{self, Diagnosed};
use super::remedy::Remedy;
use crate::units::percent;

/// Below this share of the wall-clock time the search does not matter. It is also more than a search without deleted inodes takes.
const LEAST_SHARE: f64 = 0.1;
/// Samples: for a command of a few milliseconds, one sample is a tenth.
const LEAST_SEEN: u64 = 10;
/// Work on a CPU is known from samples, some dozens of them.
const UNCERTAIN: f64 = 0.18;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let time = case.sampled(searches);
    let share = case.share(&time);
    if share < LEAST_SHARE || time.count < LEAST_SEEN {
        return None;
    }
    let mut evidence = case.went_into(&time, "the search (from samples)");
    evidence.push(
        "an inode is not reused for a minute after its deletion, or for six while its block is not yet on the device"
            .to_owned(),
    );
    Some(
        Diagnosed {
            title: format!(
                "Each file that {} creates costs a search past deleted inodes (ext4 without a journal): {} of the time",
                case.who(&time),
                percent(share)
            ),
            share,
            evidence,
            predicted: estimate::without(case, case.on_path(&time), UNCERTAIN),
            cure: vec![
                Remedy::new(
                    "give the file system a journal: tune2fs -O has_journal, while it is not mounted",
                    Change::Place(PlaceChange::Feature("has_journal".to_owned())),
                ),
                Remedy::advice("create the new files before the old ones are deleted, or write over these"),
                Remedy::advice("or delete them some minutes earlier, and sync: then one minute is enough"),
            ],
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}

/// The search for a free inode. The second is part of the first where the compiler inlined it.
fn searches(function: &str) -> bool {
    matches!(function, "find_inode_bit" | "recently_deleted")
}
