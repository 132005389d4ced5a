//! The same command in several places: what was measured, in one line each, with the score of a prediction.

use inodyne_model::recording::Recording;

use super::Page;
use super::case::Case;
use crate::line::{Line, Span, Style};
use crate::units::duration;

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
                let line = effect(base, other);
                page.line(line);
            }
        }
    }
}

fn effect(base: &Case<'_>, other: &Case<'_>) -> Line {
    let (a, b) = (base.wall(), other.wall());
    let ratio = a.share_of(b);
    let verdict = match ratio {
        r if r >= 1.05 => format!("{r:.1} times as fast"),
        r if r > 0.0 && r <= 0.95 => format!("{:.1} times as slow", 1.0 / r),
        _ => "about the same".to_owned(),
    };
    let style = if ratio >= 1.05 { Style::Good } else { Style::Bold };
    let times = format!("{} on {}, {} on {}: ", duration(a), base.place_name(), duration(b), other.place_name());
    let mut line = Line::from([
        Span::from("  "),
        Span::new(base.command(), Style::Bold).cut(30),
        Span::from(format!(", {}: {times}", base.cache())),
        Span::new(verdict, style),
    ]);
    if let Some(finding) = base.findings.first() {
        let predicted = &finding.predicted;
        let hit = if (predicted.low_ns..=predicted.high_ns).contains(&b) { "" } else { ", missed" };
        line.push(format!("; {} predicted {}{hit}", finding.id, duration(predicted.wall_ns)));
    }
    line
}
