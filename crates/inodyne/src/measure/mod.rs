//! Running commands in places: prepare → collect → recording. What `run`, `compare` and `study` have in common.
//!
//! | module | step |
//! |---|---|
//! | `schedule` | what runs when, pure |
//! | `setting` | prepare: places, data, caches |
//! | `execute` | collect: one execution, traced or not |
//! | `interrupt` | what Ctrl-C and its like do meanwhile |
//! | `progress` | what a terminal shows meanwhile |
//! | `record` | what goes into the recording |

mod execute;
mod interrupt;
mod progress;
mod record;
mod schedule;
mod setting;

use std::ffi::OsString;
use std::path::{Component, Path};
use std::time::{Duration, Instant};

use inodyne_lab::{DeviceStats, Lab, PlaceSpec};
use inodyne_model::comparison::Side;
use inodyne_model::recording::Recording;
use inodyne_model::run::{CacheState, Exit};
use inodyne_trace::launch::{Input, Others, Output, Spec};
use inodyne_trace::{Options, capability};

use crate::cli::{CommandOptions, Format, PlaceOptions, ReportOptions, RunOptions, TraceOptions};
use crate::failure::{Failure, INTERRUPTED, LACKING, UNTRUSTED, USAGE};
use crate::host;
use execute::Execution;
pub use execute::to_the_end;
use interrupt::Interrupts;
use progress::{Phase, Schedule};
use schedule::{Order, Which};
use setting::Setting;

/// What is to be measured, as the user said it.
pub struct Campaign<'a> {
    pub places: &'a PlaceOptions,
    pub around: &'a RunOptions,
    pub command: &'a CommandOptions,
    pub tracing: &'a TraceOptions,
    pub report: &'a ReportOptions,
    pub commands: Vec<Called>,
    pub effort: Effort,
    /// Differences below this part count as none.
    pub margin: Option<f64>,
    /// Where the commands' standard input comes from.
    pub input: Input,
    /// Where their standard output goes.
    pub output: Output,
    /// Whether a run that the user cut short is better than none: it is no time to compare.
    pub keeps_cut_short: bool,
}

/// A command to run.
#[derive(Debug, Clone)]
pub struct Called {
    /// Its words.
    pub argv: Vec<OsString>,
    /// What reports call it, if not by its words.
    pub label: Option<String>,
}

impl From<Vec<OsString>> for Called {
    fn from(argv: Vec<OsString>) -> Called {
        Called { argv, label: None }
    }
}

/// How often.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Runs of each kind that are thrown away.
    pub warmup: u32,
    /// Untraced runs of each kind; at least so many where there is a precision to reach.
    pub untraced: u32,
    /// Traced runs of each kind.
    pub traced: u32,
    /// The half-width of intervals to reach, as a part.
    pub until: Option<f64>,
    /// Begin no further block after so long.
    pub max_time: Option<Duration>,
}

/// Different paths that `--paths` keeps.
const MOST_PATHS: u32 = 16_384;

/// After a save the next one waits so many times as long as it took: a recording with many traces takes seconds to write.
const PAUSE_AFTER_SAVING: u32 = 10;

/// Beyond so many blocks more of them make no interval narrower in any useful time.
const MOST_BLOCKS: u32 = 10_000;

/// What was measured, all of it or up to where something ended it.
pub struct Measured {
    pub recording: Recording,
    /// How the last run that did not succeed ended; success where all did.
    pub exit: Exit,
    /// Whether the user ended it.
    pub interrupted: bool,
    /// What else ended it early.
    pub failure: Option<Failure>,
}

impl Measured {
    /// Nothing yet, on this machine.
    pub fn nothing() -> Measured {
        Measured {
            recording: Recording::new(env!("CARGO_PKG_VERSION"), host::now_unix_s(), host::describe()),
            exit: Exit::Code(0),
            interrupted: false,
            failure: None,
        }
    }
}

