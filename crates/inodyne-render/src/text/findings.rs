//! The diagnoses, each with its prediction, evidence and cure.

use inodyne_model::finding::Finding;

use super::case::Case;
use super::page::{Block, Body, Page};
use crate::line::{Line, Span, Style};
use crate::units::{duration_beside, percent};

pub(super) fn show(page: &mut Page, case: &Case<'_>) {
    if case.findings.is_empty() {
        return;
    }
    page.heading("Findings");
    for (at, finding) in case.findings.iter().enumerate() {
        show_one(page, at + 1, finding);
    }
}

fn show_one(page: &mut Page, number: usize, finding: &Finding) {
    let predicted = &finding.predicted;
    let now = predicted.now_ns;
    let time = |ns| duration_beside(ns, now);
    let saves = now.saturating_sub(predicted.wall_ns);
    let share = Span::new(percent(finding.share_of_wall), Style::Bold);
    let item = [Span::new(&finding.id, Style::Bold), "   concerns ".into(), share, " of the time".into()];
    page.add(Block::Item(number, item.into()));
    for evidence in &finding.evidence {
        page.point("·", evidence.as_str());
    }
    if finding.bound {
        let best = format!("{} instead of {}", time(predicted.wall_ns), time(now));
        page.point("at best", Line::from([Span::from(best)]));
    } else {
        let interval = format!(" [{}, {}]", time(predicted.low_ns), time(predicted.high_ns));
        let expected = [
            Span::new(time(predicted.wall_ns), Style::Good),
            interval.into(),
            format!(" instead of {}: saves {}", time(now), time(saves)).into(),
        ];
        page.point("expect", Line::from(expected));
    }
    let mut label = "cure";
    for cure in &finding.cure {
        page.point(label, cure.as_str());
        label = "";
    }
    if let Some(proof) = &finding.proved {
        let verdict = if proof.within { "as predicted" } else { "outside of what was predicted" };
        let style = if proof.within { Style::Good } else { Style::Warning };
        let (base, wall) = (proof.base_ns, proof.wall_ns);
        let measured = format!("{} instead of {}", duration_beside(wall, base), duration_beside(base, base));
        let score = format!(", {verdict}: saves {}", percent(1.0 - proof.ratio));
        page.point("proved", Line::from([measured.into(), Span::new(score, style)]));
        page.point("", Body::Text(format!("{}; {} pairs of runs", proof.how, proof.pairs), Style::Dim));
    }
    page.point("more", Line::from([Span::new(format!("docs/findings/{}.md", finding.id), Style::Dim)]));
}
