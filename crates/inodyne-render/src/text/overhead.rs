//! What the tracing cost, and what it did not see. A loss is a number here, never silence.

use std::collections::HashMap;
use std::fmt;

use inodyne_model::loss::Lost;
use inodyne_model::observed::Sample;
use inodyne_model::stack::{Frame, Stack, StackId};
use inodyne_model::trace::Trace;

use super::case::Case;
use super::page::Page;
use crate::line::{Span, Style};
use crate::units::percent;

pub(super) fn show(page: &mut Page, case: &Case<'_>) {
    let Some(trace) = case.trace else { return };
    let style = if trace.lost.total() == 0 { Style::Dim } else { Style::Warning };
    page.gap();
    page.paragraph(Span::default(), &in_a_line(trace), style);
}

/// Cost and losses in one line.
pub(crate) fn in_a_line(trace: &Trace) -> String {
    let losses = losses(&trace.lost);
    let lost = if losses.is_empty() { "nothing lost".to_owned() } else { format!("LOST: {}", losses.join(", ")) };
    let user = UserStacks::of(trace).map_or_else(String::new, |user| format!(", {user}"));
    format!("{} · {lost} · stacks unknown {}{user}", cost(trace), percent(unknown_stacks(trace)))
}

fn cost(trace: &Trace) -> String {
    let overhead = &trace.overhead;
    let cost = percent(overhead.ratio - 1.0);
    match overhead.estimated {
        _ if overhead.ratio <= 0.0 || !overhead.ratio.is_finite() => "Tracing cost unknown".to_owned(),
        true if cost.starts_with('<') => format!("Tracing cost less than {} (estimated)", &cost[1..]),
        true => format!("Tracing cost about {cost} (estimated)"),
        false if overhead.ratio < 1.0 => "Tracing cost lost in the noise of the runs".to_owned(),
        false => format!("Tracing cost {cost} (measured)"),
    }
}

fn losses(lost: &Lost) -> Vec<String> {
    let Lost { calls, threads, records, intervals, waits, samples, stacks, dtype, work, helpers, skipped } = *lost;
    let named = [
        (calls, "calls"),
        (threads, "threads"),
        (records, "records of ended threads"),
        (intervals, "intervals of the timeline"),
        (waits, "waits"),
        (samples, "samples"),
        (stacks, "stacks"),
        (dtype, "directory entries"),
        (work, "pieces of work"),
        (helpers, "wake-ups by others"),
        (skipped, "events skipped by the kernel"),
    ];
    named.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect()
}

/// What is not known of stacks in user mode, as parts of all of them.
struct UserStacks {
    /// Taken nowhere, or lost, or in no file.
    unknown: f64,
    /// In a file that has no symbol for the place.
    nameless: f64,
    /// That left all code before they reached the program's beginning: it keeps no frame pointers. One of a single frame looks whole.
    cut: f64,
}

impl fmt::Display for UserStacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [unknown, nameless, cut] = [self.unknown, self.nameless, self.cut].map(percent);
        write!(f, "in user mode unknown {unknown}, in files without symbols {nameless}, broken off {cut}")
    }
}

impl UserStacks {
    /// None where none were taken.
    fn of(trace: &Trace) -> Option<UserStacks> {
        let observed = &trace.observed;
        let stacks: HashMap<StackId, &Stack> = observed.stacks.iter().map(|stack| (stack.id, stack)).collect();
        let (mut all, mut sum) = (0.0, UserStacks { unknown: 0.0, nameless: 0.0, cut: 0.0 });
        // A thread that ends has no user mode to look at any more.
        let of_users = |sample: &&Sample| sample.user_mode || !sample.user_stack.is_none();
        let on_cpu = observed.samples.iter().filter(of_users).map(|sample| (sample.user_stack, sample.count));
        let off_cpu = observed.blocked_samples.iter().map(|sample| (sample.user_stack, sample.count));
        for (id, count) in on_cpu.chain(off_cpu) {
            let count = count as f64;
            all += count;
            match stacks.get(&id).map(|stack| (stack.frames.first(), stack.truncated)) {
                Some((Some(Frame::Symbol(_)), cut)) => sum.cut += if cut { count } else { 0.0 },
                Some((Some(Frame::InFile { .. }), cut)) => {
                    sum.nameless += count;
                    sum.cut += if cut { count } else { 0.0 };
                }
                Some((Some(Frame::Unknown { .. }) | None, _)) | None => sum.unknown += count,
            }
        }
        // Recordings of before have none.
        let of_blocked = observed.blocked_samples.iter().any(|sample| !sample.user_stack.is_none());
        let any = of_blocked || observed.samples.iter().any(|sample| !sample.user_stack.is_none());
        any.then(|| UserStacks { unknown: sum.unknown / all, nameless: sum.nameless / all, cut: sum.cut / all })
    }
}

/// The part of all waits and kernel samples whose stack is missing or begins with an address without a name.
fn unknown_stacks(trace: &Trace) -> f64 {
    let observed = &trace.observed;
    let stacks: HashMap<StackId, &Stack> = observed.stacks.iter().map(|stack| (stack.id, stack)).collect();
    let known = |id: &StackId| stacks.get(id).is_some_and(|s| s.frames.first().is_some_and(|f| f.symbol().is_some()));
    let waits = observed.waits.iter().map(|wait| (&wait.stack, wait.count));
    let samples = observed.samples.iter().filter(|sample| !sample.user_mode).map(|s| (&s.stack, s.count));
    let (mut all, mut unknown) = (0.0, 0.0);
    for (id, count) in waits.chain(samples) {
        all += count as f64;
        unknown += if known(id) { 0.0 } else { count as f64 };
    }
    if all > 0.0 { unknown / all } else { 0.0 }
}
