//! All other times that were compared: too many to be shown, unless a reader unfolds them.

use inodyne_model::case::CaseKey;
use inodyne_model::comparison::Comparison;
use inodyne_model::metric::Metric;
use inodyne_model::recording::Recording;

use super::block::{Block, Page};
use super::call_changes::style;
use super::change::{self, Whisker};
use super::names::Names;
use super::table::{Column, Table};
use super::value::{Cell, Picture};
use crate::units::unit;

/// The comparisons that begin with one of these cases.
pub(super) fn show(page: &mut Page<'_>, recording: &Recording, wanted: impl Fn(CaseKey) -> bool) {
    let is_shown_elsewhere =
        |one: &Comparison| matches!(one.metric, Metric::Wall | Metric::Durable | Metric::SyscallWall(_));
    let others = recording.comparisons.iter().filter(|one| wanted(one.cases.a) && !is_shown_elsewhere(one));
    let others: Vec<&Comparison> = others.collect();
    if others.is_empty() {
        return;
    }
    let whole = others.iter().map(|c| c.a_median_ns.max(c.b_median_ns)).max().unwrap_or_default();
    let columns = [
        Column::text("time of").key("metric").naming().sorting(),
        Column::text("compared").sorting(),
        Column::number(&format!("before {}", unit(whole))).key("a_median_ns").sorting(),
        Column::number(&format!("after {}", unit(whole))).key("b_median_ns").sorting(),
        Column::number("change").key("ratio").sorting(),
        Column::text("faster │ slower").class("plot").page(),
        Column::text("95% interval"),
        Column::text("verdict").sorting(),
    ];
    let mut table = Table::new("comparisons", columns);
    for comparison in others {
        let names = Names::of(recording, comparison.cases);
        let compared = format!("{} against {}{}", names.b, names.a, names.circumstances(comparison.cases.cache()));
        let whisker = Whisker::of(comparison);
        table.row([
            Cell::of(comparison.metric.to_string()),
            Cell::of(compared),
            Cell::scaled(comparison.a_median_ns, whole),
            Cell::scaled(comparison.b_median_ns, whole),
            Cell::change(comparison.ratio),
            Cell::picture(Picture::Whisker(whisker)),
            Cell::changes(whisker.interval),
            Cell::of(change::word(comparison)).styled(style(comparison.verdict)),
        ]);
    }
    page.add(Block::Folded("Everything else that was compared".to_owned(), vec![Block::Table(table)]));
}
