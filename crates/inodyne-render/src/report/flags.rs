//! What about the runs of a case deserves a second look, one sentence each.

use inodyne_model::Nanos;
use inodyne_model::recording::Recording;
use inodyne_model::run::Run;
use inodyne_model::statistics::{RunStatistics, Times};

use crate::units::{counted, duration, duration_beside, percent};

/// Outliers that are listed with their times.
const MOST_LISTED: usize = 5;
/// The first run is remarked on if it took so many times as long as each of the others, or they as it.
const FIRST_DIFFERS: u64 = 2;

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
            "a trend: every run takes {step} {word} than the one before, from the first to the last {change} of the median ({})",
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
    if outliers.is_empty() && change_point.is_none() && modes.is_none() {
        let times: Vec<Nanos> = runs_of(recording, found).filter_map(|(_, run)| of_run(run)).collect();
        flags.extend(of_first(&times));
    }
    flags
}

/// Of few runs no statistics tell which are far from the others. The first may have found other caches, or other work: what it made
/// was there already when the others came.
fn of_first(times: &[Nanos]) -> Option<String> {
    let (first, others) = times.split_first()?;
    let (least, most) = (others.iter().min()?, others.iter().max()?);
    let differs = first.0 > most.0.saturating_mul(FIRST_DIFFERS) || first.0.saturating_mul(FIRST_DIFFERS) < least.0;
    (others.len() > 1 && differs).then(|| {
        format!(
            "the first run differs: it took {}, the others {} to {}",
            duration(*first),
            duration(*least),
            duration(*most)
        )
    })
}

fn chance(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

/// Which of the case's runs it is, counted from 1.
fn number(recording: &Recording, found: &RunStatistics, run: usize) -> usize {
    runs_of(recording, found).take_while(|(at, _)| *at < run).count() + 1
}

/// The case's untraced runs in the order of time, with their indices.
fn runs_of<'a>(recording: &'a Recording, found: &'a RunStatistics) -> impl Iterator<Item = (usize, &'a Run)> {
    recording.runs.iter().enumerate().filter(|(_, run)| !run.traced && run.key() == found.case)
}

#[cfg(test)]
mod tests {
    use inodyne_model::run::CacheState;
    use inodyne_model::sample;

    use super::*;
    use crate::report::case::Case;
    use crate::text::tests::explained;

    fn flags(milliseconds: &[u64]) -> Vec<String> {
        let mut recording = sample::empty();
        recording.places = vec![sample::ext4("ext4", &[])];
        recording.commands = vec![sample::command("rsync -a from to")];
        for ms in milliseconds {
            recording.push_run(sample::run(0, CacheState::AsIs, false, Nanos(ms * 1_000_000)));
        }
        let recording = explained(recording);
        all(&recording, Case::all(&recording)[0].statistics().expect("it has runs"))
    }

    #[test]
    fn a_trend_is_told_as_a_part_of_the_median() {
        // The last takes a third of the first: two thirds less, which is as much as the median.
        let falling: Vec<u64> = (0..21).map(|run| 15_000 - run * 500).collect();
        let said = "a trend: every run takes 0.500 s less than the one before, from the first to the last 100% of the median \
                    (p < 0.001)";
        assert_eq!(flags(&falling), [said]);
    }

    #[test]
    fn a_first_run_unlike_the_others_is_told() {
        assert_eq!(flags(&[3275, 150, 152]), ["the first run differs: it took 3.275 s, the others 0.150 s to 0.152 s"]);
        assert_eq!(flags(&[10, 150, 152]), ["the first run differs: it took 10.0 ms, the others 0.150 s to 0.152 s"]);
        // Two that differ do not say which of them is unusual, nor do three that all differ.
        for alike in [&[3275, 150][..], &[290, 150, 152], &[150, 3275, 152], &[3275, 150, 2000]] {
            assert_eq!(flags(alike), [""; 0], "{alike:?}");
        }
    }
}
