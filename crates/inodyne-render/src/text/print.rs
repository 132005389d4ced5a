//! A report in a terminal: lines of a given width, with or without colours.

use super::TextOptions;
use super::table::laid_out;
use crate::line::{Line, Span, Style, cut, escaped, wrapped};
use crate::report::block::{Block, Expectation, FindingBlock, Fold, Headline, Kind, Part, Remark, Title};

/// How far the points of a numbered item are indented.
const POINT: usize = 5;
/// Columns of a point's label.
const LABEL: usize = 8;
/// Columns that a command gets in a title, and more if there is room.
const LEAST_COMMAND: usize = 10;
/// Columns for what was seen of an expectation that holds.
const LONGEST_SEEN: usize = 24;

/// The report as text.
pub(super) fn print(parts: Vec<Part<'_>>, options: &TextOptions) -> String {
    let mut lines = Lines { width: options.width, lines: Vec::new() };
    for Part { kind, blocks } in parts {
        match kind {
            // There are too many of them.
            Kind::Case { fold: Fold::Within, .. } => continue,
            Kind::StudyPart { title, .. } => lines.heading(title),
            Kind::Expected => lines.heading("What was expected".to_owned()),
            Kind::Case { .. } | Kind::Differences | Kind::Runs | Kind::Study => {}
        }
        for block in blocks {
            lines.add(block);
        }
    }
    let mut out = String::new();
    for line in lines.lines {
        line.print(&mut out, options.width, options.colour);
    }
    out
}

impl Title {
    /// In the width of a report: the command is cut, and also the place if it is very long.
    pub(crate) fn line(&self, width: usize) -> Line {
        let place = cut(&escaped(&self.place), width / 2);
        let left = |others: &[&str]| {
            let others: usize = others.iter().map(|text| Span::from(*text).width()).sum();
            width.saturating_sub(others + ": ".len())
        };
        let command = Span::new(&self.command, Style::Bold);
        let likely = format!(", {}", self.likely);
        // The findings say it as well.
        let fits = left(&[&place, &self.time, &likely]) >= command.width().min(LEAST_COMMAND);
        let likely = if self.likely.is_empty() || !fits { String::new() } else { likely };
        let command = command.cut(left(&[&place, &self.time, &likely]).max(LEAST_COMMAND));
        [command, place.into(), ": ".into(), Span::new(&self.time, Style::Bold), Span::new(likely, Style::Good)].into()
    }
}

/// What a point says.
enum Body {
    Line(Line),
    Text(String, Style),
}

struct Lines {
    width: usize,
    lines: Vec<Line>,
}

impl Lines {
    fn add(&mut self, block: Block<'_>) {
        match block {
            Block::Gap => self.gap(),
            Block::Heading(text) => self.line([Span::new(text, Style::Bold)]),
            Block::CaseName(name) => {
                self.gap();
                self.paragraph(Span::default(), &name, Style::Bold);
            }
            Block::StudyTitle(title) => self.paragraph(Span::default(), &title, Style::Bold),
            Block::Title(title) => {
                self.line(title.line(self.width));
                if !title.reason.is_empty() {
                    self.paragraph(Span::default(), &title.reason, Style::Plain);
                }
            }
            Block::Remarks(remarks) => {
                for remark in remarks {
                    self.paragraph(Span::new("  ", Style::Dim), &remark, Style::Dim);
                }
            }
            Block::Line(line) => self.line(line),
            Block::Paragraph { lead, text, style } => self.paragraph(lead, &text, style),
            Block::Brief { text, style, most } => self.brief(&text, style, most),
            Block::Table(table) => {
                self.lines.extend(laid_out(&table, self.width).lines(self.width));
                self.lines.extend(table.below);
            }
            Block::Headlines(headlines) => self.headlines(headlines),
            Block::Finding(finding) => self.finding(finding),
            Block::Flag(text) => self.paragraph("  ! ".into(), &text, Style::Warning),
            Block::Expectations(all) => all.iter().for_each(|one| self.expectation(one)),
            Block::Folded(..) | Block::Widget(_) => {}
        }
    }

