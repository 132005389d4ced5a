//! The page cache: what the command brought into it, how much of that it asked for, and what was evicted for lack of memory.

use inodyne_model::count::Grouped;
use inodyne_model::ledger::PAGE_FAULT;
use inodyne_model::page_cache::{Asked, Brought, Contents, FilePages, PageCache};
use inodyne_model::recording::Recording;

use super::block::Page;
use super::case::Case;
use super::definition::{Definition, Show};
use super::table::{Column, Records, RowKind, Table};
use super::value::{Cell, Value};
use crate::line::{Span, Style};
use crate::units::{bytes, counted, percent};

pub(super) const SECTION: Definition =
    Definition { name: "page-cache", unasked: true, show: Show::Case(show), records };

/// The start of any program brings in less than this, which is not shown unless asked for.
const TELLING_BYTES: u64 = 4_000_000;
/// The smallest page of any machine, in bytes.
const PAGE: u64 = 4_096;
/// Rows of the table.
const MOST_ROWS: usize = 8;
/// Files that are named.
const MOST_FILES: usize = 3;

fn show<'a>(page: &mut Page<'a>, case: &Case<'a>) {
    let Some(cache) = case.trace.and_then(|trace| trace.page_cache.as_ref()) else { return };
    let is_telling = total(cache, None) >= TELLING_BYTES || cache.evicted_own_bytes > 0;
    if page.is_whole() && !is_telling {
        return;
    }
    page.heading("Page cache");
    let mut says = |lead: &str, words: &str| {
        page.gap();
        page.paragraph(Span::new(format!("{lead}: "), Style::Bold), words, Style::Plain);
    };
    says("brought in", &brought(cache));
    if let Some(asked) = &cache.asked {
        says("asked for", &asked_for(asked));
        if asked.of_brought.unused_bytes() > 0 {
            says("not asked for", &in_vain(asked));
        }
    }
    if cache.not_followed_bytes > 0 {
        let words = format!("what became of {}, for which there was no room", bytes(cache.not_followed_bytes));
        says("not known", &words);
    }
    if cache.unseen > 0 {
        let words = format!(
            "up to {}, pages were brought in or asked for without the kernel showing it",
            counted(cache.unseen, "time", "times")
        );
        says("not seen", &words);
    }
    if cache.evicted_bytes > 0 {
        let words = format!(
            "{} of anybody's files for want of memory while the command ran, {} of it brought in by the command",
            bytes(cache.evicted_bytes),
            bytes(cache.evicted_own_bytes)
        );
        says("evicted", &words);
    }
    if !cache.brought.is_empty() {
        page.table(table(&cache.brought));
    }
}

fn total(cache: &PageCache, contents: Option<Contents>) -> u64 {
    let is_meant = |row: &&Brought| contents.is_none_or(|contents| row.contents == contents);
    cache.brought.iter().filter(is_meant).map(|row| row.bytes).fold(0, u64::saturating_add)
}

/// `8.70 MB of files and 692 kB of metadata; 1.20 MB of it again, after it had been evicted`
fn brought(cache: &PageCache) -> String {
    let [files, metadata] = [Contents::Files, Contents::Metadata].map(|contents| total(cache, Some(contents)));
    let again = match cache.again_bytes() {
        0 => String::new(),
        again => format!("; {} of it again, after it had been evicted", bytes(again)),
    };
    format!("{} of files and {} of metadata{again}", bytes(files), bytes(metadata))
}

/// `4.12 MB by calls that read, up to 3% of it in memory before; 11 page faults on what was not in memory`
fn asked_for(asked: &Asked) -> String {
    let faults = format!("{} on what was not in memory", counted(asked.faults, "page fault", "page faults"));
    if asked.read_bytes == 0 {
        return faults;
    }
    // What was brought was asked for by calls or by faults, each for a page at most.
    let by_faults = asked.faults.saturating_mul(PAGE).min(asked.of_brought.used_bytes);
    let by_calls = (asked.of_brought.used_bytes - by_faults).min(asked.read_bytes);
    let before = percent(1.0 - by_calls as f64 / asked.read_bytes as f64);
    let at_most = if by_faults > 0 { "up to " } else { "" };
    format!("{} by calls that read, {at_most}{before} of it in memory before; {faults}", bytes(asked.read_bytes))
}

