//! What a recording itself says against making a prediction of it: runs that disagree with each other or with the trace, and a machine
//! that was busy with other things. A prediction would mix what does not belong together.

use inodyne_model::Nanos;
use inodyne_model::ledger::RowKind;
use inodyne_model::observed::Begin;
use inodyne_model::recording::Recording;
use inodyne_model::run::median;
use inodyne_model::trace::Trace;

use crate::statistics::trend::trend;
use crate::units::{percent, seconds};

/// Fewer untraced runs do not show how they spread.
const ENOUGH_RUNS: usize = 3;
/// Runs whose median deviation, twice, is more than this part of their median have no time that stands for them.
const FAR_APART: f64 = 0.5;
/// Fewer runs show no drift, nor does one that changes less from the first to the last.
const ENOUGH_FOR_DRIFT: usize = 6;
const DRIFTS: f64 = 0.3;
const LEVEL: f64 = 0.05;
/// What tracing adds to a switch, in nanoseconds, with its records and stacks.
const COST_OF_SWITCH: f64 = 2_000.0;
/// How much slower or faster than expected the traced run may be, as a factor; and by how much in any case, in nanoseconds.
const AGREES: f64 = 1.6;
const AGREES_NS: f64 = 5e6;
/// From this share of the path without a CPU on, and less than this part of the CPUs used by the command, others had them.
const NO_CPU: f64 = 0.5;
const OWN_CPUS: f64 = 0.7;
/// What is said of every window.
const NO_END: &str = "a window has no end that could come sooner: shares are of the time of those who wait";

/// The reasons, a sentence each; none where a prediction can be made.
pub(crate) fn of(recording: &Recording, trace: &Trace) -> Vec<String> {
    if !trace.tracer.divides_calls() {
        // Of an imported log it is not known how much that is; each finding says that it is there.
        let is_known = trace.overhead.ns_per_call > 0.0;
        return is_known.then(|| "strace's own cost is in the times of calls".to_owned()).into_iter().collect();
    }
    if trace.observed.window.begin == Begin::Attached {
        return vec![NO_END.to_owned()];
    }
    let untraced = recording.runs.iter().filter(|run| !run.traced && run.key() == trace.key());
    let walls: Vec<f64> = untraced.map(|run| run.wall_ns.0 as f64).collect();
    [spread(recording, trace), drift(&walls), disagreement(recording, trace), busy(recording, trace)]
        .into_iter()
        .flatten()
        .collect()
}

fn spread(recording: &Recording, trace: &Trace) -> Option<String> {
    let walls = recording.untraced_walls(trace.key());
    let middle = median(&walls).filter(|_| walls.len() >= ENOUGH_RUNS)?;
    let mut deviations: Vec<Nanos> = walls.iter().map(|wall| Nanos(wall.0.abs_diff(middle.0))).collect();
    deviations.sort_unstable();
    let far = median(&deviations)?.share_of(middle) * 2.0;
    let (first, last) = (walls.first()?, walls.last()?);
    (far > FAR_APART).then(|| format!("the runs took from {} to {}", seconds(first.0 as f64), seconds(last.0 as f64)))
}

fn drift(walls: &[f64]) -> Option<String> {
    let line = trend(walls).filter(|line| walls.len() >= ENOUGH_FOR_DRIFT && line.p < LEVEL)?;
    let (from, to) = (line.at(0), line.at(walls.len() - 1));
    let change = (to - from).abs() / from.min(to).max(1.0);
    let drifts = change > DRIFTS;
    drifts.then(|| format!("the runs drifted, from about {} to {}", seconds(from), seconds(to)))
}

