//! The report in GitHub's Markdown: the same parts as in a terminal, for an issue or a wiki.
//!
//! What comes from a recording is data: [`escape`] sees to it that no name makes a table, a link, a mention or HTML.
//! Nothing is cut for a width. Where there are several cases, each is folded (`<details>`) below the comparison.

mod escape;

use inodyne_model::recording::Recording;

use crate::line::{Line, Span, Style};
use crate::section::Section;
use crate::table::{Align, Row, Table};
use crate::text::page::{Block, Body, Headline};
use crate::text::{TextOptions, page};

/// Columns, for the sections that ask for them: more than anything is wide.
const UNBOUNDED: usize = 1_000;

/// The report of a recording; only one part of it where a section is given.
pub fn markdown(recording: &Recording, section: Option<Section>) -> String {
    let options = TextOptions { width: UNBOUNDED, colour: false, section };
    let mut printer = Printer::default();
    for block in page(recording, &options).into_blocks() {
        printer.add(block);
    }
    printer.out
}

fn said(body: Body) -> String {
    match body {
        Body::Line(line) => inline(&line),
        Body::Text(text, style) => inline(&Line::from([Span::new(text, style)])),
    }
}

/// What the last thing printed was.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Last {
    #[default]
    Nothing,
    /// An entry of a list, which the next one follows directly.
    Entry,
    Other,
}

#[derive(Default)]
struct Printer {
    out: String,
    last: Last,
    /// A case of which nothing has been said yet.
    case: Option<String>,
    is_open: bool,
}

impl Printer {
    fn add(&mut self, block: Block) {
        match block {
            Block::Gap => {}
            Block::Case(summary) => self.case = Some(summary),
            Block::EndOfCase => {
                self.case = None;
                if std::mem::take(&mut self.is_open) {
                    self.block("</details>");
                }
            }
            Block::Heading(text) => self.block(&format!("### {}", escape::text(&text))),
            Block::Line(line) => self.block(&escape::at_line_start(&inline(&line))),
            Block::Paragraph { lead, text, style } => {
                let line = Line::from([lead, Span::new(text, style)]);
                self.block(&escape::at_line_start(&inline(&line)));
            }
            Block::Table(table) => self.block(&pipes(&table)),
            Block::Headlines(headlines) => headlines.into_iter().for_each(|headline| self.headline(headline)),
            Block::Item(number, line) => self.block(&format!("{number}. {}", inline(&line))),
            Block::Point(label, body) => {
                let body = said(body);
                match label {
                    "" | "·" => self.entry("   - ", &escape::at_line_start(&body)),
                    label => self.entry("   - ", &format!("{label}: {body}")),
                }
            }
            Block::Flag(text) => self.entry("- ", &escape::at_line_start(&escape::text(&text))),
        }
    }

    fn headline(&mut self, headline: Headline) {
        let Headline { sentence, facts, remarks } = headline;
        let facts: Vec<String> = facts.iter().filter(|fact| !fact.is_empty()).map(|fact| escape::text(fact)).collect();
        self.block(&format!("{}: {}", inline(&Line::from([sentence])), facts.join(", ")));
        for remark in remarks {
            self.entry("- ", &escape::at_line_start(&said(remark)));
        }
    }

    /// Something with blank lines around it.
    fn block(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.open();
        if self.last != Last::Nothing {
            self.out.push('\n');
        }
        self.out.push_str(text);
        self.out.push('\n');
        self.last = Last::Other;
    }

    /// An entry of a list.
    fn entry(&mut self, bullet: &str, text: &str) {
        self.open();
        if self.last == Last::Other && !bullet.starts_with(' ') {
            self.out.push('\n');
        }
        self.out.push_str(bullet);
        self.out.push_str(text);
        self.out.push('\n');
        self.last = Last::Entry;
    }

    /// Begins the case, if it has not begun.
    fn open(&mut self) {
        if let Some(summary) = self.case.take() {
            self.is_open = true;
            self.block(&format!("<details>\n<summary>{}</summary>", escape::html(&summary)));
        }
    }
}

/// The pieces of a line, with single spaces, and stars around what stands out.
fn inline(line: &Line) -> String {
    let mut out = String::new();
    for pieces in line.spans().chunk_by(|a, b| is_bold(a) == is_bold(b) && !is_shape(a) && !is_shape(b)) {
        let text: String = pieces.iter().map(Span::text).collect();
        match pieces {
            [first, ..] if is_shape(first) && text.is_empty() => {}
            [first, ..] if is_shape(first) => push(&mut out, &format!("`{text}`")),
            // Stars work where a word begins, so signs between it and the word before stay outside.
            [first, ..] if is_bold(first) => {
                let is_apart = out.is_empty() || out.ends_with(' ') || text.starts_with(' ');
                let signs = text.find(|c: char| is_apart && c != ' ' || c.is_alphanumeric()).unwrap_or(text.len());
                let (signs, words) = text.split_at(signs);
                push(&mut out, &escape::text(signs));
                let word = words.trim_end_matches(' ');
                if !word.is_empty() {
                    push(&mut out, &format!("**{}**{}", escape::text(word), &words[word.len()..]));
                }
            }
            _ => push(&mut out, &escape::text(&text)),
        }
    }
    out.truncate(out.trim_end_matches(' ').len());
    out
}

fn is_bold(span: &Span) -> bool {
    matches!(span.style(), Style::Bold | Style::Warning | Style::Good)
}

fn is_shape(span: &Span) -> bool {
    span.style() == Style::Shape
}

/// Appends with single spaces, none at the beginning. What a shape has inside of itself is kept.
fn push(out: &mut String, text: &str) {
    if text.starts_with('`') {
        out.push_str(text);
        return;
    }
    for c in text.chars() {
        if c != ' ' || !out.is_empty() && !out.ends_with(' ') {
            out.push(c);
        }
    }
}

/// A table as GitHub reads it. It asks for a line of headings, so an empty one stands above tables without.
fn pipes(table: &Table) -> String {
    let columns = table.columns.len();
    let mut lines = Vec::new();
    let line = |cells: &mut dyn Iterator<Item = String>| format!("| {} |", cells.collect::<Vec<_>>().join(" | "));
    let cell = |span: &Span| inline(&Line::from([span.clone()]));
    lines.push(line(&mut table.columns.iter().map(|(heading, _)| escape::text(heading.text()))));
    lines.push(line(&mut table.columns.iter().map(|(_, align)| match align {
        Align::Left => ":--".to_owned(),
        Align::Right => "--:".to_owned(),
    })));
    for row in &table.rows {
        match row {
            Row::Cells(cells) => {
                let cells = cells.iter().map(cell).chain(std::iter::repeat(String::new()));
                lines.push(line(&mut cells.take(columns)));
            }
            // The sums below it are bold.
            Row::Rule => {}
            Row::Note(note) => {
                let first = std::iter::once(format!("↳ {}", inline(note))).chain(std::iter::repeat(String::new()));
                lines.push(line(&mut first.take(columns)));
            }
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
