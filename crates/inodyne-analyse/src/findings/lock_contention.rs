//! `lock-contention`: threads want the same lock of the kernel, and wait for each other, asleep or spinning.

use std::collections::BTreeMap;

use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::cure::{Change, PlaceChange};
use inodyne_model::finding::Finding;
use inodyne_model::stack::{Stack, function_name};

use super::case::{Case, Time, parallel};
use super::estimate::{self, Diagnosed, percent, seconds};
use super::remedy::{Remedy, advice};

/// Below this share of the wall-clock time threads seldom meet.
const LEAST_SHARE: f64 = 0.1;
/// A wait or two are an accident.
const LEAST_WAITS: u64 = 50;
/// Divided over several locks, some of the waiting stays.
const STAYS: f64 = 0.3;
const UNCERTAIN: f64 = 0.4;

/// Functions that spin for a lock on a CPU.
fn spins(function: &str) -> bool {
    matches!(
        function,
        "osq_lock"
            | "rwsem_spin_on_owner"
            | "rwsem_optimistic_spin"
            | "mutex_spin_on_owner"
            | "native_queued_spin_lock_slowpath"
            | "queued_spin_lock_slowpath"
    )
}

/// Functions that take or release locks: not whose lock it is.
fn is_lock_itself(function: &str) -> bool {
    spins(function)
        || function.contains("schedule")
        || function.contains("_slowpath")
        || function.contains("mutex_")
        || function.contains("rwsem")
        || function.contains("wake_up")
        || function.contains("wake_q")
        || matches!(
            function,
            "down"
                | "up"
                | "__down_common"
                | "down_read"
                | "down_write"
                | "up_read"
                | "up_write"
                | "down_write_killable"
                | "down_read_killable"
                | "__up"
                | "_raw_spin_lock"
                | "ttwu_do_activate"
        )
}

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let waiting = case.waiting(|waited| {
        matches!(waited.cause, Cause::InodeLock | Cause::BufferLock | Cause::Lock)
            && !waited.is_copy_up()
            && !waited.call.starts_with("exit")
    });
    let spinning = case.sampled(spins);
    let time = waiting.clone().and(Time { count: 0, ..spinning.clone() });
    let share = case.share(&time);
    if waiting.count < LEAST_WAITS || share < LEAST_SHARE || parallel(case.trace, &time.threads) < 1.2 {
        return None;
    }
    let (lock, holder) = (lock(case), holder(case));
    // The second line of the evidence names the lock.
    let of_lock = match &lock {
        Some(lock) => cure(lock).into_iter().map(|remedy| remedy.answering(1)).collect(),
        None => cure(""),
    };
    let mut evidence = vec![format!(
        "{} threads: {} waits, {} asleep and {} spinning on a CPU, together",
        time.threads.len(),
        Grouped(waiting.count),
        seconds(waiting.ns),
        seconds(spinning.ns)
    )];
    evidence.extend(lock.iter().map(|lock| format!("most for the lock that {lock} takes")));
    evidence.extend(holder.iter().map(|holder| format!("mostly released by {holder}")));
    Some(
        Diagnosed {
            title: format!(
                "Threads wait for each other's lock{}: {} of the time",
                lock.map_or_else(String::new, |lock| format!(" in {lock}")),
                percent(share)
            ),
            share,
            evidence,
            predicted: estimate::without(case, case.on_path(&time) * (1.0 - STAYS), UNCERTAIN),
            cure: of_lock,
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}

/// What to do about the lock that this function takes.
fn cure(lock: &str) -> Vec<Remedy> {
    let fewer = "or use fewer threads: beyond what the lock admits, each more makes it slower";
    if lock.starts_with("xfs_buf") {
        advice(&[
            "keep each thread to the directories of one allocation group, whose header its changes lock",
            fewer,
            "to delete: inodyne rm, which does so",
        ])
    } else if lock.starts_with("btrfs_") {
        advice(&["use one thread: all changes lock the root of the tree", "to delete: inodyne rm, which does so"])
    } else if lock.starts_with("ext4_orphan") {
        // Documentation/filesystems/ext4/orphan.rst: without the file, all orphans are in one list.
        let orphan_file = Remedy::new(
            "unmounted: tune2fs -O orphan_file DEVICE (e2fsprogs 1.47, Linux 5.15)",
            Change::Place(PlaceChange::Feature("orphan_file".to_owned())),
        );
        vec![orphan_file, Remedy::advice(fewer)]
    } else {
        advice(&[
            "let each thread work in a directory of its own: creating, removing and renaming lock the directory",
            fewer,
        ])
    }
}

/// The function that takes the lock most of the time is waited for.
fn lock(case: &Case<'_>) -> Option<String> {
    let locks = case.waits().filter(|w| matches!(w.cause, Cause::InodeLock | Cause::BufferLock | Cause::Lock));
    most(locks.filter_map(|waited| Some((owner(waited.stack?)?, waited.wait.ns.0))))
}

/// The function that releases it, seen from the stack of who wakes the next.
fn holder(case: &Case<'_>) -> Option<String> {
    let locks = case.waits().filter(|w| matches!(w.cause, Cause::InodeLock | Cause::BufferLock | Cause::Lock));
    most(locks.filter_map(|waited| Some((owner(case.classifier.stack(waited.wait.waker_stack)?)?, waited.wait.ns.0))))
}

/// The first function from the leaf outwards that is not part of locking.
fn owner(stack: &Stack) -> Option<&str> {
    stack.symbols().map(function_name).find(|function| !is_lock_itself(function))
}

fn most<'a>(times: impl Iterator<Item = (&'a str, u64)>) -> Option<String> {
    let mut by_name = BTreeMap::<&str, u64>::new();
    for (name, ns) in times {
        let sum = by_name.entry(name).or_default();
        *sum = sum.saturating_add(ns);
    }
    by_name.into_iter().max_by_key(|(_, ns)| *ns).map(|(name, _)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::cure;

    #[test]
    fn the_cure_fits_the_lock() {
        for (lock, first) in [
            ("do_unlinkat", "let each thread work in a directory of its own"),
            ("xfs_buf_lock", "keep each thread to the directories of one allocation group"),
            ("btrfs_tree_read_lock_nested", "use one thread"),
            ("ext4_orphan_add", "unmounted: tune2fs -O orphan_file"),
            ("", "let each thread work in a directory of its own"),
        ] {
            assert!(cure(lock)[0].text.starts_with(first), "{lock}: {:?}", cure(lock));
        }
    }
}
