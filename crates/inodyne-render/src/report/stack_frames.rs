//! Which frames of a stack tell a reader something, and which functions hold a row of the ledger.
//!
//! ```text
//! __schedule < schedule < io_schedule < bit_wait_io < __wait_on_bit < __ext4_find_entry < … < do_syscall_64
//! how a thread leaves the CPU: every wait has these               │ what it was for       │ how it entered the kernel
//! ```

use std::collections::HashMap;

use inodyne_model::Nanos;
use inodyne_model::ledger::{Row, RowKind, View};
use inodyne_model::observed::ROOT;
use inodyne_model::path::{PathTime, PathWait};
use inodyne_model::profile::StackTime;
use inodyne_model::stack::{Stack, StackId, function_name};
use inodyne_model::trace::Trace;

use crate::profile::weighted::frame_name;

/// Frames of a stack that are shown.
const SHOWN: usize = 3;

/// How a thread gets to wait, whatever it waits for.
const WAITING: [&str; 32] = [
    "__schedule",
    "schedule",
    "schedule_preempt_disabled",
    "schedule_timeout",
    "schedule_hrtimeout_range",
    "schedule_hrtimeout_range_clock",
    "io_schedule",
    "io_schedule_timeout",
    "bit_wait",
    "bit_wait_io",
    "__wait_on_bit",
    "__wait_on_bit_lock",
    "out_of_line_wait_on_bit",
    "out_of_line_wait_on_bit_lock",
    "folio_wait_bit_common",
    "folio_wait_bit",
    "wait_for_completion",
    "wait_for_completion_io",
    "wait_for_completion_io_timeout",
    "wait_for_completion_timeout",
    "wait_for_completion_state",
    "__wait_for_common",
    "__down_common",
    "__down",
    "down",
    "down_read",
    "down_write",
    "rwsem_down_read_slowpath",
    "rwsem_down_write_slowpath",
    "__mutex_lock",
    "__mutex_lock_slowpath",
    "mutex_lock",
];

/// How a thread enters the kernel, or where a kernel thread begins.
const ENTRIES: [&str; 17] = [
    "entry_SYSCALL_64_after_hwframe",
    "entry_SYSCALL_64",
    "do_syscall_64",
    "x64_sys_call",
    "asm_exc_page_fault",
    "exc_page_fault",
    "el0t_64_sync",
    "el0t_64_sync_handler",
    "el0_svc",
    "el0_svc_common",
    "do_el0_svc",
    "invoke_syscall",
    "ret_from_fork",
    "ret_from_fork_asm",
    "kthread",
    "worker_thread",
    "process_one_work",
];

/// The functions of a kernel stack that tell something, leaf first.
pub(super) fn of_kernel(stack: &Stack, is_blocked: bool) -> impl Iterator<Item = String> {
    let names = stack.frames.iter().map(frame_name).map(|name| function_name(&name).to_owned());
    let is_how = move |name: &String| is_blocked && WAITING.contains(&name.as_str());
    let is_entry = |name: &String| ENTRIES.contains(&name.as_str()) || name.starts_with("__x64_sys_");
    names.skip_while(is_how).take_while(move |name| !is_entry(name))
}

/// The functions of a stack in user mode, leaf first.
pub(super) fn of_program(stack: &Stack) -> impl Iterator<Item = String> {
    stack.frames.iter().map(frame_name)
}

/// Time in one place, and the waits of others that it was inside.
pub(super) struct Spent<'a> {
    pub(super) time: &'a StackTime,
    pub(super) waits: &'a [PathWait],
}

/// The time by stack that the ledger is about: of the critical path if it is known, otherwise of the threads.
pub(super) fn spent(trace: &Trace) -> Vec<Spent<'_>> {
    if !trace.path.stacks.is_empty() {
        return trace.path.stacks.iter().map(|PathTime { time, waits, .. }| Spent { time, waits }).collect();
    }
    let is_meant = |time: &&StackTime| trace.ledger.view != View::RootThread || time.thread == ROOT;
    let times = trace.stacks.on_cpu.iter().chain(&trace.stacks.off_cpu).filter(is_meant);
    times.map(|time| Spent { time, waits: &[] }).collect()
}

/// A function that holds a part of a row, with its callers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Holder {
    /// Of the row.
    pub(super) share: f64,
    /// `recently_deleted < find_inode_bit < __ext4_new_inode`
    pub(super) frames: String,
}

