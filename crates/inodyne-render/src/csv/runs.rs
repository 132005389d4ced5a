//! Every run, and what the runs of a case say together.

use inodyne_model::metric::Metric;
use inodyne_model::recording::Recording;
use inodyne_model::run::Exit;
use inodyne_model::statistics::{RunStatistics, Times};

use super::{case, field, table};

/// A row for each run, in the order of time.
pub(super) fn runs(recording: &Recording) -> String {
    let columns = [
        "run",
        "place",
        "command",
        "cache",
        "block",
        "traced",
        "wall_ns",
        "durable_ns",
        "user_ns",
        "sys_ns",
        "voluntary_switches",
        "involuntary_switches",
        "major_faults",
        "minor_faults",
        "max_rss_bytes",
        "device_read_bytes",
        "device_write_bytes",
        "exit_code",
        "exit_signal",
    ];
    let rows = recording.runs.iter().enumerate().map(|(number, run)| {
        let [place, command, cache] = case(recording, run.place, run.command, run.cache);
        let (code, signal) = match run.exit {
            Exit::Code(code) => (Some(code), None),
            Exit::Signal(signal) => (None, Some(signal)),
        };
        [
            number.to_string(),
            place,
            command,
            cache,
            run.block.to_string(),
            run.traced.to_string(),
            run.wall_ns.0.to_string(),
            field(run.durable_ns.map(|ns| ns.0)),
            run.user_ns.0.to_string(),
            run.sys_ns.0.to_string(),
            run.voluntary_switches.to_string(),
            run.involuntary_switches.to_string(),
            run.major_faults.to_string(),
            run.minor_faults.to_string(),
            run.max_rss_bytes.to_string(),
            field(run.device_read_bytes),
            field(run.device_write_bytes),
            field(code),
            field(signal),
        ]
    });
    table(columns, rows)
}

/// A row for each case, and a second one where times to durable were measured: how its untraced runs spread, and what
/// about them asks for a second look.
pub(super) fn statistics(recording: &Recording) -> String {
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
    ];
    let rows = recording.statistics.iter().flat_map(|found| {
        let durable = found.durable.clone().map(|times| (Metric::Durable, times));
        let times = [(Metric::Wall, found.to_exit())].into_iter().chain(durable);
        times.map(move |(metric, times)| of_times(recording, found, metric, &times))
    });
    table(columns, rows)
}

fn of_times(recording: &Recording, found: &RunStatistics, metric: Metric, times: &Times) -> [String; 21] {
    let [place, command, cache] = case(recording, found.place, found.command, found.cache);
    let Times { spread, outliers, trend, change_point: change, modes } = times;
    [
        place,
        command,
        cache,
        metric.to_string(),
        spread.n.to_string(),
        found.failed.to_string(),
        spread.min_ns.0.to_string(),
        spread.mean_ns.0.to_string(),
        spread.median_ns.0.to_string(),
        spread.max_ns.0.to_string(),
        spread.sd_ns.0.to_string(),
        outliers.len().to_string(),
        field(trend.map(|trend| trend.slope_ns_per_run)),
        field(trend.map(|trend| trend.p)),
        field(change.map(|change| change.run)),
        field(change.map(|change| change.before_ns.0)),
        field(change.map(|change| change.after_ns.0)),
        field(change.map(|change| change.p)),
        field(modes.map(|modes| modes.low_ns.0)),
        field(modes.map(|modes| modes.high_ns.0)),
        field(modes.map(|modes| modes.high_runs)),
    ]
}
