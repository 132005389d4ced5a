//! The verdict: what ran where and how long, then the plainest reason in one sentence. Two lines, before anything else.
//! Below them how the place was made, and what is unusual about the run.

use inodyne_model::finding::Finding;
use inodyne_model::metric::Metric;
use inodyne_model::place::{Limits, Place, Wear};
use inodyne_model::recording::Recording;
use inodyne_model::run::{CacheState, Exit};
use inodyne_model::statistics::{RunStatistics, Times};

use super::block::{Block, Page, Title};
use super::case::Case;
use super::definition::{Definition, Show};
use super::names;
use super::sentence;
use super::table::Records;
use super::throughput::Throughput;
use super::value::Value;
use super::window;
use crate::line::Style;
use crate::units::{bytes, counted, duration, duration_beside};

pub(super) const SECTION: Definition = Definition { name: "verdict", unasked: true, show: Show::Case(show), records };

fn show<'a>(page: &mut Page<'a>, case: &Case<'a>) {
    page.gap();
    page.add(Block::Title(title(case)));
    tell_doubts(page, case);
    if let Some(waiters) = case.window().and_then(window::waiters) {
        page.paragraph("  ".into(), &waiters, Style::Plain);
    }
    let remarks = remarks(case);
    if !remarks.is_empty() {
        page.add(Block::Remarks(remarks));
    }
}

/// Doubts, each in a paragraph. For a window nobody asked how long it would take, so they are not a warning there.
pub(super) fn tell_doubts(page: &mut Page<'_>, case: &Case<'_>) {
    let style = if case.window().is_some() { Style::Plain } else { Style::Warning };
    for doubt in doubts(case) {
        page.paragraph("  ".into(), &doubt, style);
    }
}

/// What speaks against the figures, and how the command ended if it did not succeed.
pub(super) fn doubts(case: &Case<'_>) -> Vec<String> {
    case.doubts().iter().cloned().chain(ending(case)).collect()
}

/// `find . on slow (ext4 -O ^filetype, cold): 0.334 s`
pub(crate) fn in_a_line(case: &Case<'_>) -> String {
    if let Some(trace) = case.window() {
        return format!("{}: {}", case.command(), window::extent(trace));
    }
    format!("{} on {} ({}): {}", case.command(), case.place_name(), circumstances(case), time(case))
}

/// The time to the end, and to durable if that was measured.
fn time(case: &Case<'_>) -> String {
    let wall = duration(case.wall());
    match case.statistics().and_then(|found| found.durable.as_ref()) {
        Some(times) => format!("{wall} to exit, {} to durable", duration(times.spread.median_ns)),
        None => wall,
    }
}

pub(super) fn title(case: &Case<'_>) -> Title {
    if let Some(trace) = case.window() {
        let (command, time, reason) = (case.command().to_owned(), window::extent(trace), window::division(trace));
        return Title { command, place: String::new(), time, likely: String::new(), reason };
    }
    Title {
        command: case.command().to_owned(),
        place: format!(" on {} ({})", case.place_name(), circumstances(case)),
        time: time(case),
        likely: likely(case).unwrap_or_default(),
        reason: sentence::of(case).unwrap_or_default(),
    }
}

/// `could be about 0.103 s if fixed`, if a cure is worth the change.
pub(super) fn likely(case: &Case<'_>) -> Option<String> {
    let is_promised = |finding: &&&Finding| !finding.bound && finding.is_an_answer() && case.doubts().is_empty();
    let finding = case.findings.first().filter(is_promised)?;
    Some(format!("could be about {} if fixed", duration_beside(finding.predicted.of(case.wall()), case.wall())))
}

