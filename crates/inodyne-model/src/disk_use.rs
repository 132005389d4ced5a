//! How much of what a disk can do was used by a command.

use crate::Nanos;
use crate::block::{Amount, BlockIo, Disk, Operation, Requests};
use crate::load::Load;

/// How much a command used a disk, compared with what the disk can do. The figures of the command are those of [`Load`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Use {
    /// What was done most, among what has a known limit.
    pub of: DiskLimit,
    /// The fraction of that limit.
    pub share: f64,
    /// What a request took when measured on its own, where the command's were like it: small scattered reads, one at a time.
    pub alone_ns: Option<Nanos>,
}

/// A limit of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskLimit {
    /// Bytes read per second.
    BytesRead(u64),
    /// Small reads per second, many at once.
    Reads(u64),
    /// Bytes written per second.
    BytesWritten(u64),
}

/// From this fraction of its requests and bytes on, a disk counts as only reading, or only writing.
const NEARLY_ALL: f64 = 0.95;
/// From this fraction of requests in order on, a disk counts as read or written sequentially.
const MOSTLY: f64 = 0.5;
/// Requests up to this mean size take as long as those of 4 KiB.
const SMALL: u64 = 16 << 10;
/// Requests of this mean size or more cost in proportion to their bytes, wherever they are.
const LARGE: u64 = 64 << 10;
/// Below this many at once, they count as coming one at a time.
const ONE: f64 = 1.5;
/// Above this fraction of a limit, the disk is not what it was when it was measured.
const MOST: f64 = 1.25;

