//! A report in a terminal: lines of a width, with colours or without.

use super::TextOptions;
use super::page::{Block, Body, Headline};
use crate::line::{Line, Span, Style, wrapped};

/// How far what belongs to a numbered item is indented.
const POINT: usize = 5;
/// Columns of a point's label.
const LABEL: usize = 8;

/// The report as text.
pub(super) fn print(blocks: Vec<Block>, options: &TextOptions) -> String {
    let mut lines = Lines { width: options.width, lines: Vec::new() };
    for block in blocks {
        lines.add(block);
    }
    let mut out = String::new();
    for line in lines.lines {
        line.print(&mut out, options.width, options.colour);
    }
    out
}

struct Lines {
    width: usize,
    lines: Vec<Line>,
}

impl Lines {
    fn add(&mut self, block: Block) {
        match block {
            Block::Gap if self.lines.is_empty() => {}
            Block::Gap => self.lines.push(Line::default()),
            Block::Heading(text) => self.line([Span::new(text, Style::Bold)]),
            Block::Line(line) => self.line(line),
            Block::Paragraph { lead, text, style } => self.paragraph(lead, &text, style),
            Block::Table(table) => self.lines.extend(table.lines(self.width)),
            Block::Headlines(headlines) => self.headlines(headlines),
            Block::Item(number, item) => {
                let mut line = Line::from([format!("  {number}  ").into()]);
                item.spans().iter().for_each(|span| line.push(span.clone()));
                self.line(line);
            }
            Block::Point(label, body) => self.point(label, body),
            Block::Flag(text) => self.paragraph("  ! ".into(), &text, Style::Warning),
            Block::Case(_) | Block::EndOfCase => {}
        }
    }

    fn line(&mut self, line: impl Into<Line>) {
        self.lines.push(line.into());
    }

    fn paragraph(&mut self, lead: Span, text: &str, style: Style) {
        let indent = lead.width();
        let mut lead = Some(lead);
        for part in wrapped(text, self.width.saturating_sub(indent)) {
            let lead = lead.take().unwrap_or_else(|| " ".repeat(indent).into());
            self.line([lead, Span::new(part, style)]);
        }
    }

    /// `     · evidence`, `     cure    make it otherwise`
    fn point(&mut self, label: &str, body: Body) {
        let indent = " ".repeat(POINT);
        let lead = match label {
            "·" => Span::from(format!("{indent}· ")),
            label => Span::new(format!("{indent}{label:<LABEL$}"), Style::Dim),
        };
        match body {
            Body::Text(text, style) => self.paragraph(lead, &text, style),
            Body::Line(body) => {
                let mut line = Line::from([lead]);
                body.spans().iter().for_each(|span| line.push(span.clone()));
                self.line(line);
            }
        }
    }

    /// Sentences with their facts in columns; what does not fit beside the sentences stands below each, for all alike.
    fn headlines(&mut self, headlines: Vec<Headline>) {
        let mut widths = [0; 4];
        for Headline { sentence, facts, .. } in &headlines {
            let of_facts = facts.iter().map(|fact| Span::from(fact.as_str()).width());
            for (widest, width) in widths.iter_mut().zip([sentence.width()].into_iter().chain(of_facts)) {
                *widest = width.max(*widest);
            }
        }
        let fits = |facts: &usize| widths[..=*facts].iter().sum::<usize>() + 2 * facts <= self.width;
        let beside = (2..widths.len()).rev().find(fits).unwrap_or(0);
        for headline in headlines {
            self.headline(headline, &widths, beside);
        }
    }

    fn headline(&mut self, headline: Headline, widths: &[usize; 4], beside: usize) {
        let Headline { sentence, facts, remarks } = headline;
        let (first, below) = facts.split_at(beside);
        if first.is_empty() {
            self.paragraph(Span::default(), sentence.text(), sentence.style());
        } else {
            let mut line = Line::default();
            let space = widths[0] - sentence.width();
            line.push(sentence);
            line.space(space);
            for (fact, width) in first.iter().zip(&widths[1..]) {
                let fact = Span::from(fact.as_str());
                let space = width - fact.width();
                line.space(2);
                line.push(fact);
                line.space(space);
            }
            self.line(line);
        }
        let below: Vec<&str> = below.iter().map(String::as_str).filter(|fact| !fact.is_empty()).collect();
        if !below.is_empty() {
            self.line([Span::new(format!("  {}", below.join("  ")), Style::Dim)]);
        }
        for remark in remarks {
            match remark {
                Body::Line(line) => self.line(line),
                Body::Text(text, style) => self.paragraph("    ".into(), &text, style),
            }
        }
    }
}
