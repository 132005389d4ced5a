//! What disks did over the course of a command: their sums were read now and then while it ran, at most a few hundred times.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// What disks did in intervals of about the same length, from the command's start to its end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IoOverTime {
    /// In chronological order. Each begins where the one before it ends, the first with the command.
    pub intervals: Vec<IoInterval>,
}

/// What disks did in one interval.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IoInterval {
    /// Where it ends, since the command's start.
    pub to_ns: Nanos,
    /// The disks that did anything in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskInterval>,
    /// Data in the page cache of the whole machine that still had to be written when the interval ended, in bytes: `Dirty` in
    /// /proc/meminfo. None where that could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_bytes: Option<u64>,
    /// The same for what was on its way to a device: `Writeback`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writeback_bytes: Option<u64>,
}

/// What one disk did in an interval, whoever asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DiskInterval {
    /// The number of the disk.
    pub disk: String,
    /// Requests of all kinds that were done.
    pub requests: u64,
    /// What was read.
    pub read_bytes: u64,
    /// What was written.
    pub written_bytes: u64,
    /// Total time that the requests that were done in it had spent at the device. Divided by the interval's length, it is how many were
    /// there at once, as long as they do not take longer than that.
    pub device_ns: Nanos,
    /// How long at least one request was at the device.
    pub busy_ns: Nanos,
}

impl DiskInterval {
    fn add(&mut self, other: &DiskInterval) {
        self.requests = self.requests.saturating_add(other.requests);
        self.read_bytes = self.read_bytes.saturating_add(other.read_bytes);
        self.written_bytes = self.written_bytes.saturating_add(other.written_bytes);
        self.device_ns += other.device_ns;
        self.busy_ns += other.busy_ns;
    }
}

impl IoInterval {
    /// What the disk of this number did in it; none where it did nothing.
    pub fn of_disk(&self, number: &str) -> Option<&DiskInterval> {
        self.disks.iter().find(|disk| disk.disk == number)
    }
}

impl IoOverTime {
    /// The intervals with their start times.
    pub fn iter(&self) -> impl Iterator<Item = (Nanos, &IoInterval)> {
        let begins = self.intervals.iter().map(|interval| interval.to_ns);
        std::iter::once(Nanos::ZERO).chain(begins).zip(&self.intervals)
    }

    /// The same in at most `most` intervals, each made of equally many of these except perhaps the last.
    pub fn coarser(&self, most: usize) -> IoOverTime {
        let each = self.intervals.len().div_ceil(most.max(1)).max(1);
        IoOverTime { intervals: self.intervals.chunks(each).filter_map(together).collect() }
    }
}

/// Several intervals as one.
fn together(intervals: &[IoInterval]) -> Option<IoInterval> {
    let last = intervals.last()?;
    let mut disks: BTreeMap<&str, DiskInterval> = BTreeMap::new();
    for disk in intervals.iter().flat_map(|interval| &interval.disks) {
        let new = || DiskInterval { disk: disk.disk.clone(), ..DiskInterval::default() };
        disks.entry(&disk.disk).or_insert_with(new).add(disk);
    }
    Some(IoInterval { disks: disks.into_values().collect(), ..last.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(to: u64, disks: &[(&str, u64)]) -> IoInterval {
        let disk = |(disk, bytes): &(&str, u64)| DiskInterval {
            disk: (*disk).to_owned(),
            requests: 1,
            read_bytes: *bytes,
            ..DiskInterval::default()
        };
        let disks = disks.iter().map(disk).collect();
        IoInterval { to_ns: Nanos(to), disks, dirty_bytes: Some(to), writeback_bytes: None }
    }

    #[test]
    fn each_begins_where_the_one_before_it_ends() {
        let course = IoOverTime { intervals: vec![interval(10, &[]), interval(25, &[])] };
        let ends: Vec<_> = course.iter().map(|(from, interval)| (from.0, interval.to_ns.0)).collect();
        assert_eq!(ends, [(0, 10), (10, 25)]);
        assert_eq!(IoOverTime::default().iter().count(), 0);
    }

    #[test]
    fn coarser_ones_have_the_same_sums() {
        let intervals = (1..=7).map(|at| interval(at * 10, if at % 2 == 0 { &[("7:0", 5)] } else { &[("7:1", 3)] }));
        let course = IoOverTime { intervals: intervals.collect() };
        let coarse = course.coarser(3);
        let ends: Vec<_> = coarse.iter().map(|(_, interval)| (interval.to_ns.0, interval.dirty_bytes)).collect();
        assert_eq!(ends, [(30, Some(30)), (60, Some(60)), (70, Some(70))]);
        let of_first = &coarse.intervals[0].disks;
        assert_eq!(
            of_first.iter().map(|disk| (&*disk.disk, disk.requests, disk.read_bytes)).collect::<Vec<_>>(),
            [("7:0", 1, 5), ("7:1", 2, 6)]
        );
        assert_eq!(course.coarser(7), course);
        assert_eq!(course.coarser(0).intervals.len(), 1);
    }
}
