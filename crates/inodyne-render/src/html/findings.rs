//! The diagnoses: what it costs and what to do first, the evidence folded in.

use inodyne_model::Nanos;
use inodyne_model::finding::Finding;

use super::builder::Html;
use crate::text::case::Case;
use crate::units::{duration_beside, percent};

pub(super) fn show(page: &mut Html, case: &Case<'_>) {
    if case.findings.is_empty() {
        return;
    }
    page.element("h3", &[], "Findings");
    for finding in &case.findings {
        page.inside("article", &[("class", "finding")], |page| one(page, finding, case.wall()));
    }
}

fn one(page: &mut Html, finding: &Finding, now: Nanos) {
    let time = |ns| duration_beside(ns, now);
    let predicted = &finding.predicted;
    page.inside("h4", &[], |page| {
        page.element("code", &[], &finding.id);
        page.text(&format!(" concerns {} of the time", percent(finding.share_of_wall)));
    });
    page.element("p", &[], &finding.title);
    page.inside("p", &[], |page| {
        page.text("Expect ");
        page.element("b", &[("class", "good")], &time(predicted.wall_ns));
        page.text(&format!(
            " [{}, {}] instead of {}: saves {}.",
            time(predicted.low_ns),
            time(predicted.high_ns),
            time(now),
            time(now.saturating_sub(predicted.wall_ns))
        ));
        if let Some(proof) = &finding.proved {
            let (class, words) =
                if proof.within { ("good", "as predicted") } else { ("warning", "outside of what was predicted") };
            page.element("span", &[("class", class)], &format!(" Proved: {}, {words}.", time(proof.wall_ns)));
        }
    });
    page.inside("ul", &[("class", "cure")], |page| {
        for cure in &finding.cure {
            page.element("li", &[], cure);
        }
    });
    page.inside("details", &[], |page| {
        page.element("summary", &[], "Evidence");
        page.inside("ul", &[], |page| {
            for line in &finding.evidence {
                page.element("li", &[], line);
            }
        });
        page.element("p", &[("class", "dim")], &format!("More: docs/findings/{}.md", finding.id));
    });
}