impl Campaign<'_> {
    /// Measures everything and explains it. What was measured before something went wrong is kept, and written to the
    /// recording's file block by block, so that it is there after any end.
    ///
    /// # Errors
    /// Nothing could be measured at all.
    pub fn measure(&self) -> Result<Measured, Failure> {
        let mut measured = Measured::nothing();
        if let Err(failure) = self.add_to(&mut measured) {
            if measured.recording.runs.is_empty() {
                return Err(failure);
            }
            measured.failure = Some(failure);
        }
        inodyne_analyse::explain(&mut measured.recording);
        // What cannot be kept can still be told.
        if let Err(failure) = self.save(&measured.recording) {
            measured.failure.get_or_insert(failure);
        }
        Ok(measured)
    }

    /// Measures everything, behind what the recording holds already. Nothing is explained yet.
    ///
    /// # Errors
    /// It could not be measured to the end; what was measured until then is kept.
    pub fn add_to(&self, measured: &mut Measured) -> Result<(), Failure> {
        let plan = Plan::new(self)?;
        let lab = Lab::new();
        let specs = self.specs();
        let made = specs.iter().map(|spec| Setting::make(&lab, spec, &plan).map(Some));
        let mut settings = made.collect::<Result<Vec<_>, _>>()?;
        if let [Some(first), others @ ..] = &settings[..] {
            others.iter().flatten().try_for_each(|other| other.has_same_data(first))?;
        }
        let recording = &mut measured.recording;
        let first = Side::new(recording.places.len(), recording.commands.len());
        recording.margin = self.margin.unwrap_or(recording.margin);
        recording.commands.extend(record::commands(&self.commands));
        let places = record::places(&settings);
        let digests = places.iter().map(|place| place.data_digest.clone()).collect();
        recording.places.extend(places);
        let mut interrupts = Interrupts::watch()?;
        let mut run = Running {
            plan,
            lab: &lab,
            specs: &specs,
            settings: &mut settings,
            digests,
            interrupts: &mut interrupts,
            first,
            saving: Duration::ZERO,
            saved: Instant::now(),
        };
        run.all(measured)
    }

    /// The places asked for; the current directory where none is.
    fn specs(&self) -> Vec<PlaceSpec> {
        if self.places.places.is_empty() {
            return vec![".".parse().expect("a dot is a directory")];
        }
        self.places.places.clone()
    }

    fn save(&self, recording: &Recording) -> Result<(), Failure> {
        Ok(self.report.output.as_ref().map_or(Ok(()), |path| recording.save(path))?)
    }
}

/// A failure if more events were lost than the user allows.
pub fn trusted(recording: &Recording, tracing: &TraceOptions) -> Result<(), Failure> {
    let lost: u64 = recording.traces.iter().map(|trace| trace.lost.total()).sum();
    let allowed = tracing.max_lost;
    if lost <= allowed {
        return Ok(());
    }
    Err(Failure::new(
        UNTRUSTED,
        format_args!(
            "{lost} events were lost ({allowed} allowed): do not trust this trace; see the report's last lines"
        ),
    ))
}

/// What is to be done, understood and checked before anything happens.
struct Plan<'a> {
    campaign: &'a Campaign<'a>,
    caches: Vec<CacheState>,
    /// The command, but for its words and its directory.
    command: Spec,
    tracing: Option<Options>,
}

impl<'a> Plan<'a> {
    fn new(campaign: &'a Campaign<'a>) -> Result<Plan<'a>, Failure> {
        let TraceOptions { sample_hz, ring_buffer, paths, .. } = *campaign.tracing;
        let tracing = (campaign.effort.traced > 0).then(|| Options {
            sample_hz,
            timeline_bytes: ring_buffer,
            max_paths: if paths { MOST_PATHS } else { 0 },
            ..Options::default()
        });
        if tracing.is_some() {
            capability::require_for_tracing().map_err(|missing| Failure::new(LACKING, missing))?;
        }
        check_below(campaign.command.cwd.as_deref())?;
        let command = Spec {
            argv: Vec::new(),
            directory: None,
            environment: campaign.command.environment.clone(),
            user: host::user(campaign.command.user.as_deref())?,
            input: campaign.input,
            output: campaign.output,
        };
        let caches: Vec<CacheState> = campaign.places.caches.iter().map(|cache| (*cache).into()).collect();
        if let Some(cache) = (1..caches.len()).find(|at| caches[..*at].contains(&caches[*at])) {
            let word = caches[cache].to_string().replace(' ', "-");
            return Err(Failure::new(USAGE, format_args!("--cache {word} is given twice")));
        }
        Ok(Plan { campaign, caches, command, tracing })
    }

    /// Progress would be lost among the command's output on a terminal.
    fn is_quiet(&self) -> bool {
        use std::io::IsTerminal;
        let stdout_is_ours = self.campaign.output == Output::Discard || !std::io::stdout().is_terminal();
        !std::io::stderr().is_terminal() || !stdout_is_ours
    }
}

/// A campaign under way.
struct Running<'a> {
    plan: Plan<'a>,
    lab: &'a Lab,
    specs: &'a [PlaceSpec],
    /// None where a place could not be made anew.
    settings: &'a mut [Option<Setting>],
    /// Of the data with which each place was first filled.
    digests: Vec<Option<String>>,
    interrupts: &'a mut Interrupts,
    /// Where its places and commands begin in the recording.
    first: Side,
    /// How long the last save took, and when it was.
    saving: Duration,
    saved: Instant,
}

/// Whether to go on after a run.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
}

