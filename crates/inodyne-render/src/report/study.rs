//! A study: what was expected, then part by part what came out, a line or two for each case. Everything else that is
//! known about a case is shown if its section is asked for.

use inodyne_model::Nanos;
use inodyne_model::case::CaseKey;
use inodyne_model::comparison::LedgerDifference;
use inodyne_model::recording::Recording;
use inodyne_model::run::{Run, median};
use inodyne_model::study::{self, Study};
use inodyne_model::trace::Trace;

use super::block::{Block, Expectation, Kind, Page, Part, Widget};
use super::case::Case;
use super::state::State;
use super::table::{Column, Table};
use super::value::{Cell, Value};
use super::{call_changes, card, comparison, disks_beside, flags, overview};
use crate::line::{Span, Style, escaped};
use crate::units::{percent, unit};

/// With fewer traced pairs the changes of calls have no interval.
const LEAST_FOR_CALLS: usize = 6;
/// States of a ledger that have a column.
const MOST_STATES: usize = 4;
/// How many findings of a case are named.
const MOST_FINDINGS: usize = 3;

/// The parts of the report about the study as a whole.
pub(super) fn parts<'a>(recording: &'a Recording, study: &'a Study, cases: &[Case<'a>]) -> Vec<Part<'a>> {
    let mut parts = vec![head(study)];
    for (number, part) in study.parts.iter().enumerate() {
        let is_of_part = |case: &Case<'_>| part.places.contains(&case.key.place);
        let of_part: Vec<(usize, &Case<'a>)> = cases.iter().enumerate().filter(|(_, case)| is_of_part(case)).collect();
        let kind = Kind::StudyPart { number, name: part.name.clone(), title: title_of_part(part) };
        parts.push(Part { kind, blocks: show_part(recording, part, &of_part) });
    }
    if !study.expectations.is_empty() {
        parts.push(Part { kind: Kind::Expected, blocks: vec![Block::Expectations(expectations(study))] });
    }
    parts
}

fn head<'a>(study: &Study) -> Part<'a> {
    let mut page = Page::new(None);
    page.add(Block::StudyTitle(title(study)));
    page.paragraph("  ".into(), &study.about, Style::Dim);
    page.line([summary(study)]);
    Part { kind: Kind::Study, blocks: page.blocks }
}

/// `find-dtype, quick form: Why is find slow where directories hold no file types?`
pub(crate) fn title(study: &Study) -> String {
    let form = if study.quick { ", quick form" } else { "" };
    format!("{}{form}: {}", study.name, study.title)
}

/// `walk: walking a tree`
fn title_of_part(part: &study::Part) -> String {
    let title = if part.title.is_empty() { String::new() } else { format!(": {}", part.title) };
    escaped(&format!("{}{title}", part.name))
}

/// Whether all is as expected.
fn summary(study: &Study) -> Span {
    let (all, failed) = (study.expectations.len(), study.failed().count());
    let (text, style) = match (all, failed) {
        (0, _) => ("Nothing was compared with what is expected".to_owned(), Style::Warning),
        (1, 0) => ("As expected, in 1 point".to_owned(), Style::Good),
        (_, 0) => (format!("As expected, in all {all} points"), Style::Good),
        _ => (format!("Not as expected, in {failed} of {all} points"), Style::Warning),
    };
    Span::new(text, style)
}

