//! What a comparison of two recordings must say.

use inodyne_model::difference::{CaseDifference, Difference, GateOutcome, Side};
use inodyne_model::loss::Lost;
use inodyne_model::run::{CacheState, Exit, Run};
use inodyne_model::sample;
use inodyne_model::trace::{PathCount, Paths, Tracer};

use super::*;

fn explained(mut recording: Recording) -> Recording {
    crate::explain(&mut recording);
    recording
}

/// One traced run of `find` with a warm cache, with or without types.
fn find(typed: bool) -> Recording {
    let mut recording = sample::empty();
    recording.places = vec![sample::ext4("place", &[])];
    recording.commands = vec![sample::command("find .")];
    let trace = sample::find_trace(0, CacheState::Warm, typed);
    recording.push_run(sample::run(0, CacheState::Warm, true, trace.wall_ns));
    recording.traces.push(trace);
    recording
}

/// The same with `count` untraced runs of around `wall` milliseconds.
fn timed(count: u32, wall: f64) -> Recording {
    let mut recording = find(true);
    for block in 0..count {
        let wall = sample::ms(wall + f64::from(block % 3) * 0.01);
        recording.push_run(Run { block, ..sample::run(0, CacheState::Warm, false, wall) });
    }
    recording
}

fn with_paths(mut recording: Recording, paths: &[(&str, u64)]) -> Recording {
    let looked_up = |(path, calls): &(&str, u64)| PathCount {
        path: (*path).to_owned(),
        syscall: "newfstatat".to_owned(),
        calls: *calls,
        not_found: 1,
        wall_ns: sample::ms(1.0),
    };
    recording.traces[0].paths = Some(Paths { looked_up: paths.iter().map(looked_up).collect(), not_kept: 0 });
    recording
}

fn between(old: Recording, new: Recording, gates: &[&str]) -> Difference {
    let gates: Vec<Gate> = gates.iter().map(|gate| gate.parse().unwrap()).collect();
    difference(&explained(old), &explained(new), &gates)
}

fn outcomes(difference: &Difference) -> Vec<GateOutcome> {
    difference.gates.iter().map(|gate| gate.outcome).collect()
}

fn only(difference: &Difference) -> &CaseDifference {
    assert_eq!(difference.cases.len(), 1);
    &difference.cases[0]
}

#[test]
fn nothing_differs_between_a_recording_and_itself() {
    for recording in [sample::find_recording(), sample::pipeline_recording(), sample::overlay_recording(), find(false)]
    {
        let gates = ["calls > +0%", "errors > +0", "bytes > +0%", "finding(dtype-missing)"];
        let found = between(recording.clone(), recording, &gates);
        assert!(found.differs.is_empty() && found.unmatched.is_empty() && !found.cases.is_empty());
        assert!(!found.fails(), "{:?}", found.gates);
        for case in &found.cases {
            assert!(case.differs.is_empty() && case.findings.is_empty() && !case.total.unwrap().differ(), "{case:?}");
            assert!(case.calls.iter().all(|call| !call.counts.differ()));
            assert!(case.ledger.iter().flat_map(|ledger| &ledger.rows).all(|row| row.difference_ns == 0));
            assert!(case.times.iter().all(|time| time.ratio == Some(1.0)), "{:?}", case.times);
        }
    }
}

#[test]
fn calls_are_counted_and_ledgers_subtracted() {
    let found = between(find(true), find(false), &[]);
    let case = only(&found);
    let stat = &case.calls[0];
    assert_eq!((stat.name.as_str(), stat.counts.calls), ("newfstatat", Sides { old: 3_055, new: 33_055 }));
    assert_eq!(stat.errors_by_errno["ENOENT"], Sides { old: 1, new: 1 });
    assert_eq!(case.total.unwrap().calls.change(), 30_000);
    let ledger = case.ledger.as_ref().unwrap();
    let sum: i64 = ledger.rows.iter().map(|row| row.difference_ns).sum();
    assert_eq!(sum, ledger.b_wall_ns.0 as i64 - ledger.a_wall_ns.0 as i64);
    let new: Vec<&str> = case.findings.new.iter().map(|finding| finding.id.as_str()).collect();
    assert!(new.contains(&"dtype-missing"), "{new:?}");
    let back = between(find(false), find(true), &[]);
    assert_eq!(only(&back).findings.gone, case.findings.new);
}

