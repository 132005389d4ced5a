//! Reads the tables of requests to block devices.

mod contract;
mod over_time;

use std::cell::RefCell;
use std::cmp::Reverse;

use inodyne_launch::monotonic_ns;
use inodyne_model::Nanos;
use inodyne_model::block::{Amount, Asker, BlockIo, Disk, Flag, Operation, Requests, Size};
use inodyne_model::histogram::Histogram;
use inodyne_model::stack::StackId;
use inodyne_model::trace::Trace;

use crate::cgroups;
use crate::contract::text;
use crate::devices;
use crate::kernel;
use crate::map::{ArrayView, pairs};
use crate::options::Options;
use crate::rings::Rings;
use crate::probe::{LOSING, Probe, Program, Seen};
use crate::skeleton::{InodyneMaps, OpenInodyneSkel};
use contract::{
    BLOCK_BACKGROUND, BLOCK_FUA, BLOCK_META, BLOCK_OF_COMMAND, BLOCK_OF_KERNEL, BLOCK_OF_OTHERS, BLOCK_PREFLUSH, BLOCK_READ_AHEAD, BLOCK_SWAP, BLOCK_SYNC, DiskTotals, Key,
    Row,
};
use over_time::Samples;

/// The least size that is told apart.
const SECTOR_BYTES: u64 = 512;

/// The probe of block devices.
#[derive(Default)]
pub struct Own {
    disks: Option<ArrayView<DiskTotals>>,
    samples: RefCell<Samples>,
    has_ended: bool,
}

impl Own {
    /// What disks have done so far.
    fn disks(&self) -> Vec<DiskTotals> {
        let all = self.disks.iter().flat_map(|disks| (0..disks.len()).map(|at| disks.get(at)));
        all.filter(|totals| totals.number != 0).collect()
    }
}

const PROGRAMS: &[Program] = &[
    Program::at("block_complete", "block_rq_complete"),
    Program::at("block_complete_again", "block_rq_complete").done(|bss| bss.block_complete_again_done),
    Program::at("block_complete_again_again", "block_rq_complete")
        .on(LOSING)
        .done(|bss| bss.block_complete_again_again_done),
    Program::at("block_issue", "block_rq_issue"),
    Program::at("block_issue_again", "block_rq_issue").done(|bss| bss.block_issue_again_done),
    Program::at("block_issue_again_again", "block_rq_issue")
        .on(LOSING)
        .done(|bss| bss.block_issue_again_again_done),
    Program::at("block_queue", "block_bio_queue").of_detail(),
    Program::at("block_queue_again", "block_bio_queue").of_detail().on(LOSING).done(|bss| bss.block_queue_again_done),
    Program::at("block_merge_after", "block_bio_backmerge"),
    Program::at("block_merge_after_again", "block_bio_backmerge").on(LOSING).done(|bss| bss.block_merge_after_again_done),
    Program::at("block_merge_before", "block_bio_frontmerge"),
    Program::at("block_merge_before_again", "block_bio_frontmerge").on(LOSING).done(|bss| bss.block_merge_before_again_done),
    Program::at("block_merge_requests", "block_rq_merge"),
    Program::at("block_merge_requests_again", "block_rq_merge").on(LOSING).done(|bss| bss.block_merge_requests_again_done),
];

