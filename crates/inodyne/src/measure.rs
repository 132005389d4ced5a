//! From the options of a command line to an experiment, and running it on this machine: what `run`, `compare`, `study`, `prove` and
//! `tune` have in common. The scheduler itself is in `inodyne-experiment`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use inodyne_experiment::tuner::{self, Plan, Tuned};
use inodyne_experiment::{Collector, Experiment, Group, Machine, Measured, PlaceSetup, Repetitions, is_below};
use inodyne_lab::PlaceSpec;
use inodyne_launch::{Output, User};
use inodyne_model::command::CommandSpec;
use inodyne_model::loss::{self, Lost};
use inodyne_model::recording::Recording;
use inodyne_model::run::CacheState;
use inodyne_trace::capability;

use crate::failure::{ExitStatus, Failure};
use crate::options::{CommandOptions, PlaceOptions, RunOptions, TraceOptions};
use crate::progress::Terminal;
use crate::{disks, host, keep};

/// What experiments are run with.
pub struct Conditions<'a> {
    /// The user that commands run as; none if that is the caller.
    pub user: Option<User>,
    output: Output,
    collector: Collector,
    /// Where what was measured so far is kept.
    file: Option<&'a Path>,
}

impl<'a> Conditions<'a> {
    /// Runs commands as the named user, otherwise as the user who called sudo, otherwise as the caller.
    ///
    /// # Errors
    /// There is no such user.
    pub fn new(
        user: Option<&str>,
        output: Output,
        collector: Collector,
        file: Option<&'a Path>,
    ) -> Result<Conditions<'a>, Failure> {
        Ok(Conditions { user: host::user(user)?, output, collector, file })
    }

    /// Whether commands run as root if no user is named.
    ///
    /// # Errors
    /// Nothing says who called.
    pub fn is_root_by_default() -> Result<bool, Failure> {
        Ok(host::user(None)?.map_or_else(|| nix::unistd::geteuid().is_root(), |user| user.uid == 0))
    }

    /// Runs the experiment and explains it. What was measured before something went wrong is kept, and written to the recording's file
    /// block by block, so that it is there however the run ends.
    ///
    /// # Errors
    /// Nothing could be measured at all.
    pub fn measure(&self, experiment: &Experiment) -> Result<(Measured, Option<Failure>), Failure> {
        let mut measured = nothing();
        let failure = self.add(experiment, &mut measured).err();
        if measured.recording.runs.is_empty()
            && let Some(failure) = failure
        {
            return Err(failure);
        }
        inodyne_analyse::explain(&mut measured.recording);
        // What cannot be saved can still be reported.
        let unsaved = self.file.and_then(|path| keep::save(&measured.recording, path).err());
        Ok((measured, keep::first(failure, unsaved)))
    }

    /// Runs the experiment, appending to what the recording already holds. Nothing is explained yet.
    ///
    /// # Errors
    /// It could not be run to the end; what was measured until then is kept.
    pub fn add(&self, experiment: &Experiment, measured: &mut Measured) -> Result<(), Failure> {
        if experiment.repetitions.traced > 0 && !matches!(self.collector, Collector::Strace(_)) {
            capability::require_for_tracing().map_err(|missing| Failure::new(ExitStatus::Lacking, missing))?;
        }
        let (mut machine, mut terminal) = self.machine(&experiment.commands);
        Ok(inodyne_experiment::run(experiment, &mut machine, &mut terminal, measured)?)
    }

    /// Tries alternatives, appending to what the recording already holds.
    pub fn tune(&self, plan: &Plan<'_>, measured: &mut Measured) -> Tuned {
        let (mut machine, mut terminal) = self.machine(std::slice::from_ref(&plan.base.command));
        tuner::tune(plan, &mut machine, &mut terminal, measured)
    }

    /// What runs an experiment with these commands, and what reports on it.
    fn machine(&self, commands: &[CommandSpec]) -> (Machine, Terminal) {
        // Files that a report goes to, and commands that a recording names.
        let words = std::env::args_os().skip(1).chain(commands.iter().flat_map(CommandSpec::words).cloned());
        let machine =
            Machine::new(self.user.clone(), self.output, self.collector.clone(), disks::known()).sparing(words);
        (machine, self.terminal())
    }

    /// What reports on an experiment, and keeps what was measured so far.
    pub fn terminal(&self) -> Terminal {
        Terminal::new(self.output, self.file)
    }
}

