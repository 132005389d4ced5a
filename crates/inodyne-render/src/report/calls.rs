//! The table of system calls, in the column order of `strace -c`, extended: all of it, or by command name.

use std::borrow::Cow;

use inodyne_model::Nanos;
use inodyne_model::call_class::CallClass;
use inodyne_model::count::Grouped;
use inodyne_model::recording::Recording;
use inodyne_model::syscall::{CommCalls, SyscallStats};
use inodyne_model::trace::Trace;

use super::block::{Block, Page};
use super::call_times;
use super::case::Case;
use super::definition::{Definition, Show};
use super::table::{Column, Records, Table};
use super::value::{Cell, Picture, Value};
use crate::line::Style;
use crate::units::unit;

pub(super) const SECTION: Definition = Definition { name: "syscalls", unasked: true, show: Show::Case(show), records };
pub(super) const BY_COMM: Definition =
    Definition { name: "by-comm", unasked: false, show: Show::Case(show_by_comm), records: records_by_comm };

fn show<'a>(page: &mut Page<'a>, case: &Case<'a>) {
    let Some(trace) = case.trace else { return };
    let calls = of_class(&trace.syscalls, page.calls());
    // Times of threads that run at once add up to more than the time of the command.
    page.heading(&format!("System calls{}, summed over all threads", in_words(page.calls())));
    let divides = trace.tracer.divides_calls();
    page.table(table(&calls, divides));
    if page.is_whole() && trace.by_comm.len() > 1 {
        let of_comm =
            |comm: &CommCalls| [Block::Heading(comm.comm.clone()), Block::Table(table(&comm.syscalls, divides))];
        page.add(Block::Folded("By command name".to_owned(), trace.by_comm.iter().flat_map(of_comm).collect()));
    }
    call_times::show(page, &calls);
}

fn show_by_comm<'a>(page: &mut Page<'a>, case: &Case<'a>) {
    let Some(trace) = case.trace else { return };
    for comm in &trace.by_comm {
        let calls = of_class(&comm.syscalls, page.calls());
        page.heading(&format!("System calls{} of {}, summed over its threads", in_words(page.calls()), comm.comm));
        page.table(table(&calls, trace.tracer.divides_calls()));
    }
}

/// The calls that are asked for.
fn of_class(calls: &[SyscallStats], class: Option<CallClass>) -> Cow<'_, [SyscallStats]> {
    match class {
        Some(class) => calls.iter().filter(|call| class.has(&call.name)).cloned().collect(),
        None => calls.into(),
    }
}

fn in_words(class: Option<CallClass>) -> String {
    class.map_or_else(String::new, |class| format!(" {}", class.in_words()))
}

/// What is not known about the inside of calls stays empty.
fn table(calls: &[SyscallStats], divides: bool) -> Table {
    let whole: Nanos = calls.iter().map(|c| c.wall_ns).sum();
    let number = |heading: &str, key| Column::number(heading).key(key).sorting();
    let time = |of: &str, key| number(&format!("{of} {}", unit(whole)), key);
    let columns = [
        Column::number("% time").sorting(),
        time("wall", "wall_ns"),
        time("CPU", "cpu_ns"),
        time("blocked", "blocked_ns"),
        time("waiting for CPU", "runqueue_ns").wide(),
        Column::number("µs/call").sorting(),
        number("p50 µs", "p50_ns").wide(),
        number("p99 µs", "p99_ns"),
        number("max µs", "max_ns").wide(),
        number("calls", "calls"),
        number("errors", "errors"),
        Column::text("syscall").key("syscall").sorting().naming().yielding(),
        Column::text("100 ns … 1 s, log.").class("h").page(),
        Column::text("").on_page("failed with").class("errors").wide().yielding(),
    ];
    let mut table = Table::new("calls", columns);
    for call in calls {
        table.row(cells(call, whole, divides));
    }
    let mut total = SyscallStats::new("total".to_owned());
    for call in calls {
        total.merge(call);
    }
    // The errors of the total would only repeat those of its parts.
    total.errors_by_errno.clear();
    table.sum(cells(&total, whole, divides));
    table
}

fn cells(call: &SyscallStats, whole: Nanos, divides: bool) -> [Cell; 14] {
    let time = |ns: Nanos| Cell::scaled(ns, whole).short_if_zero();
    let part = |ns: Nanos| if divides { time(ns) } else { Cell::nothing() };
    let average = Nanos(call.wall_ns.0.checked_div(call.calls).unwrap_or(0));
    let errors: Vec<String> =
        call.errors_by_errno.iter().map(|(errno, n)| format!("{errno} {}", Grouped(*n))).collect();
    [
        Cell::hundredths(call.wall_ns.share_of(whole)),
        time(call.wall_ns),
        part(call.cpu_ns),
        part(call.blocked_ns),
        part(call.runqueue_ns),
        Cell::micros(average),
        Cell::micros(call.p50_ns),
        Cell::micros(call.p99_ns),
        Cell::micros(call.max_ns),
        Cell::grouped(call.calls),
        Cell::grouped(call.errors).blank_if_zero(),
        Cell::of(&call.name),
        Cell::picture(Picture::Histogram(Box::new(call.histogram.clone()))),
        Cell::of(errors.join(", ")).styled(Style::Dim),
    ]
}

/// The columns of [`values`].
const COLUMNS: [&str; 15] = [
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

/// A row for each system call of all processes together.
fn records(recording: &Recording) -> Records {
    let rows = |trace: &Trace| trace.syscalls.iter().map(|call| values(call, trace.tracer.divides_calls())).collect();
    Records::of_traces(recording, COLUMNS, rows)
}

/// The same by command name.
fn records_by_comm(recording: &Recording) -> Records {
    let columns: [&str; 16] = after("comm", COLUMNS);
    Records::of_traces(recording, columns, |trace| {
        let calls = trace.by_comm.iter().flat_map(|comm| comm.syscalls.iter().map(|call| (&comm.comm, call)));
        let divides = trace.tracer.divides_calls();
        calls.map(|(comm, call)| after(Value::from(comm), values(call, divides))).collect()
    })
}

/// Puts one more before the others.
fn after<T, const N: usize, const M: usize>(first: T, others: [T; N]) -> [T; M] {
    const { assert!(M == N + 1) };
    let mut all = std::iter::once(first).chain(others);
    std::array::from_fn(|_| all.next().expect("there are as many"))
}

/// What is not known about the inside of calls stays empty.
fn values(call: &SyscallStats, divides: bool) -> [Value; 15] {
    let part = |ns: Nanos| if divides { ns.into() } else { Value::Nothing };
    let errors: Vec<String> = call.errors_by_errno.iter().map(|(errno, count)| format!("{errno} {count}")).collect();
    [
        call.name.as_str().into(),
        call.calls.into(),
        call.errors.into(),
        errors.join("; ").into(),
        call.bytes.map_or(Value::Nothing, Value::Bytes),
        call.wall_ns.into(),
        part(call.cpu_ns),
        part(call.runqueue_ns),
        part(call.blocked_ns),
        call.failed_ns.into(),
        call.min_ns.into(),
        call.p50_ns.into(),
        call.p90_ns.into(),
        call.p99_ns.into(),
        call.max_ns.into(),
    ]
}