/// A run, with what came after it.
struct Turn {
    /// None where the user ended all before the command began.
    run: Option<(Execution, Option<DeviceStats>)>,
    /// Whether the clean-up succeeded.
    cleaned_up: Result<(), Failure>,
}

impl Running<'_> {
    fn all(&mut self, measured: &mut Measured) -> Result<(), Failure> {
        let campaign = self.plan.campaign;
        let effort = campaign.effort;
        let mut order = Order::new(campaign.around.seed, self.specs.len(), campaign.commands.len());
        let share = self.plan.caches.len() as u32;
        let mut progress = Schedule::start(self.plan.is_quiet(), effort);
        let begun = Instant::now();
        for (number, cache) in (1..).zip(self.plan.caches.clone()) {
            let is_late = || effort.max_time.is_some_and(|most| begun.elapsed() > most * number / share);
            let later = share - number;
            for number in 0..effort.warmup {
                progress.block(cache, later, Phase::WarmUp(number));
                if self.warm_up(&order.next(cache, 0, false), measured)? == Next::Stop {
                    return Ok(());
                }
            }
            let mut block = 0;
            while block < effort.untraced || !self.is_precise(&measured.recording, cache, block) {
                if block > 0 && is_late() {
                    break;
                }
                progress.block(cache, later, Phase::Untraced(block));
                if self.block(&order.next(cache, block, false), measured)? == Next::Stop {
                    return Ok(());
                }
                block += 1;
            }
            for number in 0..effort.traced {
                progress.block(cache, later, Phase::Traced(number));
                if self.block(&order.next(cache, block + number, true), measured)? == Next::Stop {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Whether the intervals are as narrow as asked for, or never will be.
    fn is_precise(&self, recording: &Recording, cache: CacheState, blocks: u32) -> bool {
        let Some(until) = self.plan.campaign.effort.until else { return true };
        let reached = || inodyne_analyse::precision(recording, self.first.place, cache);
        blocks >= MOST_BLOCKS || reached().is_some_and(|reached| reached <= until)
    }

    fn block(&mut self, runs: &[Which], measured: &mut Measured) -> Result<Next, Failure> {
        for which in runs {
            let Turn { run, cleaned_up } = self.turn(*which)?;
            let is_complete = run.as_ref().is_some_and(|(execution, _)| !execution.interrupted);
            if let Some((execution, moved)) = run {
                let exit = execution.ended.exit;
                if !exit.success() {
                    measured.exit = exit;
                }
                let is_all_there_is = self.plan.campaign.keeps_cut_short && measured.recording.runs.is_empty();
                if is_complete || is_all_there_is {
                    record::add(&mut measured.recording, which.after(self.first), execution, moved);
                }
            }
            if !is_complete {
                return stopped(measured);
            }
            // The run was good, whatever came after it.
            cleaned_up?;
        }
        self.save_now_and_then(&measured.recording)?;
        Ok(Next::GoOn)
    }

    fn warm_up(&mut self, runs: &[Which], measured: &mut Measured) -> Result<Next, Failure> {
        for which in runs {
            let Turn { run, cleaned_up } = self.turn(*which)?;
            if run.is_none_or(|(execution, _)| execution.interrupted) {
                return stopped(measured);
            }
            cleaned_up?;
        }
        Ok(Next::GoOn)
    }

    fn save_now_and_then(&mut self, recording: &Recording) -> Result<(), Failure> {
        if self.saved.elapsed() >= self.saving * PAUSE_AFTER_SAVING {
            let begun = Instant::now();
            self.plan.campaign.save(recording)?;
            (self.saving, self.saved) = (begun.elapsed(), Instant::now());
        }
        Ok(())
    }

    /// One run, with what comes before and after it.
    fn turn(&mut self, which: Which) -> Result<Turn, Failure> {
        if self.interrupts.any_seen() {
            return Ok(Turn { run: None, cleaned_up: Ok(()) });
        }
        let campaign = self.plan.campaign;
        if campaign.places.fresh {
            // The old one goes first: there may not be room for both.
            self.settings[which.place] = None;
            let fresh = Setting::make(self.lab, &self.specs[which.place], &self.plan)?;
            fresh.has_data(self.digests[which.place].as_deref())?;
            self.settings[which.place] = Some(fresh);
        }
        let Some(setting) = &mut self.settings[which.place] else {
            return Err(Failure::new(LACKING, "a place could not be made anew"));
        };
        shell(&self.plan, setting, campaign.around.prepare.as_ref(), self.interrupts)?;
        let run = run_once(&self.plan, setting, which, self.interrupts)?;
        // What was prepared is cleaned up even where the command never began.
        let cleaned_up = shell(&self.plan, setting, campaign.around.cleanup.as_ref(), self.interrupts);
        Ok(Turn { run, cleaned_up })
    }
}

/// The user has ended it.
fn stopped(measured: &mut Measured) -> Result<Next, Failure> {
    measured.interrupted = true;
    match measured.recording.runs.is_empty() {
        true => Err(Failure::new(INTERRUPTED, "interrupted before anything was measured")),
        false => Ok(Next::Stop),
    }
}

/// The command itself, with the caches as they are to be; none where the user has ended it before.
fn run_once(
    plan: &Plan<'_>,
    setting: &mut Setting,
    which: Which,
    interrupts: &mut Interrupts,
) -> Result<Option<(Execution, Option<DeviceStats>)>, Failure> {
    if interrupts.any_seen() {
        return Ok(None);
    }
    let campaign = plan.campaign;
    setting.set_caches(which.cache)?;
    // Traced runs begin as clean as the others.
    let flusher = campaign.around.durable.then(|| setting.clean_flusher()).transpose()?;
    let flusher = flusher.as_ref().filter(|_| !which.traced);
    let before = setting.device_stats();
    let command = Spec {
        argv: campaign.commands[which.command].argv.clone(),
        directory: Some(setting.directory(campaign.command.cwd.as_deref())),
        ..plan.command.clone()
    };
    let others = if setting.is_made_here() { Others::Kill } else { Others::Leave };
    let tracing = plan.tracing.as_ref().filter(|_| which.traced);
    let timeout = campaign.around.timeout;
    if interrupts.any_seen() {
        return Ok(None);
    }
    let execution = execute::execute(&command, tracing, others, timeout, flusher, interrupts, plan.is_quiet())?;
    let moved = setting.device_stats().zip(before).map(|(after, before)| after.since(before));
    note(&execution, others, timeout);
    Ok(Some((execution, moved)))
}

/// Runs a shell command of the user's in the place, unmeasured, as the same user as the command. One that the user ended has
/// not failed.
fn shell(
    plan: &Plan<'_>,
    setting: &Setting,
    script: Option<&OsString>,
    interrupts: &mut Interrupts,
) -> Result<(), Failure> {
    let Some(script) = script else { return Ok(()) };
    let argv = vec!["/bin/sh".into(), "-c".into(), script.clone()];
    let directory = Some(setting.directory(None));
    let (input, output) = (Input::Nothing, Output::ToStderr);
    let command = Spec { argv, directory, input, output, ..plan.command.clone() };
    let execution = execute::execute(&command, None, Others::Leave, None, None, interrupts, true)?;
    if execution.ended.exit.success() || execution.interrupted {
        return Ok(());
    }
    let (script, code) = (script.to_string_lossy(), execution.ended.exit.shell_code());
    Err(Failure::new(1, format_args!("'{script}' failed with exit code {code}")))
}

fn note(execution: &Execution, others: Others, timeout: Option<Duration>) {
    if let Some(timeout) = timeout.filter(|_| execution.timed_out) {
        anstream::eprintln!("inodyne: a run was killed after {timeout:?}, as --timeout says");
    }
    if let Some(Err(error)) = &execution.durable {
        anstream::eprintln!("inodyne: {error}: when the run was durable is not known");
    }
    let count = execution.ended.left_running;
    if count > 0 {
        let fate = match others {
            _ if execution.timed_out => "killed",
            Others::Kill => "killed, since the place is gone now",
            Others::Leave => "they run on, untraced",
        };
        anstream::eprintln!("inodyne: processes that the command left running: {count} ({fate})");
    }
}

/// What the commands' standard output is, for a report of this form.
pub fn output(format: Format) -> Output {
    match format {
        Format::Text => Output::Inherit,
        _ => Output::ToStderr,
    }
}

/// An exit code of the command's as ours.
pub fn exit_code(exit: Exit) -> std::process::ExitCode {
    std::process::ExitCode::from(u8::try_from(exit.shell_code()).unwrap_or(INTERRUPTED))
}

/// Whether a path cannot lead out of the directory that it begins in, but over a symbolic link.
pub fn is_below(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

fn check_below(cwd: Option<&Path>) -> Result<(), Failure> {
    match cwd.filter(|cwd| !is_below(cwd)) {
        Some(cwd) => {
            let said = "--cwd is a directory below the place";
            Err(Failure::new(USAGE, format_args!("{said}, and {} is none: name it by --at", cwd.display())))
        }
        None => Ok(()),
    }
}

/// `--fresh` empties places, so it must not meet a directory of the user's.
pub fn check_fresh(places: &PlaceOptions) -> Result<(), Failure> {
    let are_made = !places.places.is_empty() && places.places.iter().all(PlaceSpec::is_made);
    if places.fresh && !are_made {
        return Err(Failure::new(USAGE, "--fresh needs places that are made here: --at ext4, --at xfs …"));
    }
    Ok(())
}