impl Probe for Own {
    fn feature(&self) -> &'static str {
        "block devices"
    }

    fn without(&self) -> &'static str {
        "it is not known what was asked of block devices, nor by whom"
    }

    fn is_optional(&self) -> bool {
        true
    }

    fn programs(&self) -> &'static [Program] {
        PROGRAMS
    }

    fn configure(&self, object: &mut OpenInodyneSkel<'_>, _options: &Options, _cpus: usize) -> libbpf_rs::Result<()> {
        let constants = object.maps.rodata_data.as_mut().expect("the object has constants");
        constants.rqf_numbered = u32::from(kernel::request_flags_are_numbered());
        Ok(())
    }

    fn open(
        &mut self,
        maps: &InodyneMaps<'static>,
        _options: &Options,
        _rings: &mut Rings,
    ) -> libbpf_rs::Result<()> {
        self.disks = Some(ArrayView::new(&maps.block_disks)?);
        Ok(())
    }

    fn look(&self, _maps: &InodyneMaps<'static>) -> libbpf_rs::Result<()> {
        let now = monotonic_ns();
        if !self.has_ended && self.samples.borrow().is_time(now) {
            self.samples.borrow_mut().add(now, self.disks());
        }
        Ok(())
    }

    fn command_ended(&mut self, maps: &mut InodyneMaps<'static>) {
        self.samples.borrow_mut().add(monotonic_ns(), self.disks());
        self.has_ended = true;
        maps.bss_data.as_mut().expect("the object has global variables").block_after = 1;
    }

    fn read(&mut self, seen: &Seen<'_>, result: &mut Trace) -> libbpf_rs::Result<()> {
        let rows: Vec<(Key, Row)> = pairs(&seen.maps.block_rows)?;
        let disks = self.disks();
        if !self.has_ended {
            self.samples.borrow_mut().add(seen.stopped_ns, disks.clone());
        }
        let over_time = self.samples.borrow().since(result.observed.started_ns);
        let askers_unseen = seen.skipped.get("block_queue").copied().unwrap_or(0);
        let block = read(&rows, &disks, seen.stopped_ns, &seen.cgroups);
        result.block = Some(BlockIo { over_time, askers_unseen, ..block });
        Ok(())
    }
}

/// Everything known about block devices, most bytes first.
fn read(rows: &[(Key, Row)], disks: &[DiskTotals], until: Nanos, cgroups: &cgroups::Names) -> BlockIo {
    let mut disks: Vec<Disk> = disks.iter().map(|totals| disk(totals, until)).collect();
    disks.sort_by(|a, b| a.number.cmp(&b.number));
    let mut requests: Vec<Requests> = rows.iter().map(|(key, row)| requests(key, row, cgroups)).collect();
    requests.sort_by(|a, b| {
        (Reverse(a.amount.bytes), &a.disk, a.operation, a.stack, &a.comm, &a.cgroup)
            .cmp(&(Reverse(b.amount.bytes), &b.disk, b.operation, b.stack, &b.comm, &b.cgroup))
    });
    BlockIo { disks, requests, ..BlockIo::default() }
}

/// How long there was at least one request, up to then.
fn busy(totals: &DiskTotals, until: Nanos) -> Nanos {
    let still = if totals.in_flight > 0 { until.saturating_sub(Nanos(totals.since)) } else { Nanos::ZERO };
    Nanos(totals.busy_ns) + still
}

fn disk(totals: &DiskTotals, until: Nanos) -> Disk {
    let number = devices::number(totals.number);
    Disk {
        name: devices::name(&number),
        number,
        merged: totals.merged,
        busy_ns: busy(totals, until),
        limits: None,
    }
}

fn requests(key: &Key, row: &Row, cgroups: &cgroups::Names) -> Requests {
    let partition = (key.device != key.disk).then(|| devices::name(&devices::number(key.device)));
    Requests {
        disk: devices::number(key.disk),
        partition,
        operation: operation(key.op),
        flags: FLAGS.iter().filter(|(bit, _)| key.flags & bit != 0).map(|(_, flag)| *flag).collect(),
        stack: StackId(key.stack),
        asker: asker(key.asker),
        comm: text(&key.comm),
        cgroup: cgroups.get(&key.cgroup).cloned(),
        after: key.after != 0,
        amount: amount(row),
    }
}

fn amount(row: &Row) -> Amount {
    let size = |(at, count): (usize, &u32)| Size { from_bytes: SECTOR_BYTES << at, count: u64::from(*count) };
    Amount {
        requests: row.requests,
        bytes: row.bytes,
        sequential: row.sequential,
        timed: row.timed,
        queue_ns: Nanos(row.queue_ns),
        device_ns: Nanos(row.device_ns),
        sizes: row.sizes.iter().enumerate().filter(|(_, count)| **count > 0).map(size).collect(),
        queue: Histogram::from_octaves(&row.queue_times),
        device: Histogram::from_octaves(&row.device_times),
    }
}

