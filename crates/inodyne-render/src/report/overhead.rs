//! What the tracing cost, and what it did not see. Losses are always given as numbers here, never left out.

use std::collections::HashMap;
use std::fmt;

use inodyne_model::Nanos;
use inodyne_model::loss::{self, Loss};
use inodyne_model::observed::Sample;
use inodyne_model::recording::Recording;
use inodyne_model::stack::{Frame, Stack, StackId};
use inodyne_model::trace::{Overhead, Refused, Trace};

use super::block::Page;
use super::case::Case;
use super::definition::{Definition, Show};
use super::names;
use super::table::Records;
use super::value::Value;
use crate::line::{Span, Style};
use crate::units::{duration, percent};

pub(super) const SECTION: Definition = Definition { name: "overhead", unasked: true, show: Show::Case(show), records };

fn show<'a>(page: &mut Page<'a>, case: &Case<'a>) {
    let Some(trace) = case.trace else { return };
    let style = if trace.lost.total() == 0 { Style::Dim } else { Style::Warning };
    page.gap();
    page.paragraph(Span::default(), &in_a_line(trace), style);
    for refused in &trace.refused {
        page.paragraph(Span::default(), &not_seen(refused), Style::Warning);
    }
}

/// From this share on, kernel stacks without names say something about how far causes can be believed.
const UNKNOWN: f64 = 0.01;

/// Whether to believe a trace, in a line: what tracing cost, what was lost, how many stacks of the kernel have no names.
pub(super) fn trust(trace: &Trace) -> (String, Style) {
    let style = if trace.lost.total() == 0 { Style::Dim } else { Style::Warning };
    if !trace.tracer.divides_calls() {
        return (in_a_line(trace), style);
    }
    let cost = cost(trace);
    // "About" says it already.
    let cost = cost.strip_suffix(" (estimated)").unwrap_or(&cost);
    // Kernel stacks say why it waited; what a program without frame pointers leaves out is shown with -v.
    let nameless = unknown_stacks(trace);
    let stacks = match nameless > UNKNOWN {
        true => format!(" · {} of kernel stacks without names", percent(nameless)),
        false => String::new(),
    };
    (format!("{cost} · {}{stacks}", lost(trace)), style)
}

/// What is not in the trace because this kernel refused it.
pub(super) fn not_seen(refused: &Refused) -> String {
    let Refused { feature, without, reason } = refused;
    format!("No {feature}: the kernel refused {reason}. So {without}.")
}

/// Cost and losses in one line.
fn in_a_line(trace: &Trace) -> String {
    if !trace.tracer.divides_calls() {
        let cost = if trace.overhead.ns_per_call > 0.0 { of_strace(trace) } else { String::new() };
        let inside = "What happened inside of a call is not in a log.";
        return format!("Made from a log of strace, whose own cost{cost} is in all times. {inside}");
    }
    let lost = lost(trace);
    let user = UserStacks::of(trace).map_or_else(String::new, |user| format!(", {user}"));
    format!("{} · {lost} · kernel stacks without names {}{user}", cost(trace), percent(unknown_stacks(trace)))
}

/// What strace cost here: per call, and as a part of the time.
fn of_strace(trace: &Trace) -> String {
    let Overhead { ratio, estimated, ns_per_call, .. } = trace.overhead;
    let how = if estimated { "estimated" } else { "measured" };
    let of_time = percent((1.0 - 1.0 / ratio.max(1.0)).max(0.0));
    format!(", {} a call and {of_time} of the time ({how}),", duration(Nanos(ns_per_call as u64)))
}

fn cost(trace: &Trace) -> String {
    let overhead = &trace.overhead;
    let cost = percent(overhead.ratio - 1.0);
    match overhead.estimated {
        _ if overhead.ratio <= 0.0 || !overhead.ratio.is_finite() => "Tracing overhead unknown".to_owned(),
        // No more is known of less than the smallest share that is told.
        true if overhead.at_least && cost.starts_with('<') => "Tracing overhead at least 0% (estimated)".to_owned(),
        true if overhead.at_least => format!("Tracing overhead at least {cost} (estimated)"),
        true if cost.starts_with('<') => format!("Tracing overhead less than {} (estimated)", &cost[1..]),
        true => format!("Tracing overhead about {cost} (estimated)"),
        false if overhead.ratio < 1.0 => "Tracing overhead below the noise of the runs".to_owned(),
        false => format!("Tracing overhead {cost} (measured)"),
    }
}

fn lost(trace: &Trace) -> String {
    if trace.lost.total() == 0 {
        "no events lost".to_owned()
    } else {
        format!("LOST: {}", loss::in_words(&trace.lost, &trace.skipped))
    }
}

/// What is not known about stacks in user mode, as parts of all of them.
struct UserStacks {
    /// Not taken, or lost, or not in any file.
    unknown: f64,
    /// In a file that has no symbol for the address.
    nameless: f64,
    /// Those that leave all code before they reach the program's beginning: it keeps no frame pointers. One of a single frame looks whole.
    cut: f64,
}

impl fmt::Display for UserStacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [unknown, nameless, cut] = [self.unknown, self.nameless, self.cut].map(percent);
        write!(f, "stacks in user mode: {unknown} unknown, {nameless} without symbols, {cut} incomplete")
    }
}

impl UserStacks {
    /// `None` if none were taken.
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
        // Older recordings have none.
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

/// A row for each trace: what it cost, and what it lost.
fn records(recording: &Recording) -> Records {
    let own = ["trace", "place", "command", "cache", "wall_ns", "ratio", "estimated", "at_least", "ns_per_call"];
    let more = ["ns_per_switch", "other_ns", "reader_ns"];
    let own = own.into_iter().chain(more).map(str::to_owned);
    let lost = Loss::ALL.iter().map(|loss| format!("lost_{}", loss.key()));
    let of_trace = |(number, trace): (usize, &Trace)| {
        let [place, command, cache] = names::values(recording, trace.key());
        let cost = &trace.overhead;
        // What strace cost is known if it ran here, and then as a whole.
        let is_ours = trace.tracer.divides_calls();
        let has_call = is_ours || cost.ns_per_call > 0.0;
        let if_known = |value: Value, is_known: bool| if is_known { value } else { Value::Nothing };
        let of_ratio = |value: Value| if_known(value, has_call || !cost.estimated);
        let own = [
            number.into(),
            place,
            command,
            cache,
            trace.wall_ns.into(),
            of_ratio(Value::Ratio(cost.ratio)),
            of_ratio(cost.estimated.into()),
            of_ratio(cost.at_least.into()),
        ];
        let per_switch = cost.ns_per_switch.map_or(Value::Nothing, Value::from);
        let of_programs = [cost.other_ns, cost.reader_ns].map(|ns| if_known(ns.into(), is_ours));
        let of_costs = [if_known(cost.ns_per_call.into(), has_call), per_switch].into_iter().chain(of_programs);
        let losses = trace.lost.counts().map(|(_, count)| Value::Count(count));
        let features: Vec<&str> = trace.refused.iter().map(|refused| refused.feature.as_str()).collect();
        let refused = Value::from(features.join(", "));
        own.into_iter().chain(of_costs).chain(losses).chain([refused]).collect()
    };
    Records {
        columns: own.chain(lost).chain(["refused".to_owned()]).collect(),
        rows: recording.traces.iter().enumerate().map(of_trace).collect(),
    }
}
