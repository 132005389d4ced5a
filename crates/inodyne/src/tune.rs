//! `inodyne tune`: which settings make a command faster at a place, tried and confirmed.
//!
//! The command runs once as it is, traced; then candidates take turns with it, each run in a place made and filled anew. The race itself
//! is run by `inodyne_experiment::tuner`, the settings are those of the lab's catalogue.
//!
//! | module | what it knows |
//! |---|---|
//! | `candidates` | what is tried: cures of findings, settings that fit the place, the user's own parameters |
//! | `ways` | the command with some of them: a place and its words |
//! | `live` | an existing directory, of which only settings that are restored may change |

mod candidates;
mod live;
mod ways;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use inodyne_experiment::tuner::{self, Plan, Tuned};
use inodyne_experiment::{Collector, Earlier, Experiment, Group, Measured, PlaceSetup, Repetitions};
use inodyne_lab::{DataSpec, PlaceSpec};
use inodyne_launch::Output;
use inodyne_model::recording::Recording;
use inodyne_model::run::{CacheState, Exit};
use inodyne_model::tuning::{Objective, Set, Tried, Tuning};
use inodyne_recording::DEFAULT_LIMIT_BYTES;

use crate::failure::{ExitStatus, Failure};
use crate::format::ReportFormat;
use crate::keep;
use crate::measure::{self, Conditions};
use crate::options::{Cache, CommandOptions, ReportOptions, RunOptions, TraceOptions, part, time};
use crate::parameters::{Parameter, parameter};
use crate::report::{self, TextTo};
use candidates::{Candidate, Wanted};
use ways::Base;

/// Arguments of `inodyne tune`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "The command runs once as it is, traced. Then the cures of its findings and the settings that fit the \
    place take turns with it in shuffled blocks, each run in a place made and filled anew; what shows no gain is dropped early. \
    What looks better is confirmed on fresh runs. docs/tune.md lists the settings, with what each risks.\n\n  \
    inodyne tune --at ext4:delay=2ms --data tree:dirs=1000,files=30,bytes=1 --cache cold -- find . -size +1k\n  \
    inodyne tune --at xfs --data app.tar --setting logbsize --setting nr_requests=1024 -- make test\n  \
    inodyne tune --at ext4 --data app.tar -L jobs=1,2,4 -- make -j{jobs}\n  \
    inodyne tune --at xfs --objective 'highest:jq .jobs[0].write.iops' -- fio --output-format=json job.fio\n\n\
    A setting that is refused is reported, and the rest goes on. Ctrl-C ends with what is known so far; with -o FILE, the same command and \
    --resume go on from there. The exit code is 0 also where nothing helps, and 1 where the command fails as it is."
)]
pub struct TuneArguments {
    /// Where to run: a file system to create; with --live, a directory
    #[arg(long = "at", value_name = "PLACE", help_heading = "Places")]
    pub place: PlaceSpec,
    /// What to put into the place: tree:dirs=1000,files=30,bytes=1, a directory, a tar archive, or script:PATH
    #[arg(long, value_name = "DATA", help_heading = "Places")]
    pub data: Option<DataSpec>,
    /// State of the caches before each run
    #[arg(long, value_name = "STATE", value_enum, default_value = "as-is", help_heading = "Places")]
    pub cache: Cache,
    /// Run in an existing directory, and try only settings that are restored at the end: those of its device, or its mount, and of the machine
    #[arg(long, help_heading = "Places", conflicts_with = "data")]
    pub live: bool,

    /// Try only this setting, at this value or at the known ones; may be given several times
    #[arg(long = "setting", value_name = "NAME[=VALUE]", help_heading = "Settings")]
    pub settings: Vec<String>,
    /// Also try settings that lose more in a crash
    #[arg(long, help_heading = "Settings")]
    pub risky: bool,
    /// Try each value in place of {NAME}, in the command, --prepare and --cleanup; the first is the current value
    #[arg(short = 'L', long = "param", value_name = "NAME=VALUE,...", value_parser = parameter, help_heading = "Settings")]
    pub parameters: Vec<Parameter>,
    /// What to improve: the time to `exit` or, with everything on the device, to `durable`; or a number that the shell command after
    /// `lowest:` or `highest:` reads from what the command printed
    #[arg(long, value_name = "WHAT", value_parser = aim, default_value = "exit", help_heading = "Settings")]
    pub objective: Aim,

