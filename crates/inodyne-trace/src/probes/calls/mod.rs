//! Reads the table of calls: one row for each (command, call) pair and CPU.

mod contract;
mod errnos;

use std::collections::{BTreeMap, HashMap};

use inodyne_model::Nanos;
use inodyne_model::histogram::Histogram;
use inodyne_model::syscall::{CommCalls, SyscallStats, returns_bytes};
use inodyne_model::trace::Trace;

use crate::call_slots::used;
use crate::contract::{COMM_LENGTH, GROUP_CALIBRATION, global, text};
use crate::map::{ArrayView, pairs, per_cpu};
use crate::names;
use crate::kernel::Programs;
use crate::probe::{NOT_AT_EVENTS, Probe, Program, Seen};
use crate::options::Options;
use crate::rings::Rings;
use crate::skeleton::{InodyneMaps, OpenInodyneSkel};
use contract::{CallStats, CallsUsed};

/// The probe of system calls.
#[derive(Default)]
pub struct Own {
    rows: Option<Rows>,
}

/// The table of calls, as it is mapped while the trace runs.
struct Rows {
    /// The first rows, those of all CPUs side by side.
    stats: ArrayView<CallStats>,
    cpus: usize,
}

/// Rows in the array; those beyond it are slower.
const ROWS_IN_ARRAY: u32 = 256;

/// Rows that there is room for beyond the array, for each CPU. They take memory once there are such calls.
const ROWS_BEYOND: u32 = 4096;

const PROGRAMS: &[Program] = &[
    Program::at("calls_enter", "sys_enter").on(NOT_AT_EVENTS),
    Program::at("calls_enter_again", "sys_enter").on(&[Programs::LoseCpu]).done(|bss| bss.calls_enter_again_done),
    Program::at("calls_exit", "sys_exit").on(NOT_AT_EVENTS),
    Program::at("calls_exit_again", "sys_exit").on(&[Programs::LoseCpu]).done(|bss| bss.calls_exit_again_done),
    Program::held("calls_enter_held", "raw_syscalls/sys_enter"),
    Program::held("calls_exit_held", "raw_syscalls/sys_exit"),
];

impl Probe for Own {
    fn feature(&self) -> &'static str {
        "system calls"
    }

    fn without(&self) -> &'static str {
        "no system call is seen"
    }

    fn is_of_live_view(&self) -> bool {
        true
    }

    fn programs(&self) -> &'static [Program] {
        PROGRAMS
    }

    fn configure(&self, object: &mut OpenInodyneSkel<'_>, options: &Options, cpus: usize) -> libbpf_rs::Result<()> {
        let constants = object.maps.rodata_data.as_mut().expect("the object has constants");
        // A live view reads no table of calls.
        let (rows, beyond) = if options.live { (1, 1) } else { (ROWS_IN_ARRAY, ROWS_BEYOND) };
        constants.record_calls = u32::from(!options.live);
        (constants.call_rows, constants.call_cpus) = (rows, cpus as u32);
        object.maps.call_stats.set_max_entries(rows * cpus as u32)?;
        object.maps.more_call_stats.set_max_entries(beyond * cpus as u32)
    }

    fn open(
        &mut self,
        maps: &InodyneMaps<'static>,
        _options: &Options,
        _rings: &mut Rings,
    ) -> libbpf_rs::Result<()> {
        self.rows = Some(Rows { stats: ArrayView::new(&maps.call_stats)?, cpus: libbpf_rs::num_possible_cpus()? });
        Ok(())
    }

    fn calls_so_far(&self, maps: &InodyneMaps<'static>) -> u64 {
        let Some(rows) = &self.rows else { return 0 };
        let given_out = used_so_far(maps).rows as usize;
        let in_array = (0..given_out).flat_map(|row| rows.in_array(row)).map(|stats| stats.calls).sum::<u64>();
        let beyond = if given_out > rows.len() { per_cpu(&maps.more_calls).unwrap_or_default() } else { Vec::new() };
        in_array + beyond.iter().sum::<u64>()
    }

    fn read(&mut self, seen: &Seen<'_>, result: &mut Trace) -> libbpf_rs::Result<()> {
        let Some(rows) = &self.rows else { return Ok(()) };
        let groups = Groups::new(pairs(&seen.maps.call_groups)?);
        let beyond = rows.by_row(pairs(&seen.maps.more_call_stats)?);
        let counted = |row| rows.in_array(row).chain(beyond.get(&row).into_iter().flatten().copied());
        result.by_comm = by_comm(counted, &used(seen.maps)?, &groups);
        Ok(())
    }
}

fn used_so_far(maps: &InodyneMaps<'_>) -> CallsUsed {
    let variables = maps.bss_data.as_ref().expect("the object has global variables");
    global(&variables.calls_used)
}

