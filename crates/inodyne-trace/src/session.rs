//! The life of a tracer: load, attach, follow, drain, finish.
//!
//! A tracer serves one traced run, and what was loaded for it may serve another ([`IdleTracer`]). It is made before the command is launched
//! (loading costs some tens of milliseconds, none of it in the command's time), the held command arms itself through [`Tracer::arm_program`], and
//! [`Tracer::drain`] is called every few milliseconds until the command has ended. Whoever waits for
//! the command drains meanwhile; only what may have to wait itself is left to threads. Processes that are already running are joined instead ([`Tracer::join`]), and left when it finishes.
//!
//! What is recorded is up to the probes (`probes::all`); only who is followed is decided here.

mod beside;
mod clear;
mod idle;
mod live;
mod load;
mod running;
mod stop;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use inodyne_launch::monotonic_ns;
use inodyne_model::Nanos;
use inodyne_model::loss::{Loss, Lost};
use inodyne_model::observed::{Begin, End, Window};
use inodyne_model::syscall::SyscallStats;
use inodyne_model::trace::{Refused, Trace};
use libbpf_rs::skel::Skel;
use libbpf_rs::{ProgramInput, ProgramMut};

use crate::attach::{Attached, InKernel, Ran, attach, measure_run_times, ran, recursion_misses};
use crate::calibrate::{self, Loop};
use crate::cgroups::Cgroups;
use crate::contract::{FLAG_EXITING, FLAG_HELPER, LOSSES, Shared, Thread, global};
use crate::cost::{Calibration, Cost, Longer, Occasion, Reading, runs_per_call};
use crate::error::TraceError;
use crate::join::{Whom, join};
use crate::mapped_files::MappedFiles;
use crate::options::Options;
use crate::probe::{Probe, Program, Seen, Skipped};
use crate::refused::with_most;
use crate::rings::Rings;
use crate::skeleton::InodyneSkel;
use crate::stacks::Stacks;
use crate::thread_table::ThreadTable;
use crate::{probes, symbols};
use beside::LoadedBeside;
pub use idle::IdleTracer;
pub use live::{CostsOfCalls, LiveTracer};
use load::{Loaded, STACKS_BYTES, load, load_error, present};
use running::wait_for_running_programs;

const _: () = assert!(LOSSES == Loss::ALL.len(), "both sides count the same kinds of loss");

/// Hardly any thread has more rows in a table than this.
const ROWS_OF_THREAD: u32 = 256;

/// Calls are timed so rarely that none is while the cost of the others is measured.
const NEVER: u32 = u32::MAX;

/// What a trace says of a probe that was refused.
fn refused(feature: &str, error: &TraceError) -> Refused {
    let probe = probes::all().into_iter().find(|probe| probe.feature() == feature);
    let without = probe.map_or("", |probe| probe.without()).to_owned();
    Refused { feature: feature.to_owned(), without, reason: error.reason() }
}

fn read_error(error: impl std::fmt::Display) -> TraceError {
    TraceError::Read { reason: error.to_string() }
}

/// A loaded tracer, attached to every call and switch of the machine but following nobody yet.
pub struct Tracer {
    links: Vec<Attached>,
    /// Whether, after they were detached, no program runs any more.
    is_quiet: bool,
    /// [`Tracer::skips_so_far`] when it began to matter.
    skipped_before: BTreeMap<&'static str, (u64, u64)>,
    probes: Vec<Box<dyn Probe>>,
    threads: ThreadTable,
    rings: RefCell<Rings>,
    filling: Rc<OwnedFd>,
    stacks: Rc<RefCell<Stacks>>,
    mapped: RefCell<MappedFiles>,
    cgroups: RefCell<Cgroups>,
    options: Options,
    cpus: usize,
    calibration: Calibration,
    /// None for a live view, which measures for itself.
    cost: RefCell<Option<Cost>>,
    refused: Vec<Refused>,
    /// When processes that were already running were first joined; none for a command.
    joined_ns: Option<Nanos>,
    /// How many threads had been born when room was made in tables for the last time.
    born: Cell<u32>,
    /// Programs that are not loaded by libbpf.
    beside: LoadedBeside,
    skeleton: InodyneSkel<'static>,
}

