//! The report for a terminal: the verdict first, then what it rests on.
//!
//! A recording holds cases: a command in a place in a state of the caches, with its runs and traces. Where there are
//! several, they are held against each other first; then they are shown one after the other, each with its sections. A
//! study has too many of them for that: unless a section is asked for, it is shown in short.

mod call_changes;
mod calls;
mod case;
mod comparison;
mod difference;
mod findings;
mod ledger;
mod overhead;
mod paths;
mod runs;
mod study;
mod threads;
mod verdict;

use inodyne_model::recording::Recording;

use crate::line::{Line, Span, Style, wrapped};
use crate::section::Section;
use crate::table::Table;
use case::Case;

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
    let mut page = Page { options: *options, lines: Vec::new() };
    page.options.width = options.width.max(TextOptions::NARROWEST);
    let cases = Case::all(recording);
    if let Some(study) = recording.study.as_ref().filter(|_| options.section.is_none()) {
        study::show(&mut page, recording, study, &cases);
        return page.print();
    }
    comparison::show(&mut page, recording, &cases);
    for case in &cases {
        show_case(&mut page, case);
    }
    page.print()
}

/// Adds a section of a case to a page.
type Show = fn(&mut Page, &Case<'_>);

fn show_case(page: &mut Page, case: &Case<'_>) {
    let sections: [(Section, Show); 9] = [
        (Section::Verdict, verdict::show),
        (Section::Ledger, ledger::show),
        (Section::Findings, findings::show),
        (Section::Syscalls, calls::show),
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

/// A report as it grows.
struct Page {
    options: TextOptions,
    lines: Vec<Line>,
}

impl Page {
    fn wants(&self, section: Section) -> bool {
        match self.options.section {
            Some(only) => only == section,
            None => section != Section::ByComm,
        }
    }

    fn width(&self) -> usize {
        self.options.width
    }

    fn is_wide(&self) -> bool {
        self.width() >= TextOptions::WIDE
    }

    fn line(&mut self, line: impl Into<Line>) {
        self.lines.push(line.into());
    }

    /// A blank line between parts.
    fn gap(&mut self) {
        if !self.lines.is_empty() {
            self.lines.push(Line::default());
        }
    }

    fn heading(&mut self, text: &str) {
        self.gap();
        self.line([Span::new(text, Style::Bold)]);
    }

    /// Text over several lines: the first begins with `lead`, the others are indented as far.
    fn paragraph(&mut self, lead: Span, text: &str, style: Style) {
        let indent = lead.width();
        let mut lead = Some(lead);
        for part in wrapped(text, self.width().saturating_sub(indent)) {
            let lead = lead.take().unwrap_or_else(|| " ".repeat(indent).into());
            self.line([lead, Span::new(part, style)]);
        }
    }

    fn table(&mut self, table: Table) {
        self.lines.extend(table.lines(self.width()));
    }

    fn print(self) -> String {
        let mut out = String::new();
        for line in self.lines {
            line.print(&mut out, self.options.width, self.options.colour);
        }
        out
    }
}

#[cfg(test)]
mod tests;
