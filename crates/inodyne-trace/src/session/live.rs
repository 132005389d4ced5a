//! Reading again and again while tracing goes on: snapshots, of which one subtracted from another tells what happened in between.
//!
//! It may go on for days, so what a snapshot has reported for the last time is forgotten: the accounts and waits of threads that have
//! ended. Tables whose entries are kept for good fill up all the same; [`LiveTracer::is_nearly_full`] says when another
//! tracer is to take over.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

use inodyne_launch::monotonic_ns;
use inodyne_model::loss::Loss;
use inodyne_model::observed::{Begin, End, Window};
use inodyne_model::snapshot::Snapshot;
use libbpf_rs::MapCore;

use super::{Tracer, counted, read_error};
use crate::attach::{Ran, measure_run_times};
use crate::cost::Occasion;
use crate::error::TraceError;
use crate::join::Whom;
use crate::options::Options;
use crate::probe::Seen;
use crate::symbols;

/// What tracing adds to one system call.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CostsOfCalls {
    /// To one that is timed.
    pub timed_ns: f64,
    /// To one that is only counted.
    pub untimed_ns: f64,
}

impl CostsOfCalls {
    /// To one on average, if one in `timed_one_in` is timed.
    pub fn on_average(&self, timed_one_in: u32) -> f64 {
        let untimed_ns = self.untimed_ns.min(self.timed_ns);
        untimed_ns + (self.timed_ns - untimed_ns) / f64::from(timed_one_in.max(1))
    }
}

/// A tracer of threads that are already running, which is read while it goes on. It makes no trace: once it has forgotten the threads
/// that have ended, there is none left whose account it could close.
pub struct LiveTracer {
    tracer: Tracer,
    /// Held while the run times of programs are measured.
    measured: Option<OwnedFd>,
}

impl LiveTracer {
    /// Loads and attaches what a live view reads, and measures what it costs.
    ///
    /// # Errors
    /// As [`Tracer::new`].
    pub fn new(options: &Options) -> Result<LiveTracer, TraceError> {
        let options = Options { joins: true, live: true, timeline: false, sample_hz: 0, ..options.clone() };
        Ok(LiveTracer { tracer: Tracer::new(&options)?, measured: None })
    }

    /// As [`Tracer::join`].
    ///
    /// # Errors
    /// The kernel refuses to show its tasks.
    pub fn join(&mut self, whom: &Whom) -> Result<u32, TraceError> {
        self.tracer.join(whom)
    }

    /// As [`Tracer::follows_anyone`].
    pub fn follows_anyone(&self) -> bool {
        self.tracer.follows_anyone()
    }

    /// As [`Tracer::processes`].
    pub fn processes(&self) -> BTreeSet<u32> {
        self.tracer.processes()
    }

    /// Takes what has arrived: accounts of threads that have ended, and executed programs. There is room for some thousand of them.
    pub fn drain(&self) {
        self.tracer.take_arrived();
        self.tracer.make_room();
    }

    /// Times one call in `so_many` from now on, chosen at random; all are counted, and the waits of all are known. At first all are timed.
    pub fn time_one_call_in(&mut self, so_many: u32) {
        self.tracer.time_one_call_in(so_many);
    }

    /// What tracing adds to one system call, as it was measured at the beginning.
    pub fn costs_of_calls(&self) -> CostsOfCalls {
        let calibration = &self.tracer.calibration;
        CostsOfCalls { timed_ns: calibration.ns_per_call, untimed_ns: calibration.ns_per_untimed_call }
    }

    /// Starts or stops measuring the run times of the programs that switches and wake-ups pay for.
    pub fn measure_switches(&mut self, measure: bool) {
        self.measured = if measure { measure_run_times() } else { None };
    }

    /// How much these have run so far, for any thread, while that was measured; none if it is not.
    pub fn ran_at_switches(&self) -> Option<Ran> {
        self.measured.as_ref()?;
        Some(self.tracer.ran_at(Occasion::Switch))
    }

    /// What tracing adds to one switch of a followed thread, given how much these programs have run in how many of these switches.
    pub fn ns_per_switch(&self, ran: Ran, switches: u64) -> f64 {
        self.tracer.calibration.ns_per_switch(ran, switches)
    }

    /// What was seen up to now.
    ///
    /// # Errors
    /// A table cannot be read.
    pub fn snapshot(&mut self) -> Result<Snapshot, TraceError> {
        let tracer = &mut self.tracer;
        let at_ns = monotonic_ns();
        // Before the records are taken: a thread that ends in between is in both, rather than in neither.
        let alive = tracer.accounts().filter(|thread| thread.number != 0).collect();
        tracer.take_arrived();
        let shared = tracer.shared();
        let mut snapshot = Snapshot { at_ns, lost: counted(&shared), ..Snapshot::default() };
        snapshot.lost.add(Loss::Skipped, tracer.lost_at(&tracer.skipped_runs()).values().sum());
        snapshot.observed.window = Window { begin: Begin::Attached, end: End::StillRunning };
        let stacks = tracer.stacks.borrow_mut().take_new();
        snapshot.observed.stacks = symbols::name_stacks(&stacks, &mut tracer.skeleton).map_err(read_error)?;
        let maps = &tracer.skeleton.maps;
        let seen = Seen::read(maps, &tracer.options, at_ns, &shared, alive, Default::default()).map_err(read_error)?;
        for probe in &mut tracer.probes {
            let read = probe.read_so_far(&seen, &mut snapshot);
            read.map_err(|error| read_error(format!("{}: {error}", probe.feature())))?;
        }
        Ok(snapshot)
    }

    /// Whether a table whose entries are kept for good is more than three quarters full.
    pub fn is_nearly_full(&self) -> bool {
        let maps = &self.tracer.skeleton.maps;
        let stacks = (self.tracer.stacks.borrow().len(), maps.stacks_sent.max_entries());
        let of_probes = self.tracer.probes.iter().filter_map(|probe| probe.used_so_far(maps));
        of_probes.chain([stacks]).any(|(used, room)| used > room as usize / 4 * 3)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn it_knows_whom_it_follows_and_what_programs_run_for_others() {
        assert!(rustix::process::geteuid().is_root(), "this test loads programs: run it as root");
        let mut cat = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat starts");
        let mut tracer = LiveTracer::new(&Options::default()).expect("this machine can trace");
        assert!(tracer.tracer.calibration.ns_not_followed > 0.0);
        assert_eq!(tracer.processes(), BTreeSet::new());
        tracer.join(&Whom::Processes(vec![cat.id()])).expect("it is there");
        assert_eq!(tracer.processes(), BTreeSet::from([cat.id()]));
        drop(cat.stdin.take());
        cat.wait().expect("it ends");
    }
}
