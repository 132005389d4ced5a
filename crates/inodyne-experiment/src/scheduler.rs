//! The one loop that runs every experiment.
//!
//! What was measured before something went wrong stays in the recording, which is offered to the observer from time to time.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use inodyne_model::case::CaseKey;
use inodyne_model::command::CommandSpec;
use inodyne_model::place::Place;
use inodyne_model::recording::Recording;
use inodyne_model::run::Exit;

use crate::error::ExperimentError;
use crate::event::{Event, Fate, Observer, Phase};
use crate::executor::{Execution, Executor};
use crate::experiment::{Experiment, Group, PlaceSetup};
use crate::order::{Order, RunKey};
use crate::race;
use crate::record::{self, Offset};
use crate::resume::{Block, Earlier};

/// After a save, the next one waits this many times as long as it took: a recording with many traces takes seconds to write.
const PAUSE_AFTER_SAVING: u32 = 10;

/// Beyond this many blocks, more of them do not make an interval narrower in any useful time.
const MOST_BLOCKS: u32 = 10_000;

/// Intervals are looked at again after each block, and once there are many after every fiftieth part more: to compute those of thousands
/// of pairs takes longer than a short command, and they change little with one pair.
const FINE: u32 = 50;

/// Whether intervals are looked at after so many blocks.
fn is_looked_at(blocks: u32) -> bool {
    blocks.is_multiple_of((blocks / FINE).max(1))
}

/// What was measured, all of it or up to where something ended it.
#[derive(Debug)]
pub struct Measured {
    /// The runs and traces.
    pub recording: Recording,
    /// How the last run that did not succeed ended; success where all did.
    pub exit: Exit,
    /// Whether the user ended it.
    pub interrupted: bool,
    /// Why places of a race could not be made, by their index in the recording.
    pub refused: BTreeMap<usize, String>,
    /// What was measured of it earlier, to be taken instead of running it again.
    pub earlier: Option<Earlier>,
}

impl Measured {
    /// Nothing measured yet.
    pub fn nothing(recording: Recording) -> Measured {
        Measured { recording, exit: Exit::Code(0), interrupted: false, refused: BTreeMap::new(), earlier: None }
    }
}

/// Runs an experiment, appending to what the recording already holds. Nothing is explained yet.
///
/// # Errors
/// It could not be run to the end; what was measured until then is in `measured`.
pub fn run<E: Executor>(
    experiment: &Experiment,
    executor: &mut E,
    observer: &mut dyn Observer,
    measured: &mut Measured,
) -> Result<(), ExperimentError> {
    experiment.check()?;
    if !measured.recording.runs.is_empty() {
        // What was measured before must outlive a Ctrl-C while places are made.
        executor.watch_signals()?;
    }
    let (places, described) = match make_places(experiment, executor, observer) {
        // A terminal's Ctrl-C ends the programs that make and fill them, too.
        Err(_) if executor.is_interrupted() => return stopped(observer, measured),
        made => made?,
    };
    let digests = match (experiment.race, described.first()) {
        // The others are made when they are needed, and hold the same.
        (Some(_), Some(first)) => vec![first.data_digest.clone(); described.len()],
        _ => described.iter().map(|place| place.data_digest.clone()).collect(),
    };
    let recording = &mut measured.recording;
    let offset = Offset { places: recording.places.len(), commands: recording.commands.len() };
    recording.margin = experiment.margin.unwrap_or(recording.margin);
    recording.commands.extend(record::commands(&experiment.commands));
    recording.places.extend(record::places(described));
    if let Some(earlier) = &measured.earlier {
        earlier.check(&recording.places, &recording.commands)?;
    }
    executor.watch_signals()?;
    let saved = executor.now();
    let (made_late, out) = (BTreeMap::new(), Vec::new());
    let saving = Duration::ZERO;
    let mut running =
        Running { experiment, executor, observer, places, digests, offset, saving, saved, made_late, out };
    let ended = running.all(measured);
    running.observer.event(&Event::Finished);
    running.describe_late(&mut measured.recording);
    ended
}

