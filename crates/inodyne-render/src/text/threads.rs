//! The threads and processes, where there is more than one: the root, then those with most CPU time, then the rest in
//! one row.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use inodyne_model::Nanos;
use inodyne_model::count::Grouped;
use inodyne_model::ledger::{Row, RowKind};
use inodyne_model::observed::ROOT;
use inodyne_model::trace::ThreadLedger;

use super::case::Case;
use super::page::Page;
use crate::line::{Span, Style};
use crate::table::{Align, Table};
use crate::units::seconds;

/// Threads that have a row of their own.
const MOST_ROWS: usize = 10;

pub(super) fn show(page: &mut Page, case: &Case<'_>) {
    let Some(trace) = case.trace.filter(|trace| trace.threads.len() > 1) else { return };
    let processes: BTreeSet<u32> = trace.threads.iter().map(|thread| thread.pid).collect();
    let of = if processes.len() == 1 { "process" } else { "processes" };
    let (threads, processes) = (Grouped(trace.threads.len() as u64), Grouped(processes.len() as u64));
    page.heading(&format!("Threads: {threads} in {processes} {of}"));
    let table = table(&trace.threads);
    page.table(table);
}

fn table(threads: &[ThreadLedger]) -> Table {
    let mut threads: Vec<&ThreadLedger> = threads.iter().collect();
    threads.sort_by_key(|t| (t.number != ROOT, Reverse(time_in(t, on_cpu)), Reverse(t.lifetime_ns)));
    let right = |heading| (heading, Align::Right);
    let columns = [
        right("life s"),
        right("cpu s"),
        right("ready s"),
        right("blocked s"),
        right("pid"),
        right("tid"),
        ("command", Align::Left),
        ("mostly", Align::Left),
    ];
    let mut table = Table::new(columns).yielding(7);
    let longest = threads.iter().map(|thread| thread.lifetime_ns).max().unwrap_or_default();
    let (shown, rest) = threads.split_at(threads.len().min(MOST_ROWS));
    let times = |threads: &[&ThreadLedger]| {
        let sum = |of: fn(&Row) -> bool| threads.iter().map(|thread| time_in(thread, of)).sum::<Nanos>();
        let life = threads.iter().map(|thread| thread.lifetime_ns).sum();
        [life, sum(on_cpu), sum(ready), sum(blocked)].map(|ns| Span::from(seconds(ns, longest)))
    };
    for thread in shown {
        let mostly = thread.rows.first().map_or_else(String::new, mostly);
        let names = [thread.pid.to_string(), thread.tid.to_string(), thread.comm.clone()].map(Span::from);
        table.row(times(&[thread]).into_iter().chain(names).chain([Span::new(mostly, Style::Dim)]));
    }
    if !rest.is_empty() {
        let others = Span::new(format!("{} others", Grouped(rest.len() as u64)), Style::Dim);
        table.row(times(rest).into_iter().chain([Span::default(), Span::default(), others]));
    }
    table
}

fn time_in(thread: &ThreadLedger, of: fn(&Row) -> bool) -> Nanos {
    thread.rows.iter().filter(|row| of(row)).map(|row| row.ns).sum()
}

fn on_cpu(row: &Row) -> bool {
    matches!(row.kind, RowKind::User | RowKind::Kernel)
}

fn ready(row: &Row) -> bool {
    row.kind == RowKind::Runqueue
}

fn blocked(row: &Row) -> bool {
    row.kind == RowKind::Blocked
}

/// The largest part of a thread's life in two words.
pub(crate) fn mostly(row: &Row) -> String {
    let call = row.syscall.as_deref().unwrap_or_default();
    match row.kind {
        RowKind::User => "user".to_owned(),
        RowKind::Kernel => format!("kernel {call}"),
        RowKind::Runqueue => "runqueue".to_owned(),
        RowKind::Blocked => row.cause.map_or_else(String::new, |cause| format!("{cause} {call}")),
        RowKind::Unexplained => "unexplained".to_owned(),
    }
}
