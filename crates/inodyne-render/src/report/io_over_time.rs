//! What disks did while a command ran, and how much file data had still to be written.

use inodyne_model::Nanos;
use inodyne_model::block::{BlockIo, Commit, Disk, Journal};
use inodyne_model::io_over_time::{DiskInterval, IoInterval, IoOverTime};
use inodyne_model::recording::Recording;

use super::block::Page;
use super::case::Case;
use super::definition::{Definition, Show};
use super::table::{Column, Records, Table};
use super::value::{Cell, Picture, Value};
use crate::units::duration;

pub(super) const SECTION: Definition =
    Definition { name: "io-over-time", unasked: true, show: Show::Case(show), records };

/// Anything shorter is not shown unless asked for.
const LONG: Nanos = Nanos(1_000_000_000);
/// In a terminal, the time has at most this many parts.
const PARTS: usize = 40;
/// Disks that are shown: the one that the command worked with, then those with the most time at the device.
const MOST_DISKS: usize = 3;
/// Journals that are shown, those with the most commits.
const MOST_JOURNALS: usize = 2;

/// One quantity over the course of the command.
struct Course {
    /// What it is, and of what.
    what: String,
    unit: Unit,
    /// Its mean in each part of the time, in a terminal.
    coarse: Vec<f64>,
    /// The same in each interval.
    fine: Vec<f64>,
    mean: f64,
}

/// What a quantity counts.
#[derive(Clone, Copy)]
enum Unit {
    Bytes,
    Requests,
}

impl Unit {
    fn cell(self, value: f64) -> Cell {
        match self {
            Unit::Bytes => Cell::rate_of_bytes(value),
            Unit::Requests => Cell::rate(value),
        }
    }
}

/// A value at the end of an interval; `None` if it is not known.
type Gauge = fn(&IoInterval) -> Option<u64>;

/// The value of an interval that begins at this time.
type Quantity<'q> = &'q dyn Fn(Nanos, &IoInterval) -> f64;

impl Course {
    fn of(course: &IoOverTime, what: String, unit: Unit, of: Quantity<'_>) -> Course {
        let values = |course: &IoOverTime| course.iter().map(|(from, one)| of(from, one)).collect();
        let fine: Vec<f64> = values(course);
        let lengths: Vec<f64> = course.iter().map(|(from, one)| seconds(from, one)).collect();
        let weighted: f64 = fine.iter().zip(&lengths).map(|(value, length)| value * length).sum();
        let whole: f64 = lengths.iter().sum();
        let mean = if whole > 0.0 { weighted / whole } else { 0.0 };
        Course { what, unit, coarse: values(&course.coarser(PARTS)), fine, mean }
    }

    fn most(&self) -> f64 {
        self.fine.iter().copied().fold(0.0, f64::max)
    }

    fn row(self) -> [Cell; 5] {
        let most = self.most();
        let heights = |values: &[f64]| -> Vec<u64> { values.iter().map(|value| height(*value, most)).collect() };
        [
            Cell::of(self.what),
            Cell::of(Value::Shape(heights(&self.coarse))),
            Cell::picture(Picture::Course(heights(&self.fine))),
            self.unit.cell(self.mean),
            self.unit.cell(most),
        ]
    }
}

/// In thousandths of the largest; anything that is not zero is at least one.
fn height(value: f64, most: f64) -> u64 {
    if value > 0.0 && most > 0.0 { ((value / most * 1e3).round() as u64).max(1) } else { 0 }
}

fn seconds(from: Nanos, interval: &IoInterval) -> f64 {
    interval.to_ns.saturating_sub(from).as_secs_f64()
}

/// The amount per second; zero if there was no time.
fn rate(amount: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount / seconds } else { 0.0 }
}

/// The disks that are shown.
fn shown<'a>(block: &'a BlockIo, course: &IoOverTime) -> Vec<&'a Disk> {
    let at_device = |disk: &Disk| -> Nanos {
        course.intervals.iter().filter_map(|one| one.of_disk(&disk.number)).map(|one| one.device_ns).sum()
    };
    let is_own = |disk: &Disk| block.bound.as_ref().is_some_and(|bound| bound.disk == disk.number);
    let mut disks: Vec<(bool, Nanos, &Disk)> =
        block.disks.iter().map(|disk| (is_own(disk), at_device(disk), disk)).collect();
    disks.retain(|(_, at_device, _)| *at_device > Nanos::ZERO);
    disks.sort_by_key(|(is_own, at_device, _)| std::cmp::Reverse((*is_own, *at_device)));
    disks.into_iter().take(MOST_DISKS).map(|(.., disk)| disk).collect()
}