fn disagreement(recording: &Recording, trace: &Trace) -> Option<String> {
    let untraced = median(&recording.untraced_walls(trace.key()))?.0 as f64;
    let traced = trace.wall_ns.0 as f64;
    let calls: f64 = trace.syscalls.iter().map(|call| call.calls as f64).sum();
    let switches: f64 =
        trace.observed.threads.iter().map(|thread| thread.waits.saturating_add(thread.preemptions) as f64).sum();
    let per_call = Some(trace.overhead.ns_per_call).filter(|cost| cost.is_finite()).unwrap_or(0.0).max(0.0);
    let dearest = untraced + calls * per_call + switches * COST_OF_SWITCH;
    let agrees = (untraced / AGREES - AGREES_NS..=dearest * AGREES + AGREES_NS).contains(&traced);
    (!agrees).then(|| {
        let [traced, untraced] = [traced, untraced].map(seconds);
        format!("the traced run took {traced}, the others {untraced}: more than tracing explains lies between them")
    })
}

fn busy(recording: &Recording, trace: &Trace) -> Option<String> {
    let wall = (trace.wall_ns.0 as f64).max(1.0);
    let ready = trace.ledger.rows.iter().filter(|row| row.kind == RowKind::Runqueue).map(|row| row.ns.0 as f64);
    // What a limit of its cgroup holds back is no other program's doing.
    let held: f64 = trace.limits.iter().map(|limit| limit.held_ns.0 as f64).sum();
    let share = (ready.sum::<f64>() - held).max(0.0) / wall;
    let cpus = f64::from(recording.host.cpus);
    let own = trace.observed.threads.iter().map(|thread| thread.cpu_ns().0 as f64).sum::<f64>() / wall;
    let is_busy = share > NO_CPU && own < cpus * OWN_CPUS;
    is_busy.then(|| {
        let share = percent(share);
        format!("the machine was busy: it had no CPU for {share} of the time, and used {own:.1} of {cpus:.0}")
    })
}

#[cfg(test)]
mod tests {
    use inodyne_model::run::CacheState;
    use inodyne_model::sample::{self, ms};

    use super::*;

    /// A trace of a quarter of a second, and untraced runs of so many milliseconds.
    fn said(walls: &[f64], ready: f64) -> Vec<String> {
        let mut recording = sample::empty();
        recording.places = vec![sample::ext4("ext4", &[])];
        recording.commands = vec![sample::command("work")];
        let mut root = sample::thread(1, "work", ms(240.0), &[("read", ms(10.0))], &[]);
        (root.runqueue_ns, root.ended_ns) = (root.runqueue_ns + ms(ready), root.ended_ns + ms(ready));
        let mut trace = Trace { wall_ns: root.lifetime_ns(), ..Trace::default() };
        (trace.observed.started_ns, trace.observed.threads) = (root.born_ns, vec![root]);
        for wall in walls {
            recording.push_run(sample::run(0, CacheState::default(), false, ms(*wall)));
        }
        recording.traces = vec![trace];
        crate::explain(&mut recording);
        recording.traces[0].doubts.clone()
    }

    #[test]
    fn runs_that_agree_raise_no_doubt() {
        assert!(said(&[], 0.0).is_empty());
        assert!(said(&[240.0, 251.0, 238.0, 260.0, 244.0, 249.0], 0.0).is_empty());
        // One that is far out is an outlier and no more.
        assert!(said(&[240.0, 251.0, 900.0, 245.0, 250.0], 0.0).is_empty());
    }

    #[test]
    fn what_does_not_fit_together_is_said() {
        let begins = |walls: &[f64], ready: f64, with: &str| {
            let said = said(walls, ready);
            assert!(said.iter().any(|doubt| doubt.starts_with(with)), "{with}: {said:?}");
        };
        begins(&[197.0, 56.0, 356.0], 0.0, "the runs took from");
        begins(&[150.0, 180.0, 210.0, 240.0, 270.0, 300.0, 330.0], 0.0, "the runs drifted");
        begins(&[100.0, 101.0, 99.0], 0.0, "the traced run took");
        begins(&[600.0, 610.0, 590.0], 0.0, "the traced run took");
        begins(&[], 2_000.0, "the machine was busy");
    }
}
