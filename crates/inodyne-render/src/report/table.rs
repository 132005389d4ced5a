//! Tables of a report: typed cells, what each column holds, and which rows need not be shown.

use inodyne_model::call_class::CallClass;
use inodyne_model::recording::Recording;
use inodyne_model::trace::Trace;

use super::names;
use super::value::{Cell, Value};
use crate::line::{Line, Style};

/// Which side of its column a cell is aligned with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Where a column is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Where {
    /// All printers for people.
    Everywhere,
    /// All but narrow terminals.
    Wide,
    /// Only pages.
    Page,
    /// All but pages.
    Terminal,
}

/// The heading of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heading {
    Words(String),
    /// One of two names, which must remain distinguishable when they are cut: `(names, which)`.
    OneOf([String; 2], usize),
}

impl Heading {
    /// The heading, a name at most this wide.
    pub(crate) fn written(&self, longest_name: usize) -> String {
        match self {
            Heading::Words(words) => words.clone(),
            Heading::OneOf(both, which) => names::short(both, longest_name)[*which].clone(),
        }
    }
}

/// A column.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) heading: Heading,
    /// Its heading on a page, if that is a different one.
    pub(crate) page_heading: Option<&'static str>,
    pub(crate) align: Align,
    pub(crate) place: Where,
    /// The column of the section's records that has the same values.
    pub(crate) key: Option<&'static str>,
    /// If the table is too wide, this column is cut.
    pub(crate) yields: bool,
    /// Whether it names the row: it comes first on a page.
    pub(crate) names_row: bool,
    /// Whether a page sorts the rows by it.
    pub(crate) sorts: bool,
    /// What kind of column it is, for the looks of a page; empty if it is like any other.
    pub(crate) class: &'static str,
    /// Whether the notes of a row are in it, on a page.
    pub(crate) holds_notes: bool,
}

impl Column {
    fn new(heading: Heading, align: Align) -> Column {
        Column {
            heading,
            page_heading: None,
            align,
            place: Where::Everywhere,
            key: None,
            yields: false,
            names_row: false,
            sorts: false,
            class: "",
            holds_notes: false,
        }
    }

    /// A column of words.
    pub(crate) fn text(heading: &str) -> Column {
        Column::new(Heading::Words(heading.to_owned()), Align::Left)
    }

    /// A column of numbers.
    pub(crate) fn number(heading: &str) -> Column {
        Column::new(Heading::Words(heading.to_owned()), Align::Right)
    }

    /// A column of numbers for one of two sides.
    pub(crate) fn side(both: &[String; 2], which: usize) -> Column {
        Column::new(Heading::OneOf(both.clone(), which), Align::Right)
    }

    /// With another heading on a page.
    pub(crate) fn on_page(self, heading: &'static str) -> Column {
        Column { page_heading: Some(heading), ..self }
    }

    /// Shown where there is room.
    pub(crate) fn wide(self) -> Column {
        Column { place: Where::Wide, ..self }
    }

    /// Shown only on pages.
    pub(crate) fn page(self) -> Column {
        Column { place: Where::Page, ..self }
    }

    /// Shown everywhere but on pages.
    pub(crate) fn terminal(self) -> Column {
        Column { place: Where::Terminal, ..self }
    }

    /// With the values of this column of the section's records.
    pub(crate) fn key(self, key: &'static str) -> Column {
        Column { key: Some(key), ..self }
    }

    /// Cut if the table is too wide.
    pub(crate) fn yielding(self) -> Column {
        Column { yields: true, ..self }
    }

    /// Naming the rows.
    pub(crate) fn naming(self) -> Column {
        Column { names_row: true, ..self }
    }

    /// Of this kind, for the looks of a page.
    pub(crate) fn class(self, class: &'static str) -> Column {
        Column { class, ..self }
    }

    /// With the notes of each row, on a page.
    pub(crate) fn with_notes(self) -> Column {
        Column { holds_notes: true, ..self }
    }

    /// A column that pages sort by.
    pub(crate) fn sorting(self) -> Column {
        Column { sorts: true, ..self }
    }
}

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowKind {
    Plain,
    /// Too little to be shown, unless a reader unfolds it.
    Hidden,
    /// All hidden rows as one.
    Rest,
    /// All rows together.
    Sum,
}

/// A row.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) kind: RowKind,
    pub(crate) cells: Vec<Cell>,
    /// Remarks below it, which are not divided into columns.
    pub(crate) notes: Vec<String>,
}

/// Columns and rows.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// What kind of table it is, for the looks of a page.
    pub(crate) class: &'static str,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// What the hidden rows are called where a reader can unfold them.
    pub(crate) hidden: String,
    /// A remark below the table.
    pub(crate) below: Option<Line>,
}

impl Table {
    pub(crate) fn new(class: &'static str, columns: impl IntoIterator<Item = Column>) -> Table {
        Table { class, columns: columns.into_iter().collect(), rows: Vec::new(), hidden: String::new(), below: None }
    }

    /// Adds a row of this kind, with as many cells as there are columns.
    pub(crate) fn push(&mut self, kind: RowKind, cells: impl IntoIterator<Item = Cell>) -> &mut Row {
        self.rows.push(Row { kind, cells: cells.into_iter().collect(), notes: Vec::new() });
        self.rows.last_mut().expect("it was just added")
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) -> &mut Row {
        self.push(RowKind::Plain, cells)
    }

    /// Adds the sum of all rows.
    pub(crate) fn sum(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.push(RowKind::Sum, cells.into_iter().map(|cell| cell.styled(Style::Bold)));
    }

    /// Adds the hidden rows as one.
    pub(crate) fn rest(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.push(RowKind::Rest, cells.into_iter().map(|cell| cell.styled(Style::Dim)));
    }

    /// How many rows are hidden.
    pub(crate) fn hidden_rows(&self) -> usize {
        self.rows.iter().filter(|row| row.kind == RowKind::Hidden).count()
    }
}

/// The rows of a section for programs: all that is known about each trace or run, under stable names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Records {
    /// Names of the columns. Times and sizes carry their unit.
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Value>>,
}

impl Records {
    /// A row has as many values as there are columns, or it does not compile.
    pub(crate) fn new<const N: usize>(columns: [&str; N], rows: impl IntoIterator<Item = [Value; N]>) -> Records {
        Records { columns: columns.map(str::to_owned).into(), rows: rows.into_iter().map(Vec::from).collect() }
    }

    /// Only the rows about calls of a class.
    pub(crate) fn keep_calls(&mut self, class: CallClass) {
        let Some(at) = self.columns.iter().position(|column| column == "syscall") else { return };
        self.rows.retain(|row| matches!(&row[at], Value::Text(call) if class.has(call)));
    }

    /// The rows of each trace of the recording, each after the trace's number and case.
    pub(crate) fn of_traces<const N: usize>(
        recording: &Recording,
        columns: [&str; N],
        rows: impl Fn(&Trace) -> Vec<[Value; N]>,
    ) -> Records {
        let of_trace = |(number, trace): (usize, &Trace)| {
            let [place, command, cache] = names::values(recording, trace.key());
            let case = [Value::from(number), place, command, cache];
            let whole = |row: [Value; N]| case.iter().cloned().chain(row).collect();
            rows(trace).into_iter().map(whole).collect::<Vec<Vec<Value>>>()
        };
        Records {
            columns: ["trace", "place", "command", "cache"].into_iter().chain(columns).map(str::to_owned).collect(),
            rows: recording.traces.iter().enumerate().flat_map(of_trace).collect(),
        }
    }
}
