//! What a live view shows: for each process, what its threads did between one snapshot and the next.
//!
//! ```text
//! snapshot 1   user 40 ms, blocked by the journal 300 ms, sleep 600 ms (under way)      the ledger of a thread
//! snapshot 2   user 55 ms, blocked by the journal 700 ms, sleep 650 ms
//!              ---------------------------------------------------------
//! between      user 15 ms, blocked by the journal 400 ms, sleep  50 ms                  sums to the time between
//! ```
//!
//! A wait that is under way may be classified differently once it is over, since who ends it is a part of what it was. Then one cause
//! would have less in the later snapshot: what is too much is taken from those that have more, of the same call first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use inodyne_model::Nanos;
use inodyne_model::activity::{Account, Activity, ProcessActivity};
use inodyne_model::ledger::{Row, RowKind};
use inodyne_model::observed::ThreadNumber;
use inodyne_model::snapshot::Snapshot;
use inodyne_model::stack::Stack;

use crate::causes::Classifier;
use crate::{filesystem, threads};

/// What is known about the snapshots of one tracer so far.
#[derive(Debug, Default)]
pub struct Live {
    stacks: Vec<Stack>,
    /// The accounts of the threads that were alive at the last snapshot.
    before: HashMap<ThreadNumber, Account>,
    at_ns: Option<Nanos>,
}

impl Live {
    /// Takes the next snapshot; returns what happened since the last one; none for the first.
    pub fn add(&mut self, mut snapshot: Snapshot) -> Option<Activity> {
        self.stacks.append(&mut snapshot.observed.stacks);
        let mut now = accounts(&snapshot, &Classifier::new(&self.stacks));
        let mut processes: BTreeMap<u32, ProcessActivity> = BTreeMap::new();
        for thread in &snapshot.observed.threads {
            let Some(account) = now.get(&thread.number) else { continue };
            let process = processes.entry(thread.pid).or_default();
            process.pid = thread.pid;
            process.pid_here = snapshot.threads.get(&thread.number).and_then(|thread| thread.pid_here);
            if process.comm.is_empty() || thread.tid == thread.pid {
                process.comm.clone_from(&thread.comm);
            }
            let between = self.before.get(&thread.number).map_or_else(|| account.clone(), |last| less(account, last));
            process.account.add(&between);
        }
        processes.values_mut().for_each(|process| process.account.divide());
        let alive = || snapshot.observed.threads.iter().filter(|thread| thread.alive);
        let living_processes = alive().map(|thread| thread.pid).collect::<HashSet<u32>>().len();
        let living_threads = alive().count();
        for ended in snapshot.observed.threads.iter().filter(|thread| !thread.alive) {
            now.remove(&ended.number);
        }
        self.before = now;
        let last = self.at_ns.replace(snapshot.at_ns)?;
        let processes = processes.into_values().collect();
        Some(Activity {
            length_ns: snapshot.at_ns.saturating_sub(last),
            living_processes,
            living_threads,
            processes,
            lost: snapshot.lost,
        })
    }
}

/// What each thread has done so far.
fn accounts(snapshot: &Snapshot, classifier: &Classifier<'_>) -> HashMap<ThreadNumber, Account> {
    let observed = &snapshot.observed;
    let switches: HashMap<ThreadNumber, u64> =
        observed.threads.iter().map(|thread| (thread.number, thread.switches())).collect();
    let ledgers = threads::ledgers(observed, classifier).into_iter();
    let mut accounts: HashMap<ThreadNumber, Account> = ledgers
        .map(|ledger| {
            let more = snapshot.threads.get(&ledger.number).copied().unwrap_or_default();
            let mut account = Account {
                threads: 1,
                calls: more.calls,
                untimed_ns: more.untimed_ns,
                stood_ns: more.stood_ns,
                switches: switches.get(&ledger.number).copied().unwrap_or_default(),
                ..Account::default()
            };
            let rows = ledger.rows.into_iter().filter(|row| row.kind != RowKind::Unexplained);
            // What began before a thread was followed is, in a time between snapshots, as good as any other wait.
            account.add(&Account {
                rows: rows.map(|row| Row { began_before: false, ..row }).collect(),
                ..Account::default()
            });
            (ledger.number, account)
        })
        .collect();
    for wait in observed.waits.iter().filter(|wait| classifier.cause(wait).is_of_files()) {
        let filesystem = classifier.stack(wait.stack).and_then(filesystem::of);
        if let (Some(filesystem), Some(account)) = (filesystem, accounts.get_mut(&wait.thread)) {
            *account.filesystems.entry(filesystem.to_owned()).or_default() += wait.ns;
        }
    }
    accounts
}

