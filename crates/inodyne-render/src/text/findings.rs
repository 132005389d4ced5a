//! The diagnoses, each with its prediction, evidence and cure.

use inodyne_model::finding::Finding;

use super::Page;
use super::case::Case;
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
    page.line(Line::from([
        Span::from(format!("  {number}  ")),
        Span::new(&finding.id, Style::Bold),
        Span::from("   concerns "),
        Span::new(percent(finding.share_of_wall), Style::Bold),
        Span::from(" of the time"),
    ]));
    for evidence in &finding.evidence {
        page.paragraph("     · ".into(), evidence, Style::Plain);
    }
    page.line(if finding.bound {
        Line::from([
            Span::new("     at best ", Style::Dim),
            Span::from(format!("{} instead of {}", time(predicted.wall_ns), time(now))),
        ])
    } else {
        Line::from([
            Span::new("     expect  ", Style::Dim),
            Span::new(time(predicted.wall_ns), Style::Good),
            Span::from(format!(" [{}, {}]", time(predicted.low_ns), time(predicted.high_ns))),
            Span::from(format!(" instead of {}: saves {}", time(now), time(saves))),
        ])
    });
    let mut lead = Span::new("     cure    ", Style::Dim);
    for cure in &finding.cure {
        let width = lead.width();
        page.paragraph(lead, cure, Style::Plain);
        lead = " ".repeat(width).into();
    }
    if let Some(proof) = &finding.proved {
        let verdict = if proof.within { "as predicted" } else { "outside of what was predicted" };
        let style = if proof.within { Style::Good } else { Style::Warning };
        let (base, wall) = (proof.base_ns, proof.wall_ns);
        let measured = format!("{} instead of {}", duration_beside(wall, base), duration_beside(base, base));
        let score = format!(", {verdict}: saves {}", percent(1.0 - proof.ratio));
        page.line([Span::new("     proved  ", Style::Dim), measured.into(), Span::new(score, style)]);
        let how = format!("{}; {} pairs of runs", proof.how, proof.pairs);
        page.paragraph("             ".into(), &how, Style::Dim);
    }
    let more = format!("docs/findings/{}.md", finding.id);
    page.line(Line::from([Span::new(format!("     more    {more}"), Style::Dim)]));
}