/// The stacks of a trace, to ask which functions hold a row.
pub(super) struct Holders<'a> {
    trace: &'a Trace,
    stacks: HashMap<StackId, &'a Stack>,
}

impl<'a> Holders<'a> {
    pub(super) fn new(trace: &'a Trace) -> Holders<'a> {
        Holders { trace, stacks: trace.observed.stacks.iter().map(|stack| (stack.id, stack)).collect() }
    }

    /// The functions that hold at least this part of a row, the largest first; each with the callers that it has most of the time.
    pub(super) fn of(&self, row: &Row, least: f64) -> Vec<Holder> {
        // By the innermost function; for each, the time of every way to it.
        let mut by_function: HashMap<String, HashMap<String, Nanos>> = HashMap::new();
        let mut all = Nanos::ZERO;
        for time in self.times(row) {
            all += time.ns;
            let frames = self.frames(time);
            if let Some(first) = frames.first() {
                let ways = by_function.entry(first.clone()).or_default();
                *ways.entry(frames.join(" < ")).or_default() += time.ns;
            }
        }
        // In a window, what began before it has a row of its own, but the same stacks.
        let whole = row.ns.max(all);
        let holder = |ways: HashMap<String, Nanos>| {
            let sum: Nanos = ways.values().copied().sum();
            let (frames, _) = ways.into_iter().max_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)))?;
            Some(Holder { share: sum.share_of(whole), frames })
        };
        let mut all: Vec<Holder> = by_function.into_values().filter_map(holder).collect();
        all.retain(|holder| holder.share >= least);
        all.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.frames.cmp(&b.frames)));
        all
    }

    fn times(&self, row: &Row) -> Box<dyn Iterator<Item = &'a StackTime> + '_> {
        if !self.trace.path.stacks.is_empty() {
            let row = (row.kind, row.syscall.clone(), row.cause, row.via.clone());
            let is_of_row = move |part: &&PathTime| {
                let of = &part.row;
                (of.kind, &of.syscall, of.cause, &of.via) == (row.0, &row.1, row.2, &row.3)
            };
            return Box::new(self.trace.path.stacks.iter().filter(is_of_row).map(|part| &part.time));
        }
        let row = (row.kind, row.syscall.clone(), row.cause);
        let is_of_row = move |time: &&StackTime| (time.kind, &time.syscall, time.cause) == (row.0, &row.1, row.2);
        Box::new(spent(self.trace).into_iter().map(|spent| spent.time).filter(is_of_row))
    }

    fn frames(&self, time: &StackTime) -> Vec<String> {
        let stack = |id| self.stacks.get(&id).copied();
        match time.kind {
            RowKind::User => stack(time.user_stack).into_iter().flat_map(of_program).take(SHOWN).collect(),
            RowKind::Kernel | RowKind::Blocked => {
                let is_blocked = time.kind == RowKind::Blocked;
                stack(time.stack).into_iter().flat_map(|stack| of_kernel(stack, is_blocked)).take(SHOWN).collect()
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use inodyne_model::sample::{self, stack};

    use super::*;

    #[test]
    fn how_is_waited_and_the_way_in_are_left_out() {
        let waits = stack(
            1,
            "__schedule schedule io_schedule bit_wait_io __wait_on_bit __ext4_find_entry.isra.0 ext4_lookup do_syscall_64",
        );
        assert_eq!(of_kernel(&waits, true).collect::<Vec<_>>(), ["__ext4_find_entry", "ext4_lookup"]);
        let runs = stack(2, "schedule find_inode_bit __x64_sys_openat do_syscall_64");
        assert_eq!(of_kernel(&runs, false).collect::<Vec<_>>(), ["schedule", "find_inode_bit"]);
    }

    #[test]
    fn a_row_is_held_by_its_functions() {
        let mut recording = sample::find_recording();
        inodyne_analyse::explain(&mut recording);
        let trace = &recording.traces[0];
        let holders = Holders::new(trace);
        let rows = trace.ledger.rows.iter().filter(|row| matches!(row.kind, RowKind::Kernel | RowKind::Blocked));
        let mut found = 0;
        for row in rows {
            let of_row = holders.of(row, 0.0);
            assert!(of_row.iter().map(|holder| holder.share).sum::<f64>() <= 1.0 + 1e-9, "{of_row:?}");
            found += of_row.len();
        }
        assert!(found > 0);
    }
}
