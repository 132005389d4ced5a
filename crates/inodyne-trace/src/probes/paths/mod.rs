//! Reads the table of paths that were looked up.

use std::cmp::Reverse;

use inodyne_model::Nanos;
use inodyne_model::trace::{PathCount, Paths};

use crate::intf;
use crate::names;

/// The paths that found room, most calls first, and how many look-ups did not.
pub fn read(counts: Vec<(u64, intf::PathCount)>, not_kept: u64) -> Paths {
    let mut looked_up: Vec<PathCount> = counts.iter().filter_map(|(_, count)| path(count)).collect();
    looked_up.sort_by(|a, b| (Reverse(a.calls), &a.path, &a.syscall).cmp(&(Reverse(b.calls), &b.path, &b.syscall)));
    Paths { looked_up, not_kept }
}

fn path(count: &intf::PathCount) -> Option<PathCount> {
    let kept = String::from_utf8_lossy(count.path.get(..count.length as usize)?);
    Some(PathCount {
        path: if count.cut != 0 { format!("…{kept}") } else { kept.into_owned() },
        syscall: names::call(count.call)?,
        calls: count.calls,
        not_found: count.not_found,
        wall_ns: Nanos(count.wall_ns),
    })
}
