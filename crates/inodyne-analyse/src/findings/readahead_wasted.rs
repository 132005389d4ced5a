//! `readahead-wasted`: the kernel reads ahead, or around a page that is faulted for, and most of it is never asked for.
//!
//! With less of that, requests are smaller, and there may be more of them. That is better where the device takes long for what is read in
//! vain, and worse where each request costs an answer, however small it is: so this is reported only where the times of both are known.
//! What a page fault maps beside its page counts as used, since nobody sees whether it is.

use inodyne_model::block::{Amount, IoPath};
use inodyne_model::finding::Finding;
use inodyne_model::page_cache::{Asked, FilePages};

use super::at_device::AtDevice;
use super::case::Case;
use super::contents::{waiting_for_contents, waiting_for_mapped, work_in_faults_of_files};
use super::estimate::{self, Diagnosed};
use super::remedy::{Remedy, read_ahead, read_ahead_file};
use crate::units::{percent, seconds, times};

/// Below this share of the wall-clock time reading ahead would not be noticed.
const LEAST_SHARE: f64 = 0.15;
/// If less than this fraction of it was not asked for, most of it was of use.
const MOST: f64 = 0.4;
/// At most this fraction of what is asked for may be missing.
const MOST_UNSEEN: f64 = 0.01;
/// The start of a program reads ahead less than this.
const LEAST_BYTES: u64 = 4_000_000;
/// Larger requests do not tell how long a page takes.
const SMALL: u64 = 8_192;
/// This many do.
const ENOUGH: u64 = 3;
/// What a page fault costs in addition, in units of the work of bringing a page in: finding memory for it and a place in the cache.
const FAULT_IN_PAGES: f64 = 16.0;
/// How long requests take that are smaller than any that were seen is not known for sure.
const UNCERTAIN: f64 = 0.25;
/// A page.
const PAGE: f64 = 4_096.0;
/// How much of what is in memory a page fault maps at once (`fault_around_bytes`, mm/memory.c): it is not known what of that was used.
const MAPPED_AT_ONCE: f64 = 65_536.0;
/// How many files are named.
const MOST_FILES: usize = 2;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let cache = case.trace.page_cache.as_ref()?;
    let asked = cache.asked.as_ref()?;
    let used = &asked.of_brought;
    let asked_for = used.used_bytes as f64 / PAGE + asked.mapped as f64;
    // What was asked for unseen is counted among what nobody asked for.
    if cache.unseen as f64 > asked_for * MOST_UNSEEN {
        return None;
    }
    let in_vain = used.unused_bytes() as f64 / used.distinct_bytes.max(1) as f64;
    if used.unused_bytes() < LEAST_BYTES || in_vain < MOST {
        return None;
    }
    let device = AtDevice::of(case)?;
    let time = waiting_for_contents(case).and(waiting_for_mapped(case));
    let share = case.share(&time);
    if share < LEAST_SHARE || time.count == 0 {
        return None;
    }
    // What a request has to bring at least, so that nobody has to wait for more of them than have to be asked for by themselves.
    let is_mapped = used.beside_bytes > used.used_bytes;
    let (bytes, setting) = if is_mapped { (MAPPED_AT_ONCE, "64") } else { (PAGE, "0") };
    let requests = if is_mapped { asked_for } else { asked_for + used.beside_bytes as f64 / PAGE };
    let each = Each::of(&device, time.mean(), bytes)?;
    let then = requests * each.then_ns / case.side_by_side(&time);
    let waits = case.on_path(&time);
    let faults = work_in_faults_of_files(case);
    let for_each_wait = used.distinct_bytes as f64 / PAGE / time.count as f64;
    let bringing_in = for_each_wait / (for_each_wait + FAULT_IN_PAGES);
    let saved = waits - then + faults * bringing_in * in_vain;
    if saved < case.wall() * LEAST_SHARE {
        return None;
    }
    let mut evidence = vec![
        format!(
            "{:.1} MB of files were brought into memory, and {:.1} MB of that never asked for: {}",
            used.distinct_bytes as f64 / 1e6,
            used.unused_bytes() as f64 / 1e6,
            files(asked)
        ),
        format!(
            "waited {}, {} each, {} together; {} {}",
            times(time.count),
            seconds(time.mean()),
            seconds(time.ns),
            each.source,
            seconds(each.small_ns)
        ),
    ];
    evidence.extend(device.line());
    let less = format!("read ahead less: {} at {setting}, as the prediction assumes", read_ahead_file(case));
    Some(
        Diagnosed {
            title: format!(
                "{} waits for what the kernel reads ahead, {} of which nobody asks for: {} of the time",
                case.who(&time),
                percent(in_vain),
                percent(share)
            ),
            share,
            evidence,
            predicted: estimate::without(case, saved, UNCERTAIN),
            cure: vec![
                Remedy::new(less, read_ahead(case, setting)),
                Remedy::advice(
                    "or turn read-ahead off for this file alone, if its pages are used one by one: madvise MADV_RANDOM, posix_fadvise RANDOM; databases have an option for it",
                ),
            ],
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}

/// How long requests that bring less take.
struct Each {
    /// Waiting for one that brings what is needed.
    then_ns: f64,
    /// A small one at the device, and how that is known.
    small_ns: f64,
    source: &'static str,
}

impl Each {
    /// For requests of `bytes`, where waiting for one takes `wait_ns` now: between a small one and those of now. None where nothing
    /// tells how long this device takes for a small one.
    fn of(device: &AtDevice<'_>, wait_ns: f64, bytes: f64) -> Option<Each> {
        let at_device = |amount: &Amount| amount.mean_device_ns().map(|ns| ns.0 as f64);
        let contents = device.contents();
        let (now, now_bytes) = (at_device(&contents)?, contents.mean_bytes() as f64);
        let (small_ns, source) = match device.limits() {
            Some(limits) if limits.read.p50_ns.0 > 0 => {
                (limits.read.p50_ns.0 as f64, "a single 4 KiB read takes, as measured,")
            }
            _ => {
                let small = device.sum(|row| {
                    let is_read = matches!(row.path, IoPath::MetadataRead | IoPath::DataRead | IoPath::ReadAhead);
                    is_read && row.amount.mean_bytes() <= SMALL
                });
                (at_device(&small).filter(|_| small.timed >= ENOUGH)?, "small requests to this device take")
            }
        };
        let part = ((bytes - PAGE) / (now_bytes - PAGE).max(PAGE)).clamp(0.0, 1.0);
        // What a wait takes beyond its request is also there with a small one.
        let around = (wait_ns - now).clamp(0.0, now);
        Some(Each { then_ns: small_ns + (now - small_ns).max(0.0) * part + around, small_ns, source })
    }
}

/// `125.0 MB of f0, 0.1 MB of libc.so.6`
fn files(asked: &Asked) -> String {
    let of_file = |file: &FilePages| format!("{:.1} MB of {}", file.used.unused_bytes() as f64 / 1e6, file.called());
    asked.in_vain().into_iter().take(MOST_FILES).map(of_file).collect::<Vec<_>>().join(", ")
}
