//! The report as one page for a browser: self-contained, works without a network and, except for the timeline, the flame graph
//! and sorting, without scripts.
//!
//! | module | what it knows |
//! |---|---|
//! | `summary` | the card on top: a recording at a glance |
//! | `blocks`, `tables`, `pictures` | how the blocks of a report look |
//! | `dots`, `treemap`, `timeline`, `stretches`, `flame` | the pictures that only a page has, two of them drawn by `page.js` |
//! | `builder` | elements and escaping: all text of a recording passes through it |
//!
//! `page.css` and `page.js` are written by hand and inserted into the page as they are. Data reaches the script as JSON in an
//! element of its own, and the script only ever turns it into text nodes.

mod blocks;
mod builder;
mod dots;
mod flame;
mod pictures;
mod stretches;
mod summary;
mod tables;
#[cfg(test)]
mod tests;
mod timeline;
mod treemap;

use inodyne_model::recording::Recording;

use crate::colours;
use crate::report::block::{Block, Fold, Kind, Part, Widget};
use crate::report::card::{self, Card};
use crate::report::{report, study_title};
use crate::units::{bytes, counted, date};
use builder::Html;

pub(crate) use builder::markup_free;

/// The page of a recording.
pub fn html(recording: &Recording) -> String {
    let mut parts = report(recording, None);
    // The result of a tuning comes first, and no single case represents all settings.
    let card = card::of(recording).filter(|_| recording.tuning.is_none());
    if card.is_some() {
        // For a single case the card says it all.
        let is_alone = |part: &&mut Part<'_>| matches!(part.kind, Kind::Case { fold: Fold::Alone, .. });
        let is_said = |block: &Block<'_>| matches!(block, Block::Title(_) | Block::Widget(Widget::Stacked(_)));
        parts.iter_mut().filter(is_alone).for_each(|part| part.blocks.retain(|block| !is_said(block)));
    }
    page(&parts, &title(recording), &circumstances(recording), card.as_ref())
}

/// The parts of a report as a page with a title, and a line about what was measured.
pub(crate) fn printed(parts: &[Part<'_>], title: &str, circumstances: &str) -> String {
    page(parts, title, circumstances, None)
}

fn page(parts: &[Part<'_>], title: &str, circumstances: &str, card: Option<&Card>) -> String {
    let mut page = Html::new(&format!("inodyne: {title}"), &format!("{}{}", colours::css(), include_str!("page.css")));
    page.inside("header", &[("class", "top")], |page| {
        page.element("h1", &[], title);
        page.element("p", &[("class", "dim")], circumstances);
        // The script unhides it.
        page.element("button", &[("type", "button"), ("id", "theme"), ("hidden", "")], "");
    });
    contents(&mut page, parts);
    page.inside("main", &[], |page| {
        card.into_iter().for_each(|card| summary::show(page, card));
        let (within, shown): (Vec<&Part<'_>>, Vec<&Part<'_>>) = parts.iter().partition(|part| is_folded(part));
        shown.into_iter().for_each(|one| part(page, one));
        if !within.is_empty() {
            page.inside("section", &[("id", "cases")], |page| {
                page.element("h2", &[], "Case by case");
                within.into_iter().for_each(|one| part(page, one));
            });
        }
    });
    page.finish(include_str!("page.js"))
}

fn is_folded(part: &Part<'_>) -> bool {
    matches!(part.kind, Kind::Case { fold: Fold::Within, .. })
}

fn title(recording: &Recording) -> String {
    if let Some(tuning) = &recording.tuning {
        return format!("Settings for {}", tuning.command);
    }
    match (&recording.study, recording.commands.as_slice()) {
        (Some(found), _) => study_title(found),
        (None, []) => "nothing was recorded".to_owned(),
        (None, [command]) => command.label.clone(),
        (None, commands) => format!("{} commands", commands.len()),
    }
}

/// A part with its heading; a case brings its own.
fn part(page: &mut Html, Part { kind, blocks }: &Part<'_>) {
    let section = |page: &mut Html, id: &str, heading: Option<&str>| {
        page.inside("section", &[("id", id)], |page| match heading {
            Some(heading) => page.fold("h2", |page| page.text(heading), |page| blocks::sections(page, blocks)),
            None => blocks::sections(page, blocks),
        });
    };
    match kind {
        Kind::Differences => section(page, "differences", Some("Differences")),
        Kind::Runs => section(page, "runs", Some("Runs")),
        Kind::Study => section(page, "study", None),
        Kind::StudyPart { number, title, .. } => section(page, &format!("part-{number}"), Some(title)),
        Kind::Expected => section(page, "expected", Some("What was expected")),
        Kind::Case { number, summary, fold, .. } => {
            let title = blocks.iter().find_map(|block| match block {
                Block::Title(title) => Some(title),
                _ => None,
            });
            let case = |page: &mut Html| {
                page.inside("section", &[("class", "case"), ("id", &format!("case-{number}"))], |page| match title {
                    Some(title) if *fold == Fold::Beside => {
                        page.fold("h2", |page| blocks::subject(page, title), |page| blocks::sections(page, blocks));
                    }
                    Some(title) => {
                        page.inside("h2", &[], |page| blocks::subject(page, title));
                        blocks::sections(page, blocks);
                    }
                    None => blocks::sections(page, blocks),
                });
            };
            match fold {
                Fold::Within => page.inside("details", &[("class", "of-case")], |page| {
                    page.element("summary", &[], summary);
                    case(page);
                }),
                Fold::Alone | Fold::Beside => case(page),
            }
        }
    }
}

/// Links to all parts, if there are several.
fn contents(page: &mut Html, parts: &[Part<'_>]) {
    let is_one_case = |part: &Part<'_>| matches!(part.kind, Kind::Case { fold: Fold::Alone, .. });
    if parts.is_empty() || parts.iter().any(is_one_case) {
        return;
    }
    page.inside("nav", &[("aria-label", "Contents")], |page| {
        for Part { kind, .. } in parts {
            let (id, name) = match kind {
                Kind::Differences => ("differences".to_owned(), "Differences"),
                Kind::Runs => ("runs".to_owned(), "Runs"),
                Kind::Case { number, name, fold: Fold::Beside, .. } => (format!("case-{number}"), name.as_str()),
                Kind::StudyPart { number, name, .. } => (format!("part-{number}"), name.as_str()),
                Kind::Expected => ("expected".to_owned(), "What was expected"),
                Kind::Case { .. } | Kind::Study => continue,
            };
            page.element("a", &[("href", &format!("#{id}"))], name);
        }
        if parts.iter().any(is_folded) {
            page.element("a", &[("href", "#cases")], "Case by case");
        }
    });
}

/// What was measured with; of the machine of an imported log nothing is known.
fn circumstances(recording: &Recording) -> String {
    let host = &recording.host;
    let machine = (host.cpus > 0).then(|| {
        let machine = if host.virtual_machine { "virtual machine" } else { "machine" };
        let cpus = counted(host.cpus.into(), "CPU", "CPUs");
        let model = if host.cpu_model.is_empty() { String::new() } else { format!(" ({})", host.cpu_model) };
        format!("{machine} with {cpus}{model}, {}", bytes(host.memory_bytes))
    });
    let kernel = (!host.kernel.is_empty()).then(|| format!("Linux {}", host.kernel));
    let (when, program) =
        (format!("{} UTC", date(recording.created_unix_s)), format!("inodyne {}", recording.program_version));
    [Some(when), machine, kernel, Some(program)].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
