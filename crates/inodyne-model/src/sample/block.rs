//! What a block device did for a command that made files on ext4, and its journal.

use super::ms;
use crate::Nanos;
use crate::block::{
    Amount, Asker, BlockIo, Commit, Dirtied, Disk, Flag, Journal, JournalKind, Operation, Requests, Size,
};
use crate::disk_limits::{DiskLimits, Latency};
use crate::histogram::Histogram;
use crate::io_over_time::{DiskInterval, IoInterval, IoOverTime};
use crate::neighbours::{Neighbour, Neighbours};
use crate::stack::{Frame, Stack, StackId};
use crate::trace::Trace;

/// Stacks on which I/O was asked for, leaf first.
const COMMIT: (u64, &[&str]) =
    (901, &["submit_bio_noacct_nocheck", "jbd2_journal_commit_transaction", "kjournald2", "kthread"]);
const WRITEBACK: (u64, &[&str]) = (902, &["submit_bio_noacct_nocheck", "ext4_do_writepages", "wb_workfn", "kthread"]);
const INODES: (u64, &[&str]) = (903, &["submit_bio_noacct_nocheck", "__ext4_get_inode_loc", "ext4_create"]);

fn amount(requests: u64, kilobytes: u64, each: Nanos) -> Amount {
    let bytes = kilobytes << 10;
    let mut octaves = [0; 40];
    octaves[each.0.max(1).ilog2() as usize] = requests as u32;
    let size = |bytes: u64| Size { from_bytes: 1 << bytes.ilog2(), count: requests };
    Amount {
        requests,
        bytes,
        sequential: requests / 2,
        timed: requests,
        queue_ns: Nanos(20_000 * requests),
        device_ns: Nanos(each.0 * requests),
        sizes: bytes.checked_div(requests).filter(|mean| *mean >= 512).map(size).into_iter().collect(),
        queue: Histogram::from_octaves(&[0; 14].into_iter().chain([requests as u32]).collect::<Vec<_>>()),
        device: Histogram::from_octaves(&octaves),
    }
}

/// What a disk that is not fast can do.
pub fn disk_limits() -> DiskLimits {
    DiskLimits {
        measured_unix_s: 1_790_000_000,
        kernel: "6.18.5".to_owned(),
        fs: "ext4".to_owned(),
        file_bytes: 200 << 20,
        read: Latency { p50_ns: ms(0.19), p99_ns: ms(0.4) },
        reads_per_s: 6_012,
        read_bytes_per_s: 78_000_000,
        write_bytes_per_s: 70_000_000,
        flush: Latency { p50_ns: ms(5.1), p99_ns: ms(11.0) },
    }
}

/// Reads, then nothing, then writes.
fn over_time() -> IoOverTime {
    let disk = |(read, written): (u64, u64)| DiskInterval {
        disk: "7:0".to_owned(),
        requests: 20,
        read_bytes: read << 10,
        written_bytes: written << 10,
        device_ns: ms(24.0),
        busy_ns: ms(18.0),
    };
    let interval = |(at, done): (u32, Option<(u64, u64)>)| IoInterval {
        to_ns: ms(f64::from(at) * 20.0),
        disks: done.map(disk).into_iter().collect(),
        dirty_bytes: Some(9_000 << 10),
        writeback_bytes: Some(0),
    };
    let done = [Some((160, 0)), None, Some((0, 900)), Some((0, 900))];
    IoOverTime { intervals: (1..).zip(done).map(interval).collect() }
}

/// Adds this I/O to a trace.
pub fn add_block_io(trace: &mut Trace) {
    let of = |(id, functions): (u64, &[&str])| Stack {
        id: StackId(id),
        frames: functions.iter().map(|name| Frame::Symbol((*name).to_owned())).collect(),
        truncated: false,
    };
    trace.observed.stacks.extend([COMMIT, WRITEBACK, INODES].map(of));
    let requests = |operation, flags: &[Flag], stack: u64, comm: &str, amount| Requests {
        disk: "7:0".to_owned(),
        operation,
        flags: flags.to_vec(),
        stack: StackId(stack),
        comm: comm.to_owned(),
        asker: if comm.is_empty() { Asker::Unknown } else { Asker::Kernel },
        amount,
        ..Requests::default()
    };
    let group = || Some("/system.slice/backup.service".to_owned());
    let read = requests(Operation::Read, &[Flag::Meta], INODES.0, "tar", amount(40, 160, ms(0.2)));
    let written = requests(Operation::Write, &[], WRITEBACK.0, "kworker", amount(12, 9_000, ms(4.0)));
    trace.block = Some(BlockIo {
        disks: vec![Disk {
            number: "7:0".to_owned(),
            name: "loop0".to_owned(),
            merged: 310,
            busy_ns: ms(60.0),
            limits: Some(disk_limits()),
        }],
        requests: vec![
            requests(Operation::Write, &[Flag::Sync], COMMIT.0, "jbd2/loop0-8", amount(30, 1_800, ms(1.0))),
            Requests { after: true, ..written },
            Requests { asker: Asker::Command, ..read.clone() },
            Requests { comm: "stranger".to_owned(), cgroup: group(), asker: Asker::Other, ..read },
            requests(Operation::Flush, &[Flag::Preflush], 0, "", amount(30, 0, ms(0.5))),
        ],
        dirtied: [("tar", Asker::Command, 9_000), ("stranger", Asker::Other, 160)]
            .map(|(comm, asker, kib)| Dirtied {
                disk: "7:0".to_owned(),
                comm: comm.to_owned(),
                cgroup: (asker == Asker::Other).then(group).flatten(),
                asker,
                bytes: kib << 10,
            })
            .into(),
        over_time: Some(over_time()),
        ..BlockIo::default()
    });
    let stranger =
        Neighbour { pid: 77, comm: "stranger".to_owned(), cpu_ns: ms(10.0), read_bytes: 160 << 10, write_bytes: 0 };
    trace.neighbours = Some(Neighbours { processes: vec![stranger], ..Neighbours::default() });
    trace.journals = vec![journal()];
}

/// The journal of a file system on this disk.
pub fn journal() -> Journal {
    Journal {
        device: "7:0".to_owned(),
        name: "loop0".to_owned(),
        kind: JournalKind::Jbd2,
        commits: 30,
        handles: Some(1_234),
        blocks: Some(450),
        locked_ns: Some(ms(0.3)),
        flushing_ns: Some(ms(6.0)),
        logging_ns: Some(ms(45.0)),
        longest_ns: Some(ms(3.5)),
        checkpoints: Some(2),
        checkpointed: Some(170),
        forces: None,
        waits_for_space: None,
        each: (0..30).map(commit).collect(),
    }
}

fn commit(number: u32) -> Commit {
    let begin = f64::from(number) * 3.0;
    Commit { from_ns: Some(ms(begin)), to_ns: ms(begin + 1.7), blocks: Some(15) }
}
