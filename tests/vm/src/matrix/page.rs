//! `docs/kernels.md`: the table of kernels and features.

use std::fmt::Write as _;

use super::{Check, Outcome, Results, checks};
use crate::kernel::Entry;

/// A reason longer than this is cut: the page is no log.
const MOST: usize = 220;

/// The page as Markdown.
#[must_use]
pub fn page(all: &[(Entry, Results)]) -> String {
    let checks = checks();
    let (refusals, features): (Vec<&Check>, Vec<&Check>) = checks.iter().partition(|check| check.refusal);
    let mut text = String::from(
        "# Kernels\n\nWritten by `make test-kernels`, which boots each of these kernels in a virtual machine and tries there what the \
         columns say\n(`tests/vm/checks.toml`). A number points to why it failed.\n\n",
    );
    let mut notes = Vec::new();
    let supported: Vec<_> = all.iter().filter(|(entry, _)| entry.supported).collect();
    table(&mut text, &supported, &features, &mut notes);
    let others: Vec<_> = all.iter().filter(|(entry, _)| !entry.supported).collect();
    if !others.is_empty() {
        text +=
            "\nOlder kernels are not supported. What is tried there is that inodyne says so and does nothing else.\n\n";
        table(&mut text, &others, &refusals, &mut notes);
    }
    if !notes.is_empty() {
        text.push('\n');
    }
    for (number, note) in notes.iter().enumerate() {
        writeln!(text, "{}. {note}", number + 1).expect("text");
    }
    text += "\n## What was booted\n\n| kernel | `uname -r` | package | inodyne |\n|---|---|---|---|\n";
    for (entry, results) in all {
        let Results { release, package, .. } = results;
        let tried = tried(results).join(", ");
        writeln!(text, "| {} | {release} | {package} | {tried} |", entry.name).expect("text");
    }
    text
}

/// Each inodyne that something was tried with, in the order of the checks.
fn tried(results: &Results) -> Vec<&str> {
    let mut tried: Vec<&str> = Vec::new();
    for outcome in &results.outcomes {
        if !tried.contains(&outcome.inodyne.as_str()) {
            tried.push(&outcome.inodyne);
        }
    }
    tried
}

fn table(text: &mut String, all: &[&(Entry, Results)], checks: &[&Check], notes: &mut Vec<String>) {
    let titles: Vec<&str> = checks.iter().map(|check| check.title.as_str()).collect();
    writeln!(text, "| kernel | {} |\n|---|{}", titles.join(" | "), "---|".repeat(titles.len())).expect("text");
    for (entry, results) in all {
        let cells: Vec<String> = checks
            .iter()
            .map(|check| match results.outcomes.iter().find(|outcome| outcome.check == check.name) {
                None => "not tried".to_owned(),
                Some(outcome) => cell(outcome, notes),
            })
            .collect();
        writeln!(text, "| {} | {} |", entry.name, cells.join(" | ")).expect("text");
    }
}

fn cell(outcome: &Outcome, notes: &mut Vec<String>) -> String {
    let word = if outcome.passed { "yes" } else { "**no**" };
    let said = if outcome.note.is_empty() { word.to_owned() } else { format!("{word}: {}", escaped(&outcome.note)) };
    if outcome.passed {
        return said;
    }
    let reason = escaped(&outcome.reason);
    let number = notes.iter().position(|note| *note == reason).unwrap_or_else(|| {
        notes.push(reason);
        notes.len() - 1
    });
    format!("{said} ({})", number + 1)
}

fn escaped(text: &str) -> String {
    let mut cut: String = text.chars().take(MOST).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut.replace('|', "\\|").replace('<', "&lt;").replace('_', "\\_").replace('*', "\\*")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn outcome(passed: bool, note: &str, reason: &str) -> Outcome {
        let (check, inodyne, wall) = ("run".into(), "inodyne 1 (abc)".into(), Duration::ZERO);
        Outcome { check, passed, note: note.into(), reason: reason.into(), inodyne, wall }
    }

    #[test]
    fn every_inodyne_that_was_tried_is_named_once() {
        let of = |inodyne: &str| Outcome { inodyne: inodyne.into(), ..outcome(true, "", "") };
        let outcomes = ["b", "a", "b"].map(of).to_vec();
        let results = Results { kernel: "6.1".into(), release: "6.1.0".into(), package: "linux 1".into(), outcomes };
        assert_eq!(tried(&results), ["b", "a"]);
    }

    #[test]
    fn the_same_reason_has_the_same_number() {
        let mut notes = Vec::new();
        assert_eq!(cell(&outcome(true, "5 of 5", ""), &mut notes), "yes: 5 of 5");
        assert_eq!(cell(&outcome(false, "", "too | old"), &mut notes), "**no** (1)");
        assert_eq!(cell(&outcome(false, "", "other"), &mut notes), "**no** (2)");
        assert_eq!(cell(&outcome(false, "1", "too | old"), &mut notes), "**no**: 1 (1)");
        assert_eq!(notes, ["too \\| old", "other"]);
    }
}
