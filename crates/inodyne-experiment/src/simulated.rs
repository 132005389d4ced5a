//! A machine on which time passes only as a test says: its clock is a number.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use inodyne_lab::LabError;
use inodyne_launch::{Ended, Leftovers};
use inodyne_model::command::CommandSpec;
use inodyne_model::place::Place;
use inodyne_model::recording::Recording;
use inodyne_model::run::Exit;

use crate::error::ExperimentError;
use crate::event::{Event, Observer};
use crate::executor::{Execution, Executor};
use crate::experiment::{Experiment, PlaceSetup};
use crate::order::RunKey;

/// How long a run takes, by what it is and how many runs there were before.
type Takes = Box<dyn Fn(RunKey, usize) -> Duration>;

/// A machine that only records what is asked of it.
pub(crate) struct Simulated {
    /// The clock, which the observer shares: saving takes time as well.
    pub(crate) clock: Rc<Cell<Duration>>,
    /// What was done, in order.
    pub(crate) log: Rc<RefCell<Vec<String>>>,
    pub(crate) takes: Takes,
    /// How commands end; success where nothing is said.
    pub(crate) exits: BTreeMap<usize, Exit>,
    /// Scripts that fail.
    pub(crate) failing: Vec<&'static str>,
    /// The user ends it during the run with this number, or, of a script, before it.
    pub(crate) interrupted_in_run: Option<usize>,
    pub(crate) interrupted: bool,
    /// The user ends it while the number of the run with this number is read.
    pub(crate) interrupted_in_number: Option<usize>,
    /// The run with this number cannot be followed to its end.
    pub(crate) lost_in_run: Option<usize>,
    /// The user ends it while the n-th place is being made, which then fails.
    pub(crate) interrupted_in_place: Option<usize>,
    /// In places whose name contains one of these words, a run takes this many times as long.
    pub(crate) factors: Vec<(&'static str, f64)>,
    /// Places whose name contains this are refused.
    pub(crate) refused: Option<&'static str>,
    /// The digest of the data of the n-th place that is made.
    pub(crate) digest: fn(usize) -> &'static str,
    pub(crate) runs: usize,
    pub(crate) made: usize,
    /// Places that exist, and the most there ever were at once.
    pub(crate) existing: Rc<Cell<(usize, usize)>>,
    /// The places whose settings are in force, by the number that they got when they were made.
    pub(crate) entered: Rc<RefCell<Vec<usize>>>,
}

impl Simulated {
    /// Every run takes a second.
    pub(crate) fn new() -> Simulated {
        Simulated {
            clock: Rc::default(),
            log: Rc::default(),
            takes: Box::new(|_, _| Duration::from_secs(1)),
            exits: BTreeMap::new(),
            failing: Vec::new(),
            interrupted_in_run: None,
            interrupted: false,
            interrupted_in_number: None,
            lost_in_run: None,
            interrupted_in_place: None,
            factors: Vec::new(),
            refused: None,
            digest: |_| "same",
            runs: 0,
            made: 0,
            existing: Rc::default(),
            entered: Rc::default(),
        }
    }

    /// Checks that the settings of this place, and no others, are in force for what runs in it.
    fn check_settings(&self, place: &SimulatedPlace) {
        assert_eq!(*self.entered.borrow(), [place.number], "settings of these places are in force in {}", place.label);
    }

    fn log(&self, line: String) {
        self.log.borrow_mut().push(line);
    }
}

/// A place that counts how many of its kind there are.
pub(crate) struct SimulatedPlace {
    number: usize,
    label: String,
    digest: String,
    existing: Rc<Cell<(usize, usize)>>,
    entered: Rc<RefCell<Vec<usize>>>,
}

impl SimulatedPlace {
    fn leave(&self) {
        self.entered.borrow_mut().retain(|number| *number != self.number);
    }
}

impl Drop for SimulatedPlace {
    fn drop(&mut self) {
        let (now, most) = self.existing.get();
        self.existing.set((now - 1, most));
        self.leave();
    }
}

impl Executor for Simulated {
    type Place = SimulatedPlace;

    fn make_place(&mut self, setup: &PlaceSetup, _: &mut dyn Observer) -> Result<SimulatedPlace, ExperimentError> {
        let (now, most) = self.existing.get();
        self.existing.set((now + 1, most.max(now + 1)));
        let label = setup.spec.name();
        self.log(format!("make {label}"));
        if self.refused.is_some_and(|refused| label.contains(refused)) {
            self.existing.set((now, most));
            return Err(LabError::MkfsFailed { program: "mkfs.ext4", said: "no".to_owned() }.into());
        }
        self.made += 1;
        if self.interrupted_in_place == Some(self.made) {
            self.interrupted = true;
            self.existing.set((now, most));
            return Err(LabError::MkfsFailed { program: "mkfs.ext4", said: "signal: 2".to_owned() }.into());
        }
        self.entered.borrow_mut().push(self.made);
        let (number, digest) = (self.made, (self.digest)(self.made).to_owned());
        let (existing, entered) = (self.existing.clone(), self.entered.clone());
        Ok(SimulatedPlace { number, label, digest, existing, entered })
    }

