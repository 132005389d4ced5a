//! `copy-up`: an overlay copies files to its upper layer, because something about them is changed.

use inodyne_model::cure::{Change, PlaceChange};
use inodyne_model::finding::Finding;

use super::case::{Case, copies_up};
use super::estimate::{self, Diagnosed};
use super::remedy::Remedy;
use crate::units::{percent, seconds};

/// Below this share of the wall-clock time copying up does not matter.
const LEAST_SHARE: f64 = 0.1;
/// Samples and waits: for a command of a few milliseconds, one sample is a tenth.
const LEAST_SEEN: u64 = 10;
/// Work on a CPU is known from samples, some dozens of them.
const UNCERTAIN: f64 = 0.18;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let waiting = case.waiting(|waited| waited.is_copy_up());
    let working = case.sampled(copies_up);
    let time = waiting.clone().and(working.clone());
    let share = case.share(&time);
    if share < LEAST_SHARE || time.count < LEAST_SEEN {
        return None;
    }
    let who = case.who(&time);
    let mut evidence = case.went_into(&time, "copying up");
    evidence.push(format!("{} on a CPU (from samples), {} waiting for it", seconds(working.ns), seconds(waiting.ns)));
    Some(
        Diagnosed {
            title: format!("Whatever {who} changes is first copied to the overlay's upper layer: {} of the time", percent(share)),
            share,
            evidence,
            predicted: estimate::without(case, case.on_path(&time), UNCERTAIN),
            cure: vec![
                Remedy::new(
                    "change the files where they are made: in the image (COPY --chown, --chmod), or on a volume or bind mount instead of the overlay",
                    Change::Place(PlaceChange::Below),
                ),
                Remedy::new(
                    "for owners, modes and times alone: mount with metacopy=on, which copies no contents",
                    Change::Place(PlaceChange::Mount("metacopy=on".to_owned())),
                ),
            ],
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}
