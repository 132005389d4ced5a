//! What happened between two snapshots, process by process: what a live view shows.

use std::collections::BTreeMap;
use std::num::NonZero;

use crate::Nanos;
use crate::cause::Cause;
use crate::ledger::{Row, RowKind};
use crate::loss::Lost;

/// What happened between two snapshots.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Activity {
    /// The time between the two.
    pub length_ns: Nanos,
    /// Processes that are alive at the end of it.
    pub living_processes: usize,
    /// Their threads.
    pub living_threads: usize,
    /// Every process that was alive in between, in the order of their ids.
    pub processes: Vec<ProcessActivity>,
    /// What could not be recorded, since the beginning.
    pub lost: Lost,
}

/// What one process did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProcessActivity {
    /// Process id.
    pub pid: u32,
    /// The id that it has where this program runs, as in `/proc`; none where it is not visible there.
    pub pid_here: Option<NonZero<u32>>,
    /// Its command name.
    pub comm: String,
    /// What its threads did.
    pub account: Account,
}

impl ProcessActivity {
    /// The id by which it is known here; the kernel's own where it is not visible from here.
    pub fn number(&self) -> u32 {
        self.pid_here.map_or(self.pid, NonZero::get)
    }
}

/// What some threads did, together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Account {
    /// How many threads.
    pub threads: usize,
    /// Calls that ended.
    pub calls: u64,
    /// How often one of them left a CPU.
    pub switches: u64,
    /// Their time by what they did, largest first. It sums to the time for which they were alive, once [`Account::divide`] has divided
    /// what is still undivided.
    pub rows: Vec<Row>,
    /// The time that they ran in calls that were not timed, and in user mode between those calls. It is in no row.
    pub untimed_ns: Nanos,
    /// By how much the rows of calls are too large, since each call that was timed stands for others.
    pub stood_ns: Nanos,
    /// Their waits for files, by the file system in whose functions they waited.
    pub filesystems: BTreeMap<String, Nanos>,
}

impl Account {
    /// Adds what others did.
    pub fn add(&mut self, other: &Account) {
        self.threads += other.threads;
        self.calls += other.calls;
        self.switches += other.switches;
        self.untimed_ns += other.untimed_ns;
        self.stood_ns += other.stood_ns;
        for row in &other.rows {
            match self.rows.iter_mut().find(|own| own.is_same_as(row)) {
                Some(own) => {
                    own.ns += row.ns;
                    own.count = own.count.saturating_add(row.count);
                    own.estimated |= row.estimated;
                }
                None => self.rows.push(row.clone()),
            }
        }
        self.rows.sort_by_key(|row| std::cmp::Reverse(row.ns));
        for (filesystem, ns) in &other.filesystems {
            *self.filesystems.entry(filesystem.clone()).or_default() += *ns;
        }
    }

    /// Divides the time in calls that were not timed, and between them, into these calls and user mode, going by what the timed ones took;
    /// all such rows are estimates from then on. Their sum is not: where calls are estimated to have taken more than there was, they get all of it.
    pub fn divide(&mut self) {
        let (untimed, stood) = (std::mem::take(&mut self.untimed_ns), std::mem::take(&mut self.stood_ns));
        if untimed + stood == Nanos::ZERO {
            return;
        }
        let user = untimed.saturating_sub(stood);
        if user > Nanos::ZERO && !self.rows.iter().any(|row| row.kind == RowKind::User) {
            self.rows.push(Row::new(RowKind::User, Nanos::ZERO));
        }
        let (mut estimated, mut left): (Nanos, Nanos) = (self.sum(is_of_kernel), stood.saturating_sub(untimed));
        for row in &mut self.rows {
            match row.kind {
                RowKind::User => row.ns += user,
                RowKind::Kernel => {
                    let less = left.0 as u128 * row.ns.0 as u128 / estimated.0.max(1) as u128;
                    // The last row takes what is left over from rounding.
                    estimated = estimated - row.ns;
                    let less = if estimated == Nanos::ZERO { left } else { Nanos(less as u64) };
                    let less = less.min(row.ns);
                    left = left - less;
                    row.ns = row.ns - less;
                }
                _ => continue,
            }
            row.estimated = true;
        }
        self.rows.retain(|row| row.ns > Nanos::ZERO);
        self.rows.sort_by_key(|row| std::cmp::Reverse(row.ns));
    }

    /// On a CPU.
    pub fn cpu_ns(&self) -> Nanos {
        self.sum(|row| matches!(row.kind, RowKind::User | RowKind::Kernel))
    }

    /// Ready, without a CPU.
    pub fn ready_ns(&self) -> Nanos {
        self.sum(|row| row.kind == RowKind::Runqueue)
    }

    /// Waiting for files.
    pub fn files_ns(&self) -> Nanos {
        self.sum(|row| row.cause.is_some_and(Cause::is_of_files))
    }

