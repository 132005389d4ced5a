//! What happened since the last time, and what it cost to find out.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use inodyne_analyse::Live;
use inodyne_launch::own_cpu_time;
use inodyne_model::Nanos;
use inodyne_model::activity::Activity;
use inodyne_model::count::Grouped;
use inodyne_render::escaped;
use inodyne_trace::{LiveTracer, Options, Ran};
use jiff::Timestamp;

use super::budget::{Budget, Percent};
use super::open_file;
use super::table::Line;
use crate::failure::{ExitStatus, Failure};
use crate::target::{Target, join_all};

/// How often what has arrived is drained, so that it does not pile up between two looks.
pub const DRAINED_EVERY: Duration = Duration::from_millis(100);

/// Number of switches after which it is known what tracing adds to one.
const ENOUGH_SWITCHES: u64 = 1_000;

/// Until then it is measured in one look out of this many: whoever makes calls meanwhile pays for the measurement of each.
const MEASURED_ONE_OF: u64 = 20;

/// Number of processes whose current file is looked up.
const MOST_AT_FILES: usize = 20;

/// What is shown at one time.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// When it was taken.
    pub at: Timestamp,
    /// What happened since the one before.
    pub activity: Activity,
    /// What it cost.
    pub cost: Cost,
    /// The file that each process was last found at, by pid, for those that wait for files most.
    pub files: HashMap<u32, String>,
}

impl Look {
    /// How many are followed, and what it costs.
    pub fn summary(&self) -> String {
        let count = |count: usize, one: &str, more: &str| {
            format!("{} {}", Grouped(count as u64), if count == 1 { one } else { more })
        };
        let Activity { living_processes, living_threads, .. } = &self.activity;
        format!(
            "{}, {}; top {:.1}% of a CPU, tracing about {:.1}%",
            count(*living_processes, "process", "processes"),
            count(*living_threads, "thread", "threads"),
            self.cost.own * 100.0,
            self.cost.tracing * 100.0,
        )
    }

    /// That not all calls are timed, or that it costs too much; usually nothing.
    pub fn timing(&self) -> String {
        let Cost { timed_one_in, limit, .. } = self.cost;
        match (timed_one_in > 1, self.cost.is_over()) {
            (false, false) => String::new(),
            (false, true) => format!("over the budget of {limit}"),
            (true, false) => format!("timing 1 call in {timed_one_in} (budget {limit})"),
            (true, true) => format!("timing 1 call in {timed_one_in}, over the budget of {limit}"),
        }
    }

    /// The file at which the process of a line was last found.
    pub fn file(&self, line: &Line) -> Option<&str> {
        self.files.get(&line.pid?).map(String::as_str)
    }

    /// What was lost, in words; usually nothing.
    pub fn lost(&self) -> String {
        let lost = self.activity.lost;
        if lost.total() == 0 { String::new() } else { format!("lost: {lost}") }
    }
}

/// What a live view costs, as parts of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// This process: reading, explaining and drawing. Measured.
    pub own: f64,
    /// What it adds to calls and switches of the processes followed: how many there were, times the measured cost of one.
    pub tracing: f64,
    /// What `tracing` may be.
    pub limit: Percent,
    /// One call in this many was timed.
    pub timed_one_in: u32,
}

impl Cost {
    /// Whether tracing costs more than it may.
    pub fn is_over(&self) -> bool {
        self.tracing > self.limit.of_a_cpu()
    }
}

/// Takes one look after another.
pub struct Watcher<'a> {
    target: &'a Target,
    tracer: LiveTracer,
    live: Live,
    meter: Meter,
    files: HashMap<u32, String>,
}

