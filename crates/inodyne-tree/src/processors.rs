//! On which processors the threads of a pool run. Where that cannot be chosen they are slower, not wrong.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Keeps the calling thread, number `index`, on a processor of its own.
pub(crate) fn pin(index: usize) {
    let Some((_, processors)) = allowed() else { return };
    stay_on(processors[index % processors.len()]);
}

/// Moves the calling thread, worker number `index`, away from the processor of the first worker, if it is there; it may come back. A new
/// thread often starts where it was created, and until the scheduler moves one of the two, they take turns there: for longer than a small
/// tree takes.
pub(crate) fn move_apart(index: usize, first_processor: usize) {
    if index == 0 || sched_getcpu() != first_processor {
        return;
    }
    let Some((all, processors)) = allowed().filter(|(_, processors)| index < processors.len()) else { return };
    let first = processors.iter().position(|&cpu| cpu == first_processor).unwrap_or_default();
    stay_on(processors[(first + index) % processors.len()]);
    let _ = sched_setaffinity(None, &all);
}

/// The processors that the calling thread may run on; none where that is not known.
fn allowed() -> Option<(CpuSet, Vec<usize>)> {
    let allowed = sched_getaffinity(None).ok()?;
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect();
    (!processors.is_empty()).then_some((allowed, processors))
}

fn stay_on(processor: usize) {
    let mut only = CpuSet::new();
    only.set(processor);
    let _ = sched_setaffinity(None, &only);
}
