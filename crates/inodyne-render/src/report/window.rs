//! What is said about a window of running processes, where a command's run has a time: how long it was, which threads were in it,
//! what they all did, and which of them waited for files most.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use inodyne_model::Nanos;
use inodyne_model::ledger::{Row, RowKind, View};
use inodyne_model::trace::{ThreadLedger, Trace};

use crate::process;
use crate::units::{counted, duration, duration_beside, percent};

/// How many causes a sentence names, and the share below which it does not name one.
const CAUSES: usize = 3;
const LEAST_SHARE: f64 = 0.01;
/// Threads that are named for waiting.
const WAITERS: usize = 3;

/// Whether a trace is of a window.
pub(super) fn is_window(trace: &Trace) -> bool {
    trace.ledger.view == View::Window
}

/// `window of 10.000 s, 8 threads in 2 processes`
pub(super) fn extent(trace: &Trace) -> String {
    format!("window of {}, {}", duration(trace.wall_ns), population(trace))
}

/// `8 threads in 2 processes`
pub(super) fn population(trace: &Trace) -> String {
    let threads = counted(trace.threads.len() as u64, "thread", "threads");
    format!("{threads} in {}", counted(process::count(trace), "process", "processes"))
}

/// `2.750 thread-seconds: 3% running, 0% waiting for a CPU, 97% blocked (63% journal, 33% sleep).`
pub(super) fn division(trace: &Trace) -> String {
    let whole = trace.ledger.wall_ns;
    let sum = |is_meant: &dyn Fn(&Row) -> bool| -> Nanos {
        trace.ledger.rows.iter().filter(|row| is_meant(row)).map(|row| row.ns).sum()
    };
    let share = |is_meant: &dyn Fn(&Row) -> bool| percent(sum(is_meant).share_of(whole));
    let running = share(&|row| matches!(row.kind, RowKind::User | RowKind::Kernel));
    let ready = share(&|row| row.kind == RowKind::Runqueue);
    let blocked = share(&|row| row.kind == RowKind::Blocked);
    let causes: BTreeSet<_> = trace.ledger.rows.iter().filter_map(|row| row.cause).collect();
    let mut causes: Vec<_> =
        causes.into_iter().map(|cause| (sum(&|row| row.cause == Some(cause)).share_of(whole), cause)).collect();
    causes.retain(|(share, _)| *share >= LEAST_SHARE);
    causes.sort_by(|a, b| b.0.total_cmp(&a.0));
    let causes: Vec<_> =
        causes.iter().take(CAUSES).map(|(share, cause)| format!("{} {cause}", percent(*share))).collect();
    let causes = if causes.is_empty() { String::new() } else { format!(" ({})", causes.join(", ")) };
    let whole = duration(whole);
    // A short window has fewer than these.
    let whole = whole
        .strip_suffix(" s")
        .map_or_else(|| format!("{whole} of all threads together"), |seconds| format!("{seconds} thread-seconds"));
    format!("{whole}: {running} running, {ready} waiting for a CPU, {blocked} blocked{causes}.")
}

/// Which threads wait for files most, and for what: `Waiting for files most: work 4001 0.900 s (journal in fsync)`. `None` if none do.
pub(super) fn waiters(trace: &Trace) -> Option<String> {
    let is_of_files = |row: &&Row| row.cause.is_some_and(|cause| cause.is_of_files());
    let waited = |thread: &ThreadLedger| thread.rows.iter().filter(is_of_files).map(|row| row.ns).sum::<Nanos>();
    let mut threads: Vec<(Nanos, &ThreadLedger)> =
        trace.threads.iter().map(|thread| (waited(thread), thread)).collect();
    threads.retain(|(ns, thread)| ns.share_of(thread.lifetime_ns) >= LEAST_SHARE);
    threads.sort_by_key(|(ns, thread)| (Reverse(*ns), thread.number));
    let said = threads.iter().take(WAITERS).map(|(ns, thread)| {
        let largest = thread.rows.iter().filter(is_of_files).max_by_key(|row| row.ns);
        let cause = largest.and_then(|row| row.cause).map_or_else(String::new, |cause| cause.to_string());
        let call =
            largest.and_then(|row| row.syscall.as_deref()).map_or_else(String::new, |call| format!(" in {call}"));
        format!("{} {} {} ({cause}{call})", thread.comm, thread.tid, duration_beside(*ns, trace.wall_ns))
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| format!("Waiting for files most: {}", said.join(", ")))
}

#[cfg(test)]
mod tests {
    use inodyne_model::ledger::Ledger;
    use inodyne_model::sample;

    use super::*;

    #[test]
    fn the_time_of_all_threads_has_one_unit_however_short_it_is() {
        let of = |ms| {
            let ledger = Ledger { view: View::Window, wall_ns: sample::ms(ms), ..Ledger::default() };
            division(&Trace { ledger, ..Trace::default() })
        };
        assert!(of(33.4).starts_with("33.4 ms of all threads together: 0% running, "), "{}", of(33.4));
        assert!(of(2_750.0).starts_with("2.750 thread-seconds: 0% running, "), "{}", of(2_750.0));
    }
}
