//! Reads the table of calls: one cell for each (command, call) pair and CPU.

use std::collections::BTreeMap;

use inodyne_model::Nanos;
use inodyne_model::histogram::Histogram;
use inodyne_model::syscall::{CommCalls, SyscallStats};

use crate::intf::{CALLS, Cell, GROUP_CALIBRATION, GROUPS, ORDINAL_OTHERS, ORDINALS};
use crate::map::ArrayView;
use crate::names::{self, Groups};

/// The calls of every command, most wall time first.
pub fn by_comm(
    cells: &ArrayView<Cell>,
    refs: &ArrayView<u32>,
    groups: &Groups,
    cpus: usize,
    max_cells: usize,
) -> Vec<CommCalls> {
    // Two groups may bear one name: those that found no group of their own.
    let mut commands: BTreeMap<String, BTreeMap<String, SyscallStats>> = BTreeMap::new();
    for (group, call, reference) in used(refs) {
        let Some(cell) = (reference >> 16).checked_sub(1) else { continue };
        let Some(name) = names::call(call as u16).filter(|_| group != GROUP_CALIBRATION) else { continue };
        for cpu in 0..cpus {
            let counted = cells.get(cpu * max_cells + cell as usize);
            if counted.calls > 0 {
                let calls = commands.entry(groups.name(group)).or_default();
                calls
                    .entry(name.clone())
                    .or_insert_with(|| SyscallStats::new(name.clone()))
                    .merge(&stats(&name, &counted));
            }
        }
    }
    let mut sorted: Vec<CommCalls> = commands.into_iter().map(|(comm, calls)| command(comm, calls)).collect();
    sorted.sort_by_key(|c| std::cmp::Reverse(c.syscalls.iter().map(|s| s.wall_ns).sum::<Nanos>()));
    sorted
}

fn command(comm: String, calls: BTreeMap<String, SyscallStats>) -> CommCalls {
    let mut syscalls: Vec<SyscallStats> = calls.into_values().collect();
    syscalls.sort_by_key(|s| std::cmp::Reverse(s.wall_ns));
    CommCalls { comm, syscalls }
}

fn stats(name: &str, cell: &Cell) -> SyscallStats {
    let errnos = cell.errnos.iter().enumerate().filter(|(_, count)| **count > 0);
    let off_cpu = cell.blocked_ns + cell.ready_ns;
    SyscallStats {
        calls: cell.calls,
        errors: cell.errors,
        errors_by_errno: errnos.map(|(slot, count)| (names::errno(slot), u64::from(*count))).collect(),
        wall_ns: Nanos(cell.wall_ns),
        cpu_ns: Nanos(cell.wall_ns).saturating_sub(Nanos(off_cpu)),
        runqueue_ns: Nanos(cell.ready_ns),
        blocked_ns: Nanos(cell.blocked_ns),
        min_ns: Nanos(cell.min_ns),
        max_ns: Nanos(cell.max_ns),
        failed_ns: Nanos(cell.failed_ns),
        bytes: names::returns_bytes(name).then_some(cell.bytes),
        histogram: Histogram::from_counts(&cell.histogram),
        ..SyscallStats::new(name.to_owned())
    }
}

/// (group, call, reference) of every pair that was seen.
fn used(refs: &ArrayView<u32>) -> impl Iterator<Item = (usize, usize, u32)> + '_ {
    let all = (0..GROUPS).flat_map(|group| (0..CALLS).map(move |call| (group, call)));
    all.map(|(group, call)| (group, call, refs.get(group * CALLS + call))).filter(|(_, _, reference)| *reference != 0)
}

/// Which call each place in a thread's `kernel_ns` stands for.
pub struct Ordinals(Vec<Option<String>>);

impl Ordinals {
    /// From the references that were given out.
    pub fn read(refs: &ArrayView<u32>) -> Ordinals {
        let mut calls = vec![None; ORDINALS];
        for (_, call, reference) in used(refs) {
            calls[(reference & 0xffff) as usize - 1] = names::call(call as u16);
        }
        if calls[ORDINAL_OTHERS].is_some() {
            calls[ORDINAL_OTHERS] = Some("(others)".to_owned());
        }
        Ordinals(calls)
    }

    /// The name of the call in this place.
    pub fn name(&self, ordinal: u32) -> String {
        self.0.get(ordinal as usize).cloned().flatten().unwrap_or_else(|| "(others)".to_owned())
    }

    /// Names the times of a thread's `kernel_ns`, leaving out the zeros.
    pub fn named(&self, kernel_ns: &[u64; ORDINALS]) -> BTreeMap<String, Nanos> {
        let used = kernel_ns.iter().zip(&self.0).filter(|(ns, _)| **ns > 0);
        used.map(|(ns, name)| (name.clone().unwrap_or_else(|| "(others)".to_owned()), Nanos(*ns))).collect()
    }
}
