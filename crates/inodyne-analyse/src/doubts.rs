//! What in a recording itself speaks against making a prediction from it: runs that disagree with each other or with the trace, and a
//! machine that was busy with other things. A prediction would mix what does not belong together.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use inodyne_model::Nanos;
use inodyne_model::block::Disk;
use inodyne_model::cause::Cause;
use inodyne_model::ledger::RowKind;
use inodyne_model::observed::Begin;
use inodyne_model::recording::Recording;
use inodyne_model::run::median;
use inodyne_model::trace::Trace;

use crate::statistics::trend::trend;
use crate::strangers::{self, OnDisk};
use crate::units::{percent, seconds};
use crate::workers;

/// Fewer untraced runs do not show how they spread.
const ENOUGH_RUNS: usize = 3;
/// Runs whose median deviation, doubled, is more than this fraction of their median have no time that represents them.
const FAR_APART: f64 = 0.5;
/// Fewer runs show no drift, nor do runs that change by less than `DRIFTS` from the first to the last.
const ENOUGH_FOR_DRIFT: usize = 6;
const DRIFTS: f64 = 0.3;
const LEVEL: f64 = 0.05;
/// If more than this share of the path is without a CPU, and the command used less than this share of the CPUs, others had them.
const NO_CPU: f64 = 0.5;
const OWN_CPUS: f64 = 0.7;
/// Where others are known to have had more than this share of all CPUs, a smaller share of the path is enough.
const OTHERS_CPUS: f64 = 0.25;
const NO_CPU_FOR_OTHERS: f64 = 0.2;
/// If the hypervisor kept more than this share of all CPUs, times are not the command's.
const STOLEN: f64 = 0.1;
/// If others had more than this share of a disk's time, and the command waits for devices for this share of the path, it waited for them.
const OTHERS_DISK: f64 = 0.3;
const WAITS_FOR_DEVICES: f64 = 0.2;
/// If more than this share of that is for reads, it did not wait for a disk on which its requests spent less than this share of their time.
const MOSTLY_READS: f64 = 0.5;
const HARDLY_USED: f64 = 0.1;
/// If the path is followed by sums alone for more than this share of the time, it is not known what was waited for beside it.
const BY_SUMS: f64 = 0.1;
/// Why nothing is predicted for a window.
const NO_END: &str = "a window has no end that could come sooner: shares are of the window's length";

/// The reasons, a sentence each; none where a prediction can be made.
pub(crate) fn of(recording: &Recording, number: usize) -> Vec<String> {
    let trace = &recording.traces[number];
    if !trace.tracer.divides_calls() {
        // For an imported log it is not known how much that is; each finding says that it is there.
        let is_known = trace.overhead.ns_per_call > 0.0;
        return is_known.then(|| "strace's own cost is in the times of calls".to_owned()).into_iter().collect();
    }
    if trace.observed.window.begin == Begin::Attached {
        let has_cure = recording.findings.iter().any(|finding| finding.trace == number && !finding.bound);
        let no_end = has_cure.then(|| NO_END.to_owned());
        return [no_end, busy_disk(trace)].into_iter().flatten().collect();
    }
    let untraced = recording.runs.iter().filter(|run| !run.traced && run.key() == trace.key());
    let walls: Vec<f64> = untraced.map(|run| run.wall_ns.0 as f64).collect();
    let of_runs = [spread(recording, trace), drift(&walls), disagreement(recording, trace)];
    let of_machine = [busy(recording, trace), stolen(recording, trace), busy_disk(trace)];
    of_runs.into_iter().chain(of_machine).chain([by_sums(trace)]).flatten().collect()
}

/// A single thread has no order that the sums do not show.
fn by_sums(trace: &Trace) -> Option<String> {
    let until = Nanos(trace.observed.timeline.until_ns.filter(|_| trace.observed.threads.len() > 1)?);
    let later = trace.wall_ns.saturating_sub(until).share_of(trace.wall_ns);
    (later > BY_SUMS).then(|| {
        let (until, wall) = (seconds(until.0 as f64), seconds(trace.wall_ns.0 as f64));
        format!("the path is exact only for the first {until} of {wall}: waits after that may in fact lie off it")
    })
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
    // A straight line through runs that changed less and less leads to times that no run took, even below zero.
    let least = walls.iter().copied().fold(f64::INFINITY, f64::min);
    let most = walls.iter().copied().fold(0.0, f64::max);
    let [from, to] = [0, walls.len() - 1].map(|place| line.at(place).max(least).min(most));
    let change = (to - from).abs() / from.min(to).max(1.0);
    let drifts = change > DRIFTS;
    drifts.then(|| format!("the runs drifted, from about {} to {}", seconds(from), seconds(to)))
}