fn circumstances(case: &Case<'_>) -> String {
    let place = case.place().map_or_else(String::new, |place| {
        // A label that is the description says the same already.
        if place.label.starts_with(&place.fs) { String::new() } else { with_options(place) }
    });
    let parts = [place, case.cache().to_string()];
    parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn with_options(place: &Place) -> String {
    if place.mkfs.is_empty() { place.fs.clone() } else { format!("{} {}", place.fs, place.mkfs.join(" ")) }
}

/// How the place was made, what was in it, and how cold it was.
fn remarks(case: &Case<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(place) = case.place().filter(|place| place.made_here) {
        let size = place.size_bytes.map_or_else(String::new, |size| format!(", {}", bytes(size)));
        let mkfs = if place.mkfs.is_empty() { String::new() } else { format!(", mkfs {}", place.mkfs.join(" ")) };
        let data = place.data.as_ref().map_or_else(String::new, |data| format!(", filled with {data}"));
        let mount =
            if place.mount_options.is_empty() { String::new() } else { format!(", mounted {}", place.mount_options) };
        remarks.push(format!("made here: {}{size}{mkfs}{mount}{data}", place.fs));
    }
    for place in case.place().into_iter().flat_map(with_below) {
        // A FUSE place has no device: what is slow there is the host of a share.
        let what = if place.fs == "fuse" { "host" } else { "device" };
        remarks.extend(place.limits.map(|limits| format!("slow {what}{}: {}", on(place, case), held_to(limits))));
        remarks.extend(place.wear.map(|wear| format!("used before{}: {}", on(place, case), worn(wear))));
    }
    for (file, value) in case.place().iter().flat_map(|place| &place.settings) {
        remarks.push(format!("changed: {file} = {value}"));
    }
    if case.cache() == CacheState::Cold {
        let run = case.traced_run().or_else(|| case.runs.first().copied());
        if let Some(read) = run.and_then(|run| run.device_read_bytes) {
            remarks.push(format!("cold: {} were read from the device", bytes(read)));
        }
    }
    remarks
}

/// The place and everything below it.
fn with_below(place: &Place) -> Vec<&Place> {
    std::iter::once(place).chain(place.below.iter().flat_map(with_below)).collect()
}

/// Which one it is, if it is not the place itself.
fn on(place: &Place, case: &Case<'_>) -> String {
    let is_itself = case.place().is_some_and(|itself| std::ptr::eq(itself, place));
    if is_itself { String::new() } else { format!(" ({} below)", place.fs) }
}

fn held_to(limits: Limits) -> String {
    let delay = limits.delay_ns.map(|delay| format!("answers {} later", duration(delay)));
    let bandwidth = limits.bandwidth_bytes_per_s.map(|bandwidth| format!("moves {} a second", bytes(bandwidth)));
    let iops = limits.iops.map(|iops| format!("answers {} a second", counted(iops.into(), "request", "requests")));
    [delay, bandwidth, iops].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn worn(wear: Wear) -> String {
    let Wear { rounds, files_made, files_left, used_percent, .. } = wear;
    let times = if rounds == 0 {
        String::new()
    } else {
        format!("filled and half emptied {}, ", counted(rounds.into(), "time", "times"))
    };
    format!("{times}{files_left} of {files_made} files left, {used_percent}% full")
}

/// How the command ended, if it did not succeed.
fn ending(case: &Case<'_>) -> Option<String> {
    match case.runs.iter().map(|run| run.exit).find(|exit| !exit.success())? {
        Exit::Code(code) => Some(format!("the command ended with exit code {code}")),
        Exit::Signal(signal) => Some(format!("the command was killed by signal {signal}")),
    }
}

/// A row for each case, and a second one if times to durable were measured: how its untraced runs spread, and what
/// about them deserves a second look.
fn records(recording: &Recording) -> Records {
    let columns = [
        "place",
        "command",
        "cache",
        "metric",
        "n",
        "failed",
        "min_ns",
        "mean_ns",
        "median_ns",
        "max_ns",
        "sd_ns",
        "outliers",
        "trend_ns_per_run",
        "trend_p",
        "change_run",
        "change_before_ns",
        "change_after_ns",
        "change_p",
        "modes_low_ns",
        "modes_high_ns",
        "modes_high_runs",
        "bytes_per_s",
        "files_per_s",
        "calls_per_s",
    ];
    let cases = Case::all(recording);
    let rows = recording.statistics.iter().flat_map(|found| {
        let case = cases.iter().find(|case| case.key == found.case);
        let throughput = case.map(Throughput::of).unwrap_or_default();
        let durable = found.durable.clone().map(|times| (Metric::Durable, times));
        let times = [(Metric::Wall, found.to_exit())].into_iter().chain(durable);
        times.map(move |(metric, times)| values(recording, found, &metric, &times, throughput))
    });
    Records::new(columns, rows)
}

fn values(
    recording: &Recording,
    found: &RunStatistics,
    metric: &Metric,
    times: &Times,
    throughput: Throughput,
) -> [Value; 24] {
    let [place, command, cache] = names::values(recording, found.case);
    let Times { spread, outliers, trend, change_point: change, modes } = times;
    [
        place,
        command,
        cache,
        metric.to_string().into(),
        spread.n.into(),
        found.failed.into(),
        spread.min_ns.into(),
        spread.mean_ns.into(),
        spread.median_ns.into(),
        spread.max_ns.into(),
        spread.sd_ns.into(),
        outliers.len().into(),
        trend.map(|trend| trend.slope_ns_per_run).into(),
        trend.map(|trend| trend.p).into(),
        change.map(|change| change.run).into(),
        change.map(|change| change.before_ns).into(),
        change.map(|change| change.after_ns).into(),
        change.map(|change| change.p).into(),
        modes.map(|modes| modes.low_ns).into(),
        modes.map(|modes| modes.high_ns).into(),
        modes.map(|modes| modes.high_runs).into(),
        throughput.bytes.into(),
        throughput.files.into(),
        throughput.calls.into(),
    ]
}

#[cfg(test)]
mod tests {
    use inodyne_model::Nanos;

    use super::*;

    #[test]
    fn what_a_device_is_held_to_and_how_a_file_system_was_used_is_told() {
        let limits =
            Limits { delay_ns: Some(Nanos(2_000_000)), bandwidth_bytes_per_s: Some(50_000_000), iops: Some(200) };
        let delay = duration(Nanos(2_000_000));
        let expected = format!("answers {delay} later, moves 50.0 MB a second, answers 200 requests a second");
        assert_eq!(held_to(limits), expected);
        let wear = Wear { rounds: 3, files_made: 900, files_left: 400, used_percent: 80, ..Wear::default() };
        assert_eq!(worn(wear), "filled and half emptied 3 times, 400 of 900 files left, 80% full");
        assert_eq!(worn(Wear { rounds: 0, ..wear }), "400 of 900 files left, 80% full");
        let below = Place { fs: "ext4".to_owned(), ..Place::default() };
        let place = Place { below: vec![below], ..Place::default() };
        assert_eq!(with_below(&place).len(), 2);
    }
}