#[test]
fn counts_decide_gates() {
    let gates = [
        "calls(newfstatat) > +5%",
        "calls(newfstatat) > +29999",
        "calls(newfstatat) > +30000",
        "calls > +1000%",
        "calls(openat) > +0",
        "errors(newfstatat) > 0",
        "errors(newfstatat) > +0",
        "calls(nosuchcall) > 0",
        "finding(dtype-missing)",
        "finding(sync-bound)",
    ];
    use GateOutcome::{Failed, Held};
    let found = between(find(true), find(false), &gates);
    assert_eq!(outcomes(&found), [Failed, Failed, Held, Held, Held, Failed, Held, Held, Failed, Held]);
    assert_eq!(found.gates[0].figures, Some(Sides { old: 3_055, new: 33_055 }));
    assert!(found.fails());
    // A finding that was there before is not new.
    assert_eq!(outcomes(&between(find(false), find(false), &["finding(dtype-missing)"])), [Held]);
}

#[test]
fn of_several_traces_the_median_decides() {
    let mut new = find(true);
    for typed in [true, false] {
        new.traces.push(sample::find_trace(0, CacheState::Warm, typed));
    }
    let found = between(find(true), new, &["calls > +0", "finding(dtype-missing)"]);
    assert_eq!(outcomes(&found), [GateOutcome::Held; 2]);
    assert!(only(&found).findings.is_empty());
}

#[test]
fn a_time_decides_where_its_interval_does() {
    let outcome = |old, new, gate| outcomes(&between(old, new, &[gate]))[0];
    assert_eq!(outcome(timed(10, 100.0), timed(10, 120.0), "wall > +10%"), GateOutcome::Failed);
    assert_eq!(outcome(timed(10, 100.0), timed(10, 120.0), "wall > +30%"), GateOutcome::Held);
    let mut around = timed(10, 110.0);
    for (at, run) in around.runs.iter_mut().enumerate() {
        run.wall_ns = sample::ms(if at % 2 == 0 { 109.0 } else { 111.0 });
    }
    assert_eq!(outcome(timed(10, 100.0), around, "wall > +10%"), GateOutcome::Undecided);
    assert_eq!(outcome(timed(5, 100.0), timed(10, 200.0), "wall > +10%"), GateOutcome::Undecided);
    assert_eq!(outcome(find(true), timed(10, 200.0), "wall > +10%"), GateOutcome::Undecided);
    let mut failed = timed(10, 200.0);
    failed.runs.iter_mut().for_each(|run| run.exit = Exit::Code(1));
    let found = between(timed(10, 100.0), failed, &["wall > +10%"]);
    assert_eq!(outcomes(&found), [GateOutcome::Undecided]);
    assert!(!found.fails() && only(&found).differs.iter().any(|one| one.what == "ended with"));
}

#[test]
fn a_gate_that_nothing_was_measured_for_does_not_hold() {
    let mut untraced = timed(6, 100.0);
    untraced.traces.clear();
    let found = between(find(true), untraced, &["calls > +5%", "finding(sync-bound)"]);
    assert_eq!(outcomes(&found), [GateOutcome::NotMeasured; 2]);
    assert_eq!(found.gates[0].reason.as_deref(), Some("the new recording has no trace"));
    assert!(found.fails());
    let without = between(find(true), with_paths(find(true), &[("a", 1)]), &["paths > +0"]);
    assert_eq!(outcomes(&without), [GateOutcome::NotMeasured]);
    let nothing = between(sample::empty(), find(true), &["calls > +5%"]);
    assert!(nothing.fails() && nothing.gates[0].case.is_none() && nothing.cases.is_empty());
}

#[test]
fn paths_come_and_go() {
    let old = with_paths(find(true), &[("/a", 5), ("/b", 1)]);
    let new = with_paths(find(true), &[("/b", 2), ("/c", 1), ("/d", 7)]);
    let found = between(old, new, &["paths > +0", "paths > +1"]);
    assert_eq!(outcomes(&found), [GateOutcome::Failed, GateOutcome::Held]);
    let paths = only(&found).paths.as_ref().unwrap();
    let names = |paths: &[inodyne_model::difference::ChangedPath]| -> Vec<String> {
        paths.iter().map(|path| path.path.clone()).collect()
    };
    assert_eq!(
        (names(&paths.changed.new), names(&paths.changed.gone)),
        (vec!["/d".into(), "/c".into()], vec!["/a".into()])
    );
}

