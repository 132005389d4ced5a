//! Requests to block devices: whether they bound the command, and a table for each disk, by the path through the kernel and by who asked.

use inodyne_model::Nanos;
use inodyne_model::block::{Amount, Asker, BlockIo, Bound, BoundBy, Dirtied, Disk, IoPath, PathRequests};
use inodyne_model::cgroup::short_name;
use inodyne_model::count::Grouped;
use inodyne_model::disk_use::Use;
use inodyne_model::load::Load;
use inodyne_model::recording::Recording;
use inodyne_model::trace::Trace;

use super::block::Page;
use super::case::Case;
use super::definition::{Definition, Show};
use super::table::{Column, Records, RowKind, Table};
use super::value::{Cell, Value};
use super::window::is_window;
use crate::disk::made_use_of;
use crate::line::{Span, Style};
use crate::units::{bytes, counted, duration, percent, rate, rate_of_bytes};

pub(super) const SECTION: Definition = Definition { name: "block", unasked: true, show: Show::Case(show), records };

/// Rows of a table.
const MOST_ROWS: usize = 10;

/// How many of those that dirtied data are named.
const MOST_NAMED: usize = 4;

fn show<'a>(page: &mut Page<'a>, case: &Case<'a>) {
    let Some(trace) = case.trace else { return };
    let Some(block) = &trace.block else { return };
    let mut disks: Vec<(&Disk, Vec<&PathRequests>)> = block.disks.iter().map(|disk| (disk, of(block, disk))).collect();
    disks.retain(|(_, rows)| rows.iter().any(|row| row.amount.requests > 0));
    // What the command asked for comes first.
    disks.sort_by_key(|(_, rows)| std::cmp::Reverse(own_device_time(rows)));
    if disks.is_empty() {
        return;
    }
    page.heading("Block devices");
    if let Some((bound, disk)) = block.bound.as_ref().and_then(|bound| Some((bound, disk_of(block, bound)?))) {
        page.gap();
        page.paragraph(Span::new("what bounds it: ", Style::Bold), &bounds(block, bound, disk, trace), Style::Plain);
    }
    for (disk, rows) in &disks {
        page.gap();
        let load = Load::of(disk, &block.paths, trace.wall_ns);
        page.paragraph(Span::new(format!("{}: ", disk.name), Style::Bold), &sentence(disk, rows, &load), Style::Plain);
        if rows.iter().any(|row| row.asker == Asker::Command) || disks.len() == 1 {
            page.table(table(rows));
        }
        if let Some(words) = dirtied(block, disk) {
            page.line([Span::new(format!("  made dirty meanwhile: {words}"), Style::Plain)]);
        }
    }
    if block.askers_unseen > 0 {
        page.gap();
        let words = format!(
            "for up to {} of I/O on all disks: the kernel skipped the tracing program; the requests they are part of are counted all the same",
            counted(block.askers_unseen, "piece", "pieces")
        );
        page.paragraph(Span::new("who asked is not known: ", Style::Bold), &words, Style::Plain);
    }
}

/// `943.7 MB by writer, 1.23 MB by dd`; `None` if nobody did.
fn dirtied(block: &BlockIo, disk: &Disk) -> Option<String> {
    let on_it: Vec<&Dirtied> = block.dirtied.iter().filter(|one| one.disk == disk.number).collect();
    let of_each = on_it
        .iter()
        .take(MOST_NAMED)
        .map(|one| format!("{} by {}", bytes(one.bytes), named(&one.comm, one.cgroup.as_ref())));
    let mut words: Vec<String> = of_each.collect();
    let rest = on_it.iter().skip(MOST_NAMED).map(|one| one.bytes).fold(0, u64::saturating_add);
    words.extend((rest > 0).then(|| format!("{} by others", bytes(rest))));
    (!words.is_empty()).then(|| words.join(", "))
}

fn of<'a>(block: &'a BlockIo, disk: &Disk) -> Vec<&'a PathRequests> {
    block.paths.iter().filter(|row| row.disk == disk.number).collect()
}

pub(super) fn disk_of<'a>(block: &'a BlockIo, bound: &Bound) -> Option<&'a Disk> {
    block.disks.iter().find(|disk| disk.number == bound.disk)
}

