//! What else differs, which cases only one of the recordings has, and what makes counts inexact.

use inodyne_model::difference::{CaseDifference, Difference, Differing, Side};

use super::case_name;
use crate::line::{Span, Style};
use crate::report::block::{Block, Page};
use crate::report::table::{Column, Table};
use crate::report::value::Cell;

const HEADING: &str = "What differs besides";

pub(super) fn show(page: &mut Page<'_>, found: &Difference) {
    if !found.differs.is_empty() {
        page.heading(HEADING);
        page.table(table(&found.differs));
    }
    if !found.unmatched.is_empty() {
        page.heading("Cases that only one of them has");
    }
    for one in &found.unmatched {
        let side = match one.only {
            Side::Old => "  old  ",
            Side::New => "  new  ",
        };
        page.paragraph(Span::new(side, Style::Dim), &case_name(&one.case), Style::Plain);
    }
}

/// The same for a case.
pub(super) fn of_case(page: &mut Page<'_>, case: &CaseDifference) {
    if !case.differs.is_empty() {
        page.heading("What differs in place and command");
        page.table(table(&case.differs));
    }
    for text in &case.inexact {
        page.add(Block::Flag(text.clone()));
    }
}

fn table(differs: &[Differing]) -> Table {
    let columns = [Column::text("").naming(), Column::text("old").yielding(), Column::text("new").yielding()];
    let mut table = Table::new("besides", columns);
    for one in differs {
        let side = |text: &str| Cell::of(if text.is_empty() { "none" } else { text });
        table.row([Cell::of(one.what), side(&one.sides.old), side(&one.sides.new)]);
    }
    table
}
