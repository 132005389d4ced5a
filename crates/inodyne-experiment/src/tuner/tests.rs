//! Tunings on a simulated machine: planted truths are found, nothing is found where there is nothing, and losers cost little.

use inodyne_model::host::Host;
use inodyne_model::place::Place;
use inodyne_model::random::Random;
use inodyne_model::run::Exit;

use super::*;
use crate::resume::Earlier;
use crate::simulated::{Heard, Simulated};

fn alternative(label: &str) -> Alternative {
    let place: PlaceSpec = "ext4".parse().unwrap();
    Alternative { place: place.called(label), command: CommandSpec::new(vec!["find".into()]) }
}

/// A machine whose runs take a second, give or take this much.
fn machine(seed: u64, noise: f64) -> Simulated {
    let takes = move |_, run: usize| {
        let mut random = Random::seeded(inodyne_model::random::mix(seed * 1_000_003 + run as u64));
        Duration::from_secs_f64((random.normal() * noise).exp())
    };
    Simulated { takes: Box::new(takes), ..Simulated::new() }
}

/// Tries settings with these names, whose places have the same names.
fn tuned(names: &[&str], machine: Simulated, max_time: Option<Duration>) -> (Tuned, Measured) {
    resumed(names, machine, max_time, None)
}

/// The same from where an earlier recording ended.
fn resumed(
    names: &[&str],
    mut machine: Simulated,
    max_time: Option<Duration>,
    earlier: Option<Recording>,
) -> (Tuned, Measured) {
    let candidate = |name: &&str| Candidate { setting: (*name).to_owned(), alternative: alternative(name) };
    let combined = |of: &[usize]| {
        let mut names: Vec<&str> = of.iter().map(|at| names[*at]).collect();
        names.sort_unstable();
        Some(alternative(&names.join("+")))
    };
    let plan = Plan {
        base: alternative("now"),
        candidates: names.iter().map(candidate).collect(),
        combined: &combined,
        data: None,
        cache: CacheState::Cold,
        objective: Objective::Exit,
        number: None,
        margin: 0.02,
        screening: 5,
        confirming: 10,
        seed: 1,
        timeout: None,
        max_time,
    };
    let mut heard = Heard::new(&machine);
    let mut measured = Measured::nothing(Recording::new("0.0.0", 0, Host::default()));
    measured.earlier = earlier.map(Earlier::new);
    let tuned = tune(&plan, &mut machine, &mut heard, &mut measured);
    (tuned, measured)
}

const NAMES: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

#[test]
fn a_planted_truth_is_found_and_losers_are_dropped_early() {
    let machine = Simulated { factors: vec![("c", 0.7), ("e", 1.3)], ..machine(7, 0.01) };
    let (tuned, measured) = tuned(&NAMES, machine, None);
    assert!(tuned.failure.is_none() && tuned.complete);
    assert_eq!(tuned.best, Some(2));
    let judged = |at: usize| &tuned.judged[at];
    assert_eq!((judged(2).verdict, judged(4).verdict), (TuneVerdict::Helps, TuneVerdict::NoGain));
    assert_eq!(judged(2).confirmed.unwrap().pairs, 10);
    assert!(judged(2).confirmed.unwrap().interval().unwrap().1 < 0.75);
    // The slow one is out after two blocks, most of those without any gain after three.
    assert_eq!(judged(4).screened.unwrap().pairs, 2);
    let early = tuned.judged.iter().filter(|judged| judged.screened.is_some_and(|screened| screened.pairs <= 3));
    assert!(early.count() >= 6, "{:?}", tuned.judged);
    let pairs: usize = tuned.judged.iter().filter_map(|judged| judged.screened).map(|screened| screened.pairs).sum();
    assert!(pairs < 40, "{pairs} of 50");
    assert!(measured.recording.places.iter().all(|place| place.label.len() <= 7));
}

#[test]
fn two_that_help_are_combined_where_that_is_faster() {
    let (tuned, _) = tuned(&NAMES, Simulated { factors: vec![("b", 0.8), ("h", 0.85)], ..machine(3, 0.01) }, None);
    assert_eq!(tuned.judged.len(), 11);
    assert_eq!((tuned.best, tuned.judged[10].candidates.clone()), (Some(10), vec![1, 7]));
    assert_eq!(tuned.judged[1].verdict, TuneVerdict::Helps);
}

