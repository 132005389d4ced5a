//! A study: what was expected, then part by part what came out, a line or two for each case. Everything else that is
//! known of a case is shown where its section is asked for.

use inodyne_model::Nanos;
use inodyne_model::comparison::Side;
use inodyne_model::recording::Recording;
use inodyne_model::run::{Run, median};
use inodyne_model::study::{Part, Study};

use super::case::Case;
use super::page::{Block, Page};
use super::{call_changes, comparison};
use crate::flags;
use crate::line::{Span, Style, cut, escaped};
use crate::table::{Align, Table};
use crate::units::{bytes, percent, seconds};

/// With fewer traced pairs the changes of calls have no interval.
const LEAST_FOR_CALLS: usize = 6;
/// How many findings of a case are named.
const MOST_FINDINGS: usize = 3;

pub(super) fn show(page: &mut Page, recording: &Recording, study: &Study, cases: &[Case<'_>]) {
    page.paragraph(Span::default(), &title(study), Style::Bold);
    page.paragraph("  ".into(), &study.about, Style::Dim);
    page.line([summary(study)]);
    for part in &study.parts {
        let of_part: Vec<&Case<'_>> = cases.iter().filter(|case| part.places.contains(&case.key.0)).collect();
        show_part(page, recording, part, &of_part);
    }
    expectations(page, study);
}

/// `find-dtype, quick form: Why is find slow where directories hold no file types?`
pub(crate) fn title(study: &Study) -> String {
    let form = if study.quick { ", quick form" } else { "" };
    format!("{}{form}: {}", study.name, study.title)
}

/// `walk: walking a tree`
pub(crate) fn title_of_part(part: &Part) -> String {
    let title = if part.title.is_empty() { String::new() } else { format!(": {}", part.title) };
    escaped(&format!("{}{title}", part.name))
}

/// Whether all is as expected.
pub(crate) fn summary(study: &Study) -> Span {
    let (all, failed) = (study.expectations.len(), study.failed().count());
    let (text, style) = match (all, failed) {
        (0, _) => ("Nothing was held against what is expected".to_owned(), Style::Warning),
        (_, 0) => (format!("As expected, in all {all} points"), Style::Good),
        _ => (format!("Not as expected, in {failed} of {all} points"), Style::Warning),
    };
    Span::new(text, style)
}

fn show_part(page: &mut Page, recording: &Recording, part: &Part, cases: &[&Case<'_>]) {
    page.heading(&title_of_part(part));
    let is_of_part = |side: Side| part.places.contains(&side.place);
    comparison::headlines(page, recording, is_of_part, |of| comparison::source(recording, of));
    if cases.is_empty() {
        page.line([Span::new("  nothing was measured", Style::Warning)]);
    } else {
        page.gap();
        page.table(table(cases));
    }
    for case in cases {
        remarks(page, case, cases);
    }
    for left_out in &part.left_out {
        page.paragraph("  ".into(), &format!("left out: {left_out}"), Style::Warning);
    }
    for found in recording.ledger_differences.iter().filter(|found| is_of_part(found.a)) {
        if found.pairs >= LEAST_FOR_CALLS {
            call_changes::show(page, recording, found);
        }
    }
}

/// The medians of every case's untraced runs; of its traced ones, where there are no others.
pub(crate) fn table(cases: &[&Case<'_>]) -> Table {
    let right = |heading| (heading, Align::Right);
    let mut headings: Vec<_> = ["runs", "wall s", "user s", "system s", "CPU", "switches"].map(right).into();
    // Nothing is said of devices by places without one, and by caches that were warm.
    let moved: Vec<(&str, Moved)> =
        [("read", (|run| run.device_read_bytes) as Moved), ("written", |run| run.device_write_bytes)]
            .into_iter()
            .filter(|(_, of)| cases.iter().any(|case| middle_moved(case, *of) > Some(0)))
            .collect();
    headings.extend(moved.iter().map(|(heading, _)| right(heading)));
    let mut table = Table::new([("", Align::Left)].into_iter().chain(headings)).yielding(0);
    let whole = cases.iter().map(|case| case.wall()).max().unwrap_or_default();
    for case in cases {
        let time = |of: fn(&Run) -> u64| Nanos(middle(case, of));
        let (wall, user, sys) = (time(|run| run.wall_ns.0), time(|run| run.user_ns.0), time(|run| run.sys_ns.0));
        let cells = [
            name(case, cases),
            measured(case).len().to_string(),
            seconds(wall, whole),
            seconds(user, whole),
            seconds(sys, whole),
            percent((user + sys).share_of(wall)),
            middle(case, |run| run.voluntary_switches).to_string(),
        ];
        let moved = moved.iter().map(|(_, of)| middle_moved(case, *of).map_or_else(String::new, bytes));
        table.row(cells.into_iter().chain(moved).map(Span::from));
    }
    table
}

/// What the device of a run has moved.
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

/// None where it is not known of each run.
fn middle_moved(case: &Case<'_>, of: Moved) -> Option<u64> {
    let all: Option<Vec<Nanos>> = measured(case).iter().map(|run| of(run).map(Nanos)).collect();
    let mut all = all?;
    all.sort_unstable();
    median(&all).map(|middle| middle.0)
}

/// What about a case asks for a second look, and what is diagnosed.
fn remarks(page: &mut Page, case: &Case<'_>, cases: &[&Case<'_>]) {
    let name = name(case, cases);
    for flag in case.statistics().map_or_else(Vec::new, |found| flags::all(case.recording, found)) {
        page.add(Block::Flag(format!("{name}: {flag}")));
    }
    if !case.findings.is_empty() {
        page.paragraph("  ".into(), &format!("{name}: {}", diagnosed(case)), Style::Dim);
    }
}

/// `dtype-missing 46%, cold-metadata 25%`
pub(crate) fn diagnosed(case: &Case<'_>) -> String {
    let named = case.findings.iter().take(MOST_FINDINGS);
    named.map(|f| format!("{} {}", f.id, percent(f.share_of_wall))).collect::<Vec<_>>().join(", ")
}

/// `find on slow, cold`, as far as the cases of a part differ in that.
fn name(case: &Case<'_>, cases: &[&Case<'_>]) -> String {
    let differ = |in_what: &dyn Fn(&Case<'_>) -> bool| cases.iter().any(|other| in_what(other));
    let (command, place) = (case.command().to_owned(), case.place_name());
    let several_places = differ(&|other| other.key.0 != case.key.0);
    let mut name = match differ(&|other| other.key.1 != case.key.1) {
        true if several_places => format!("{command} on {place}"),
        false if several_places => place,
        _ => command,
    };
    if differ(&|other| other.key.2 != case.key.2) {
        name = format!("{name}, {}", case.cache());
    }
    escaped(&name)
}

/// Columns of what was seen of one that holds.
const LONGEST_SEEN: usize = 24;

fn expectations(page: &mut Page, study: &Study) {
    if study.expectations.is_empty() {
        return;
    }
    page.heading("What was expected");
    for expectation in &study.expectations {
        if expectation.held {
            let seen = cut(&escaped(&expectation.seen), LONGEST_SEEN);
            page.paragraph(Span::new("  true   ", Style::Good), &format!("{}: {seen}", expectation.says), Style::Plain);
        } else {
            let text = format!("{}: expected {}, seen {}", expectation.says, expectation.expected, expectation.seen);
            page.paragraph(Span::new("  FALSE  ", Style::Warning), &text, Style::Bold);
            page.paragraph("         ".into(), &expectation.what, Style::Dim);
        }
    }
}
