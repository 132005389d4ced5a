//! Which threads are drawn on a timeline, and from when to when.

use std::collections::HashMap;

use inodyne_model::Nanos;
use inodyne_model::observed::ThreadNumber;
use inodyne_model::trace::Trace;

use crate::line::escaped;
use crate::timeline::known_until;

/// A thread to be drawn, with the beginning and the end of what is known about it, in nanoseconds after the start.
pub(super) struct Life {
    pub(super) number: ThreadNumber,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) comm: String,
    pub(super) from: u64,
    pub(super) to: u64,
    /// Whether it is one of the command's.
    pub(super) counts: bool,
}

/// All threads of the command, and then all helpers.
pub(super) fn lives(trace: &Trace) -> Vec<Life> {
    let observed = &trace.observed;
    let since = |ns: Nanos| ns.saturating_sub(observed.started_ns).0;
    let to = |from: Nanos, to: Nanos| known_until(trace, since(from), since(to));
    let threads = observed.threads.iter().map(|thread| Life {
        number: thread.number,
        pid: thread.pid,
        tid: thread.tid,
        comm: escaped(&thread.comm),
        from: since(thread.born_ns),
        to: to(thread.born_ns, thread.ended_ns),
        counts: true,
    });
    let helpers = observed.helpers.iter().map(|helper| Life {
        number: helper.number,
        // A kernel thread is a process of its own.
        pid: if helper.pid == 0 { helper.tid } else { helper.pid },
        tid: helper.tid,
        comm: escaped(&helper.comm),
        from: since(helper.adopted_ns),
        to: to(helper.adopted_ns, helper.ended_ns),
        counts: false,
    });
    threads.chain(helpers).collect()
}

/// The command names of all of them.
pub(super) fn comms(trace: &Trace) -> HashMap<ThreadNumber, &str> {
    let threads = trace.observed.threads.iter().map(|thread| (thread.number, thread.comm.as_str()));
    let helpers = trace.observed.helpers.iter().map(|helper| (helper.number, helper.comm.as_str()));
    threads.chain(helpers).collect()
}

#[cfg(test)]
mod tests {
    use inodyne_model::observed::ThreadObserved;

    use super::*;

    #[test]
    fn nobody_is_drawn_after_the_timeline_was_full() {
        let mut trace = Trace::default();
        let thread =
            |born, ended| ThreadObserved { born_ns: Nanos(born), ended_ns: Nanos(ended), ..Default::default() };
        trace.observed.threads = vec![thread(0, 5), thread(2, 20), thread(15, 20)];
        let ends = |trace: &Trace| lives(trace).iter().map(|life| life.to).collect::<Vec<_>>();
        assert_eq!(ends(&trace), [5, 20, 20]);
        trace.observed.timeline.until_ns = Some(10);
        assert_eq!(ends(&trace), [5, 10, 15]);
    }
}
