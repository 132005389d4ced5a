//! `lock-contention`: threads want the same kernel lock, and wait for each other, asleep or spinning.
//!
//! The critical path is rarely in such a wait: it is in whoever holds the lock. What counts is how much of the path passed there while
//! somebody on the path waited ([`Case::followed`]): without the lock, the two would have worked side by side.

use std::collections::{BTreeMap, BTreeSet};

use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::cure::{Change, PlaceChange};
use inodyne_model::finding::Finding;
use inodyne_model::ledger::RowKind;
use inodyne_model::observed::{ThreadNumber, ThreadObserved, Waker};
use inodyne_model::stack::{Stack, function_name};

use super::case::{Case, Time, Waited, parallel};
use super::estimate::{self, Diagnosed};
use super::families::{changes_names, opens, reads, stats, syncs, writes};
use super::lock_holders::Holders;
use super::remedy::{Remedy, advice};
use crate::units::{percent, seconds};

/// Below this share of the wall-clock time, threads rarely collide.
const LEAST_SHARE: f64 = 0.1;
/// Fewer waits may be chance.
const LEAST_WAITS: u64 = 50;
/// Fewer threads than this on average count as one: whatever it waits for, no other thread of the command holds it.
const SEVERAL: f64 = 1.2;
/// Above this share of the waiting, it is others that hold the lock, not the command itself.
const OTHERS: f64 = 0.5;
/// Even divided over several locks, some of the waiting remains, where it is only known as a sum.
const STAYS: f64 = 0.3;
const UNCERTAIN: f64 = 0.25;
/// If a thread waits for the lock, asleep or spinning, for at least this fraction of its life, the lock is why it loses its CPU. With
/// less, it is so in proportion: threads of a pool that share too few CPUs meet at some lock now and then, too.
const HELD_UP: f64 = 0.1;
/// Work on a CPU under a lock that moves from CPU to CPU fetches what the others have changed: this fraction of it is saved as well
/// (0.25 to 0.35 for `fixtures/truth/renamers.c` on ext4 and tmpfs, two and four processes on two CPUs).
const DEARER: f64 = 0.25;

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

/// Functions that run because somebody else has the lock or waits for it: without that, none of their time on a CPU would be spent.
fn contends(function: &str) -> bool {
    spins(function)
        || function.contains("_slowpath")
        || matches!(function, "rwsem_wake" | "__mutex_unlock_slowpath" | "wake_up_q" | "osq_unlock" | "rwsem_mark_wake")
}