fn disagreement(recording: &Recording, trace: &Trace) -> Option<String> {
    let untraced = median(&recording.untraced_walls(trace.key()))?;
    (!trace.is_explained_by_tracing(trace.wall_ns, untraced)).then(|| {
        let [traced, untraced] = [trace.wall_ns, untraced].map(|wall| seconds(wall.0 as f64));
        format!("the traced run took {traced}, the others {untraced}: tracing alone does not explain the difference")
    })
}

fn busy(recording: &Recording, trace: &Trace) -> Option<String> {
    let wall = (trace.wall_ns.0 as f64).max(1.0);
    let ready = trace.ledger.rows.iter().filter(|row| row.kind == RowKind::Runqueue).map(|row| row.ns.0 as f64);
    // Time held back by a limit of its cgroup is no other program's doing.
    let held: f64 = trace.limits.iter().map(|limit| limit.held_ns.0 as f64).sum();
    let share = (ready.sum::<f64>() - held).max(0.0) / wall;
    let cpus = f64::from(recording.host.cpus);
    let own = workers::cpu_time(trace).0 as f64 / wall;
    let others = busy_programs(trace);
    let on_average = |ns| trace.neighbours.as_ref().map_or(0.0, |others| others.cpus(ns, trace.wall_ns));
    let had = on_average(others.iter().map(|(_, ns)| *ns).sum());
    let is_others = had > cpus * OTHERS_CPUS;
    let enough = if is_others { NO_CPU_FOR_OTHERS } else { NO_CPU };
    if share <= enough || own >= f64::from(recording.host.usable_cpus()) * OWN_CPUS {
        return None;
    }
    let waited = format!("waited for a CPU {} of the time", percent(share));
    Some(if is_others {
        let (most, ns) = others.first()?;
        let (who, used) = if others.len() > 1 { (" and others", had) } else { ("", on_average(*ns)) };
        format!(
            "the machine was busy: the command {waited}, and used {own:.1} of {cpus:.0} CPUs; {most}{who} used {used:.1}"
        )
    } else {
        // Threads that wake each other wait as well (one hands a lock to the next), and processes that began meanwhile are not known.
        let known = if trace.neighbours.is_some() {
            format!(", and others are known to have used {had:.1}")
        } else {
            String::new()
        };
        format!("the command {waited}, though it used only {own:.1} of {cpus:.0} CPUs{known}")
    })
}

/// CPU time of programs that neither belong to the command nor worked for it, by name, the most first.
fn busy_programs(trace: &Trace) -> Vec<(&str, Nanos)> {
    let known = workers::pids(trace);
    let processes = trace.neighbours.iter().flat_map(|all| &all.processes);
    let mut by_name = BTreeMap::<&str, Nanos>::new();
    for process in processes.filter(|process| !known.contains(&process.pid)) {
        *by_name.entry(&process.comm).or_default() += process.cpu_ns;
    }
    let mut all: Vec<(&str, Nanos)> = by_name.into_iter().filter(|(_, ns)| *ns > Nanos::ZERO).collect();
    all.sort_by_key(|(_, ns)| Reverse(*ns));
    all
}

fn stolen(recording: &Recording, trace: &Trace) -> Option<String> {
    let others = trace.neighbours.as_ref()?;
    let share = others.cpus(others.stolen_ns, trace.wall_ns) / f64::from(recording.host.cpus.max(1));
    (share > STOLEN).then(|| format!("the hypervisor kept {} of the CPUs' time for others", percent(share)))
}

/// How much others had of a disk that the command waited for.
fn busy_disk(trace: &Trace) -> Option<String> {
    let block = trace.block.as_ref()?;
    let waits = |is_meant: fn(Cause) -> bool| {
        trace.ledger.rows.iter().filter(|row| row.cause.is_some_and(is_meant)).map(|row| row.ns).sum::<Nanos>()
    };
    let waited = waits(waits_for_an_answer);
    if waited.share_of(trace.time_with_devices()) < WAITS_FOR_DEVICES {
        return None;
    }
    let used = block.disks.iter().filter_map(|disk| Some((disk, strangers::on_disk(trace, &disk.number)?)));
    let used: Vec<(&Disk, OnDisk)> = used.collect();
    let own: Nanos = used.iter().map(|(_, used)| used.own_ns).sum();
    // What it has others write for it, a journal or the kernel's flusher threads, is not among its own requests.
    let knows_where = waits(|cause| cause == Cause::DeviceRead).share_of(waited) > MOSTLY_READS;
    let is_used = |used: &OnDisk| !knows_where || used.own_ns.share_of(own) > HARDLY_USED;
    let waited_for = used.iter().filter(|(_, used)| is_used(used));
    waited_for.filter_map(|(disk, used)| of_others(disk, used)).next()
}