impl Rows {
    /// The counts of this row on all CPUs; none for one beyond the array.
    fn in_array(&self, row: usize) -> impl Iterator<Item = CallStats> + '_ {
        let places = row * self.cpus..(row + 1) * self.cpus;
        places.filter(|place| *place < self.stats.len()).map(|place| self.stats.get(place))
    }

    /// How many rows the array has.
    fn len(&self) -> usize {
        self.stats.len() / self.cpus
    }

    /// Counts that lie beyond the array, by rows.
    fn by_row(&self, pairs: Vec<(u32, CallStats)>) -> HashMap<usize, Vec<CallStats>> {
        let mut rows: HashMap<usize, Vec<CallStats>> = HashMap::new();
        pairs.into_iter().for_each(|(place, stats)| rows.entry(place as usize / self.cpus).or_default().push(stats));
        rows
    }
}

/// Command names by group.
struct Groups(HashMap<u32, String>);

impl Groups {
    /// From the pairs of the map `call_groups`.
    fn new(pairs: Vec<([u8; COMM_LENGTH], u32)>) -> Groups {
        Groups(pairs.into_iter().map(|(comm, group)| (group, text(&comm))).collect())
    }

    /// The command name of a group; `(others)` for those that found no group.
    fn name(&self, group: usize) -> String {
        self.0.get(&(group as u32)).cloned().unwrap_or_else(|| "(others)".to_owned())
    }
}

/// The calls of every command, most wall time first.
fn by_comm<I: Iterator<Item = CallStats>>(
    counted: impl Fn(usize) -> I,
    used: &[(usize, usize, u32)],
    groups: &Groups,
) -> Vec<CommCalls> {
    // Two groups may have the same name: those that found no group of their own.
    let mut commands: BTreeMap<String, BTreeMap<String, SyscallStats>> = BTreeMap::new();
    for &(group, call, reference) in used {
        let Some(row) = (reference >> 16).checked_sub(1).map(|row| row as usize) else { continue };
        let Some(name) = names::call(call as u16).filter(|_| group != GROUP_CALIBRATION) else { continue };
        for counted in counted(row).filter(|counted| counted.calls > 0) {
            let calls = commands.entry(groups.name(group)).or_default();
            let sum = calls.entry(name.clone()).or_insert_with(|| SyscallStats::new(name.clone()));
            sum.merge(&stats(&name, &counted));
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

fn stats(name: &str, counted: &CallStats) -> SyscallStats {
    let errnos = counted.errnos.iter().enumerate().filter(|(_, count)| **count > 0);
    let off_cpu = counted.blocked_ns + counted.ready_ns;
    SyscallStats {
        calls: counted.calls,
        errors: counted.errors,
        errors_by_errno: errnos.map(|(slot, count)| (errnos::name(slot), u64::from(*count))).collect(),
        wall_ns: Nanos(counted.wall_ns),
        cpu_ns: Nanos(counted.wall_ns).saturating_sub(Nanos(off_cpu)),
        runqueue_ns: Nanos(counted.ready_ns),
        blocked_ns: Nanos(counted.blocked_ns),
        min_ns: Nanos(counted.min_ns),
        max_ns: Nanos(counted.max_ns),
        failed_ns: Nanos(counted.failed_ns),
        bytes: returns_bytes(name).then_some(counted.bytes),
        histogram: Histogram::from_counts(&counted.histogram),
        ..SyscallStats::new(name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::planted::{every_field_counts, planted};

    unsafe extern "C" {
        fn host_plant_call_stats(to: *mut CallStats);
        fn host_bucket_of(ns: u64) -> u32;
    }

    #[test]
    fn every_count_reaches_its_meaning() {
        let counted: CallStats = planted(host_plant_call_stats);
        let read = stats("read", &counted);
        let counts = [read.calls, read.errors, read.bytes.expect("read returns bytes")];
        assert_eq!(counts, [101, 102, 109]);
        let times = [read.wall_ns, read.blocked_ns, read.runqueue_ns, read.min_ns, read.max_ns, read.failed_ns];
        assert_eq!(times, [10_300, 104, 105, 106, 107, 108].map(Nanos));
        assert_eq!(read.cpu_ns, Nanos(10_300 - 104 - 105));
        assert_eq!(read.errors_by_errno, BTreeMap::from([("EPERM".to_owned(), 111)]));
        let mut buckets = vec![0; contract::HISTOGRAM_BUCKETS];
        buckets[0] = 110;
        assert_eq!(read.histogram, Histogram::from_counts(&buckets));
        every_field_counts("call_stats", counted, &[], |counted| stats("read", counted));
    }

    #[test]
    fn histogram_twins() {
        for exponent in 0..64 {
            for offset in [-1i64, 0, 1, 3, 7] {
                let ns = (1u64 << exponent).wrapping_add_signed(offset);
                // SAFETY: a pure function.
                let kernel = unsafe { host_bucket_of(ns) };
                assert_eq!(kernel as usize, inodyne_model::histogram::bucket_of(ns), "{ns}");
            }
        }
    }
}