impl Tracer {
    /// Loads and attaches the programs, and measures what they cost. Where the kernel refuses some that the rest can do without,
    /// these are left out: see [`Tracer::refused`].
    ///
    /// # Errors
    /// The machine lacks a privilege or a feature without which nothing can be traced.
    pub fn new(options: &Options) -> Result<Tracer, TraceError> {
        let untraced = [Loop::Cheap, Loop::Opens].map(calibrate::nanoseconds_per_call);
        let options = &Options { max_threads: options.room_for_threads(), ..options.clone() };
        let wanted = probes::wanted(options);
        let optional: Vec<&str> =
            wanted.iter().filter(|probe| probe.is_optional()).map(|probe| probe.feature()).collect();
        let (mut tracer, left_out) = with_most(&optional, |left_out| Tracer::without(options, left_out))?;
        tracer.refused = left_out.into_iter().map(|(feature, error)| refused(feature, &error)).collect();
        tracer.calibrate(untraced)?;
        tracer.nothing_is_skipped_yet();
        Ok(tracer)
    }

    /// Loads and attaches all probes that the options ask for, except those that are left out.
    fn without(options: &Options, left_out: &[&str]) -> Result<Tracer, TraceError> {
        let cpus = libbpf_rs::num_possible_cpus().map_err(load_error)?;
        let mut probes = probes::wanted(options);
        probes.retain(|probe| !left_out.contains(&probe.feature()));
        let loaded = load(&probes, options, cpus)?;
        let mut tracer = Tracer::of(loaded, probes, options, cpus)?;
        tracer.attach()?;
        Ok(tracer)
    }

    /// A tracer that is attached to nothing yet.
    fn of(
        loaded: Loaded,
        mut probes: Vec<Box<dyn Probe>>,
        options: &Options,
        cpus: usize,
    ) -> Result<Tracer, TraceError> {
        let Loaded { skeleton, beside, threads } = loaded;
        let mut rings = Rings::new().map_err(load_error)?;
        let stacks = Rc::new(RefCell::new(Stacks::default()));
        let arriving = Rc::clone(&stacks);
        let take = move |bytes: &[u8]| arriving.borrow_mut().take(bytes);
        let maps = &skeleton.maps;
        rings.add(&maps.stacks, &maps.stacks_larger, STACKS_BYTES, take).map_err(read_error)?;
        for probe in &mut probes {
            probe.open(&skeleton.maps, options, &mut rings).map_err(read_error)?;
        }
        Ok(Tracer {
            links: Vec::new(),
            is_quiet: false,
            skipped_before: BTreeMap::new(),
            threads,
            filling: rings.filling(),
            rings: RefCell::new(rings),
            stacks,
            probes,
            mapped: RefCell::default(),
            cgroups: RefCell::new(Cgroups::new(&skeleton.maps).map_err(read_error)?),
            options: options.clone(),
            cpus,
            calibration: Calibration::default(),
            cost: RefCell::default(),
            refused: Vec::new(),
            joined_ns: None,
            born: Cell::default(),
            beside,
            skeleton,
        })
    }

