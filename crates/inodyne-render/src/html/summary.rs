//! The card on top of a page: what came out, three numbers, and the time as bars. What it says is decided in `report/card.rs`, and
//! `--format svg-card` draws the same.

use super::builder::Html;
use super::pictures;
use crate::report::card::{Bar, Card};

pub(super) fn show(page: &mut Html, said: &Card) {
    page.inside("section", &[("class", "summary"), ("aria-label", "Summary")], |page| {
        // What several cases have in common is the title of the page.
        let is_alone = said.bars.len() == 1;
        if is_alone {
            page.inside("h2", &[], |page| {
                page.element("code", &[], &said.title);
                page.text(&format!(" {}", said.place));
            });
            page.element("p", &[("class", "reason")], &said.reason);
        }
        for (verdict, facts) in &said.verdicts {
            // For a single case the time is one of the numbers, and the rest is what it could be.
            let (of_verdict, of_facts) = if is_alone { ("dim", "good") } else { ("reason", "dim") };
            page.inside("p", &[], |page| {
                if said.numbers.iter().all(|(number, _)| number != verdict) {
                    page.element("span", &[("class", of_verdict)], verdict);
                    page.text(" ");
                }
                if !facts.is_empty() {
                    page.element("span", &[("class", of_facts)], facts);
                }
            });
        }
        page.inside("div", &[("class", "numbers")], |page| {
            for (number, what) in &said.numbers {
                page.inside("div", &[], |page| {
                    page.element("b", &[("class", "time")], number);
                    page.element("span", &[("class", "dim")], what);
                });
            }
        });
        said.bars.iter().for_each(|one| bar(page, one));
        if !said.others.is_empty() {
            page.element("p", &[("class", "dim")], &said.others);
        }
        page.inside("ul", &[("class", "key")], |page| {
            for (state, words, right) in &said.legend {
                page.inside("li", &[], |page| {
                    pictures::swatch(page, *state);
                    page.element("span", &[], words);
                    page.element("span", &[("class", "n")], right);
                });
            }
        });
        page.element("p", &[("class", "dim")], &said.trust);
    });
}

/// A case: its name and time above its bar.
fn bar(page: &mut Html, of: &Bar) {
    if !of.name.is_empty() {
        page.inside("p", &[("class", "of-bar")], |page| {
            page.element("span", &[], &of.name);
            page.element("span", &[("class", "n")], &of.time);
        });
    }
    pictures::stacked(page, &of.parts);
}
