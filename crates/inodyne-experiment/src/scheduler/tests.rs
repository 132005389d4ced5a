//! The loop on a simulated machine: what runs in which order, what ends it, and what is kept.

use std::time::Duration;

use inodyne_lab::PlaceSpec;
use inodyne_model::case::CaseKey;
use inodyne_model::command::CommandSpec;
use inodyne_model::host::Host;
use inodyne_model::random::mix;
use inodyne_model::recording::Recording;
use inodyne_model::run::{CacheState, Exit};
use inodyne_model::tuning::Objective;

use super::*;
use crate::experiment::{Group, PlaceSetup, Repetitions};
use crate::race::Race;
use crate::simulated::{Heard, Simulated};

fn place(spec: &str) -> PlaceSetup {
    PlaceSetup { spec: spec.parse::<PlaceSpec>().unwrap(), data: None }
}

fn command(words: &str) -> CommandSpec {
    CommandSpec::new(words.split(' ').map(Into::into).collect())
}

/// Two places, one command, warm.
fn experiment(repetitions: Repetitions) -> Experiment {
    Experiment {
        places: vec![place("ext4"), place("xfs")],
        commands: vec![command("find")],
        groups: Group::crossed(2, 1, &[CacheState::Warm]),
        repetitions,
        seed: 1,
        fresh: false,
        timeout: None,
        durable: false,
        number: None,
        margin: None,
        expected_exit: None,
        keep_cut_short: false,
        race: None,
        output_once: false,
    }
}

fn times(untraced: u32) -> Repetitions {
    Repetitions { untraced, ..Repetitions::default() }
}

struct Ran {
    measured: Measured,
    result: Result<(), ExperimentError>,
    heard: Heard,
    log: Vec<String>,
}

impl Ran {
    fn of(experiment: &Experiment, machine: Simulated) -> Ran {
        Ran::with_saving(experiment, machine, Duration::ZERO)
    }

    fn with_saving(experiment: &Experiment, mut machine: Simulated, saving_takes: Duration) -> Ran {
        let mut heard = Heard::new(&machine);
        heard.saving_takes = saving_takes;
        let mut measured = Measured::nothing(Recording::new("0.0.0", 0, Host::default()));
        let result = run(experiment, &mut machine, &mut heard, &mut measured);
        let log = machine.log.borrow().clone();
        Ran { measured, result, heard, log }
    }

    fn runs(&self) -> &[inodyne_model::run::Run] {
        &self.measured.recording.runs
    }

    fn logged(&self, part: &str) -> usize {
        self.log.iter().filter(|line| line.contains(part)).count()
    }
}

#[test]
fn blocks_come_in_order_and_each_has_every_case_once() {
    let mut experiment = experiment(Repetitions { warmup: 1, untraced: 3, traced: 2, ..Repetitions::default() });
    experiment.groups = Group::crossed(2, 1, &[CacheState::Cold, CacheState::Warm]);
    let ran = Ran::of(&experiment, Simulated::new());
    ran.result.as_ref().unwrap();
    let keys: Vec<_> = ran.runs().iter().map(|run| (run.cache, run.block, run.traced)).collect();
    let expected: Vec<_> = [CacheState::Cold, CacheState::Warm]
        .into_iter()
        .flat_map(|cache| [(0, false), (1, false), (2, false), (3, true), (4, true)].map(|(b, t)| (cache, b, t)))
        .flat_map(|key| [key, key])
        .collect();
    assert_eq!(keys, expected);
    for block in ran.runs().chunks(2) {
        assert_eq!(block[0].place + block[1].place, 1, "both places");
    }
    // Warm-up runs are in no recording, but take time.
    assert_eq!(ran.logged("in ext4"), 2 * (1 + 3 + 2));
    assert_eq!(ran.heard.events[2..6], ["started", "WarmUp(0) at 0 s", "Untraced(0) at 2 s", "Untraced(1) at 4 s"]);
    assert_eq!(ran.heard.events.last().unwrap(), "finished");
}