/// What is in the later account and was not in the earlier one.
fn less(later: &Account, earlier: &Account) -> Account {
    let between = |row: &Row| {
        let before = earlier.rows.iter().find(|before| before.is_same_as(row));
        let (ns, count) = before.map_or((Nanos::ZERO, 0), |before| (before.ns, before.count));
        Row { ns: row.ns.saturating_sub(ns), count: row.count.saturating_sub(count), ..row.clone() }
    };
    let mut rows: Vec<Row> = later.rows.iter().map(between).collect();
    rows.sort_by_key(|row| Reverse(row.ns));
    take_twice_told(&mut rows, later, earlier);
    rows.retain(|row| row.ns > Nanos::ZERO);
    rows.sort_by_key(|row| Reverse(row.ns));
    let filesystems = later.filesystems.iter().map(|(name, ns)| {
        let known = earlier.filesystems.get(name).copied().unwrap_or_default();
        (name.clone(), ns.saturating_sub(known))
    });
    let mut between = Account {
        threads: later.threads,
        calls: later.calls.saturating_sub(earlier.calls),
        switches: later.switches.saturating_sub(earlier.switches),
        untimed_ns: later.untimed_ns.saturating_sub(earlier.untimed_ns),
        stood_ns: later.stood_ns.saturating_sub(earlier.stood_ns),
        rows,
        filesystems: filesystems.filter(|(_, ns)| *ns > Nanos::ZERO).collect(),
    };
    // What was taken from the waits for files above is here still.
    let told: Nanos = between.filesystems.values().copied().sum();
    let mut too_much = told.saturating_sub(between.files_ns());
    let mut filesystems: Vec<&mut Nanos> = between.filesystems.values_mut().collect();
    filesystems.sort_by_key(|ns| Reverse(**ns));
    for ns in filesystems {
        take(&mut too_much, ns);
    }
    between.filesystems.retain(|_, ns| *ns > Nanos::ZERO);
    between
}

/// Takes from these rows what was told before as another wait: what an earlier row of waits has more of than the later one. It is looked for
/// in the same call first, since only the cause of a wait turns out to be another, not its call; and there in the largest row.
fn take_twice_told(rows: &mut [Row], later: &Account, earlier: &Account) {
    let is_blocked = |row: &&Row| row.kind == RowKind::Blocked;
    let told = |before: &Row| {
        let now = later.rows.iter().find(|row| row.is_same_as(before)).map_or(Nanos::ZERO, |row| row.ns);
        (before.syscall.clone(), before.ns.saturating_sub(now))
    };
    let mut twice: Vec<(Option<String>, Nanos)> = earlier.rows.iter().filter(is_blocked).map(told).collect();
    for of_same_call in [true, false] {
        for (call, too_much) in &mut twice {
            let is_meant = |row: &&mut Row| row.kind == RowKind::Blocked && (!of_same_call || row.syscall == *call);
            for row in rows.iter_mut().filter(is_meant) {
                take(too_much, &mut row.ns);
            }
        }
    }
}

