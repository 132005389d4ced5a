//! `write-amplification`: the device writes much more than the command wrote, since the same data goes to a journal first (`data=journal`),
//! and the command waits for that.
//!
//! Many small synchronous writes each cost blocks of a journal; that is `sync-bound`.

use inodyne_model::block::{Asker, IoPath};
use inodyne_model::cause::Cause;
use inodyne_model::cure::{Change, PlaceChange};
use inodyne_model::finding::Finding;
use inodyne_model::place::Place;

use super::at_device::AtDevice;
use super::case::{Case, total};
use super::estimate::{self, Diagnosed};
use super::families::writes;
use super::remedy::Remedy;
use crate::units::{percent, seconds};

/// Below this share of the wall-clock time nobody waits for what is written.
const LEAST_SHARE: f64 = 0.15;
/// A command that writes less works with names, for which a journal holds whole blocks.
const LEAST_BYTES: f64 = 8e6;
/// If the device writes at least this many times what the command wrote, it writes too much. Metadata is a few percent.
const AMPLIFIED: f64 = 1.5;
/// If at least this fraction of what the command wrote goes to the journal, the journal holds the data.
const IN_JOURNAL: f64 = 0.5;
/// With larger pieces and fewer flushes the rest becomes quicker, too, or what is no longer waited for is waited for elsewhere.
const UNCERTAIN: f64 = 0.5;
const ORDERED: &str = "keep only metadata in the journal: mount with data=ordered, where a crash may leave a file with a part of what was written last";

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let device = AtDevice::of(case)?;
    // Where only metadata goes there, the blocks of many small files amount to as much.
    let place = case.recording.places.get(case.trace.place)?;
    let holds_data = |place: &Place| place.mount_options.split(',').any(|option| option == "data=journal");
    if !holds_data(place) && !place.below.iter().any(holds_data) {
        return None;
    }
    let bytes_on =
        |paths: &[IoPath]| device.sum(|row| row.asker != Asker::Other && paths.contains(&row.path)).bytes as f64;
    let journal = bytes_on(&[IoPath::JournalCommit, IoPath::Log]);
    let checkpoint = bytes_on(&[IoPath::Checkpoint]);
    let data = bytes_on(&[IoPath::SyncWrite, IoPath::Writeback, IoPath::MetadataWrite]);
    let written = journal + checkpoint + data;
    let copies = |call: &str| matches!(call, "copy_file_range" | "sendfile" | "splice");
    let wrote = total(case.calls(|call| writes(call) || copies(call)).filter_map(|call| call.bytes)) as f64;
    let time = case.waiting(|waited| {
        matches!(
            waited.cause,
            Cause::Journal | Cause::DeviceWrite | Cause::DeviceFlush | Cause::WriteThrottle | Cause::QueueFull
        )
    });
    let share = case.share(&time);
    if share < LEAST_SHARE || wrote < LEAST_BYTES || written < wrote * AMPLIFIED || journal < wrote * IN_JOURNAL {
        return None;
    }
    let mb = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    let mut evidence = vec![
        format!(
            "{} were written by calls, {} by the device: {} to the journal, {} from there to where it belongs",
            mb(wrote),
            mb(written),
            mb(journal),
            mb(checkpoint)
        ),
        format!("waits for writes took {} together", seconds(time.ns)),
    ];
    evidence.extend(device.line());
    let saved = case.on_path(&time) * (1.0 - wrote / written);
    Some(
        Diagnosed {
            title: format!(
                "The device writes {:.1} times what the command wrote: {} of the time is waiting for writes",
                written / wrote,
                percent(share)
            ),
            share,
            evidence,
            predicted: estimate::without(case, saved, UNCERTAIN),
            cure: vec![
                match holds_data(place) {
                    true => Remedy::new(ORDERED, Change::Place(PlaceChange::Mount("data=ordered".to_owned()))),
                    false => Remedy::advice(ORDERED),
                },
                Remedy::advice(
                    "or write what many small changes make in one go, in larger pieces: a journal holds whole blocks",
                ),
            ],
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}
