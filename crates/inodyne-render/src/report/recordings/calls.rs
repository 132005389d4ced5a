//! Calls, errors and bytes of both recordings: the calls that changed, and the sum of all.

use inodyne_model::count::Grouped;
use inodyne_model::difference::{CallDifference, CaseDifference, Counts};

use crate::line::Style;
use crate::report::block::Page;
use crate::report::table::{Column, RowKind, Table};
use crate::report::value::{Cell, Value};

/// At most this many calls that changed are shown; pages and the JSON have all.
const MOST_ROWS: usize = 20;

/// Which columns have anything to say.
#[derive(Clone, Copy)]
struct Columns {
    errors: bool,
    bytes: bool,
}

pub(super) fn show(page: &mut Page<'_>, case: &CaseDifference) {
    let Some(total) = case.total.filter(|total| total.differ() || case.calls.iter().any(|call| call.differs())) else {
        return;
    };
    let several = if case.traces.old > 1 || case.traces.new > 1 { ", medians of the traced runs" } else { "" };
    page.heading(&format!("Calls{several}"));
    let with = Columns {
        errors: case.calls.iter().any(|call| call.counts.errors.differ()),
        bytes: case.calls.iter().any(|call| call.counts.bytes.differ()),
    };
    let side = |heading| Column::number(heading).sorting();
    let mut columns = vec![Column::text("call").with_notes().sorting(), side("old"), side("new"), side("difference")];
    columns.extend(with.errors.then(|| [side("errors old"), side("errors new")]).into_iter().flatten());
    columns.extend(with.bytes.then(|| [side("bytes old"), side("bytes new")]).into_iter().flatten());
    let mut table = Table::new("changes", columns);
    let changed = case.calls.iter().filter(|call| call.differs());
    for (at, call) in changed.clone().enumerate() {
        let kind = if at < MOST_ROWS { RowKind::Plain } else { RowKind::Hidden };
        let row = table.push(kind, cells(call.name.as_str().into(), &call.counts, with));
        row.notes.extend(errnos(call));
    }
    let same = case.calls.iter().filter(|call| !call.differs());
    for call in same.clone() {
        table.push(RowKind::Hidden, cells(call.name.as_str().into(), &call.counts, with));
    }
    let more = changed.count().saturating_sub(MOST_ROWS);
    table.hidden = match more {
        0 => format!("{} that did not change", same.count()),
        more => format!("{more} that changed less, {} that did not", same.count()),
    };
    if table.hidden_rows() > 0 {
        let width = table.columns.len();
        let text = Cell::of(table.hidden.clone());
        table.rest(std::iter::once(text).chain(std::iter::repeat_with(Cell::nothing)).take(width));
    }
    table.sum(cells("all calls".into(), &total, with));
    page.table(table);
}

fn cells(name: Value, Counts { calls, errors, bytes }: &Counts, with: Columns) -> Vec<Cell> {
    let mut cells = vec![
        Cell::of(name),
        Cell::grouped(calls.old),
        Cell::grouped(calls.new),
        Cell::count_difference(calls.change()).styled(Style::Bold),
    ];
    if with.errors {
        cells.extend([errors.old, errors.new].map(|count| Cell::grouped(count).blank_if_zero()));
    }
    if with.bytes {
        cells.extend([bytes.old, bytes.new].map(|count| Cell::of(Value::Bytes(count)).blank_if_zero()));
    }
    cells
}

/// `ENOENT 1 → 201`, for the errors that changed.
fn errnos(call: &CallDifference) -> Option<String> {
    let changed = call.errors_by_errno.iter().filter(|(_, sides)| sides.differ());
    let words = |(errno, sides): (&String, &inodyne_model::difference::Sides<u64>)| {
        format!("{errno} {} → {}", Grouped(sides.old), Grouped(sides.new))
    };
    let said: Vec<String> = changed.map(words).collect();
    (!said.is_empty()).then(|| said.join(", "))
}
