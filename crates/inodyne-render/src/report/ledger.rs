//! Where the wall-clock time went: rows with bars that sum to the whole, the residual always last.

use inodyne_model::Nanos;
use inodyne_model::ledger::{Ledger, Row, RowKind, View};
use inodyne_model::recording::Recording;
use inodyne_model::trace::Trace;

use super::block::{Page, Widget};
use super::case::Case;
use super::definition::{Definition, Show};
use super::rows::{values, word, words};
use super::stack_frames::Holders;
use super::state::State;
use super::table::{self, Column, Records, Table};
use super::value::{Cell, Picture, Value};
use crate::line::{Style, cut, escaped};
use crate::units::{counted, duration, percent, scaled, unit};

pub(super) const SECTION: Definition = Definition { name: "ledger", unasked: true, show: Show::Case(show), records };

/// Rows below this share are shown as one, unless they are few.
const SMALL: f64 = 0.002;
/// At most this many rows are shown separately.
const MOST_ROWS: usize = 16;
/// Frames shown of a stack that no rule knows.
const FRAMES: usize = 6;
/// On the first screen, one function that has at least this part of the largest row is named.
const MOST: f64 = 0.5;
/// Rows from this share on are shown with the functions that hold them, …
const LARGE: f64 = 0.02;
/// … those that have this part of the row, …
const MUCH: f64 = 0.1;
/// … and not more.
const MOST_FUNCTIONS: usize = 3;
/// Links shown of a chain in which each waited for the next.
const LINKS: usize = 5;
/// Columns of the table.
const SUBJECT: usize = 0;
const WHAT: usize = 1;
const TIME: usize = 2;
/// On the first screen the bars need room as well.
const WIDEST_WHAT: usize = 34;
/// The beginning of the note that says whose work was waited for.
const THROUGH: &str = "through";
/// Frames at the leaf of every wait, which tell nothing.
const SCHEDULER: [&str; 5] = ["__schedule", "schedule", "io_schedule", "schedule_timeout", "schedule_preempt_disabled"];

fn show<'a>(page: &mut Page<'a>, case: &Case<'a>) {
    let Some(trace) = case.trace else { return };
    page.heading(&heading(case));
    if let Some(text) = note(case) {
        page.paragraph("  ".into(), &text, Style::Dim);
    }
    page.widget(Widget::Stacked(trace));
    page.table(table(trace));
}

/// Whose time it is: the time above may be that of untraced runs; this is that of a traced one.
pub(super) fn heading(case: &Case<'_>) -> String {
    let unit = case.trace.map_or("s", |trace| unit(trace.ledger.wall_ns));
    if case.window().is_some() {
        return format!("Where the time of all threads went, in {unit}");
    }
    let of = match case.traces {
        2.. => format!(" in the median traced run of {}", case.traces),
        _ if case.untraced().next().is_some() => " in the traced run".to_owned(),
        _ => String::new(),
    };
    format!("Where the time went{of}, in {unit}")
}

/// Says that it is not the critical path although it should be, or only up to some instant.
pub(super) fn note(case: &Case<'_>) -> Option<String> {
    let trace = case.trace.filter(|trace| trace.threads.len() > 1)?;
    let timeline = &trace.observed.timeline;
    match (trace.ledger.view, timeline.until_ns) {
        (View::CriticalPath, Some(until)) => Some(format!(
            "Exact up to {}, when the timeline was full (--max-intervals). Later time is apportioned by how long each thread ran and waited \
             in total, so the rows also contain waits for others.",
            duration(Nanos(until)),
        )),
        (View::RootThread, _) if !timeline.is_empty() || trace.lost.intervals + trace.lost.work > 0 => Some(
            "The timeline is not complete, so this is what the first process did, and not who it waited for."
                .to_owned(),
        ),
        _ => None,
    }
}

/// The largest rows as shown on the first screen: each in one line, without those that are zero.
pub(super) fn in_short(ledger: &Ledger, most: usize) -> Table {
    let mut table = with_rows(ledger, |at, _| at < most, |_| Vec::new());
    table.rows.retain(|row| row.kind != table::RowKind::Sum && !row.cells[TIME].is_zero());
    table.columns[SUBJECT].yields = false;
    table.columns[WHAT].yields = true;
    for row in &mut table.rows {
        // The stack of a wait that no rule knows is longer than a line.
        let via = row.notes.drain(..).find(|note| note.starts_with(THROUGH));
        if let (Some(via), Value::Text(what)) = (via, &mut row.cells[WHAT].value) {
            *what = cut(&escaped(&format!("{what} {via}")), WIDEST_WHAT);
        }
    }
    table
}

fn table(trace: &Trace) -> Table {
    let ledger = &trace.ledger;
    let is_large = |at, row: &Row| at < MOST_ROWS && (row.ns.share_of(ledger.wall_ns) >= SMALL || at < 3);
    let holders = Holders::new(trace);
    with_rows(ledger, is_large, |row| {
        // The stack of a wait that no rule knows is there already.
        if row.ns.share_of(ledger.wall_ns) < LARGE || !row.stack.is_empty() {
            return Vec::new();
        }
        let found = holders.of(row, MUCH).into_iter().take(MOST_FUNCTIONS);
        found.map(|holder| format!("{} in {}", percent(holder.share), holder.frames)).collect()
    })
}

/// The kernel function that holds most of the largest row, if there is one: `openat kernel 77%: recently_deleted < …`.
pub(super) fn most_in(trace: &Trace) -> Option<String> {
    let row = trace.ledger.rows.first().filter(|row| row.kind == RowKind::Kernel)?;
    let holder = Holders::new(trace).of(row, MOST).into_iter().next()?;
    let Parts { subject, what, .. } = parts(row);
    Some(format!("{subject} {what} {}: {}", percent(holder.share), holder.frames))
}

