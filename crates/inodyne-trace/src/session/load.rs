//! Loading: which programs, with which constants and sizes of maps, with which of the kernel's types, and how many at a time.

use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{AsRawLibbpf, OpenObject, libbpf_sys};

use super::beside::{Beside, LoadedBeside, SECTION};
use crate::contract::THREADS_IN_PART;
use crate::error::TraceError;
use crate::options::Options;
use crate::probe::{Probe, Program};
use crate::rings::first_bytes;
use crate::skeleton::{InodyneSkel, InodyneSkelBuilder, OpenInodyneSkel};
use crate::thread_table::{ThreadTable, parts_for};
use crate::types::{self, PartOfTypes};
use crate::{kernel, libbpf_log, probes};

/// The structure that stands for any number of eight bytes (`bpf/known_stack.h`).
const WORD: &str = "timespec64";

/// Initial size of the ring buffer for stacks, in bytes per CPU: room for some hundred new ones.
const STACKS_BYTES_OF_CPU: u32 = 128 << 10;

/// ... and where many new ones arrive.
pub const STACKS_BYTES: u32 = 4 << 20;

/// It could not be loaded.
pub fn load_error(error: impl std::fmt::Display) -> TraceError {
    TraceError::Load { reason: error.to_string() }
}

/// The programs of these probes, except those of file systems that this machine does not have.
pub fn present(probes: &[Box<dyn Probe>]) -> impl Iterator<Item = &'static Program> + '_ {
    probes.iter().flat_map(|probe| probe.programs()).filter(|program| program.is_there())
}

/// What was loaded.
pub struct Loaded {
    /// By libbpf, with all maps.
    pub skeleton: InodyneSkel<'static>,
    /// The other programs.
    pub beside: LoadedBeside,
    /// The table of threads, with its first parts.
    pub threads: ThreadTable,
}

/// Loads the programs, with the part of the kernel's types that they ask about, and some of them beside the others; where that is not possible,
/// with all types and one after the other.
pub fn load(probes: &[Box<dyn Probe>], options: &Options, cpus: usize) -> Result<Loaded, TraceError> {
    let part = PartOfTypes::empty().and_then(|part| load_with(probes, options, cpus, Some(part)).ok());
    part.map_or_else(|| load_with(probes, options, cpus, None), Ok)
}

fn load_with(
    probes: &[Box<dyn Probe>],
    options: &Options,
    cpus: usize,
    part: Option<PartOfTypes>,
) -> Result<Loaded, TraceError> {
    libbpf_log::listen();
    // The skeleton borrows the object's place for its whole life, and a tracer must be a value that can be moved.
    let place: &'static mut MaybeUninit<OpenObject> = Box::leak(Box::new(MaybeUninit::uninit()));
    let mut builder = InodyneSkelBuilder::default();
    if let Some(part) = &part {
        builder.object_builder_mut().btf_custom_path(part.path()).map_err(load_error)?;
    }
    let mut open = builder.open(place).map_err(load_error)?;
    let constants = open.maps.rodata_data.as_mut().expect("the object has constants");
    constants.max_threads = options.max_threads;
    let wide_slots = options.max_threads > u32::from(u16::MAX);
    constants.wide_slots = u32::from(wide_slots);
    constants.max_helpers = options.max_helpers;
    constants.calls_may_go_untimed = u32::from(options.live);
    constants.record_timeline = u32::from(options.timeline);
    // When a watched process that was already running, typically a server, sends something, the receiver is its client.
    constants.adopt_servers = u32::from(!options.joins);
    constants.kernel_stack_bytes = kernel_stack_bytes();
    constants.page_bytes = kernel::page_bytes() as u32;
    constants.check_known_stacks = u32::from(options.check_known_stacks);
    constants.programs_lose_cpu = u32::from(kernel::programs_lose_cpu());
    constants.refused_probe = options.refuse.as_deref().map_or(Ok(0), number_of)?;
    let maps = &mut open.maps;
    let slots_in_element = if wide_slots { 2 } else { 4 };
    maps.slots.set_max_entries(pid_max().div_ceil(slots_in_element)).map_err(load_error)?;
    let stacks = first_bytes(STACKS_BYTES_OF_CPU, cpus, STACKS_BYTES);
    maps.stacks.set_max_entries(stacks).map_err(load_error)?;
    maps.threads.set_max_entries(parts_for(options.max_threads)).map_err(load_error)?;
    maps.last_sent.set_max_entries(parts_for(options.max_threads)).map_err(load_error)?;
    if !options.joins {
        maps.joining.set_max_entries(1).map_err(load_error)?;
    }
    maps.free_slots.set_max_entries(options.max_threads).map_err(load_error)?;
    for probe in probes {
        probe.configure(&mut open, options, cpus).map_err(load_error)?;
    }
    // What belongs to a probe that is left out is not loaded.
    let wanted: Vec<&str> = present(probes).map(|program| program.name).collect();
    let all = probes::all();
    let known = || all.iter().flat_map(|probe| probe.programs());
    open.progs.follow_running.set_autoload(options.joins);
    for mut program in open.open_object_mut().progs_mut() {
        if known().any(|own| own.name == program.name()) && !wanted.iter().any(|name| *name == program.name()) {
            program.set_autoload(false);
        }
    }
    let refused = |error: libbpf_rs::Error| TraceError::Load { reason: libbpf_log::explained(&error) };
    let Some(mut part) = part else {
        set_number_of_word(&mut open, types::number_of(WORD));
        let skeleton = open.load().map_err(refused)?;
        let threads = threads(skeleton.maps.threads.as_fd(), skeleton.maps.last_sent.as_fd(), options)?;
        threads.wait().map_err(load_error)?;
        return Ok(Loaded { skeleton, beside: LoadedBeside::new(), threads });
    };
    let known = part.fill(&idle_sections(&open), WORD, SECTION).ok_or_else(|| load_error("no part of types"))?;
    set_number_of_word(&mut open, known.structure);
    // SAFETY: the object is open.
    let failed = unsafe { libbpf_sys::bpf_object__prepare(open.open_object_mut().as_libbpf_object().as_ptr()) };
    if failed != 0 {
        return Err(refused(libbpf_rs::Error::from_raw_os_error(-failed)));
    }
    let beside = Beside::take(&mut open, &known.tracepoints);
    let threads = threads(descriptor_of(&open, c"threads")?, descriptor_of(&open, c"last_sent")?, options)?;
    let loaded = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new();
        let beside = thread.spawn_scoped(scope, || Beside::load_all(&beside)).map_err(load_error)?;
        // If this fails it closes the types, and then the other thread fails, too.
        let skeleton = open.load();
        let beside = beside.join().expect("a thread that does not panic");
        Ok(Loaded { skeleton: skeleton.map_err(refused)?, beside: beside.map_err(load_error)?, threads })
    })?;
    // The kernel waited for it meanwhile.
    loaded.threads.wait().map_err(load_error)?;
    Ok(loaded)
}