    /// A blank line, but not at the beginning.
    fn gap(&mut self) {
        if !self.lines.is_empty() {
            self.lines.push(Line::default());
        }
    }

    fn heading(&mut self, text: String) {
        self.gap();
        self.line([Span::new(text, Style::Bold)]);
    }

    fn finding(&mut self, finding: FindingBlock) {
        let FindingBlock { number, id, share, is_bound, evidence, prediction, cure, proved, more, .. } = finding;
        let share = Span::new(share, Style::Bold);
        let number = Span::from(format!("  {number}  "));
        self.line([number, Span::new(id, Style::Bold), "   accounts for ".into(), share, " of the time".into()]);
        let plain = |text: String| Body::Text(text, Style::Plain);
        for evidence in evidence {
            self.point("·", plain(evidence));
        }
        if let Some(prediction) = prediction {
            self.point(if is_bound { "at best" } else { "expect" }, Body::Line(prediction));
        }
        for (at, cure) in cure.into_iter().enumerate() {
            self.point(if at == 0 { "cure" } else { "" }, plain(cure));
        }
        if let Some((score, how)) = proved {
            self.point("proved", Body::Line(score));
            self.point("", Body::Text(how, Style::Dim));
        }
        self.point("more", Body::Line(Line::from([Span::new(more, Style::Dim)])));
    }

    fn expectation(&mut self, one: &Expectation) {
        if one.held {
            let seen = cut(&escaped(&one.seen), LONGEST_SEEN);
            self.paragraph(Span::new("  true   ", Style::Good), &format!("{}: {seen}", one.says), Style::Plain);
        } else {
            let text = format!("{}: expected {}, seen {}", one.says, one.expected, one.seen);
            self.paragraph(Span::new("  FALSE  ", Style::Warning), &text, Style::Bold);
            self.paragraph("         ".into(), &one.what, Style::Dim);
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

    /// Text over at most `most` lines; `…` stands for the rest.
    fn brief(&mut self, text: &str, style: Style, most: usize) {
        let mut lines = wrapped(text, self.width);
        if lines.len() > most {
            let rest = lines.split_off(most.saturating_sub(1)).join(" ");
            lines.push(cut(&rest, self.width));
        }
        lines.into_iter().for_each(|line| self.line([Span::new(line, style)]));
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

    /// Sentences with their facts in columns; facts that do not fit beside the sentences go below each, the same ones for all.
    fn headlines(&mut self, headlines: Vec<Headline>) {
        // Room for two names, each in full if it is short.
        let longest_name = self.width / 4;
        let headlines: Vec<(Span, Headline)> =
            headlines.into_iter().map(|headline| (headline.sentence(longest_name), headline)).collect();
        let mut widths = [0; 4];
        for (sentence, Headline { facts, .. }) in &headlines {
            let of_facts = facts.iter().map(|fact| Span::from(fact.as_str()).width());
            for (widest, width) in widths.iter_mut().zip([sentence.width()].into_iter().chain(of_facts)) {
                *widest = width.max(*widest);
            }
        }
        let fits = |facts: &usize| widths[..=*facts].iter().sum::<usize>() + 2 * facts <= self.width;
        let beside = (2..widths.len()).rev().find(fits).unwrap_or(0);
        for (sentence, headline) in headlines {
            self.headline(sentence, headline, &widths, beside);
        }
    }

    fn headline(&mut self, sentence: Span, headline: Headline, widths: &[usize; 4], beside: usize) {
        let (first, below) = headline.facts.split_at(beside);
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
        match headline.remark {
            Some(Remark::Line(line)) => self.line(line),
            Some(Remark::Text(text)) => self.paragraph("    ".into(), &text, Style::Dim),
            None => {}
        }
    }
}
