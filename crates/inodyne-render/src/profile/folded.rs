//! Folded stacks: one line per stack, its frames from the root on with semicolons between them, then its nanoseconds. This is what
//! `flamegraph.pl` and similar tools read.

use std::collections::BTreeMap;
use std::fmt::Write;

use inodyne_model::trace::Trace;

use super::weighted::weighted;
use super::{Traced, View};

/// A line for each stack, sorted.
pub fn folded(traced: &Traced<'_>, view: View) -> String {
    let mut out = String::new();
    for (stack, ns) in sums(traced.trace, view) {
        // Writing to a string does not fail.
        let _ = writeln!(out, "{stack} {ns}");
    }
    out
}

/// The stacks of two traces with the nanoseconds of both, `before` first.
pub fn folded_difference(before: &Traced<'_>, after: &Traced<'_>, view: View) -> String {
    let mut both: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (stack, ns) in sums(before.trace, view) {
        both.entry(stack).or_default().0 = ns;
    }
    for (stack, ns) in sums(after.trace, view) {
        both.entry(stack).or_default().1 = ns;
    }
    let mut out = String::new();
    for (stack, (before, after)) in both {
        let _ = writeln!(out, "{stack} {before} {after}");
    }
    out
}

fn sums(trace: &Trace, view: View) -> BTreeMap<String, u64> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for stack in weighted(trace, view) {
        let names: Vec<String> = stack.frames.iter().map(|frame| folded_name(&frame.name)).collect();
        let sum = sums.entry(names.join(";")).or_default();
        *sum = sum.saturating_add(stack.ns().0);
    }
    sums
}

/// A name in which nothing ends the frame or looks like a count: readers split at semicolons and take numbers from the
/// end of the line.
pub(crate) fn folded_name(name: &str) -> String {
    let name = name.replace(';', ":");
    match name.trim().rsplit_once(char::is_whitespace) {
        Some((head, tail)) if tail.chars().all(|c| c.is_ascii_digit() || c == '.') => format!("{head}_{tail}"),
        _ if name.trim().is_empty() => "?".to_owned(),
        _ => name.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_be_taken_for_a_count_or_for_two_frames() {
        let names = ["a;b", "node 12", "f(int) [clone 3]", "  ", "x 1.5"].map(folded_name);
        assert_eq!(names, ["a:b", "node_12", "f(int) [clone 3]", "?", "x_1.5"]);
    }
}
