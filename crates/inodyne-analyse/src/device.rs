//! Which disk a command worked with, and whether that is what bounds it: how fast it answers, how much it can do at all, or a journal.

use std::cmp::Reverse;

use inodyne_model::Nanos;
use inodyne_model::block::{Asker, BlockIo, Bound, BoundBy, Disk};
use inodyne_model::cause::Cause;
use inodyne_model::ledger::{Ledger, RowKind};
use inodyne_model::load::Load;
use inodyne_model::place::Place;

/// Below this share of the time, a command hardly waits for a device.
const LEAST_WAITING: f64 = 0.2;
/// From this share of that wait on, what it waits for is the journal.
const MOSTLY: f64 = 0.5;
/// A device that is busy for at least this share of the time is nearly always busy: whoever sends it requests needs a moment, too.
pub(crate) const BUSY: f64 = 0.8;
/// With at least this many requests at once, one more would only wait for the others. Read-ahead alone keeps two in flight.
pub(crate) const MANY: f64 = 4.0;

/// The disk that a command in this place worked with, and what bounds the command. Of `whole` it waited for a part.
pub(crate) fn bound(
    block: &BlockIo,
    wall: Nanos,
    ledger: &Ledger,
    whole: Nanos,
    place: Option<&Place>,
) -> Option<Bound> {
    let waiting = |is_meant: fn(Cause) -> bool| -> Nanos {
        let rows = ledger.rows.iter().filter(|row| row.kind == RowKind::Blocked);
        rows.filter(|row| row.cause.is_some_and(is_meant)).map(|row| row.ns).sum()
    };
    let (waiting, of_journal) = (waiting(Cause::is_of_device), waiting(|cause| cause == Cause::Journal));
    // A journal's requests are its own thread's, so nothing of the command's tells which disk it is on.
    let is_journal = of_journal.share_of(waiting) >= MOSTLY;
    let disk = worked_with(block, place, if is_journal { Nanos::ZERO } else { waiting })?;
    let load = Load::of(disk, &block.paths, wall);
    let by = if waiting.share_of(whole) < LEAST_WAITING {
        BoundBy::NotTheDevice
    } else if is_journal {
        BoundBy::Journal
    } else if load.busy >= BUSY && load.depth >= MANY {
        BoundBy::Throughput
    } else {
        BoundBy::Latency
    };
    Some(Bound { disk: disk.number.clone(), waiting_ns: waiting, by })
}

/// The disk of the place, or of what lies below it; where that is not among those that did anything, all are candidates. Of several,
/// the one at which the command's own requests took the longest. So too where the command has asked the place's disk for nothing, while its own
/// requests to another one took half as long as it has waited for devices: it works on files that are elsewhere.
fn worked_with<'a>(block: &'a BlockIo, place: Option<&Place>, waiting: Nanos) -> Option<&'a Disk> {
    let sources = place.map_or_else(Vec::new, sources);
    let is_of_place = |disk: &&Disk| {
        let of_disk = block.requests.iter().filter(|row| row.disk == disk.number);
        let partitions = of_disk.filter_map(|row| row.partition.as_deref());
        partitions.chain([disk.name.as_str()]).any(|name| sources.contains(&name))
    };
    let of_place = block.disks.iter().filter(is_of_place).max_by_key(|disk| own_time(block, disk));
    let most_used = most_used(block);
    let is_elsewhere = |used: &&Disk| {
        let is_asked = of_place.is_none_or(|disk| own_time(block, disk).0 > Nanos::ZERO);
        !is_asked && waiting > Nanos::ZERO && Nanos(own_time(block, used).0.0.saturating_mul(2)) >= waiting
    };
    most_used.filter(is_elsewhere).or(of_place).or(most_used)
}

/// The disk at which the command's own requests took the longest; none where it had none.
pub(crate) fn most_used(block: &BlockIo) -> Option<&Disk> {
    used(block).first().copied()
}

/// The disks that the command sent requests to itself: first that at which these took the longest.
pub(crate) fn used(block: &BlockIo) -> Vec<&Disk> {
    let mut used: Vec<&Disk> = block.disks.iter().filter(|disk| own_time(block, disk).0 > Nanos::ZERO).collect();
    used.sort_by_key(|disk| Reverse(own_time(block, disk)));
    used
}

/// How long the command's own requests to a disk took, and what they moved.
fn own_time(block: &BlockIo, disk: &Disk) -> (Nanos, u64) {
    let own = block.paths.iter().filter(|row| row.disk == disk.number && row.asker == Asker::Command);
    own.fold((Nanos::ZERO, 0), |(ns, bytes), row| (ns + row.amount.taken_ns(), bytes.saturating_add(row.amount.bytes)))
}

