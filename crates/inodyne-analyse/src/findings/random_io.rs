//! `random-io`: contents are requested from the device a little at a time, at places far apart in a few files.
//!
//! Nothing can be read ahead for a program that jumps, so each request costs the device's answer. Requests in order are `small-requests`; one or two
//! for each of many files are `single-stream`, and pages of a mapping `mmap-faults`.

use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::cure::{CacheChange, Change};
use inodyne_model::finding::Finding;

use super::at_device::AtDevice;
use super::case::Case;
use super::contents::{LARGE_READ, for_each_file, waiting_directly, waiting_for_contents};
use super::estimate::{self, Diagnosed};
use super::remedy::Remedy;
use crate::units::{percent, seconds, times};

/// Below this share of the wall-clock time the order would not be noticed.
const LEAST_SHARE: f64 = 0.15;
/// Fewer are just the beginnings of a few files.
const LEAST_REQUESTS: u64 = 100;
/// Requests for each file that is opened: whoever reads many files has no order in which to read one of them.
const LEAST_PER_FILE: f64 = 8.0;
/// If at least this fraction is in order, somebody reads in order.
const AT_RANDOM: f64 = 0.25;
/// Below this many requests at once, the device could serve more.
const FEW: f64 = 2.0;
/// From memory, the same calls only copy; how much of their time on a CPU went into requests is not known.
const UNCERTAIN: f64 = 0.25;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let device = AtDevice::of(case)?;
    let asked = device.contents();
    let cached = waiting_for_contents(case);
    let direct = case.waiting(|waited| waited.cause == Cause::DeviceRead && waited.is_direct() && !waited.is_sync());
    let written = waiting_directly(case).ns - direct.ns;
    let is_direct = direct.ns > cached.ns;
    let time = cached.and(direct);
    let share = case.share(&time);
    // What is written would not be quicker for being in memory.
    if share < LEAST_SHARE
        || written > time.ns
        || asked.requests < LEAST_REQUESTS
        || for_each_file(case, asked.requests) < LEAST_PER_FILE
        || asked.mean_bytes() as f64 >= LARGE_READ
        || asked.in_order() >= AT_RANDOM
    {
        return None;
    }
    let mut evidence = vec![
        format!(
            "{} requests of {:.1} KB on average, {} of them in order",
            Grouped(asked.requests),
            asked.mean_bytes() as f64 / 1e3,
            percent(asked.in_order()),
        ),
        format!("waited {}, {} each, {} together", times(time.count), seconds(time.mean()), seconds(time.ns)),
    ];
    let depth_line = evidence.len();
    evidence.extend(device.line());
    // For reads that bypass the cache nothing is in memory, whatever was read before.
    let in_memory =
        "load the file into memory beforehand if it fits, as the prediction assumes: vmtouch, cat FILE >/dev/null";
    let keep = match is_direct {
        true => Remedy::advice(format!("{in_memory}; and read it through the page cache")),
        false => Remedy::new(in_memory, Change::Cache(CacheChange::Contents)),
    };
    let mut cure = vec![
        keep,
        Remedy::advice(
            "ask in the order in which it lies in the file: sorted by offset, by an index, or all of it in large pieces where most is needed",
        ),
    ];
    if device.load.depth < FEW && evidence.len() > depth_line {
        let several = "or several at once: threads, io_uring, or posix_fadvise WILLNEED for what comes next";
        cure.push(Remedy::advice(several).answering(depth_line));
    }
    Some(
        Diagnosed {
            title: format!(
                "{} asks the device for small pieces far apart: {} of the time",
                case.who(&time),
                percent(share)
            ),
            share,
            evidence,
            predicted: estimate::without(case, case.on_path(&time), UNCERTAIN),
            cure,
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}
