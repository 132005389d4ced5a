//! A report as its sections build it: parts made of blocks, which say what something is and not how it looks.
//!
//! The sections know neither how wide a terminal is nor what Markdown or HTML look like. Each printer knows all kinds of
//! blocks, and skips those that it cannot show: pictures exist on pages only.

use inodyne_model::call_class::CallClass;
use inodyne_model::comparison::Comparison;
use inodyne_model::trace::Trace;

use super::case::Case;
use super::change::{self, Whisker};
use super::directories::Tree;
use super::names::{self, Names};
use super::table::Table;
use crate::line::{Line, Span, Style, cut, escaped};

/// A piece of a report.
pub(crate) enum Block<'a> {
    /// A blank line between pieces, in a terminal.
    Gap,
    Heading(String),
    /// One line, cut where it is too long.
    Line(Line),
    /// Text over several lines: the first begins with `lead`, the others are indented to match.
    Paragraph {
        lead: Span,
        text: String,
        style: Style,
    },
    /// Text over at most `most` lines; the last one is cut if there is more.
    Brief {
        text: String,
        style: Style,
        most: usize,
    },
    Table(Table),
    /// Which case the next section is about.
    CaseName(String),
    /// What a study is called: the title of a page, and the first line elsewhere.
    StudyTitle(String),
    /// What ran where, and how long it took.
    Title(Title),
    /// How it was measured.
    Remarks(Vec<String>),
    /// The results of the comparisons.
    Headlines(Vec<Headline>),
    Finding(FindingBlock),
    /// What deserves a second look.
    Flag(String),
    /// What was expected of a study.
    Expectations(Vec<Expectation>),
    /// What is too much to be shown at once: for readers who can unfold it.
    Folded(String, Vec<Block<'a>>),
    /// What only a page can show.
    Widget(Widget<'a>),
}

/// A picture that a reader can interact with.
pub(crate) enum Widget<'a> {
    /// The critical path and the threads through time.
    Timeline(&'a Trace),
    /// Stacks by their time.
    Flame(&'a Trace),
    /// All runs of cases as dots on one axis; each case with its number.
    Dots(Vec<(usize, Case<'a>)>),
    /// The rows of a ledger as one bar.
    Stacked(&'a Trace),
    /// Directories as areas, by the time of the files in them.
    Treemap(Tree<'a>),
}

/// `find . on slow (ext4 -O ^filetype, cold): 0.334 s, could be about 0.103 s if fixed`
pub(crate) struct Title {
    pub(crate) command: String,
    /// ` on slow (ext4 -O ^filetype, cold)`
    pub(crate) place: String,
    pub(crate) time: String,
    /// Empty if no cure is worth it.
    pub(crate) likely: String,
    /// Why it took so long, in a sentence; empty if that is not known.
    pub(crate) reason: String,
}

/// A verdict about two cases.
pub(crate) struct Headline {
    pub(super) comparison: Comparison,
    pub(super) names: Names,
    /// Until when the time runs, if that has to be said.
    pub(super) until: &'static str,
    pub(super) style: Style,
    /// The interval, the pairs, and the times; empty if there are none.
    pub(crate) facts: [String; 3],
    /// What else there is to say about it.
    pub(crate) remark: Option<Remark>,
    /// The ratio, to be drawn.
    pub(crate) whisker: Whisker,
}

/// What goes below a verdict.
pub(crate) enum Remark {
    Line(Line),
    Text(String),
}

impl Headline {
    /// The verdict, each name at most this wide.
    pub(crate) fn sentence(&self, longest_name: usize) -> Span {
        let [a, b] = names::short(&self.names.both(), longest_name);
        let sentence = change::sentence(&self.comparison, &a, &b);
        let common = cut(&escaped(&self.names.common), longest_name);
        let circumstances = names::circumstances(&common, self.comparison.cases.cache());
        Span::new(format!("{sentence}{}{circumstances}", self.until), self.style)
    }
}

/// A diagnosis.
pub(crate) struct FindingBlock {
    /// Its position in the list, counted from 1.
    pub(crate) number: usize,
    pub(crate) id: String,
    /// `46%`
    pub(crate) share: String,
    pub(crate) title: String,
    /// Whether only a limit on the saving is known.
    pub(crate) is_bound: bool,
    pub(crate) evidence: Vec<String>,
    /// What the time could be instead; `None` if nothing is promised.
    pub(crate) prediction: Option<Line>,
    pub(crate) cure: Vec<String>,
    /// What trying it gave, and how it was tried.
    pub(crate) proved: Option<(Line, String)>,
    /// Where there is more about it.
    pub(crate) more: String,
}

/// Something that was expected, and what was seen.
pub(crate) struct Expectation {
    pub(crate) held: bool,
    pub(crate) says: String,
    pub(crate) what: String,
    pub(crate) expected: String,
    pub(crate) seen: String,
}

/// What a part of a report is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Cases compared with each other.
    Differences,
    /// The runs of all cases, as pictures.
    Runs,
    /// One case.
    Case {
        number: usize,
        /// Its name in the table of contents.
        name: String,
        /// In a line, with its time.
        summary: String,
        /// Whether it is one of several, and where a reader can unfold it.
        fold: Fold,
    },
    /// Whether a study came out as expected.
    Study,
    /// One part of a study.
    StudyPart { number: usize, name: String, title: String },
    /// What was expected of a study.
    Expected,
}

/// How a case relates to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fold {
    /// It is the only one.
    Alone,
    /// There are others beside it.
    Beside,
    /// Only for readers who unfold it: there are too many.
    Within,
}

/// A part of a report.
pub(crate) struct Part<'a> {
    pub(crate) kind: Kind,
    pub(crate) blocks: Vec<Block<'a>>,
}

/// The only part of a report that is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Only {
    /// The section of this name.
    pub(super) section: &'static str,
    /// Only system calls of this class; `None` for all.
    pub(super) calls: Option<CallClass>,
}

/// The blocks of a part under construction.
pub(crate) struct Page<'a> {
    only: Option<Only>,
    pub(super) blocks: Vec<Block<'a>>,
}

impl<'a> Page<'a> {
    /// An empty one, for a report that shows only this.
    pub(super) fn new(only: Option<Only>) -> Page<'a> {
        Page { only, blocks: Vec::new() }
    }

    /// Whether the section of this name is shown.
    pub(super) fn wants(&self, name: &str) -> bool {
        self.only.is_none_or(|only| only.section == name)
    }

    /// Which class of calls its sections are about; `None` for all calls.
    pub(super) fn calls(&self) -> Option<CallClass> {
        self.only.and_then(|only| only.calls)
    }

    /// Whether everything is shown, and not just one section.
    pub(super) fn is_whole(&self) -> bool {
        self.only.is_none()
    }

    pub(super) fn add(&mut self, block: Block<'a>) {
        self.blocks.push(block);
    }

    pub(super) fn line(&mut self, line: impl Into<Line>) {
        self.add(Block::Line(line.into()));
    }

    /// A blank line between pieces.
    pub(super) fn gap(&mut self) {
        self.add(Block::Gap);
    }

    pub(super) fn heading(&mut self, text: &str) {
        self.gap();
        self.add(Block::Heading(text.to_owned()));
    }

    pub(super) fn paragraph(&mut self, lead: Span, text: &str, style: Style) {
        self.add(Block::Paragraph { lead, text: text.to_owned(), style });
    }

    pub(super) fn table(&mut self, table: Table) {
        self.add(Block::Table(table));
    }

    pub(super) fn widget(&mut self, widget: Widget<'a>) {
        self.add(Block::Widget(widget));
    }
}