impl Use {
    /// How much of what a disk can do its load amounted to; none where that is not known or would be a guess, because the disk both read and
    /// wrote, or was asked for something that was not measured, or did more than was ever measured.
    pub fn of(disk: &Disk, block: &BlockIo, load: &Load) -> Option<Use> {
        let limits = disk.limits.as_ref()?;
        let all = &load.amount;
        let is_nearly_all = |operation: Operation| {
            let mut one = Amount::default();
            let of_disk = block.requests.iter().filter(|row| row.disk == disk.number && !row.after);
            // A write of nothing only flushes, and is not among all of them either.
            let moves = |row: &&Requests| row.operation == operation && row.amount.bytes > 0;
            of_disk.filter(moves).for_each(|row| one.add(&row.amount));
            one.requests > 0
                && one.requests as f64 >= NEARLY_ALL * all.requests as f64
                && one.bytes as f64 >= NEARLY_ALL * all.bytes as f64
        };
        let part = |done: f64, most: u64| if most > 0 { done / most as f64 } else { f64::INFINITY };
        let in_bytes = |most| part(load.bytes_per_s, most);
        let is_sequential = all.in_order() >= MOSTLY;
        let found = if is_nearly_all(Operation::Read) {
            let (bytes, reads) = (in_bytes(limits.read_bytes_per_s), part(load.requests_per_s, limits.reads_per_s));
            let is_alone = !is_sequential && load.depth < ONE && all.timed > 0 && all.mean_bytes() <= SMALL;
            let alone_ns = is_alone.then_some(limits.read.p50_ns);
            match !is_sequential && reads > bytes {
                true => Use { of: DiskLimit::Reads(limits.reads_per_s), share: reads, alone_ns },
                false => Use { of: DiskLimit::BytesRead(limits.read_bytes_per_s), share: bytes, alone_ns },
            }
        } else if is_nearly_all(Operation::Write) && (is_sequential || all.mean_bytes() >= LARGE) {
            let (most, share) = (limits.write_bytes_per_s, in_bytes(limits.write_bytes_per_s));
            Use { of: DiskLimit::BytesWritten(most), share, alone_ns: None }
        } else {
            return None;
        };
        (found.share <= MOST).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{IoPath, PathRequests};
    use crate::disk_limits::{DiskLimits, Latency};

    const SECOND: Nanos = Nanos(1_000_000_000);

    fn limits() -> DiskLimits {
        DiskLimits {
            read: Latency { p50_ns: Nanos(200_000), p99_ns: Nanos(900_000) },
            reads_per_s: 8_000,
            read_bytes_per_s: 100_000_000,
            write_bytes_per_s: 50_000_000,
            ..DiskLimits::default()
        }
    }

    /// The use that one second's requests make: operation, number, size, and how many of them are in order. Each takes `each` at the device.
    fn used(rows: &[(Operation, u64, u64, u64)], each: Nanos) -> Option<Use> {
        let number = || "8:0".to_owned();
        let amount = |(_, requests, bytes, sequential): &(Operation, u64, u64, u64)| Amount {
            requests: *requests,
            bytes: requests * bytes,
            sequential: *sequential,
            timed: *requests,
            device_ns: Nanos(each.0 * requests),
            ..Amount::default()
        };
        let requests = rows.iter().map(|row| Requests {
            disk: number(),
            operation: row.0,
            amount: amount(row),
            ..Requests::default()
        });
        let paths = rows.iter().map(|row| {
            let path = match row {
                (Operation::Discard, ..) => IoPath::Discard,
                (Operation::Write, _, 0, _) => IoPath::FlushAsked,
                _ => IoPath::Direct,
            };
            PathRequests { disk: number(), path, amount: amount(row), ..PathRequests::default() }
        });
        let disk = Disk { number: number(), busy_ns: SECOND, limits: Some(limits()), ..Disk::default() };
        let block = BlockIo { requests: requests.collect(), paths: paths.collect(), ..BlockIo::default() };
        let load = Load::of(&disk, &block.paths, SECOND);
        Use::of(&disk, &block, &load)
    }

    #[test]
    fn small_reads_here_and_there_are_held_against_many_at_once_and_one_alone() {
        let each = Nanos(1_000_000);
        let alone = used(&[(Operation::Read, 800, 4096, 10)], each).expect("only reads");
        assert_eq!((alone.of, alone.share, alone.alone_ns), (DiskLimit::Reads(8_000), 0.1, Some(Nanos(200_000))));
        // Several at once, and larger ones, are not like those that were measured on their own.
        assert_eq!(used(&[(Operation::Read, 4_000, 4096, 10)], each).map(|it| it.alone_ns), Some(None));
        assert_eq!(used(&[(Operation::Read, 800, 32 << 10, 10)], each).map(|it| it.alone_ns), Some(None));
    }

    #[test]
    fn what_is_in_sequence_is_held_against_bytes() {
        let each = Nanos(1_000_000);
        let read = used(&[(Operation::Read, 400, 125_000, 399)], each).expect("only reads");
        assert_eq!((read.of, read.share, read.alone_ns), (DiskLimit::BytesRead(100_000_000), 0.5, None));
        let wrote = used(&[(Operation::Write, 400, 125_000, 3), (Operation::Discard, 9, 1 << 30, 0)], each);
        assert_eq!(wrote.map(|it| (it.of, it.share)), Some((DiskLimit::BytesWritten(50_000_000), 1.0)));
    }

    #[test]
    fn nothing_is_said_where_it_would_be_a_guess() {
        let each = Nanos(1_000_000);
        // Both directions, small scattered writes, more than the disk did when it was measured, nothing at all.
        assert_eq!(used(&[(Operation::Read, 400, 4096, 3), (Operation::Write, 300, 4096, 3)], each), None);
        assert_eq!(used(&[(Operation::Write, 400, 4096, 3)], each), None);
        // A quarter of what moved anything was read; the flushes that were asked for do not change that.
        let both = [(Operation::Write, 30, 1 << 20, 29), (Operation::Read, 10, 4096, 0), (Operation::Write, 90, 0, 0)];
        assert_eq!(used(&both, each), None);
        assert_eq!(used(&[(Operation::Read, 40_000, 4096, 3)], each), None);
        assert_eq!(used(&[], each), None);
    }
}