fn show<'a>(page: &mut Page<'a>, case: &Case<'a>) {
    let Some(block) = case.trace.and_then(|trace| trace.block.as_ref()) else { return };
    let Some(course) = &block.over_time else { return };
    let disks = shown(block, course);
    let length = course.intervals.last().map_or(Nanos::ZERO, |last| last.to_ns);
    // If the command used no disk, what others did in the meantime matters little to it.
    let is_telling = length >= LONG && block.bound.is_some() && !disks.is_empty();
    if page.is_whole() && !is_telling {
        return;
    }
    page.heading(&format!("Disks over the {}", duration(length)));
    let journals = case.trace.map_or(&[][..], |trace| &trace.journals);
    page.table(table(course, &disks, journals));
}

fn table(course: &IoOverTime, disks: &[&Disk], journals: &[Journal]) -> Table {
    let mut rows: Vec<Course> = disks.iter().flat_map(|disk| courses_of(course, disk)).collect();
    let with_commits = journals.iter().filter_map(|journal| Some((journal, journal.all()?)));
    rows.extend(with_commits.take(MOST_JOURNALS).map(|(journal, commits)| commits_of(course, journal, commits)));
    let gauges: [(&str, Gauge); 2] = [
        ("dirty pages, whole machine", |one| one.dirty_bytes),
        ("being written, whole machine", |one| one.writeback_bytes),
    ];
    for (what, value) in gauges {
        if course.intervals.iter().any(|one| value(one).is_some()) {
            let of = |_: Nanos, one: &IoInterval| value(one).unwrap_or_default() as f64;
            rows.push(Course::of(course, what.to_owned(), Unit::Bytes, &of));
        }
    }
    let columns = [
        Column::text("").on_page("what").naming().yielding(),
        Column::text("from start to end").terminal(),
        Column::text("from start to end").page().class("course"),
        Column::number("mean"),
        Column::number("at most"),
    ];
    let mut table = Table::new("io-over-time", columns);
    for row in rows {
        table.row(row.row());
    }
    table
}

/// What one disk did.
fn courses_of(course: &IoOverTime, disk: &Disk) -> [Course; 3] {
    let of = |what: &str, unit, value: fn(&DiskInterval) -> f64| {
        let quantity = |from: Nanos, one: &IoInterval| {
            one.of_disk(&disk.number).map_or(0.0, |did| rate(value(did), seconds(from, one)))
        };
        Course::of(course, format!("{}: {what}", disk.name), unit, &quantity)
    };
    [
        of("read a second", Unit::Bytes, |one| one.read_bytes as f64),
        of("written a second", Unit::Bytes, |one| one.written_bytes as f64),
        of("requests in flight", Unit::Requests, |one| one.device_ns.as_secs_f64()),
    ]
}

/// How often a journal was committed.
fn commits_of(course: &IoOverTime, journal: &Journal, commits: &[Commit]) -> Course {
    let quantity = |from: Nanos, one: &IoInterval| {
        let ended = commits.iter().filter(|commit| commit.to_ns > from && commit.to_ns <= one.to_ns);
        rate(ended.count() as f64, seconds(from, one))
    };
    Course::of(course, format!("{}: journal commits a second", journal.name), Unit::Requests, &quantity)
}

/// A row for each interval and disk that did anything in it; one without a disk where none did.
fn records(recording: &Recording) -> Records {
    let columns = [
        "from_ns",
        "to_ns",
        "disk",
        "name",
        "requests",
        "read_bytes",
        "written_bytes",
        "device_ns",
        "busy_ns",
        "dirty_bytes",
        "writeback_bytes",
    ];
    Records::of_traces(recording, columns, |trace| {
        let Some(block) = &trace.block else { return Vec::new() };
        let name = |number: &str| block.disks.iter().find(|disk| disk.number == number).map(|disk| &disk.name);
        let row = |(from, interval): (Nanos, &IoInterval), disk: Option<&DiskInterval>| -> [Value; 11] {
            [
                from.into(),
                interval.to_ns.into(),
                disk.map(|disk| &disk.disk).into(),
                disk.and_then(|disk| name(&disk.disk)).into(),
                disk.map(|disk| disk.requests).into(),
                disk.map(|disk| disk.read_bytes).into(),
                disk.map(|disk| disk.written_bytes).into(),
                disk.map(|disk| disk.device_ns).into(),
                disk.map(|disk| disk.busy_ns).into(),
                interval.dirty_bytes.into(),
                interval.writeback_bytes.into(),
            ]
        };
        let mut rows = Vec::new();
        for one in block.over_time.iter().flat_map(IoOverTime::iter) {
            let disks: Vec<Option<&DiskInterval>> = match &one.1.disks[..] {
                [] => vec![None],
                disks => disks.iter().map(Some).collect(),
            };
            rows.extend(disks.into_iter().map(|disk| row(one, disk)));
        }
        rows
    })
}