#[test]
fn of_two_that_do_the_same_one_is_taken_alone() {
    // Together they are as fast as one of them.
    let factors = vec![("b", 0.8), ("h", 0.8), ("b+h", 1.25)];
    let (tuned, _) = tuned(&NAMES, Simulated { factors, ..machine(5, 0.01) }, None);
    assert!(tuned.best.is_some_and(|best| tuned.judged[best].candidates.len() == 1), "{tuned:?}");
}

#[test]
fn one_that_looked_better_and_was_passed_over_is_not_called_useless() {
    let factors = vec![("a", 0.5), ("b", 0.6), ("c", 0.7), ("d", 0.8), ("e", 0.85), ("f", 0.9)];
    let (tuned, _) = tuned(&NAMES, Simulated { factors, ..machine(2, 0.01) }, None);
    let verdicts =
        |range: std::ops::Range<usize>| tuned.judged[range].iter().map(|one| one.verdict).collect::<Vec<_>>();
    assert_eq!(verdicts(0..3), [TuneVerdict::Helps; 3]);
    assert_eq!(verdicts(3..6), [TuneVerdict::NotPursued; 3]);
}

#[test]
fn nothing_is_found_where_there_is_nothing() {
    let wins = |noise| {
        let won = |seed: &u64| tuned(&NAMES, machine(*seed, noise), None).0.best.is_some();
        (0..40).filter(won).count()
    };
    for noise in [0.01, 0.05, 0.2] {
        let wins = wins(noise);
        assert!(wins <= 2, "{wins} of 40 tunings at {noise} have a winner");
    }
}

#[test]
fn what_is_refused_is_told_and_the_rest_goes_on() {
    let (tuned, measured) =
        tuned(&NAMES, Simulated { refused: Some("d"), factors: vec![("a", 0.6)], ..machine(1, 0.01) }, None);
    let refused = &tuned.judged[3];
    assert_eq!(refused.verdict, TuneVerdict::Refused);
    assert_eq!(refused.reason.as_deref(), Some("mkfs.ext4 failed: no"));
    assert_eq!((tuned.best, tuned.complete, measured.refused.len()), (Some(0), true, 1));
}

#[test]
fn a_command_that_fails_is_not_tuned() {
    let failing = |exits: &[(usize, i32)]| {
        let exits = exits.iter().map(|(command, code)| (*command, Exit::Code(*code))).collect();
        tuned(&["a", "b"], Simulated { exits, factors: vec![("a", 0.6)], ..machine(1, 0.01) }, None)
    };
    let (all, measured) = failing(&[(0, 1), (1, 1), (2, 1)]);
    let told = all.failure.expect("it is told").to_string();
    assert_eq!(told, "'find' ended otherwise than expected: with exit code 1, not exit code 0");
    assert!(all.best.is_none() && !all.complete && measured.recording.runs.len() <= 3);
    assert!(all.judged.iter().all(|judged| judged.verdict != TuneVerdict::Helps), "{:?}", all.judged);
    // One of those that are tried may fail.
    let (one, _) = failing(&[(2, 1)]);
    assert_eq!((one.best, one.judged[1].verdict), (Some(0), TuneVerdict::Failed));
}

#[test]
fn an_end_before_the_end_leaves_what_is_known() {
    let interrupted = Simulated { interrupted_in_run: Some(25), ..machine(1, 0.01) };
    let (ended, measured) = tuned(&NAMES, interrupted, None);
    assert!(measured.interrupted && !ended.complete && ended.best.is_none() && ended.failure.is_none());
    assert!(ended.judged.iter().all(|judged| judged.screened.is_some()));
    assert!(ended.judged.iter().all(|judged| judged.verdict != TuneVerdict::NotPursued), "{:?}", ended.judged);
    let (at_once, measured) = tuned(&NAMES, Simulated { interrupted: true, ..machine(1, 0.01) }, None);
    assert!(measured.interrupted && at_once.judged.iter().all(|judged| judged.verdict == TuneVerdict::NotTried));
    let little = Some(Duration::from_secs(10));
    let (short, _) = tuned(&NAMES, Simulated { factors: vec![("a", 0.6)], ..machine(1, 0.01) }, little);
    assert!(!short.complete && short.best.is_none());
    // One pair each does not show that any of them is of no use.
    assert!(short.judged.iter().all(|judged| judged.verdict == TuneVerdict::NotTried), "{:?}", short.judged);
}

#[test]
fn time_that_is_over_when_all_was_tried_is_no_early_end() {
    // Half of the time is over in the third block, after which it has lost.
    let screened = |seconds| tuned(&["a"], machine(1, 0.0), Some(Duration::from_secs(seconds))).0;
    let (lost, cut) = (screened(10), screened(6));
    assert_eq!((lost.complete, lost.judged[0].screened.unwrap().pairs), (true, 3));
    assert_eq!((cut.complete, cut.judged[0].screened.unwrap().pairs), (false, 2));
}

