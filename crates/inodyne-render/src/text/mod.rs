//! The report: the verdict first, then what it rests on; printed for a terminal here, in Markdown by
//! [`crate::markdown`].
//!
//! A recording holds cases: a command in a place in a state of the caches, with its runs and traces. Where there are
//! several, they are held against each other first; then they are shown one after the other, each with its sections. A
//! study has too many of them for that: unless a section is asked for, it is shown in short.

mod call_changes;
mod call_times;
mod calls;
pub(crate) mod case;
pub(crate) mod comparison;
pub(crate) mod difference;
mod findings;
pub(crate) mod ledger;
pub(crate) mod overhead;
pub(crate) mod page;
pub(crate) mod paths;
mod print;
pub(crate) mod runs;
mod spreads;
pub(crate) mod study;
pub(crate) mod threads;
pub(crate) mod verdict;

use inodyne_model::recording::Recording;

use crate::section::Section;
use case::Case;
use page::{Block, Page};

/// How a report is to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns of the terminal. No line is wider; below [`TextOptions::NARROWEST`] that is taken instead.
    pub width: usize,
    /// Whether the terminal shows colours.
    pub colour: bool,
    /// Only this part; everything but the tables by command name where there is none.
    pub section: Option<Section>,
}

impl TextOptions {
    /// The least width at which the tables can be read.
    pub const NARROWEST: usize = 60;
    /// From this width on, tables show more columns.
    pub(crate) const WIDE: usize = 120;
}

impl Default for TextOptions {
    fn default() -> TextOptions {
        TextOptions { width: 80, colour: false, section: None }
    }
}

/// The report of a recording, ready to be printed.
pub fn text(recording: &Recording, options: &TextOptions) -> String {
    let options = TextOptions { width: options.width.max(TextOptions::NARROWEST), ..*options };
    print::print(page(recording, &options).into_blocks(), &options)
}

/// What a report says, and in which order.
pub(crate) fn page(recording: &Recording, options: &TextOptions) -> Page {
    let mut page = Page::new(*options);
    let cases = Case::all(recording);
    if let Some(study) = recording.study.as_ref().filter(|_| options.section.is_none()) {
        study::show(&mut page, recording, study, &cases);
        return page;
    }
    comparison::show(&mut page, recording, &cases);
    let are_several = cases.len() > 1;
    for case in &cases {
        if are_several {
            page.add(Block::Case(verdict::in_a_line(case)));
        }
        show_case(&mut page, case);
        if are_several {
            page.add(Block::EndOfCase);
        }
    }
    page
}

/// Adds a section of a case to a page.
type Show = fn(&mut Page, &Case<'_>);

fn show_case(page: &mut Page, case: &Case<'_>) {
    let sections: [(Section, Show); 10] = [
        (Section::Verdict, verdict::show),
        (Section::Ledger, ledger::show),
        (Section::Findings, findings::show),
        (Section::Syscalls, calls::show),
        (Section::Syscalls, call_times::show),
        (Section::Paths, paths::show),
        (Section::Threads, threads::show),
        (Section::Runs, runs::show),
        (Section::Overhead, overhead::show),
        (Section::ByComm, calls::show_by_comm),
    ];
    for (section, show) in sections {
        if page.wants(section) {
            show(page, case);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
