//! Counters of what disks did while the command ran.

use inodyne_model::io_over_time::{DiskInterval, IoInterval, IoOverTime};
use inodyne_model::trace::Trace;

use super::packets::Packets;
use crate::line::escaped;

/// The tracks of counters are numbered from here on.
const FIRST: u64 = 16;

/// What a disk did, in the unit that its name says; the second argument is the interval's length in seconds.
type OfDisk = fn(&DiskInterval, f64) -> f64;
const OF_DISK: [(&str, OfDisk); 3] = [
    ("read, MB/s", |disk, seconds| disk.read_bytes as f64 / 1e6 / seconds),
    ("written, MB/s", |disk, seconds| disk.written_bytes as f64 / 1e6 / seconds),
    ("requests in flight", |disk, seconds| disk.device_ns.as_secs_f64() / seconds),
];

type OfMachine = fn(&IoInterval) -> Option<u64>;
const OF_MACHINE: [(&str, OfMachine); 2] =
    [("dirty pages, MB", |one| one.dirty_bytes), ("pages being written, MB", |one| one.writeback_bytes)];

/// A counter for each quantity of each disk, and those of the machine.
pub(super) fn write(packets: &mut Packets, trace: &Trace) {
    let Some(block) = &trace.block else { return };
    let Some(course) = &block.over_time else { return };
    let mut track = FIRST;
    for disk in &block.disks {
        for (what, quantity) in OF_DISK {
            let of =
                |one: &IoInterval, seconds| Some(one.of_disk(&disk.number).map_or(0.0, |did| quantity(did, seconds)));
            counter(packets, course, track, &format!("{} {what}", escaped(&disk.name)), &of);
            track += 1;
        }
    }
    for (what, quantity) in OF_MACHINE {
        counter(packets, course, track, what, &|one, _| quantity(one).map(|bytes| bytes as f64 / 1e6));
        track += 1;
    }
}

/// Writes its value at the start of each interval where it changes; at the end of the last one it is zero. Nothing if no value is known.
fn counter(
    packets: &mut Packets,
    course: &IoOverTime,
    track: u64,
    name: &str,
    value: &dyn Fn(&IoInterval, f64) -> Option<f64>,
) {
    let mut before = None;
    for (from, one) in course.iter() {
        let seconds = one.to_ns.saturating_sub(from).as_secs_f64();
        let Some(value) = value(one, seconds).filter(|value| value.is_finite()) else { continue };
        if before.is_none() {
            packets.counter_track(track, name);
        }
        if before != Some(value) {
            packets.counter(track, from.0, value);
        }
        before = Some(value);
    }
    if let (Some(_), Some(last)) = (before, course.intervals.last()) {
        packets.counter(track, last.to_ns.0, 0.0);
    }
}