const FLAGS: [(u16, Flag); 7] = [
    (BLOCK_SYNC, Flag::Sync),
    (BLOCK_META, Flag::Meta),
    (BLOCK_READ_AHEAD, Flag::ReadAhead),
    (BLOCK_FUA, Flag::Fua),
    (BLOCK_PREFLUSH, Flag::Preflush),
    (BLOCK_BACKGROUND, Flag::Background),
    (BLOCK_SWAP, Flag::Swap),
];

/// An operation by the kernel's number for it (include/linux/blk_types.h: enum req_op).
fn operation(number: u8) -> Operation {
    match number {
        0 => Operation::Read,
        1 => Operation::Write,
        2 => Operation::Flush,
        3 | 5 => Operation::Discard,
        _ => Operation::Other,
    }
}

/// Whose thread it is, according to the kernel side.
pub(super) fn asker(number: u8) -> Asker {
    match number {
        BLOCK_OF_COMMAND => Asker::Command,
        BLOCK_OF_KERNEL => Asker::Kernel,
        BLOCK_OF_OTHERS => Asker::Other,
        _ => Asker::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use inodyne_model::io_over_time::DiskInterval;

    use super::*;
    use crate::contract::planted::{every_field_counts, planted};

    unsafe extern "C" {
        fn host_plant_block_key(to: *mut Key);
        fn host_plant_block_row(to: *mut Row);
        fn host_plant_block_disk(to: *mut DiskTotals);
    }

    #[test]
    fn every_part_of_requests_reaches_its_meaning() {
        let (key, row): (Key, Row) = (planted(host_plant_block_key), planted(host_plant_block_row));
        let amount = Amount {
            requests: 411,
            bytes: 412,
            sequential: 413,
            timed: 414,
            queue_ns: Nanos(415),
            device_ns: Nanos(416),
            sizes: vec![Size { from_bytes: 512, count: 417 }],
            queue: Histogram::from_octaves(&[418]),
            device: Histogram::from_octaves(&[419]),
        };
        let expected = Requests {
            disk: "259:2".to_owned(),
            partition: Some("259:3".to_owned()),
            operation: Operation::Flush,
            flags: vec![Flag::Meta],
            stack: StackId(401),
            asker: Asker::Other,
            comm: "planted".to_owned(),
            cgroup: Some("/planted".to_owned()),
            after: true,
            amount,
        };
        let cgroups = cgroups::Names::from([(402, "/planted".to_owned())]);
        let requests = |key: &Key, row: &Row| super::requests(key, row, &cgroups);
        assert_eq!(requests(&key, &row), expected);
        every_field_counts("block_key", key, &["unused"], |key| requests(key, &row));
        every_field_counts("block_row", row, &[], |row| requests(&key, row));
    }

    #[test]
    fn every_part_of_a_disk_reaches_its_meaning() {
        let totals: DiskTotals = planted(host_plant_block_disk);
        let expected = Disk {
            number: "259:2".to_owned(),
            name: "259:2".to_owned(),
            merged: 421,
            busy_ns: Nanos(422 + 1_000 - 423),
            limits: None,
        };
        let over_time = |totals: &DiskTotals| {
            let mut samples = Samples::default();
            samples.add(Nanos(1_000), vec![*totals]);
            samples.since(Nanos(0)).map(|course| course.intervals[0].disks.clone())
        };
        let interval = DiskInterval {
            disk: "259:2".to_owned(),
            requests: 426,
            read_bytes: 427,
            written_bytes: 428,
            device_ns: Nanos(429),
            busy_ns: expected.busy_ns,
        };
        assert_eq!(disk(&totals, Nanos(1_000)), expected);
        assert_eq!(over_time(&totals), Some(vec![interval]));
        every_field_counts("block_disk", totals, &["next_sector"], |totals| {
            (disk(totals, Nanos(1_000)), over_time(totals))
        });
    }
}
