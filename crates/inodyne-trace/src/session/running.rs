//! Waiting until no program runs any more that has been detached: it may still do on another CPU.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use inodyne_launch::Urgent;
use rustix::fs::statfs;
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::kernel;

/// What the kernel says of its CPUs, as lists of ranges: Documentation/ABI/testing/sysfs-devices-system-cpu.
const CPUS: &str = "/sys/devices/system/cpu";
/// include/uapi/linux/magic.h
const SYSFS_MAGIC: i64 = 0x6265_6572;

/// On more CPUs than this, having the kernel wait takes no longer: 10 to 20 ms.
const FEW: usize = 16;

/// How long it may take to run on all of them.
const LONGEST: Duration = Duration::from_millis(100);

/// Returns once no program runs that was detached before; false if that is not known.
pub fn wait_for_running_programs() -> bool {
    (!kernel::programs_lose_cpu() && has_run_on_all_cpus()) || wait_by_the_kernel()
}

/// Has a thread run on each CPU in turn. Where programs keep their CPU, none that was running there before is still running then: that thread could
/// not have been switched to. False where that is not possible.
fn has_run_on_all_cpus() -> bool {
    let Some(cpus) = all_cpus().filter(|cpus| cpus.len() <= FEW) else { return false };
    let (telling, told) = channel();
    let run = move || {
        // One that never sleeps and has a real-time priority would keep it from a CPU.
        let has_run = Urgent::before_all_from_now_on() && cpus.iter().all(|cpu| is_on(*cpu));
        // Nobody may be listening any more.
        let _ = telling.send(has_run);
    };
    // What it changes about itself ends with it.
    let Ok(thread) = thread::Builder::new().spawn(run) else { return false };
    let has_run = told.recv_timeout(LONGEST);
    // If a thread with the same priority keeps it from a CPU, it is left behind.
    has_run.is_ok_and(|has_run| thread.join().is_ok() && has_run)
}

/// All CPUs that programs can run on. None where the list is not the kernel's, as in containers that are shown fewer (lxcfs), and where some are to
/// be left alone.
fn all_cpus() -> Option<Vec<usize>> {
    let file = |name: &str| format!("{CPUS}/{name}");
    let list = |name: &str| std::fs::read_to_string(file(name)).unwrap_or_default().trim().to_owned();
    let is_from_kernel = statfs(file("online")).is_ok_and(|found| found.f_type == SYSFS_MAGIC);
    let are_some_isolated = ["isolated", "nohz_full"].iter().any(|name| !["", "(null)"].contains(&&*list(name)));
    if is_from_kernel && !are_some_isolated { numbers(&list("online")) } else { None }
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

/// Moves the calling thread to a CPU. False where that is not allowed.
fn is_on(cpu: usize) -> bool {
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only).is_ok()
}

/// `MEMBARRIER_CMD_GLOBAL` returns once no program runs that did before: the kernel waits for an RCU grace period. It does not offer that where CPUs
/// have no regular tick (nohz_full).
fn wait_by_the_kernel() -> bool {
    const MEMBARRIER_CMD_GLOBAL: i32 = 1; // include/uapi/linux/membarrier.h
    // SAFETY: no memory is passed.
    unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0 }
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
    fn it_is_known_when_none_runs_any_more() {
        assert!(rustix::process::geteuid().is_root(), "this test wants a real-time priority: run it as root");
        assert!(wait_for_running_programs());
        assert!(wait_by_the_kernel());
    }
}
