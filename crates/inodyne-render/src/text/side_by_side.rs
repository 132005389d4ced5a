//! The same command in several places: what was measured, in one line each, with the score of a prediction.

use inodyne_model::finding::Finding;
use inodyne_model::recording::Recording;

use super::Page;
use super::case::Case;
use crate::line::{Span, Style};
use crate::units::duration_beside;

/// A longer command is cut: it stands in full above.
const LONGEST_COMMAND: usize = 24;

/// Shows every pair of a command's first place and another one in the same state of the caches.
pub(super) fn show(page: &mut Page, recording: &Recording, cases: &[Case<'_>]) {
    let mut first = true;
    for command in 0..recording.commands.len() {
        let of_command: Vec<_> = cases.iter().filter(|case| case.key.1 == command).collect();
        for (at, base) in of_command.iter().enumerate() {
            let same_state = |other: &&&Case<'_>| other.cache() == base.cache();
            // Only the first place of each state is a base.
            if of_command[..at].iter().any(|earlier| earlier.cache() == base.cache()) {
                continue;
            }
            for other in of_command[at + 1..].iter().filter(same_state).filter(|other| other.key.0 != base.key.0) {
                if first {
                    page.heading("Side by side");
                    first = false;
                }
                effect(page, base, other);
            }
        }
    }
}

fn effect(page: &mut Page, base: &Case<'_>, other: &Case<'_>) {
    let (a, b) = (base.wall(), other.wall());
    let ratio = a.share_of(b);
    let verdict = match ratio {
        r if r >= 1.05 => format!("{r:.1} times as fast"),
        r if r > 0.0 && r <= 0.95 => format!("{:.1} times as slow", 1.0 / r),
        _ => "about the same".to_owned(),
    };
    let style = if ratio >= 1.05 { Style::Good } else { Style::Bold };
    let time = |ns| duration_beside(ns, a);
    let times = format!("{} on {}, {} on {}: ", time(a), base.place_name(), time(b), other.place_name());
    page.line([
        Span::from("  "),
        Span::new(base.command(), Style::Bold).cut(LONGEST_COMMAND),
        Span::from(format!(", {}: {times}", base.cache())),
        Span::new(verdict, style),
    ]);
    for finding in scored(base, other) {
        let predicted = &finding.predicted;
        let hit = (predicted.low_ns..=predicted.high_ns).contains(&b);
        let interval = format!("[{}, {}]", time(predicted.low_ns), time(predicted.high_ns));
        let score = if hit { "true" } else { "missed" };
        page.line([
            Span::from(format!("    predicted without {}: {} {interval}: ", finding.id, time(predicted.wall_ns))),
            Span::new(score, if hit { Style::Good } else { Style::Warning }),
        ]);
    }
}

/// Findings of the one place whose cure the other one is: the same kind of file system, made otherwise, without it.
fn scored<'a>(base: &Case<'a>, other: &Case<'a>) -> impl Iterator<Item = &'a Finding> {
    let kind = |case: &Case<'a>| case.place().map(|place| place.fs.as_str());
    let comparable = kind(base) == kind(other) && other.trace.is_some();
    let there: Vec<&str> = other.findings.iter().map(|finding| finding.id.as_str()).collect();
    let is_cured = move |finding: &&Finding| !there.contains(&finding.id.as_str());
    base.findings.iter().copied().filter(move |finding| comparable && !finding.bound && is_cured(finding)).take(1)
}
