//! Where the wall-clock time went: rows with bars that sum to the whole, the residual always last.

use inodyne_model::Nanos;
use inodyne_model::ledger::{Ledger, Row, RowKind, View};

use super::case::Case;
use super::page::Page;
use crate::line::{Line, Span, Style};
use crate::rows::words;
use crate::table::{Align, Table};
use crate::units::{bar, percent, seconds};

/// Rows below this share are shown as one, unless they are few.
const SMALL: f64 = 0.002;
/// At most this many rows stand by themselves.
const MOST_ROWS: usize = 16;
/// Columns of the bar of the largest row.
const WIDEST_BAR: usize = 40;
/// Frames shown of a stack that no rule knows.
const FRAMES: usize = 6;
/// Links shown of a chain of those that waited for each other.
const LINKS: usize = 5;
/// Frames at the leaf of every wait: they say nothing.
const SCHEDULER: [&str; 5] = ["__schedule", "schedule", "io_schedule", "schedule_timeout", "schedule_preempt_disabled"];

pub(super) fn show(page: &mut Page, case: &Case<'_>) {
    let Some(ledger) = case.trace.map(|trace| &trace.ledger) else { return };
    page.heading(&heading(case));
    if let Some(text) = note(case) {
        page.paragraph("  ".into(), text, Style::Dim);
    }
    let table = table(ledger, page.width());
    page.table(table);
}

/// Whose time it is: that above may be of untraced runs; this is of a traced one.
pub(crate) fn heading(case: &Case<'_>) -> String {
    let of = match case.traces {
        2.. => format!(" in the traced run of {} with the middle time", case.traces),
        _ if case.untraced().next().is_some() => " in the traced run".to_owned(),
        _ => String::new(),
    };
    format!("Where the time went{of}, in seconds")
}

/// That it is not the critical path, where it should be.
pub(crate) fn note(case: &Case<'_>) -> Option<&'static str> {
    let trace = case.trace.filter(|trace| trace.ledger.view == View::RootThread && trace.threads.len() > 1)?;
    (!trace.observed.timeline.is_empty() || trace.lost.intervals + trace.lost.work > 0)
        .then_some("The timeline is not complete, so this is what the first process did, and not who it waited for.")
}

/// The rows of a ledger as they are shown.
pub(crate) struct Shown<'a> {
    /// Those that stand by themselves.
    pub(crate) large: Vec<&'a Row>,
    /// Those that are shown as one.
    pub(crate) small: Vec<&'a Row>,
    /// What no row accounts for, always last.
    pub(crate) residual: Vec<&'a Row>,
}

impl<'a> Shown<'a> {
    pub(crate) fn new(ledger: &'a Ledger) -> Shown<'a> {
        let (explained, residual): (Vec<&Row>, Vec<&Row>) =
            ledger.rows.iter().partition(|row| row.kind != RowKind::Unexplained);
        let stands = |at: usize, row: &Row| at < MOST_ROWS && (row.ns.share_of(ledger.wall_ns) >= SMALL || at < 3);
        let (mut large, mut small) = (Vec::new(), Vec::new());
        for (at, row) in explained.into_iter().enumerate() {
            if stands(at, row) { large.push(row) } else { small.push(row) }
        }
        Shown { large, small, residual }
    }
}

fn table(ledger: &Ledger, width: usize) -> Table {
    let whole = ledger.wall_ns;
    let Shown { large, small, residual } = Shown::new(ledger);
    let largest = large.iter().chain(&residual).map(|row| row.ns).max().unwrap_or_default();
    let mut lines: Vec<_> = large.into_iter().map(parts).collect();
    if !small.is_empty() {
        let ns: Nanos = small.iter().map(|row| row.ns).sum();
        lines.push(Parts::plain(format!("{} smaller rows", small.len()), ns, Style::Dim));
    }
    lines.extend(residual.into_iter().map(parts));

    // The bars take what the other columns leave.
    let bars = width.saturating_sub(rows_and_sum(&lines, whole, |_| String::new()).width_before(4)).min(WIDEST_BAR);
    rows_and_sum(&lines, whole, |ns| bar(ns.share_of(largest), bars))
}

fn rows_and_sum(lines: &[Parts], whole: Nanos, bar: impl Fn(Nanos) -> String) -> Table {
    let columns = [("", Align::Left), ("", Align::Left), ("", Align::Right), ("", Align::Right), ("", Align::Left)];
    let mut table = Table::new(columns).yielding(0);
    for line in lines {
        table.row([
            line.subject.as_str().into(),
            Span::new(&line.what, line.style),
            seconds(line.ns, whole).into(),
            percent(line.ns.share_of(whole)).into(),
            Span::new(bar(line.ns), line.style),
        ]);
        if !line.via.is_empty() {
            table.note(Line::from([Span::new(format!("      {}", line.via), Style::Dim)]));
        }
        if !line.stack.is_empty() {
            table.note(Line::from([Span::new(format!("      in {}", line.stack), Style::Dim)]));
        }
    }
    table.rule();
    let sum = [String::new(), "wall-clock".to_owned(), seconds(whole, whole), "100%".to_owned()];
    table.row(sum.map(|text| Span::new(text, Style::Bold)));
    table
}

/// A row in words.
pub(crate) struct Parts {
    pub(crate) subject: String,
    pub(crate) what: String,
    ns: Nanos,
    style: Style,
    /// Through whom.
    pub(crate) via: String,
    pub(crate) stack: String,
}

impl Parts {
    fn plain(subject: String, ns: Nanos, style: Style) -> Parts {
        Parts { subject, what: String::new(), ns, style, via: String::new(), stack: String::new() }
    }
}

/// What a row is about, in words.
pub(crate) fn parts(row: &Row) -> Parts {
    let estimated = if row.estimated { " (estimated)" } else { "" };
    let (subject, mut what, style) = words(row.kind, row.syscall.as_deref(), row.cause);
    if row.kind == RowKind::User && !row.via.is_empty() {
        what = "user".to_owned();
    }
    let what = format!("{what}{estimated}").trim_start().to_owned();
    let frames = row.stack.iter().map(String::as_str).skip_while(|frame| SCHEDULER.contains(frame));
    let stack = frames.take(FRAMES).collect::<Vec<_>>().join(" < ");
    let via = if row.via.is_empty() { String::new() } else { chain(&row.via) };
    Parts { subject, what, ns: row.ns, style, via, stack }
}

/// `through journal › jbd2`. Links in the middle are left out where there are too many to read.
fn chain(via: &[String]) -> String {
    let links: Vec<&str> = via.iter().map(String::as_str).collect();
    match links.split_at_checked(LINKS) {
        Some((near, [.., last])) => format!("through {} › … › {last}", near[..LINKS - 1].join(" › ")),
        _ => format!("through {}", links.join(" › ")),
    }
}