/// `4.42 MB of 8.70 MB of files, 51%: 4.29 MB of f0, 131 kB of libc.so.6; 139 kB more were mapped beside what was faulted for`
fn in_vain(asked: &Asked) -> String {
    let used = &asked.of_brought;
    let unused = used.unused_bytes();
    let of_file = |file: &FilePages| format!("{} of {}", bytes(file.used.unused_bytes()), file.called());
    let files: Vec<String> = asked.in_vain().into_iter().take(MOST_FILES).map(of_file).collect();
    let files = if files.is_empty() { String::new() } else { format!(": {}", files.join(", ")) };
    let beside = match used.beside_bytes {
        0 => String::new(),
        beside => format!("; {} more were mapped beside what was faulted for, and may have been used", bytes(beside)),
    };
    let share = unused as f64 / used.distinct_bytes.max(1) as f64;
    format!("{} of {} of files, {}{files}{beside}", bytes(unused), bytes(used.distinct_bytes), percent(share))
}

fn table(rows: &[Brought]) -> Table {
    let columns = [
        Column::text("brought by").naming().yielding(),
        Column::text("during"),
        Column::text("of"),
        Column::text("on"),
        Column::number("bytes").sorting().key("bytes"),
        Column::number("again").sorting().wide(),
    ];
    let mut table = Table::new("page-cache", columns);
    let bytes = |value: u64| Cell::of(Value::Bytes(value)).blank_if_zero();
    for (at, row) in rows.iter().enumerate() {
        let kind = if at < MOST_ROWS { RowKind::Plain } else { RowKind::Hidden };
        let during = if row.syscall == PAGE_FAULT { "page faults" } else { &row.syscall };
        let who = if row.comm.is_empty() { "programs that start" } else { &row.comm };
        table.push(
            kind,
            [
                Cell::of(who),
                Cell::of(during),
                Cell::of(row.contents.as_str()),
                Cell::of(&row.name),
                bytes(row.bytes),
                bytes(row.again_bytes),
            ],
        );
    }
    table.hidden = format!("{} more", Grouped(table.hidden_rows() as u64));
    if let Some(hidden) = rows.get(MOST_ROWS..).filter(|hidden| !hidden.is_empty()) {
        let sum = |of: fn(&Brought) -> u64| hidden.iter().map(of).fold(0, u64::saturating_add);
        let [text, nothing] = [Cell::of(table.hidden.clone()), Cell::nothing()];
        let sums = [bytes(sum(|row| row.bytes)), bytes(sum(|row| row.again_bytes))];
        table.rest([text, nothing.clone(), nothing.clone(), nothing].into_iter().chain(sums));
    }
    table
}

/// A row for each command name, call, file system and kind of contents.
fn records(recording: &Recording) -> Records {
    let columns = ["device", "name", "comm", "syscall", "contents", "bytes", "again_bytes"];
    let values = |row: &Brought| {
        [
            (&row.device).into(),
            (&row.name).into(),
            (&row.comm).into(),
            (&row.syscall).into(),
            row.contents.as_str().into(),
            row.bytes.into(),
            row.again_bytes.into(),
        ]
    };
    Records::of_traces(recording, columns, |trace| {
        trace.page_cache.iter().flat_map(|cache| cache.brought.iter().map(values)).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_several() {
        let said = |faults| asked_for(&Asked { faults, ..Asked::default() });
        assert_eq!(said(1), "1 page fault on what was not in memory");
        assert_eq!(said(1_100), "1,100 page faults on what was not in memory");
    }
}