/// Functions that take or release locks: they do not say whose lock it is.
fn is_lock_itself(function: &str) -> bool {
    spins(function)
        || function.contains("schedule")
        || function.contains("_slowpath")
        || function.contains("mutex_")
        || function.contains("rwsem")
        || function.contains("wake_up")
        || function.contains("wake_q")
        || function.ends_with("wake_function")
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
    let is_lock =
        |waited: &Waited<'_>| waited.cause.is_lock() && !waited.is_copy_up() && !waited.call.starts_with("exit");
    let waiting = case.waiting(is_lock);
    let spinning = case.sampled(spins);
    let time = waiting.clone().and(spinning.clone());
    let side_by_side = parallel(case.trace, &time.threads);
    let behind = case.followed(is_lock);
    // A thread spins while others on the path may be waiting: of the spinning, only what lies outside of these waits is added.
    let outside = 1.0 - (behind / case.wall()).min(1.0);
    let alone = case.on_path(&waiting) + case.on_path(&spinning) * outside;
    let sooner = case.path.as_ref().map(|_| sooner(case, &time.threads, is_lock, case.sampled(contends).ns));
    // Where the lock changes hands by chance, the path is also in a thread that holds it twice in a row, and the others wait all the same.
    let share = ((behind + alone).max(sooner.unwrap_or_default()) / case.wall()).min(1.0);
    if share < LEAST_SHARE {
        return None;
    }
    // A lock that a program takes on purpose may be waited for just once, but long, and be held by somebody else.
    let on_purpose = case.waiting(|waited| is_lock(waited) && is_file_lock(waited));
    let is_on_purpose = on_purpose.ns > waiting.ns / 2.0;
    // Others may hold it just once, but long, too, and it takes no second thread of the command to wait for them.
    let holders = Holders::of(case);
    let others = holders.names().filter(|_| holders.share_of_strangers() > OTHERS);
    let is_accident = waiting.count < LEAST_WAITS || side_by_side < SEVERAL;
    if !is_on_purpose && others.is_none() && is_accident {
        return None;
    }
    let saved = sooner.unwrap_or_else(|| case.on_path(&time) * (1.0 - STAYS));
    let (lock, holder) = (lock(case, is_lock), holder(case, is_lock));
    // The second line of the evidence names the lock.
    let of_lock = match (&others, &lock) {
        (Some(others), _) => {
            let apart = format!(
                "run it at a different time from {others}, or have each work in different directories and files"
            );
            vec![Remedy::advice(apart)]
        }
        (None, Some(lock)) => cure(lock, &waiting).into_iter().map(|remedy| remedy.answering(1)).collect(),
        (None, None) => cure("", &waiting),
    };
    let mut evidence = vec![format!(
        "{} {}: {} {}, {} asleep and {} spinning on a CPU, together",
        time.threads.len(),
        if time.threads.len() == 1 { "thread" } else { "threads" },
        Grouped(waiting.count),
        if waiting.count == 1 { "wait" } else { "waits" },
        seconds(waiting.ns),
        seconds(spinning.ns)
    )];
    evidence.extend(lock.iter().map(|lock| format!("most for the lock that {lock} takes")));
    evidence.extend(holder.iter().map(|holder| format!("mostly released by {holder}")));
    evidence.extend(holders.evidence());
    if case.path.is_some() {
        let path = "of the critical path was spent behind the lock, in whoever held it";
        match behind > 0.0 {
            true => evidence.push(format!("{} {path}; {} waiting for it", seconds(behind), seconds(alone))),
            false => evidence.push(format!("{} of the critical path was spent waiting for it", seconds(alone))),
        }
    }
    Some(
        Diagnosed {
            title: {
                let had = others.as_ref().map_or_else(String::new, |others| format!(" that {others} held"));
                let of = lock.map_or_else(String::new, |lock| format!(" in {lock}"));
                let what = match (is_on_purpose, others) {
                    (true, _) => format!("{} waits for the lock of a file{had}", case.who(&on_purpose)),
                    (false, Some(_)) => format!("{} waits for a lock{of}{had}", case.who(&waiting)),
                    (false, None) => format!("Threads wait for each other's lock{of}"),
                };
                format!("{what}: {} of the time", percent(share))
            },
            share,
            evidence,
            predicted: estimate::without(case, saved, UNCERTAIN),
            cure: of_lock,
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}

/// How much sooner the command would be done if nobody had to wait for the lock, in nanoseconds; but no sooner than the processors can
/// do the work.
///
/// ```text
/// sooner(thread) = its waits for the lock, asleep or spinning
///                + its waits for others, at most by how much these get shorter: for children that lived side by side, by how
///                  much sooner the last one ends; for children that lived one after the other, by each of them
/// ```
fn sooner(
    case: &Case<'_>,
    among: &BTreeSet<ThreadNumber>,
    is_lock: impl Fn(&Waited<'_>) -> bool,
    contending: f64,
) -> f64 {
    let on_cpu = case.ledger(|row| matches!(row.kind, RowKind::User | RowKind::Kernel | RowKind::Runqueue));
    let is_on_cpu = on_cpu > case.wall() / 2.0;
    let (mut for_lock, mut for_others) = (BTreeMap::<ThreadNumber, f64>::new(), BTreeMap::<ThreadNumber, f64>::new());
    for waited in case.waits() {
        let ns = waited.wait.ns.0 as f64;
        if is_lock(&waited) {
            *for_lock.entry(waited.wait.thread).or_default() += ns;
        } else if waited.wait.waker == Waker::Traced {
            *for_others.entry(waited.wait.thread).or_default() += ns;
        }
    }
    let threads = &case.trace.observed.threads;
    let mut children = BTreeMap::<ThreadNumber, Vec<(&ThreadObserved, f64)>>::new();
    let mut of_root = 0.0;
    // A thread that was created later has a larger number.
    for thread in threads.iter().rev() {
        let own = |sums: &BTreeMap<ThreadNumber, f64>| sums.get(&thread.number).copied().unwrap_or_default();
        let mut sooner = own(&for_lock);
        if among.contains(&thread.number) {
            sooner += contending / among.len() as f64;
            // With enough to run at once, the processors determine how long it takes: see below.
            let held_up = (sooner / (thread.lifetime_ns().0 as f64 * HELD_UP)).min(1.0);
            sooner += if is_on_cpu { thread.runqueue_ns.0 as f64 * held_up } else { 0.0 };
        }
        let shorter = children.remove(&thread.number).map_or(0.0, by_the_last);
        sooner = (sooner + shorter.min(own(&for_others))).min(thread.lifetime_ns().0 as f64);
        children.entry(thread.parent).or_default().push((thread, sooner));
        of_root = sooner;
    }
    let work: f64 = threads.iter().map(|thread| thread.cpu_ns().0 as f64).sum();
    let least = (work - contending).max(0.0) * (1.0 - DEARER) / case.cpus();
    of_root.min(case.wall() - least).max(0.0)
}

/// How much sooner all of these threads are done, given how much sooner each is: those that lived side by side, with the last of them.
fn by_the_last(mut threads: Vec<(&ThreadObserved, f64)>) -> f64 {
    threads.sort_by_key(|(thread, _)| thread.born_ns);
    // The end of those that live side by side, as it is now and as it would be then.
    let (mut all, mut now, mut then) = (0.0, 0.0f64, 0.0f64);
    for (thread, sooner) in threads {
        let (born, ended) = (thread.born_ns.0 as f64, thread.ended_ns.0 as f64);
        if born >= now {
            all += now - then;
            (now, then) = (ended, ended - sooner);
        } else {
            (now, then) = (now.max(ended), then.max(ended - sooner));
        }
    }
    all + now - then
}

/// A lock of a file that a program takes by `flock`, `fcntl` or `lockf`.
fn is_file_lock(waited: &Waited<'_>) -> bool {
    matches!(waited.call, "flock" | "fcntl" | "fcntl64") && waited.cause == Cause::Lock
}

/// What to do about the lock that this function takes, in these calls.
fn cure(lock: &str, waiting: &Time) -> Vec<Remedy> {
    let fewer = "or use fewer threads: beyond what the lock admits, each more makes it slower";
    let in_calls = |is_meant: fn(&str) -> bool| {
        let of_calls = waiting.calls.iter().filter(|(call, _)| is_meant(call)).map(|(_, (ns, _))| *ns);
        of_calls.sum::<f64>() > waiting.ns / 2.0
    };
    if is_of_address_space(lock) {
        advice(&[
            "map and unmap less: read into buffers that stay, and let the allocator keep what is freed (glibc.malloc.mmap_threshold, trim_threshold)",
            "or use processes: all threads of one share the lock of its address space, which its page faults take, too",
            fewer,
        ])
    } else if in_calls(|call| matches!(call, "flock" | "fcntl" | "fcntl64")) {
        advice(&[
            "hold the file's lock for less: prepare outside of it, and only put in place what is ready",
            "or divide what it protects into files with a lock each; readers can share one (LOCK_SH, F_RDLCK)",
        ])
    } else if in_calls(|call| writes(call) || reads(call) || syncs(call) || matches!(call, "ftruncate" | "fallocate")) {
        advice(&[
            "let each thread write to a file of its own, or let one write for all: the file's own lock admits one writer",
            "or preallocate the file and write past the cache (O_DIRECT), where ext4 and XFS admit several writers",
            fewer,
        ])
    } else if lock.starts_with("xfs_buf_") {
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
    } else if in_calls(|call| opens(call) || stats(call) || changes_names(call) || call.starts_with("getdents")) {
        advice(&[
            "let each thread work in a directory of its own: creating, removing and renaming lock the directory",
            fewer,
        ])
    } else {
        advice(&["use fewer threads: beyond what the lock admits, each more makes it slower"])
    }
}

/// A function that takes the lock of the address space (`mmap_lock`), in whichever call the page was missing.
fn is_of_address_space(function: &str) -> bool {
    function.starts_with("mmap_")
        || function.contains("_madvise")
        || function.ends_with("_brk")
        || matches!(
            function,
            "lock_mm_and_find_vma"
                | "do_user_addr_fault"
                | "do_page_fault"
                | "vm_mmap_pgoff"
                | "__vm_munmap"
                | "vm_brk_flags"
                | "do_mprotect_pkey"
                | "__do_sys_mremap"
        )
}

/// The function that takes the lock that most of the waiting is for.
fn lock(case: &Case<'_>, is_lock: impl Fn(&Waited<'_>) -> bool) -> Option<String> {
    let locks = case.waits().filter(|waited| is_lock(waited));
    most(locks.filter_map(|waited| Some((owner(waited.stack?)?, waited.wait.ns.0))))
}

/// The function that releases it, by the stack of whoever wakes the next.
fn holder(case: &Case<'_>, is_lock: impl Fn(&Waited<'_>) -> bool) -> Option<String> {
    let locks = case.waits().filter(|waited| is_lock(waited));
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
    use inodyne_model::ledger::PAGE_FAULT;
    use inodyne_model::sample::ms;

    use super::*;

    #[test]
    fn who_waits_for_several_is_sooner_by_the_last_of_those_side_by_side_and_by_each_of_those_in_turn() {
        let thread =
            |born, ended| ThreadObserved { born_ns: ms(born), ended_ns: ms(ended), ..ThreadObserved::default() };
        let sooner = |lives: &[(f64, f64, f64)]| {
            let threads: Vec<ThreadObserved> = lives.iter().map(|life| thread(life.0, life.1)).collect();
            by_the_last(threads.iter().zip(lives).map(|(thread, life)| (thread, life.2 * 1e6)).collect()) / 1e6
        };
        assert_eq!(sooner(&[]), 0.0);
        assert_eq!(sooner(&[(10.0, 110.0, 70.0), (10.0, 120.0, 40.0)]), 40.0);
        assert_eq!(sooner(&[(200.0, 300.0, 5.0), (10.0, 110.0, 70.0)]), 75.0);
    }

    #[test]
    fn the_cure_fits_the_lock() {
        for (lock, call, first) in [
            ("do_unlinkat", "unlink", "let each thread work in a directory of its own"),
            ("xfs_buf_lock", "unlink", "keep each thread to the directories of one allocation group"),
            ("btrfs_tree_read_lock_nested", "openat", "use one thread"),
            ("ext4_orphan_add", "unlink", "unmounted: tune2fs -O orphan_file"),
            ("", "rename", "let each thread work in a directory of its own"),
            // Two writers of one file are not helped by directories.
            ("ext4_buffered_write_iter", "pwrite64", "let each thread write to a file of its own"),
            ("xfs_file_fsync", "fdatasync", "let each thread write to a file of its own"),
            // Two that write to a mapping of one file: no buffer of metadata.
            ("xfs_buffered_write_iomap_begin", PAGE_FAULT, "use fewer threads"),
            ("flock_lock_inode_wait", "flock", "hold the file's lock for less"),
            // A page was missing in the buffer of a call.
            ("lock_mm_and_find_vma", "read", "map and unmap less"),
            ("__vm_munmap", "munmap", "map and unmap less"),
            // Neither files nor names.
            ("cgroup_threadgroup_change_begin", "clone3", "use fewer threads"),
            ("lock_mount", "mount", "use fewer threads"),
            ("fcntl_setlk", "fcntl", "hold the file's lock for less"),
        ] {
            let mut waiting = Time::default();
            waiting.add_calls(call, 1.0, 1);
            assert!(cure(lock, &waiting)[0].text.starts_with(first), "{lock}: {:?}", cure(lock, &waiting));
        }
    }
}
