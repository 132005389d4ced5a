//! The table of calls: rows of the same call under several command names become one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use inodyne_model::syscall::{CommCalls, SyscallStats};

/// All calls, most wall time first; ties are ordered by name, so that the order is always the same.
pub(crate) fn merged(by_comm: &[CommCalls]) -> Vec<SyscallStats> {
    let mut by_name: BTreeMap<&str, SyscallStats> = BTreeMap::new();
    for stats in by_comm.iter().flat_map(|comm| &comm.syscalls) {
        by_name.entry(&stats.name).or_insert_with(|| SyscallStats::new(stats.name.clone())).merge(stats);
    }
    let mut merged: Vec<_> = by_name.into_values().collect();
    merged.sort_by_key(|stats| Reverse(stats.wall_ns));
    merged
}

#[cfg(test)]
mod tests {
    use inodyne_model::Nanos;

    use super::*;

    fn comm(comm: &str, calls: &[(&str, u64, u64)]) -> CommCalls {
        let row = |(name, calls, wall): &(&str, u64, u64)| {
            let mut stats = SyscallStats::new((*name).to_owned());
            (stats.calls, stats.wall_ns) = (*calls, Nanos(*wall));
            stats
        };
        CommCalls { comm: comm.to_owned(), syscalls: calls.iter().map(row).collect() }
    }

    #[test]
    fn the_same_call_of_two_commands_is_one_row() {
        let merged = merged(&[comm("sh", &[("read", 1, 10), ("close", 1, 12)]), comm("cat", &[("read", 2, 20)])]);
        let rows: Vec<_> = merged.iter().map(|s| (s.name.as_str(), s.calls, s.wall_ns.0)).collect();
        assert_eq!(rows, [("read", 3, 30), ("close", 1, 12)]);
    }
}
