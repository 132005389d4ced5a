//! A study: whether it came out as expected, then part by part its verdicts and its cases, then each expectation. Everything
//! that is known of a case is folded in beneath, since there are many.

use inodyne_model::comparison::Side;
use inodyne_model::recording::Recording;
use inodyne_model::study::{Expectation, Part, Study};

use super::builder::{Column, Html};
use super::{case, comparison, runs};
use crate::text::case::Case;
use crate::text::{study, verdict};

pub(super) fn contents(page: &mut Html, found: &Study) {
    page.inside("nav", &[("aria-label", "Contents")], |page| {
        for (number, part) in found.parts.iter().enumerate() {
            page.element("a", &[("href", &format!("#part-{number}"))], &part.name);
        }
        if !found.expectations.is_empty() {
            page.element("a", &[("href", "#expected")], "What was expected");
        }
        page.element("a", &[("href", "#cases")], "Case by case");
    });
}

pub(super) fn show(page: &mut Html, recording: &Recording, found: &Study, cases: &[Case<'_>]) {
    page.inside("section", &[("id", "study")], |page| {
        page.inside("p", &[("class", "reason")], |page| page.span(&study::summary(found)));
        for failed in found.failed() {
            let text = format!("{}: expected {}, seen {}", failed.says, failed.expected, failed.seen);
            page.element("p", &[("class", "warning")], &text);
        }
        page.element("p", &[], &found.about);
    });
    for (number, part) in found.parts.iter().enumerate() {
        let places = |case: &Case<'_>| part.places.contains(&case.key.0);
        let of_part: Vec<(usize, &Case<'_>)> = cases.iter().enumerate().filter(|(_, case)| places(case)).collect();
        page.inside("section", &[("id", &format!("part-{number}"))], |page| one(page, recording, part, &of_part));
    }
    if !found.expectations.is_empty() {
        page.inside("section", &[("id", "expected")], |page| {
            page.element("h2", &[], "What was expected");
            expectations(page, &found.expectations);
        });
    }
    page.inside("section", &[("id", "cases")], |page| {
        page.element("h2", &[], "Case by case");
        for (number, case) in cases.iter().enumerate() {
            page.inside("details", &[("class", "of-case")], |page| {
                page.element("summary", &[], &verdict::in_a_line(case));
                case::show(page, case, number);
            });
        }
    });
}

fn one(page: &mut Html, recording: &Recording, part: &Part, cases: &[(usize, &Case<'_>)]) {
    page.element("h2", &[], &study::title_of_part(part));
    comparison::of_part(page, recording, |side: Side| part.places.contains(&side.place));
    if cases.is_empty() {
        page.element("p", &[("class", "warning")], "nothing was measured");
    } else {
        page.element("h3", &[], "Medians of the runs");
        medians(page, cases);
        page.element("h3", &[], "Runs");
        runs::dots(page, cases);
    }
    for left_out in &part.left_out {
        page.element("p", &[("class", "warning")], &format!("left out: {left_out}"));
    }
}

/// A line for each case, which leads to all that is known of it, and what is diagnosed.
fn medians(page: &mut Html, cases: &[(usize, &Case<'_>)]) {
    let of_part: Vec<&Case<'_>> = cases.iter().map(|(_, case)| *case).collect();
    let table = study::table(&of_part).with_column("findings", of_part.iter().map(|case| study::diagnosed(case)));
    page.same("medians", &table, |page, row, name| match cases.get(row) {
        Some((number, _)) => page.element("a", &[("href", &format!("#case-{number}"))], name.text()),
        None => page.span(name),
    });
}

fn expectations(page: &mut Html, all: &[Expectation]) {
    let columns = [Column::text("holds"), Column::text("what"), Column::text("expected"), Column::text("seen")];
    page.table("expected", &columns, |page| {
        page.inside("tbody", &[], |page| {
            for one in all {
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
        });
    });
}
