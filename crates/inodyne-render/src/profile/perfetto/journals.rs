//! Commits of journals: a track for each journal.

use inodyne_model::trace::Trace;

use super::packets::{Flow, Packets};
use crate::line::escaped;

/// Their tracks are numbered from here on.
const FIRST: u64 = 1 << 31;

/// A slice for each commit; a mark if only its end is known.
pub(super) fn write(packets: &mut Packets, trace: &Trace) {
    let with_commits = trace.journals.iter().filter(|journal| !journal.each.is_empty());
    for (track, journal) in (FIRST..).zip(with_commits) {
        packets.track(track, &format!("journal of {}", escaped(&journal.name)));
        for commit in &journal.each {
            let blocks = commit.blocks.map_or_else(String::new, |blocks| blocks.to_string());
            match commit.from_ns {
                Some(from) => packets.slice(track, "commit", from.0, commit.to_ns.0, &[("blocks", blocks)], Flow::None),
                None => packets.instant(track, "commit", commit.to_ns.0, Flow::None),
            }
        }
    }
}
