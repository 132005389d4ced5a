//! System calls of two cases, over several traced runs of each: which of them take longer, and is that real?

use std::cmp::Reverse;

use inodyne_model::comparison::{Comparison, LedgerDifference, Verdict};
use inodyne_model::metric::Metric;
use inodyne_model::recording::Recording;

use super::page::Page;
use crate::change;
use crate::line::{Span, Style};
use crate::names::Names;
use crate::table::{Align, Table};
use crate::units::seconds;

/// At most so many calls are shown; the JSON has all.
const MOST_ROWS: usize = 12;

/// The calls of the same two cases as the difference of their ledgers.
pub(super) fn show(page: &mut Page, recording: &Recording, of: &LedgerDifference) {
    let same = |c: &&Comparison| (c.a, c.b, c.cache) == (of.a, of.b, of.cache);
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
    let names = Names::of(recording, of.a, of.b);
    let [a, b] = names.short(page.longest_name());
    // Beside others it is not clear whose calls these are.
    let whose = recording.study.as_ref().map_or_else(String::new, |_| names.circumstances(of.cache));
    page.heading(&format!("Time in system calls{whose}, medians of {pairs} of traced runs, in seconds"));
    let columns = [
        (String::new(), Align::Left),
        (a, Align::Right),
        (b, Align::Right),
        ("change".to_owned(), Align::Right),
        ("95% interval".to_owned(), Align::Left),
        (String::new(), Align::Left),
    ];
    let mut table = Table::new(columns).yielding(5);
    let whole = calls.iter().map(|(_, c)| c.a_median_ns.max(c.b_median_ns)).max().unwrap_or_default();
    for (call, comparison) in calls.iter().take(MOST_ROWS) {
        let interval = comparison.ci_low.zip(comparison.ci_high);
        table.row([
            Span::from(*call),
            seconds(comparison.a_median_ns, whole).into(),
            seconds(comparison.b_median_ns, whole).into(),
            Span::new(comparison.ratio.map_or_else(String::new, change::change), Style::Bold),
            interval.map_or_else(String::new, |(low, high)| change::changes(low, high)).into(),
            Span::new(change::word(comparison), style(comparison.verdict)),
        ]);
    }
    page.table(table);
    if calls.len() > MOST_ROWS {
        page.line([Span::new(format!("  and {} with less time", calls.len() - MOST_ROWS), Style::Dim)]);
    }
}

fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Faster => Style::Good,
        Verdict::Slower => Style::Bold,
        Verdict::Withheld => Style::Warning,
        Verdict::NoDifference | Verdict::NotEnoughRuns => Style::Dim,
    }
}
