//! The diagnoses: what it costs and what to do first, the evidence folded in.

use inodyne_model::finding::{Finding, Proof};

use super::builder::Html;
use crate::text::case::Case;
use crate::units::{duration_beside, percent};

pub(super) fn show(page: &mut Html, case: &Case<'_>) {
    if case.findings.is_empty() {
        return;
    }
    page.element("h3", &[], "Findings");
    for finding in &case.findings {
        let class = if finding.bound { "finding bound" } else { "finding" };
        page.inside("article", &[("class", class)], |page| one(page, finding));
    }
}

fn one(page: &mut Html, finding: &Finding) {
    page.inside("h4", &[], |page| {
        page.element("code", &[], &finding.id);
        page.text(&format!(" concerns {} of the time", percent(finding.share_of_wall)));
    });
    page.element("p", &[], &finding.title);
    prediction(page, finding);
    page.inside("ul", &[("class", "cure")], |page| {
        for cure in &finding.cure {
            page.element("li", &[], cure);
        }
    });
    if let Some(proof) = &finding.proved {
        proved(page, proof);
    }
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

fn prediction(page: &mut Html, finding: &Finding) {
    let predicted = &finding.predicted;
    let now = predicted.now_ns;
    let time = |ns| duration_beside(ns, now);
    page.inside("p", &[], |page| {
        if finding.bound {
            page.text(&format!("At best {} instead of {}.", time(predicted.wall_ns), time(now)));
            return;
        }
        page.text("Expect ");
        page.element("b", &[("class", "good")], &time(predicted.wall_ns));
        page.text(&format!(
            " [{}, {}] instead of {}: saves {}.",
            time(predicted.low_ns),
            time(predicted.high_ns),
            time(now),
            time(now.saturating_sub(predicted.wall_ns))
        ));
    });
}

fn proved(page: &mut Html, proof: &Proof) {
    let (class, verdict) =
        if proof.within { ("good", "as predicted") } else { ("warning", "outside of what was predicted") };
    let time = |ns| duration_beside(ns, proof.base_ns);
    page.inside("p", &[], |page| {
        page.text(&format!("Proved: {} instead of {}, ", time(proof.wall_ns), time(proof.base_ns)));
        page.element("span", &[("class", class)], verdict);
        page.text(&format!(": saves {}. ", percent(1.0 - proof.ratio)));
        page.element("span", &[("class", "dim")], &format!("{}; {} pairs of runs.", proof.how, proof.pairs));
    });
}