fn of_others(disk: &Disk, used: &OnDisk) -> Option<String> {
    let most = used.strangers.first()?;
    let share = used.strangers.iter().map(|one| one.device_ns).sum::<Nanos>().share_of(used.device_ns);
    (share > OTHERS_DISK).then(|| {
        let megabytes = used.strangers.iter().map(|one| one.bytes as f64).sum::<f64>() / 1e6;
        let (name, share) = (&disk.name, percent(share));
        let who = match (&most.who, used.strangers.len()) {
            (Some(who), 1) => format!("another program, {who},"),
            (Some(who), _) => format!("other programs, {who} above all,"),
            (None, 1) => "writeback of what was written before".to_owned(),
            (None, _) => "writeback of what was written before, above all,".to_owned(),
        };
        format!("{who} moved {megabytes:.1} MB on {name} meanwhile: {share} of what the disk did")
    })
}

/// A throttled thread waits by the kernel's choice, not for the disk's answer.
fn waits_for_an_answer(cause: Cause) -> bool {
    cause.is_of_device() && cause != Cause::WriteThrottle
}

#[cfg(test)]
mod tests {
    use inodyne_model::block::{Amount, Asker, BlockIo, IoPath, PathRequests};
    use inodyne_model::ledger::Row;
    use inodyne_model::neighbours::{Neighbour, Neighbours};
    use inodyne_model::observed::ThreadObserved;
    use inodyne_model::run::CacheState;
    use inodyne_model::sample::{self, ms};

    use super::*;

