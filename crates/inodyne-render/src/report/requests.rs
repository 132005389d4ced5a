//! Requests that were answered: how long they took, and what the slowest waited for that the others did not.

use std::collections::BTreeMap;

use inodyne_model::Nanos;
use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::ledger::{Row, RowKind};
use inodyne_model::recording::Recording;
use inodyne_model::requests::{Served, ServedGroup};
use inodyne_model::trace::Trace;

use super::block::Page;
use super::case::Case;
use super::definition::{Definition, Show};
use super::ledger::parts;
use super::rows::values;
use super::table::{self, Column, Records, Table};
use super::value::Cell;
use crate::line::Style;
use crate::units::{counted, duration, percent, rate, unit};

pub(super) const SECTION: Definition = Definition { name: "requests", unasked: true, show: Show::Case(show), records };

/// Rows that are shown separately, if they are at least this part of a request.
const MOST_ROWS: usize = 12;
const SMALL: f64 = 0.005;
/// Parts of the requests whose longest time is given, …
const PARTS: [(f64, &str); 4] = [(0.5, "half of them"), (0.9, "90%"), (0.99, "99%"), (1.0, "all")];
/// … and on the first screen.
const FEW_PARTS: [(f64, &str); 2] = [(0.5, "half of them"), (0.99, "99%")];

/// What makes rows of two groups the same.
type Key<'a> = (RowKind, Option<&'a str>, Option<Cause>, &'a [String]);

/// A row of each group, per request.
struct Beside<'a> {
    row: &'a Row,
    /// For the slowest, or for all; for the others.
    means: [f64; 2],
}

impl Beside<'_> {
    fn difference(&self) -> f64 {
        self.means[0] - self.means[1]
    }
}

/// How much of this a request of the group took on average, in nanoseconds.
fn by_request(ns: Nanos, group: &ServedGroup) -> f64 {
    ns.0 as f64 / group.looked_at.max(1) as f64
}

/// The rows of all groups, first those that the first group has the most of; what no row accounts for is last.
fn beside(groups: &[ServedGroup]) -> Vec<Beside<'_>> {
    let mut rows: BTreeMap<Key<'_>, Beside<'_>> = BTreeMap::new();
    for (at, group) in groups.iter().enumerate().take(2) {
        for row in &group.ledger.rows {
            let key = (row.kind, row.syscall.as_deref(), row.cause, row.via.as_slice());
            rows.entry(key).or_insert(Beside { row, means: [0.0; 2] }).means[at] += by_request(row.ns, group);
        }
    }
    let mut rows: Vec<Beside<'_>> = rows.into_values().collect();
    rows.sort_by(|a, b| b.means[0].total_cmp(&a.means[0]));
    rows.sort_by_key(|one| one.row.kind == RowKind::Unexplained);
    rows
}

/// `1,234 requests answered, 411 a second; half of them within 1.20 ms, 90% within 3.10 ms, 99% within 14.0 ms, all within 33.1 ms`;
/// if there was no room for some, `of the 1,000 that were kept half of them within 1.20 ms, …`
fn times(served: &Served, trace: &Trace, parts: &[(f64, &str)]) -> String {
    let kept = served.ns.len() as u64;
    let count = kept.saturating_add(served.not_kept);
    let seconds = trace.wall_ns.as_secs_f64();
    let rate = if seconds > 0.0 { format!(", {} a second", rate(count as f64 / seconds)) } else { String::new() };
    let (quantiles, words): (Vec<f64>, Vec<&str>) = parts.iter().copied().unzip();
    let within = |(words, ns): (&str, Option<Nanos>)| Some(format!("{words} within {}", duration(ns?)));
    let within: Vec<String> = words.into_iter().zip(served.quantiles(&quantiles)).filter_map(within).collect();
    let answered = counted(count, "request answered", "requests answered");
    let of_kept = if count > kept { format!("of the {} that were kept ", Grouped(kept)) } else { String::new() };
    let within = if kept > 0 { format!("; {of_kept}{}", within.join(", ")) } else { String::new() };
    format!("{answered}{rate}{within}")
}

