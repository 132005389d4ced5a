//! Two ledgers subtracted: the difference in one sentence, then row by row.

use std::collections::BTreeMap;

use inodyne_model::Nanos;
use inodyne_model::comparison::{Comparison, LedgerDifference, RowDifference, Verdict};
use inodyne_model::ledger::View;
use inodyne_model::metric::Metric;
use inodyne_model::recording::Recording;

use super::block::Page;
use super::names::Names;
use super::rows::words;
use super::state::State;
use super::table::{Column, RowKind, Table};
use super::value::{Cell, Picture};
use crate::line::{Span, Style};
use crate::units::{counted, scaled_difference, unit};

/// Rows below this part of the largest difference are shown as one, unless they are few.
const SMALL: f64 = 0.01;
/// At most this many rows are shown separately.
const MOST_ROWS: usize = 12;
/// How many parts the sentence names.
const MOST_PARTS: usize = 3;
/// Parts below this fraction of the whole are not named.
const LEAST_PART: f64 = 0.02;

pub(super) fn show(page: &mut Page<'_>, recording: &Recording, heading: &str, found: &LedgerDifference, names: &Names) {
    page.heading(heading);
    page.paragraph("  ".into(), &sentence(found), Style::Plain);
    if let Some(doubt) = doubt(recording, found) {
        page.paragraph("  ".into(), &doubt, Style::Warning);
    }
    page.table(table(found, names));
    if found.pairs > 1 {
        page.line([Span::new(format!("  means over {} traced runs of each", found.pairs), Style::Dim)]);
    }
}

/// The largest rows of a difference, as shown on the first screen.
pub(super) fn in_short(found: &LedgerDifference, names: &Names, most: usize) -> Table {
    let mut table = with_rows(found, names, most);
    table.rows.retain(|row| row.kind != RowKind::Sum);
    table
}

/// `+1.310 s: +1.220 newfstatat, +0.060 waiting for a CPU, +0.030 the rest`
pub(super) fn sentence(found: &LedgerDifference) -> String {
    let mut by_subject: BTreeMap<String, i64> = BTreeMap::new();
    for row in &found.rows {
        let subject = words(row.kind, row.syscall.as_deref(), row.cause).0;
        let sum = by_subject.entry(subject).or_default();
        *sum = sum.saturating_add(row.difference_ns);
    }
    let mut parts: Vec<(String, i64)> = by_subject.into_iter().collect();
    parts.sort_by_key(|(_, ns)| std::cmp::Reverse(ns.unsigned_abs()));
    let largest = parts.first().map_or(0, |(_, ns)| ns.unsigned_abs());
    let whole = largest_time(found);
    let time = |ns: i64| scaled_difference(ns, whole);
    let named = |(at, (_, ns)): &(usize, &(String, i64))| {
        *at < MOST_PARTS && *ns != 0 && ns.unsigned_abs() as f64 >= largest as f64 * LEAST_PART
    };
    let count = parts.iter().enumerate().filter(named).count();
    let mut said: Vec<String> = parts[..count].iter().map(|(subject, ns)| format!("{} {subject}", time(*ns))).collect();
    let rest = parts[count..].iter().fold(0i64, |sum, (_, ns)| sum.saturating_add(*ns));
    if rest != 0 {
        said.push(format!("{} the rest", time(rest)));
    }
    let difference = difference(found.a_wall_ns, found.b_wall_ns);
    if said.is_empty() {
        format!("{} {}", time(difference), unit(whole))
    } else {
        format!("{} {}: {}", time(difference), unit(whole), said.join(", "))
    }
}

/// Says if the untraced runs show a different difference from the traced ones, which the rows are about: half of it or twice as
/// much, the other way round, or none. If the untraced ones cannot tell, nothing is said.
fn doubt(recording: &Recording, found: &LedgerDifference) -> Option<String> {
    let is_its_time = |other: &&Comparison| other.cases == found.cases && other.metric == Metric::Wall && !other.traced;
    let timed = recording.comparisons.iter().find(is_its_time)?;
    let untraced = difference(timed.a_median_ns, timed.b_median_ns);
    let traced = difference(found.a_wall_ns, found.b_wall_ns);
    let agree = match timed.verdict {
        Verdict::Faster | Verdict::Slower => (0.5..=2.0).contains(&(traced as f64 / untraced as f64)),
        Verdict::NoDifference => traced.unsigned_abs() as f64 <= 2.0 * timed.margin * found.a_wall_ns.0 as f64,
        Verdict::NotEnoughRuns | Verdict::Withheld => true,
    };
    let time = |ns: i64| format!("{} {}", scaled_difference(ns, largest_time(found)), unit(largest_time(found)));
    let told = || {
        let (traced, untraced) = (time(traced), time(untraced));
        format!("Traced, the difference is {traced}, untraced {untraced}: the rows explain the traced one.")
    };
    (!agree).then(told)
}

fn difference(a: Nanos, b: Nanos) -> i64 {
    i64::try_from(i128::from(b.0) - i128::from(a.0)).unwrap_or(i64::MAX)
}

pub(super) fn largest_time(found: &LedgerDifference) -> Nanos {
    found.a_wall_ns.max(found.b_wall_ns)
}

pub(super) fn table(found: &LedgerDifference, names: &Names) -> Table {
    with_rows(found, names, MOST_ROWS)
}

