//! What must hold for every recording: sensible ones sum exactly, and no recording at all makes `explain` panic.

use inodyne_model::Nanos;
use inodyne_model::ledger::RowKind;
use inodyne_model::observed::{Sample, ThreadObserved};
use inodyne_model::recording::Recording;
use inodyne_model::sample;
use inodyne_model::stack::StackId;
use inodyne_model::trace::Trace;
use proptest::prelude::*;

fn explained(trace: Trace) -> Recording {
    let mut recording = sample::empty();
    recording.traces.push(trace);
    inodyne_analyse::explain(&mut recording);
    recording
}

const CALLS: [Option<&str>; 4] = [None, Some("read"), Some("newfstatat"), Some("exit_group")];
const STACKS: [&str; 5] = [
    "__schedule schedule anon_pipe_read",
    "__schedule unheard_of",
    "handle_softirqs asm_sysvec_apic_timer_interrupt",
    "do_anonymous_page exc_page_fault asm_exc_page_fault",
    "syscall_exit_to_user_mode",
];

/// A trace of one thread whose parts add up, in pieces of at most `piece` nanoseconds.
fn lived(piece: u64) -> impl Strategy<Value = Trace> {
    let times = || prop::collection::vec((0..CALLS.len(), 0..=STACKS.len() as u64, 0..piece), 0..12);
    let samples = prop::collection::vec((0..CALLS.len(), any::<bool>(), 0..=STACKS.len() as u64, 0u64..50), 0..12);
    (0..piece, 0..piece, times(), times(), samples, 0..piece, any::<bool>()).prop_map(
        |(user, ready, kernel, waits, samples, slack, covered)| {
            let waits: Vec<_> =
                waits.iter().map(|(call, stack, ns)| sample::wait(1, CALLS[*call], *stack, Nanos(*ns), 2)).collect();
            let kernel: Vec<_> =
                kernel.iter().map(|(call, _, ns)| (CALLS[*call].unwrap_or("write"), Nanos(*ns))).collect();
            let mut root = sample::thread(1, "x", Nanos(user), &kernel, &waits);
            root.runqueue_ns = Nanos(ready);
            root.ended_ns = root.born_ns + root.cpu_ns() + root.runqueue_ns + root.blocked_ns;
            let mut trace = Trace { wall_ns: root.lifetime_ns() + Nanos(slack), ..Trace::default() };
            // Some waits may have found no room in their table.
            trace.observed.waits = if covered { waits } else { waits.into_iter().skip(1).collect() };
            let samples = samples.into_iter().map(|(call, user_mode, stack, count)| {
                let syscall = CALLS[call].map(str::to_owned);
                Sample { thread: 1, syscall, user_mode, stack: StackId(stack), user_stack: StackId(0), count }
            });
            trace.observed.samples = samples.collect();
            trace.observed.stacks = (1..).zip(STACKS).map(|(id, functions)| sample::stack(id, functions)).collect();
            trace.observed.threads = vec![root];
            trace
        },
    )
}

proptest! {
    #[test]
    fn rows_sum_to_the_lifetime_and_to_the_wall_time(trace in lived(1 << 40)) {
        let lifetime = trace.observed.threads[0].lifetime_ns();
        let wall = trace.wall_ns;
        let recording = explained(trace);
        let trace = &recording.traces[0];
        let thread = &trace.threads[0];
        prop_assert_eq!(thread.lifetime_ns, lifetime);
        prop_assert_eq!(thread.rows.iter().map(|row| row.ns).sum::<Nanos>(), lifetime);
        prop_assert_eq!(trace.ledger.wall_ns, wall);
        prop_assert_eq!(trace.ledger.sum(), wall);
        prop_assert_eq!(trace.ledger.unexplained_ns, wall - lifetime);
        prop_assert_eq!(trace.ledger.rows.last().map(|row| row.kind), Some(RowKind::Unexplained));
    }

    #[test]
    fn explaining_again_gives_the_same(trace in lived(1 << 40)) {
        let once = explained(trace);
        let mut twice = once.clone();
        inodyne_analyse::explain(&mut twice);
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn nonsense_gives_nonsense_and_no_panic(
        mut trace in lived(u64::MAX / 2),
        numbers in prop::collection::vec(any::<u64>(), 24),
        cost in any::<f64>(),
        threads in prop::collection::vec((0u32..4, 0u32..4, 0u32..3), 0..4),
    ) {
        let mut numbers = numbers.into_iter().cycle();
        let mut next = || numbers.next().unwrap_or(0);
        let mut source = sample::find_trace(7, Default::default(), false);
        for call in source.by_comm.iter_mut().flat_map(|comm| &mut comm.syscalls) {
            (call.calls, call.wall_ns, call.min_ns, call.max_ns) = (next(), Nanos(next()), Nanos(next()), Nanos(next()));
        }
        for forced in &mut source.dtype.forced {
            (forced.calls, forced.wall_ns, forced.blocked_ns) = (next(), Nanos(next()), Nanos(next()));
            forced.thread = next() as u32 % 4;
        }
        (trace.by_comm, trace.dtype, trace.overhead) = (source.by_comm, source.dtype, source.overhead);
        trace.overhead.ns_per_call = cost;
        trace.wall_ns = Nanos(next());
        trace.place = 9;
        // Threads that are their own parents, are born after their end, and have the same number twice.
        for (number, parent, pid) in threads {
            let (born_ns, ended_ns) = (Nanos(next()), Nanos(next()));
            let (user_ns, blocked_ns) = (Nanos(next()), Nanos(next()));
            let thread = ThreadObserved { number, parent, pid, born_ns, ended_ns, user_ns, blocked_ns, ..Default::default() };
            trace.observed.threads.push(thread);
        }
        explained(trace);
    }
}