/// What the slowest have the most of beyond what the others have, if that is half of the difference.
fn what_is_slow(groups: &[ServedGroup]) -> Option<String> {
    let [slowest, others] = groups else { return None };
    let mean = |group: &ServedGroup| by_request(group.ledger.wall_ns, group);
    let difference = mean(slowest) - mean(others);
    let rows = beside(groups);
    let most = rows.iter().max_by(|a, b| a.difference().total_cmp(&b.difference()))?;
    let is_most = difference > 0.0 && most.difference() >= difference / 2.0 && most.row.kind != RowKind::Unexplained;
    let words = parts(most.row);
    let through = if words.via.is_empty() { String::new() } else { format!(", {}", words.via) };
    let name = format!("{} {}", words.subject, words.what);
    let name = name.trim_end();
    is_most.then(|| {
        format!(
            "The {} slowest took {}, the others {} on average: {} of the difference is {name}{through}",
            Grouped(slowest.requests),
            duration(Nanos::rounded(mean(slowest))),
            duration(Nanos::rounded(mean(others))),
            percent((most.difference() / difference).min(1.0)),
        )
    })
}

/// Says that some are counted and no more is known about them; `None` if all were kept.
fn not_kept(served: &Served) -> Option<String> {
    let were = if served.not_kept == 1 { "was" } else { "were" };
    (served.not_kept > 0).then(|| format!("{} of them {were} not kept: there was no room.", Grouped(served.not_kept)))
}

/// Both; `None` if nobody asked, or none was answered.
fn sentences(trace: &Trace, parts: &[(f64, &str)]) -> Option<String> {
    let served = trace.requests.as_ref().filter(|served| !served.ns.is_empty() || served.not_kept > 0)?;
    let slow = what_is_slow(&served.groups).map_or_else(String::new, |slow| format!(" {slow}."));
    Some(format!("{}.{slow}", times(served, trace, parts)))
}

/// The same for the first screen.
pub(super) fn in_short(trace: &Trace) -> Option<String> {
    let remark = trace.requests.as_ref().and_then(not_kept).map_or_else(String::new, |remark| format!(" {remark}"));
    Some(format!("{}{remark}", sentences(trace, &FEW_PARTS)?))
}

fn show<'a>(page: &mut Page<'a>, case: &Case<'a>) {
    let Some(trace) = case.trace else { return };
    let Some(served) = &trace.requests else { return };
    page.heading("Requests");
    let said = sentences(trace, &PARTS).unwrap_or_else(|| "None was answered.".to_owned());
    let marks = match &served.calls[..] {
        [read, write] => {
            format!("A request begins at the end of {read}, and ends with {write} on the same descriptor.")
        }
        _ => "A request begins when data have been read from a socket, and ends when some have been written to it."
            .to_owned(),
    };
    let slow = who_is_slow(&served.groups).unwrap_or_default();
    page.paragraph("  ".into(), &format!("{said} {marks}{slow}"), Style::Plain);
    if let Some(words) = not_kept(served) {
        page.paragraph("  ".into(), &words, Style::Warning);
    }
    if served.groups.is_empty() && !served.ns.is_empty() {
        page.paragraph("  ".into(), "What they waited for is not known: the timeline is not complete.", Style::Dim);
    }
    if !served.groups.is_empty() {
        page.table(table(&served.groups));
    }
}

/// `The slowest are 602, from 4.14 ms up, and the others are 11,432. Of the others, the history of 5,000 was examined.`; `None` for one group.
fn who_is_slow(groups: &[ServedGroup]) -> Option<String> {
    let [slowest, others] = groups else { return None };
    let looked_at = |group: &ServedGroup, whose: &str| match group.looked_at < group.requests {
        true => format!(" Of {whose}, the history of {} was examined.", Grouped(group.looked_at)),
        false => String::new(),
    };
    Some(format!(
        " The slowest are {}, from {} up, and the others are {}.{}{}",
        Grouped(slowest.requests),
        duration(slowest.least_ns),
        Grouped(others.requests),
        looked_at(slowest, "the slowest"),
        looked_at(others, "the others"),
    ))
}

