//! A report as it grows: what the sections say, before it is known how it is printed.
//!
//! The sections say what a part is (a heading, a table, a flag), and two printers know how that looks: `print` in a
//! terminal, [`crate::markdown`] in Markdown. So both say the same, in the same order.

use crate::line::{Line, Span, Style};
use crate::section::Section;
use crate::table::Table;

use super::TextOptions;

/// A part of a report.
pub(crate) enum Block {
    /// A blank line between parts.
    Gap,
    Heading(String),
    /// One line, cut where it is too long.
    Line(Line),
    /// Text over several lines: the first begins with `lead`, the others are indented as far.
    Paragraph {
        lead: Span,
        text: String,
        style: Style,
    },
    Table(Table),
    /// What the comparisons come to.
    Headlines(Vec<Headline>),
    /// What a numbered list has next.
    Item(usize, Line),
    /// What belongs to it: a label of a few letters, or none where it is that of the point before.
    Point(&'static str, Body),
    /// What asks for a second look.
    Flag(String),
    /// From here to the end of the case: what it is about. Printed where a reader can unfold it.
    Case(String),
    /// The end of the case.
    EndOfCase,
}

/// What a point says.
pub(crate) enum Body {
    Line(Line),
    Text(String, Style),
}

impl From<Line> for Body {
    fn from(line: Line) -> Body {
        Body::Line(line)
    }
}

impl From<&str> for Body {
    fn from(text: &str) -> Body {
        Body::Text(text.to_owned(), Style::Plain)
    }
}

/// A verdict.
pub(crate) struct Headline {
    pub(crate) sentence: Span,
    /// The interval, the pairs, and the times; empty where there are none.
    pub(crate) facts: [String; 3],
    /// What else there is to say about it.
    pub(crate) remarks: Vec<Body>,
}

/// A report as it grows.
pub(crate) struct Page {
    options: TextOptions,
    blocks: Vec<Block>,
}

impl Page {
    pub(crate) fn new(options: TextOptions) -> Page {
        Page { options, blocks: Vec::new() }
    }

    pub(super) fn wants(&self, section: Section) -> bool {
        match self.options.section {
            Some(only) => only == section,
            None => section != Section::ByComm,
        }
    }

    pub(super) fn width(&self) -> usize {
        self.options.width
    }

    pub(super) fn is_wide(&self) -> bool {
        self.width() >= TextOptions::WIDE
    }

    /// Columns for a name above a column of numbers.
    pub(super) fn longest_name(&self) -> usize {
        (self.width() / 8).max(16)
    }

    pub(super) fn add(&mut self, block: Block) {
        self.blocks.push(block);
    }

    pub(super) fn line(&mut self, line: impl Into<Line>) {
        self.add(Block::Line(line.into()));
    }

    /// A blank line between parts.
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

    pub(super) fn point(&mut self, label: &'static str, body: impl Into<Body>) {
        self.add(Block::Point(label, body.into()));
    }

    pub(super) fn table(&mut self, table: Table) {
        self.add(Block::Table(table));
    }

    pub(crate) fn into_blocks(self) -> Vec<Block> {
        self.blocks
    }
}