/// The user has ended it: that is not a failure where something was measured.
fn stopped(observer: &mut dyn Observer, measured: &mut Measured) -> Result<(), ExperimentError> {
    measured.interrupted = true;
    observer.event(&Event::Interrupted);
    match measured.recording.runs.is_empty() {
        true => Err(ExperimentError::InterruptedEarly),
        false => Ok(()),
    }
}

type Places<P> = Vec<Option<P>>;

/// All places with what the recording says about them. Where they are made anew before each run, none of them is kept.
fn make_places<E: Executor>(
    experiment: &Experiment,
    executor: &mut E,
    observer: &mut dyn Observer,
) -> Result<(Places<E::Place>, Vec<Place>), ExperimentError> {
    let mut places: Places<E::Place> = Vec::new();
    let mut described: Vec<Place> = Vec::new();
    for setup in &experiment.places {
        if executor.is_interrupted() {
            return Err(ExperimentError::InterruptedEarly);
        }
        if experiment.race.is_some() && !described.is_empty() {
            described.push(Place { label: setup.spec.name(), made_here: setup.spec.is_made(), ..Place::default() });
            places.push(None);
            continue;
        }
        let mut place = make_place(setup, false, executor, observer)?;
        let description = executor.describe(&place);
        if let Some(first) = described.first().filter(|first| differ(first, &description)) {
            let difference = match places.first() {
                Some(Some(of_first)) => match executor.first_difference(&place, of_first)? {
                    Some(path) => format!(", first different: {}", path.display()),
                    None => ", first different: nothing any more".to_owned(),
                },
                _ => String::new(),
            };
            let (first, second) = (first.label.clone(), description.label);
            return Err(ExperimentError::DifferentData { first, second, difference });
        }
        described.push(description);
        executor.leave(&mut place);
        places.push((!experiment.fresh).then_some(place));
    }
    Ok((places, described))
}

/// Whether both hold data, but not the same. Existing directories hold the user's own data, and are not looked at.
fn differ(a: &Place, b: &Place) -> bool {
    a.data_digest.as_ref().zip(b.data_digest.as_ref()).is_some_and(|(a, b)| a != b)
}

fn make_place<E: Executor>(
    setup: &PlaceSetup,
    again: bool,
    executor: &mut E,
    observer: &mut dyn Observer,
) -> Result<E::Place, ExperimentError> {
    observer.event(&Event::PlaceStarted { place: &setup.spec, again });
    executor.make_place(setup, observer)
}

/// An experiment under way.
struct Running<'a, E: Executor> {
    experiment: &'a Experiment,
    executor: &'a mut E,
    observer: &'a mut dyn Observer,
    /// None where a place is made anew before each run, between runs.
    places: Places<E::Place>,
    /// Of the data that each place was first filled with.
    digests: Vec<Option<String>>,
    /// Where its places and commands begin in the recording.
    offset: Offset,
    /// How long the last save took, and when it ended.
    saving: Duration,
    saved: Duration,
    /// What the recording does not say yet about places that were not made before the first run.
    made_late: BTreeMap<usize, Place>,
    /// Cases that have left the race.
    out: Vec<CaseKey>,
}

/// Whether to go on after a block.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
}

/// What of a block was taken from an earlier recording.
enum Taken {
    All,
    Nothing,
    /// The experiment ended before this block: so it does now.
    End,
}

/// A run, with what came after it.
struct Iteration {
    /// None where the user ended everything before the command began.
    execution: Option<Execution>,
    /// Whether the clean-up succeeded.
    cleaned_up: Result<(), ExperimentError>,
}

