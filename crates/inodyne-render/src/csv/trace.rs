//! What the kernel side saw of the traced runs: every table begins with the trace's number and case.

use inodyne_model::recording::Recording;
use inodyne_model::syscall::SyscallStats;
use inodyne_model::trace::Trace;

use super::{case, field, joined, row, table, word};

/// The trace's number, and its case.
fn of(recording: &Recording, number: usize, trace: &Trace) -> Vec<String> {
    let case = case(recording, trace.place, trace.command, trace.cache);
    std::iter::once(number.to_string()).chain(case).collect()
}

/// Rows of every trace, each after the trace's own fields.
fn each<const N: usize>(
    recording: &Recording,
    rows: impl Fn(&Trace) -> Vec<Vec<String>>,
) -> impl Iterator<Item = [String; N]> {
    recording.traces.iter().enumerate().flat_map(move |(number, trace)| {
        let of = of(recording, number, trace);
        rows(trace).into_iter().map(move |row| joined(&[&of, &row])).collect::<Vec<_>>()
    })
}

/// A row for each row of the headline's ledger. Those of a trace sum to its `wall_ns`.
pub(super) fn ledger(recording: &Recording) -> String {
    let columns = [
        "trace",
        "place",
        "command",
        "cache",
        "view",
        "wall_ns",
        "kind",
        "syscall",
        "cause",
        "via",
        "ns",
        "count",
        "estimated",
    ];
    let rows = each(recording, |trace| {
        let whole = [word(trace.ledger.view), trace.ledger.wall_ns.0.to_string()];
        trace.ledger.rows.iter().map(|of| [&whole[..], &row(of)].concat()).collect()
    });
    table(columns, rows)
}

/// A row for each row of every thread's ledger. Those of a thread sum to its `lifetime_ns`.
pub(super) fn threads(recording: &Recording) -> String {
    let columns = [
        "trace",
        "place",
        "command",
        "cache",
        "number",
        "pid",
        "tid",
        "comm",
        "lifetime_ns",
        "kind",
        "syscall",
        "cause",
        "via",
        "ns",
        "count",
        "estimated",
    ];
    let rows = each(recording, |trace| {
        let of_thread = trace.threads.iter().flat_map(|thread| {
            let numbers = [thread.number, thread.pid, thread.tid].map(|number| number.to_string());
            let whole = [&numbers[..], &[thread.comm.clone(), thread.lifetime_ns.0.to_string()]].concat();
            thread.rows.iter().map(move |of| [&whole[..], &row(of)].concat())
        });
        of_thread.collect()
    });
    table(columns, rows)
}

/// A row for each system call of all processes together.
pub(super) fn syscalls(recording: &Recording) -> String {
    let columns = [
        "trace",
        "place",
        "command",
        "cache",
        "syscall",
        "calls",
        "errors",
        "errors_by_errno",
        "bytes",
        "wall_ns",
        "cpu_ns",
        "runqueue_ns",
        "blocked_ns",
        "failed_ns",
        "min_ns",
        "p50_ns",
        "p90_ns",
        "p99_ns",
        "max_ns",
    ];
    table(columns, each(recording, |trace| trace.syscalls.iter().map(|call| of_call(call).to_vec()).collect()))
}

/// The same by command name.
pub(super) fn by_comm(recording: &Recording) -> String {
    let columns = [
        "trace",
        "place",
        "command",
        "cache",
        "comm",
        "syscall",
        "calls",
        "errors",
        "errors_by_errno",
        "bytes",
        "wall_ns",
        "cpu_ns",
        "runqueue_ns",
        "blocked_ns",
        "failed_ns",
        "min_ns",
        "p50_ns",
        "p90_ns",
        "p99_ns",
        "max_ns",
    ];
    let rows = each(recording, |trace| {
        let calls = trace.by_comm.iter().flat_map(|comm| comm.syscalls.iter().map(|call| (&comm.comm, call)));
        calls.map(|(comm, call)| [&[comm.clone()][..], &of_call(call)].concat()).collect()
    });
    table(columns, rows)
}

fn of_call(call: &SyscallStats) -> [String; 15] {
    let errors = call.errors_by_errno.iter().map(|(errno, count)| format!("{errno} {count}"));
    [
        call.name.clone(),
        call.calls.to_string(),
        call.errors.to_string(),
        errors.collect::<Vec<_>>().join("; "),
        field(call.bytes),
        call.wall_ns.0.to_string(),
        call.cpu_ns.0.to_string(),
        call.runqueue_ns.0.to_string(),
        call.blocked_ns.0.to_string(),
        call.failed_ns.0.to_string(),
        call.min_ns.0.to_string(),
        call.p50_ns.0.to_string(),
        call.p90_ns.0.to_string(),
        call.p99_ns.0.to_string(),
        call.max_ns.0.to_string(),
    ]
}

/// A row for each path and call, of traces with `--paths`.
pub(super) fn paths(recording: &Recording) -> String {
    let columns = ["trace", "place", "command", "cache", "path", "syscall", "calls", "not_found", "wall_ns"];
    let rows = each(recording, |trace| {
        let looked_up = trace.paths.iter().flat_map(|paths| &paths.looked_up);
        let fields = looked_up.map(|path| {
            let counts = [path.calls, path.not_found, path.wall_ns.0].map(|count| count.to_string());
            [&[path.path.clone(), path.syscall.clone()][..], &counts].concat()
        });
        fields.collect()
    });
    table(columns, rows)
}

/// A row for each trace: what it cost, and what it lost.
pub(super) fn overhead(recording: &Recording) -> String {
    let columns = [
        "trace",
        "place",
        "command",
        "cache",
        "wall_ns",
        "ratio",
        "estimated",
        "ns_per_call",
        "lost_calls",
        "lost_threads",
        "lost_records",
        "lost_intervals",
        "lost_waits",
        "lost_samples",
        "lost_stacks",
        "lost_dtype",
        "lost_work",
        "lost_helpers",
        "lost_skipped",
    ];
    let rows = each(recording, |trace| {
        let (cost, lost) = (&trace.overhead, &trace.lost);
        let mut fields = vec![
            trace.wall_ns.0.to_string(),
            cost.ratio.to_string(),
            cost.estimated.to_string(),
            cost.ns_per_call.to_string(),
        ];
        let counts = [
            lost.calls,
            lost.threads,
            lost.records,
            lost.intervals,
            lost.waits,
            lost.samples,
            lost.stacks,
            lost.dtype,
            lost.work,
            lost.helpers,
            lost.skipped,
        ];
        fields.extend(counts.map(|count| count.to_string()));
        vec![fields]
    });
    table(columns, rows)
}
