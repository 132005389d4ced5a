//! Who else filled what the command waits for: the data that others made dirty on its disk, and the requests that they sent there.

use inodyne_model::block::Disk;
use inodyne_model::count::{Grouped, counted};
use inodyne_model::trace::Trace;

use super::case::{Case, total};
use crate::device::used;
use crate::strangers::{self, Parts};
use crate::units::percent;

/// Below this share of it, what others did is not why the command waits.
const LEAST_PART: f64 = 0.25;
/// How many names are given; the rest is a number.
const NAMES: usize = 3;

/// A line for each of the two in which others had a large share, of the first disk where they had one.
pub(super) fn evidence(case: &Case<'_>) -> Vec<String> {
    let mut lines = disks(case.trace).into_iter().map(|disk| of_disk(case.trace, disk));
    lines.find(|lines| !lines.is_empty()).unwrap_or_default()
}

fn of_disk(trace: &Trace, disk: &Disk) -> Vec<String> {
    let megabytes = |bytes: u64| format!("{:.1} MB that became dirty on {}", bytes as f64 / 1e6, disk.name);
    let dirty = strangers::dirtied(trace, &disk.number);
    let requests = strangers::requests(trace, &disk.number);
    let dirty = line(&dirty, &format!("of {} meanwhile", megabytes(dirty.whole)), "were written by");
    let asked = format!("of {} requests to {}", Grouped(requests.whole), disk.name);
    [dirty, line(&requests, &asked, "were asked for by")].into_iter().flatten().collect()
}

/// The disks that the command itself used, or, where the kernel made all of its requests for it, that of its place. The one at which
/// its requests took the longest comes first, but need not be the one that it writes to: a single page of a program, read from another
/// disk while that is busy, may take longer.
fn disks(trace: &Trace) -> Vec<&Disk> {
    let Some(block) = trace.block.as_ref() else { return Vec::new() };
    let of_place = || {
        let number = &block.bound.as_ref()?.disk;
        block.disks.iter().find(|disk| disk.number == *number)
    };
    let used = used(block);
    if used.is_empty() { of_place().into_iter().collect() } else { used }
}

/// `of 900.0 MB that became dirty on loop0 meanwhile, 97% were written by writer (backup.service)`
fn line(parts: &Parts, whole: &str, were: &str) -> Option<String> {
    let share = |part: u64| part as f64 / parts.whole.max(1) as f64;
    let of_others: u64 = total(parts.strangers.iter().map(|(_, part)| *part));
    if share(of_others) < LEAST_PART {
        return None;
    }
    let one = |(at, (who, part)): (usize, &(String, u64))| {
        let were = if at == 0 { format!("{were} ") } else { "by ".to_owned() };
        format!("{} {were}{who}", percent(share(*part)))
    };
    let named: Vec<String> = parts.strangers.iter().take(NAMES).enumerate().map(one).collect();
    let others = parts.strangers.len().saturating_sub(NAMES);
    let more = match counted(others as u64, "other", "others") {
        _ if others == 0 => String::new(),
        named => format!(", {} in all with {named}", percent(share(of_others))),
    };
    Some(format!("{whole}, {}{more}", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use inodyne_model::Nanos;
    use inodyne_model::block::{Amount, Asker, BlockIo, Dirtied, IoPath, PathRequests};

    use super::*;

    #[test]
    fn a_page_read_from_another_disk_does_not_hide_who_fills_the_one_that_is_written_to() {
        let disk = |number: &str| Disk { number: number.to_owned(), name: format!("disk-{number}"), ..Disk::default() };
        let own = |disk: &str, path, ms: u64| PathRequests {
            disk: disk.to_owned(),
            path,
            asker: Asker::Command,
            amount: Amount { requests: 1, queue_ns: Nanos(ms * 1_000_000), ..Amount::default() },
            ..PathRequests::default()
        };
        let dirty = Dirtied {
            disk: "7:0".to_owned(),
            comm: "writer".to_owned(),
            asker: Asker::Other,
            bytes: 9_000_000,
            ..Dirtied::default()
        };
        let paths = vec![own("8:0", IoPath::DataRead, 30), own("7:0", IoPath::SyncWrite, 10)];
        let block =
            BlockIo { disks: vec![disk("8:0"), disk("7:0")], paths, dirtied: vec![dirty], ..BlockIo::default() };
        let trace = Trace { block: Some(block), ..Trace::default() };
        let order: Vec<&str> = disks(&trace).iter().map(|disk| disk.number.as_str()).collect();
        assert_eq!(order, ["8:0", "7:0"]);
        let lines = disks(&trace).into_iter().map(|disk| of_disk(&trace, disk)).collect::<Vec<_>>();
        assert!(lines[0].is_empty(), "{lines:?}");
        assert_eq!(lines[1], ["of 9.0 MB that became dirty on disk-7:0 meanwhile, 100% were written by writer"]);
    }

    #[test]
    fn a_small_part_is_not_told_and_of_many_the_largest_are() {
        let said = |whole, parts: &[(&str, u64)]| {
            let strangers = parts.iter().map(|(who, part)| ((*who).to_owned(), *part)).collect();
            line(&Parts { whole, strangers }, "of 100 requests to loop0", "were asked for by")
        };
        assert_eq!(said(100, &[]), None);
        assert_eq!(said(100, &[("dd", 24)]), None);
        assert_eq!(said(0, &[]), None);
        let one = said(100, &[("dd (backup.service)", 60)]).expect("more than a quarter");
        assert_eq!(one, "of 100 requests to loop0, 60% were asked for by dd (backup.service)");
        let many = said(100, &[("a", 40), ("b", 20), ("c", 10), ("d", 2), ("e", 1)]).expect("more than a quarter");
        let expected =
            "of 100 requests to loop0, 40% were asked for by a, 20% by b, 10% by c, 73% in all with 2 others";
        assert_eq!(many, expected);
    }
}