impl<E: Executor> Running<'_, E> {
    fn all(&mut self, measured: &mut Measured) -> Result<(), ExperimentError> {
        let experiment = self.experiment;
        let repetitions = experiment.repetitions;
        self.observer.event(&Event::Started { repetitions });
        let mut order = Order::new(experiment.seed);
        let groups = experiment.groups.len() as u32;
        let begun = self.executor.now();
        for (number, group) in (1..).zip(&experiment.groups) {
            let later_groups = groups - number;
            // Each group has its share of the time, and whatever the ones before it left over.
            let deadline = repetitions.max_time.map(|most| begun + most * number / groups);
            let told = |running: &mut Self, phase| {
                let elapsed = running.executor.now().saturating_sub(begun);
                let cache = group.cache();
                running.observer.event(&Event::BlockStarted { cache, later_groups, phase, elapsed });
            };
            for block in 0..repetitions.warmup {
                told(self, Phase::WarmUp(block));
                if self.warm_up(&order.warm_up(group), measured)? == Next::Stop {
                    return Ok(());
                }
            }
            let mut block = 0;
            while block < repetitions.untraced || !self.is_precise(&measured.recording, group, block) {
                if block > 0 && deadline.is_some_and(|deadline| self.executor.now() > deadline) {
                    break;
                }
                told(self, Phase::Untraced(block));
                let group = self.in_the_race(group);
                if group.cases.len() < 2 && experiment.race.is_some() {
                    break;
                }
                if self.block(&order.next(&group, block, false), measured)? == Next::Stop {
                    return Ok(());
                }
                self.race(&group, &measured.recording);
                block += 1;
            }
            for number in 0..repetitions.traced {
                if number > 0 && deadline.is_some_and(|deadline| self.executor.now() > deadline) {
                    break;
                }
                told(self, Phase::Traced(number));
                if self.block(&order.next(group, block + number, true), measured)? == Next::Stop {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The group without those that have left the race.
    fn in_the_race(&self, group: &Group) -> Group {
        Group { cases: group.cases.iter().filter(|case| !self.out.contains(case)).copied().collect() }
    }

    /// Ends the race for those that have lost it, or that end differently from the first case.
    fn race(&mut self, group: &Group, recording: &Recording) {
        let (Some(race), Some((first, others))) = (self.experiment.race, group.cases.split_first()) else { return };
        let first = self.offset.of_case(*first);
        let is_out = |case: &CaseKey| race.is_over_for(&race::pairs(recording, first, self.offset.of_case(*case)));
        let out: Vec<CaseKey> = others.iter().filter(|case| is_out(case)).copied().collect();
        self.out.extend(out);
    }

    /// Whether the intervals are as narrow as asked for, or never will be.
    fn is_precise(&self, recording: &Recording, group: &Group, blocks: u32) -> bool {
        let (Some(until), Some(cache)) = (self.experiment.repetitions.until, group.cache()) else { return true };
        let reached = || inodyne_analyse::precision(recording, self.offset.places, cache);
        blocks >= MOST_BLOCKS || is_looked_at(blocks) && reached().is_some_and(|reached| reached <= until)
    }

    fn block(&mut self, runs: &[RunKey], measured: &mut Measured) -> Result<Next, ExperimentError> {
        let to_run = match self.take(runs, measured)? {
            Taken::All => &[],
            Taken::Nothing => runs,
            Taken::End => return Ok(Next::Stop),
        };
        for key in to_run {
            let iteration = match self.iteration(*key) {
                Err(ExperimentError::Lab(error)) if self.experiment.race.is_some() && key.case.place > 0 => {
                    measured.refused.insert(self.offset.places + key.case.place, error.to_string());
                    self.out.push(key.case);
                    continue;
                }
                iteration => iteration?,
            };
            let Iteration { execution, cleaned_up } = iteration;
            let is_complete = execution.as_ref().is_some_and(|execution| self.is_complete(*key, execution));
            if let Some(execution) = execution {
                let exit = execution.ended.exit;
                if !exit.success() {
                    measured.exit = exit;
                }
                let is_all_there_is = self.experiment.keep_cut_short && measured.recording.runs.is_empty();
                if is_complete || is_all_there_is {
                    record::add(&mut measured.recording, self.offset.apply(*key), execution);
                }
                if is_complete {
                    self.check_exit(*key, exit)?;
                }
            }
            if !is_complete {
                return self.stop(measured);
            }
            // The run was good, whatever came after it.
            cleaned_up?;
        }
        // A crash from now on leaves what is saved here.
        self.describe_late(&mut measured.recording);
        // What was taken is in the file already, perhaps with more.
        if !measured.earlier.as_ref().is_some_and(|earlier| earlier.holds_more_than(&measured.recording)) {
            self.save_now_and_then(&measured.recording);
        }
        Ok(Next::GoOn)
    }

    /// Takes a block from an earlier recording, where that holds it. A case that has no run there was refused then, and would have none to
    /// be paired with: it leaves the race.
    fn take(&mut self, runs: &[RunKey], measured: &mut Measured) -> Result<Taken, ExperimentError> {
        let Some(earlier) = &mut measured.earlier else { return Ok(Taken::Nothing) };
        let keys: Vec<RunKey> = runs.iter().map(|key| self.offset.apply(*key)).collect();
        let block = match earlier.block(&keys, self.offset.places + self.places.len()) {
            Block::Ran(block) => block,
            Block::Ended => return Ok(Taken::End),
            Block::Unknown => return Ok(Taken::Nothing),
        };
        for key in keys.iter().filter(|key| block.iter().all(|(taken, _)| taken != *key)) {
            measured.refused.insert(key.case.place, earlier.refusal(key.case.place));
            self.out.push(self.offset.remove(*key).case);
        }
        for (key, run) in block {
            let (own, exit) = (self.offset.remove(key), run.exit);
            let is_made_late = self.experiment.race.is_some() && own.case.place > 0;
            if let Some(place) = earlier.place(key.case.place).filter(|_| is_made_late) {
                self.made_late.insert(own.case.place, place.clone());
            }
            if !exit.success() {
                measured.exit = exit;
            }
            measured.recording.traces.extend(earlier.trace(key));
            measured.recording.push_run(run);
            self.check_exit(own, exit)?;
        }
        Ok(Taken::All)
    }

    fn warm_up(&mut self, runs: &[RunKey], measured: &mut Measured) -> Result<Next, ExperimentError> {
        for key in runs {
            let Iteration { execution, cleaned_up } = self.iteration(*key)?;
            match execution.filter(|execution| !execution.interrupted) {
                Some(execution) => self.check_exit(*key, execution.ended.exit)?,
                None => return self.stop(measured),
            }
            cleaned_up?;
        }
        Ok(Next::GoOn)
    }

    /// Whether the user let it run to its end, and let its number be read, without which it says nothing of what was to be measured.
    fn is_complete(&self, key: RunKey, execution: &Execution) -> bool {
        let has_number = self.experiment.number.is_some() && !key.traced && execution.ended.exit.success();
        !execution.interrupted && (!has_number || execution.number.is_some())
    }

    fn check_exit(&self, key: RunKey, exit: Exit) -> Result<(), ExperimentError> {
        // Nothing is faster than a command that fails: what the others are raced against must succeed.
        let is_base = self.experiment.race.is_some() && key.case.place == 0;
        let expected = self.experiment.expected_exit.or(is_base.then_some(Exit::Code(0)));
        match expected.filter(|expected| *expected != exit) {
            Some(expected) => {
                let label = self.experiment.commands[key.case.command].label.clone();
                Err(ExperimentError::UnexpectedExit { label, exit, expected })
            }
            None => Ok(()),
        }
    }

    /// The user has ended it.
    fn stop(&mut self, measured: &mut Measured) -> Result<Next, ExperimentError> {
        stopped(self.observer, measured).map(|()| Next::Stop)
    }

    /// Says what places are that have been made meanwhile.
    fn describe_late(&mut self, recording: &mut Recording) {
        for (at, place) in std::mem::take(&mut self.made_late) {
            let known = &mut recording.places[self.offset.places + at];
            *known = Place { label: std::mem::take(&mut known.label), ..place };
        }
    }

    fn save_now_and_then(&mut self, recording: &Recording) {
        let now = self.executor.now();
        if now.saturating_sub(self.saved) >= self.saving * PAUSE_AFTER_SAVING {
            self.observer.keep(recording);
            self.saved = self.executor.now();
            self.saving = self.saved.saturating_sub(now);
        }
    }

    /// One run, with what comes before and after it.
    fn iteration(&mut self, key: RunKey) -> Result<Iteration, ExperimentError> {
        if self.executor.is_interrupted() {
            return Ok(Iteration { execution: None, cleaned_up: Ok(()) });
        }
        let mut place = match self.take_place(key.case.place) {
            // A terminal's Ctrl-C ends the programs that make and fill it, too.
            Err(_) if self.executor.is_interrupted() => return Ok(Iteration { execution: None, cleaned_up: Ok(()) }),
            place => place?,
        };
        let iteration = self.iteration_in(&mut place, key);
        // One that is made anew is removed as soon as its run is over: others may need its space.
        if !self.experiment.fresh {
            self.executor.leave(&mut place);
            self.places[key.case.place] = Some(place);
        }
        iteration
    }

    /// The place, made anew where there is none.
    fn take_place(&mut self, at: usize) -> Result<E::Place, ExperimentError> {
        if let Some(mut place) = self.places[at].take() {
            self.executor.enter(&mut place)?;
            return Ok(place);
        }
        let place = make_place(&self.experiment.places[at], true, self.executor, self.observer)?;
        let description = self.executor.describe(&place);
        if let Some((before, now)) = self.digests[at].as_ref().zip(description.data_digest.as_ref())
            && before != now
        {
            return Err(ExperimentError::ChangedData { place: description.label });
        }
        if self.experiment.race.is_some() && at > 0 {
            self.made_late.insert(at, description);
        }
        Ok(place)
    }

    fn iteration_in(&mut self, place: &mut E::Place, key: RunKey) -> Result<Iteration, ExperimentError> {
        let command = &self.experiment.commands[key.case.command];
        self.script(place, command, command.prepare.as_ref())?;
        self.observer.event(&Event::RunStarted { key });
        let execution = self.executor.run_command(place, key, self.experiment, self.observer);
        if let Ok(Some(execution)) = &execution {
            self.tell(key, execution);
        }
        // What was prepared is cleaned up even where the command never began, or could not be followed to its end.
        let cleaned_up = self.script(place, command, command.cleanup.as_ref());
        Ok(Iteration { execution: execution?, cleaned_up })
    }

    fn script(
        &mut self,
        place: &mut E::Place,
        command: &CommandSpec,
        script: Option<&OsString>,
    ) -> Result<(), ExperimentError> {
        script.map_or(Ok(()), |script| self.executor.run_script(place, command, script))
    }

    fn tell(&mut self, key: RunKey, execution: &Execution) {
        let timeout = self.experiment.timeout.filter(|_| execution.timed_out);
        if let Some(timeout) = timeout {
            self.observer.event(&Event::TimedOut { timeout });
        }
        if let Some(Err(error)) = &execution.durable {
            self.observer.event(&Event::NotDurable { error });
        }
        let count = execution.ended.left_running;
        if count > 0 {
            let fate = Fate::of(execution);
            self.observer.event(&Event::LeftRunning { count, fate });
        }
        let (exit, wall_ns) = (execution.ended.exit, execution.ended.wall_ns());
        self.observer.event(&Event::RunFinished { key, exit, wall_ns });
    }
}

impl Fate {
    fn of(execution: &Execution) -> Fate {
        match execution.leftovers {
            _ if execution.timed_out => Fate::TimedOut,
            inodyne_launch::Leftovers::Kill => Fate::Killed,
            inodyne_launch::Leftovers::Leave => Fate::Left,
        }
    }
}

#[cfg(test)]
mod tests;
