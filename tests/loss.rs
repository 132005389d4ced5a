//! What is lost is said: a ring buffer that is too small for what happens is no secret.

mod support;

use inodyne_model::ledger::View;

use support::{fixture, inodyne, machine, nothing_lost, run, scratch, trace_of, traced};

/// Both sides of the ping-pong block once a round.
const ROUNDS: u64 = 200_000;

#[test]
fn a_tiny_ring_buffer_loses_and_says_so() {
    let (_machine, scratch) = (machine(), scratch());
    let program = fixture("ping_pong", scratch.path());
    let words = [program.as_os_str(), ROUNDS.to_string().as_ref()].map(ToOwned::to_owned);

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
    assert_eq!(text.text(), format!("rounds {ROUNDS}\n"), "standard output is the command's");
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