#[test]
fn cases_are_matched_by_what_they_are_called() {
    let old = sample::find_recording();
    let mut new = sample::find_recording();
    new.places.reverse();
    new.places[0].label = "other".to_owned();
    // The places of the runs stay where they were: the first place is `other` now, the second `slow`.
    let found = between(old, new, &[]);
    let matched: Vec<&str> = found.cases.iter().map(|case| case.case.place.as_str()).collect();
    assert_eq!(matched, ["slow", "slow"]);
    let of = |side| found.unmatched.iter().filter(move |one| one.only == side).map(|one| one.case.place.as_str());
    assert_eq!(
        (of(Side::Old).collect::<Vec<_>>(), of(Side::New).collect::<Vec<_>>()),
        (vec!["fast"; 2], vec!["other"; 2])
    );
}

#[test]
fn what_else_differs_is_said() {
    let mut new = find(true);
    new.host.kernel = "6.19.0".to_owned();
    new.program_version = "9.0.0".to_owned();
    new.places[0].label = "elsewhere".to_owned();
    new.traces[0].lost = Lost { calls: 3, ..Lost::default() };
    let found = between(find(true), new, &[]);
    let what = |differs: &[inodyne_model::difference::Differing]| -> Vec<&str> {
        differs.iter().map(|one| one.what).collect()
    };
    assert_eq!(what(&found.differs), ["kernel", "inodyne"]);
    assert_eq!(what(&only(&found).differs), ["place"]);
    assert_eq!(only(&found).inexact, ["the new recording has lost 3 calls: its counts are too low"]);
}

/// A recording of a window of `wall` milliseconds.
fn window(wall: f64) -> Recording {
    let mut recording = sample::window_recording();
    recording.traces[0].wall_ns = sample::ms(wall);
    recording
}

#[test]
fn every_kind_of_loss_is_named() {
    let mut new = find(true);
    new.traces[0].lost = Lost { waits: 5, skipped: 2, stacks: 1, ..Lost::default() };
    let found = between(find(true), new, &[]);
    let expected = [
        "the new recording has lost 2 events skipped by the kernel: its counts are too low",
        "the new recording has lost 5 waits: its times and their causes are incomplete",
        "the new recording has lost 1 stack: its times and their causes are incomplete",
    ];
    assert_eq!(only(&found).inexact, expected);
}

#[test]
fn a_count_that_is_too_low_holds_no_gate() {
    use GateOutcome::{Failed, Held, NotMeasured};
    let gates = ["calls > +5%", "calls > +0", "errors > 1000", "finding(sync-bound)"];
    for lost in [Lost { calls: 1, ..Lost::default() }, Lost { threads: 1, ..Lost::default() }] {
        let lossy = |typed| {
            let mut recording = find(typed);
            recording.traces[0].lost = lost;
            recording
        };
        let found = between(find(true), lossy(true), &gates);
        assert_eq!(outcomes(&found), [NotMeasured, NotMeasured, NotMeasured, Held], "{lost:?}");
        assert!(found.gates[0].figures.is_some() && found.gates[0].reason.as_ref().unwrap().contains("too low"));
        // There are more than allowed already; and the true old count is no lower than the one recorded.
        assert_eq!(outcomes(&between(find(true), lossy(false), &gates))[..2], [Failed; 2]);
        assert_eq!(outcomes(&between(lossy(true), find(true), &gates)), [Held; 4]);
    }
    let paths = |not_kept| {
        let mut recording = with_paths(find(true), &[("/a", 5)]);
        recording.traces[0].paths.as_mut().unwrap().not_kept = not_kept;
        recording
    };
    let gates = ["paths > +0", "calls > +0"];
    assert_eq!(outcomes(&between(paths(0), paths(3), &gates)), [NotMeasured, Held]);
    assert_eq!(outcomes(&between(paths(3), paths(0), &gates)), [Held; 2]);
}