    /// Pairs of runs that confirm what looks better; more if that many cannot decide
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, help_heading = "Runs",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// At most this many blocks before that, in which everything takes turns
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = "Runs",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub screening: u32,
    /// Start no further block after this long: 90s, 5min
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Runs")]
    pub max_time: Option<Duration>,
    /// Treat gains below this percentage as none
    #[arg(long, value_name = "PERCENT", value_parser = part, default_value = "2%", help_heading = "Runs")]
    pub margin: f64,
    /// Reuse what the recording given by -o already holds, and go on from there
    #[arg(long, requires = "output", help_heading = "Runs")]
    pub resume: bool,
    /// Do not trace the command first; then no cures of findings are tried
    #[arg(long, help_heading = "Runs")]
    pub no_trace: bool,
    /// Shell command to run in the place before each run, not measured
    #[arg(long, value_name = "COMMAND", help_heading = "Runs")]
    pub prepare: Option<OsString>,
    /// Shell command to run in the place after each run, not measured
    #[arg(long, value_name = "COMMAND", help_heading = "Runs")]
    pub cleanup: Option<OsString>,
    /// Kill a run after this long: 30s, 5min
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Runs")]
    pub timeout: Option<Duration>,
    /// Seed for the order in which settings take turns
    #[arg(long, value_name = "NUMBER", default_value_t = 1, help_heading = "Runs")]
    pub seed: u64,

    #[command(flatten)]
    pub command: CommandOptions,
    #[command(flatten)]
    pub tracing: TraceOptions,
    #[command(flatten)]
    pub report: ReportOptions,

    /// The command and its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", required = true)]
    pub argv: Vec<OsString>,
}

/// What to improve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aim {
    objective: Objective,
    /// What reads a number from what the command printed.
    number: Option<String>,
}

/// `exit`, `durable`, `lowest:COMMAND`, `highest:COMMAND`.
fn aim(text: &str) -> Result<Aim, String> {
    let (word, number) = text.split_once(':').map_or((text, None), |(word, number)| (word, Some(number)));
    let objective = match (word, number.map(str::trim)) {
        ("exit", None) => Objective::Exit,
        ("durable", None) => Objective::Durable,
        ("lowest", Some(number)) if !number.is_empty() => Objective::Lowest,
        ("highest", Some(number)) if !number.is_empty() => Objective::Highest,
        ("lowest" | "highest", _) => return Err(format!("{word}: needs what reads the number: '{word}:tail -n 1'")),
        _ => return Err("there are exit, durable, lowest:COMMAND and highest:COMMAND".to_owned()),
    };
    Ok(Aim { objective, number: number.map(str::to_owned) })
}

fn usage(message: String) -> Failure {
    Failure::new(ExitStatus::Usage, message)
}

/// Runs the command.
pub fn run(arguments: &TuneArguments) -> Result<ExitCode, Failure> {
    if arguments.report.format == ReportFormat::SvgCard {
        return Err(usage("svg-card is of one command or of a comparison: a tuning has none".to_owned()));
    }
    report::check(arguments.report.format, arguments.report.section, arguments.runs as usize, 1)?;
    let (place, live) = match arguments.live {
        true => live::shown(&arguments.place).map(|(place, below)| (place, Some(below))).map_err(usage)?,
        false => (made(&arguments.place)?, None),
    };
    candidates::check(&arguments.settings).map_err(usage)?;
    let conditions = Conditions::new(
        arguments.command.user.as_deref(),
        Output::Discard,
        Collector::Bpf(arguments.tracing.tracer()),
        arguments.report.output.as_deref(),
    )?;
    let base = base(arguments, place, &conditions)?;
    keep::check(&arguments.report)?;
    let mut measured = measure::nothing();
    measured.recording.margin = arguments.margin;
    measured.recording.tuning = Some(tuning(arguments, &base));
    measured.earlier = earlier(arguments, &measured.recording)?;
    if !arguments.no_trace {
        conditions.add(&traced(arguments, &base), &mut measured)?;
        inodyne_analyse::explain(&mut measured.recording);
    }
    if measured.interrupted {
        return Ok(ExitStatus::Interrupted.into());
    }
    let wanted = Wanted { settings: &arguments.settings, risky: arguments.risky, live: live.as_ref() };
    let candidates = candidates::all(&wanted, &base, &measured.recording.findings).map_err(usage)?;
    let combined = |of: &[usize]| base.with(of.iter().map(|at| &candidates[*at].step)).ok();
    let race = |candidate: &Candidate| tuner::Candidate {
        setting: candidate.set.name.clone(),
        alternative: candidate.alternative.clone(),
    };
    let plan = Plan {
        base: base.as_it_is(),
        candidates: candidates.iter().map(race).collect(),
        combined: &combined,
        data: arguments.data.clone(),
        cache: arguments.cache.into(),
        objective: arguments.objective.objective,
        number: arguments.objective.number.as_ref().map(OsString::from),
        margin: arguments.margin,
        screening: arguments.screening,
        confirming: arguments.runs,
        seed: arguments.seed,
        timeout: arguments.timeout,
        max_time: arguments.max_time,
    };
    let tuned = conditions.tune(&plan, &mut measured);
    finish(arguments, &base, &candidates, tuned, measured)
}

