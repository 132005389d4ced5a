//! Timelines that had no room for everything: what began later is divided by the threads' sums.

use inodyne_model::observed::{Timeline, Wait, Work};

use super::*;

/// The trace as it is if the timeline has room until `until`: what began before is in it; for waits, the sums are known in any case.
fn with_room_until(mut trace: Trace, until: u64) -> Trace {
    let observed = &mut trace.observed;
    let timeline = std::mem::take(&mut observed.timeline);
    observed.timeline = Timeline {
        calls: timeline.calls.clone(),
        stacks: timeline.stacks.clone(),
        until_ns: Some(until),
        ..Timeline::default()
    };
    for at in 0..timeline.len() {
        if timeline.blocked_ns[at] > 0 {
            observed.waits.push(Wait {
                thread: timeline.thread[at],
                syscall: Some(timeline.calls[timeline.call[at] as usize].clone()).filter(|call| !call.is_empty()),
                stack: timeline.stacks[timeline.stack[at] as usize],
                waker: timeline.waker[at],
                waker_stack: timeline.stacks[timeline.waker_stack[at] as usize],
                ns: Nanos(timeline.blocked_ns[at]),
                count: 1,
                max_ns: Nanos(timeline.blocked_ns[at]),
                began_before: false,
            });
        }
        if timeline.out_ns[at] <= until {
            let kept = &mut observed.timeline;
            kept.thread.push(timeline.thread[at]);
            kept.out_ns.push(timeline.out_ns[at]);
            kept.blocked_ns.push(timeline.blocked_ns[at]);
            kept.ready_ns.push(timeline.ready_ns[at]);
            kept.call.push(timeline.call[at]);
            kept.stack.push(timeline.stack[at]);
            kept.waker.push(timeline.waker[at]);
            kept.waker_tid.push(timeline.waker_tid[at]);
            kept.waker_thread.push(timeline.waker_thread[at]);
            kept.waker_stack.push(timeline.waker_stack[at]);
        }
    }
    let work = std::mem::take(&mut observed.work);
    let kept: &mut Work = &mut observed.work;
    let mut parts = work.call.into_iter().zip(work.ns);
    for ((thread, at), count) in work.thread.into_iter().zip(work.at_ns).zip(work.parts) {
        let of_piece: Vec<(u32, u64)> = parts.by_ref().take(count as usize).collect();
        if at <= until {
            kept.thread.push(thread);
            kept.at_ns.push(at);
            kept.parts.push(count);
            for (call, ns) in of_piece {
                kept.call.push(call);
                kept.ns.push(ns);
            }
        }
    }
    trace
}

#[test]
fn a_wait_without_a_stack_that_is_in_the_timeline_is_not_in_the_sums_again() {
    let trace = Drawing::new().thread(1, 0, 1, "uukkkbbbbkkbbbbku", &[(0, 0), (0, 0)]).ended();
    let ledger = path_of(&with_room_until(trace, 10)).expect("it is complete until then");
    assert_eq!(words(&ledger), ["fsync kernel 6", "fsync other 8", "user 3"]);
}

fn parent_and_child() -> Trace {
    Drawing::new()
        .thread(1, 0, 2, "uukkbbbbbbbbbbrkku", &[(2, 2)])
        .thread(2, 1, 1, "...ruukbbbkkkkk...", &[(0, 1)])
        .ended()
}

#[test]
fn the_wait_that_was_under_way_is_followed_into_the_sums_of_who_ended_it() {
    let whole = words(&path_of(&parent_and_child()).expect("the timeline is complete"));
    // Before the child began to wait; then during its wait, which is in the timeline as a whole.
    for until in [6, 8] {
        let ledger = path_of(&with_room_until(parent_and_child(), until)).expect("it is complete until then");
        assert_eq!(words(&ledger), whole, "room until {until}");
        assert!(ledger.rows.iter().any(|row| row.estimated), "sums are no path: {ledger:?}");
    }
}

#[test]
fn without_room_the_first_process_is_divided_by_its_sums() {
    // The parent's wait began later, so nothing says whom it was for.
    let ledger = path_of(&with_room_until(parent_and_child(), 1)).expect("it is complete until then");
    assert_eq!(words(&ledger), ["ready 1", "user 3", "wait4 child 10", "wait4 kernel 4"]);
}

#[test]
fn who_was_born_later_goes_on_with_who_created_it() {
    // The first process ends with its second thread, which ran alone at the end.
    let mut drawing =
        Drawing::new().thread(1, 0, 2, "uuuukku.........", &[]).thread(2, 1, 1, "......kkkbbbbkkk", &[(0, 1)]);
    drawing.trace.observed.threads[1].pid = 1;
    let mut trace = drawing.ended();
    trace.wall_ns = Nanos(16);
    let ledger = path_of(&with_room_until(trace, 2)).expect("it is complete until then");
    // Of the first one's five nanoseconds without room, two of them in the call, the path has four: in proportion, rounded down.
    assert_eq!(words(&ledger), ["fsync journal 4", "fsync kernel 6", "user 5", "wait4 kernel 1"]);
}

#[test]
fn room_for_all_changes_nothing() {
    let ledger = path_of(&with_room_until(parent_and_child(), 18)).expect("it is complete");
    assert_eq!(words(&ledger), words(&path_of(&parent_and_child()).expect("it is complete")));
    assert!(!ledger.rows.iter().any(|row| row.estimated), "{ledger:?}");
}

proptest! {
    #[test]
    fn nonsense_with_an_end_sums_to_the_wall_time(trace in nonsense(), until in 0..200u64) {
        let mut trace = trace;
        trace.observed.timeline.until_ns = Some(until);
        if let Some(ledger) = path_of(&trace) {
            let sum: u128 = ledger.rows.iter().map(|row| u128::from(row.ns.0)).sum();
            prop_assert_eq!(sum, u128::from(trace.wall_ns.0));
        }
    }

    #[test]
    fn wherever_the_room_ends_all_is_charged(until in 0..20u64) {
        let ledger = path_of(&with_room_until(parent_and_child(), until)).expect("it is complete until then");
        prop_assert_eq!(ledger.sum(), ledger.wall_ns);
        prop_assert_eq!(ledger.unexplained_ns, Nanos::ZERO);
    }
}
