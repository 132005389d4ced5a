//! Who works for the command: its own processes, and servers that it asked for something.

use std::collections::BTreeSet;

use inodyne_model::Nanos;
use inodyne_model::observed::{Helper, ThreadNumber};
use inodyne_model::trace::Trace;

/// The processes that work for the command.
pub(crate) fn pids(trace: &Trace) -> BTreeSet<u32> {
    trace.observed.threads.iter().map(|thread| thread.pid).chain(servers(trace).map(|server| server.pid)).collect()
}

/// The time that they had on CPUs; for servers, as much of it as the timeline holds.
pub(crate) fn cpu_time(trace: &Trace) -> Nanos {
    let own: Nanos = trace.observed.threads.iter().map(|thread| thread.cpu_ns()).sum();
    let servers: BTreeSet<ThreadNumber> = servers(trace).map(|server| server.number).collect();
    if servers.is_empty() {
        return own;
    }
    let work = &trace.observed.work;
    let mut parts = work.ns.iter();
    let pieces = work.thread.iter().zip(&work.parts).map(|(thread, count)| {
        let ns: Nanos = parts.by_ref().take(*count as usize).map(|ns| Nanos(*ns)).sum();
        if servers.contains(thread) { ns } else { Nanos::ZERO }
    });
    own + pieces.sum::<Nanos>()
}

fn servers(trace: &Trace) -> impl Iterator<Item = &Helper> {
    trace.observed.helpers.iter().filter(|helper| helper.server)
}

#[cfg(test)]
mod tests {
    use inodyne_model::observed::Work;
    use inodyne_model::sample::{self, ms};

    use super::*;

    #[test]
    fn servers_work_for_the_command_and_other_helpers_do_not() {
        let helper = |number, pid, server| Helper { number, pid, server, ..Helper::default() };
        let mut trace = Trace::default();
        trace.observed.threads = vec![sample::thread(1, "ssh", ms(10.0), &[], &[])];
        trace.observed.helpers = vec![helper(2, 50, true), helper(3, 60, false)];
        let work = Work {
            thread: vec![2, 3, 2],
            at_ns: vec![1, 2, 3],
            parts: vec![2, 1, 1],
            call: vec![0; 4],
            ns: vec![100, 200, 5_000, 30],
        };
        trace.observed.work = work;
        assert_eq!(cpu_time(&trace), trace.observed.threads[0].cpu_ns() + Nanos(330));
        assert_eq!(pids(&trace), [trace.observed.threads[0].pid, 50].into());
    }
}