/// What is tuned, without any results.
fn tuning(arguments: &TuneArguments, base: &Base) -> Tuning {
    Tuning {
        objective: arguments.objective.objective,
        number: arguments.objective.number.clone(),
        place: arguments.place.to_string(),
        command: base.as_it_is().command.label,
        ..Tuning::default()
    }
}

/// What the recording to resume from holds; none if there is none.
fn earlier(arguments: &TuneArguments, now: &Recording) -> Result<Option<Earlier>, Failure> {
    let Some(path) = arguments.report.output.as_deref().filter(|path| arguments.resume && path.exists()) else {
        return Ok(None);
    };
    let then = inodyne_recording::load(path, DEFAULT_LIMIT_BYTES)?;
    let about = |recording: &Recording| {
        let host = &recording.host;
        let tuning =
            recording.tuning.clone().map(|tuning| Tuning { tried: Vec::new(), best: None, complete: false, ..tuning });
        (tuning, recording.margin, host.kernel.clone(), host.cpu_model.clone(), host.cpus)
    };
    let cache = CacheState::from(arguments.cache);
    if about(&then) != about(now) || then.runs.iter().any(|run| run.cache != cache) {
        let is_not = "is not a tuning of this command at this place for this objective and margin, in this state of the caches, with this \
            kernel on this machine";
        return Err(usage(format!("{}: {is_not}: leave --resume out, or name another file", path.display())));
    }
    Ok(Some(Earlier::new(then)))
}

/// A command may be an `rm`, and settings belong to file systems: both may only affect what is made for them.
fn made(place: &PlaceSpec) -> Result<PlaceSpec, Failure> {
    match place.is_all_made() {
        true => Ok(place.clone()),
        false => Err(usage(format!(
            "{place} is there already, and its file system is not changed: give a file system to make, with a copy of \
             the data (--at ext4 --data {place}), or --live for what can be restored: settings of its device and of the machine"
        ))),
    }
}

fn base(arguments: &TuneArguments, place: PlaceSpec, conditions: &Conditions<'_>) -> Result<Base, Failure> {
    let TuneArguments { prepare, cleanup, timeout, seed, .. } = arguments;
    let around = RunOptions {
        prepare: prepare.clone(),
        cleanup: cleanup.clone(),
        timeout: *timeout,
        durable: arguments.objective.objective == Objective::Durable,
        seed: *seed,
    };
    let command = measure::command(arguments.argv.clone(), &arguments.command, &around, conditions)?;
    Base::new(place, command, &arguments.parameters).map_err(usage)
}

/// One traced run of the command as it is.
fn traced(arguments: &TuneArguments, base: &Base) -> Experiment {
    let as_it_is = base.as_it_is();
    Experiment {
        places: vec![PlaceSetup { spec: as_it_is.place, data: arguments.data.clone() }],
        commands: vec![as_it_is.command],
        groups: Group::crossed(1, 1, &[arguments.cache.into()]),
        repetitions: Repetitions { traced: 1, ..Repetitions::default() },
        seed: arguments.seed,
        fresh: false,
        timeout: arguments.timeout,
        durable: false,
        number: None,
        margin: Some(arguments.margin),
        // How fast a command fails is nothing to tune.
        expected_exit: Some(Exit::Code(0)),
        keep_cut_short: false,
        race: None,
        output_once: false,
    }
}

/// Puts the results into the recording, then reports them to the user.
fn finish(
    arguments: &TuneArguments,
    base: &Base,
    candidates: &[Candidate],
    tuned: Tuned,
    measured: Measured,
) -> Result<ExitCode, Failure> {
    let Measured { mut recording, interrupted, earlier, .. } = measured;
    // A tuning that ended before it had reused all of the earlier recording leaves that as it is.
    let is_behind = earlier.is_some_and(|earlier| earlier.holds_more_than(&recording));
    let sets = |of: &[usize]| of.iter().map(|at| candidates[*at].set.clone()).collect::<Vec<Set>>();
    let tried = tuned.judged.into_iter().map(|judged| Tried {
        settings: sets(&judged.candidates),
        verdict: judged.verdict,
        reason: judged.reason,
        screened: judged.screened,
        confirmed: judged.confirmed,
    });
    recording.tuning =
        Some(Tuning { tried: tried.collect(), best: tuned.best, complete: tuned.complete, ..tuning(arguments, base) });
    inodyne_analyse::explain(&mut recording);
    // What cannot be saved can still be reported.
    let output = arguments.report.output.as_ref().filter(|_| !is_behind);
    let unsaved = output.and_then(|output| keep::save(&recording, output).err());
    let failure = keep::first(tuned.failure.map(Failure::from), unsaved);
    keep::tell(&recording, &arguments.report, TextTo::Stdout, failure)?;
    if interrupted {
        return Ok(ExitStatus::Interrupted.into());
    }
    measure::trusted(&recording, &arguments.tracing).map(|()| ExitCode::SUCCESS)
}
