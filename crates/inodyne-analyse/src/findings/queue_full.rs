//! `queue-full`: requests wait for room in the queue before the device, and calls with them.

use inodyne_model::cause::Cause;
use inodyne_model::count::counted;
use inodyne_model::finding::Finding;
use inodyne_model::stack::function_name;

use super::case::{Case, parallel};
use super::estimate::{self, Diagnosed};
use super::others;
use super::remedy::{Remedy, advice, without_settings};
use crate::units::{percent, seconds};

/// Below this share of the wall-clock time the queue has room.
const LEAST_SHARE: f64 = 0.1;
/// A longer queue makes no faster device: some of the waiting moves to another place.
const STAYS: f64 = 0.5;
const UNCERTAIN: f64 = 0.5;
/// Fewer threads than this on average count as one.
const SEVERAL: f64 = 1.2;

/// Settings that say how much may wait in the queue (Documentation/ABI/stable/sysfs-block).
const LIMITS: &[&str] = &["nr_requests", "wbt_lat_usec", "scheduler", "max_sectors_kb"];

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let time = case.waiting(|waited| waited.cause == Cause::QueueFull);
    let share = case.share(&time);
    if share < LEAST_SHARE {
        return None;
    }
    let of = |names: &[&str]| {
        case.waiting(|w| w.cause == Cause::QueueFull && w.passes(|f| names.contains(&function_name(f)))).ns
    };
    let tags = of(&["blk_mq_get_tag"]);
    // All that throttles passes `__rq_qos_throttle`.
    let throttled = of(&["wbt_wait"]);
    let inodes = of(&["destroy_inode", "xfs_inodegc_queue", "xfs_fs_destroy_inode"]);
    let limited = of(&[
        "blk_throtl_bio",
        "__blk_throtl_bio",
        "ioc_rqos_throttle",
        "blkcg_iolatency_throttle",
        "blkcg_maybe_throttle_current",
    ]);
    let is_for_inodes = inodes > time.ns / 2.0;
    let is_for_a_limit = limited > time.ns / 2.0;
    // A single thread that removes files cannot do anything about it.
    if is_for_inodes && parallel(case.trace, &time.threads) < SEVERAL {
        return None;
    }
    let mut evidence = vec![format!(
        "{} for room, {} each, {} together",
        counted(time.count, "wait", "waits"),
        seconds(time.mean()),
        seconds(time.ns)
    )];
    for (ns, what) in [
        (tags, "for a free request (nr_requests)"),
        (throttled, "in writeback throttling (wbt), which holds writes back for the sake of reads"),
        (inodes, "for inodes to be freed in the background (inodegc of XFS)"),
        (limited, "for the limit of a cgroup (io.max, io.cost, io.latency)"),
    ] {
        if ns > time.ns * 0.1 {
            evidence.push(format!("{} of it {what}", percent(ns / time.ns)));
        }
    }
    evidence.extend(others::evidence(case));
    Some(
        Diagnosed {
            title: format!("Calls wait for room in a full queue: {} of the time", percent(share)),
            share,
            evidence,
            predicted: estimate::without(case, case.on_path(&time) * (1.0 - STAYS), UNCERTAIN),
            cure: if is_for_inodes {
                advice(&["remove files in fewer threads at once: XFS frees inodes in the background, and holds back whoever is faster"])
            } else if is_for_a_limit {
                advice(&[
                    "raise the limit of the cgroup that it runs in, or run it in another one: io.max, io.latency, io.weight and io.cost.qos",
                    "or issue fewer requests: what is in the page cache is not limited",
                ])
            } else {
                vec![
                    Remedy::new(
                        "make the queue longer: /sys/block/DEVICE/queue/nr_requests; turn writeback throttling off: wbt_lat_usec = 0",
                        without_settings(case, LIMITS),
                    ),
                    Remedy::advice("issue fewer requests at once: with more in flight than the device serves in parallel, each only waits longer"),
                    Remedy::advice("a higher limit, where a cgroup sets it: io.max"),
                ]
            },
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}
