//! `io-limited`: what the command waits for is a cgroup's limit on a device's rate, not the device.
//!
//! The kernel holds a limited request back before the device sees it (block/blk-throttle.c): waiting for it looks like waiting for a
//! slow device, with the same stack. What tells them apart is the rate: if it is at the limit, the limit is the reason. Where the device
//! itself is known to have been idle meanwhile, a lower rate is enough.

use inodyne_model::Nanos;
use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::finding::Finding;
use inodyne_model::io_over_time::IoInterval;
use inodyne_model::limit::{Limit, LimitKind};

use super::case::{Case, Time};
use super::estimate::{self, Diagnosed};
use super::remedy::advice;
use crate::units::{percent, seconds, times};

/// Below this share of the wall-clock time, the command hardly waits for the device.
const LEAST_SHARE: f64 = 0.15;
/// From this fraction on of what is allowed in the time spent waiting, the limit is what holds the command back.
const AT_LIMIT: f64 = 0.75;
/// The same where the device was idle: the kernel lets only whole requests through in a slice, and late by a tick or two
/// (tg_within_iops_limit), so at low limits less comes through than is allowed.
const AT_LIMIT_IDLE: f64 = 0.5;
/// A device that had requests for no more than this fraction of the time spent waiting was idle.
const IDLE: f64 = 0.25;
/// The kernel lets requests through in slices of this many seconds: one of them may be cut short (DFL_THROTL_SLICE).
const SLICE: f64 = 0.1;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let limits = case.trace.limits.iter().filter(|limit| limit.kind.is_of_reads() || limit.kind.is_of_writes());
    let held = limits.filter_map(|limit| Some((limit, is_at(limit, case)?)));
    let (limit, time) = held.max_by(|a, b| case.share(&a.1).total_cmp(&case.share(&b.1)))?;
    let share = case.share(&time);
    let rate = limit.used as f64 / (case.wall() / 1e9);
    let rate = match limit.kind {
        LimitKind::ReadBytes | LimitKind::WriteBytes => format!("{:.1} MB a second", rate / 1e6),
        _ => format!("{} a second", Grouped(rate.round() as u64)),
    };
    Some(
        Diagnosed {
            title: format!("The command waits at its cgroup's limit of {limit}: {} of the time", percent(share)),
            share,
            evidence: vec![
                format!("{} says so", limit.file),
                format!("{rate} came through; waited {}, {} together", times(time.count), seconds(time.ns)),
            ],
            predicted: estimate::at_best_of(case, share),
            cure: advice(&[
                "raise the limit, or run it in another cgroup (docker run --device-read-bps, systemd IOReadBandwidthMax, a pod's class)",
                "or ask for less: what is in the page cache is not limited",
            ]),
            avoidable_calls: None,
            bound: true,
        }
        .finding(case),
    )
}

/// The waiting for the device that a limit explains; none where the device was not asked for as much as the limit allows.
fn is_at(limit: &Limit, case: &Case<'_>) -> Option<Time> {
    let time = case.waiting(|waited| match waited.cause {
        Cause::DeviceRead => limit.kind.is_of_reads(),
        Cause::DeviceWrite | Cause::Journal | Cause::DeviceFlush => limit.kind.is_of_writes(),
        Cause::QueueFull => true,
        _ => false,
    });
    let on_path = case.on_path(&time);
    // What came through is that of all threads, so it is compared with the time in which any of them waited. That is at most the sum of
    // their waits, and at most the time in which the device did something.
    let waited = time.ns.min(case.wall()).min(active(limit, case)).max(on_path);
    let allowed = limit.value as f64 * (waited / 1e9 - SLICE).max(0.0);
    let enough = if busy(limit, case) <= waited * IDLE { AT_LIMIT_IDLE } else { AT_LIMIT };
    (on_path >= case.wall() * LEAST_SHARE && limit.used as f64 >= (allowed * enough).max(1.0)).then_some(time)
}

/// How long the device of a limit had any request, in nanoseconds: without end where that is not known. A request that is held back is not
/// there yet (submit_bio_noacct asks the limit before it traces block_bio_queue).
fn busy(limit: &Limit, case: &Case<'_>) -> f64 {
    let disks = case.trace.block.iter().flat_map(|block| &block.disks);
    let mut of_limit = disks.filter(|disk| limit.device.as_ref() == Some(&disk.number));
    of_limit.next().map_or(f64::INFINITY, |disk| disk.busy_ns.0 as f64)
}

/// The time in which the device of a limit did something, in nanoseconds, as far as is known.
fn active(limit: &Limit, case: &Case<'_>) -> f64 {
    let over_time = case.trace.block.as_ref().and_then(|block| block.over_time.as_ref());
    let Some((over_time, device)) = over_time.zip(limit.device.as_ref()) else { return f64::INFINITY };
    let is_active = |interval: &IoInterval| interval.of_disk(device).is_some_and(|disk| disk.requests > 0);
    let active = over_time.iter().filter(|(_, interval)| is_active(interval));
    active.map(|(from, interval)| interval.to_ns.saturating_sub(from)).sum::<Nanos>().0 as f64
}