    /// The doubts about a trace of a quarter of a second, with untraced runs of so many milliseconds.
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
        // A single run that is far out is merely an outlier.
        assert!(said(&[240.0, 251.0, 900.0, 245.0, 250.0], 0.0).is_empty());
    }

    #[test]
    fn a_drift_is_told_with_times_that_runs_took() {
        // Caches that fill: the line through these ends below zero.
        let filling = [10_000.0, 3_000.0, 1_000.0, 900.0, 800.0, 700.0].map(|ms| ms * 1e6);
        assert_eq!(drift(&filling).as_deref(), Some("the runs drifted, from about 2.78 s to 700 ms"));
        let backwards: Vec<f64> = filling.iter().rev().copied().collect();
        assert_eq!(drift(&backwards).as_deref(), Some("the runs drifted, from about 700 ms to 2.78 s"));
    }

    #[test]
    fn a_path_by_sums_alone_is_no_ground_for_a_prediction() {
        let mut trace = Trace { wall_ns: ms(100.0), ..Trace::default() };
        trace.observed.threads = vec![Default::default(); 2];
        assert_eq!(by_sums(&trace), None);
        trace.observed.timeline.until_ns = Some(95_000_000);
        assert_eq!(by_sums(&trace), None, "nearly all of it is exact");
        trace.observed.timeline.until_ns = Some(20_000_000);
        let said = "the path is exact only for the first 20.0 ms of 100 ms: waits after that may in fact lie off it";
        assert_eq!(by_sums(&trace).as_deref(), Some(said));
        trace.observed.threads.pop();
        assert_eq!(by_sums(&trace), None, "one thread alone");
    }

    #[test]
    fn others_are_named() {
        let neighbour =
            |comm: &str, cpu_ms: f64| Neighbour { comm: comm.to_owned(), cpu_ns: ms(cpu_ms), ..Neighbour::default() };
        let mut recording = sample::empty();
        recording.host.cpus = 2;
        let mut trace = Trace { wall_ns: ms(1_000.0), ..Trace::default() };
        trace.ledger.rows = vec![Row::new(RowKind::Runqueue, ms(300.0))];
        // Waiting for a CPU for a third of the time is no reason for doubt while nobody is known to have had one.
        assert_eq!(busy(&recording, &trace), None);
        let all = vec![neighbour("cc1", 900.0), neighbour("cc1", 500.0), neighbour("idle", 0.0)];
        trace.neighbours = Some(Neighbours { stolen_ns: ms(100.0), processes: all, ..Neighbours::default() });
        let said = busy(&recording, &trace).expect("others had most");
        assert!(said.starts_with("the machine was busy: ") && said.ends_with("; cc1 used 1.4"), "{said}");
        assert_eq!(stolen(&recording, &trace), None);
        trace.neighbours.as_mut().expect("set above").span_ns = ms(1_400.0);
        assert!(busy(&recording, &trace).is_some_and(|said| said.ends_with("; cc1 used 1.0")));
        trace.neighbours.as_mut().expect("set above").span_ns = Nanos::ZERO;
        trace.neighbours.as_mut().expect("set above").stolen_ns = ms(500.0);
        assert!(stolen(&recording, &trace).is_some_and(|said| said.contains("25%")));
        // A process that worked for the command is no stranger.
        trace.observed.threads = vec![ThreadObserved { pid: 0, ..sample::thread(1, "cc1", ms(1.0), &[], &[]) }];
        assert_eq!(busy(&recording, &trace), None);
        // Nor is a machine busy if nobody is known to have had its CPUs.
        trace.ledger.rows = vec![Row::new(RowKind::Runqueue, ms(600.0))];
        let said = busy(&recording, &trace).expect("it waited for long");
        assert_eq!(
            said,
            "the command waited for a CPU 60% of the time, though it used only 0.0 of 2 CPUs, and others are known to have used 0.0"
        );
    }

    #[test]
    fn others_on_the_same_disk_are_named() {
        let mut trace = Trace { wall_ns: ms(100.0), ..Trace::default() };
        sample::add_block_io(&mut trace);
        trace.block.as_mut().expect("added").paths =
            crate::io_paths::of(trace.block.as_ref().expect("added"), &trace.observed);
        trace.ledger.wall_ns = ms(100.0);
        trace.ledger.rows = vec![Row { cause: Some(Cause::DeviceRead), ..Row::new(RowKind::Blocked, ms(30.0)) }];
        // A tenth of what the disk does.
        assert_eq!(busy_disk(&trace), None);
        let rows = &mut trace.block.as_mut().expect("added").paths;
        let stranger = rows.iter_mut().find(|row| row.asker == Asker::Other).expect("there is one");
        stranger.amount.device_ns = ms(500.0);
        assert!(
            busy_disk(&trace).is_some_and(
                |said| said.starts_with("another program, stranger (backup.service), moved 0.2 MB on loop0")
            )
        );
        // It does not matter to a command that does not wait for the disk, and a process that works for the command is no stranger.
        let waits = std::mem::take(&mut trace.ledger.rows);
        assert_eq!(busy_disk(&trace), None);
        trace.ledger.rows = waits;
        trace.observed.threads = vec![sample::thread(1, "stranger", ms(1.0), &[], &[])];
        assert_eq!(busy_disk(&trace), None);
    }

    #[test]
    fn a_disk_that_the_command_hardly_used_is_not_what_it_waited_for() {
        let row = |disk: &str, asker, comm: &str, device_ns| PathRequests {
            disk: disk.to_owned(),
            path: IoPath::DataRead,
            asker,
            comm: comm.to_owned(),
            amount: Amount { requests: 1, bytes: 1_000_000, device_ns, ..Amount::default() },
            ..PathRequests::default()
        };
        let with = |own: f64| {
            let disk = |number: &str| Disk { number: number.to_owned(), name: number.to_owned(), ..Disk::default() };
            let paths = vec![
                row("8:0", Asker::Command, "work", ms(100.0)),
                row("8:16", Asker::Command, "work", ms(own)),
                row("8:16", Asker::Other, "backup", ms(900.0)),
            ];
            let block = BlockIo { disks: vec![disk("8:0"), disk("8:16")], paths, ..BlockIo::default() };
            let mut trace = Trace { block: Some(block), wall_ns: ms(100.0), ..Trace::default() };
            trace.ledger.wall_ns = ms(100.0);
            trace.ledger.rows = vec![Row { cause: Some(Cause::DeviceRead), ..Row::new(RowKind::Blocked, ms(90.0)) }];
            trace
        };
        let is_said = |trace: &Trace| busy_disk(trace).is_some_and(|said| said.starts_with("another program, backup,"));
        assert_eq!(busy_disk(&with(1.0)), None);
        assert!(is_said(&with(50.0)));
        // Others' requests went first.
        let mut queued = with(1.0);
        queued.block.as_mut().expect("set above").paths[1].amount.queue_ns = ms(50.0);
        assert!(is_said(&queued));
        // A sync is answered once others have written.
        let mut syncs = with(1.0);
        syncs.ledger.rows[0].cause = Some(Cause::DeviceWrite);
        assert!(is_said(&syncs));
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
        begins(&[], 2_000.0, "the command waited for a CPU 89% of the time, though it used only 0.");
    }
}