#[cfg(test)]
mod tests {
    use inodyne_model::block::{Bound, BoundBy};

    use super::*;

    const MB: u64 = 1_000_000;

    /// Half a second each: megabytes that were read, and seconds at the device.
    fn course(of: &[(u64, f64)]) -> IoOverTime {
        let interval = |(at, (read, at_device)): (u64, &(u64, f64))| IoInterval {
            to_ns: Nanos((at + 1) * 500 * MB),
            disks: vec![DiskInterval {
                disk: "7:0".to_owned(),
                read_bytes: read * MB,
                device_ns: Nanos((at_device * 1e9) as u64),
                ..DiskInterval::default()
            }],
            dirty_bytes: Some(read * 10),
            writeback_bytes: None,
        };
        IoOverTime { intervals: (0..).zip(of).map(interval).collect() }
    }

    fn disk(number: &str) -> Disk {
        Disk { number: number.to_owned(), name: format!("disk {number}"), ..Disk::default() }
    }

    #[test]
    fn amounts_are_told_by_the_second() {
        let course = course(&[(5, 0.25), (0, 0.0), (20, 2.0), (5, 0.25)]);
        let disk = disk("7:0");
        let rows = table(&course, &[&disk], &[]).rows;
        let cells = |at: usize| rows[at].cells.iter().map(Cell::written).collect::<Vec<_>>();
        assert_eq!(cells(0), ["disk 7:0: read a second", "▃ █▃", "", "15.0 MB", "40.0 MB"]);
        assert_eq!(cells(1)[1..], ["    ", "", "0 bytes", "0 bytes"]);
        assert_eq!(cells(2)[1..], ["▂ █▂", "", "1.2", "4.0"]);
        assert_eq!(cells(3)[0], "dirty pages, whole machine");
        assert_eq!(rows.len(), 4);
    }

    #[test]
    fn commits_are_counted_where_they_ended_if_all_were_kept() {
        let course = course(&[(0, 0.0), (0, 0.0)]);
        let at = |ms: u64| Commit { to_ns: Nanos(ms * MB), ..Commit::default() };
        let each = [100, 500, 900].map(at).to_vec();
        let mut journal = Journal { commits: 3, each, ..inodyne_model::sample::journal() };
        let rows = |journal: &Journal| table(&course, &[], std::slice::from_ref(journal)).rows;
        let cells: Vec<_> = rows(&journal)[0].cells.iter().map(Cell::written).collect();
        assert_eq!(cells, ["loop0: journal commits a second", "█▅", "", "3.0", "4.0"]);
        // A few are not zero.
        let rare = IoOverTime { intervals: vec![IoInterval { to_ns: Nanos(100_000 * MB), ..IoInterval::default() }] };
        let commits = journal.each.as_slice();
        assert_eq!(commits_of(&rare, &journal, commits).row()[3].written(), "<0.1");
        // If some were not kept, a course would be that of the first ones only.
        let others = rows(&journal).len() - 1;
        journal.commits = 4;
        assert_eq!(rows(&journal).len(), others);
    }

    #[test]
    fn the_disk_of_the_command_comes_first_and_idle_ones_not_at_all() {
        let mut course = course(&[(1, 0.1)]);
        let busy = DiskInterval { disk: "8:0".to_owned(), device_ns: Nanos(10_000 * MB), ..DiskInterval::default() };
        course.intervals[0].disks.push(busy);
        let bound = Bound { disk: "7:0".to_owned(), waiting_ns: Nanos::ZERO, by: BoundBy::Latency };
        let disks = ["8:0", "7:0", "8:16"].map(disk).into();
        let mut block = BlockIo { disks, bound: Some(bound), ..BlockIo::default() };
        let numbers =
            |block: &BlockIo| shown(block, &course).iter().map(|disk| disk.number.clone()).collect::<Vec<_>>();
        assert_eq!(numbers(&block), ["7:0", "8:0"]);
        block.bound = None;
        assert_eq!(numbers(&block), ["8:0", "7:0"]);
    }
}