impl<'a> Watcher<'a> {
    /// Begins to follow them.
    ///
    /// # Errors
    /// The machine lacks something, or there is nobody to follow.
    pub fn new(target: &'a Target, budget: Budget) -> Result<Watcher<'a>, Failure> {
        let (mut tracer, live, meter) = (tracer(&budget)?, Live::default(), Meter::new(budget));
        join_all(&mut tracer, &mut || target.whom())?;
        let mut watcher = Watcher { target, tracer, live, meter, files: HashMap::new() };
        watcher.begin()?;
        if !target.may_grow() && !watcher.tracer.follows_anyone() {
            let message = format!("{}: there is no thread to follow", target.label());
            return Err(Failure::new(ExitStatus::Usage, message));
        }
        Ok(watcher)
    }

    /// Whether any process is left, or may come.
    pub fn is_anyone_left(&self) -> bool {
        self.target.may_grow() || self.tracer.follows_anyone()
    }

    /// The processes that are followed.
    pub fn processes(&self) -> BTreeSet<u32> {
        self.tracer.processes()
    }

    /// Drains what has arrived. To be called several times a second.
    pub fn drain(&self) {
        self.tracer.drain();
    }

    /// What happened since the last look; nothing if a new tracer had to take over because a table of the last one was nearly full.
    ///
    /// # Errors
    /// A table cannot be read, or processes that came later cannot be followed.
    pub fn look(&mut self) -> Result<Option<Look>, Failure> {
        if self.tracer.is_nearly_full() {
            self.hand_over()?;
            return Ok(None);
        }
        if self.target.may_grow() {
            // A control group may be removed under us: then nobody is in it.
            if let Ok(whom) = self.target.whom() {
                self.tracer.join(&whom)?;
            }
        }
        let at = Timestamp::now();
        let Some(activity) = self.live.add(self.tracer.snapshot()?) else { return Ok(None) };
        self.look_at_files(&activity);
        let cost = self.meter.cost(&mut self.tracer, &activity);
        Ok(Some(Look { at, activity, cost, files: self.files.clone() }))
    }

    /// Has another tracer take over, which follows all that this one does.
    fn hand_over(&mut self) -> Result<(), Failure> {
        let mut next = tracer(&self.meter.budget)?;
        match join_all(&mut next, &mut || self.target.whom_with(self.tracer.processes())) {
            // All have ended meanwhile.
            Err(nobody) if nobody.status() == ExitStatus::Usage => return Ok(()),
            joined => drop(joined?),
        }
        self.tracer = next;
        self.live = Live::default();
        self.begin()
    }

    /// Looks up the files of the processes that wait for files most.
    fn look_at_files(&mut self, activity: &Activity) {
        let mut waiting: Vec<_> =
            activity.processes.iter().map(|process| (process.account.files_ns(), process)).collect();
        waiting.retain(|(ns, _)| *ns > Nanos::ZERO);
        waiting.sort_by_key(|(ns, _)| Reverse(*ns));
        waiting.truncate(MOST_AT_FILES);
        self.files.retain(|pid, _| waiting.iter().any(|(_, process)| process.number() == *pid));
        for (_, process) in waiting {
            if let Some(file) = process.pid_here.and_then(|pid| open_file::in_use(pid.get())) {
                self.files.insert(process.number(), escaped(&file));
            }
        }
    }

    /// The first snapshot, before which nothing is known.
    fn begin(&mut self) -> Result<(), Failure> {
        self.meter.begin(&mut self.tracer);
        self.live.add(self.tracer.snapshot()?);
        // What it took to load a tracer and to join processes came before the time that the first look is about.
        self.meter.own = own_cpu_time();
        Ok(())
    }
}

/// A tracer that follows nobody yet.
fn tracer(budget: &Budget) -> Result<LiveTracer, Failure> {
    let mut tracer = LiveTracer::new(&Options::default())?;
    tracer.time_one_call_in(budget.one_in());
    Ok(tracer)
}

/// Measures the cost from one look to the next, and keeps it to what it may be.
struct Meter {
    budget: Budget,
    own: Duration,
    looks: u64,
    /// How much the programs at switches had run when this look began, if that is measured.
    at_switches: Option<Ran>,
    /// The same over all looks in which it was.
    measured: Ran,
    switches: u64,
}

impl Meter {
    fn new(budget: Budget) -> Meter {
        let (own, measured) = (own_cpu_time(), Ran::default());
        Meter { budget, own, looks: 0, at_switches: None, measured, switches: 0 }
    }

    /// A look begins.
    fn begin(&mut self, tracer: &mut LiveTracer) {
        tracer.measure_switches(self.switches < ENOUGH_SWITCHES && self.looks.is_multiple_of(MEASURED_ONE_OF));
        self.at_switches = tracer.ran_at_switches();
        self.looks += 1;
    }

    /// A look ends.
    fn cost(&mut self, tracer: &mut LiveTracer, activity: &Activity) -> Cost {
        let accounts = || activity.processes.iter().map(|process| &process.account);
        let calls: u64 = accounts().map(|account| account.calls).sum();
        let switches: u64 = accounts().map(|account| account.switches).sum();
        let own = own_cpu_time();
        let spent = own.saturating_sub(std::mem::replace(&mut self.own, own));
        if let (Some(now), Some(before)) = (tracer.ran_at_switches(), self.at_switches) {
            self.measured += now - before;
            self.switches += switches;
        }
        let at_switches = tracer.ns_per_switch(self.measured, self.switches) * switches as f64;
        let length_ns = (activity.length_ns.0 as f64).max(1.0);
        let costs = tracer.costs_of_calls();
        let tracing = |timed_one_in| (calls as f64 * costs.on_average(timed_one_in) + at_switches) / length_ns;
        let timed_one_in = self.budget.one_in();
        self.budget.adapt(tracing);
        if self.budget.one_in() != timed_one_in {
            tracer.time_one_call_in(self.budget.one_in());
        }
        self.begin(tracer);
        Cost {
            own: spent.as_nanos() as f64 / length_ns,
            tracing: tracing(timed_one_in),
            limit: self.budget.limit(),
            timed_one_in,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_that_not_all_calls_are_timed_and_that_it_costs_too_much() {
        let timing = |tracing, timed_one_in| {
            let limit = "5%".parse().expect("a percentage");
            Look { cost: Cost { tracing, limit, timed_one_in, ..Cost::default() }, ..Look::default() }.timing()
        };
        assert_eq!(timing(0.05, 1), "");
        assert_eq!(timing(0.06, 1), "over the budget of 5%");
        assert_eq!(timing(0.04, 8), "timing 1 call in 8 (budget 5%)");
        assert_eq!(timing(0.06, 64), "timing 1 call in 64, over the budget of 5%");
    }
}