/// `how fast loop0 answers: waited for a device 95% of the time; loop0 busy 98% of it, 1.0 requests at once, 192 requests and 786 kB a
/// second, 5.20 ms each; reads at 3% of what loop0 can do (...)`, the last part only if it is known
fn bounds(block: &BlockIo, bound: &Bound, disk: &Disk, trace: &Trace) -> String {
    let name = &disk.name;
    let what = match bound.by {
        BoundBy::NotTheDevice => "not the device".to_owned(),
        BoundBy::Latency => format!("how fast {name} answers"),
        BoundBy::Throughput => format!("how much {name} can do at all"),
        BoundBy::Journal => format!("the journal on {name}"),
    };
    let load = Load::of(disk, &block.paths, trace.wall_ns);
    let each = load.device_ns.map_or_else(String::new, |ns| format!(", {} each", duration(ns)));
    // Nothing follows from what was asked of it while the command hardly waited for it.
    let used = Use::of(disk, block, &load).filter(|_| bound.by != BoundBy::NotTheDevice);
    let used = used.map_or_else(String::new, |used| format!("; {}", made_use_of(name, &used, &load)));
    let share = percent(bound.waiting_ns.share_of(trace.time_with_devices()));
    let (waited, of_it) = if !is_window(trace) {
        (format!("waited for a device {share} of the time"), "it")
    } else if bound.waiting_ns == Nanos::ZERO {
        ("no thread waited for a device".to_owned(), "the window")
    } else {
        (format!("threads that waited for a device did so {share} of their time"), "the window")
    };
    format!(
        "{what}: {waited}; {name} busy {} of {of_it}, {:.1} requests at once, {} requests and {} a second{each}{used}",
        percent(load.busy),
        load.depth,
        rate(load.requests_per_s),
        rate_of_bytes(load.bytes_per_s),
    )
}

/// How long the command's own requests were at the device, together.
fn own_device_time(rows: &[&PathRequests]) -> Nanos {
    rows.iter().filter(|row| row.asker == Asker::Command).map(|row| row.amount.device_ns).sum()
}

/// `74 requests of 42.1 MB, 569 kB on average; 431 merged; busy 31% of the time, 2.1 at once while busy`
fn sentence(disk: &Disk, rows: &[&PathRequests], load: &Load) -> String {
    let mut all = Amount::default();
    // Discards move nothing.
    rows.iter().filter(|row| row.path != IoPath::Discard).for_each(|row| all.add(&row.amount));
    let Load { busy, depth, .. } = load;
    let is_used = rows.iter().any(|row| row.asker == Asker::Command);
    let whose = if is_used { "" } else { "; none asked for by the command itself" };
    format!(
        "{} of {}, {} on average; {} merged; busy {} of the time, {depth:.1} at once while busy{whose}",
        counted(all.requests, "request", "requests"),
        bytes(all.bytes),
        bytes(all.mean_bytes()),
        Grouped(disk.merged),
        percent(*busy),
    )
}

fn table(rows: &[&PathRequests]) -> Table {
    let number = |heading: &str| Column::number(heading).sorting();
    let columns = [
        Column::text("path").naming(),
        Column::text("asked by").yielding(),
        Column::text("control group").wide(),
        number("requests").key("requests"),
        number("bytes").key("bytes"),
        number("mean"),
        number("of bytes").wide(),
        number("in sequence").wide(),
        number("queued").wide(),
        number("at device"),
        number("99% below").wide(),
    ];
    let moved = rows.iter().filter(|row| row.path != IoPath::Discard).map(|row| row.amount.bytes);
    let total = moved.fold(0, u64::saturating_add);
    let mut table = Table::new("block", columns);
    let share = |part: u64, whole: u64| match whole {
        0 => Cell::nothing(),
        _ => Cell::share(part as f64 / whole as f64),
    };
    for (at, row) in rows.iter().enumerate() {
        let kind = if at < MOST_ROWS { RowKind::Plain } else { RowKind::Hidden };
        let amount = &row.amount;
        let time = |time: Option<Nanos>| time.map_or_else(Cell::nothing, Cell::of);
        let p99 = (amount.device.count() > 0).then(|| quantile(amount, 0.99));
        let path = match row.after {
            true => format!("{}, after the end", row.path.words()),
            false => row.path.words().to_owned(),
        };
        table.push(
            kind,
            [
                Cell::of(path),
                Cell::of(asker(row)),
                row.cgroup.as_deref().map_or_else(Cell::nothing, |group| Cell::of(short_name(group))),
                Cell::grouped(amount.requests),
                Cell::of(Value::Bytes(amount.bytes)),
                Cell::of(Value::Bytes(amount.mean_bytes())),
                share(amount.bytes, if row.path == IoPath::Discard { 0 } else { total }),
                share(amount.sequential, amount.timed),
                time(amount.mean_queue_ns()),
                time(amount.mean_device_ns()),
                time(p99),
            ],
        );
    }
    table.hidden = format!("{} more", Grouped(table.hidden_rows() as u64));
    if let Some(hidden) = rows.get(MOST_ROWS..).filter(|hidden| !hidden.is_empty()) {
        let sum = |of: fn(&PathRequests) -> u64| hidden.iter().map(|row| of(row)).fold(0, u64::saturating_add);
        let shared = |row: &PathRequests| if row.path == IoPath::Discard { 0 } else { row.amount.bytes };
        let cells = [
            Cell::of(table.hidden.clone()),
            Cell::nothing(),
            Cell::nothing(),
            Cell::grouped(sum(|row| row.amount.requests)),
            Cell::of(Value::Bytes(sum(|row| row.amount.bytes))),
            Cell::nothing(),
            share(sum(shared), total),
        ];
        let rest = std::iter::repeat_with(Cell::nothing).take(table.columns.len() - cells.len());
        table.rest(cells.into_iter().chain(rest));
    }
    table
}

