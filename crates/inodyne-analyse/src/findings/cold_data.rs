//! `cold-data`: contents come from the device, in large requests, and the program waits for them.
//!
//! Small requests, each after the last, are `single-stream`: there the device idles, here it is busy. What memory cannot hold is not
//! quicker for having been read before: then it is a bound.

use inodyne_model::cure::{CacheChange, Change};
use inodyne_model::finding::Finding;
use inodyne_model::observed::Begin;

use super::at_device::AtDevice;
use super::case::Case;
use super::contents::{LARGE_READ, bytes_a_wait, bytes_from_device, bytes_read, waiting_for_contents};
use super::estimate::{self, Diagnosed};
use super::remedy::{READ_AHEAD_OF_DEVICE, Remedy, read_ahead, read_ahead_file};
use crate::units::{percent, seconds, times};

/// Below this share of the wall-clock time contents are warm enough.
const LEAST_SHARE: f64 = 0.15;
/// From memory, the same calls only copy; how much of their time on a CPU was read-ahead is not known.
const UNCERTAIN: f64 = 0.25;
/// Eight times what the kernel reads ahead (VM_READAHEAD_PAGES in include/linux/mm.h: 128 KiB).
const FURTHER_KIB: &str = "1024";

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let time = waiting_for_contents(case);
    let share = case.share(&time);
    let size = bytes_a_wait(case, &time);
    if share < LEAST_SHARE || size < LARGE_READ {
        return None;
    }
    let bytes = bytes_read(case);
    let mut evidence = vec![
        format!("waited {} for contents, {} together", times(time.count), seconds(time.ns)),
        format!("{:.1} MB were read in all, {:.0} KB for each wait", bytes / 1e6, size / 1e3),
    ];
    evidence.extend(AtDevice::of(case).and_then(|device| device.line()));
    let memory = case.recording.host.memory_bytes;
    let too_much = bytes_from_device(case).filter(|bytes| memory > 0 && *bytes > memory);
    if let Some(bytes) = too_much {
        let [came, holds] = [bytes, memory].map(|bytes| bytes as f64 / 1e9);
        evidence
            .push(format!("{came:.1} GB came from there: more than the {holds:.1} GB of memory that the machine has"));
    }
    let beforehand = Remedy::new(
        "load the contents into memory beforehand: cat FILES >/dev/null, vmtouch, or a read that does not block (posix_fadvise WILLNEED)",
        Change::Cache(CacheChange::Contents),
    );
    let blockdev = if read_ahead_file(case) == READ_AHEAD_OF_DEVICE { "blockdev --setra, " } else { "" };
    let further = format!("read ahead further, where the device answers slowly: {blockdev}{}", read_ahead_file(case));
    let others = [
        Remedy::advice("read less: compress, or read only what is needed").answering(1),
        Remedy::new(further, read_ahead(case, FURTHER_KIB)).answering(1),
    ];
    let predicted = match too_much {
        Some(_) => estimate::at_best_of(case, share),
        None => estimate::without(case, case.on_path(&time), UNCERTAIN),
    };
    Some(
        Diagnosed {
            title: format!("Contents come from the device, not from memory: {} of the time", percent(share)),
            share,
            evidence,
            predicted,
            cure: too_much.is_none().then_some(beforehand).into_iter().chain(others).collect(),
            avoidable_calls: None,
            // Of a window nothing is predicted, nor what could be had at best.
            bound: too_much.is_some() && case.trace.observed.window.begin == Begin::Launched,
        }
        .finding(case),
    )
}