    /// What is not looked at because the kernel refused it.
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// The program that a held command runs (`BPF_PROG_TEST_RUN`, `args[0]` = 1) to be followed from its `execve`.
    pub fn arm_program(&self) -> BorrowedFd<'_> {
        self.skeleton.progs.follow_arm.as_fd()
    }

    /// Follows processes that are already running, from now on, with all their threads; those already followed stay as they are. Returns how
    /// many threads are new. Needs [`Options::joins`].
    ///
    /// # Errors
    /// The kernel refuses to show its tasks.
    pub fn join(&mut self, whom: &Whom) -> Result<u32, TraceError> {
        let is_first = self.joined_ns.is_none();
        self.joined_ns.get_or_insert_with(monotonic_ns);
        self.let_nobody_help(is_first);
        let joined = join(&mut self.skeleton, whom).map_err(load_error);
        self.let_nobody_help(false);
        joined
    }

    fn let_nobody_help(&mut self, yet: bool) {
        let variables = self.skeleton.maps.bss_data.as_mut().expect("the object has global variables");
        variables.nobody_helps_yet = yet.into();
    }

    /// Whether any thread is followed that has not ended, helpers aside.
    pub fn follows_anyone(&self) -> bool {
        self.accounts().any(|thread| thread.number != 0 && thread.flags & FLAG_HELPER == 0)
    }

    /// The processes that are followed and have not ended, helpers aside, as far as `/proc` shows them here.
    pub fn processes(&self) -> BTreeSet<u32> {
        self.pids_here().collect()
    }

    /// The same, once for each thread.
    fn pids_here(&self) -> impl Iterator<Item = u32> + '_ {
        // Helpers have none.
        let of_command = self.accounts().filter(|thread| thread.number != 0 && thread.pid_here != 0);
        of_command.map(|thread| thread.pid_here)
    }

    /// Readable once [`Tracer::drain`] is to be called sooner than in 10 ms or so, until it is.
    pub fn filling(&self) -> BorrowedFd<'_> {
        self.filling.as_fd()
    }

    /// Takes what has arrived. To be called at least every 10 ms or so while the command runs.
    pub fn drain(&self) {
        self.take_arrived();
        self.make_room();
        self.make_room_in_tables();
        self.mapped.borrow_mut().look(self.pids_here());
        self.look_at_cgroups();
        if let Some(cost) = &mut *self.cost.borrow_mut() {
            if self.probes.iter().any(|probe| probe.has_no_more_room()) {
                cost.stop(|| self.reading());
            } else {
                cost.look(|| self.reading());
            }
        }
    }

    /// Notes that the command has ended: what is seen of devices from here on is kept apart.
    pub fn command_ended(&mut self) {
        for probe in &mut self.probes {
            probe.command_ended(&mut self.skeleton.maps);
        }
    }

    /// Calls seen so far, for progress.
    pub fn calls_so_far(&self) -> u64 {
        self.probes.iter().map(|probe| probe.calls_so_far(&self.skeleton.maps)).sum()
    }

    /// With [`Options::check_known_stacks`]: kernel stacks that were recognised without unwinding so far, and how many of them turned out
    /// to be another one when unwound.
    pub fn known_stacks(&self) -> (u64, u64) {
        let variables = self.skeleton.maps.bss_data.as_ref().expect("the object has global variables");
        (variables.known_stacks_met, variables.known_stacks_wrong)
    }

    /// Stops following and returns what was seen: a trace that does not yet know which case it is of, nor how long it took, unless it is
    /// of a window. To be called once the root process has ended, or at the window's end.
    ///
    /// # Errors
    /// The root was never seen, or a table cannot be read.
    pub fn finish(mut self) -> Result<Trace, TraceError> {
        self.take_trace()
    }

    /// The same; and keeps what was loaded, for another run, unless a program may still be running.
    ///
    /// # Errors
    /// As above.
    pub fn finish_and_keep(mut self) -> Result<(Trace, Option<IdleTracer>), TraceError> {
        let trace = self.take_trace()?;
        Ok((trace, self.is_quiet.then(|| IdleTracer::of(self))))
    }

    fn take_trace(&mut self) -> Result<Trace, TraceError> {
        self.wait_for_ends();
        let skipped = self.skipped_runs();
        let overhead = self.cost.take().map(|cost| cost.finish(self.reading())).unwrap_or_default();
        self.look_at_cgroups();
        let stopped_ns = self.stop();
        self.links.clear();
        self.is_quiet = wait_for_running_programs();
        self.rings.borrow_mut().consume_last();
        // From a part that was refused there is nothing to read. The caller may fork next, which must be done with one thread alone.
        let _ = self.threads.wait();
        let alive: Vec<Thread> = self.accounts().filter(|thread| thread.number != 0).collect();
        // A program that was running on another CPU may have taken the time a moment later.
        let stopped_ns = alive.iter().map(|thread| Nanos(thread.since)).fold(stopped_ns, Nanos::max);
        let stacks = self.stacks.take().take_new();
        let stacks = symbols::name_stacks(&stacks, &mut self.skeleton).map_err(read_error)?;
        let (maps, shared) = (&self.skeleton.maps, self.shared());
        let mut mapped = self.mapped.take();
        let users = mapped.take_users();
        let mapped = mapped.into_files();
        let seen = Seen::read(maps, &self.options, stopped_ns, &shared, alive, mapped);
        let cgroups = self.cgroups.borrow().names().clone();
        let seen = Seen { joined_ns: self.joined_ns, skipped, cgroups, users, ..seen.map_err(read_error)? };
        let mut result = Trace { overhead, lost: counted(&shared), ..Trace::default() };
        result.refused = self.refused.clone();
        result.skipped = self.lost_at(&seen.skipped);
        result.lost.add(Loss::Skipped, result.skipped.values().sum());
        result.observed.stacks = stacks;
        let is_anyone_left = seen.alive.iter().any(|thread| thread.flags & FLAG_HELPER == 0);
        if let Some(joined_ns) = self.joined_ns {
            result.wall_ns = stopped_ns.saturating_sub(joined_ns);
            let end = if is_anyone_left { End::Detached } else { End::Exit };
            result.observed.window = Window { begin: Begin::Attached, end };
        }
        for probe in &mut self.probes {
            let read = probe.read(&seen, &mut result);
            read.map_err(|error| read_error(format!("{}: {error}", probe.feature())))?;
        }
        // One `execve` takes as long as a thousand others: each kind of call has a mean of its own.
        let calls = result.by_comm.iter().flat_map(|command| &command.syscalls);
        let more_ns = |call: &SyscallStats| {
            call.calls as f64 * self.calibration.ns_more_around(call.cpu_ns.0 as f64 / (call.calls as f64).max(1.0))
        };
        let more_ns: f64 = calls.map(more_ns).sum();
        result.overhead.ns_per_call += more_ns / (result.calls() as f64).max(1.0);
        let samples = result.observed.samples.iter().map(|sample| sample.count).sum::<u64>();
        result.overhead.other_ns += Nanos((samples as f64 * self.calibration.ns_per_sample) as u64);
        let observed = &result.observed;
        if observed.window.begin == Begin::Launched && observed.root().is_none() {
            return Err(TraceError::NoStart);
        }
        Ok(result)
    }

    /// Looks up the names of new control groups.
    fn look_at_cgroups(&self) {
        let variables = self.skeleton.maps.bss_data.as_ref().expect("the object has global variables");
        self.cgroups.borrow_mut().look(global(&variables.cgroups_used));
    }

    fn shared(&self) -> Shared {
        let variables = self.skeleton.maps.bss_data.as_ref().expect("the object has global variables");
        global(&variables.shared)
    }

    /// The accounts in all slots that were ever used.
    fn accounts(&self) -> impl Iterator<Item = Thread> + '_ {
        let slots = 1..=self.shared().slots_used.min(self.options.max_threads - 1);
        slots.filter_map(|slot| self.threads.get(slot))
    }

    fn make_room(&self) {
        for probe in &self.probes {
            // What cannot be read now is unknown for this moment, and is read again later.
            let _ = probe.look(&self.skeleton.maps);
        }
        self.rings.borrow_mut().grow();
        self.threads.grow(self.shared().slots_used);
    }

    /// Only for a window: a live view forgets by itself what is over.
    fn make_room_in_tables(&self) {
        let shared = self.shared();
        let born = shared.threads_born.saturating_add(shared.helpers_born);
        let has_filled = born.saturating_sub(self.born.get()) >= self.options.max_rows / ROWS_OF_THREAD;
        if self.joined_ns.is_none() || self.options.live || !has_filled {
            return;
        }
        self.born.set(born);
        let living = || self.accounts().map(|thread| thread.number).collect();
        for probe in &self.probes {
            // What cannot be taken out now stays, and is taken out later.
            let _ = probe.make_room_in_tables(&self.skeleton.maps, &living);
            self.take_arrived();
        }
    }

    fn take_arrived(&self) {
        self.rings.borrow().consume();
    }

    /// The loaded programs of the probes, in the order in which the probes name them.
    fn programs<'a>(&'a self) -> impl Iterator<Item = (InKernel<'a>, &'static Program)> {
        let by_name = |program: ProgramMut<'a>| (program.name(), program);
        let mut of_object: HashMap<&OsStr, ProgramMut<'a>> = self.skeleton.object().progs_mut().map(by_name).collect();
        present(&self.probes).filter_map(move |own| {
            let name = OsStr::new(own.name);
            let by_libbpf = of_object.remove(name)?;
            let loaded = self.beside.get(name).map(|beside| InKernel::Beside(beside.as_fd()));
            Some((loaded.unwrap_or(InKernel::ByLibbpf(by_libbpf)), own))
        })
    }

    /// Of two programs at a tracepoint, the one that is attached first runs first.
    fn attach(&mut self) -> Result<(), TraceError> {
        let mut links = Vec::new();
        for (program, own) in self.programs() {
            links.extend(attach(&program, own.point, self.cpus, self.options.sample_hz)?);
        }
        // They are detached in this order, the last one first: of two programs at a tracepoint the kernel removes the second at once, but for the
        // first it waits some 10 ms until nobody is in either (`tracepoint_remove_func` in kernel/tracepoint.c).
        links.reverse();
        self.links = links;
        Ok(())
    }

    /// Times one call in so many, chosen at random, from now on. Only for a live view.
    fn time_one_call_in(&mut self, so_many: u32) {
        self.skeleton.maps.bss_data.as_mut().expect("the object has global variables").time_one_call_in = so_many;
    }

    /// What programs and the command have done up to now.
    fn reading(&self) -> Reading {
        // Those that found no room were paid for, too.
        let lost = counted(&self.shared()).intervals;
        let switches = self.probes.iter().map(|probe| probe.switches_so_far()).fold(lost, u64::saturating_add);
        Reading {
            at_ns: monotonic_ns().0,
            at_calls: self.ran_at(Occasion::Call),
            at_switches: self.ran_at(Occasion::Switch),
            at_others: self.ran_at(Occasion::Other),
            calls: self.calls_so_far(),
            switches,
        }
    }

    /// How much the programs of one occasion have run so far, while that was measured.
    fn ran_at(&self, occasion: Occasion) -> Ran {
        let mut sum = Ran::default();
        let programs = self.programs().filter(|(_, own)| Occasion::of(own.name) == occasion);
        programs.for_each(|(program, _)| sum += ran(program.as_fd()));
        sum
    }

    /// Has the programs follow this thread, in a group that is never shown. From that they know who traces, and how this kernel reports what is
    /// read of files.
    fn follow_this_thread(&self) -> Result<(), TraceError> {
        run_once(&self.skeleton.progs.follow_arm)?;
        calibrate::read_a_page();
        Ok(())
    }

    fn leave_this_thread(&self) -> Result<(), TraceError> {
        run_once(&self.skeleton.progs.follow_disarm)
    }

    /// How much more a call costs for a followed thread: this one is followed for some milliseconds, in a group that is never shown. The kernel's
    /// own measurement is on from here to the command's first milliseconds.
    fn calibrate(&mut self, untraced_ns: [f64; 2]) -> Result<(), TraceError> {
        self.follow_this_thread()?;
        let [of_cheap, of_opens] = untraced_ns;
        let added = || (calibrate::nanoseconds_per_call(Loop::Cheap) - of_cheap).max(0.0);
        let ns_per_call = added();
        let ns_per_open = calibrate::nanoseconds_per_call(Loop::Opens) - of_opens;
        let mut ns_per_untimed_call = 0.0;
        if self.options.live {
            self.time_one_call_in(NEVER);
            ns_per_untimed_call = added();
            self.time_one_call_in(1);
        }
        let measures = measure_run_times();
        // How long the programs of a call run: zero if that is not measured.
        let in_programs = |calls| {
            let at_calls = || self.ran_at(Occasion::Call).ns;
            measures.as_ref().map_or(0.0, |_| calibrate::nanoseconds_in_programs(calls, at_calls))
        };
        let [followed, of_open] = [Loop::Cheap, Loop::Opens].map(in_programs);
        self.leave_this_thread()?;
        let not_followed = in_programs(Loop::Cheap);
        let ns_around = (ns_per_call - followed) / runs_per_call();
        let more_ns = (ns_per_open - of_open) - (ns_per_call - followed);
        let longer = measures.as_ref().and_then(|_| Longer::new(untraced_ns, more_ns));
        let samples = self.options.sample_hz > 0 && !self.options.live;
        let ns_per_sample = samples.then(calibrate::nanoseconds_per_timer_interrupt).flatten().unwrap_or_default();
        let ns_not_followed = not_followed / runs_per_call();
        self.calibration =
            Calibration { ns_per_call, ns_per_untimed_call, ns_around, ns_not_followed, longer, ns_per_sample };
        if !self.options.live {
            self.cost = RefCell::new(Some(Cost::new(self.calibration, measures, self.reading())));
        }
        Ok(())
    }

    /// A parent learns of its child's end some microseconds before the child leaves its CPU for the last time: so this waits
    /// for the root, and for all others that are on their way out, at most a second. The end of a window is not waited for.
    fn wait_for_ends(&self) {
        if self.joined_ns.is_some() {
            return;
        }
        let deadline = Instant::now() + Duration::from_secs(1);
        loop {
            self.drain();
            let is_leaving = |t: Thread| t.flags & (FLAG_EXITING | FLAG_HELPER) == FLAG_EXITING && t.number != 0;
            let complete = self.probes.iter().all(|probe| probe.is_complete()) && !self.accounts().any(is_leaving);
            if complete || Instant::now() > deadline {
                return;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// How often the kernel has skipped each program, and how often one that runs again did what the first was skipped for, by the program's
    /// name.
    fn skips_so_far(&self) -> BTreeMap<&'static str, (u64, u64)> {
        let variables = self.skeleton.maps.bss_data.as_ref().expect("the object has global variables");
        let skips = |(program, own): (InKernel<'_>, &'static Program)| {
            (own.name, (recursion_misses(program.as_fd()), own.done.map_or(0, |done| done(variables))))
        };
        self.programs().map(skips).collect()
    }

    /// Until somebody is followed, nothing is lost: while this process uses a map, the kernel runs no programs of perf events on that CPU,
    /// and many calls are made to learn what one costs.
    fn nothing_is_skipped_yet(&mut self) {
        self.skipped_before = self.skips_so_far();
    }

    /// With several programs for the same event, the later ones do what the first was skipped for. So what is lost is what the first was skipped
    /// for and none of them has done, and no more than any of them was skipped for.
    fn skipped_runs(&self) -> BTreeMap<&'static str, u64> {
        let so_far = self.skips_so_far();
        let mut skipped: BTreeMap<&'static str, Skips> = BTreeMap::new();
        for (_, own) in self.programs() {
            let since = |count: fn(&(u64, u64)) -> u64| {
                let [now, before] = [&so_far, &self.skipped_before].map(|all| all.get(own.name).map_or(0, count));
                now.saturating_sub(before)
            };
            let of_event = skipped.entry(own.event()).or_default();
            if own.event() == own.name {
                of_event.first = since(|(skipped, _)| *skipped);
            } else {
                of_event.add(since(|(skipped, _)| *skipped), since(|(_, done)| *done));
            }
        }
        skipped.into_iter().map(|(event, skips)| (event, skips.of_all())).collect()
    }

    /// Those of skipped runs that are lost events, by what they ran at.
    fn lost_at(&self, skipped: &BTreeMap<&'static str, u64>) -> BTreeMap<String, u64> {
        let mut lost = BTreeMap::new();
        for own in present(&self.probes).filter(|own| own.skipped == Skipped::Event && own.event() == own.name) {
            let count = skipped.get(own.name).copied().unwrap_or_default();
            if count > 0 {
                *lost.entry(own.point.name().to_owned()).or_default() += count;
            }
        }
        lost
    }
}

