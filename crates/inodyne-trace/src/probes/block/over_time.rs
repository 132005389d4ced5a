//! What disks do in the course of a trace: their sums, read from time to time while it runs.
//!
//! How long that will be is not known. So they are read often at first; each time that there are too many readings, every second one is
//! dropped, and they are read half as often from then on: a minute has as many as a second.

use std::collections::HashMap;
use std::fs;

use inodyne_model::Nanos;
use inodyne_model::io_over_time::{DiskInterval, IoInterval, IoOverTime};

use super::busy;
use super::contract::DiskTotals;
use crate::devices;

/// How often at first.
const FIRST: Nanos = Nanos(20_000_000);
/// Readings that are kept.
const MOST: usize = 256;

/// Readings so far.
pub(super) struct Samples {
    every: Nanos,
    all: Vec<Sample>,
}

/// What had been done by then.
struct Sample {
    at: Nanos,
    disks: Vec<DiskTotals>,
    unwritten: Unwritten,
}

/// File data that had not reached a disk, in bytes, on the whole machine.
#[derive(Default)]
struct Unwritten {
    dirty: Option<u64>,
    writeback: Option<u64>,
}

impl Default for Samples {
    fn default() -> Self {
        Samples { every: FIRST, all: Vec::new() }
    }
}

impl Samples {
    /// Whether the next reading is due.
    pub(super) fn is_time(&self, now: Nanos) -> bool {
        self.all.last().is_none_or(|last| now >= last.at + self.every)
    }

    /// Takes a reading.
    pub(super) fn add(&mut self, at: Nanos, disks: Vec<DiskTotals>) {
        self.keep(Sample { at, disks, unwritten: Unwritten::read() });
    }

    fn keep(&mut self, sample: Sample) {
        if self.all.len() >= MOST {
            let mut number = 0;
            self.all.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.every = self.every + self.every;
        }
        self.all.push(sample);
    }

    /// What was done between the readings since the command's start: before it nothing was counted. None if there are no readings.
    pub(super) fn since(&self, started: Nanos) -> Option<IoOverTime> {
        let none = Sample { at: started, disks: Vec::new(), unwritten: Unwritten::default() };
        let within = || self.all.iter().filter(|sample| sample.at > started);
        let pairs = std::iter::once(&none).chain(within()).zip(within());
        let intervals: Vec<IoInterval> = pairs.map(|(before, sample)| interval(started, before, sample)).collect();
        (!intervals.is_empty()).then_some(IoOverTime { intervals })
    }
}

fn interval(started: Nanos, before: &Sample, sample: &Sample) -> IoInterval {
    let known: HashMap<u32, &DiskTotals> = before.disks.iter().map(|totals| (totals.number, totals)).collect();
    let disk = |totals: &DiskTotals| {
        let zero = DiskTotals::default();
        let then = known.get(&totals.number).copied().unwrap_or(&zero);
        DiskInterval {
            disk: devices::number(totals.number),
            requests: totals.requests.saturating_sub(then.requests),
            read_bytes: totals.read_bytes.saturating_sub(then.read_bytes),
            written_bytes: totals.written_bytes.saturating_sub(then.written_bytes),
            device_ns: Nanos(totals.device_ns.saturating_sub(then.device_ns)),
            busy_ns: busy(totals, sample.at).saturating_sub(busy(then, before.at)),
        }
    };
    let is_any = |disk: &DiskInterval| *disk != DiskInterval { disk: disk.disk.clone(), ..DiskInterval::default() };
    let mut disks: Vec<DiskInterval> = sample.disks.iter().map(disk).filter(is_any).collect();
    disks.sort_by(|a, b| a.disk.cmp(&b.disk));
    let Unwritten { dirty, writeback } = sample.unwritten;
    IoInterval { to_ns: sample.at.saturating_sub(started), disks, dirty_bytes: dirty, writeback_bytes: writeback }
}