/// Takes as much as there is of what is too much.
fn take(too_much: &mut Nanos, from: &mut Nanos) {
    let taken = (*too_much).min(*from);
    *from = *from - taken;
    *too_much = *too_much - taken;
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use inodyne_model::cause::Cause;
    use inodyne_model::observed::{ThreadObserved, Wait, Waker};
    use inodyne_model::sample::{self, ms};
    use inodyne_model::snapshot::ThreadSoFar;
    use inodyne_model::stack::StackId;

    use super::*;

    const JOURNAL: u64 = 1;
    const UNKNOWN: u64 = 2;
    const TIMER: u64 = 3;
    const BUFFER: u64 = 4;
    const COMPLETION: u64 = 5;
    const SLEEP: u64 = 6;
    const OF_EXT4: u64 = 7;

    fn stacks() -> Vec<Stack> {
        vec![
            sample::stack(JOURNAL, "schedule jbd2_log_wait_commit ext4_sync_file do_fsync"),
            sample::stack(UNKNOWN, "schedule something_new"),
            sample::stack(TIMER, "try_to_wake_up hrtimer_wakeup __hrtimer_run_queues"),
            sample::stack(
                BUFFER,
                "schedule io_schedule bit_wait_io __lock_buffer ext4_read_bh ext4_find_entry ext4_lookup",
            ),
            sample::stack(COMPLETION, "try_to_wake_up end_buffer_read_sync end_bio_bh_io_sync blk_complete_reqs"),
            sample::stack(SLEEP, "schedule do_nanosleep hrtimer_nanosleep"),
            sample::stack(OF_EXT4, "schedule something_new ext4_file_read_iter vfs_read"),
        ]
    }

    fn snapshot(at: f64, threads: Vec<(ThreadObserved, u64)>, waits: Vec<Wait>) -> Snapshot {
        let so_far = |calls| ThreadSoFar { calls, pid_here: NonZero::new(11), ..ThreadSoFar::default() };
        let more = threads.iter().map(|(thread, calls)| (thread.number, so_far(*calls))).collect();
        let mut snapshot = Snapshot { at_ns: ms(at), threads: more, ..Snapshot::default() };
        snapshot.observed.threads = threads.into_iter().map(|(thread, _)| thread).collect();
        snapshot.observed.waits = waits;
        snapshot
    }

    fn alive(thread: ThreadObserved) -> ThreadObserved {
        ThreadObserved { alive: true, ..thread }
    }

    fn rows(account: &Account) -> Vec<(RowKind, Option<Cause>, Nanos, u64)> {
        account.rows.iter().map(|row| (row.kind, row.cause, row.ns, row.count)).collect()
    }

    #[test]
    fn the_later_less_the_earlier_is_what_happened_in_between() {
        let journal = |ns, count| vec![sample::wait(1, Some("fsync"), JOURNAL, ms(ns), count)];
        let thread = |user, waits: &[Wait]| alive(sample::thread(1, "db", ms(user), &[("fsync", ms(2.0))], waits));
        let mut live = Live::default();
        let mut first = snapshot(1_000.0, vec![(thread(40.0, &journal(300.0, 30)), 60)], journal(300.0, 30));
        first.observed.stacks = stacks();
        assert_eq!(live.add(first), None, "there is nothing before it");
        let second = snapshot(2_000.0, vec![(thread(55.0, &journal(700.0, 70)), 140)], journal(700.0, 70));
        let activity = live.add(second).expect("two snapshots");
        assert_eq!((activity.length_ns, activity.living_processes, activity.living_threads), (ms(1_000.0), 1, 1));
        let [process] = &activity.processes[..] else { panic!("one process: {activity:?}") };
        assert_eq!((process.pid, process.pid_here, process.comm.as_str()), (4_001, NonZero::new(11), "db"));
        let account = &process.account;
        assert_eq!((account.threads, account.calls), (1, 80));
        let expected = [(RowKind::Blocked, Some(Cause::Journal), ms(400.0), 40), (RowKind::User, None, ms(15.0), 0)];
        assert_eq!(rows(account), expected);
        assert_eq!((account.files_ns(), account.main_filesystem()), (ms(400.0), Some("ext4")));
    }

    #[test]
    fn who_is_born_or_ends_in_between_counts_once() {
        let waits = [sample::wait(2, Some("fsync"), JOURNAL, ms(50.0), 5)];
        let mut live = Live::default();
        live.add(Snapshot { observed: Default::default(), ..snapshot(0.0, Vec::new(), Vec::new()) });
        let mut second = snapshot(10.0, vec![(sample::thread(2, "cp", ms(1.0), &[], &waits), 7)], waits.to_vec());
        second.observed.stacks = stacks();
        let activity = live.add(second).expect("two snapshots");
        assert_eq!((activity.living_processes, activity.processes[0].account.calls), (0, 7));
        assert_eq!(activity.processes[0].account.files_ns(), ms(50.0));
        let third = live.add(snapshot(20.0, Vec::new(), Vec::new())).expect("three");
        assert!(third.processes.is_empty() && live.before.is_empty());
    }

    #[test]
    fn a_wait_that_turns_out_to_be_another_is_corrected() {
        let under_way = Wait { waker: Waker::Unknown, ..sample::wait(1, None, UNKNOWN, ms(500.0), 1) };
        let over = Wait { waker_stack: StackId(TIMER), ..sample::wait(1, None, UNKNOWN, ms(520.0), 1) };
        let thread = |wait: &Wait| alive(sample::thread(1, "sleeper", ms(1.0), &[], std::slice::from_ref(wait)));
        let mut live = Live::default();
        let mut first = snapshot(0.0, vec![(thread(&under_way), 0)], vec![under_way.clone()]);
        first.observed.stacks = stacks();
        live.add(first);
        let activity = live.add(snapshot(20.0, vec![(thread(&over), 1)], vec![over.clone()])).expect("two");
        assert_eq!(rows(&activity.processes[0].account), [(RowKind::Blocked, Some(Cause::Sleep), ms(20.0), 1)]);
    }

    /// What one thread did between two looks at its waits.
    fn between(before: &[Wait], after: &[Wait]) -> Account {
        let thread = |waits: &[Wait]| alive(sample::thread(1, "db", ms(1.0), &[], waits));
        let mut live = Live::default();
        let mut first = snapshot(0.0, vec![(thread(before), 0)], before.to_vec());
        first.observed.stacks = stacks();
        live.add(first);
        let mut activity = live.add(snapshot(2_000.0, vec![(thread(after), 1)], after.to_vec())).expect("two");
        activity.processes.remove(0).account
    }

    #[test]
    fn what_turns_out_to_be_another_wait_is_not_taken_from_what_came_after_it() {
        let under_way = Wait { waker: Waker::Unknown, ..sample::wait(1, Some("openat"), BUFFER, ms(1_500.0), 1) };
        let over = Wait { waker_stack: StackId(COMPLETION), ..sample::wait(1, Some("openat"), BUFFER, ms(1_520.0), 1) };
        let slept = sample::wait(1, Some("clock_nanosleep"), SLEEP, ms(1_900.0), 1);
        let account = between(&[under_way], &[over, slept]);
        let expected = [
            (RowKind::Blocked, Some(Cause::Sleep), ms(1_900.0), 1),
            (RowKind::Blocked, Some(Cause::DeviceRead), ms(20.0), 1),
        ];
        assert_eq!(rows(&account), expected);
        assert_eq!(account.filesystems, BTreeMap::from([("ext4".to_owned(), ms(20.0))]));
    }

    #[test]
    fn what_was_no_wait_for_files_before_counts_for_no_file_system_twice() {
        // Only its end tells what it was.
        let under_way = Wait { waker: Waker::Unknown, ..sample::wait(1, Some("read"), OF_EXT4, ms(1_500.0), 1) };
        let over = Wait { waker_stack: StackId(COMPLETION), ..sample::wait(1, Some("read"), OF_EXT4, ms(1_520.0), 1) };
        let account = between(&[under_way], &[over]);
        assert_eq!((account.files_ns(), account.filesystems["ext4"]), (ms(20.0), ms(20.0)));
    }
}
