//! What requests waited for: the past of each, from the instant at which it was answered back to that at which it had been read, via
//! whoever was waited for. The slowest ones are kept apart from the others, to show what makes them slow.

use inodyne_model::Nanos;
use inodyne_model::observed::ThreadNumber;
use inodyne_model::requests::{Served, ServedGroup};
use inodyne_model::trace::Trace;

use crate::causes::Classifier;
use crate::path::Past;

/// One in this many is a slow one, …
const SLOW_OF: usize = 20;
/// … but not fewer than this, …
const LEAST_SLOW: usize = 10;
/// … and if there are fewer than this, none is called slow.
const LEAST: usize = 40;
/// The most requests of a group whose past is looked at.
const MOST_LOOKED_AT: usize = 5_000;

/// The groups of a trace's requests; none where their past is not known.
pub(crate) fn groups(trace: &Trace, requests: &Served, classifier: &Classifier<'_>) -> Vec<ServedGroup> {
    let mut all: Vec<(Nanos, Nanos, ThreadNumber)> = requests.iter().collect();
    all.sort_by_key(|(from, ns, thread)| (std::cmp::Reverse(*ns), *from, *thread));
    let Some(past) = Past::of(trace).filter(|_| !all.is_empty()) else { return Vec::new() };
    let slow = if all.len() < LEAST { 0 } else { all.len().div_ceil(SLOW_OF).max(LEAST_SLOW) };
    let (slowest, others) = all.split_at(slow);
    let group = |(slowest, of): (bool, &[(Nanos, Nanos, ThreadNumber)])| {
        let looked_at = spread(of, MOST_LOOKED_AT);
        let started = trace.observed.started_ns;
        let stretches = looked_at.iter().map(|(from, ns, thread)| (*thread, started + *from, *ns));
        ServedGroup {
            slowest,
            requests: of.len() as u64,
            looked_at: looked_at.len() as u64,
            least_ns: of.last().map_or(Nanos::ZERO, |(_, ns, _)| *ns),
            ledger: past.ledger(stretches, classifier),
        }
    };
    [(true, slowest), (false, others)].into_iter().filter(|(_, of)| !of.is_empty()).map(group).collect()
}

/// At most `most` of them, evenly spaced.
fn spread<T: Copy>(of: &[T], most: usize) -> Vec<T> {
    let count = of.len().min(most);
    (0..count).map(|at| of[at * of.len() / count]).collect()
}

#[cfg(test)]
mod tests {
    use inodyne_model::cause::Cause;
    use inodyne_model::ledger::RowKind;
    use inodyne_model::observed::{Timeline, Waker, Work};
    use inodyne_model::sample::{self, ms};

    use super::*;

    /// Requests of the first thread: 3 ms each with 1 ms on a CPU in `read`; every tenth takes 30 ms longer off the CPU.
    fn served(count: u64) -> Trace {
        let mut recording = sample::find_recording();
        let trace = &mut recording.traces[0];
        let (waited, thread) = (trace.observed.waits[1].clone(), trace.observed.threads[0].number);
        let at = |number: u64| 40 * number + 5;
        let waits = |number: u64| if number % 10 == 9 { 32 } else { 2 };
        let column = |of: &dyn Fn(u64) -> u64| (0..count).map(|number| ms(of(number) as f64).0).collect::<Vec<u64>>();
        let n = count as usize;
        trace.observed.timeline = Timeline {
            thread: vec![thread; n],
            out_ns: column(&at),
            blocked_ns: column(&waits),
            ready_ns: vec![0; n],
            call: vec![0; n],
            stack: vec![0; n],
            waker: vec![Waker::Interrupt; n],
            waker_tid: vec![0; n],
            waker_thread: vec![0; n],
            waker_stack: vec![0; n],
            calls: vec!["fsync".to_owned(), "read".to_owned()],
            stacks: vec![waited.stack],
            ..Timeline::default()
        };
        // A piece ends where a request begins, where it waits, and where it is answered.
        let edges = |number: u64| [at(number) - 1, at(number), at(number) + waits(number)].map(|at| ms(at as f64).0);
        trace.observed.work = Work {
            thread: vec![thread; 3 * n],
            at_ns: (0..count).flat_map(edges).collect(),
            parts: (0..count).flat_map(|_| [0, 1, 0]).collect(),
            call: vec![1; n],
            ns: vec![ms(1.0).0; n],
        };
        trace.observed.threads[0].ended_ns = trace.observed.started_ns + ms(40.0 * (count + 1) as f64);
        trace.lost = Default::default();
        trace.requests = Some(Served {
            from_ns: column(&|number| at(number) - 1),
            ns: column(&|number| waits(number) + 1),
            thread: vec![thread; n],
            ..Served::default()
        });
        crate::explain(&mut recording);
        recording.traces.remove(0)
    }

    /// A row, and its milliseconds.
    type Told = (RowKind, Option<String>, Option<Cause>, u64);

    /// Whether these are the slowest, how many, how long the fastest took, and what they did.
    fn groups_of(trace: &Trace) -> Vec<(bool, u64, u64, Vec<Told>)> {
        let groups = &trace.requests.as_ref().expect("requests").groups;
        let row = |row: &inodyne_model::ledger::Row| (row.kind, row.syscall.clone(), row.cause, row.ns.0 / 1_000_000);
        groups
            .iter()
            .map(|group| {
                assert_eq!(group.ledger.sum(), group.ledger.wall_ns);
                let rows = group.ledger.rows.iter().filter(|row| row.ns > Nanos::ZERO).map(row).collect();
                (group.slowest, group.requests, group.least_ns.0 / 1_000_000, rows)
            })
            .collect()
    }

    #[test]
    fn the_slowest_are_told_from_the_others() {
        let blocked = |ns| (RowKind::Blocked, Some("fsync".to_owned()), Some(Cause::DeviceRead), ns);
        let read = |ns| (RowKind::Kernel, Some("read".to_owned()), None, ns);
        let trace = served(200);
        let slow = (true, 10, 33, vec![blocked(320), read(10)]);
        // Ten more are as slow, and belong to the others.
        let others = (false, 190, 3, vec![blocked(180 * 2 + 320), read(190)]);
        assert_eq!(groups_of(&trace), [slow, others]);
    }

    #[test]
    fn few_are_one_group() {
        let trace = served(LEAST as u64 - 1);
        assert_eq!(groups_of(&trace).iter().map(|group| (group.0, group.1)).collect::<Vec<_>>(), [(false, 39)]);
    }

    #[test]
    fn very_many_are_looked_at_in_parts() {
        let all: Vec<usize> = (0..12_345).collect();
        let some = spread(&all, 1_000);
        assert_eq!((some.len(), some[0]), (1_000, 0));
        assert!(some.windows(2).all(|pair| pair[0] < pair[1]) && some[999] > 12_300, "{some:?}");
        assert_eq!(spread(&all[..7], 1_000), all[..7]);
    }
}