/// Begins the table of threads, with room for those that exist and may be joined, and for others.
fn threads(threads: BorrowedFd<'_>, last_sent: BorrowedFd<'_>, options: &Options) -> Result<ThreadTable, TraceError> {
    let first = options.threads_there() + THREADS_IN_PART / 2;
    ThreadTable::begin(threads, last_sent, first, options.max_threads).map_err(load_error)
}

/// The descriptor of a map, in an object whose maps libbpf has created.
fn descriptor_of(open: &OpenInodyneSkel<'_>, map: &CStr) -> Result<BorrowedFd<'static>, TraceError> {
    // SAFETY: the object is open.
    let descriptor = unsafe {
        libbpf_sys::bpf_object__find_map_fd_by_name(open.open_object().as_libbpf_object().as_ptr(), map.as_ptr())
    };
    if descriptor < 0 {
        return Err(load_error(format!("no map {map:?}")));
    }
    // SAFETY: the object's place is never freed, and it keeps its maps open until it is dropped, after all use of this.
    Ok(unsafe { BorrowedFd::borrow_raw(descriptor) })
}

/// Tells the programs the number, 0 where there is none.
fn set_number_of_word(open: &mut OpenInodyneSkel<'_>, number: Option<u32>) {
    let constants = open.maps.rodata_data.as_mut().expect("the object has constants");
    constants.number_of_word = number.unwrap_or_default();
}

/// Sections of the object from which no program is loaded.
fn idle_sections<'o>(open: &'o OpenInodyneSkel<'_>) -> BTreeSet<&'o OsStr> {
    let sections = |loaded: bool| {
        let programs = open.open_object().progs().filter(move |program| program.autoload() == loaded);
        programs.map(|program| program.section()).collect::<BTreeSet<_>>()
    };
    &sections(false) - &sections(true)
}

/// How large a thread's stack in the kernel is: 16 KiB, or a page where that is larger (arm64 with pages of 64 KiB).
fn kernel_stack_bytes() -> u32 {
    (kernel::page_bytes() as u32).max(16 << 10)
}

/// How `bpf/refuse.h` numbers a probe.
fn number_of(name: &str) -> Result<u32, TraceError> {
    let place = probes::NAMES.iter().position(|known| *known == name);
    place
        .map(|place| place as u32 + 1)
        .ok_or_else(|| TraceError::NoSuchProbe { name: name.to_owned(), known: probes::NAMES.join(", ") })
}

/// One more than the largest pid of this machine.
fn pid_max() -> u32 {
    const LIMIT: u32 = 4 << 20; // PID_MAX_LIMIT, include/linux/threads.h
    let text = std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    text.trim().parse().unwrap_or(LIMIT).clamp(1, LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_load_with_a_part_of_the_types_and_with_all() {
        assert!(rustix::process::geteuid().is_root(), "this test loads programs: run it as root");
        let options = Options::default();
        let cpus = libbpf_rs::num_possible_cpus().expect("CPUs");
        let beside = |part| {
            let loaded = load_with(&probes::wanted(&options), &options, cpus, part);
            loaded.map(|loaded| loaded.beside.len()).map_err(|error| error.to_string())
        };
        assert!(beside(PartOfTypes::empty()).is_ok_and(|programs| programs > 4), "{:?}", beside(PartOfTypes::empty()));
        assert_eq!(beside(None), Ok(0));
    }
}
