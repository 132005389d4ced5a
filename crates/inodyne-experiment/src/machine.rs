//! The real machine: places of the lab, commands held by a guard, the tracer, signals.
//!
//! | module | what it knows |
//! |---|---|
//! | `place` | a place with its data, and its caches |
//! | `collect` | what traces an execution: the BPF programs, or strace |
//! | `strace` | a command under strace, and its log |
//! | `follow` | one execution: held, released, followed to its end |
//! | `limits` | what the command's cgroups allow it |
//! | `number` | a number that is read from what a command printed |
//! | `neighbours` | what other programs used of the machine meanwhile |
//! | `interrupt` | what Ctrl-C and its like do meanwhile |

mod collect;
mod follow;
mod interrupt;
mod limits;
mod neighbours;
mod number;
mod place;
mod strace;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use inodyne_disk::Kept;
use inodyne_lab::{Lab, Owner};
use inodyne_launch::{Input, LaunchSpec, Leftovers, Output, User};
use inodyne_model::command::{CommandSpec, Stdin};
use inodyne_model::place::Place;
use inodyne_model::run::Exit;

use crate::error::ExperimentError;
use crate::event::{Event, Observer};
use crate::executor::{Execution, Executor};
use crate::experiment::{Experiment, PlaceSetup};
use crate::order::RunKey;
pub use collect::Collector;
use collect::Tracers;
use follow::{Following, follow};
use interrupt::Interrupts;
use number::Printed;
use place::ReadyPlace;

/// Runs experiments on this machine. Must be used from the only thread of the process: it forks.
pub struct Machine {
    lab: Lab,
    user: Option<User>,
    output: Output,
    tracers: Tracers,
    /// What disks can do, as measured earlier.
    disks: Kept,
    interrupts: Option<Interrupts>,
    begun: Instant,
}

impl Machine {
    /// Runs commands as this user (none to change nothing), with their output going to `output`, and traces runs with this collector.
    /// What is already known about disks is added to traces.
    pub fn new(user: Option<User>, output: Output, collector: Collector, disks: Kept) -> Machine {
        let tracers = Tracers::new(collector);
        Machine { lab: Lab::new(), user, output, tracers, disks, interrupts: None, begun: Instant::now() }
    }

    /// The same, but hiding nothing that these words may name while it has places.
    pub fn sparing(mut self, words: impl IntoIterator<Item = OsString>) -> Machine {
        self.lab = self.lab.sparing(words);
        self
    }

    fn launch_spec(&self, command: &CommandSpec, directory: PathBuf) -> LaunchSpec {
        let input = match command.stdin {
            Stdin::Empty => Input::Nothing,
            Stdin::Inherited => Input::Inherit,
        };
        LaunchSpec {
            argv: command.argv.clone(),
            directory: Some(directory),
            environment: command.env.clone().into_iter().collect(),
            user: self.user.clone(),
            input,
            output: self.output,
        }
    }

    /// Runs a shell command in the place, unmeasured. What it leaves running in a place that was made here ends with the place.
    fn shell(
        &mut self,
        place: &mut ReadyPlace,
        command: &CommandSpec,
        script: &OsStr,
        input: Input,
        output: Output,
    ) -> Result<(), ExperimentError> {
        let shell = CommandSpec { argv: vec!["/bin/sh".into(), "-c".into(), script.to_owned()], ..command.clone() };
        let spec = LaunchSpec { input, output, ..self.launch_spec(&shell, place.directory(None)) };
        let leftovers = Leftovers::Leave;
        let following = Following { collecting: None, leftovers, keeper: place.keeper(), timeout: None, flusher: None };
        let (execution, _) = follow(&spec, following, self.interrupts()?, &mut |_| {})?;
        if execution.ended.exit.success() || execution.interrupted {
            return Ok(());
        }
        let (script, code) = (script.to_string_lossy().into_owned(), execution.ended.exit.shell_code());
        Err(ExperimentError::Script { script, code })
    }

    /// The number that a script reads from what a command printed. None where the command failed, or the user wants to stop.
    fn number(
        &mut self,
        place: &mut ReadyPlace,
        command: &CommandSpec,
        script: &OsStr,
        printed: Printed,
        exit: Exit,
    ) -> Result<Option<f64>, ExperimentError> {
        if !exit.success() {
            return Ok(None);
        }
        let read = Printed::new()?;
        self.shell(place, command, script, printed.input()?, read.output_alone())?;
        if self.is_interrupted() {
            return Ok(None);
        }
        read.number()
            .map(Some)
            .map_err(|printed| ExperimentError::NoNumber { script: script.to_string_lossy().into_owned(), printed })
    }