#[test]
fn what_was_never_run_fresh_is_not_called_unconfirmed() {
    let helps = || Simulated { factors: vec![("a", 0.6)], ..machine(1, 0.01) };
    let (whole, measured) = tuned(&["a", "b"], helps(), None);
    assert_eq!(whole.judged[0].verdict, TuneVerdict::Helps);
    let screening = measured.recording.runs.iter().filter(|run| run.place < 3).count();
    let reason = |tuned: &Tuned| {
        assert_eq!((tuned.judged[0].verdict, tuned.complete, tuned.best), (TuneVerdict::NotTried, false, None));
        tuned.judged[0].reason.clone().unwrap_or_default()
    };
    let in_the_first_block = Simulated { interrupted_in_run: Some(screening + 2), ..helps() };
    let (cut, _) = tuned(&["a", "b"], in_the_first_block, None);
    assert_eq!(reason(&cut), "it was interrupted after 0 of the 6 fresh pairs that can decide");
    let (late, _) = tuned(&["a", "b"], helps(), Some(Duration::from_secs(12)));
    assert_eq!(reason(&late), "the time was over after 3 of the 6 fresh pairs that can decide");
}

#[test]
fn what_was_refused_before_is_not_run_alone_in_a_block_of_another_day() {
    let helps = || Simulated { factors: vec![("a", 0.6)], ..machine(1, 0.01) };
    let (_, measured) = tuned(&["a", "b", "c"], Simulated { refused: Some("b"), ..helps() }, None);
    let mut earlier = measured.recording;
    earlier.runs.retain(|run| run.place < 4 && run.block < 2);
    earlier.order.clear();
    let kept = earlier.runs.clone();
    assert_eq!(kept.len(), 6);
    // Today it is not refused.
    let (resumed, measured) = resumed(&["a", "b", "c"], helps(), None, Some(earlier));
    assert_eq!(measured.recording.runs[..kept.len()], kept);
    assert!(measured.recording.runs.iter().all(|run| run.place != 2), "b has no run beside those of another day");
    assert_eq!((resumed.judged[0].verdict, resumed.judged[1].verdict), (TuneVerdict::Helps, TuneVerdict::Refused));
    assert_eq!(resumed.judged[1].reason.as_deref(), Some("it could not be made when this was begun"));
    assert!(resumed.complete);
}

#[test]
fn what_was_confirmed_though_time_had_ended_the_screening_is_taken_again() {
    // Half of the time is over after three of five blocks; what comes then is quick.
    let takes = |_, run| Duration::from_secs(if run < 6 { 10 } else { 1 });
    let slow_at_first = Simulated { takes: Box::new(takes), factors: vec![("a", 0.6)], ..Simulated::new() };
    let max_time = Some(Duration::from_secs(90));
    let (first, measured) = tuned(&["a"], slow_at_first, max_time);
    let figures = |tuned: &Tuned| {
        let a = &tuned.judged[0];
        (tuned.best, a.verdict, a.screened.map(|seen| seen.pairs), a.confirmed.map(|seen| seen.pairs))
    };
    assert_eq!(figures(&first), (Some(0), TuneVerdict::Helps, Some(3), Some(10)));
    let earlier = measured.recording;
    let today = machine(2, 0.01);
    let log = today.log.clone();
    let (again, measured) = resumed(&["a"], today, max_time, Some(earlier.clone()));
    assert_eq!(figures(&again), figures(&first));
    assert!(measured.recording.runs == earlier.runs, "no other runs, and none missing");
    assert!(!log.borrow().iter().any(|line| line.starts_with("find in")), "{:?}", log.borrow());
}

#[test]
fn places_that_a_crash_left_without_a_description_get_one() {
    let helps = || Simulated { factors: vec![("a", 0.6)], ..machine(1, 0.01) };
    let (_, measured) = tuned(&["a", "b"], helps(), None);
    let mut earlier = measured.recording;
    earlier.runs.retain(|run| run.place < 3 && run.block < 2);
    earlier.order.clear();
    earlier.places.truncate(3);
    for place in &mut earlier.places[1..] {
        *place = Place { label: std::mem::take(&mut place.label), ..Place::default() };
    }
    let (_, measured) = resumed(&["a", "b"], helps(), None, Some(earlier));
    assert!(
        measured.recording.places.iter().all(|place| place.data_digest.is_some()),
        "{:?}",
        measured.recording.places
    );
}
