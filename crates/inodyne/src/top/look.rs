//! What happened since the last time, and what knowing it cost.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use inodyne_analyse::Live;
use inodyne_launch::own_cpu_time;
use inodyne_model::Nanos;
use inodyne_model::activity::Activity;
use inodyne_model::count::Grouped;
use inodyne_render::escaped;
use inodyne_trace::{LiveTracer, Options};
use jiff::Timestamp;

use super::open_file;
use super::table::Line;
use crate::failure::{ExitStatus, Failure};
use crate::target::Target;

/// How often what has arrived is taken, so that it does not pile up between two looks.
pub const DRAINED_EVERY: Duration = Duration::from_millis(100);

/// Switches after which it is known what tracing adds to one.
const ENOUGH_SWITCHES: u64 = 1_000;

/// Processes of which it is looked at which file they are.
const MOST_AT_FILES: usize = 20;

/// What is shown at a time.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// When it was taken.
    pub at: Timestamp,
    /// What happened since the one before.
    pub activity: Activity,
    /// What it cost.
    pub cost: Cost,
    /// The file at which a process was last found, by its pid: of those who wait for files most.
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
    /// What it adds to calls and switches of those who are followed: how many there were, times the measured cost of one.
    pub tracing: f64,
}

/// Looks again and again.
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
    pub fn new(target: &'a Target) -> Result<Watcher<'a>, Failure> {
        let (tracer, live, meter) = (tracer(target)?, Live::default(), Meter::new());
        let mut watcher = Watcher { target, tracer, live, meter, files: HashMap::new() };
        watcher.begin()?;
        if !target.may_grow() && !watcher.tracer.follows_anyone() {
            let message = format!("{}: there is no thread to follow", target.label());
            return Err(Failure::new(ExitStatus::Usage, message));
        }
        Ok(watcher)
    }

    /// Whether somebody is left, or may come.
    pub fn is_anyone_left(&self) -> bool {
        self.target.may_grow() || self.tracer.follows_anyone()
    }

    /// Takes what has arrived. To be called several times a second.
    pub fn drain(&self) {
        self.tracer.drain();
    }

    /// What happened since the last look; nothing where a new tracer had to take over, as a table of the last one was nearly full.
    ///
    /// # Errors
    /// A table cannot be read, or who came later cannot be followed.
    pub fn look(&mut self) -> Result<Option<Look>, Failure> {
        if self.tracer.is_nearly_full() {
            self.tracer = tracer(self.target)?;
            self.live = Live::default();
            self.begin()?;
            return Ok(None);
        }
        if self.target.may_grow() {
            // A control group may be removed under us: then nobody is in it.
            if let Ok(whom) = self.target.whom() {
                self.tracer.join(&whom)?;
            }
        }
        let at = Timestamp::now();
        let Some(mut activity) = self.live.add(self.tracer.snapshot()?) else { return Ok(None) };
        // For rows of the table of calls, which is not shown.
        activity.lost.calls = 0;
        self.look_at_files(&activity);
        let cost = self.meter.cost(&mut self.tracer, &activity);
        Ok(Some(Look { at, activity, cost, files: self.files.clone() }))
    }

    /// At which files they are who wait for files most.
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
        self.tracer.measure_switches(self.meter.ns_per_switch.is_none());
        self.meter.at_switches = self.tracer.time_at_switches();
        self.live.add(self.tracer.snapshot()?);
        Ok(())
    }
}

fn tracer(target: &Target) -> Result<LiveTracer, Failure> {
    let mut tracer = LiveTracer::new(&Options::default())?;
    tracer.join(&target.whom()?)?;
    Ok(tracer)
}

/// Measures the cost from one look to the next.
struct Meter {
    own: Duration,
    at_switches: Option<Nanos>,
    switches: u64,
    ns_per_switch: Option<f64>,
}

impl Meter {
    fn new() -> Meter {
        Meter { own: own_cpu_time(), at_switches: None, switches: 0, ns_per_switch: None }
    }

    fn cost(&mut self, tracer: &mut LiveTracer, activity: &Activity) -> Cost {
        let accounts = || activity.processes.iter().map(|process| &process.account);
        let calls: u64 = accounts().map(|account| account.calls).sum();
        let switches: u64 = accounts().map(|account| account.switches).sum();
        let own = own_cpu_time();
        let spent = own.saturating_sub(std::mem::replace(&mut self.own, own));
        let mut at_switches = switches as f64 * self.ns_per_switch.unwrap_or_default();
        if let (Some(now), Some(before)) = (tracer.time_at_switches(), self.at_switches) {
            self.switches += switches;
            let measured = now.saturating_sub(before).0 as f64;
            at_switches = measured * switches as f64 / self.switches.max(1) as f64;
            if self.switches >= ENOUGH_SWITCHES {
                self.ns_per_switch = Some(measured / self.switches as f64);
                tracer.measure_switches(false);
            }
        }
        let length_ns = (activity.length_ns.0 as f64).max(1.0);
        Cost {
            own: spent.as_nanos() as f64 / length_ns,
            tracing: (calls as f64 * tracer.ns_per_call() + at_switches) / length_ns,
        }
    }
}