/// Skipped runs of the programs for an event.
#[derive(Debug, Clone, Copy, Default)]
struct Skips {
    /// Of the first program.
    first: u64,
    /// Of those that run again: the fewest skips of any one, and how often any of them did what the first was skipped for.
    again: Option<(u64, u64)>,
}

impl Skips {
    /// Adds one that runs again.
    fn add(&mut self, skipped: u64, done: u64) {
        let (least, all) = self.again.unwrap_or((skipped, 0));
        self.again = Some((least.min(skipped), all + done));
    }

    /// For how many events none ran, at most.
    fn of_all(self) -> u64 {
        self.again.map_or(self.first, |(skipped, done)| self.first.saturating_sub(done).min(skipped))
    }
}

/// Runs a program that is called by hand, with arguments that are zero.
fn run_once(program: &ProgramMut<'_>) -> Result<(), TraceError> {
    let mut arguments = [0u8; 8];
    let input = ProgramInput { context_in: Some(&mut arguments), ..ProgramInput::default() };
    program.test_run(input).map(|_| ()).map_err(load_error)
}

/// The kernel side's counts.
fn counted(shared: &Shared) -> Lost {
    let mut lost = Lost::default();
    for (loss, count) in Loss::ALL.iter().zip(shared.lost) {
        lost.add(*loss, count);
    }
    lost
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::*;
    use crate::contract::planted::{every_field_counts, planted};

    unsafe extern "C" {
        fn host_plant_shared(to: *mut Shared);
    }

    #[test]
    fn programs_are_attached_in_the_order_in_which_probes_name_them() {
        assert!(rustix::process::geteuid().is_root(), "this test loads programs: run it as root");
        let tracer = Tracer::new(&Options::default()).expect("this machine can trace");
        let attached: Vec<&str> = tracer.programs().map(|(_, own)| own.name).collect();
        let named: Vec<&str> = present(&tracer.probes).map(|program| program.name).collect();
        assert_eq!(attached, named);
        let in_object: Vec<&OsStr> = tracer.skeleton.object().progs().map(|program| program.name()).collect();
        let mut sorted = attached.clone();
        sorted.sort_by_key(|name| in_object.iter().position(|other| other == name));
        assert_ne!(sorted, attached, "the object has another order: this test tells them apart");
    }

    #[test]
    fn what_later_programs_did_is_not_lost() {
        let of_all = |first, again: &[(u64, u64)]| {
            let mut skips = Skips { first, again: None };
            again.iter().for_each(|(skipped, done)| skips.add(*skipped, *done));
            skips.of_all()
        };
        assert_eq!(of_all(7, &[]), 7);
        // Each was skipped for events of its own.
        assert_eq!(of_all(7, &[(3, 7)]), 0);
        assert_eq!(of_all(7, &[(3, 5)]), 2);
        // What is nobody's, the second does not do either.
        assert_eq!(of_all(7, &[(3, 1)]), 3);
        assert_eq!(of_all(0, &[(3, 0)]), 0);
        // Whatever any of them was not skipped for is not lost.
        assert_eq!(of_all(9, &[(3, 6), (5, 3)]), 0);
        assert_eq!(of_all(9, &[(3, 6), (5, 1)]), 2);
        assert_eq!(of_all(9, &[(3, 1), (1, 1)]), 1);
    }

    #[test]
    fn ring_buffers_wake_the_reader_and_grow_with_what_arrives() {
        assert!(rustix::process::geteuid().is_root(), "this test loads programs: run it as root");
        // On one CPU each of the two runs only while the other waits.
        let (allowed, mut one) = (sched_getaffinity(None).expect("this thread's CPUs"), CpuSet::new());
        one.set((0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu)).expect("it runs somewhere"));
        sched_setaffinity(None, &one).expect("one of its CPUs");
        let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat starts");
        let (mut to, mut from) = (cat.stdin.take().expect("a pipe"), cat.stdout.take().expect("a pipe"));
        let mut wake = |times: usize| {
            for _ in 0..times {
                to.write_all(b"x").expect("it reads");
                from.read_exact(&mut [0]).expect("it writes");
            }
        };
        let options = Options { joins: true, ..Options::default() };
        let mut tracer = Tracer::new(&options).expect("this machine can trace");
        assert_eq!(tracer.join(&Whom::Processes(vec![cat.id()])).expect("it is there"), 1);
        let most = |tracer: &Tracer| tracer.rings.borrow().bytes().into_iter().max();
        let is_filling = |tracer: &Tracer| {
            let mut filling = [PollFd::from_borrowed_fd(tracer.filling(), PollFlags::IN)];
            poll(&mut filling, Some(&Timespec::default())).expect("it can be asked") > 0
        };
        assert!(most(&tracer) < Some(options.timeline_bytes));
        assert!(!is_filling(&tracer));
        wake(3_000);
        (0..1_000).take_while(|_| !is_filling(&tracer)).for_each(|_| wake(100));
        assert!(is_filling(&tracer));
        tracer.drain();
        assert!(!is_filling(&tracer));
        // The larger one is in its place once the kernel has waited for all programs.
        for _ in 0..1_000 {
            tracer.drain();
            if most(&tracer) == Some(options.timeline_bytes) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(most(&tracer), Some(options.timeline_bytes));
        // More than the first one has room for.
        wake(20_000);
        tracer.drain();
        assert!(tracer.probes.iter().map(|probe| probe.switches_so_far()).sum::<u64>() >= 23_000);
        assert_eq!(counted(&tracer.shared()).total(), 0, "{:?}", counted(&tracer.shared()));
        drop(to);
        cat.wait().expect("it ends");
    }

    #[test]
    fn every_loss_is_counted_as_what_it_is() {
        let shared: Shared = planted(host_plant_shared);
        let lost = counted(&shared);
        // The position in `enum loss` is that in the model's list; the layout test compares the names.
        for (at, (loss, count)) in lost.counts().enumerate() {
            assert_eq!(count, 1_000 + at as u64, "{loss:?}");
        }
        let of_the_kernel_side = ["helpers_born", "helpers_alive", "tracer"];
        let read = |shared: &Shared| (counted(shared), shared.threads_born, shared.slots_used);
        assert_eq!((read(&shared).1, read(&shared).2), (62, 63));
        every_field_counts("shared", shared, &of_the_kernel_side, read);
    }
}