    /// The cause that was waited for longest, of those that have to do with files.
    pub fn main_cause(&self) -> Option<Cause> {
        let mut causes: BTreeMap<Cause, Nanos> = BTreeMap::new();
        for row in &self.rows {
            if let Some(cause) = row.cause.filter(|cause| cause.is_of_files()) {
                *causes.entry(cause).or_default() += row.ns;
            }
        }
        causes.into_iter().filter(|(_, ns)| *ns > Nanos::ZERO).max_by_key(|(_, ns)| *ns).map(|(cause, _)| cause)
    }

    /// The file system in which they waited longest.
    pub fn main_filesystem(&self) -> Option<&str> {
        self.filesystems.iter().max_by_key(|(_, ns)| **ns).map(|(filesystem, _)| filesystem.as_str())
    }

    /// Whether they did anything other than wait for things that are not files.
    pub fn is_active(&self) -> bool {
        self.calls > 0 || self.cpu_ns() + self.ready_ns() + self.files_ns() > Nanos::ZERO
    }

    fn sum(&self, is_meant: impl Fn(&Row) -> bool) -> Nanos {
        self.rows.iter().filter(|row| is_meant(row)).map(|row| row.ns).sum()
    }
}

fn is_of_kernel(row: &Row) -> bool {
    row.kind == RowKind::Kernel
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked(cause: Cause, ns: u64) -> Row {
        Row { cause: Some(cause), count: 1, ..Row::new(RowKind::Blocked, Nanos(ns)) }
    }

    #[test]
    fn accounts_add_up_row_by_row() {
        let mut one = Account {
            threads: 1,
            calls: 10,
            switches: 3,
            rows: vec![blocked(Cause::Sleep, 900), blocked(Cause::Journal, 60), Row::new(RowKind::User, Nanos(40))],
            filesystems: BTreeMap::from([("ext4".to_owned(), Nanos(60))]),
            ..Account::default()
        };
        let other = Account {
            threads: 2,
            calls: 1,
            switches: 1,
            rows: vec![blocked(Cause::DeviceRead, 100), blocked(Cause::Journal, 50)],
            filesystems: BTreeMap::from([("xfs".to_owned(), Nanos(100)), ("ext4".to_owned(), Nanos(50))]),
            ..Account::default()
        };
        one.add(&other);
        assert_eq!((one.threads, one.calls, one.switches), (3, 11, 4));
        assert_eq!((one.files_ns(), one.cpu_ns(), one.ready_ns()), (Nanos(210), Nanos(40), Nanos::ZERO));
        assert_eq!((one.main_cause(), one.main_filesystem()), (Some(Cause::Journal), Some("ext4")));
        assert_eq!(one.rows[1], Row { count: 2, ..blocked(Cause::Journal, 110) });
        assert!(one.is_active());
        assert!(!Account { rows: vec![blocked(Cause::Poll, 5)], ..Account::default() }.is_active());
    }

    fn kernel(call: &str, ns: u64) -> Row {
        Row { syscall: Some(call.to_owned()), ..Row::new(RowKind::Kernel, Nanos(ns)) }
    }

    fn divided(rows: Vec<Row>, untimed: u64, stood: u64) -> Vec<(RowKind, u64, bool)> {
        let (untimed_ns, stood_ns) = (Nanos(untimed), Nanos(stood));
        let mut account = Account { rows, untimed_ns, stood_ns, ..Account::default() };
        let measured = account.cpu_ns() + untimed_ns - stood_ns;
        account.divide();
        assert_eq!(account.cpu_ns(), measured, "what was on a CPU stays as it was measured");
        account.rows.iter().map(|row| (row.kind, row.ns.0, row.estimated)).collect()
    }

    #[test]
    fn time_with_calls_that_were_not_timed_is_divided_and_keeps_its_sum() {
        let rows = || vec![blocked(Cause::Journal, 60), kernel("read", 80), kernel("write", 24)];
        let as_measured = [(RowKind::Blocked, 60, false), (RowKind::Kernel, 80, false), (RowKind::Kernel, 24, false)];
        assert_eq!(divided(rows(), 0, 0), as_measured);
        // Of 100 in and between such calls, 91 were in the calls.
        let expected = [
            (RowKind::Kernel, 80, true),
            (RowKind::Blocked, 60, false),
            (RowKind::Kernel, 24, true),
            (RowKind::User, 9, true),
        ];
        assert_eq!(divided(rows(), 100, 91), expected);
        // 91 of 50 is impossible.
        let expected = [(RowKind::Blocked, 60, false), (RowKind::Kernel, 49, true), (RowKind::Kernel, 14, true)];
        assert_eq!(divided(rows(), 50, 91), expected);
        assert_eq!(divided(vec![Row::new(RowKind::User, Nanos(5))], 10, 0), [(RowKind::User, 15, true)]);
        assert_eq!(divided(vec![kernel("read", 91)], 0, 91), []);
    }
}
