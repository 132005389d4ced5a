//! `write-throttled`: writes that go to memory are made to wait, since too much of it is not on the device yet.

use inodyne_model::cause::Cause;
use inodyne_model::finding::Finding;
use inodyne_model::stack::function_name;

use super::case::{Case, total};
use super::estimate::{self, Diagnosed};
use super::others;
use super::remedy::{Remedy, advice, without_settings};
use crate::units::{percent, seconds, times};

/// Below this share of the wall-clock time the limits are high enough.
const LEAST_SHARE: f64 = 0.1;
/// With higher limits the device writes meanwhile, and takes time from other things.
const UNCERTAIN: f64 = 0.35;

/// Settings that say how much may be in memory (Documentation/admin-guide/sysctl/vm.rst, ABI/testing/sysfs-class-bdi).
const LIMITS: &[&str] = &[
    "dirty_bytes",
    "dirty_ratio",
    "dirty_background_bytes",
    "dirty_background_ratio",
    "max_ratio",
    "max_bytes",
    "strict_limit",
];

/// Whether a call waits here for metadata's room in btrfs (fs/btrfs/space-info.c): how much of memory may be dirty has no part in it.
fn makes_room_for_metadata(function: &str) -> bool {
    matches!(function_name(function), "__reserve_bytes" | "handle_reserve_ticket" | "wait_reserve_ticket")
}

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let time = case.waiting(|waited| waited.cause == Cause::WriteThrottle);
    let share = case.share(&time);
    if share < LEAST_SHARE {
        return None;
    }
    let mut evidence: Vec<String> = time
        .top_calls()
        .iter()
        .take(3)
        .map(|(call, ns, count)| format!("{call} was held back {}, {} together", times(*count), seconds(*ns)))
        .collect();
    let bytes = total(case.calls(super::families::writes).filter_map(|call| call.bytes));
    if bytes > 0 {
        evidence.push(format!("{:.1} MB were written by calls", bytes as f64 / 1e6));
    }
    evidence.extend(others::evidence(case));
    let for_metadata =
        case.waiting(|waited| waited.cause == Cause::WriteThrottle && waited.passes(makes_room_for_metadata));
    let is_for_metadata = for_metadata.ns > time.ns / 2.0;
    if is_for_metadata {
        let share = percent(for_metadata.ns / time.ns);
        evidence.push(format!("{share} of it while btrfs made room for metadata"));
    }
    let durable = "this is about the time to exit: getting everything onto the device takes as long as before";
    evidence.push(durable.to_owned());
    Some(
        Diagnosed {
            title: format!("Writes are held back until the device has caught up: {} of the time", percent(share)),
            share,
            evidence,
            predicted: estimate::without(case, case.on_path(&time), UNCERTAIN),
            cure: if is_for_metadata {
                advice(&[
                    "leave more room: btrfs filesystem usage says how much is left for metadata, and btrfs balance -dusage=10 returns block groups that are nearly empty",
                    "or change fewer files at once: each reserves room for metadata until it is written",
                ])
            } else {
                vec![
                    Remedy::new(
                        "allow more dirty data in memory: raise vm.dirty_ratio or vm.dirty_bytes and keep vm.dirty_background_bytes well below it, if the data may be lost in a power failure",
                        without_settings(case, LIMITS),
                    ),
                    Remedy::advice("or write less, or earlier: the device is what limits in the long run"),
                    Remedy::advice("in a container: the limit may be that of its memory (memory.max), of which a part may be dirty"),
                ]
            },
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}