#[test]
fn the_seed_decides_the_order() {
    let order = |seed| {
        let ran = Ran::of(&Experiment { seed, ..experiment(times(20)) }, Simulated::new());
        ran.runs().iter().map(|run| run.place).collect::<Vec<_>>()
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
}

#[test]
fn cases_of_a_group_may_differ_in_everything() {
    let mut experiment = experiment(times(4));
    experiment.commands.push(command("ls"));
    let cases = vec![CaseKey::new(0, 0, CacheState::Cold), CaseKey::new(1, 1, CacheState::Warm)];
    experiment.groups = vec![Group { cases }];
    let ran = Ran::of(&experiment, Simulated::new());
    assert_eq!((ran.logged("find in ext4, cold"), ran.logged("ls in xfs, warm"), ran.runs().len()), (4, 4, 8));
}

#[test]
fn an_experiment_comes_behind_what_the_recording_holds() {
    let mut machine = Simulated::new();
    let mut heard = Heard::new(&machine);
    let mut measured = Measured::nothing(Recording::new("0.0.0", 0, Host::default()));
    for _ in 0..2 {
        run(&experiment(times(1)), &mut machine, &mut heard, &mut measured).unwrap();
    }
    let runs = &measured.recording.runs;
    assert_eq!((measured.recording.places.len(), measured.recording.commands.len()), (4, 2));
    assert!(runs[..2].iter().all(|run| run.place < 2 && run.command == 0));
    assert!(runs[2..].iter().all(|run| run.place >= 2 && run.command == 1));
}

#[test]
fn blocks_go_on_until_the_interval_is_narrow_enough() {
    let until = |until| Repetitions { untraced: 6, until: Some(until), ..Repetitions::default() };
    let machine = |noise: u64| Simulated {
        // The second place is slower by a tenth, and every run by up to `noise` percent.
        takes: Box::new(move |key, run| {
            Duration::from_millis(1000 + 100 * key.case.place as u64 + mix(run as u64) % (noise * 10 + 1))
        }),
        ..Simulated::new()
    };
    let blocks = |repetitions, noise| Ran::of(&experiment(repetitions), machine(noise)).runs().len() / 2;
    assert_eq!(blocks(until(0.05), 0), 6, "it is at once");
    let (wide, narrow) = (blocks(until(0.03), 10), blocks(until(0.01), 10));
    assert!(wide < narrow, "{wide} and {narrow}");
}

#[test]
fn intervals_of_many_pairs_are_not_computed_after_each_block() {
    assert!((1..100).all(is_looked_at), "few are quick to compute");
    let looks: Vec<u32> = (1..=MOST_BLOCKS).filter(|blocks| is_looked_at(*blocks)).collect();
    assert!(looks.len() < 500, "{} times", looks.len());
    assert!(looks.windows(2).all(|two| two[1] - two[0] <= (two[0] / FINE).max(1) + 1), "{looks:?}");
}

#[test]
fn no_block_begins_after_the_time_is_over_but_each_group_has_one() {
    let mut experiment =
        experiment(Repetitions { untraced: 100, max_time: Some(Duration::from_secs(10)), ..Repetitions::default() });
    experiment.groups = Group::crossed(2, 1, &[CacheState::Cold, CacheState::Warm]);
    let ran = Ran::of(&experiment, Simulated::new());
    let count = |cache| ran.runs().iter().filter(|run| run.cache == cache).count();
    // Half of the time for each: the block that begins at 4 s ends at 6.
    assert_eq!((count(CacheState::Cold), count(CacheState::Warm)), (6, 6));
    let slow = Simulated { takes: Box::new(|_, _| Duration::from_secs(60)), ..Simulated::new() };
    assert_eq!(Ran::of(&experiment, slow).runs().len(), 4, "one block for each state of the caches");
}

#[test]
fn no_traced_block_begins_after_the_time_is_over_but_the_first() {
    let within = |seconds| {
        let max_time = Some(Duration::from_secs(seconds));
        let ran = Ran::of(
            &experiment(Repetitions { untraced: 2, traced: 10, max_time, ..Repetitions::default() }),
            Simulated::new(),
        );
        let count = |traced| ran.runs().iter().filter(|run| run.traced == traced).count() / 2;
        (count(false), count(true))
    };
    // A block takes two seconds; one that begins in time runs to its end.
    assert_eq!([within(100), within(9), within(1)], [(2, 10), (2, 3), (1, 1)]);
}

#[test]
fn what_ran_before_an_interruption_is_kept_and_what_was_cut_short_is_not() {
    let machine = |run| Simulated { interrupted_in_run: Some(run), ..Simulated::new() };
    let ran = Ran::of(&experiment(times(5)), machine(4));
    ran.result.as_ref().unwrap();
    assert!(ran.measured.interrupted && ran.heard.events.contains(&"interrupted".to_owned()));
    assert_eq!((ran.runs().len(), ran.logged("find in")), (3, 4));
    // Nothing was measured: that is not a result.
    let ran = Ran::of(&experiment(times(5)), machine(1));
    assert!(matches!(ran.result, Err(ExperimentError::InterruptedEarly)));
    // But one that was cut short may be all that is wanted.
    let ran = Ran::of(&Experiment { keep_cut_short: true, ..experiment(times(5)) }, machine(1));
    assert!(ran.result.is_ok() && ran.runs().len() == 1);
    let warming = Repetitions { warmup: 1, ..times(1) };
    assert!(matches!(Ran::of(&experiment(warming), machine(1)).result, Err(ExperimentError::InterruptedEarly)));
    // Before the first run: nothing is prepared either.
    let mut prepared = experiment(times(1));
    prepared.commands[0].prepare = Some("prepare".into());
    let ran = Ran::of(&prepared, Simulated { interrupted: true, ..Simulated::new() });
    assert_eq!((ran.logged("prepare"), ran.logged("find in")), (0, 0));
}

#[test]
fn a_run_whose_number_the_user_did_not_wait_for_was_cut_short() {
    let ran = |machine| {
        let repetitions = Repetitions { traced: 1, ..times(3) };
        Ran::of(&Experiment { number: Some("tail -1".into()), ..experiment(repetitions) }, machine)
    };
    let whole = ran(Simulated::new());
    assert!(whole.runs().iter().all(|run| run.number.is_some() != run.traced) && whole.runs().len() == 8);
    let cut = ran(Simulated { interrupted_in_number: Some(4), ..Simulated::new() });
    assert!(cut.result.is_ok() && cut.measured.interrupted, "{:?}", cut.result);
    assert_eq!((cut.runs().len(), cut.logged("find in")), (3, 4));
    assert!(cut.runs().iter().all(|run| run.number.is_some()));
    // None is read of a command that fails.
    let failing = ran(Simulated { exits: [(0, Exit::Code(1))].into(), ..Simulated::new() });
    assert!(!failing.measured.interrupted && failing.runs().len() == 8);
}

#[test]
fn what_is_saved_meanwhile_says_what_the_places_of_a_race_are() {
    let race = Race { objective: Objective::Exit, margin: None };
    let ran = Ran::of(&Experiment { race: Some(race), fresh: true, ..experiment(times(2)) }, Simulated::new());
    assert_eq!((ran.heard.kept, ran.heard.described), (vec![2, 4], vec![2, 2]));
}

#[test]
fn each_run_is_prepared_and_cleaned_up_after_under_its_own_commands_conditions() {
    let mut experiment = experiment(times(1));
    experiment.places.pop();
    experiment.commands = vec![command("find"), command("ls")];
    experiment.commands[0].prepare = Some("prepare".into());
    experiment.commands[0].cleanup = Some("clean".into());
    experiment.groups = Group::crossed(1, 2, &[CacheState::AsIs]);
    let ran = Ran::of(&experiment, Simulated::new());
    let at = |line: &str| ran.log.iter().position(|logged| logged == line).unwrap_or_else(|| panic!("{line}"));
    let prepared = at("prepare for find in ext4");
    assert_eq!([at("find in ext4, as is"), at("clean for find in ext4")], [prepared + 1, prepared + 2]);
    assert_eq!(ran.logged("for ls"), 0);
}

#[test]
fn what_cannot_be_prepared_does_not_run_and_a_run_survives_its_clean_up() {
    let mut experiment = experiment(times(3));
    experiment.commands[0].prepare = Some("prepare".into());
    experiment.commands[0].cleanup = Some("clean".into());
    let ran = Ran::of(&experiment, Simulated { failing: vec!["prepare"], ..Simulated::new() });
    assert!(matches!(&ran.result, Err(ExperimentError::Script { code: 7, .. })));
    assert_eq!((ran.runs().len(), ran.logged("find in ext4,"), ran.logged("clean")), (0, 0, 0));
    let ran = Ran::of(&experiment, Simulated { failing: vec!["clean"], ..Simulated::new() });
    assert!(ran.result.is_err());
    assert_eq!((ran.runs().len(), ran.logged("find in ext4,")), (1, 1));
}

#[test]
fn what_was_prepared_is_cleaned_up_though_the_run_failed_and_its_error_is_told() {
    let mut experiment = experiment(times(3));
    experiment.commands[0].prepare = Some("prepare".into());
    experiment.commands[0].cleanup = Some("clean".into());
    for (failing, lost_in_run) in [(vec![], 2), (vec!["clean"], 1)] {
        let machine = Simulated { lost_in_run: Some(lost_in_run), failing, ..Simulated::new() };
        let ran = Ran::of(&experiment, machine);
        assert!(matches!(ran.result, Err(ExperimentError::Killed)), "{:?}", ran.result);
        assert_eq!((ran.runs().len(), ran.logged("clean")), (lost_in_run - 1, lost_in_run));
    }
}

#[test]
fn interrupted_while_a_place_is_made_anew_it_was_the_user() {
    let fresh = Experiment { fresh: true, ..experiment(times(3)) };
    // Two are made before the first run.
    let ran = Ran::of(&fresh, Simulated { interrupted_in_place: Some(4), ..Simulated::new() });
    assert!(ran.result.is_ok() && ran.measured.interrupted, "{:?}", ran.result);
    assert_eq!(ran.runs().len(), 1);
    let ran = Ran::of(&fresh, Simulated { interrupted_in_place: Some(3), ..Simulated::new() });
    assert!(matches!(ran.result, Err(ExperimentError::InterruptedEarly)), "{:?}", ran.result);
}

#[test]
fn interrupted_while_later_places_are_made_what_was_measured_before_is_kept() {
    for number in [3, 4] {
        let mut machine = Simulated { interrupted_in_place: Some(number), ..Simulated::new() };
        let log = machine.log.clone();
        let mut heard = Heard::new(&machine);
        let mut measured = Measured::nothing(Recording::new("0.0.0", 0, Host::default()));
        run(&experiment(times(1)), &mut machine, &mut heard, &mut measured).unwrap();
        let before = log.borrow().len();
        run(&experiment(times(1)), &mut machine, &mut heard, &mut measured).unwrap();
        assert!(measured.interrupted && heard.events.contains(&"interrupted".to_owned()));
        assert_eq!((measured.recording.runs.len(), measured.recording.places.len()), (2, 2));
        assert_eq!(log.borrow()[before], "watch signals", "before the first place is made");
    }
}

#[test]
fn a_fresh_place_is_made_for_each_run_and_never_beside_another() {
    let machine = Simulated::new();
    let existing = machine.existing.clone();
    let ran = Ran::of(&Experiment { fresh: true, ..experiment(times(3)) }, machine);
    ran.result.as_ref().unwrap();
    assert_eq!((ran.logged("make ext4"), ran.logged("make xfs")), (1 + 3, 1 + 3));
    assert_eq!(existing.get(), (0, 1));
    let machine = Simulated::new();
    let existing = machine.existing.clone();
    let ran = Ran::of(&experiment(times(3)), machine);
    assert_eq!((ran.logged("make"), existing.get()), (2, (0, 2)));
}

#[test]
fn different_data_is_refused() {
    let differing = |digest| Simulated { digest, ..Simulated::new() };
    let told = |ran: Ran| ran.result.unwrap_err().to_string();
    let by_number: fn(usize) -> &'static str = |number| if number == 2 { "other" } else { "same" };
    let ran = Ran::of(&experiment(times(1)), differing(by_number));
    assert!(told(ran).contains("ext4 and xfs were filled with different data, first different: a/b;"));
    let third: fn(usize) -> &'static str = |number| if number == 3 { "other" } else { "same" };
    let ran = Ran::of(&Experiment { fresh: true, ..experiment(times(1)) }, differing(third));
    assert!(told(ran).contains("was filled with other data than before"));
}

#[test]
fn a_run_that_ends_otherwise_than_it_must_ends_the_experiment() {
    let fails = || Simulated { exits: [(0, Exit::Code(3))].into(), ..Simulated::new() };
    let ran = Ran::of(&experiment(times(3)), fails());
    assert_eq!((ran.measured.exit, ran.runs().len()), (Exit::Code(3), 6), "any end is a result");
    let ran = Ran::of(&Experiment { expected_exit: Some(Exit::Code(3)), ..experiment(times(3)) }, fails());
    assert_eq!(ran.runs().len(), 6);
    for warmup in [0, 1] {
        let repetitions = Repetitions { warmup, ..times(3) };
        let ran = Ran::of(&Experiment { expected_exit: Some(Exit::Code(0)), ..experiment(repetitions) }, fails());
        let told = ran.result.as_ref().unwrap_err().to_string();
        assert_eq!(told, "'find' ended otherwise than expected: with exit code 3, not exit code 0");
        assert_eq!(ran.logged("find in"), 1);
    }
}

#[test]
fn a_run_that_takes_too_long_is_told() {
    let timeout = Some(Duration::from_millis(100));
    let ran = Ran::of(&Experiment { timeout, ..experiment(times(1)) }, Simulated::new());
    assert_eq!(ran.heard.events.iter().filter(|event| *event == "timed out").count(), 2);
    assert!(ran.runs().iter().all(|run| run.exit == Exit::Signal(9)));
}

#[test]
fn saving_takes_no_more_than_a_small_part_of_the_time() {
    // A block takes two seconds.
    let ran = Ran::of(&experiment(times(10)), Simulated::new());
    assert_eq!(ran.heard.kept, (1..=10).map(|block| block * 2).collect::<Vec<_>>(), "at no cost after each block");
    let ran = Ran::with_saving(&experiment(times(100)), Simulated::new(), Duration::from_secs(1));
    assert_eq!(ran.heard.kept.len(), 100 / 5, "after ten seconds or more: every fifth block");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_happens() {
    let mut outside = experiment(times(1));
    outside.commands[0].cwd = Some("../x".into());
    let ran = Ran::of(&outside, Simulated::new());
    assert!(matches!(ran.result, Err(ExperimentError::NotBelow(_))) && ran.log.is_empty());
    let mut existing = Experiment { fresh: true, ..experiment(times(1)) };
    existing.places[1] = place("/etc");
    let ran = Ran::of(&existing, Simulated::new());
    assert!(matches!(ran.result, Err(ExperimentError::NotMadeHere(_))) && ran.log.is_empty());
}
