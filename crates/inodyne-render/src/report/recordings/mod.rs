//! Two recordings compared: the verdict on the time, what was not to become worse, what else differs; then each
//! case with its ledgers subtracted, its calls, findings and paths.
//!
//! | module | what it knows |
//! |---|---|
//! | `gates` | what became of the things that were not to become worse, in words |
//! | `calls` | calls, errors and bytes |
//! | `changed` | findings and paths that came or went |
//! | `besides` | what else differs, and which cases only one of them has |

mod besides;
mod calls;
mod changed;
mod gates;

use inodyne_model::comparison::Comparison;
use inodyne_model::difference::{CaseDifference, CaseName, Difference};
use inodyne_model::metric::Metric;

use super::block::{Block, Fold, Headline, Kind, Page, Part, Title};
use super::change::{self, Whisker};
use super::comparison::{style, times};
use super::difference;
use super::names::{self, Names};
use crate::line::{Span, Style};
use crate::units::{duration_beside, unit};

pub use gates::gate_in_words;
pub(crate) use gates::{heading as gates_heading, outcome as gate_outcome};

/// What has to be known about every difference of times.
const NOT_BY_TURNS: &str = "The recordings were made one after the other, not interleaved: a difference in times \
    may come from the machine. Counts are not affected.";

/// The parts of a report.
pub(crate) fn parts(found: &Difference) -> Vec<Part<'_>> {
    let is_alone = found.cases.len() == 1;
    let mut page = Page::new(None);
    let headlines: Vec<Headline> = found.cases.iter().flat_map(headlines).collect();
    if !headlines.is_empty() {
        page.add(Block::Headlines(headlines));
        page.add(Block::Remarks(vec![NOT_BY_TURNS.to_owned()]));
    }
    if found.cases.is_empty() {
        page.line([Span::new("The recordings have no case in common.", Style::Warning)]);
    }
    gates::show(&mut page, found);
    besides::show(&mut page, found);
    let mut parts = vec![Part { kind: Kind::Differences, blocks: page.blocks }];
    let fold = if is_alone { Fold::Alone } else { Fold::Beside };
    parts.extend(found.cases.iter().enumerate().map(|(number, case)| of_case(case, number, fold)));
    parts
}

fn of_case<'a>(case: &CaseDifference, number: usize, fold: Fold) -> Part<'a> {
    let mut page = Page::new(None);
    let name = case_name(&case.case);
    if fold == Fold::Beside {
        page.gap();
        page.add(Block::Title(title(case)));
    }
    besides::of_case(&mut page, case);
    if let Some(ledger) = case.ledger.as_ref().filter(|ledger| ledger.rows.iter().any(|row| row.difference_ns != 0)) {
        let unit = unit(difference::largest_time(ledger));
        page.heading(&format!("Where the difference comes from, traced, in {unit}"));
        page.paragraph("  ".into(), &difference::sentence(ledger), Style::Plain);
        page.table(difference::table(ledger, &sides(String::new())));
    }
    calls::show(&mut page, case);
    changed::findings(&mut page, case);
    changed::paths(&mut page, case);
    if is_the_same(case) {
        page.gap();
        let what =
            if case.paths.is_some() { "Calls, errors, findings and paths" } else { "Calls, errors and findings" };
        page.line([Span::new(format!("{what} are the same."), Style::Good)]);
    }
    Part { kind: Kind::Case { number, name: name.clone(), summary: name, fold }, blocks: page.blocks }
}

/// `find . on slow, cold: 59.0 ms → 60.2 ms`
fn title(case: &CaseDifference) -> Title {
    let CaseName { command, place, cache } = &case.case;
    let time = |time: &Comparison| {
        let [old, new] = [time.a_median_ns, time.b_median_ns].map(|ns| duration_beside(ns, time.a_median_ns));
        format!("{old} → {new}{}", if time.traced { ", traced" } else { "" })
    };
    Title {
        command: command.clone(),
        place: format!(" on {place}{}", names::circumstances("", *cache)),
        time: case.times.first().map_or_else(|| "not timed".to_owned(), time),
        likely: String::new(),
        reason: String::new(),
    }
}

/// Whether everything that is counted is the same.
fn is_the_same(case: &CaseDifference) -> bool {
    let calls = case.total.is_some_and(|total| !total.differ());
    let each = case.calls.iter().all(|call| !call.differs());
    calls && each && case.findings.is_empty() && case.paths.iter().all(|paths| paths.changed.is_empty())
}

/// The verdicts on the times of a case.
fn headlines(case: &CaseDifference) -> Vec<Headline> {
    let is_durable = |time: &Comparison| time.metric == Metric::Durable;
    let until = |time: &Comparison| match is_durable(time) {
        true => ", to durable",
        false if case.times.iter().any(is_durable) => ", to exit",
        false => "",
    };
    let headline = |time: &Comparison| Headline {
        comparison: time.clone(),
        names: sides(format!("{} on {}", case.case.command, case.case.place)),
        until: until(time),
        style: style(time),
        facts: [change::interval(time), change::pairs(time.pairs), times(time)],
        remark: None,
        whisker: Whisker::of(time),
    };
    case.times.iter().map(headline).collect()
}

fn sides(common: String) -> Names {
    Names { a: "old".to_owned(), b: "new".to_owned(), common }
}

/// `find . on slow, cold`
pub(crate) fn case_name(CaseName { command, place, cache }: &CaseName) -> String {
    format!("{command} on {place}{}", names::circumstances("", *cache))
}
