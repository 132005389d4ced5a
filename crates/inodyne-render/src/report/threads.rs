//! The threads and processes, if there is more than one: the root, then those with the most CPU time, then the rest in
//! one row.

use std::cmp::Reverse;

use inodyne_model::Nanos;
use inodyne_model::count::Grouped;
use inodyne_model::ledger::{Row, RowKind};
use inodyne_model::observed::ROOT;
use inodyne_model::recording::Recording;
use inodyne_model::trace::{ThreadLedger, Trace};

use super::block::Page;
use super::case::Case;
use super::definition::{Definition, Show};
use super::ledger::parts;
use super::rows::values;
use super::state::State;
use super::table::{self, Column, Records, Table};
use super::value::{Cell, Picture};
use crate::line::Style;
use crate::process;
use crate::units::{counted, duration, unit};

pub(super) const SECTION: Definition = Definition { name: "threads", unasked: true, show: Show::Case(show), records };

/// Threads that have a row of their own.
const MOST_ROWS: usize = 10;

fn show<'a>(page: &mut Page<'a>, case: &Case<'a>) {
    let Some(trace) = case.trace.filter(|trace| trace.threads.len() > 1) else { return };
    let (threads, processes) =
        (Grouped(trace.threads.len() as u64), counted(process::count(trace), "process", "processes"));
    page.heading(&format!("Threads: {threads} in {processes}"));
    page.table(table(trace));
}

/// The threads in the order in which they are shown.
pub(crate) fn ordered(trace: &Trace) -> Vec<&ThreadLedger> {
    let mut threads: Vec<&ThreadLedger> = trace.threads.iter().collect();
    threads.sort_by_key(|t| (t.number != ROOT, Reverse(time_in(t, active)), Reverse(t.lifetime_ns)));
    threads
}

fn table(trace: &Trace) -> Table {
    let threads = ordered(trace);
    let longest = threads.iter().map(|thread| thread.lifetime_ns).max().unwrap_or_default();
    let number = |heading: &str| Column::number(heading).sorting();
    let time = |of: &str| number(&format!("{of} {}", unit(longest)));
    let columns = [
        time("life").key("lifetime_ns"),
        time("CPU"),
        time("no CPU"),
        time("blocked"),
        number("pid").key("pid"),
        number("tid").key("tid"),
        Column::text("command").key("comm").sorting().naming(),
        Column::text("mostly").yielding(),
        Column::text("its life").class("bar").page(),
    ];
    let mut table = Table::new("threads", columns);
    let times = |threads: &[&ThreadLedger]| {
        let sum = |of: fn(&Row) -> bool| threads.iter().map(|thread| time_in(thread, of)).sum::<Nanos>();
        let life = threads.iter().map(|thread| thread.lifetime_ns).sum();
        let known = |ns: Nanos, is_known: bool| if is_known { Cell::scaled(ns, longest) } else { Cell::nothing() };
        let divides = trace.tracer.divides_calls();
        [known(life, true), known(sum(on_cpu), divides), known(sum(ready), divides), known(sum(blocked), divides)]
    };
    for (at, thread) in threads.iter().enumerate() {
        let kind = if at < MOST_ROWS { table::RowKind::Plain } else { table::RowKind::Hidden };
        let mostly = thread.rows.first().map_or_else(String::new, mostly);
        let numbers = [thread.pid, thread.tid].map(Cell::of);
        let words = [Cell::of(&thread.comm), Cell::of(mostly).styled(Style::Dim), life(thread, longest)];
        table.push(kind, times(&[thread]).into_iter().chain(numbers).chain(words));
    }
    if let Some(rest) = threads.get(MOST_ROWS..).filter(|rest| !rest.is_empty()) {
        let others = counted(rest.len() as u64, "other", "others");
        table.hidden.clone_from(&others);
        let names = [Cell::nothing(), Cell::nothing(), Cell::of(others).styled(Style::Dim), Cell::nothing()];
        table.push(table::RowKind::Rest, times(rest).into_iter().chain(names).chain([Cell::nothing()]));
    }
    table
}

/// A thread's life as a bar of its parts.
fn life(thread: &ThreadLedger, longest: Nanos) -> Cell {
    let piece = |row: &Row| {
        let words = parts(row);
        let title = format!("{} {}: {}", words.subject, words.what, duration(row.ns));
        (row.ns.share_of(thread.lifetime_ns), State::new(row.kind, row.cause), title)
    };
    Cell::picture(Picture::Stacked(thread.lifetime_ns.share_of(longest), thread.rows.iter().map(piece).collect()))
}

fn time_in(thread: &ThreadLedger, of: fn(&Row) -> bool) -> Nanos {
    thread.rows.iter().filter(|row| of(row)).map(|row| row.ns).sum()
}

fn on_cpu(row: &Row) -> bool {
    matches!(row.kind, RowKind::User | RowKind::Kernel)
}

/// On a CPU, as far as that is known.
fn active(row: &Row) -> bool {
    on_cpu(row) || matches!(row.kind, RowKind::InCall | RowKind::OutsideCalls)
}

fn ready(row: &Row) -> bool {
    row.kind == RowKind::Runqueue
}

fn blocked(row: &Row) -> bool {
    row.kind == RowKind::Blocked
}

/// The largest part of a thread's life in two words.
fn mostly(row: &Row) -> String {
    let call = row.syscall.as_deref().unwrap_or_default();
    match row.kind {
        RowKind::User => "user".to_owned(),
        RowKind::Kernel => format!("kernel {call}"),
        RowKind::Runqueue => "waiting for a CPU".to_owned(),
        RowKind::Blocked => row.cause.map_or_else(String::new, |cause| format!("{cause} {call}")),
        RowKind::InCall => call.to_owned(),
        RowKind::OutsideCalls => "outside of calls".to_owned(),
        RowKind::Unexplained => "unexplained".to_owned(),
    }
}

/// A row for each row of every thread's ledger. Those of a thread sum to its `lifetime_ns`.
fn records(recording: &Recording) -> Records {
    let columns = [
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
        "began_before",
    ];
    Records::of_traces(recording, columns, |trace| {
        let of_row = |thread: &ThreadLedger, row: &Row| {
            let [kind, syscall, cause, via, ns, count, estimated, before] = values(row);
            let [number, pid, tid] = [thread.number, thread.pid, thread.tid].map(Into::into);
            let (comm, life) = ((&thread.comm).into(), thread.lifetime_ns.into());
            [number, pid, tid, comm, life, kind, syscall, cause, via, ns, count, estimated, before]
        };
        trace.threads.iter().flat_map(|thread| thread.rows.iter().map(move |row| of_row(thread, row))).collect()
    })
}
