//! The life of a tracer: load, attach, follow, drain, finish.
//!
//! A tracer serves one traced run. It is made before the command is launched (loading costs some tens of
//! milliseconds, none of it in the command's time), the held command arms itself through [`Tracer::arm_program`], and
//! [`Tracer::drain`] is called every few milliseconds until the command has ended. There is no thread: whoever waits for
//! the command drains meanwhile.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use inodyne_model::Nanos;
use inodyne_model::loss::Lost;
use inodyne_model::observed::{Observed, ROOT};
use inodyne_model::syscall::CommCalls;
use inodyne_model::trace::{Dtype, Overhead, Paths};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, OpenObject, ProgramInput, ProgramMut, libbpf_sys};

use crate::intf::{self, Cell, FLAG_EXITING, FLAG_HELPER, Thread};
use crate::map::{ArrayView, pairs, per_cpu};
use crate::mapped_files::MappedFiles;
use crate::names::Groups;
use crate::probes::{calls, dtype, lives, paths, samples, switches};
use crate::skeleton::{InodyneSkel, InodyneSkelBuilder};
use crate::stream::Stream;
use crate::{calibrate, libbpf_log, symbols, user_symbols};

/// How much a tracer may record. The defaults suit everything but tests and very long runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// On-CPU samples a second and CPU; 0 switches sampling off. 997 is not a multiple of any timer's rate.
    pub sample_hz: u32,
    /// Whether to keep the timeline.
    pub timeline: bool,
    /// Size of the timeline's ring buffer in bytes: a power of two, at least 4096.
    pub timeline_bytes: u32,
    /// Size of the ring buffer for ended threads and executed programs: a power of two, at least 4096.
    pub records_bytes: u32,
    /// Intervals kept of a run; the rest is counted as lost.
    pub max_intervals: usize,
    /// Different paths kept of those looked up; 0: none are asked for.
    pub max_paths: u32,
    /// Threads alive at the same time.
    pub max_threads: u32,
    /// Threads of others, alive at the same time, that are followed because the command waits for them.
    pub max_helpers: u32,
    /// Different (command, call) pairs, at most 65,534.
    pub max_cells: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            sample_hz: 997,
            timeline: true,
            timeline_bytes: 16 << 20,
            records_bytes: 8 << 20,
            max_intervals: 4_000_000,
            max_paths: 0,
            max_threads: 8192,
            max_helpers: 256,
            max_cells: 1024,
        }
    }
}

/// Why tracing is not possible.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The kernel refused the programs or maps.
    #[error("the kernel refused the tracing programs ({reason}); 'inodyne doctor' says what is missing")]
    Load {
        /// What libbpf said.
        reason: String,
    },
    /// A program found nothing to attach to.
    #[error("cannot attach to {point} ({reason}); 'inodyne doctor' says what is missing")]
    Attach {
        /// The tracepoint.
        point: String,
        /// What libbpf said.
        reason: String,
    },
    /// A table could not be read back.
    #[error("cannot read the tracing tables: {reason}")]
    Read {
        /// What the system said.
        reason: String,
    },
    /// The command ended before it executed anything.
    #[error("the command was never seen to start")]
    NoStart,
}

fn load_error(error: impl std::fmt::Display) -> TraceError {
    TraceError::Load { reason: error.to_string() }
}

fn read_error(error: impl std::fmt::Display) -> TraceError {
    TraceError::Read { reason: error.to_string() }
}

/// Everything that was collected of one run.
pub struct Collected {
    /// Calls by command name.
    pub by_comm: Vec<CommCalls>,
    /// Directory entries and their types.
    pub dtype: Dtype,
    /// Paths looked up, where these were asked for.
    pub paths: Option<Paths>,
    /// What a call costs more with tracing; `ratio` is still to be computed.
    pub overhead: Overhead,
    /// What could not be recorded.
    pub lost: Lost,
    /// Threads, waits, samples, stacks, timeline.
    pub observed: Observed,
}

/// A loaded tracer, attached to every call and switch of the machine but following nobody yet.
pub struct Tracer {
    skeleton: InodyneSkel<'static>,
    links: Vec<Link>,
    threads: ArrayView<Thread>,
    cells: ArrayView<Cell>,
    cell_refs: ArrayView<u32>,
    stream: Stream,
    mapped: RefCell<MappedFiles>,
    options: Options,
    cpus: usize,
    overhead: Overhead,
}