fn with_rows(found: &LedgerDifference, names: &Names, most: usize) -> Table {
    let whole = largest_time(found);
    let both = names.both();
    let mut columns = vec![
        Column::text("").on_page("where"),
        Column::text("").on_page("what").class("what").yielding(),
        Column::side(&both, 0),
        Column::side(&both, 1),
        Column::number("difference"),
    ];
    // With too few traced runs there are none.
    let with_interval = found.rows.iter().any(|row| row.low_ns.is_some());
    columns.extend(with_interval.then(|| Column::text("95% interval").class("interval")));
    columns.push(Column::text("less │ more").class("bar diverging").page());
    let width = columns.len();
    let mut table = Table::new("difference", columns);
    let largest = found.rows.first().map_or(0, |row| row.difference_ns.unsigned_abs());
    let is_large = |(at, row): &(usize, &RowDifference)| {
        *at < most && (*at < 3 || row.difference_ns.unsigned_abs() as f64 >= largest as f64 * SMALL)
    };
    let large = found.rows.iter().enumerate().filter(is_large).count();
    for (at, row) in found.rows.iter().enumerate() {
        let kind = if at < large { RowKind::Plain } else { RowKind::Hidden };
        table.push(kind, cells(row, whole, largest, with_interval));
    }
    let padded = |cells: [Cell; 5]| {
        let padding = std::iter::repeat_with(Cell::nothing).take(width - cells.len());
        cells.into_iter().chain(padding).collect::<Vec<_>>()
    };
    let small = &found.rows[large..];
    if !small.is_empty() {
        let sum = |of: fn(&RowDifference) -> Nanos| small.iter().map(of).sum::<Nanos>();
        let (a, b) = (sum(|row| row.a_ns), sum(|row| row.b_ns));
        let rest = counted(small.len() as u64, "smaller row", "smaller rows");
        table.hidden = format!("{rest}, {} {} together", scaled_difference(difference(a, b), whole), unit(whole));
        let change = Cell::scaled_difference(difference(a, b), whole);
        let cells = [Cell::of(rest), Cell::nothing(), Cell::scaled(a, whole), Cell::scaled(b, whole), change];
        table.rest(padded(cells));
    }
    let (a, b) = (found.a_wall_ns, found.b_wall_ns);
    let change = Cell::scaled_difference(difference(a, b), whole);
    let name = if found.view == View::Window { "all threads" } else { "wall-clock" };
    let cells = [Cell::nothing(), Cell::of(name), Cell::scaled(a, whole), Cell::scaled(b, whole), change];
    table.sum(padded(cells));
    table
}

fn cells(row: &RowDifference, whole: Nanos, largest: u64, with_interval: bool) -> Vec<Cell> {
    let (subject, what, style) = words(row.kind, row.syscall.as_deref(), row.cause);
    // There are many columns here, and a cause alone says that something waited.
    let what = row.cause.map_or(what, |cause| cause.to_string());
    let mut cells = vec![
        Cell::of(subject),
        Cell::of(what).styled(style),
        Cell::scaled(row.a_ns, whole),
        Cell::scaled(row.b_ns, whole),
        Cell::scaled_difference(row.difference_ns, whole).styled(Style::Bold),
    ];
    cells.extend(with_interval.then(|| Cell::scaled_interval(row.low_ns.zip(row.high_ns), whole)));
    let part = row.difference_ns as f64 / largest.max(1) as f64;
    cells.push(Cell::picture(Picture::Diverging(part, State::new(row.kind, row.cause))));
    cells
}

#[cfg(test)]
mod tests {
    use inodyne_model::case::{CaseKey, CasePair};
    use inodyne_model::sample;

    use super::*;

    /// Whether a traced difference, in per mille, is doubted given the verdict on the untraced one.
    fn doubted(verdict: Verdict, untraced: u64, traced: u64) -> bool {
        let mut recording = sample::overlay_recording();
        inodyne_analyse::explain(&mut recording);
        let timed = recording.comparisons.iter_mut().find(|c| c.metric == Metric::Wall).unwrap();
        (timed.verdict, timed.a_median_ns, timed.b_median_ns) = (verdict, Nanos(1_000), Nanos(untraced));
        let cases = timed.cases;
        let (a_wall_ns, b_wall_ns) = (Nanos(1_000), Nanos(traced));
        let found = LedgerDifference { cases, pairs: 2, view: View::default(), a_wall_ns, b_wall_ns, rows: Vec::new() };
        let elsewhere = CasePair { b: CaseKey::new(7, 7, cases.cache()), ..cases };
        let other = LedgerDifference { cases: elsewhere, ..found.clone() };
        assert_eq!(super::doubt(&recording, &other), None);
        super::doubt(&recording, &found).is_some()
    }

    #[test]
    fn the_sum_of_windows_is_no_wall_clock_time() {
        let mut recording = sample::find_recording();
        inodyne_analyse::explain(&mut recording);
        let found = &recording.ledger_differences[0];
        let label = |view| {
            let found = LedgerDifference { view, ..found.clone() };
            let table = table(&found, &Names::of(&recording, found.cases));
            table.rows.iter().find(|row| row.kind == RowKind::Sum).map(|row| row.cells[1].written())
        };
        assert_eq!(label(View::CriticalPath).as_deref(), Some("wall-clock"));
        assert_eq!(label(View::Window).as_deref(), Some("all threads"));
    }

    #[test]
    fn rows_of_another_difference_are_doubted() {
        assert!(!doubted(Verdict::Slower, 1_100, 1_150) && !doubted(Verdict::Faster, 900, 940));
        assert!(doubted(Verdict::Slower, 1_100, 1_030) && doubted(Verdict::Slower, 1_100, 1_300));
        assert!(doubted(Verdict::Slower, 1_100, 900) && doubted(Verdict::Faster, 900, 1_000));
        assert!(doubted(Verdict::NoDifference, 1_001, 1_100) && !doubted(Verdict::NoDifference, 1_001, 1_030));
        assert!(!doubted(Verdict::NotEnoughRuns, 1_100, 2_000) && !doubted(Verdict::Withheld, 1_100, 500));
    }
}