fn table(groups: &[ServedGroup]) -> Table {
    let has_slowest = groups.iter().any(|group| group.slowest);
    let rows = beside(groups);
    let whole: Vec<f64> = groups.iter().map(|group| by_request(group.ledger.wall_ns, group)).collect();
    let largest = Nanos::rounded(whole.iter().copied().fold(0.0, f64::max));
    let columns = [
        Column::text(&format!("{} a request", unit(largest))).naming().yielding(),
        Column::text("").on_page("what").class("what").with_notes(),
    ];
    let name = |group: &ServedGroup| match (group.slowest, has_slowest) {
        (true, _) => "slowest",
        (false, true) => "others",
        (false, false) => "all",
    };
    let names = groups.iter().map(|group| Column::number(name(group)));
    let difference = has_slowest.then(|| Column::number("difference"));
    let mut table = Table::new("requests", columns.into_iter().chain(names).chain(difference));
    let cells = |subject: Cell, what: Cell, means: &[f64]| -> Vec<Cell> {
        let time = |mean: f64| Cell::scaled(Nanos::rounded(mean), largest).short_if_zero();
        let mut cells = vec![subject, what];
        cells.extend(means.iter().map(|mean| time(*mean)));
        if let ([slowest, others], true) = (means, has_slowest) {
            cells.push(Cell::scaled_difference((slowest - others).round() as i64, largest));
        }
        cells
    };
    let mut small = vec![0.0; groups.len()];
    let mut shown = 0;
    for one in &rows {
        let means = &one.means[..groups.len().min(2)];
        let share = means.iter().zip(&whole).map(|(mean, whole)| mean / whole.max(1.0)).fold(0.0, f64::max);
        let words = parts(one.row);
        let cells = cells(Cell::of(words.subject), Cell::of(words.what).styled(words.style), means);
        if one.row.kind == RowKind::Unexplained || (share >= SMALL && shown < MOST_ROWS) {
            shown += 1;
            let notes = [words.via].into_iter().filter(|note| !note.is_empty());
            table.row(cells).notes.extend(notes);
        } else {
            small.iter_mut().zip(means).for_each(|(sum, mean)| *sum += mean);
            table.push(table::RowKind::Hidden, cells);
        }
    }
    if table.hidden_rows() > 0 {
        table.hidden = counted(table.hidden_rows() as u64, "smaller row", "smaller rows");
        table.rest(cells(Cell::of(table.hidden.clone()), Cell::nothing(), &small));
    }
    table.sum(cells(Cell::of("a request"), Cell::nothing(), &whole));
    table
}

/// A row for each row of the ledger of each group: its sums are of the requests that were looked at.
fn records(recording: &Recording) -> Records {
    let columns = [
        "slowest",
        "requests",
        "looked_at",
        "least_ns",
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
        let of_row = |group: &ServedGroup, row: &Row| {
            let [kind, syscall, cause, via, ns, count, estimated, before] = values(row);
            let [requests, looked_at] = [group.requests, group.looked_at].map(Into::into);
            let (slowest, least) = (group.slowest.into(), group.least_ns.into());
            [slowest, requests, looked_at, least, kind, syscall, cause, via, ns, count, estimated, before]
        };
        let groups = trace.requests.iter().flat_map(|served| &served.groups);
        groups.flat_map(|group| group.ledger.rows.iter().map(move |row| of_row(group, row))).collect()
    })
}

#[cfg(test)]
mod tests {
    use inodyne_model::ledger::Ledger;
    use inodyne_model::sample::ms;

    use super::*;

    fn group(slowest: bool, requests: u64, rows: &[(RowKind, &str, Option<Cause>, f64)]) -> ServedGroup {
        let row = |(kind, call, cause, each): &(RowKind, &str, Option<Cause>, f64)| Row {
            syscall: (!call.is_empty()).then(|| (*call).to_owned()),
            cause: *cause,
            ..Row::new(*kind, ms(each * requests as f64))
        };
        let rows: Vec<Row> = rows.iter().map(row).collect();
        let wall_ns = rows.iter().map(|row| row.ns).sum();
        let ledger = Ledger { wall_ns, rows, ..Ledger::default() };
        ServedGroup { slowest, requests, looked_at: requests, least_ns: ms(9.8), ledger }
    }