/// The rows that `is_large` accepts by their position and size, with these notes, all others as one, and the residual.
fn with_rows(ledger: &Ledger, is_large: impl Fn(usize, &Row) -> bool, notes: impl Fn(&Row) -> Vec<String>) -> Table {
    let whole = ledger.wall_ns;
    let columns = [
        Column::text("").on_page("where").yielding(),
        Column::text("").on_page("what").class("what").with_notes(),
        Column::number("").on_page(unit(whole)).key("ns"),
        Column::number("").on_page("share"),
        Column::text("").class("bar"),
    ];
    let mut table = Table::new("ledger", columns);
    // What no row accounts for is always last.
    let (explained, residual): (Vec<&Row>, Vec<&Row>) =
        ledger.rows.iter().partition(|row| row.kind != RowKind::Unexplained);
    let is_shown = |at: usize, row: &Row| row.kind == RowKind::Unexplained || is_large(at, row);
    let shown = explained.iter().enumerate().filter(|(at, row)| is_shown(*at, row)).map(|(_, row)| row.ns);
    let largest = shown.chain(residual.iter().map(|row| row.ns)).max().unwrap_or_default();
    let mut small = Vec::new();
    for (at, row) in explained.into_iter().enumerate() {
        let kind = if is_large(at, row) { table::RowKind::Plain } else { table::RowKind::Hidden };
        if kind == table::RowKind::Hidden {
            small.push(row.ns);
        }
        push(&mut table, kind, row, whole, largest).notes.extend(notes(row));
    }
    if !small.is_empty() {
        let sum: Nanos = small.iter().copied().sum();
        let words = counted(small.len() as u64, "smaller row", "smaller rows");
        table.hidden = format!("{words}, {} {} together", scaled(sum, whole), unit(whole));
        let bar = Picture::Bar(sum.share_of(largest), State::Unexplained);
        let cells = [Cell::of(words).styled(Style::Plain), Cell::nothing()];
        let numbers = [Cell::scaled(sum, whole), Cell::share(sum.share_of(whole))];
        let bar = Cell::picture(bar).styled(Style::Dim);
        table.push(table::RowKind::Rest, cells.into_iter().chain(numbers).chain([bar]));
    }
    for row in residual {
        push(&mut table, table::RowKind::Plain, row, whole, largest);
    }
    let name = if ledger.view == View::Window { "all threads" } else { "wall-clock" };
    let sum = [Cell::nothing(), Cell::of(name), Cell::scaled(whole, whole), Cell::share(1.0), Cell::nothing()];
    table.sum(sum);
    table
}

fn push<'t>(table: &'t mut Table, kind: table::RowKind, row: &Row, whole: Nanos, largest: Nanos) -> &'t mut table::Row {
    let words = parts(row);
    let bar = Picture::Bar(row.ns.share_of(largest), State::new(row.kind, row.cause));
    let cells = [
        Cell::of(words.subject),
        Cell::of(words.what).styled(words.style),
        Cell::scaled(row.ns, whole),
        Cell::share(row.ns.share_of(whole)),
        Cell::picture(bar).styled(words.style),
    ];
    let in_stack = if words.stack.is_empty() { String::new() } else { format!("in {}", words.stack) };
    let notes = [words.via, in_stack].into_iter().filter(|note| !note.is_empty());
    let pushed = table.push(kind, cells);
    pushed.notes.extend(notes);
    pushed
}

/// A row in words.
pub(crate) struct Parts {
    pub(crate) subject: String,
    pub(crate) what: String,
    pub(super) style: Style,
    /// Through whom.
    pub(crate) via: String,
    stack: String,
}

/// What a row is about, in words.
pub(crate) fn parts(row: &Row) -> Parts {
    let estimated = if row.estimated { " (estimated)" } else { "" };
    let (subject, mut what, style) = words(row.kind, row.syscall.as_deref(), row.cause);
    if row.kind == RowKind::User && !row.via.is_empty() {
        what = "user".to_owned();
    }
    let before = if row.began_before { " (began before)" } else { "" };
    let what = format!("{what}{estimated}{before}").trim_start().to_owned();
    let frames = row.stack.iter().map(String::as_str).skip_while(|frame| SCHEDULER.contains(frame));
    let stack = frames.take(FRAMES).collect::<Vec<_>>().join(" < ");
    Parts { subject, what, style, via: via(row), stack }
}

/// Through whom the time of a row went; empty if through nobody.
pub(super) fn via(row: &Row) -> String {
    if row.via.is_empty() { String::new() } else { chain(&row.via) }
}

/// `through journal › jbd2`. Links in the middle are left out if there are too many to read.
fn chain(via: &[String]) -> String {
    let links: Vec<&str> = via.iter().map(String::as_str).collect();
    match links.split_at_checked(LINKS) {
        Some((near, [.., last])) => format!("{THROUGH} {} › … › {last}", near[..LINKS - 1].join(" › ")),
        _ => format!("{THROUGH} {}", links.join(" › ")),
    }
}

/// A row for each row of the headline's ledger. Those of a trace sum to its `wall_ns`.
fn records(recording: &Recording) -> Records {
    let columns = ["view", "wall_ns", "kind", "syscall", "cause", "via", "ns", "count", "estimated", "began_before"];
    Records::of_traces(recording, columns, |trace| {
        let Ledger { view, wall_ns, rows, .. } = &trace.ledger;
        let of_row = |row: &Row| {
            let [kind, syscall, cause, via, ns, count, estimated, before] = values(row);
            [word(view), (*wall_ns).into(), kind, syscall, cause, via, ns, count, estimated, before]
        };
        rows.iter().map(of_row).collect()
    })
}
