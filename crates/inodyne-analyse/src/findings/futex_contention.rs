//! `futex-contention`: threads of the program pass a lock of its own back and forth, with many wake-ups and short waits.
//!
//! Most waits on a futex are not for a lock: the idle threads of a pool, of a JVM or of Go wait for work, and a thread that waits for a
//! result waits for whoever computes it. So waits are not added up. What is counted is how much of the locking is on the critical path: the
//! calls themselves, the way back to a CPU after them, and, where the user-mode stacks say that it was a lock, what the path did in
//! its holder meanwhile. Only there is it called a lock: conditions, semaphores and the schedulers of Go and other runtimes use futexes, too.

use std::collections::BTreeMap;

use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::finding::Finding;
use inodyne_model::observed::{BlockedSample, ThreadNumber};
use inodyne_model::stack::{StackId, function_name};

use super::case::{Case, Time, Waited, parallel, total};
use super::estimate::{self, Diagnosed};
use super::remedy::{Remedy, advice};
use crate::units::{percent, seconds};

/// Fewer calls than this are no more than any program with threads makes.
const LEAST_CALLS: u64 = 1_000;
/// Waits that are longer than this on average, in nanoseconds, are for work: a contended lock is held for microseconds.
const SHORT_WAIT: f64 = 2e6;
/// Below this share of the wall-clock time, it does not matter.
const LEAST_SHARE: f64 = 0.1;
/// Above this fraction of the calls, the cost is not in waits but in attempts that come too late.
const MOSTLY_LATE: f64 = 0.5;
/// The way back to a free CPU takes no longer than this, in nanoseconds. Anything longer is waiting for a CPU that others have, the
/// program's own threads among them, and would happen without the lock, too.
const WAY_BACK: f64 = 50_000.0;
/// With a better lock, some of the waiting remains.
const STAYS: f64 = 0.3;
const UNCERTAIN: f64 = 0.4;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let calls = total(case.calls(is_futex).map(|call| call.calls));
    if calls < LEAST_CALLS {
        return None;
    }
    let late = total(case.calls(is_futex).filter_map(|call| call.errors_by_errno.get("EAGAIN").copied()));
    let is_late = late as f64 > calls as f64 * MOSTLY_LATE;
    let mut time = all_time(case, calls);
    time.threads.retain(|thread| is_late || case.waiting_of(*thread, Cause::Futex).mean() < SHORT_WAIT);
    let side_by_side = parallel(case.trace, &time.threads);
    let on_path = on_path(case, &time, side_by_side);
    let share = on_path / case.wall();
    if share < LEAST_SHARE || side_by_side < 1.2 {
        return None;
    }
    let all = total(case.calls(|_| true).map(|call| call.calls));
    let who = case.who(&time);
    let many = format!("{} futex, {} of all calls", Grouped(calls), percent(calls as f64 / all.max(1) as f64));
    let path = format!(
        "{} of the critical path is in these calls, in the way back to a CPU after them, or behind the lock",
        seconds(on_path)
    );
    let (title, evidence, cure) = if is_late {
        let title =
            format!("{who} asks to wait when there is no longer anything to wait for: {} of the time", percent(share));
        let returned =
            format!("{} of them returned at once (EAGAIN): what they were to wait for had changed", Grouped(late));
        (title, vec![many, returned, path], late_cure())
    } else {
        let is_lock = is_mostly_for_locks(case);
        let title = match is_lock {
            true => format!("The threads of {who} wait for each other's lock: {} of the time", percent(share)),
            false => {
                format!(
                    "The threads of {who} sleep and wake each other at short intervals: {} of the time",
                    percent(share)
                )
            }
        };
        let waits = total(waits_of(case, &time).map(|waited| waited.wait.count));
        let waited = format!("{} short waits in {} threads", Grouped(waits), time.threads.len());
        (title, vec![many, waited, path], if is_lock { lock_cure() } else { wake_cure() })
    };
    Some(
        Diagnosed {
            title,
            share,
            evidence,
            predicted: estimate::without(case, on_path * (1.0 - STAYS), UNCERTAIN),
            cure,
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}

fn is_futex(call: &str) -> bool {
    matches!(call, "futex" | "futex_wait" | "futex_waitv" | "futex_wake")
}

fn lock_cure() -> Vec<Remedy> {
    advice(&[
        "take the lock less often: hand over many entries at once, or give each thread a queue of its own",
        "wake a thread only where one sleeps, and after the lock is released",
        "or use fewer threads",
    ])
}

fn wake_cure() -> Vec<Remedy> {
    advice(&[
        "hand over many entries at once, so that fewer wake-ups are needed, or give each thread a queue of its own",
        "wake a thread only where one sleeps, and hold no lock meanwhile",
        "or use fewer threads (GOMAXPROCS, the size of a pool)",
    ])
}

fn late_cure() -> Vec<Remedy> {
    let look_first = "look at the value once more, and spin a little, before asking the kernel to wait for it";
    vec![Remedy::advice(look_first).answering(1), Remedy::advice("or use fewer threads on the same word")]
}

/// All of the calls' time, on a CPU, blocked, and waiting for a CPU again.
fn all_time(case: &Case<'_>, calls: u64) -> Time {
    let mut time = Time::of_threads(case.threads_of(is_futex));
    let ns: f64 = case.calls(is_futex).map(|call| call.wall_ns.0 as f64).sum();
    time.add_calls("futex", ns, calls);
    time
}

/// How much of the critical path is locking, in nanoseconds.
fn on_path(case: &Case<'_>, time: &Time, side_by_side: f64) -> f64 {
    let Some(path) = &case.path else {
        // Without a path there is only the sum, less the waits of the threads that wait for work.
        let for_work =
            case.waiting(|waited| waited.cause == Cause::Futex && !time.threads.contains(&waited.wait.thread));
        return (time.ns - for_work.ns).max(0.0) / side_by_side;
    };
    let calls = ["futex", "futex_wait", "futex_waitv", "futex_wake"];
    let running: f64 = time.threads.iter().flat_map(|thread| calls.map(|call| path.running(*thread, Some(call)))).sum();
    let waits: u64 = total(waits_of(case, time).map(|waited| waited.wait.count));
    let ready: f64 = calls.iter().map(|call| path.ready(Some(call))).sum();
    let ready = ready.min(waits as f64 * WAY_BACK / side_by_side);
    let locked = locked(case);
    let of_lock = |thread: ThreadNumber| locked.get(&thread).copied().unwrap_or(0.0);
    let behind_lock: f64 =
        waits_of(case, time).map(|waited| path.followed(waited.wait) * of_lock(waited.wait.thread)).sum();
    (running + ready + behind_lock).min(case.wall())
}

/// The waits of these threads on futexes.
fn waits_of<'c>(case: &'c Case<'_>, time: &'c Time) -> impl Iterator<Item = Waited<'c>> {
    case.waits().filter(|waited| waited.cause == Cause::Futex && time.threads.contains(&waited.wait.thread))
}

