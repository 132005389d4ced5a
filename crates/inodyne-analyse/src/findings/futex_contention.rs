//! `futex-contention`: threads of the program hand a lock of its own to and fro, by many short waits and wake-ups.
//!
//! A thread that waits long and seldom waits for work or for another's end: that is how it should be, and not counted.

use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::finding::Finding;

use super::case::{Case, Time, parallel, total};
use super::estimate::{self, Diagnosed, percent, seconds};
use super::remedy::advice;

/// Fewer calls are what any program with threads makes.
const LEAST_CALLS: u64 = 1_000;
/// A wait that is longer on average is one for work, in nanoseconds: a contended lock is held for microseconds.
const SHORT_WAIT: f64 = 2e6;
/// Below this share of the wall-clock time nobody pays.
const LEAST_SHARE: f64 = 0.1;
/// With a better lock some of the waiting stays.
const STAYS: f64 = 0.3;
const UNCERTAIN: f64 = 0.4;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let is_futex = |call: &str| matches!(call, "futex" | "futex_wait" | "futex_waitv" | "futex_wake");
    let calls = total(case.calls(is_futex).map(|call| call.calls));
    if calls < LEAST_CALLS {
        return None;
    }
    let mut time = Time { count: calls, ..Time::default() };
    let mut waits = 0u64;
    // All of the calls' time, on a CPU, blocked, and waiting for a CPU again, less what those wait who wait for work.
    time.ns = case.calls(is_futex).map(|call| call.wall_ns.0 as f64).sum();
    for thread in &case.trace.observed.threads {
        let of_thread = case.waiting_of(thread.number, Cause::Futex);
        if of_thread.mean() >= SHORT_WAIT {
            time.ns -= of_thread.ns;
        } else if thread.kernel_ns.keys().any(|call| is_futex(call)) {
            waits = waits.saturating_add(of_thread.count);
            time.threads.insert(thread.number);
        }
    }
    time.ns = time.ns.max(0.0);
    time.calls.insert("futex".to_owned(), (time.ns, calls));
    // Not held against the ledger: on a critical path there are no waits for each other, only what each does in its turn.
    let side_by_side = parallel(case.trace, &time.threads);
    let on_path = time.ns / side_by_side;
    let share = on_path / case.wall();
    if share < LEAST_SHARE || side_by_side < 1.2 {
        return None;
    }
    let all = total(case.calls(|_| true).map(|call| call.calls));
    let who = case.who(&time);
    Some(
        Diagnosed {
            title: format!("The threads of {who} wait for each other's lock: {} of the time", percent(share)),
            share,
            evidence: vec![
                format!(
                    "{} futex, {} of all calls, by {} threads",
                    Grouped(calls),
                    percent(calls as f64 / all.max(1) as f64),
                    time.threads.len()
                ),
                format!(
                    "{} of them had to wait; {} of each thread's life goes into them",
                    Grouped(waits),
                    percent(share)
                ),
                format!("{} together", seconds(time.ns)),
            ],
            predicted: estimate::without(case, on_path * (1.0 - STAYS), UNCERTAIN),
            cure: advice(&[
                "take the lock less often: hand over many entries at once, or give each thread a queue of its own",
                "wake a thread only where one sleeps, and after the lock is released",
                "or use fewer threads",
            ]),
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}