    fn served() -> Trace {
        let rows = |blocked| {
            [
                (RowKind::Blocked, "pread64", Some(Cause::DeviceRead), blocked),
                (RowKind::Kernel, "pread64", None, 0.4),
                (RowKind::User, "", None, 0.6),
                (RowKind::Unexplained, "", None, 0.0),
            ]
        };
        let groups = vec![group(true, 10, &rows(9.0)), group(false, 190, &rows(0.1))];
        let ns = (0..200).map(|at| if at < 10 { ms(10.0).0 } else { ms(1.1).0 }).collect();
        let requests = Served { ns, groups, ..Served::default() };
        Trace { requests: Some(requests), wall_ns: ms(4_000.0), ..Trace::default() }
    }

    #[test]
    fn what_the_slowest_have_more_of_is_said() {
        let trace = served();
        let expected = "200 requests answered, 50 a second; half of them within 1.10 ms, 90% within 1.10 ms, 99% within 10.0 ms, \
                        all within 10.0 ms. The 10 slowest took 10.0 ms, the others 1.10 ms on average: 100% of the difference is \
                        pread64 blocked: device-read.";
        assert_eq!(sentences(&trace, &PARTS).as_deref(), Some(expected));
        assert_eq!(in_short(&Trace::default()), None);
        let rare = Trace { wall_ns: ms(9_000_000.0), ..served() };
        assert!(in_short(&rare).is_some_and(|words| words.starts_with("200 requests answered, <0.1 a second; ")));
        let mut groups = trace.requests.expect("requests").groups;
        assert_eq!(
            who_is_slow(&groups).as_deref(),
            Some(" The slowest are 10, from 9.80 ms up, and the others are 190.")
        );
        groups[1].looked_at = 100;
        assert!(
            who_is_slow(&groups)
                .is_some_and(|words| words.ends_with(" Of the others, the history of 100 was examined."))
        );
        assert_eq!(who_is_slow(&groups[..1]), None);
    }

    #[test]
    fn those_that_found_no_room_are_counted_and_not_timed() {
        let mut trace = served();
        trace.requests.as_mut().expect("requests").not_kept = 3_800;
        let times = "4,000 requests answered, 1,000 a second; of the 200 that were kept half of them within 1.10 ms, 99% within 10.0 ms.";
        let remark = " 3,800 of them were not kept: there was no room.";
        let said = in_short(&trace).expect("requests");
        assert!(said.starts_with(times) && said.ends_with(remark), "{said}");
        let none = Served { not_kept: 1, ..Served::default() };
        let trace = Trace { requests: Some(none), wall_ns: ms(1_000.0), ..Trace::default() };
        let expected = "1 request answered, 1.0 a second. 1 of them was not kept: there was no room.";
        assert_eq!(in_short(&trace).as_deref(), Some(expected));
    }

    #[test]
    fn rows_stand_beside_each_other_and_sum_to_a_request() {
        let trace = served();
        let groups = &trace.requests.as_ref().expect("requests").groups;
        let written = |groups: &[ServedGroup]| -> Vec<Vec<String>> {
            let cells = |row: &table::Row| row.cells.iter().map(Cell::written).collect();
            table(groups).rows.iter().map(cells).collect()
        };
        let expected = [
            vec!["pread64", "blocked: device-read", "9.0", "0.1", "+8.9"],
            vec!["user", "", "0.6", "0.6", "0.0"],
            vec!["pread64", "kernel", "0.4", "0.4", "0.0"],
            vec!["unexplained", "", "0.0", "0.0", "0.0"],
            vec!["a request", "", "10.0", "1.1", "+8.9"],
        ];
        assert_eq!(written(groups), expected);
        let alone = written(&[group(false, 3, &[(RowKind::User, "", None, 2.0)])]);
        assert_eq!(alone, [vec!["user", "", "2.00"], vec!["a request", "", "2.00"]]);
    }
}