/// The time at the device below which this part of the requests lies.
fn quantile(amount: &Amount, quantile: f64) -> Nanos {
    amount.device.quantile(quantile, Nanos::ZERO, amount.device_ns)
}

/// `writer of backup.service`, if the group is known.
fn named(comm: &str, cgroup: Option<&String>) -> String {
    cgroup.map_or_else(|| comm.to_owned(), |cgroup| format!("{comm} of {}", short_name(cgroup)))
}

/// Who asked: processes that are not the command's are marked.
fn asker(row: &PathRequests) -> String {
    match (row.comm.as_str(), row.asker) {
        ("", _) if row.path == IoPath::Flush => "the kernel".to_owned(),
        ("", _) => "not known".to_owned(),
        (comm, Asker::Other) => format!("{comm} (other)"),
        (comm, _) => comm.to_owned(),
    }
}

/// A row for each disk, path and command name that asked.
fn records(recording: &Recording) -> Records {
    let columns = [
        "disk",
        "name",
        "path",
        "comm",
        "cgroup",
        "asker",
        "after",
        "requests",
        "bytes",
        "sequential",
        "timed",
        "queue_ns",
        "device_ns",
        "device_p50_ns",
        "device_p99_ns",
    ];
    Records::of_traces(recording, columns, |trace| {
        let Some(block) = &trace.block else { return Vec::new() };
        let name = |row: &PathRequests| block.disks.iter().find(|disk| disk.number == row.disk).map(|disk| &disk.name);
        let values = |row: &PathRequests| {
            let amount = &row.amount;
            let quantile = |at| (amount.device.count() > 0).then(|| quantile(amount, at));
            [
                (&row.disk).into(),
                name(row).into(),
                row.path.as_str().into(),
                (&row.comm).into(),
                row.cgroup.as_ref().into(),
                row.asker.as_str().into(),
                row.after.into(),
                amount.requests.into(),
                amount.bytes.into(),
                amount.sequential.into(),
                amount.timed.into(),
                amount.queue_ns.into(),
                amount.device_ns.into(),
                quantile(0.5).into(),
                quantile(0.99).into(),
            ]
        };
        block.paths.iter().map(values).collect()
    })
}

#[cfg(test)]
mod tests {
    use inodyne_model::cause::Cause;
    use inodyne_model::ledger::{Ledger, Row, RowKind, View};
    use inodyne_model::sample::ms;
    use inodyne_model::trace::ThreadLedger;

    use super::*;

    #[test]
    fn no_part_of_the_bytes_of_a_damaged_recording_is_more_than_all_of_them() {
        let amount = Amount { requests: 1, bytes: u64::MAX, ..Amount::default() };
        let row = PathRequests { amount, ..PathRequests::default() };
        let shares = table(&[&row, &row]).rows.iter().map(|row| row.cells[6].written()).collect::<Vec<_>>();
        assert_eq!(shares, ["100%", "100%"]);
    }

    #[test]
    fn in_a_window_the_time_is_that_of_the_threads_that_waited() {
        let row = |cause, ns| Row { cause: Some(cause), ..Row::new(RowKind::Blocked, ms(ns)) };
        let thread = |number, row: Row| ThreadLedger {
            number,
            pid: 7,
            tid: 7,
            comm: "db".to_owned(),
            lifetime_ns: ms(1_000.0),
            rows: vec![row],
        };
        let mut threads: Vec<ThreadLedger> = (2..40).map(|number| thread(number, row(Cause::Poll, 1_000.0))).collect();
        threads.push(thread(1, row(Cause::DeviceRead, 900.0)));
        let ledger = Ledger { view: View::Window, wall_ns: ms(39_000.0), ..Ledger::default() };
        let mut trace = Trace { wall_ns: ms(1_000.0), ledger, threads, ..Trace::default() };
        let disk = Disk { number: "8:0".to_owned(), name: "sda".to_owned(), ..Disk::default() };
        let words = |trace: &Trace, waiting_ns, by| {
            bounds(&BlockIo::default(), &Bound { disk: disk.number.clone(), waiting_ns, by }, &disk, trace)
        };
        let said = words(&trace, ms(900.0), BoundBy::Latency);
        let expected = "how fast sda answers: threads that waited for a device did so 90% of their time; sda busy ";
        assert!(said.starts_with(expected) && said.contains("% of the window, "), "{said}");
        trace.threads.pop();
        let said = words(&trace, Nanos::ZERO, BoundBy::NotTheDevice);
        assert!(said.starts_with("not the device: no thread waited for a device; sda busy "), "{said}");
    }
}
