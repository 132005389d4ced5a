//! Waiting until no program runs any more that has been detached: it may still do on another CPU.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::kernel;

/// The CPUs that are online, as ranges: proc(5), and Documentation/admin-guide/cputopology.rst of the kernel.
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// On more CPUs than these it takes no longer to have the kernel wait, which takes some 10 to 20 ms.
const FEW: usize = 16;

/// Returns once no program runs that was detached before.
pub fn wait_for_running_programs() {
    if kernel::programs_lose_cpu() || !has_run_on_all_cpus() {
        wait_by_the_kernel();
    }
}

/// Runs on each CPU in turn, before all other threads. Where programs keep their CPU, none that was running there before is still running then:
/// this thread could not have been switched to. False where that is not allowed, or there are many CPUs.
fn has_run_on_all_cpus() -> bool {
    let text = std::fs::read_to_string(ONLINE).unwrap_or_default();
    let (Some(online), Ok(before)) = (numbers(text.trim()), sched_getaffinity(None)) else { return false };
    if online.is_empty() || online.len() > FEW {
        return false;
    }
    let Some(_foremost) = Foremost::now() else { return false };
    let has_run_on = |cpu: &usize| {
        let mut only = CpuSet::new();
        only.set(*cpu);
        sched_setaffinity(None, &only).is_ok()
    };
    let all = online.iter().all(has_run_on);
    // What was allowed before is allowed again, unless a control group has been changed meanwhile.
    let _ = sched_setaffinity(None, &before);
    all
}

/// Has the calling thread run as soon as it can, for as long as this lasts: a thread that never sleeps, with a real-time priority of its own,
/// would otherwise keep it from that CPU.
struct Foremost {
    policy: libc::c_int,
    parameters: libc::sched_param,
}

impl Foremost {
    /// None where that is not permitted.
    fn now() -> Option<Foremost> {
        let mut parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: of the calling thread; structures outlive the calls.
        let policy = unsafe { libc::sched_getscheduler(0) };
        // SAFETY: as above.
        let is_known = policy >= 0 && unsafe { libc::sched_getparam(0, &raw mut parameters) } == 0;
        let highest = libc::sched_param { sched_priority: 99 }; // sched(7)
        // SAFETY: as above.
        let is_foremost = is_known && unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const highest) } == 0;
        is_foremost.then_some(Foremost { policy, parameters })
    }
}

impl Drop for Foremost {
    fn drop(&mut self) {
        // SAFETY: as above. The policy that it had is always permitted.
        unsafe { libc::sched_setscheduler(0, self.policy, &raw const self.parameters) };
    }
}

/// The numbers in a list such as `0-3,7`; none if it is no list, or has a number that no set of CPUs has room for.
fn numbers(list: &str) -> Option<Vec<usize>> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let last: usize = last.parse().ok().filter(|last| *last < CpuSet::MAX_CPU)?;
        Some(first.parse().ok()?..=last)
    };
    let ranges: Option<Vec<_>> = list.split(',').map(range).collect();
    ranges.map(|ranges| ranges.into_iter().flatten().collect())
}

/// `MEMBARRIER_CMD_GLOBAL` returns once no program runs that did before: the kernel waits for an RCU grace period.
fn wait_by_the_kernel() {
    const MEMBARRIER_CMD_GLOBAL: i32 = 1; // include/uapi/linux/membarrier.h
    // SAFETY: no memory is passed. Where the kernel does not offer it, a read of a dying account may be torn.
    unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_ranges_and_numbers() {
        assert_eq!(numbers("0-1"), Some(vec![0, 1]));
        assert_eq!(numbers("0,2-4,7"), Some(vec![0, 2, 3, 4, 7]));
        for wrong in ["", "-", "0-", "a", "0-1,", "99999"] {
            assert_eq!(numbers(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn afterwards_the_thread_runs_where_and_as_it_did() {
        // SAFETY: it takes no memory.
        let of_this_thread = || (sched_getaffinity(None).expect("its CPUs"), unsafe { libc::sched_getscheduler(0) });
        let before = of_this_thread();
        wait_for_running_programs();
        assert_eq!(of_this_thread(), before);
    }
}