impl Unwritten {
    fn read() -> Unwritten {
        Unwritten::parse(&fs::read_to_string("/proc/meminfo").unwrap_or_default())
    }

    /// Lines such as `Dirty:    1234 kB` (Documentation/filesystems/proc.rst).
    fn parse(text: &str) -> Unwritten {
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
        };
        Unwritten { dirty: value("Dirty"), writeback: value("Writeback") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: u64, read: u64) -> Sample {
        let totals = DiskTotals { number: 7 << 20, read_bytes: read, requests: read, ..DiskTotals::default() };
        Sample { at: Nanos(at), disks: vec![totals], unwritten: Unwritten::default() }
    }

    fn read(of: &IoOverTime) -> Vec<(u64, u64)> {
        let bytes = |interval: &IoInterval| interval.disks.iter().map(|disk| disk.read_bytes).sum();
        of.intervals.iter().map(|interval| (interval.to_ns.0, bytes(interval))).collect()
    }

    #[test]
    fn intervals_hold_what_was_done_between_readings() {
        let mut samples = Samples::default();
        [(50, 0), (120, 4), (140, 4), (170, 9)].into_iter().for_each(|(at, bytes)| samples.keep(sample(at, bytes)));
        let course = samples.since(Nanos(100)).expect("three readings");
        assert_eq!(read(&course), [(20, 4), (40, 0), (70, 5)]);
        assert!(course.intervals[1].disks.is_empty());
        assert_eq!(samples.since(Nanos(170)), None);
    }

    #[test]
    fn a_disk_is_busy_with_what_is_under_way() {
        let totals = |busy_ns, since, in_flight| DiskTotals { number: 1, busy_ns, since, in_flight, ..DiskTotals::default() };
        let at = |at, totals| Sample { at: Nanos(at), disks: vec![totals], unwritten: Unwritten::default() };
        let mut samples = Samples::default();
        samples.keep(at(10, totals(0, 4, 1)));
        samples.keep(at(20, totals(0, 4, 1)));
        samples.keep(at(30, totals(18, 4, 0)));
        let course = samples.since(Nanos(0)).expect("readings");
        assert_eq!(course.intervals.iter().map(|one| one.disks[0].busy_ns.0).collect::<Vec<_>>(), [6, 10, 2]);
    }

    #[test]
    fn a_long_trace_has_as_many_readings_as_a_short_one_and_nothing_is_lost() {
        let mut samples = Samples::default();
        let (mut at, mut read_bytes, mut readings) = (0, 0, 0);
        while at < 600 * 1_000_000_000 {
            at += 4_000_000;
            read_bytes += 3;
            if samples.is_time(Nanos(at)) {
                samples.keep(sample(at, read_bytes));
                readings += 1;
            }
        }
        assert!((MOST / 2..=MOST).contains(&samples.all.len()) && readings < 2_000, "{} {readings}", samples.all.len());
        let course = samples.since(Nanos(0)).expect("readings");
        let rates: Vec<f64> =
            course.iter().zip(read(&course)).map(|((from, to), (_, bytes))| bytes as f64 / (to.to_ns - from).0 as f64).collect();
        assert!(rates.iter().all(|rate| (rate / rates[0] - 1.0).abs() < 0.01), "{rates:?}");
        assert_eq!(read(&course).iter().map(|(_, bytes)| bytes).sum::<u64>(), samples.all.last().unwrap().disks[0].read_bytes);
    }

    #[test]
    fn meminfo_is_in_kibibytes() {
        let text = "MemTotal:       24 kB\nDirty:               1234 kB\nWriteback:             5 kB\nWritebackTmp: 9 kB\n";
        let Unwritten { dirty, writeback } = Unwritten::parse(text);
        assert_eq!((dirty, writeback), (Some(1234 << 10), Some(5 << 10)));
        assert_eq!(Unwritten::parse("Dirty: many").dirty, None);
    }
}
