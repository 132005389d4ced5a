//! `small-requests`: contents go to or from the device in order, but in requests so small that each costs the device's answer and hardly
//! moves anything. Fewer, larger ones would be answered just as quickly.
//!
//! Small requests at places far apart are `random-io`, one or two for each of many small files `single-stream`.

use inodyne_model::count::Grouped;
use inodyne_model::finding::Finding;

use super::at_device::AtDevice;
use super::case::Case;
use super::contents::{LARGE_READ, for_each_file, waiting_directly, waiting_for_contents};
use super::estimate::{self, Diagnosed};
use super::remedy::{Remedy, read_ahead_file, without_settings};
use crate::units::{percent, seconds, times};

/// Below this share of the wall-clock time larger requests would not be noticed.
const LEAST_SHARE: f64 = 0.15;
/// Fewer are just the beginnings of a few files.
const LEAST_REQUESTS: u64 = 100;
/// Requests for each file that is opened: a small file takes one or two, however it is read.
const LEAST_PER_FILE: f64 = 8.0;
/// Half of what is taken to be large is small.
const SMALL: f64 = LARGE_READ / 2.0;
/// If at least this fraction is in order, they could have been one.
const IN_ORDER: f64 = 0.5;
/// What larger requests are taken to hold: as much as read-ahead asks for at once.
const LARGE: f64 = 131_072.0;
/// Bytes that a device moves in a nanosecond. Many are faster; then less remains.
const MOVES: f64 = 1.0;
/// How fast the device really moves what it has found is not known.
const UNCERTAIN: f64 = 0.15;

/// Settings that make requests small (Documentation/ABI/stable/sysfs-block).
const LIMITS: &[&str] = &["read_ahead_kb", "max_sectors_kb"];

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let device = AtDevice::of(case)?;
    let asked = device.contents();
    let (cached, direct) = (waiting_for_contents(case), waiting_directly(case));
    let is_direct = direct.ns > cached.ns;
    let time = cached.and(direct);
    let share = case.share(&time);
    let mean = asked.mean_bytes() as f64;
    let sequential = asked.in_order();
    if share < LEAST_SHARE
        || asked.requests < LEAST_REQUESTS
        || for_each_file(case, asked.requests) < LEAST_PER_FILE
        || mean >= SMALL
        || sequential < IN_ORDER
    {
        return None;
    }
    let on_path = case.on_path(&time);
    let stays = on_path * mean / LARGE + asked.bytes as f64 / MOVES;
    let large = (asked.bytes as f64 / LARGE).ceil() as u64;
    let mut evidence = vec![
        format!(
            "{} requests of {:.1} KB on average, {} of them in order: {} of 128 KiB would do",
            Grouped(asked.requests),
            mean / 1e3,
            percent(sequential),
            Grouped(large),
        ),
        format!("waited {}, {} each, {} together", times(time.count), seconds(time.mean()), seconds(time.ns)),
    ];
    evidence.extend(device.line());
    let cure = if is_direct {
        vec![
            Remedy::advice(
                "ask for more at once: a buffer of 1 MiB (dd bs=1M, fio --bs=1m), since nobody reads ahead of direct I/O",
            ),
            Remedy::advice("or go through the page cache, which reads ahead and writes behind"),
        ]
    } else {
        vec![
            Remedy::new(
                format!(
                    "let the kernel read ahead: {} at 128 or more, max_sectors_kb not below it",
                    read_ahead_file(case)
                ),
                without_settings(case, LIMITS),
            ),
            Remedy::advice(
                "or say that the file is read in order (posix_fadvise SEQUENTIAL, not RANDOM), or read it in large pieces",
            ),
        ]
    };
    Some(
        Diagnosed {
            title: format!("Adjacent data goes to or from the device in small pieces: {} of the time", percent(share)),
            share,
            evidence,
            predicted: estimate::without(case, on_path - stays.min(on_path), UNCERTAIN),
            cure,
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}
