//! The table of system calls: sorts by any column, with the distribution of the calls' times in each row.

use inodyne_model::Nanos;
use inodyne_model::count::Grouped;
use inodyne_model::histogram::Histogram;
use inodyne_model::syscall::SyscallStats;
use inodyne_model::trace::Trace;

use super::builder::{Column, Html};
use crate::units::{duration, micros, seconds};

/// The histograms of all rows share an axis from here …
const LEAST_NS: f64 = 100.0;
/// … to here, in powers of ten.
const DECADES: f64 = 7.0;
const WIDTH: f64 = 140.0;
const HEIGHT: f64 = 20.0;

pub(super) fn show(page: &mut Html, trace: &Trace) {
    page.element("h3", &[], "System calls");
    table(page, &trace.syscalls);
    if trace.by_comm.len() > 1 {
        page.inside("details", &[], |page| {
            page.element("summary", &[], "By command name");
            for comm in &trace.by_comm {
                page.element("h4", &[], &comm.comm);
                table(page, &comm.syscalls);
            }
        });
    }
}

fn table(page: &mut Html, calls: &[SyscallStats]) {
    let whole: Nanos = calls.iter().map(|call| call.wall_ns).sum();
    let number = |heading| Column::number(heading).sorting();
    let columns = [
        Column::text("syscall").sorting(),
        number("% time"),
        number("wall s"),
        number("cpu s"),
        number("blocked s"),
        number("ready s"),
        number("calls"),
        number("errors"),
        number("µs/call"),
        number("p50 µs"),
        number("p99 µs"),
        number("max µs"),
        Column::text("100 ns … 1 s, log."),
        Column::text("failed with"),
    ];
    let mut total = SyscallStats::new("total".to_owned());
    calls.iter().for_each(|call| total.merge(call));
    // The errors of the total would only repeat those of its parts.
    total.errors_by_errno.clear();
    page.table("calls", &columns, |page| {
        page.inside("tbody", &[], |page| calls.iter().for_each(|call| row(page, call, whole)));
        page.inside("tfoot", &[], |page| row(page, &total, whole));
    });
}

fn row(page: &mut Html, call: &SyscallStats, whole: Nanos) {
    let average = Nanos(call.wall_ns.0.checked_div(call.calls).unwrap_or(0));
    let errors: Vec<String> =
        call.errors_by_errno.iter().map(|(errno, n)| format!("{errno} {}", Grouped(*n))).collect();
    page.inside("tr", &[], |page| {
        page.element("th", &[("scope", "row")], &call.name);
        let share = call.wall_ns.share_of(whole) * 100.0;
        number(page, call.wall_ns.0, &format!("{share:.2}"));
        for ns in [call.wall_ns, call.cpu_ns, call.blocked_ns, call.runqueue_ns] {
            number(page, ns.0, &seconds(ns, whole));
        }
        number(page, call.calls, &Grouped(call.calls).to_string());
        number(page, call.errors, &Grouped(call.errors).to_string());
        for ns in [average, call.p50_ns, call.p99_ns, call.max_ns] {
            number(page, ns.0, &micros(ns));
        }
        page.inside("td", &[("class", "h")], |page| histogram(page, &call.histogram));
        page.element("td", &[("class", "errors")], &errors.join(", "));
    });
}

fn number(page: &mut Html, value: u64, shown: &str) {
    let value = value.to_string();
    let class = if value == "0" { "n dim" } else { "n" };
    page.element("td", &[("class", class), ("data-v", &value)], shown);
}

/// A bar for each third of an octave or so; what lies beyond the axis is at its ends.
fn histogram(page: &mut Html, histogram: &Histogram) {
    const BARS: usize = 70;
    let mut counts = [0u64; BARS];
    for bucket in histogram.buckets() {
        let middle = bucket.low_ns.midpoint(bucket.high_ns).max(1) as f64;
        let place = ((middle / LEAST_NS).log10() / DECADES).clamp(0.0, 1.0);
        let bar = &mut counts[((place * BARS as f64) as usize).min(BARS - 1)];
        *bar = bar.saturating_add(bucket.count);
    }
    let highest = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let bar = WIDTH / BARS as f64;
    let mut path = String::new();
    for (at, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        // What is there at all is seen.
        let height = (*count as f64 / highest * HEIGHT).max(1.0);
        path.push_str(&format!("M{:.1} {HEIGHT}v{:.1}h{:.1}v{:.1}z", at as f64 * bar, -height, bar, height));
    }
    let words = match (histogram.buckets().first(), histogram.buckets().last()) {
        (Some(first), Some(last)) => {
            format!(
                "{} calls between {} and {}",
                Grouped(histogram.count()),
                duration(Nanos(first.low_ns)),
                duration(Nanos(last.high_ns))
            )
        }
        _ => "no calls".to_owned(),
    };
    let view = format!("0 0 {WIDTH} {HEIGHT}");
    let attributes =
        [("viewBox", view.as_str()), ("class", "histogram"), ("role", "img"), ("aria-label", words.as_str())];
    page.inside("svg", &attributes, |page| {
        page.element("title", &[], &words);
        page.inside("path", &[("d", &path)], |_| {});
    });
}