/// Whether a wait with this stack in user mode is for a lock; none where the stack does not say.
fn takes_lock(case: &Case<'_>, id: StackId) -> Option<bool> {
    let stack = case.classifier.stack(id)?;
    stack.symbols().map(function_name).find_map(|function| match function {
        "__lll_lock_wait" | "lll_lock_wait" | "__lll_lock_wait_private" | "pthread_mutex_lock" => Some(true),
        "___pthread_mutex_lock" | "__pthread_mutex_lock" | "__pthread_rwlock_wrlock" | "__pthread_rwlock_rdlock" => {
            Some(true)
        }
        _ if function.contains("cond_wait") || function.contains("cond_timedwait") => Some(false),
        _ if function.contains("sem_wait") || function.contains("sem_timedwait") => Some(false),
        _ => None,
    })
}

/// Where in the program threads were blocked in futexes.
fn blocked<'c>(case: &'c Case<'_>) -> impl Iterator<Item = &'c BlockedSample> {
    let blocked = case.trace.observed.blocked_samples.iter();
    blocked.filter(|sample| sample.syscall.as_deref().is_some_and(is_futex))
}

/// Whether at least half of the waits of which the stacks in user mode say what they were for were for a lock.
fn is_mostly_for_locks(case: &Case<'_>) -> bool {
    let for_lock = |is: bool| {
        total(blocked(case).filter(|sample| takes_lock(case, sample.user_stack) == Some(is)).map(|sample| sample.count))
    };
    let [locks, others] = [true, false].map(for_lock);
    locks > 0 && locks >= others
}

/// For what fraction of its time in futexes each thread waited for a lock, by its user-mode stacks; nothing where these do not say.
fn locked(case: &Case<'_>) -> BTreeMap<ThreadNumber, f64> {
    let mut sums: BTreeMap<ThreadNumber, (f64, f64)> = BTreeMap::new();
    for sample in blocked(case) {
        let (of_lock, all) = sums.entry(sample.thread).or_default();
        *all += sample.count as f64;
        if takes_lock(case, sample.user_stack) == Some(true) {
            *of_lock += sample.count as f64;
        }
    }
    sums.into_iter().map(|(thread, (of_lock, all))| (thread, of_lock / all)).collect()
}
