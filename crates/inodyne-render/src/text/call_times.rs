//! How long single calls took: the distribution over the calls of a trace, where the table of calls has sums.

use inodyne_model::Nanos;
use inodyne_model::count::Grouped;
use inodyne_model::histogram::Histogram;
use inodyne_model::syscall::SyscallStats;

use super::case::Case;
use super::page::Page;
use crate::line::{Span, Style};
use crate::table::{Align, Table};
use crate::units::{columns as sparkline, micros};

/// At most so many calls are shown, those with most time; the JSON has all.
const MOST_CALLS: usize = 8;
/// With fewer calls there is no distribution.
const LEAST_CALLS: u64 = 5;

pub(super) fn show(page: &mut Page, case: &Case<'_>) {
    let Some(trace) = case.trace else { return };
    let mut shown = trace.syscalls.iter().filter(|call| call.calls >= LEAST_CALLS).take(MOST_CALLS).peekable();
    if shown.peek().is_none() {
        return;
    }
    page.heading("Single calls, in microseconds");
    let right = |heading| (heading, Align::Right);
    let columns = [
        ("", Align::Left),
        right("calls"),
        right("min"),
        right("mean"),
        right("median"),
        right("max"),
        right("sd"),
        ("a column for each doubling", Align::Left),
    ];
    let mut table = Table::new(columns).yielding(0);
    for call in shown {
        table.row(row(call));
    }
    page.table(table);
}

fn row(call: &SyscallStats) -> Vec<Span> {
    let mean = Nanos(call.wall_ns.0.checked_div(call.calls).unwrap_or_default());
    let sd = Nanos(call.histogram.sd_ns(mean, call.max_ns).round() as u64);
    let times = [call.min_ns, mean, call.p50_ns, call.max_ns, sd].map(|ns| Span::from(micros(ns)));
    let shape = Span::new(sparkline(&by_octave(&call.histogram)), Style::Shape);
    let begin = [Span::from(call.name.as_str()), Grouped(call.calls).to_string().into()];
    begin.into_iter().chain(times).chain([shape]).collect()
}

/// How many calls took from one power of two of nanoseconds to the next, from the shortest to the longest.
fn by_octave(histogram: &Histogram) -> Vec<u64> {
    /// All that is shorter is as short as can be told.
    const SHORTEST: u64 = 32;
    let octave = |ns: u64| ns.max(SHORTEST).ilog2();
    let (Some(first), Some(last)) = (histogram.buckets().first(), histogram.buckets().last()) else {
        return Vec::new();
    };
    let lowest = octave(first.low_ns);
    let mut counts = vec![0u64; octave(last.low_ns).saturating_sub(lowest) as usize + 1];
    for bucket in histogram.buckets() {
        let at = octave(bucket.low_ns).saturating_sub(lowest) as usize;
        // Buckets are in rising order; a damaged recording's may not be.
        if let Some(count) = counts.get_mut(at) {
            *count = count.saturating_add(bucket.count);
        }
    }
    counts
}