/// The devices that a place is mounted from, by their names.
fn sources(place: &Place) -> Vec<&str> {
    let below = place.below.iter().flat_map(sources);
    place.source.strip_prefix("/dev/").into_iter().chain(below).collect()
}

#[cfg(test)]
mod tests {
    use inodyne_model::block::{Amount, IoPath, PathRequests, Requests};
    use inodyne_model::ledger::Row;

    use super::*;

    fn ms(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    /// A disk that was busy for `busy`, with requests that took `at_device` in total.
    fn block(number: &str, name: &str, busy: Nanos, at_device: Nanos) -> BlockIo {
        let amount = Amount { requests: 1, timed: 1, device_ns: at_device, ..Amount::default() };
        let (number, name) = (number.to_owned(), name.to_owned());
        let path = PathRequests {
            disk: number.clone(),
            path: IoPath::Direct,
            asker: Asker::Command,
            amount,
            ..PathRequests::default()
        };
        let disk = Disk { number, name, busy_ns: busy, ..Disk::default() };
        BlockIo { disks: vec![disk], paths: vec![path], ..BlockIo::default() }
    }

    /// The ledger of a second, with so much time waited for each of these.
    fn ledger(waits: &[(Cause, Nanos)]) -> Ledger {
        let row = |(cause, ns): &(Cause, Nanos)| Row { cause: Some(*cause), ..Row::new(RowKind::Blocked, *ns) };
        Ledger { wall_ns: ms(1_000), rows: waits.iter().map(row).collect(), ..Ledger::default() }
    }

    #[test]
    fn what_bounds_is_told_by_what_is_waited_for_and_how_busy_the_disk_is() {
        let (idle, alone, many) = (ms(100), ms(950), ms(9_500));
        for (busy, at_device, waits, by) in [
            (ms(950), many, vec![(Cause::Child, ms(900)), (Cause::DeviceRead, ms(100))], BoundBy::NotTheDevice),
            (ms(950), alone, vec![(Cause::DeviceRead, ms(800))], BoundBy::Latency),
            (ms(950), many, vec![(Cause::DeviceWrite, ms(500)), (Cause::WriteThrottle, ms(300))], BoundBy::Throughput),
            (idle, ms(1_000), vec![(Cause::DeviceRead, ms(800))], BoundBy::Latency),
            (ms(950), many, vec![(Cause::Journal, ms(500)), (Cause::DeviceWrite, ms(300))], BoundBy::Journal),
        ] {
            let (block, ledger) = (block("7:0", "loop0", busy, at_device), ledger(&waits));
            let found = bound(&block, ms(1_000), &ledger, ledger.wall_ns, None);
            assert_eq!(found.map(|found| found.by), Some(by), "{waits:?}");
        }
    }

    #[test]
    fn the_disk_is_that_of_the_place_or_the_one_that_the_command_asked() {
        let mut all = block("7:0", "loop0", ms(1), ms(1));
        let other = block("8:0", "sda", ms(900), ms(900));
        all.disks.extend(other.disks);
        all.paths.extend(other.paths);
        all.requests = vec![Requests { disk: "8:0".into(), partition: Some("sda3".into()), ..Requests::default() }];
        let at = |source: &str| Place { source: source.to_owned(), ..Place::default() };
        let over = |below: Place| Place { source: "overlay".to_owned(), below: vec![below], ..Place::default() };
        let name = |place: &Place| worked_with(&all, Some(place), ms(900)).map(|disk| disk.name.as_str());
        assert_eq!(name(&at("/dev/loop0")), Some("loop0"));
        assert_eq!(name(&over(at("/dev/loop0"))), Some("loop0"));
        assert_eq!(name(&at("/dev/sda3")), Some("sda"));
        assert_eq!(name(&at("tmpfs")), Some("sda"));
        all.paths.iter_mut().for_each(|row| row.asker = Asker::Other);
        assert_eq!(worked_with(&all, None, ms(900)), None);
    }

    #[test]
    fn a_command_in_one_place_may_work_on_the_disk_of_another() {
        let mut all = block("8:16", "sdb", ms(900), ms(900));
        // The place's disk has only what the kernel writes.
        all.disks.extend(block("8:0", "sda", ms(1), ms(1)).disks);
        all.requests = vec![Requests { disk: "8:0".into(), partition: Some("sda1".into()), ..Requests::default() }];
        let place = Place { source: "/dev/sda1".to_owned(), ..Place::default() };
        let name = |waiting| worked_with(&all, Some(&place), waiting).map(|disk| disk.name.as_str());
        assert_eq!(name(ms(900)), Some("sdb"));
        assert_eq!([name(ms(2_000)), name(Nanos::ZERO)], [Some("sda"); 2], "it has waited for something else");
    }
}
