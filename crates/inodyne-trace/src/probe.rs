//! A probe: one part of what is seen, which owns its programs, maps, structures and losses (in its folder below `probes/`).
//!
//! The session asks each in turn to prepare itself, to attach, and in the end to read what it has. It knows none of them by
//! name. A probe that the options do not ask for, or that is left out, costs nothing: its programs are not even loaded.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::OnceLock;

use inodyne_model::Nanos;
use inodyne_model::snapshot::Snapshot;
use inodyne_model::trace::Trace;

use crate::call_slots::CallSlots;
use crate::cgroups;
use crate::contract::{Shared, Thread};
use crate::kernel::{self, Programs};
use crate::mapped_files::Users;
use crate::options::Options;
use crate::rings::Rings;
use crate::skeleton::types::bss;
use crate::skeleton::{InodyneMaps, OpenInodyneSkel};
use crate::thread_numbers::ThreadNumbers;

/// Where a program is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// A tracepoint of the kernel, by name.
    Tracepoint(&'static str),
    /// One of those that show which pages of the page cache are asked for, which older kernels do not have.
    TracepointOfPages(&'static str),
    /// A tracepoint by its perf event, `CATEGORY/NAME` in tracefs: no program loses its CPU there.
    PerfEvent(&'static str),
    /// A tracepoint of a file system, which may be a module that is not there.
    TracepointOf {
        /// The file system, as in /proc/filesystems.
        filesystem: &'static str,
        /// The tracepoint.
        name: &'static str,
    },
    /// A timer on every CPU, at [`Options::sample_hz`].
    CpuClock,
}

impl Point {
    /// The tracepoint, without its subsystem, or the timer, in words.
    pub fn name(&self) -> &'static str {
        match *self {
            Point::Tracepoint(name)
            | Point::TracepointOfPages(name)
            | Point::PerfEvent(name)
            | Point::TracepointOf { name, .. } => name.rsplit('/').next().unwrap_or(name),
            Point::CpuClock => "the cpu-clock timer",
        }
    }
}

/// On all kernels.
pub const ANYWHERE: &[Programs] = &[Programs::KeepCpu, Programs::KeepCpuAtEvents, Programs::LoseCpu];
/// Where a program at a tracepoint can lose its CPU, whether or not there is an alternative.
pub const LOSING: &[Programs] = &[Programs::KeepCpuAtEvents, Programs::LoseCpu];
/// Where there is nothing better than a program at a tracepoint.
pub const NOT_AT_EVENTS: &[Programs] = &[Programs::KeepCpu, Programs::LoseCpu];

/// What is not known if the kernel skips a program, and the one that runs again for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skipped {
    /// An event: it is counted as lost.
    Event,
    /// Less, which the program's probe reports itself ([`Seen::skipped`]).
    Detail,
}

/// A program in the object.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Its function in C.
    pub name: &'static str,
    /// What it runs at.
    pub point: Point,
    /// On which kernels it is loaded.
    pub on: &'static [Programs],
    /// What is not known if it is skipped.
    pub skipped: Skipped,
    /// For one that runs again: how often it did what the first was skipped for.
    pub done: Option<fn(&bss) -> u64>,
}

impl Program {
    /// One that runs there on all kernels.
    pub const fn new(name: &'static str, point: Point) -> Program {
        Program { name, point, on: ANYWHERE, skipped: Skipped::Event, done: None }
    }

    /// One that runs at a tracepoint.
    pub const fn at(name: &'static str, tracepoint: &'static str) -> Program {
        Program::new(name, Point::Tracepoint(tracepoint))
    }

    /// One that runs at a perf event, where the one at the tracepoint can lose its CPU.
    pub const fn held(name: &'static str, event: &'static str) -> Program {
        Program::new(name, Point::PerfEvent(event)).on(&[Programs::KeepCpuAtEvents])
    }

    /// The same, on certain kernels only.
    pub const fn on(self, on: &'static [Programs]) -> Program {
        Program { on, ..self }
    }

    /// The same, but a skipped run is no lost event.
    pub const fn of_detail(self) -> Program {
        Program { skipped: Skipped::Detail, ..self }
    }

    /// The same, which runs again after another one, and counts how often it did what that one was skipped for.
    pub const fn done(self, done: fn(&bss) -> u64) -> Program {
        Program { done: Some(done), ..self }
    }

    /// The event that it runs for, named after the first program if this one runs again after that.
    pub fn event(&self) -> &'static str {
        self.name.trim_end_matches("_again")
    }

    /// Whether this machine has what it runs at, and there is no better one.
    pub fn is_there(&self) -> bool {
        self.on.contains(&Programs::here())
            && match self.point {
                Point::TracepointOf { filesystem, .. } => filesystems().contains(filesystem),
                Point::TracepointOfPages(_) => kernel::shows_pages_asked_for(),
                Point::Tracepoint(_) | Point::PerfEvent(_) | Point::CpuClock => true,
            }
    }
}

/// The file systems of this kernel, except for modules that are not loaded.
fn filesystems() -> &'static BTreeSet<String> {
    static KNOWN: OnceLock<BTreeSet<String>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
        text.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect()
    })
}