fn show_part<'a>(recording: &'a Recording, part: &study::Part, cases: &[(usize, &Case<'a>)]) -> Vec<Block<'a>> {
    let mut page = Page::new(None);
    let is_of_part = |case: CaseKey| part.places.contains(&case.place);
    let compared = overview::of_times(recording, is_of_part);
    // A single verdict is the answer.
    if let Some(answer) = overview::answer(recording, &compared).filter(|_| compared.len() > 1) {
        page.paragraph(Span::default(), &answer, Style::Bold);
        page.gap();
    }
    comparison::headlines(&mut page, recording, is_of_part, |of| comparison::source(recording, of));
    let of_part: Vec<&Case<'_>> = cases.iter().map(|(_, case)| *case).collect();
    if cases.is_empty() {
        page.line([Span::new("  nothing was measured", Style::Warning)]);
    } else {
        page.gap();
        page.table(table(cases));
        page.widget(Widget::Dots(cases.iter().map(|(number, case)| (*number, (*case).clone())).collect()));
    }
    for case in &of_part {
        remarks(&mut page, case, &of_part);
    }
    for left_out in &part.left_out {
        page.paragraph("  ".into(), &format!("left out: {left_out}"), Style::Warning);
    }
    if let Some((heading, table)) = ledgers(&of_part) {
        page.heading(&heading);
        page.table(table);
    }
    let traces: Vec<(String, &Trace)> =
        of_part.iter().filter_map(|case| Some((name(case, &of_part), case.trace?))).collect();
    disks_beside::show(&mut page, &traces);
    let has_many = |found: &LedgerDifference| found.pairs >= LEAST_FOR_CALLS;
    for found in recording.ledger_differences.iter().filter(|found| is_of_part(found.cases.a) && has_many(found)) {
        call_changes::show(&mut page, recording, found);
    }
    let mut sources = Page::new(None);
    comparison::sources(&mut sources, recording, is_of_part, |found| !has_many(found));
    if !sources.blocks.is_empty() {
        page.add(Block::Folded("Where the differences come from".to_owned(), sources.blocks));
    }
    page.blocks
}

/// The medians of every case's untraced runs, or of its traced ones if there are no others.
fn table(cases: &[(usize, &Case<'_>)]) -> Table {
    let of_part: Vec<&Case<'_>> = cases.iter().map(|(_, case)| *case).collect();
    let mut columns = vec![Column::text("").naming().yielding()];
    let whole = of_part.iter().map(|case| case.wall()).max().unwrap_or_default();
    let times = ["wall", "user", "system"].map(|of| format!("{of} {}", unit(whole)));
    columns.push(Column::number("runs"));
    columns.extend(times.iter().map(|heading| Column::number(heading)));
    columns.extend(["CPU", "switches"].map(Column::number));
    // Places without a device, and warm caches, say nothing about devices.
    let moved: Vec<(&str, Moved)> =
        [("read", (|run| run.device_read_bytes) as Moved), ("written", |run| run.device_write_bytes)]
            .into_iter()
            .filter(|(_, of)| of_part.iter().any(|case| middle_moved(case, *of) > Some(0)))
            .collect();
    columns.extend(moved.iter().map(|(heading, _)| Column::number(heading)));
    let mut table = Table::new("medians", columns);
    for (number, case) in cases {
        let time = |of: fn(&Run) -> u64| Nanos(middle(case, of));
        let (wall, user, sys) =
            (time(|run| run.wall_ns.0), time(|run| run.usage.user_ns.0), time(|run| run.usage.sys_ns.0));
        // Of runs under strace, the kernel's account includes strace.
        let is_own = case.untraced().next().is_some() || case.trace.is_none_or(|trace| trace.tracer.divides_calls());
        let used = |cell: Cell| if is_own { cell } else { Cell::nothing() };
        let cells = [
            Cell::of(name(case, &of_part)).leading_to(*number),
            Cell::of(measured(case).len()),
            Cell::scaled(wall, whole),
            used(Cell::scaled(user, whole)),
            used(Cell::scaled(sys, whole)),
            used(Cell::share((user + sys).share_of(wall))),
            used(Cell::of(middle(case, |run| run.usage.voluntary_switches))),
        ];
        let moved = moved.iter().map(|(_, of)| Cell::of(middle_moved(case, *of).map_or(Value::Nothing, Value::Bytes)));
        table.row(cells.into_iter().chain(moved));
    }
    table
}

/// The ledgers of a part's traced runs by state, side by side: the largest states, and all others as the rest. Each row sums to its
/// time.
fn ledgers(cases: &[&Case<'_>]) -> Option<(String, Table)> {
    let traced: Vec<(&Case<'_>, &Trace)> = cases.iter().filter_map(|case| Some((*case, case.trace?))).collect();
    let whole = traced.iter().map(|(_, trace)| trace.ledger.wall_ns).max()?;
    let mut states = card::by_state(traced.iter().map(|(_, trace)| *trace));
    states.retain(|(state, _)| *state != State::Unexplained);
    states.truncate(MOST_STATES);
    let mut columns = vec![Column::text("").naming().yielding(), Column::number("time")];
    columns.extend(states.iter().map(|(state, _)| Column::number(state.words().trim_start_matches("blocked: "))));
    columns.push(Column::number("the rest"));
    columns.push(Column::number("of it unexplained").wide());
    let mut table = Table::new("ledgers", columns);
    for (case, trace) in &traced {
        let own = card::by_state([*trace]);
        let of = |wanted: State| own.iter().find(|(state, _)| *state == wanted).map_or(Nanos::ZERO, |(_, ns)| *ns);
        let shown: Vec<Nanos> = states.iter().map(|(state, _)| of(*state)).collect();
        let rest = trace.ledger.wall_ns.saturating_sub(shown.iter().copied().sum());
        let mut cells = vec![Cell::of(name(case, cases)), Cell::scaled(trace.ledger.wall_ns, whole)];
        cells.extend(shown.into_iter().map(|ns| Cell::scaled(ns, whole)));
        cells.extend([rest, of(State::Unexplained)].map(|ns| Cell::scaled(ns, whole)));
        table.row(cells);
    }
    Some((format!("Where the time of the traced runs went, in {}", unit(whole)), table))
}

/// How much the device moved in a run.
type Moved = fn(&Run) -> Option<u64>;

/// The runs that stand for a case.
fn measured<'a>(case: &Case<'a>) -> Vec<&'a Run> {
    let untraced: Vec<&Run> = case.untraced().collect();
    if untraced.is_empty() { case.runs.clone() } else { untraced }
}

fn middle(case: &Case<'_>, of: fn(&Run) -> u64) -> u64 {
    let mut values: Vec<Nanos> = measured(case).iter().map(|run| Nanos(of(run))).collect();
    values.sort_unstable();
    median(&values).unwrap_or_default().0
}

/// `None` if it is not known for every run.
fn middle_moved(case: &Case<'_>, of: Moved) -> Option<u64> {
    let all: Option<Vec<Nanos>> = measured(case).iter().map(|run| of(run).map(Nanos)).collect();
    let mut all = all?;
    all.sort_unstable();
    median(&all).map(|middle| middle.0)
}

/// What about a case deserves a second look, and what is diagnosed.
fn remarks(page: &mut Page<'_>, case: &Case<'_>, cases: &[&Case<'_>]) {
    let name = name(case, cases);
    for flag in case.statistics().map_or_else(Vec::new, |found| flags::all(case.recording, found)) {
        page.add(Block::Flag(format!("{name}: {flag}")));
    }
    if !case.findings.is_empty() {
        page.paragraph("  ".into(), &format!("{name}: {}", diagnosed(case)), Style::Dim);
    }
}

/// `dtype-missing 46%, cold-metadata 25%`
fn diagnosed(case: &Case<'_>) -> String {
    let named = case.findings.iter().take(MOST_FINDINGS);
    named.map(|f| format!("{} {}", f.id, percent(f.share_of_wall))).collect::<Vec<_>>().join(", ")
}

/// `find on slow, cold`, as far as the cases of a part differ in that.
fn name(case: &Case<'_>, cases: &[&Case<'_>]) -> String {
    let differ = |in_what: &dyn Fn(&Case<'_>) -> bool| cases.iter().any(|other| in_what(other));
    let (command, place) = (case.command().to_owned(), case.place_name());
    let several_places = differ(&|other| other.key.place != case.key.place);
    let mut name = match differ(&|other| other.key.command != case.key.command) {
        true if several_places => format!("{command} on {place}"),
        false if several_places => place,
        _ => command,
    };
    if differ(&|other| other.key.cache != case.key.cache) {
        name = format!("{name}, {}", case.cache());
    }
    escaped(&name)
}

fn expectations(study: &Study) -> Vec<Expectation> {
    let one = |of: &study::Expectation| Expectation {
        held: of.held,
        says: of.says.clone(),
        what: of.what.clone(),
        expected: of.expected.clone(),
        seen: of.seen.clone(),
    };
    study.expectations.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use inodyne_model::sample;
    use inodyne_model::trace::Tracer;

    use super::*;

    #[test]
    fn what_runs_under_strace_used_is_not_theirs_alone() {
        let known = |tracer, is_traced: fn(&Run) -> bool| {
            let mut recording = sample::find_recording();
            recording.runs.retain(is_traced);
            recording.traces.iter_mut().for_each(|trace| trace.tracer = tracer);
            let cases = Case::all(&recording);
            let table = table(&[(0, &cases[0])]);
            [1, 2, 3, 4, 5, 6].map(|at| table.rows[0].cells[at].value != Value::Nothing)
        };
        assert_eq!(known(Tracer::Bpf, |run| run.traced), [true; 6]);
        assert_eq!(known(Tracer::Strace, |_| true), [true; 6]);
        assert_eq!(known(Tracer::Strace, |run| run.traced), [true, true, false, false, false, false]);
    }
}
