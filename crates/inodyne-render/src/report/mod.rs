//! One report for all formats: what is said, in which order, and which rows need not be shown.
//!
//! A recording contains cases: a command in a place in a state of the caches, with its runs and traces. If there are
//! several, they are compared first; then they are shown one after another, each with its sections. A study has too
//! many of them for that: it is shown in brief, and its cases only if a section is asked for, or where a reader can unfold
//! them.
//!
//! | module | what it knows |
//! |---|---|
//! | `section` | the list of all sections; `definition`: what each of them gives |
//! | `verdict`, `ledger`, `over_time`, `requests`, `findings`, `functions`, `calls`, `paths`, `files`, `block_io`, `io_over_time`, `journals`, `processes`, `threads`, `runs`, `overhead` | one section of a case each |
//! | `comparison` | the section about several cases, with `overview`, `spreads`, `difference`, `call_changes`, `others` |
//! | `stack_frames` | which frames of a stack say something, and which functions hold a row of the ledger |
//! | `directories`, `file_sum` | directories and what was done below them, as a tree; what was done with one file or several |
//! | `call_times` | single calls, below the table of calls |
//! | `throughput` | how much a command does per second |
//! | `study`, `disks_beside` | the parts of a study, and what the disks of its cases did |
//! | `tune` | the section about settings that were tried |
//! | `window` | what is said about a window of running processes |
//! | `screen` | the first screen: the least that answers how long, why, what to do, and whether to believe it |
//! | `card` | what a recording says in one picture |
//! | `sentence` | the one sentence that says where most of the time went |
//! | `recordings` | the parts of a difference of two recordings |
//! | `case` | a case with all that is known about it |
//! | `block`, `table`, `value` | what reports are made of: blocks, tables, typed cells and how each is written |
//! | `change`, `flags`, `names`, `rows`, `state` | the words for a difference, for odd runs, for cases, for a row of a ledger, for what a thread did |
//!
//! A section is one file and one line in the list of `section`. It knows no format: [`crate::text`], [`crate::markdown`],
//! [`crate::html`](fn@crate::html) print its blocks, [`crate::csv`](fn@crate::csv) and [`crate::json_section`] its records.

pub(crate) mod block;
mod block_io;
mod call_changes;
mod call_times;
mod calls;
pub(crate) mod card;
pub(crate) mod case;
mod change;
mod comparison;
mod definition;
mod difference;
pub(crate) mod directories;
mod disks_beside;
pub(crate) mod file_sum;
mod files;
mod findings;
mod flags;
mod functions;
mod io_over_time;
mod journals;
mod ledger;
pub(crate) mod names;
mod others;
mod over_time;
mod overhead;
mod overview;
mod page_cache;
mod paths;
mod processes;
pub(crate) mod recordings;
mod requests;
mod rows;
mod runs;
mod screen;
pub(crate) mod section;
mod sentence;
mod spreads;
mod stack_frames;
pub(crate) mod state;
mod study;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod threads;
mod throughput;
mod tune;
pub(crate) mod value;
mod verdict;
mod window;

use inodyne_model::recording::Recording;

use block::{Fold, Kind, Only, Page, Part, Widget};
use case::Case;
use definition::Show;
use section::Section;
use table::Records;

pub(crate) use change::Whisker;
pub use change::pairs;
pub use findings::saving;
pub(crate) use flags::all as flags;
pub(crate) use ledger::parts as row_in_words;
pub(crate) use rows::words;
pub use rows::{row_words, words_of_row};
pub(crate) use screen::{Room, first_screen};
pub(crate) use study::title as study_title;

/// The rows of a section for programs.
pub(crate) fn records(recording: &Recording, section: Section) -> Records {
    let mut records = (section.definition().records)(recording);
    if let Some(class) = section.calls() {
        records.keep_calls(class);
    }
    records
}

/// The parts of a report; only those of one section if one is asked for.
pub(crate) fn report(recording: &Recording, only: Option<Section>) -> Vec<Part<'_>> {
    let cases = Case::all(recording);
    let study = recording.study.as_ref().filter(|_| only.is_none());
    // The results of a tuning's runs are in a section of their own.
    let is_tuning = recording.tuning.is_some() && only.is_none();
    let mut parts = match study {
        Some(found) => study::parts(recording, found, &cases),
        None => vec![differences(recording, &cases, only)],
    };
    let has_runs = cases.len() > 1 || cases.iter().any(|case| case.runs.len() > 1);
    if study.is_none() && only.is_none() && has_runs && !is_tuning {
        let mut page = Page::new(None);
        page.widget(Widget::Dots(cases.iter().cloned().enumerate().collect()));
        parts.push(Part { kind: Kind::Runs, blocks: page.blocks });
    }
    let fold = match (study, cases.as_slice()) {
        _ if is_tuning => Fold::Within,
        (Some(_), _) => Fold::Within,
        (None, [_]) => Fold::Alone,
        (None, _) => Fold::Beside,
    };
    parts.extend(cases.iter().enumerate().map(|(number, case)| of_case(recording, case, number, fold, only)));
    parts.retain(|part| !part.blocks.is_empty());
    parts
}

/// What only pages show.
fn pictures<'a>(page: &mut Page<'a>, case: &Case<'a>) {
    if let Some(trace) = case.trace {
        page.widget(Widget::Timeline(trace));
        page.widget(Widget::Flame(trace));
    }
}

fn of_section(only: Option<Section>) -> Option<Only> {
    only.map(|section| Only { section: section.as_str(), calls: section.calls() })
}

fn differences<'a>(recording: &'a Recording, cases: &[Case<'a>], only: Option<Section>) -> Part<'a> {
    let mut page = Page::new(of_section(only));
    for section in Section::all() {
        let is_told = recording.tuning.is_none() || only.is_some() || section.as_str() == tune::SECTION.name;
        if let Show::Recording(show) = section.definition().show
            && is_told
        {
            show(&mut page, recording, cases);
        }
    }
    Part { kind: Kind::Differences, blocks: page.blocks }
}

fn of_case<'a>(recording: &Recording, case: &Case<'a>, number: usize, fold: Fold, only: Option<Section>) -> Part<'a> {
    let mut page = Page::new(of_section(only));
    for section in Section::all() {
        let definition = section.definition();
        if let Show::Case(show) = definition.show
            && only.map_or(definition.unasked, |only| only == section)
        {
            show(&mut page, case);
        }
        // What to do comes before the pictures of it.
        if definition.name == findings::SECTION.name && page.is_whole() {
            pictures(&mut page, case);
        }
    }
    let summary = verdict::in_a_line(case);
    // The section that says what ran where does so itself.
    let says_itself = page.wants(verdict::SECTION.name);
    let mut blocks = page.blocks;
    if fold == Fold::Beside && !says_itself && !blocks.is_empty() {
        blocks.insert(0, block::Block::CaseName(summary.clone()));
    }
    let name = if recording.commands.len() > 1 {
        format!("{} on {} ({})", case.command(), case.place_name(), case.cache())
    } else {
        format!("{} ({})", case.place_name(), case.cache())
    };
    Part { kind: Kind::Case { number, name, summary, fold }, blocks }
}
