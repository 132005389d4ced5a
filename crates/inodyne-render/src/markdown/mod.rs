//! The report in GitHub's Markdown: the same parts as in a terminal, for an issue or a wiki.
//!
//! What comes from a recording is data: [`escape`] makes sure that no name turns into a table, a link, a mention or HTML.
//! Nothing is cut to fit a width. If there are several cases, each is folded (`<details>`) below the comparison.

mod escape;

use inodyne_model::recording::Recording;

use crate::line::{Line, Span, Style};
use crate::report::block::{Block, Expectation, FindingBlock, Fold, Headline, Kind, Part, Remark};
use crate::report::report;
use crate::report::section::Section;
use crate::report::table::{Align, Table};
use crate::text::laid_out;

/// The width for what is laid out in columns: wider than anything is.
const UNBOUNDED: usize = 1_000;

/// The report of a recording; only one part of it if a section is given.
pub fn markdown(recording: &Recording, section: Option<Section>) -> String {
    printed(report(recording, section))
}

/// The parts of a report.
pub(crate) fn printed(parts: Vec<Part<'_>>) -> String {
    let mut printer = Printer::default();
    for part in parts {
        printer.part(part);
    }
    printer.out
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
    /// A case about which nothing has been printed yet.
    case: Option<String>,
    is_open: bool,
}

impl Printer {
    fn part(&mut self, Part { kind, blocks }: Part<'_>) {
        match kind {
            // There are too many of them.
            Kind::Case { fold: Fold::Within, .. } => return,
            Kind::Case { fold: Fold::Beside, summary, .. } => self.case = Some(summary),
            Kind::StudyPart { title, .. } => self.block(&format!("### {}", escape::text(&title))),
            Kind::Expected => self.block("### What was expected"),
            Kind::Case { fold: Fold::Alone, .. } | Kind::Differences | Kind::Runs | Kind::Study => {}
        }
        for block in blocks {
            self.add(block);
        }
        self.case = None;
        if std::mem::take(&mut self.is_open) {
            self.block("</details>");
        }
    }

    fn add(&mut self, block: Block<'_>) {
        match block {
            Block::Heading(text) => self.block(&format!("### {}", escape::text(&text))),
            Block::StudyTitle(title) => self.line(&Line::from([Span::new(title, Style::Bold)])),
            Block::Title(title) => {
                self.line(&title.line(UNBOUNDED));
                self.line(&Line::from([title.reason.into()]));
            }
            Block::Line(line) => self.line(&line),
            Block::Remarks(remarks) => {
                for remark in remarks {
                    self.line(&Line::from([Span::new(remark, Style::Dim)]));
                }
            }
            Block::Paragraph { lead, text, style } => self.line(&Line::from([lead, Span::new(text, style)])),
            Block::Brief { text, style, .. } => self.line(&Line::from([Span::new(text, style)])),
            Block::Table(table) => {
                self.block(&pipes(&table));
                if let Some(line) = &table.below {
                    self.line(line);
                }
            }
            Block::Headlines(headlines) => headlines.into_iter().for_each(|headline| self.headline(headline)),
            Block::Finding(finding) => self.finding(finding),
            Block::Flag(text) => self.entry("- ", &escape::at_line_start(&escape::text(&text))),
            Block::Expectations(all) => all.into_iter().for_each(|one| self.expectation(one)),
            // The summary of a folded case says which one it is.
            Block::Gap | Block::CaseName(_) | Block::Folded(..) | Block::Widget(_) => {}
        }
    }

    fn line(&mut self, line: &Line) {
        self.block(&escape::at_line_start(&inline(line)));
    }

    fn headline(&mut self, headline: Headline) {
        let sentence = headline.sentence(UNBOUNDED / 4);
        let facts = headline.facts.iter().filter(|fact| !fact.is_empty()).map(|fact| escape::text(fact));
        self.block(&format!("{}: {}", inline(&Line::from([sentence])), facts.collect::<Vec<_>>().join(", ")));
        let remark = match headline.remark {
            Some(Remark::Line(line)) => line,
            Some(Remark::Text(text)) => Line::from([Span::new(text, Style::Dim)]),
            None => return,
        };
        self.entry("- ", &escape::at_line_start(&inline(&remark)));
    }

    fn finding(&mut self, finding: FindingBlock) {
        let FindingBlock { number, id, share, is_bound, evidence, prediction, cure, proved, more, .. } = finding;
        let share = Span::new(share, Style::Bold);
        let head = [Span::new(id, Style::Bold), "   accounts for ".into(), share, " of the time".into()];
        self.block(&format!("{number}. {}", inline(&Line::from(head))));
        for evidence in evidence {
            self.point("", &Line::from([evidence.into()]));
        }
        if let Some(prediction) = prediction {
            self.point(if is_bound { "at best" } else { "expect" }, &prediction);
        }
        for (at, cure) in cure.into_iter().enumerate() {
            self.point(if at == 0 { "cure" } else { "" }, &Line::from([cure.into()]));
        }
        if let Some((score, how)) = proved {
            self.point("proved", &score);
            self.point("", &Line::from([how.into()]));
        }
        self.point("more", &Line::from([more.into()]));
    }

    /// What belongs to a finding, with a label of a few letters or none.
    fn point(&mut self, label: &str, body: &Line) {
        let body = inline(body);
        match label {
            "" => self.entry("   - ", &escape::at_line_start(&body)),
            label => self.entry("   - ", &format!("{label}: {body}")),
        }
    }

    fn expectation(&mut self, one: Expectation) {
        if one.held {
            let text = format!("{}: {}", one.says, one.seen);
            self.line(&Line::from([Span::new("true   ", Style::Good), text.into()]));
        } else {
            let text = format!("{}: expected {}, seen {}", one.says, one.expected, one.seen);
            self.line(&Line::from([Span::new("FALSE  ", Style::Warning), Span::new(text, Style::Bold)]));
            self.line(&Line::from([Span::new(one.what, Style::Dim)]));
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

/// The pieces of a line, with single spaces, and asterisks around what stands out.
fn inline(line: &Line) -> String {
    let mut out = String::new();
    for pieces in line.spans().chunk_by(|a, b| is_bold(a) == is_bold(b) && !is_shape(a) && !is_shape(b)) {
        let text: String = pieces.iter().map(Span::text).collect();
        match pieces {
            [first, ..] if is_shape(first) && text.is_empty() => {}
            [first, ..] if is_shape(first) => push(&mut out, &format!("`{text}`")),
            // Asterisks work at the start of a word, so punctuation between it and the previous word stays outside.
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
    matches!(span.style(), Style::Bold | Style::Warning | Style::Good | Style::Worse)
}

fn is_shape(span: &Span) -> bool {
    span.style() == Style::Shape
}

/// Appends with single spaces, none at the beginning. Spaces inside a shape are kept.
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

/// A table as GitHub reads it. GitHub requires a heading line, so tables without headings get an empty one.
fn pipes(table: &Table) -> String {
    let table = laid_out(table, UNBOUNDED);
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
        let cells = row.cells.iter().map(cell).chain(std::iter::repeat(String::new()));
        lines.push(line(&mut cells.take(columns)));
        for note in &row.notes {
            let first = std::iter::once(format!("↳ {}", inline(note))).chain(std::iter::repeat(String::new()));
            lines.push(line(&mut first.take(columns)));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
