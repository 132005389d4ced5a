//! How long single calls took: the distribution over the calls of a trace, whereas the table of calls has sums.

use inodyne_model::Nanos;
use inodyne_model::histogram::Histogram;
use inodyne_model::syscall::SyscallStats;

use super::block::Page;
use super::table::{Column, RowKind, Table};
use super::value::{Cell, Value};
use crate::units::counted;

/// At most this many calls are shown, those with the most time; the JSON has all.
const MOST_CALLS: usize = 8;
/// With fewer calls there is no distribution.
const LEAST_CALLS: u64 = 5;

/// Adds the table of the calls that were made often enough.
pub(super) fn show(page: &mut Page<'_>, calls: &[SyscallStats]) {
    let calls: Vec<&SyscallStats> = calls.iter().filter(|call| call.calls >= LEAST_CALLS).collect();
    if calls.is_empty() {
        return;
    }
    page.heading("Single calls, in µs");
    let columns = [
        Column::text("").yielding().naming(),
        Column::number("calls").key("calls"),
        Column::number("min").key("min_ns"),
        Column::number("mean"),
        Column::number("median").key("p50_ns"),
        Column::number("max").key("max_ns"),
        Column::number("sd"),
        Column::text("log2 histogram"),
    ];
    let mut table = Table::new("single", columns);
    for (at, call) in calls.iter().enumerate() {
        table.push(if at < MOST_CALLS { RowKind::Plain } else { RowKind::Hidden }, row(call));
    }
    table.hidden = counted(table.hidden_rows() as u64, "call with less time", "calls with less time");
    page.table(table);
}

fn row(call: &SyscallStats) -> [Cell; 8] {
    let mean = Nanos(call.wall_ns.0.checked_div(call.calls).unwrap_or_default());
    let sd = Nanos(call.histogram.sd_ns(mean, call.max_ns).round() as u64);
    let [min, mean, median, max, sd] = [call.min_ns, mean, call.p50_ns, call.max_ns, sd].map(Cell::micros);
    let shape = Cell::of(Value::Shape(by_octave(&call.histogram)));
    [Cell::of(&call.name), Cell::grouped(call.calls), min, mean, median, max, sd, shape]
}

/// How many calls took between one power of two of nanoseconds and the next, from the shortest to the longest.
fn by_octave(histogram: &Histogram) -> Vec<u64> {
    /// Anything shorter cannot be told from this.
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
