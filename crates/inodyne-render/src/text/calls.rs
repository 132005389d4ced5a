//! The table of system calls, in the column order of `strace -c`, extended; all of it, or by command name.

use inodyne_model::Nanos;
use inodyne_model::count::Grouped;
use inodyne_model::syscall::SyscallStats;

use super::case::Case;
use super::page::Page;
use crate::line::{Span, Style};
use crate::table::{Align, Table};
use crate::units::{micros, seconds};

pub(super) fn show(page: &mut Page, case: &Case<'_>) {
    let Some(trace) = case.trace else { return };
    page.heading("System calls");
    let table = table(&trace.syscalls, page.is_wide());
    page.table(table);
}

pub(super) fn show_by_comm(page: &mut Page, case: &Case<'_>) {
    let Some(trace) = case.trace else { return };
    for comm in &trace.by_comm {
        page.heading(&format!("System calls of {}", comm.comm));
        let table = table(&comm.syscalls, page.is_wide());
        page.table(table);
    }
}

fn table(calls: &[SyscallStats], wide: bool) -> Table {
    let whole: Nanos = calls.iter().map(|c| c.wall_ns).sum();
    let right = |heading| (heading, Align::Right);
    let mut columns = vec![right("% time"), right("wall s"), right("cpu s"), right("blocked s")];
    if wide {
        columns.push(right("ready s"));
    }
    columns.push(right("usecs/call"));
    if wide {
        columns.push(right("p50 us"));
    }
    columns.push(right("p99 us"));
    if wide {
        columns.push(right("max us"));
    }
    columns.extend([right("calls"), right("errors"), ("syscall", Align::Left)]);
    if wide {
        columns.push(("", Align::Left));
    }
    let last = columns.len() - 1;
    let mut table = Table::new(columns).yielding(last);
    for call in calls {
        table.row(cells(call, whole, wide, Style::Plain));
    }
    table.rule();
    let mut total = SyscallStats::new("total".to_owned());
    for call in calls {
        total.merge(call);
    }
    // The errors of the total would only repeat those of its parts.
    total.errors_by_errno.clear();
    table.row(cells(&total, whole, wide, Style::Bold));
    table
}

fn cells(call: &SyscallStats, whole: Nanos, wide: bool, style: Style) -> Vec<Span> {
    let cell = |text: String| Span::new(text, style);
    let count = |n: u64| if n == 0 { Span::default() } else { cell(Grouped(n).to_string()) };
    // In a narrow table the names of the calls need the room of further decimals.
    let whole_shown = if wide { whole } else { whole.max(Nanos(100_000_000)) };
    let time = |ns: Nanos| if ns == Nanos::ZERO { Span::new("0", Style::Dim) } else { cell(seconds(ns, whole_shown)) };
    let average = Nanos(call.wall_ns.0.checked_div(call.calls).unwrap_or(0));
    let mut cells = vec![cell(format!("{:.2}", call.wall_ns.share_of(whole) * 100.0))];
    cells.extend([time(call.wall_ns), time(call.cpu_ns), time(call.blocked_ns)]);
    if wide {
        cells.push(time(call.runqueue_ns));
    }
    cells.push(cell(micros(average)));
    if wide {
        cells.push(cell(micros(call.p50_ns)));
    }
    cells.push(cell(micros(call.p99_ns)));
    if wide {
        cells.push(cell(micros(call.max_ns)));
    }
    cells.extend([cell(Grouped(call.calls).to_string()), count(call.errors), cell(call.name.clone())]);
    if wide {
        let errors = call.errors_by_errno.iter().map(|(errno, n)| format!("{errno} {}", Grouped(*n)));
        cells.push(Span::new(errors.collect::<Vec<_>>().join(", "), Style::Dim));
    }
    cells
}
