//! The blocks of a report as HTML.

use super::builder::{Html, class_of};
use super::{dots, flame, pictures, tables, timeline, treemap};
use crate::line::{Span, Style};
use crate::report::block::{Block, Expectation, FindingBlock, Headline, Remark, Title, Widget};

/// Names in a verdict are cut beyond this width.
const LONGEST_NAME: usize = 1_000;

/// The blocks of a part, in sections that begin with their headings.
pub(super) fn sections(page: &mut Html, blocks: &[Block<'_>]) {
    let first = blocks.iter().position(|block| heading(block).is_some()).unwrap_or(blocks.len());
    let (before, within) = blocks.split_at(first);
    show(page, before);
    for section in within.chunk_by(|_, next| heading(next).is_none()) {
        let words = heading(&section[0]).unwrap_or_default();
        let is_said = matches!(section[0], Block::Heading(_));
        let contents = if is_said { &section[1..] } else { section };
        page.fold("h3", |page| page.text(words), |page| show(page, contents));
    }
}

/// The heading of the section that a block begins.
fn heading<'b>(block: &'b Block<'_>) -> Option<&'b str> {
    match block {
        Block::Heading(text) => Some(text),
        Block::Widget(Widget::Timeline(trace)) => Some(timeline::heading(trace)),
        Block::Widget(Widget::Flame(trace)) => Some(flame::heading(trace)),
        _ => None,
    }
}

/// Blocks one after another.
fn show(page: &mut Html, blocks: &[Block<'_>]) {
    blocks.iter().for_each(|block| one(page, block));
}

fn one(page: &mut Html, block: &Block<'_>) {
    match block {
        // The title of a study is that of the page, and a case has a heading of its own.
        Block::Gap | Block::StudyTitle(_) | Block::CaseName(_) => {}
        Block::Heading(text) => page.element("h4", &[], text),
        Block::Line(text) => page.paragraph(text),
        Block::Paragraph { lead, text, style } => paragraph(page, lead, text, *style),
        Block::Brief { text, style, .. } => page.element("p", &[("class", class_of(*style))], text),
        Block::Table(table) => tables::show(page, table),
        Block::Title(of) => title(page, of),
        Block::Remarks(remarks) => page.inside("details", &[], |page| {
            page.element("summary", &[], "How it was measured");
            remarks.iter().for_each(|remark| page.element("p", &[("class", "dim")], remark));
        }),
        Block::Headlines(all) => headlines(page, all),
        Block::Finding(of) => finding(page, of),
        Block::Flag(text) => page.element("p", &[("class", "warning")], text),
        Block::Expectations(all) => expectations(page, all),
        Block::Folded(summary, blocks) => page.inside("details", &[], |page| {
            page.element("summary", &[], summary);
            show(page, blocks);
        }),
        Block::Widget(Widget::Timeline(trace)) => timeline::show(page, trace),
        Block::Widget(Widget::Flame(trace)) => flame::show(page, trace),
        Block::Widget(Widget::Stacked(trace)) => pictures::ledger(page, trace),
        Block::Widget(Widget::Dots(cases)) => dots::show(page, cases),
        Block::Widget(Widget::Treemap(tree)) => treemap::show(page, tree),
    }
}

/// Text after its lead. Only the words of the lead matter here: its spaces are for columns.
fn paragraph(page: &mut Html, lead: &Span, text: &str, style: Style) {
    page.inside("p", &[("class", class_of(style))], |page| {
        let words = lead.text().trim();
        if !words.is_empty() {
            page.span(&Span::new(format!("{words} "), lead.style()));
        }
        page.text(text);
    });
}

/// What ran where.
pub(super) fn subject(page: &mut Html, Title { command, place, .. }: &Title) {
    page.element("code", &[], command);
    page.text(place);
}

fn title(page: &mut Html, Title { time, likely, reason, .. }: &Title) {
    page.inside("p", &[("class", "verdict")], |page| {
        page.element("b", &[("class", "time")], time);
        if !likely.is_empty() {
            page.element("span", &[("class", "good")], likely);
        }
    });
    if !reason.is_empty() {
        page.element("p", &[("class", "reason")], reason);
    }
}

/// A sentence for each, and below it what it is based on, and what else there is to say about the time to the end.
fn headlines(page: &mut Html, all: &[Headline]) {
    let reach = pictures::reach(all.iter().map(|headline| &headline.whisker));
    for headline in all {
        let sentence = headline.sentence(LONGEST_NAME);
        page.inside("div", &[("class", "headline")], |page| {
            // All of them are large; only good or bad ones are coloured.
            let colour = if sentence.style() == Style::Bold { "" } else { class_of(sentence.style()) };
            page.element("p", &[("class", format!("said {colour}").trim_end())], sentence.text());
            pictures::whisker(page, &headline.whisker, reach);
            let facts: Vec<&str> = headline.facts.iter().map(String::as_str).filter(|fact| !fact.is_empty()).collect();
            page.element("p", &[("class", "dim")], &facts.join(" · "));
            match &headline.remark {
                Some(Remark::Line(of)) => page.inside("p", &[("class", "dim")], |page| page.line(of)),
                Some(Remark::Text(text)) => page.element("p", &[("class", "dim")], text),
                None => {}
            }
        });
    }
    page.inside("div", &[("class", "headline")], |page| {
        let key = "Dot: ratio of the times; line: its 95% interval, with an arrow where it goes on; left of the middle \
                   faster, right of it slower; the band is what counts as no difference.";
        page.element("p", &[("class", "dim")], key);
        pictures::scale(page, reach);
    });
}

/// What it costs and what to do come first, with the evidence collapsed.
fn finding(page: &mut Html, of: &FindingBlock) {
    let class = if of.is_bound { "finding bound" } else { "finding" };
    page.inside("article", &[("class", class)], |page| {
        page.inside("h4", &[], |page| {
            page.element("code", &[], &of.id);
            page.text(&format!(" accounts for {} of the time", of.share));
        });
        page.element("p", &[], &of.title);
        if let Some(prediction) = &of.prediction {
            page.inside("p", &[], |page| {
                page.text(if of.is_bound { "At best " } else { "Expect " });
                page.line(prediction);
                page.text(".");
            });
        }
        page.inside("ul", &[("class", "cure")], |page| of.cure.iter().for_each(|cure| page.element("li", &[], cure)));
        if let Some((score, how)) = &of.proved {
            page.inside("p", &[], |page| {
                page.text("Proved: ");
                page.line(score);
                page.text(". ");
                page.element("span", &[("class", "dim")], &format!("{how}."));
            });
        }
        page.inside("details", &[], |page| {
            page.element("summary", &[], "Evidence");
            page.inside("ul", &[], |page| of.evidence.iter().for_each(|line| page.element("li", &[], line)));
            page.element("p", &[("class", "dim")], &format!("More: {}", of.more));
        });
    });
}

fn expectations(page: &mut Html, all: &[Expectation]) {
    page.inside("div", &[("class", "scroll")], |page| {
        page.inside("table", &[("class", "expected")], |page| {
            page.inside("thead", &[], |page| {
                page.inside("tr", &[], |page| {
                    for heading in ["holds", "what", "expected", "seen"] {
                        page.element("th", &[("scope", "col")], heading);
                    }
                });
            });
            page.inside("tbody", &[], |page| all.iter().for_each(|one| expectation(page, one)));
        });
    });
}

fn expectation(page: &mut Html, one: &Expectation) {
    let (class, word) = if one.held { ("good", "true") } else { ("warning", "FALSE") };
    page.inside("tr", &[], |page| {
        page.element("td", &[("class", class)], word);
        page.inside("td", &[("class", "said")], |page| {
            page.text(&one.says);
            if one.what != one.says {
                page.element("code", &[("class", "via")], &one.what);
            }
        });
        page.element("td", &[], &one.expected);
        page.element("td", &[], &one.seen);
    });
}
