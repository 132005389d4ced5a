//! What about the runs of a case deserves a second look, one sentence each.

use inodyne_model::Nanos;
use inodyne_model::recording::Recording;
use inodyne_model::run::Run;
use inodyne_model::statistics::{RunStatistics, Times};

use crate::units::{counted, duration, duration_beside, percent};

/// Outliers that are listed with their times.
const MOST_LISTED: usize = 5;

/// The sentences; none for runs as they should be. First about the times to the end, then about those to durable.
pub(crate) fn all(recording: &Recording, found: &RunStatistics) -> Vec<String> {
    let mut flags = Vec::new();
    if found.failed > 0 {
        flags.push(format!("{} of {} failed", found.failed, counted(found.wall.n as u64, "run", "runs")));
    }
    flags.extend(of_times(recording, found, &found.to_exit(), |run| Some(run.wall_ns)));
    if let Some(times) = &found.durable {
        let durable = of_times(recording, found, times, |run| run.durable_ns);
        flags.extend(durable.into_iter().map(|flag| format!("to durable, {flag}")));
    }
    flags
}

fn of_times(
    recording: &Recording,
    found: &RunStatistics,
    times: &Times,
    of_run: fn(&Run) -> Option<Nanos>,
) -> Vec<String> {
    let Times { spread, outliers, trend, change_point, modes } = times;
    let mut flags = Vec::new();
    let time = |ns| duration_beside(ns, spread.median_ns);
    if let Some(trend) = trend {
        let (word, step) = (if trend.change > 0.0 { "more" } else { "less" }, trend.slope_ns_per_run.abs());
        let step = duration(Nanos(step.round() as u64));
        let change = percent(trend.change.abs());
        flags.push(format!(
            "a trend: every run takes {step} {word} than the one before, {change} {word} from the first to the last ({})",
            chance(trend.p)
        ));
    }
    if let Some(step) = change_point {
        flags.push(format!(
            "a step: {} from run {} on, {} before ({})",
            time(step.after_ns),
            number(recording, found, step.run),
            time(step.before_ns),
            chance(step.p)
        ));
    }
    if let Some(modes) = modes {
        let low = spread.n.saturating_sub(modes.high_runs);
        flags.push(format!(
            "two groups: {} around {} and {} around {}",
            counted(low as u64, "run", "runs"),
            time(modes.low_ns),
            modes.high_runs,
            time(modes.high_ns)
        ));
    }
    if !outliers.is_empty() {
        let far: Vec<String> = outliers
            .iter()
            .take(MOST_LISTED)
            .filter_map(|run| Some((run, of_run(recording.runs.get(*run)?)?)))
            .map(|(at, ns)| format!("{} (run {})", time(ns), number(recording, found, *at)))
            .collect();
        let more = if outliers.len() > MOST_LISTED { ", …" } else { "" };
        let word = if outliers.len() == 1 { "outlier" } else { "outliers" };
        flags.push(format!("{} {word}, kept: {}{more}", outliers.len(), far.join(", ")));
    }
    flags
}

fn chance(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

/// Which of the case's untraced runs it is, counted from 1.
fn number(recording: &Recording, found: &RunStatistics, run: usize) -> usize {
    let before = recording.runs.iter().take(run);
    before.filter(|run| !run.traced && run.key() == found.case).count() + 1
}