/// A part of what is seen.
pub trait Probe {
    /// What it provides, in words: `"system calls"`.
    fn feature(&self) -> &'static str;

    /// What is not known without it, in words: `"no system call is seen"`.
    fn without(&self) -> &'static str;

    /// Whether the others go on if the kernel refuses it.
    fn is_optional(&self) -> bool {
        false
    }

    /// Its programs, in the order in which they are attached: in which those at one tracepoint run.
    fn programs(&self) -> &'static [Program];

    /// Whether a live view reads it ([`Probe::read_so_far`]).
    fn is_of_live_view(&self) -> bool {
        false
    }

    /// Whether the options ask for it.
    fn is_wanted(&self, _options: &Options) -> bool {
        true
    }

    /// Before loading: sets constants and the sizes of maps for a machine with so many CPUs.
    fn configure(&self, _object: &mut OpenInodyneSkel<'_>, _options: &Options, _cpus: usize) -> libbpf_rs::Result<()> {
        Ok(())
    }

    /// After loading, before anything is attached: opens tables that are read while the trace runs, and ring buffers.
    fn open(&mut self, _maps: &InodyneMaps<'static>, _options: &Options, _rings: &mut Rings) -> libbpf_rs::Result<()> {
        Ok(())
    }

    /// Calls seen so far, for progress; of all probes together.
    fn calls_so_far(&self, _maps: &InodyneMaps<'static>) -> u64 {
        0
    }

    /// Returns to a CPU that have arrived so far; of all probes together.
    fn switches_so_far(&self) -> u64 {
        0
    }

    /// Whether it has stopped recording what arrives, because there is enough of it.
    fn has_no_more_room(&self) -> bool {
        false
    }

    /// For a live view: how many rows the table whose entries are kept throughout had at the last look, and how many it has
    /// room for.
    fn used_so_far(&self, _maps: &InodyneMaps<'static>) -> Option<(usize, u32)> {
        None
    }

    /// Every few milliseconds while the trace runs: notes what it wants to know about the state of things at that moment.
    fn look(&self, _maps: &InodyneMaps<'static>) -> libbpf_rs::Result<()> {
        Ok(())
    }

    /// For a window, which may last long: takes what it has about threads that have ended out of tables that would otherwise fill up. `living`
    /// gives the numbers of those that are alive.
    fn make_room_in_tables(
        &self,
        _maps: &InodyneMaps<'static>,
        _living: &dyn Fn() -> HashSet<u32>,
    ) -> libbpf_rs::Result<()> {
        Ok(())
    }

    /// When the command has ended, and what it left to be written may still be seen.
    fn command_ended(&mut self, _maps: &mut InodyneMaps<'static>) {}

    /// Whether everything that is still to come when the command has ended has arrived.
    fn is_complete(&self) -> bool {
        true
    }

    /// After everything was detached and all ring buffers were drained: adds what it has to the result. It finds there what the
    /// probes before it in the list have read.
    fn read(&mut self, seen: &Seen<'_>, result: &mut Trace) -> libbpf_rs::Result<()>;

    /// While tracing goes on: adds what it has so far, and forgets what is over. It finds there what the probes before it have read.
    fn read_so_far(&mut self, _seen: &Seen<'_>, _snapshot: &mut Snapshot) -> libbpf_rs::Result<()> {
        Ok(())
    }
}

/// What all probes may look at when they read.
pub struct Seen<'a> {
    /// All maps of the object.
    pub maps: &'a InodyneMaps<'static>,
    /// What was asked for.
    pub options: &'a Options,
    /// When processes that were already running were first joined; none for a command, nor for a snapshot.
    pub joined_ns: Option<Nanos>,
    /// Until when everything was recorded; for a snapshot, when it is taken.
    pub stopped_ns: Nanos,
    /// Accounts of threads, the command's and others', that had not ended.
    pub alive: Vec<Thread>,
    /// Which call each slot in a thread's account stands for.
    pub call_slots: CallSlots,
    /// Numbers of threads in the recording.
    pub numbers: ThreadNumbers,
    /// Files that the command's processes had mapped as code.
    pub mapped: BTreeSet<PathBuf>,
    /// Whose processes these were, as far as they were seen.
    pub users: Users,
    /// Names of control groups, by the kernel's numbers for them.
    pub cgroups: cgroups::Names,
    /// How often the kernel skipped the programs for an event, at most, by [`Program::event`].
    pub skipped: BTreeMap<&'static str, u64>,
}

impl<'a> Seen<'a> {
    /// Reads what is shared.
    pub fn read(
        maps: &'a InodyneMaps<'static>,
        options: &'a Options,
        stopped_ns: Nanos,
        shared: &Shared,
        alive: Vec<Thread>,
        mapped: BTreeSet<PathBuf>,
    ) -> libbpf_rs::Result<Seen<'a>> {
        Ok(Seen {
            maps,
            options,
            joined_ns: None,
            stopped_ns,
            alive,
            call_slots: CallSlots::read(maps)?,
            numbers: ThreadNumbers { threads: shared.threads_born },
            mapped,
            users: Users::new(),
            cgroups: cgroups::Names::new(),
            skipped: BTreeMap::new(),
        })
    }
}