/// Nothing measured yet, on this machine.
pub fn nothing() -> Measured {
    Measured::nothing(Recording::new(env!("CARGO_PKG_VERSION"), host::now_unix_s(), host::describe()))
}

/// Every command in every place in each state of the caches.
///
/// # Errors
/// A state of the caches is given twice.
pub fn experiment(
    places: &PlaceOptions,
    around: &RunOptions,
    commands: Vec<CommandSpec>,
    repetitions: Repetitions,
) -> Result<Experiment, Failure> {
    let caches: Vec<CacheState> = places.caches.iter().map(|cache| (*cache).into()).collect();
    if let Some(twice) = (1..caches.len()).find(|at| caches[..*at].contains(&caches[*at])) {
        let word = caches[twice].to_string().replace(' ', "-");
        return Err(Failure::new(ExitStatus::Usage, format_args!("--cache {word} is given twice")));
    }
    let setup = |spec: &PlaceSpec| PlaceSetup { spec: spec.clone(), data: places.data.clone() };
    let here = || ".".parse().expect("a dot is a directory");
    let places_or_here = if places.places.is_empty() { vec![here()] } else { places.places.clone() };
    Ok(Experiment {
        groups: Group::crossed(places_or_here.len(), commands.len(), &caches),
        places: places_or_here.iter().map(setup).collect(),
        commands,
        repetitions,
        seed: around.seed,
        fresh: places.fresh,
        timeout: around.timeout,
        durable: around.durable,
        number: None,
        margin: None,
        expected_exit: None,
        keep_cut_short: false,
        race: None,
        output_once: false,
    })
}

/// A command under the conditions that the options give.
///
/// # Errors
/// `--cwd` leads out of the place.
pub fn command(
    argv: Vec<OsString>,
    options: &CommandOptions,
    around: &RunOptions,
    conditions: &Conditions<'_>,
) -> Result<CommandSpec, Failure> {
    if let Some(cwd) = options.cwd.as_deref().filter(|cwd| !is_below(cwd)) {
        let said = "--cwd must be a directory below the place";
        let message = format_args!("{said}, and {} is not one: name it with --at", cwd.display());
        return Err(Failure::new(ExitStatus::Usage, message));
    }
    Ok(CommandSpec {
        cwd: options.cwd.clone(),
        env: options.environment.iter().cloned().collect(),
        user: conditions.user.as_ref().map(|user| user.name.clone()),
        prepare: around.prepare.clone(),
        cleanup: around.cleanup.clone(),
        ..CommandSpec::new(argv)
    })
}

/// A failure if more events were lost than the user allows.
pub fn trusted(recording: &Recording, tracing: &TraceOptions) -> Result<(), Failure> {
    let lost: Lost = recording.traces.iter().map(|trace| trace.lost).sum();
    let allowed = tracing.max_lost;
    if lost.total() <= allowed {
        return Ok(());
    }
    let mut skipped = BTreeMap::new();
    for (tracepoint, count) in recording.traces.iter().flat_map(|trace| &trace.skipped) {
        *skipped.entry(tracepoint.clone()).or_default() += count;
    }
    let lost = loss::in_words(&lost, &skipped);
    Err(Failure::new(
        ExitStatus::Untrusted,
        format_args!(
            "events were lost: {lost} ({allowed} allowed): do not trust this trace; see the report's last lines"
        ),
    ))
}

/// `--fresh` empties places, so it must not be used on a directory of the user's.
pub fn check_fresh(places: &PlaceOptions) -> Result<(), Failure> {
    let are_made = !places.places.is_empty() && places.places.iter().all(PlaceSpec::is_made);
    if places.fresh && !are_made {
        let message = "--fresh needs places that are made here: --at ext4, --at xfs …";
        return Err(Failure::new(ExitStatus::Usage, message));
    }
    Ok(())
}