    fn enter(&mut self, place: &mut SimulatedPlace) -> Result<(), ExperimentError> {
        self.entered.borrow_mut().push(place.number);
        Ok(())
    }

    fn leave(&mut self, place: &mut SimulatedPlace) {
        place.leave();
    }

    fn describe(&self, place: &SimulatedPlace) -> Place {
        Place { label: place.label.clone(), data_digest: Some(place.digest.clone()), ..Place::default() }
    }

    fn first_difference(&self, _: &SimulatedPlace, _: &SimulatedPlace) -> Result<Option<PathBuf>, ExperimentError> {
        Ok(Some("a/b".into()))
    }

    fn watch_signals(&mut self) -> Result<(), ExperimentError> {
        self.log("watch signals".to_owned());
        Ok(())
    }

    fn is_interrupted(&mut self) -> bool {
        self.interrupted
    }

    fn now(&self) -> Duration {
        self.clock.get()
    }

    fn run_script(
        &mut self,
        place: &mut SimulatedPlace,
        command: &CommandSpec,
        script: &OsStr,
    ) -> Result<(), ExperimentError> {
        self.check_settings(place);
        let script = script.to_string_lossy().into_owned();
        self.log(format!("{script} for {} in {}", command.label, place.label));
        match self.failing.contains(&script.as_str()) {
            true => Err(ExperimentError::Script { script, code: 7 }),
            false => Ok(()),
        }
    }

    fn run_command(
        &mut self,
        place: &mut SimulatedPlace,
        key: RunKey,
        experiment: &Experiment,
        _: &mut dyn Observer,
    ) -> Result<Option<Execution>, ExperimentError> {
        if self.interrupted {
            return Ok(None);
        }
        self.check_settings(place);
        let command = &experiment.commands[key.case.command].label;
        let traced = if key.traced { ", traced" } else { "" };
        self.log(format!("{command} in {}, {}{traced}", place.label, key.case.cache));
        let began = self.clock.get();
        let factors = self.factors.iter().filter(|(word, _)| place.label.contains(word));
        let took = (self.takes)(key, self.runs).mul_f64(factors.map(|(_, factor)| factor).product());
        self.runs += 1;
        if self.lost_in_run == Some(self.runs) {
            return Err(ExperimentError::Killed);
        }
        self.interrupted |= self.interrupted_in_run == Some(self.runs);
        let timed_out = experiment.timeout.is_some_and(|timeout| took > timeout);
        let took = experiment.timeout.map_or(took, |timeout| took.min(timeout));
        self.clock.set(began + took);
        let exit = self.exits.get(&key.case.command).copied().unwrap_or(Exit::Code(0));
        let ended = Ended {
            released_ns: began.into(),
            ended_ns: (began + took).into(),
            exit: if timed_out { Exit::Signal(9) } else { exit },
            ..Ended::default()
        };
        let interrupted = self.interrupted;
        let is_read = experiment.number.is_some() && !key.traced && ended.exit.success() && !interrupted;
        self.interrupted |= is_read && self.interrupted_in_number == Some(self.runs);
        Ok(Some(Execution {
            ended,
            collected: None,
            durable: None,
            number: (is_read && !self.interrupted).then_some(1.0),
            moved: None,
            interrupted,
            timed_out,
            leftovers: Leftovers::Kill,
        }))
    }
}

/// Records what it hears; keeping a recording takes time.
pub(crate) struct Heard {
    pub(crate) events: Vec<String>,
    /// How many runs each kept recording had.
    pub(crate) kept: Vec<usize>,
    /// Of how many places each of them knew the data.
    pub(crate) described: Vec<usize>,
    pub(crate) saving_takes: Duration,
    clock: Rc<Cell<Duration>>,
}

impl Heard {
    pub(crate) fn new(machine: &Simulated) -> Heard {
        let (events, kept, described) = (Vec::new(), Vec::new(), Vec::new());
        Heard { events, kept, described, saving_takes: Duration::ZERO, clock: machine.clock.clone() }
    }
}

impl Observer for Heard {
    fn event(&mut self, event: &Event<'_>) {
        self.events.push(match event {
            Event::PlaceStarted { place, again } => {
                format!("{} {}", if *again { "again" } else { "make" }, place.name())
            }
            Event::BlockStarted { phase, elapsed, .. } => format!("{phase:?} at {} s", elapsed.as_secs()),
            Event::TimedOut { .. } => "timed out".to_owned(),
            Event::Started { .. } => "started".to_owned(),
            Event::Interrupted => "interrupted".to_owned(),
            Event::Finished => "finished".to_owned(),
            _ => return,
        });
    }

    fn keep(&mut self, recording: &Recording) {
        self.kept.push(recording.runs.len());
        self.described.push(recording.places.iter().filter(|place| place.data_digest.is_some()).count());
        self.clock.set(self.clock.get() + self.saving_takes);
    }
}
