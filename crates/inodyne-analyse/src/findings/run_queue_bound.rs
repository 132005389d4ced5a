//! `run-queue-bound`: threads are ready to run but have no CPU. A bound: neither disk nor file system can help.

use std::collections::BTreeSet;

use inodyne_model::Nanos;
use inodyne_model::finding::Finding;
use inodyne_model::ledger::RowKind;
use inodyne_model::neighbours::Neighbours;

use super::case::Case;
use super::estimate::{self, Diagnosed};
use super::remedy::advice;
use crate::units::{percent, seconds};
use crate::workers;

/// From this share of the wall-clock time on, CPUs are what is missing. Wake-ups alone take a tenth on a virtual machine.
const LEAST_SHARE: f64 = 0.35;

/// The share of all CPUs that is in use where hardly any is free.
const NEARLY_ALL: f64 = 0.7;

/// Who has the CPUs that it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takers {
    /// The command's own threads.
    Itself,
    /// Other programs, or other virtual machines.
    Others,
    /// No program has all of them.
    Nobody,
    /// What others used is not known.
    Unknown,
}

impl Takers {
    /// By what the command and others used on average, in CPUs, and how many the command might use of those that there are.
    fn of(own: f64, others: Option<f64>, usable: f64, cpus: f64) -> Takers {
        match others {
            _ if own > usable * NEARLY_ALL => Takers::Itself,
            Some(others) if own + others > cpus * NEARLY_ALL => Takers::Others,
            Some(_) => Takers::Nobody,
            None => Takers::Unknown,
        }
    }

    fn said(self) -> &'static str {
        match self {
            Takers::Itself => "the command's own threads compete for the CPUs",
            Takers::Others => "others were using the CPUs",
            Takers::Nobody => {
                "on average, programs left some CPUs free: a limit keeps the command off those, they are slow to wake, or its threads were \
                 many only at times"
            }
            Takers::Unknown => "others were using the CPUs, or a limit keeps the command off them",
        }
    }

    fn cure(self) -> &'static [&'static str] {
        const QUIET: &str = "measure on a quiet machine, or give it CPUs of its own (cpuset, cpu.weight)";
        match self {
            Takers::Itself => &["use more CPUs, or do less work; fewer threads than CPUs means less switching"],
            Takers::Others => &[QUIET],
            Takers::Nobody => &[
                "lift what limits it: taskset, cpuset (docker run --cpuset-cpus), cpu.max of its cgroup (docker run --cpus)",
                "or wake other threads less often: in a virtual machine an idle CPU is slow to come back",
            ],
            Takers::Unknown => &[QUIET, "or lift what limits it: cpu.max of its cgroup (docker run --cpus), taskset"],
        }
    }
}

/// How many CPUs others had on average.
struct Others {
    programs: f64,
    virtual_machines: f64,
}

impl Others {
    /// Those that do not work for the command, which took so long.
    fn of(others: &Neighbours, workers: &BTreeSet<u32>, wall: Nanos) -> Others {
        let strangers = others.processes.iter().filter(|process| !workers.contains(&process.pid));
        let programs: Nanos = strangers.map(|process| process.cpu_ns).sum();
        Others { programs: others.cpus(programs, wall), virtual_machines: others.cpus(others.stolen_ns, wall) }
    }

    fn all(&self) -> f64 {
        self.programs + self.virtual_machines
    }

    /// As the end of a sentence; with other virtual machines only where a digit shows.
    fn said(&self) -> String {
        let programs = format!(", other programs {:.1}", self.programs);
        match self.virtual_machines {
            little if little < 0.05 => programs,
            stolen => format!("{programs}, other virtual machines {stolen:.1}"),
        }
    }
}

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let ready = case.ledger(|row| row.kind == RowKind::Runqueue);
    let share = ready / case.wall();
    if share < LEAST_SHARE {
        return None;
    }
    let host = &case.recording.host;
    let cpus = host.cpus;
    let own = workers::cpu_time(case.trace).0 as f64 / case.wall();
    let pids = workers::pids(case.trace);
    let others = case.trace.neighbours.as_ref().map(|others| Others::of(others, &pids, case.trace.wall_ns));
    let takers = Takers::of(own, others.as_ref().map(Others::all), f64::from(host.usable_cpus()), f64::from(cpus));
    let by_others = others.map_or_else(String::new, |others| others.said());
    Some(
        Diagnosed {
            title: format!("Waiting for a CPU accounts for {} of the time: {}", percent(share), takers.said()),
            share,
            evidence: vec![format!(
                "{} ready without a CPU; it used {own:.1} of {cpus} CPUs on average{by_others}",
                seconds(ready)
            )],
            predicted: estimate::at_best_of(case, share),
            cure: advice(takers.cure()),
            avoidable_calls: None,
            bound: true,
        }
        .finding(case),
    )
}

#[cfg(test)]
mod tests {
    use inodyne_model::neighbours::Neighbour;

    use super::*;

    #[test]
    fn who_has_the_cpus_follows_from_what_was_used() {
        let of = |own, others| Takers::of(own, others, 2.0, 2.0);
        assert_eq!([of(1.9, None), of(1.6, Some(0.3))], [Takers::Itself; 2]);
        assert_eq!([of(0.8, Some(1.1)), of(0.1, Some(1.5))], [Takers::Others; 2]);
        assert_eq!([of(1.0, Some(0.1)), of(0.8, None)], [Takers::Nobody, Takers::Unknown]);
        // One CPU of sixteen, while others have three of them.
        assert_eq!([0.9, 0.6].map(|own| Takers::of(own, Some(3.0), 1.0, 16.0)), [Takers::Itself, Takers::Nobody]);
    }

    #[test]
    fn what_was_stolen_is_no_other_programs() {
        let said = |stolen: u64| {
            let neighbours = Neighbours { stolen_ns: Nanos(stolen), ..Neighbours::default() };
            Others::of(&neighbours, &BTreeSet::new(), Nanos(1_000_000_000)).said()
        };
        assert_eq!(said(20_000_000), ", other programs 0.0");
        assert_eq!(said(500_000_000), ", other programs 0.0, other virtual machines 0.5");
    }

    #[test]
    fn what_others_used_while_they_were_looked_at_is_not_taken_for_more_cpus() {
        let all = [Neighbour { pid: 7, cpu_ns: Nanos(300_000_000), ..Neighbour::default() }];
        let neighbours = Neighbours { span_ns: Nanos(150_000_000), processes: all.to_vec(), ..Neighbours::default() };
        // A run of 120 ms on two CPUs.
        assert_eq!(Others::of(&neighbours, &BTreeSet::new(), Nanos(120_000_000)).said(), ", other programs 2.0");
    }
}
