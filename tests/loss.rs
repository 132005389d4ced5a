//! What is lost is said: a ring buffer that is too small for what happens is no secret.

mod support;

use std::collections::BTreeMap;

use inodyne_model::ledger::View;
use inodyne_model::trace::Trace;

use support::{calls, fixture, inodyne, machine, nothing_lost, run, scratch, trace_of, traced};

/// Both sides of the ping-pong block once per round.
const ROUNDS: u64 = 200_000;
/// The smallest buffer overflows long before that.
const ROUNDS_TO_OVERFLOW: u64 = 50_000;

#[test]
fn a_tiny_ring_buffer_loses_and_says_so() {
    let (_machine, scratch) = (machine(), scratch());
    let program = fixture("ping_pong", scratch.path());
    let words = [program.as_os_str(), ROUNDS_TO_OVERFLOW.to_string().as_ref()].map(ToOwned::to_owned);

    let json = run(&mut traced(&["--ring-buffer", "4096"], &words)).ended_with(4);
    let recording = json.recording();
    let trace = &recording.traces[0];
    assert!(trace.lost.intervals > 0, "{:?}", trace.lost);
    assert!(json.stderr.contains("events were lost"), "{}", json.stderr);
    // Only the timeline went through that buffer: every return to a CPU is either in it or counted as lost. A child's
    // first time on a CPU is a return too, from its birth.
    let switches: u64 = trace.observed.threads.iter().map(|thread| thread.waits + thread.preemptions).sum();
    let births = trace.observed.threads.len() as u64 - 1;
    let ours = |number: &&u32| **number as usize <= trace.threads.len();
    let kept = trace.observed.timeline.thread.iter().filter(ours).count() as u64;
    assert_eq!(kept + trace.lost.intervals, switches + births, "{kept} kept, {} lost", trace.lost.intervals);
    let lost = trace.lost.total();
    assert_eq!(lost, trace.lost.intervals + trace.lost.work, "nothing else is lost: {:?}", trace.lost);
    assert_eq!(trace.ledger.view, View::RootThread, "no path is walked where something is missing");

    let text = run(inodyne().args(["run", "--ring-buffer", "4096", "--"]).args(&words)).ended_with(4);
    assert_eq!(text.text(), format!("rounds {ROUNDS_TO_OVERFLOW}\n"), "standard output is the command's");
    assert!(text.stderr.contains("LOST: "), "{}", text.stderr);
    assert!(text.stderr.contains("intervals of the timeline"), "{}", text.stderr);
    assert!(text.stderr.contains("The timeline is not complete"), "{}", text.stderr);
    assert!(text.stderr.contains("do not trust this trace"), "{}", text.stderr);

    let allowed = ["--ring-buffer", "4096", "--max-lost", "100000000"];
    let accepted = run(&mut traced(&allowed, &words)).ended_with(0).recording();
    assert!(accepted.traces[0].lost.intervals > 0, "it loses all the same");
}

#[test]
fn the_default_ring_buffer_loses_nothing() {
    let (_machine, scratch) = (machine(), scratch());
    let program = fixture("ping_pong", scratch.path());
    let trace = trace_of(&[], [program.as_os_str(), ROUNDS.to_string().as_ref()]);
    nothing_lost(&trace);
    assert!(trace.observed.timeline.len() as u64 >= ROUNDS, "it did switch");
}

/// More threads at once than there is room for are counted, each of them; and with room for them none is missing.
#[test]
fn threads_beyond_the_room_for_them_are_counted() {
    const THREADS: u64 = 9_000;
    let (_machine, scratch) = (machine(), scratch());
    let program = fixture("threads", scratch.path());
    let words = [program.as_os_str(), THREADS.to_string().as_ref()].map(ToOwned::to_owned);

    let trace = run(&mut traced(&["--max-threads", "8192"], &words)).ended_with(4).recording().traces.remove(0);
    assert_eq!(trace.threads.len() as u64 + trace.lost.threads, THREADS + 1, "{:?}", trace.lost);
    assert!(trace.lost.threads > THREADS - 8_192, "{:?}", trace.lost);

    let trace = trace_of(&[], &words);
    nothing_lost(&trace);
    assert_eq!(trace.threads.len() as u64, THREADS + 1);
    assert_eq!(calls(&trace, "getppid"), 3 * THREADS);
}

/// What began before the timeline was full is in it, to the last interval; what came later is in the sums.
#[test]
fn a_full_timeline_ends_and_the_sums_go_on() {
    let (_machine, scratch) = (machine(), scratch());
    let program = fixture("ping_pong", scratch.path());
    let words = [program.as_os_str(), ROUNDS.to_string().as_ref()].map(ToOwned::to_owned);
    let trace = trace_of(&["--max-intervals", "20000"], &words);
    nothing_lost(&trace);
    let timeline = &trace.observed.timeline;
    let until = timeline.until_ns.expect("there are more intervals than have room");
    assert!(timeline.len() >= 20_000, "{} kept", timeline.len());
    assert!((timeline.len() as u64) < trace.switches() / 2, "{} of {} kept", timeline.len(), trace.switches());
    assert!(timeline.out_ns.iter().all(|out| *out <= until), "nothing that began later");
    runs_between_intervals_are_known(&trace);

    assert_eq!(trace.ledger.view, View::CriticalPath);
    assert_eq!(trace.ledger.sum(), trace.ledger.wall_ns);
    assert!(trace.ledger.unexplained_ns.share_of(trace.wall_ns) < 0.01, "{:?}", trace.ledger);
    assert!(trace.ledger.rows.iter().any(|row| row.estimated && row.count > ROUNDS / 4), "{:?}", trace.ledger);

    let text = run(inodyne().args(["run", "--max-intervals", "20000", "--"]).args(&words)).ended_with(0);
    assert!(text.stderr.contains("Exact up to"), "{}", text.stderr);
}

/// Between two intervals of a thread lies as much time as its pieces of work say: if one were missing there would be more.
fn runs_between_intervals_are_known(trace: &Trace) {
    let (timeline, work) = (&trace.observed.timeline, &trace.observed.work);
    let mut pieces: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    let mut parts = work.ns.iter();
    for ((thread, at), count) in work.thread.iter().zip(&work.at_ns).zip(&work.parts) {
        let ns = parts.by_ref().take(*count as usize).sum();
        pieces.entry(*thread).or_default().push((*at, ns));
    }
    let mut intervals: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    for at in 0..timeline.len() {
        let back = timeline.out_ns[at] + timeline.blocked_ns[at] + timeline.ready_ns[at];
        intervals.entry(timeline.thread[at]).or_default().push((timeline.out_ns[at], back));
    }
    let mut checked = 0;
    for (thread, mut of_thread) in intervals {
        if thread as usize > trace.threads.len() {
            continue;
        }
        of_thread.sort_unstable();
        let pieces = &pieces[&thread];
        for pair in of_thread.windows(2) {
            let (back, out) = (pair[0].1, pair[1].0);
            let first = pieces.partition_point(|(at, _)| *at <= back);
            let ran: u64 = pieces[first..].iter().take_while(|(at, _)| *at <= out).map(|(_, ns)| ns).sum();
            assert_eq!(ran, out - back, "thread {thread} between {back} and {out}");
            checked += 1;
        }
    }
    assert!(checked > 10_000, "{checked} runs");
}