#[test]
fn ledgers_of_unlike_things_are_not_subtracted() {
    // Two threads, for which one side has the critical path and the other, after a loss, the first thread alone.
    let of = |view| {
        let mut recording = explained(sample::pipeline_recording());
        recording.traces.iter_mut().for_each(|trace| trace.ledger.view = view);
        assert!(recording.traces[0].threads.len() > 1);
        recording
    };
    use inodyne_model::ledger::View::{CriticalPath, RootThread};
    let found = difference(&of(CriticalPath), &of(RootThread), &[]);
    assert!(found.cases[0].ledger.is_none());
    let said = "the ledgers are not subtracted: some divide the critical path, others what the first thread did, since their timeline is \
                not complete";
    assert_eq!(found.cases[0].inexact.last().map(String::as_str), Some(said));
    let alike = difference(&of(RootThread), &of(RootThread), &[]);
    assert_eq!(alike.cases[0].ledger.as_ref().map(|ledger| ledger.view), Some(RootThread));
}

/// The same traced by strace.
fn logged(mut recording: Recording) -> Recording {
    recording.traces.iter_mut().for_each(|trace| trace.tracer = Tracer::Strace);
    recording
}

#[test]
fn the_ledger_of_a_log_is_not_subtracted_from_one_that_divides_calls() {
    let found = between(find(true), logged(find(true)), &[]);
    assert!(only(&found).ledger.is_none());
    assert!(only(&found).inexact.iter().any(|line| line.contains("a log does not say what a call did")));
    assert!(only(&between(logged(find(true)), logged(find(true)), &[])).ledger.is_some());
}

#[test]
fn what_cannot_be_found_holds_no_gate() {
    use GateOutcome::{Held, NotMeasured};
    let gates = ["finding(cold-data)", "finding(sync-bound)"];
    assert_eq!(outcomes(&between(find(true), logged(find(true)), &gates)), [NotMeasured, Held]);
    assert_eq!(outcomes(&between(logged(find(true)), find(true), &gates)), [Held; 2]);
    let gates = ["finding(cold-metadata)", "finding(sync-bound)"];
    assert_eq!(outcomes(&between(window(10_000.0), window(10_000.0), &gates))[0], NotMeasured);
}

#[test]
fn a_finding_that_both_have_is_there_in_both() {
    let found = between(find(false), find(false), &["finding(dtype-missing)"]);
    assert_eq!(outcomes(&found), [GateOutcome::Held]);
    assert_eq!(found.gates[0].figures, Some(Sides { old: 1, new: 1 }));
}

#[test]
fn windows_of_unlike_length_have_unlike_counts() {
    use GateOutcome::{Held, NotMeasured};
    let gates = ["calls > +5%", "calls > 1000000"];
    let found = between(window(10_000.0), window(5_000.0), &gates);
    assert_eq!(outcomes(&found), [NotMeasured, Held]);
    assert_eq!(found.gates[0].reason.as_deref(), Some("the windows are not of the same length: 10.0 s → 5.00 s"));
    let differs = &only(&found).differs;
    assert!(differs.iter().any(|one| one.what == "window" && one.sides.old == "10.0 s" && one.sides.new == "5.00 s"));
    let alike = between(window(10_000.0), window(10_050.0), &gates);
    assert!(outcomes(&alike) == [Held; 2] && only(&alike).differs.is_empty());
}

#[test]
fn a_time_that_lies_beyond_the_limit_says_why_it_is_not_decided() {
    let reason = |old: Recording, new: Recording, gate| {
        let found = between(old, new, &[gate]);
        assert_eq!(outcomes(&found), [GateOutcome::Undecided], "{:?}", found.gates);
        found.gates[0].reason.clone().unwrap()
    };
    let margin = "the interval lies beyond the limit, and within the margin of 2%: no difference";
    assert_eq!(reason(timed(10, 100.0), timed(10, 101.0), "wall > +0.5%"), margin);
    assert_eq!(reason(timed(1, 100.0), timed(1, 120.0), "wall > +10%"), "there is no interval of 1 pair");
    // Six pairs are enough to decide one comparison, but not those of four cases.
    let several = |wall| {
        let mut recording = timed(6, wall);
        for place in 1..4 {
            recording.places.push(sample::ext4(&format!("place {place}"), &[]));
            for block in 0..6 {
                let wall = sample::ms(wall + f64::from(block) * 0.01);
                recording.push_run(Run { block, ..sample::run(place, CacheState::Warm, false, wall) });
            }
        }
        recording
    };
    let found = between(several(100.0), several(120.0), &["wall > +10%"]);
    let few = "the interval lies beyond the limit, but 8 pairs are needed to decide as many comparisons as these";
    assert!(found.gates.iter().all(|gate| gate.reason.as_deref() == Some(few)), "{:?}", found.gates);
}
