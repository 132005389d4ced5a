//! `journal-wait`: calls that do not ask for durability wait for the journal all the same: it commits, or is full.
//! Where it commits because somebody syncs again and again, that is `commit-storm`.

use inodyne_model::cure::{Change, PlaceChange};
use inodyne_model::finding::Finding;

use super::case::Case;
use super::estimate::{self, Diagnosed};
use super::journals;
use super::others;
use super::remedy::Remedy;
use crate::units::percent;

/// Below this share of the wall-clock time the journal keeps up.
const LEAST_SHARE: f64 = 0.1;
/// A single wait is one commit that came at the wrong time.
const LEAST_WAITS: u64 = 3;
/// With a larger journal the same blocks are written later; some of them still during the run.
const UNCERTAIN: f64 = 0.4;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let time = journals::waiting(case);
    let share = case.share(&time);
    if time.count < LEAST_WAITS || share < LEAST_SHARE {
        return None;
    }
    let mut evidence = journals::by_call(&time, 3);
    let space = journals::waiting_for_room(case);
    let mut for_room = 0;
    if space.ns > time.ns * 0.3 {
        for_room = evidence.len();
        evidence.push(format!(
            "{} of it for room in the journal: it is too small for this load",
            percent(space.ns / time.ns)
        ));
    }
    evidence.extend(others::evidence(case));
    Some(
        Diagnosed {
            title: format!("Calls wait for the journal of the file system: {} of the time", percent(share)),
            share,
            evidence,
            predicted: estimate::without(case, case.on_path(&time), UNCERTAIN),
            cure: vec![
                larger(journals::file_system(case)).answering(for_room),
                Remedy::advice("or let others sync less: every fsync on this file system commits the work of all"),
                Remedy::advice("or put the journal on a faster device"),
            ],
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}

/// A journal that is full less often. What a trial makes is smaller than what is advised, since its place may be small.
fn larger(fs: Option<&str>) -> Remedy {
    let mkfs = |option: &str, value: &str| {
        let (parameter, value) = ("size".to_owned(), value.to_owned());
        Change::Place(PlaceChange::Mkfs { option: option.to_owned(), parameter, value })
    };
    match fs {
        Some("xfs") => {
            Remedy::new("make the log larger: mkfs.xfs -l size=512m, and mount with logbsize=256k", mkfs("-l", "256m"))
        }
        Some("btrfs") => Remedy::new(
            "commit less often: mount with commit=120",
            Change::Place(PlaceChange::Mount("commit=120".to_owned())),
        ),
        Some(_) => Remedy::new(
            "make the journal larger: tune2fs -O ^has_journal, then tune2fs -J size=1024 (unmounted); mke2fs -J size=1024",
            mkfs("-J", "256"),
        ),
        None => Remedy::advice("make its journal larger: tune2fs -J size=1024 for ext4, mkfs.xfs -l size=512m for XFS"),
    }
}
