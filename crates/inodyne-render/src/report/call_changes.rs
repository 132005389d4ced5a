//! System calls of two cases, over several traced runs of each: which of them take longer, and whether that is real.

use std::cmp::Reverse;

use inodyne_model::comparison::{Comparison, LedgerDifference, Verdict};
use inodyne_model::count::Grouped;
use inodyne_model::metric::Metric;
use inodyne_model::recording::Recording;

use super::block::Page;
use super::change::{self, Whisker};
use super::names::Names;
use super::table::{Column, RowKind, Table};
use super::value::{Cell, Picture};
use crate::line::Style;
use crate::units::unit;

/// At most this many calls are shown; the JSON has all.
const MOST_ROWS: usize = 12;

/// The calls of the same two cases as the difference of their ledgers.
pub(super) fn show(page: &mut Page<'_>, recording: &Recording, of: &LedgerDifference) {
    let same = |c: &&Comparison| c.cases == of.cases;
    let mut calls: Vec<(&str, &Comparison)> = recording
        .comparisons
        .iter()
        .filter(same)
        .filter_map(|comparison| match &comparison.metric {
            Metric::SyscallWall(name) => Some((name.as_str(), comparison)),
            _ => None,
        })
        .collect();
    calls.sort_by_key(|(_, c)| Reverse(c.a_median_ns.max(c.b_median_ns)));
    let Some((_, first)) = calls.first() else { return };
    let pairs = change::pairs(first.pairs);
    let names = Names::of(recording, of.cases);
    // Next to others, it would not be clear whose calls these are.
    let is_one_of_several = recording.study.is_some() || recording.ledger_differences.len() > 1;
    let whose = if is_one_of_several { names.circumstances(of.cases.cache()) } else { String::new() };
    let both = names.both();
    let columns = [
        Column::text("").naming(),
        Column::side(&both, 0).key("a_median_ns"),
        Column::side(&both, 1).key("b_median_ns"),
        Column::number("change").key("ratio"),
        Column::text("faster │ slower").class("plot").page(),
        Column::text("95% interval"),
        Column::text("").yielding(),
    ];
    let width = columns.len();
    let mut table = Table::new("comparisons", columns);
    let whole = calls.iter().map(|(_, c)| c.a_median_ns.max(c.b_median_ns)).max().unwrap_or_default();
    let of_all = "summed over all threads";
    page.heading(&format!("System calls{whose}, {of_all}: medians of {pairs} of traced runs, in {}", unit(whole)));
    for (at, (call, comparison)) in calls.iter().enumerate() {
        let whisker = Whisker::of(comparison);
        let kind = if at < MOST_ROWS { RowKind::Plain } else { RowKind::Hidden };
        table.push(
            kind,
            [
                Cell::of(*call),
                Cell::scaled(comparison.a_median_ns, whole),
                Cell::scaled(comparison.b_median_ns, whole),
                Cell::change(comparison.ratio).styled(Style::Bold),
                Cell::picture(Picture::Whisker(whisker)),
                Cell::changes(whisker.interval),
                Cell::of(change::word(comparison)).styled(style(comparison.verdict)),
            ],
        );
    }
    if table.hidden_rows() > 0 {
        table.hidden = format!("{} with less time", Grouped(table.hidden_rows() as u64));
        let words = Cell::of(table.hidden.clone());
        table.rest([words].into_iter().chain(std::iter::repeat_with(Cell::nothing).take(width - 1)));
    }
    page.table(table);
}

pub(super) fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Faster => Style::Good,
        Verdict::Slower => Style::Worse,
        Verdict::Withheld => Style::Warning,
        Verdict::NoDifference | Verdict::NotEnoughRuns => Style::Dim,
    }
}

#[cfg(test)]
mod tests {
    use inodyne_model::sample;

    use super::*;
    use crate::report::block::Block;

    #[test]
    fn few_pairs_have_no_interval() {
        let intervals = |pairs: usize| {
            let mut recording = sample::overlay_recording();
            let sides = recording.traces.chunks(2).take(pairs).flatten().cloned().collect();
            recording.traces = sides;
            inodyne_analyse::explain(&mut recording);
            let mut page = Page::new(None);
            show(&mut page, &recording, &recording.ledger_differences[0]);
            let tables = page.blocks.iter().filter_map(|block| match block {
                Block::Table(table) => Some(table),
                _ => None,
            });
            let rows: Vec<String> = tables.flat_map(|table| &table.rows).map(|row| row.cells[5].written()).collect();
            assert!(!rows.is_empty());
            rows.iter().filter(|written| !written.is_empty()).count()
        };
        assert!(intervals(5) == 0 && intervals(6) > 0);
    }
}