    /// The signals that are watched, from [`Executor::watch_signals`] or the first use on.
    fn interrupts(&mut self) -> Result<&mut Interrupts, ExperimentError> {
        if self.interrupts.is_none() {
            self.interrupts = Some(Interrupts::watch()?);
        }
        Ok(self.interrupts.as_mut().expect("it was made above"))
    }
}

impl Executor for Machine {
    type Place = ReadyPlace;

    fn make_place(&mut self, setup: &PlaceSetup, observer: &mut dyn Observer) -> Result<ReadyPlace, ExperimentError> {
        let owner = match &self.user {
            Some(user) => Owner { uid: user.uid, gid: user.gid },
            None => Owner { uid: nix::unistd::geteuid().as_raw(), gid: nix::unistd::getegid().as_raw() },
        };
        ReadyPlace::make(&self.lab, setup, owner, observer)
    }

    fn enter(&mut self, place: &mut ReadyPlace) -> Result<(), ExperimentError> {
        place.enter()
    }

    fn leave(&mut self, place: &mut ReadyPlace) {
        place.leave();
    }

    fn describe(&self, place: &ReadyPlace) -> Place {
        place.describe()
    }

    fn first_difference(&self, a: &ReadyPlace, b: &ReadyPlace) -> Result<Option<PathBuf>, ExperimentError> {
        a.first_difference(b)
    }

    fn watch_signals(&mut self) -> Result<(), ExperimentError> {
        self.interrupts().map(drop)
    }

    fn is_interrupted(&mut self) -> bool {
        self.interrupts.as_mut().is_some_and(Interrupts::any_seen)
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn run_script(
        &mut self,
        place: &mut ReadyPlace,
        command: &CommandSpec,
        script: &OsStr,
    ) -> Result<(), ExperimentError> {
        self.shell(place, command, script, Input::Nothing, Output::ToStderr)
    }

    fn run_command(
        &mut self,
        place: &mut ReadyPlace,
        key: RunKey,
        experiment: &Experiment,
        observer: &mut dyn Observer,
    ) -> Result<Option<Execution>, ExperimentError> {
        if self.is_interrupted() {
            return Ok(None);
        }
        match place.set_caches(key.case.cache) {
            Err(_) if self.is_interrupted() => return Ok(None),
            set => set?,
        }
        // Traced runs begin as clean as the others.
        let flusher = experiment.durable.then(|| place.clean_flusher()).transpose()?;
        let before = place.device_stats();
        let command = &experiment.commands[key.case.command];
        let spec = self.launch_spec(command, place.directory(command.cwd.as_deref()));
        let printed = experiment.number.as_ref().filter(|_| !key.traced).map(|_| Printed::new()).transpose()?;
        let output = match &printed {
            Some(printed) => printed.output(),
            None if experiment.shows_output(key.block, key.traced) => self.output,
            None => Output::Discard,
        };
        let spec = LaunchSpec { output, ..spec };
        if self.is_interrupted() {
            return Ok(None);
        }
        let mut tell = |event: Event<'_>| observer.event(&event);
        let collecting = key.traced.then(|| self.tracers.ready(&spec, &mut tell)).transpose()?;
        // Loading may have taken a second.
        if self.is_interrupted() {
            return Ok(None);
        }
        let following = Following {
            collecting,
            leftovers: if place.is_made_here() { Leftovers::Kill } else { Leftovers::Leave },
            keeper: None,
            timeout: experiment.timeout,
            flusher: flusher.as_ref(),
        };
        let (mut execution, idle) = follow(&spec, following, self.interrupts()?, &mut tell)?;
        if key.traced {
            self.tracers.keep(idle);
        }
        execution.moved = place.device_stats().zip(before).map(|(after, before)| after.since(before));
        if let Some((script, printed)) = experiment.number.as_ref().zip(printed).filter(|_| !execution.interrupted) {
            execution.number = self.number(place, command, script, printed, execution.ended.exit)?;
        }
        if let Some(block) = execution.collected.as_mut().and_then(|trace| trace.block.as_mut()) {
            self.disks.add_to(block);
        }
        Ok(Some(execution))
    }
}
