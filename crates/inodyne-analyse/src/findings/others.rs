//! Who else filled what the command waits for: the data that others made dirty on its disk, and the requests that they sent there.

use inodyne_model::block::Disk;
use inodyne_model::count::Grouped;

use super::case::Case;
use crate::device::most_used;
use crate::strangers::{self, Parts};
use crate::units::percent;

/// Below this share of it, what others did is not why the command waits.
const LEAST_PART: f64 = 0.25;
/// How many names are given; the rest is a number.
const NAMES: usize = 3;

/// A line for each of the two in which others had a large share.
pub(super) fn evidence(case: &Case<'_>) -> Vec<String> {
    let Some(disk) = disk(case) else { return Vec::new() };
    let megabytes = |bytes: u64| format!("{:.1} MB that became dirty on {}", bytes as f64 / 1e6, disk.name);
    let dirty = strangers::dirtied(case.trace, &disk.number);
    let requests = strangers::requests(case.trace, &disk.number);
    let dirty = line(&dirty, &format!("of {} meanwhile", megabytes(dirty.whole)), "were written by");
    let asked = format!("of {} requests to {}", Grouped(requests.whole), disk.name);
    [dirty, line(&requests, &asked, "were asked for by")].into_iter().flatten().collect()
}

/// The disk at which the command's own requests took the longest, or, where the kernel made all of them for it, that of its place.
fn disk<'a>(case: &Case<'a>) -> Option<&'a Disk> {
    let block = case.trace.block.as_ref()?;
    let of_place = || {
        let number = &block.bound.as_ref()?.disk;
        block.disks.iter().find(|disk| disk.number == *number)
    };
    most_used(block).or_else(of_place)
}

/// `of 900.0 MB that became dirty on loop0 meanwhile, 97% were written by writer (backup.service)`
fn line(parts: &Parts, whole: &str, were: &str) -> Option<String> {
    let share = |part: u64| part as f64 / parts.whole.max(1) as f64;
    let of_others: u64 = parts.strangers.iter().map(|(_, part)| part).sum();
    if share(of_others) < LEAST_PART {
        return None;
    }
    let one = |(at, (who, part)): (usize, &(String, u64))| {
        let were = if at == 0 { format!("{were} ") } else { "by ".to_owned() };
        format!("{} {were}{who}", percent(share(*part)))
    };
    let named: Vec<String> = parts.strangers.iter().take(NAMES).enumerate().map(one).collect();
    let others = parts.strangers.len().saturating_sub(NAMES);
    let more =
        if others > 0 { format!(", {} in all with {others} others", percent(share(of_others))) } else { String::new() };
    Some(format!("{whole}, {}{more}", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

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
