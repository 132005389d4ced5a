//! Attaching programs to where they run, and what the kernel counts of them.

use std::ops::{AddAssign, Sub};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libbpf_rs::{Link, ProgramMut, libbpf_sys};

use crate::error::TraceError;
use crate::libbpf_log;
use crate::perf_event;
use crate::probe::Point;

/// Runs of programs, and how long they took while that was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ran {
    /// In nanoseconds.
    pub ns: u64,
    /// How often.
    pub runs: u64,
}

impl AddAssign for Ran {
    fn add_assign(&mut self, more: Ran) {
        self.ns += more.ns;
        self.runs += more.runs;
    }
}

impl Sub for Ran {
    type Output = Ran;

    fn sub(self, before: Ran) -> Ran {
        Ran { ns: self.ns.saturating_sub(before.ns), runs: self.runs.saturating_sub(before.runs) }
    }
}

/// A program in the kernel.
pub enum InKernel<'t> {
    /// Loaded by libbpf.
    ByLibbpf(ProgramMut<'t>),
    /// Loaded beside libbpf: a program at a BTF tracepoint, which the kernel has known since it was loaded.
    Beside(BorrowedFd<'t>),
}

impl AsFd for InKernel<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            InKernel::ByLibbpf(program) => program.as_fd(),
            InKernel::Beside(program) => *program,
        }
    }
}

/// Keeps a program attached.
pub struct Attached(#[allow(dead_code, reason = "held for its end")] Holder);

#[allow(dead_code, reason = "held for their end")]
enum Holder {
    ByLibbpf(Link),
    Beside(OwnedFd),
}

/// Attaches a program to what it was made for.
fn attach_itself(program: &InKernel<'_>) -> libbpf_rs::Result<Attached> {
    let program = match program {
        InKernel::ByLibbpf(program) => return Ok(Attached(Holder::ByLibbpf(program.attach()?))),
        InKernel::Beside(program) => program.as_raw_fd(),
    };
    // SAFETY: no memory is passed.
    let link = unsafe { libbpf_sys::bpf_link_create(program, 0, libbpf_sys::BPF_TRACE_RAW_TP, std::ptr::null()) };
    if link < 0 {
        return Err(libbpf_rs::Error::from_raw_os_error(-link));
    }
    // SAFETY: a new descriptor that nobody else owns.
    Ok(Attached(Holder::Beside(unsafe { OwnedFd::from_raw_fd(link) })))
}

/// Attaches a program; to a timer, on each of the first `cpus` CPUs that is online.
///
/// # Errors
/// The kernel has no such point, or refuses it.
pub fn attach(program: &InKernel<'_>, point: Point, cpus: usize, hz: u32) -> Result<Vec<Attached>, TraceError> {
    let error = |error: libbpf_rs::Error| {
        let point = point.name().to_owned();
        TraceError::Attach { point, reason: libbpf_log::explained(&error) }
    };
    match point {
        Point::Tracepoint(_) | Point::TracepointOfPages(_) | Point::PerfEvent(_) | Point::TracepointOf { .. } => {
            Ok(vec![attach_itself(program).map_err(error)?])
        }
        Point::CpuClock => {
            let InKernel::ByLibbpf(program) = program else { unreachable!("a program of a timer is loaded by libbpf") };
            let (mut links, mut refused) = (Vec::new(), None);
            for cpu in 0..cpus as i32 {
                let event = match perf_event::cpu_clock(cpu, hz) {
                    Ok(event) => event,
                    // An offline CPU has no clock to sample by.
                    Err(error) => {
                        refused = Some(error);
                        continue;
                    }
                };
                let link = program.attach_perf_event(event.as_raw_fd());
                links.push(Attached(Holder::ByLibbpf(link.map_err(error)?)));
                // The link keeps the event open and closes its descriptor.
                std::mem::forget(event);
            }
            match refused.filter(|_| links.is_empty()) {
                Some(refused) => {
                    Err(TraceError::Attach { point: point.name().to_owned(), reason: refused.to_string() })
                }
                None => Ok(links),
            }
        }
    }
}

/// Runs of a program that the kernel skipped because the same program was already running on that CPU.
pub fn recursion_misses(program: BorrowedFd<'_>) -> u64 {
    info_of(program).map_or(0, |info| info.recursion_misses)
}

/// How often and for how long a program has run while that was measured ([`measure_run_times`]).
pub fn ran(program: BorrowedFd<'_>) -> Ran {
    info_of(program).map_or(Ran::default(), |info| Ran { ns: info.run_time_ns, runs: info.run_cnt })
}

/// Has the kernel measure how long programs run, until the descriptor is closed; that makes each run a little longer. None if it
/// refuses.
pub fn measure_run_times() -> Option<OwnedFd> {
    // SAFETY: no memory is passed.
    let descriptor = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    // SAFETY: a new descriptor that nobody else owns.
    (descriptor >= 0).then(|| unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn info_of(program: BorrowedFd<'_>) -> Option<libbpf_sys::bpf_prog_info> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = size_of_val(&info) as u32;
    // SAFETY: the structure is valid for the length given.
    let failed = unsafe { libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &mut info, &mut length) };
    (failed == 0).then_some(info)
}