impl Tracer {
    /// Loads and attaches the programs, and measures what they cost.
    ///
    /// # Errors
    /// The machine lacks a privilege or a feature.
    pub fn new(options: &Options) -> Result<Tracer, TraceError> {
        let untraced = calibrate::nanoseconds_per_call();
        let cpus = libbpf_rs::num_possible_cpus().map_err(load_error)?;
        let skeleton = load(options, cpus)?;
        let maps = &skeleton.maps;
        let mut tracer = Tracer {
            links: Vec::new(),
            threads: ArrayView::new(&maps.threads).map_err(read_error)?,
            cells: ArrayView::new(&maps.cells).map_err(read_error)?,
            cell_refs: ArrayView::new(&maps.cell_refs).map_err(read_error)?,
            stream: Stream::new(&maps.records, &maps.timeline, options.max_intervals).map_err(load_error)?,
            mapped: RefCell::default(),
            options: options.clone(),
            cpus,
            overhead: Overhead::default(),
            skeleton,
        };
        tracer.attach()?;
        tracer.overhead = tracer.calibrate(untraced)?;
        Ok(tracer)
    }

    /// The program that a held command runs (`BPF_PROG_TEST_RUN`, `args[0]` = 1) to be followed from its `execve`.
    pub fn arm_program(&self) -> BorrowedFd<'_> {
        self.skeleton.progs.lives_arm.as_fd()
    }

    /// Takes what has arrived. To be called at least every 10 ms or so while the command runs.
    pub fn drain(&self) {
        self.stream.drain();
        let slots = 1..=self.shared().slots_used.min(self.options.max_threads - 1);
        let threads = slots.map(|slot| self.threads.get(slot as usize));
        let of_command = threads.filter(|thread| thread.number != 0 && thread.flags & FLAG_HELPER == 0);
        self.mapped.borrow_mut().look(of_command.map(|thread| thread.pid));
    }

    /// Calls seen so far, for progress.
    pub fn calls_so_far(&self) -> u64 {
        let cells = self.shared().cells.min(self.options.max_cells) as usize;
        let first = |cpu| cpu * self.options.max_cells as usize;
        let all = (0..self.cpus).flat_map(|cpu| first(cpu)..first(cpu) + cells);
        all.map(|index| self.cells.get(index).calls).sum()
    }

    /// Threads that have been born and threads that have ended so far, for progress.
    pub fn threads_so_far(&self) -> (u32, usize) {
        (self.shared().threads_born, self.stream.threads_ended())
    }

    /// Stops following and returns what was seen. To be called once the root process has ended.
    ///
    /// # Errors
    /// The root was never seen, or a table cannot be read.
    pub fn finish(mut self) -> Result<Collected, TraceError> {
        self.wait_for_ends();
        let skipped = self.skipped_runs();
        self.links.clear();
        wait_for_running_programs();
        let detached_ns = monotonic_ns();
        let shared = self.shared();
        let arrived = self.stream.finish();
        let alive = (1..=shared.slots_used.min(self.options.max_threads - 1))
            .map(|slot| self.threads.get(slot as usize))
            .filter(|thread| thread.number != 0);
        let numbers = switches::Numbers { threads: shared.threads_born };
        let helpers = lives::helpers(&arrived.threads, alive.clone(), detached_ns, numbers);

        let maps = &self.skeleton.maps;
        let groups = Groups::new(pairs(&maps.groups).map_err(read_error)?);
        let ordinals = calls::Ordinals::read(&self.cell_refs);
        let (threads, unfinished_waits) = lives::threads(&arrived.threads, alive, &ordinals, detached_ns);
        let root = threads.first().filter(|thread| thread.number == ROOT).ok_or(TraceError::NoStart)?;
        let started_ns = root.born_ns;
        let mut waits = switches::waits(pairs(&maps.waits).map_err(read_error)?);
        waits.extend(unfinished_waits);
        let stacks = pairs(&maps.stacks).map_err(read_error)?;
        let mut stacks = symbols::name_stacks(&stacks);
        switches::find_interrupts(&mut waits, &stacks);
        waits.sort_by_key(|wait| (wait.thread, std::cmp::Reverse(wait.ns), wait.stack, wait.waker_stack));
        let (timeline, work) = switches::timeline(&arrived, started_ns, &stacks, &ordinals, numbers);
        let programs = lives::programs(&arrived.programs);
        let mapped = self.mapped.take().into_files();
        let user_stacks = pairs(&maps.user_stacks).map_err(read_error)?;
        stacks.extend(user_symbols::name_stacks(&user_stacks, &programs, &mapped));
        let (samples, blocked_samples) = samples::read(pairs(&maps.samples).map_err(read_error)?);
        let lost = Lost {
            calls: shared.lost.calls,
            threads: shared.lost.threads,
            records: shared.lost.records,
            intervals: shared.lost.intervals + arrived.dropped_intervals,
            waits: shared.lost.waits,
            samples: shared.lost.samples,
            stacks: shared.lost.stacks,
            dtype: shared.lost.dtype,
            work: shared.lost.work + arrived.dropped_work,
            helpers: shared.lost.helpers,
            skipped,
        };
        Ok(Collected {
            by_comm: calls::by_comm(&self.cells, &self.cell_refs, &groups, self.cpus, self.options.max_cells as usize),
            dtype: dtype::read(
                per_cpu(&maps.dtype_walk).map_err(read_error)?,
                pairs(&maps.dtype_filesystems).map_err(read_error)?,
                pairs(&maps.dtype_directories).map_err(read_error)?,
                pairs(&maps.forced).map_err(read_error)?,
            ),
            paths: match self.options.max_paths {
                0 => None,
                _ => Some(paths::read(pairs(&maps.paths).map_err(read_error)?, shared.paths_not_kept)),
            },
            overhead: self.overhead,
            lost,
            observed: Observed {
                started_ns,
                threads,
                programs,
                waits,
                samples,
                blocked_samples,
                sample_hz: self.options.sample_hz,
                stacks,
                timeline,
                work,
                helpers,
            },
        })
    }

    fn shared(&self) -> intf::Shared {
        let bss = self.skeleton.maps.bss_data.as_ref().expect("the object has global variables");
        let shared = std::ptr::from_ref(&bss.shared).cast::<intf::Shared>();
        // SAFETY: the same structure by the layout test; volatile, since the kernel may write meanwhile.
        unsafe { shared.read_volatile() }
    }

    fn attach(&mut self) -> Result<(), TraceError> {
        let programs = &mut self.skeleton.progs;
        let error = |point: &str| {
            let point = point.to_owned();
            move |error: libbpf_rs::Error| TraceError::Attach { point, reason: libbpf_log::explained(&error) }
        };
        self.links = vec![
            programs.lives_fork.attach().map_err(error("sched_process_fork"))?,
            programs.lives_rename.attach().map_err(error("task_rename"))?,
            programs.lives_exec.attach().map_err(error("sched_process_exec"))?,
            programs.lives_exit.attach().map_err(error("sched_process_exit"))?,
            programs.switches_switch.attach().map_err(error("sched_switch"))?,
            programs.switches_waking.attach().map_err(error("sched_waking"))?,
            programs.calls_enter.attach().map_err(error("sys_enter"))?,
            programs.calls_exit.attach().map_err(error("sys_exit"))?,
        ];
        if self.options.sample_hz > 0 {
            for cpu in 0..self.cpus as i32 {
                // A CPU that is not on line has no clock to sample by.
                let Ok(event) = open_cpu_clock(cpu, self.options.sample_hz) else { continue };
                let link = programs.samples_take.attach_perf_event(event.as_raw_fd());
                self.links.push(link.map_err(error("the cpu-clock timer"))?);
                // The link keeps the event open and closes its descriptor.
                std::mem::forget(event);
            }
        }
        Ok(())
    }

    /// What a call costs more for a followed thread: this one, for some milliseconds, in a group that is never shown.
    fn calibrate(&self, untraced_ns: f64) -> Result<Overhead, TraceError> {
        let run = |program: &ProgramMut<'_>| {
            let mut arguments = [0u8; 8];
            let input = ProgramInput { context_in: Some(&mut arguments), ..ProgramInput::default() };
            program.test_run(input).map(|_| ()).map_err(load_error)
        };
        run(&self.skeleton.progs.lives_arm)?;
        let traced_ns = calibrate::nanoseconds_per_call();
        run(&self.skeleton.progs.lives_disarm)?;
        Ok(Overhead { ratio: 1.0, estimated: true, ns_per_call: (traced_ns - untraced_ns).max(0.0) })
    }

    /// A parent learns of its child's end some microseconds before the child leaves its CPU for the last time: waits
    /// for the root, and for all others that are on their way out, at most a second.
    fn wait_for_ends(&self) {
        let deadline = Instant::now() + Duration::from_secs(1);
        loop {
            self.drain();
            let slots = self.shared().slots_used.min(self.options.max_threads - 1) as usize;
            let leaving = (1..=slots)
                .map(|slot| self.threads.get(slot))
                .any(|t| t.flags & (FLAG_EXITING | FLAG_HELPER) == FLAG_EXITING && t.number != 0);
            if (self.stream.has_ended(ROOT) && !leaving) || Instant::now() > deadline {
                return;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Program runs that the kernel skipped because the same program already ran on that CPU.
    fn skipped_runs(&self) -> u64 {
        let programs = &self.skeleton.progs;
        let descriptors = [
            programs.lives_fork.as_fd(),
            programs.lives_rename.as_fd(),
            programs.lives_exec.as_fd(),
            programs.lives_exit.as_fd(),
            programs.switches_switch.as_fd(),
            programs.switches_waking.as_fd(),
            programs.calls_enter.as_fd(),
            programs.calls_exit.as_fd(),
            programs.samples_take.as_fd(),
        ];
        descriptors.iter().map(recursion_misses).sum()
    }
}

fn load(options: &Options, cpus: usize) -> Result<InodyneSkel<'static>, TraceError> {
    libbpf_log::listen();
    // The skeleton borrows the object's place for its whole life, and a tracer is to be a value that can be moved.
    let place: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
    let mut open = InodyneSkelBuilder::default().open(place).map_err(load_error)?;
    let constants = open.maps.rodata_data.as_mut().expect("the object has constants");
    constants.max_threads = options.max_threads;
    constants.max_helpers = options.max_helpers;
    constants.blocked_sample_ns = 1_000_000_000u64.checked_div(options.sample_hz.into()).unwrap_or(0);
    constants.max_cells = options.max_cells;
    constants.record_timeline = u32::from(options.timeline);
    constants.record_paths = u32::from(options.max_paths > 0);
    let maps = &mut open.maps;
    let sizes = [
        maps.slot_of.set_max_entries(pid_max()),
        maps.threads.set_max_entries(options.max_threads),
        maps.marks.set_max_entries(options.max_threads),
        maps.free_slots.set_max_entries(options.max_threads),
        maps.cells.set_max_entries(options.max_cells * cpus as u32),
        maps.paths.set_max_entries(options.max_paths.max(1)),
        maps.records.set_max_entries(options.records_bytes),
        maps.timeline.set_max_entries(options.timeline_bytes),
    ];
    for size in sizes {
        size.map_err(load_error)?;
    }
    open.load().map_err(|error| TraceError::Load { reason: libbpf_log::explained(&error) })
}

/// One more than the largest pid of this machine.
fn pid_max() -> u32 {
    const LIMIT: u32 = 4 << 20; // PID_MAX_LIMIT, include/linux/threads.h
    let text = std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    text.trim().parse().unwrap_or(LIMIT).clamp(1, LIMIT)
}

fn open_cpu_clock(cpu: i32, hz: u32) -> std::io::Result<OwnedFd> {
    const PERF_FLAG_FD_CLOEXEC: u64 = 8; // include/uapi/linux/perf_event.h
    let mut attributes = libbpf_sys::perf_event_attr {
        type_: libbpf_sys::PERF_TYPE_SOFTWARE,
        config: libbpf_sys::PERF_COUNT_SW_CPU_CLOCK.into(),
        size: size_of::<libbpf_sys::perf_event_attr>() as u32,
        ..Default::default()
    };
    attributes.__bindgen_anon_1.sample_freq = hz.into();
    attributes.set_freq(1);
    // SAFETY: the attributes are valid for their stated size; all processes (-1) on one CPU, no group.
    let descriptor =
        unsafe { libc::syscall(libc::SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC) };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

fn recursion_misses(program: &BorrowedFd<'_>) -> u64 {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = size_of_val(&info) as u32;
    // SAFETY: the structure is valid for the length given.
    let failed = unsafe { libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &mut info, &mut length) };
    if failed != 0 { 0 } else { info.recursion_misses }
}

/// A program may still run on another CPU after it was detached; MEMBARRIER_CMD_GLOBAL returns once none does.
fn wait_for_running_programs() {
    const MEMBARRIER_CMD_GLOBAL: i32 = 1; // include/uapi/linux/membarrier.h
    // SAFETY: no memory is passed. Where the kernel does not offer it, a read of a dying account may be torn.
    unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
}

/// The clock of all trace times.
pub fn monotonic_ns() -> Nanos {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}
