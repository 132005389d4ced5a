//! The verdict: what ran where and how long, then the plainest reason in one sentence. Two lines, before anything else.
//! Below them how the place was made, and what is unusual about the run.

use inodyne_model::cause::Cause;
use inodyne_model::ledger::{Row, RowKind};
use inodyne_model::place::Place;
use inodyne_model::run::{CacheState, Exit};

use super::case::Case;
use super::page::Page;
use crate::line::{Line, Span, Style, cut, escaped};
use crate::units::{bytes, duration, duration_beside, percent};

/// Parts below this share are no reason.
const LEAST_REASON: f64 = 0.10;
/// How many parts a sentence names.
const REASONS: usize = 2;

pub(super) fn show(page: &mut Page, case: &Case<'_>) {
    page.gap();
    let headline = headline(page, case);
    page.line(headline);
    let reason = reason(case);
    if !reason.is_empty() {
        page.paragraph(Span::default(), &reason, Style::Plain);
    }
    for remark in remarks(case) {
        page.paragraph(Span::new("  ", Style::Dim), &remark, Style::Dim);
    }
    if let Some(text) = ending(case) {
        page.paragraph("  ".into(), &text, Style::Warning);
    }
}

/// `find . on slow (ext4 -O ^filetype, cold): 0.334 s`
pub(super) fn in_a_line(case: &Case<'_>) -> String {
    format!("{} on {} ({}): {}", case.command(), case.place_name(), circumstances(case), time(case))
}

/// The time to the end, and to durable where that was measured.
pub(crate) fn time(case: &Case<'_>) -> String {
    let wall = duration(case.wall());
    match case.statistics().and_then(|found| found.durable.as_ref()) {
        Some(times) => format!("{wall} to exit, {} to durable", duration(times.spread.median_ns)),
        None => wall,
    }
}

/// The same in the width of the report, with what it could be: `…: 0.334 s, likely 0.103 s once cured`
fn headline(page: &Page, case: &Case<'_>) -> Line {
    let time = time(case);
    let likely = case.findings.first().filter(|finding| !finding.bound).map_or_else(String::new, |finding| {
        format!(", likely {} once cured", duration_beside(finding.predicted.wall_ns, case.wall()))
    });
    let place = cut(&escaped(&format!(" on {} ({})", case.place_name(), circumstances(case))), page.width() / 2);
    let around: usize =
        [&place, &time, &likely].map(|text| Span::from(text.as_str()).width()).iter().sum::<usize>() + 2;
    let command = Span::new(case.command(), Style::Bold).cut(page.width().saturating_sub(around).max(10));
    [command, place.into(), ": ".into(), Span::new(time, Style::Bold), Span::new(likely, Style::Good)].into()
}

pub(crate) fn circumstances(case: &Case<'_>) -> String {
    let place = case.place().map_or_else(String::new, |place| {
        // A label that is the description says the same already.
        if place.label.starts_with(&place.fs) { String::new() } else { with_options(place) }
    });
    let parts = [place, case.cache().to_string()];
    parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn with_options(place: &Place) -> String {
    if place.mkfs.is_empty() { place.fs.clone() } else { format!("{} {}", place.fs, place.mkfs.join(" ")) }
}

/// The first finding, or the largest parts of the ledger.
pub(crate) fn reason(case: &Case<'_>) -> String {
    if let Some(finding) = case.findings.first() {
        return format!("{}.", finding.title);
    }
    let Some(trace) = case.trace else { return String::new() };
    let whole = trace.ledger.wall_ns;
    let mut rows: Vec<&Row> = trace.ledger.rows.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.ns));
    let large = rows.iter().enumerate().filter(|(at, row)| *at == 0 || row.ns.share_of(whole) >= LEAST_REASON);
    let parts: Vec<_> =
        large.take(REASONS).map(|(_, row)| format!("{} {}", percent(row.ns.share_of(whole)), in_words(row))).collect();
    if parts.is_empty() { String::new() } else { format!("{}.", parts.join(", ")) }
}

fn in_words(row: &Row) -> String {
    let call = row.syscall.as_deref().map_or_else(String::new, |call| format!(" in {call}"));
    match (row.kind, row.cause) {
        (RowKind::User, _) => "computing in user mode".to_owned(),
        (RowKind::Kernel, _) => format!("kernel CPU{call}"),
        (RowKind::Runqueue, _) => "ready but without a CPU".to_owned(),
        (RowKind::Blocked, cause) => format!("blocked on {}{call}", cause.unwrap_or(Cause::Other)),
        (RowKind::Unexplained, _) => "unexplained".to_owned(),
    }
}

/// How the place was made, what was in it, and how cold it was.
pub(crate) fn remarks(case: &Case<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(place) = case.place().filter(|place| place.made_here) {
        let size = place.size_bytes.map_or_else(String::new, |size| format!(", {}", bytes(size)));
        let mkfs = if place.mkfs.is_empty() { String::new() } else { format!(", mkfs {}", place.mkfs.join(" ")) };
        let data = place.data.as_ref().map_or_else(String::new, |data| format!(", filled with {data}"));
        let mount =
            if place.mount_options.is_empty() { String::new() } else { format!(", mounted {}", place.mount_options) };
        remarks.push(format!("made here: {}{size}{mkfs}{mount}{data}", place.fs));
    }
    for (file, value) in case.place().iter().flat_map(|place| &place.settings) {
        remarks.push(format!("changed: {file} = {value}"));
    }
    if case.cache() == CacheState::Cold {
        let traced = case.runs.iter().find(|run| run.traced).or(case.runs.first());
        if let Some(read) = traced.and_then(|run| run.device_read_bytes) {
            remarks.push(format!("cold: {} were read from the device", bytes(read)));
        }
    }
    remarks
}

/// How the command ended, where that is no success.
pub(crate) fn ending(case: &Case<'_>) -> Option<String> {
    match case.runs.iter().map(|run| run.exit).find(|exit| !exit.success())? {
        Exit::Code(code) => Some(format!("the command ended with exit code {code}")),
        Exit::Signal(signal) => Some(format!("the command was killed by signal {signal}")),
    }
}
