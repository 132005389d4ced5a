//! Running commands in places: prepare → collect → recording. What `run` and `compare` have in common.
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
use std::time::{Duration, Instant};

use inodyne_lab::{Lab, PlaceSpec, Where};
use inodyne_model::recording::Recording;
use inodyne_model::run::{CacheState, Exit};
use inodyne_trace::launch::{Others, Output, Spec};
use inodyne_trace::{Options, capability};

use crate::cli::{CommandOptions, Format, PlaceOptions, ReportOptions, RunOptions, TraceOptions};
use crate::failure::{Failure, INTERRUPTED, LACKING, UNTRUSTED, USAGE};
use crate::host;
use execute::Execution;
use interrupt::Interrupts;
use progress::Schedule;
use schedule::{Order, Which};
use setting::Setting;

/// What is to be measured, as the user said it.
pub struct Campaign<'a> {
    pub places: &'a PlaceOptions,
    pub around: &'a RunOptions,
    pub command: &'a CommandOptions,
    pub tracing: &'a TraceOptions,
    pub report: &'a ReportOptions,
    /// The words of each command.
    pub commands: Vec<Vec<OsString>>,
    pub effort: Effort,
    /// Differences below this part count as none.
    pub margin: Option<f64>,
    /// Where the commands' standard output goes.
    pub output: Output,
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

impl Campaign<'_> {
    /// Measures everything. What was measured before something went wrong is kept, and written to the recording's file
    /// block by block, so that it is there after any end.
    ///
    /// # Errors
    /// Nothing could be measured at all.
    pub fn measure(&self) -> Result<Measured, Failure> {
        let plan = Plan::new(self)?;
        let mut measured = Measured {
            recording: Recording::new(env!("CARGO_PKG_VERSION"), host::now_unix_s(), host::describe()),
            exit: Exit::Code(0),
            interrupted: false,
            failure: None,
        };
        measured.recording.margin = self.margin.unwrap_or(measured.recording.margin);
        measured.recording.commands = self.commands.iter().map(|argv| record::command(argv)).collect();
        let lab = Lab::new();
        let specs = self.specs();
        let made = specs.iter().map(|spec| Setting::make(&lab, spec, &plan).map(Some));
        let mut settings = made.collect::<Result<Vec<_>, _>>()?;
        if let [Some(first), others @ ..] = &settings[..] {
            others.iter().flatten().try_for_each(|other| other.has_same_data(first))?;
        }
        measured.recording.places = record::places(&settings);
        let mut interrupts = Interrupts::watch()?;
        let digests = measured.recording.places.iter().map(|place| place.data_digest.clone()).collect();
        let (settings, interrupts) = (&mut settings, &mut interrupts);
        let mut run = Running { plan, lab: &lab, specs: &specs, settings, digests, interrupts };
        if let Err(failure) = run.all(&mut measured) {
            if measured.recording.runs.is_empty() {
                return Err(failure);
            }
            measured.failure = Some(failure);
        }
        inodyne_analyse::explain(&mut measured.recording);
        self.save(&measured.recording)?;
        Ok(measured)
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

    /// A failure if more events were lost than the user allows.
    pub fn trusted(&self, recording: &Recording) -> Result<(), Failure> {
        let lost: u64 = recording.traces.iter().map(|trace| trace.lost.total()).sum();
        let allowed = self.tracing.max_lost;
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
        let command = Spec {
            argv: Vec::new(),
            directory: None,
            environment: campaign.command.environment.clone(),
            user: host::user(campaign.command.user.as_deref())?,
            output: campaign.output,
        };
        let caches = campaign.places.caches.iter().map(|cache| (*cache).into()).collect();
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
}

/// Whether to go on after a run.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
}

impl Running<'_> {
    fn all(&mut self, measured: &mut Measured) -> Result<(), Failure> {
        let campaign = self.plan.campaign;
        let Effort { warmup, untraced, traced, max_time, .. } = campaign.effort;
        let mut order = Order::new(campaign.around.seed, self.specs.len(), campaign.commands.len());
        let progress = Schedule::start(self.plan.is_quiet());
        let begun = Instant::now();
        let share = self.plan.caches.len() as u32;
        for (number, cache) in (1..).zip(self.plan.caches.clone()) {
            let is_late = || max_time.is_some_and(|most| begun.elapsed() > most * number / share);
            for which in (0..warmup).flat_map(|_| order.next(cache, 0, false)) {
                let (execution, _) = self.measure(which)?;
                if execution.interrupted {
                    return Err(Failure::new(INTERRUPTED, "interrupted before anything was measured"));
                }
            }
            let mut block = 0;
            while block < untraced || !self.is_precise(&measured.recording, cache, block) {
                if block > 0 && is_late() {
                    break;
                }
                progress.block(cache, block, untraced);
                if self.block(&order.next(cache, block, false), measured)? == Next::Stop {
                    return Ok(());
                }
                block += 1;
            }
            for block in block..block + traced {
                if self.block(&order.next(cache, block, true), measured)? == Next::Stop {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Whether the intervals are as narrow as asked for, or never will be.
    fn is_precise(&self, recording: &Recording, cache: CacheState, blocks: u32) -> bool {
        let Some(until) = self.plan.campaign.effort.until else { return true };
        blocks >= MOST_BLOCKS || inodyne_analyse::precision(recording, cache).is_some_and(|reached| reached <= until)
    }

    fn block(&mut self, runs: &[Which], measured: &mut Measured) -> Result<Next, Failure> {
        for which in runs {
            let (execution, moved) = self.measure(*which)?;
            let (exit, interrupted) = (execution.ended.exit, execution.interrupted);
            record::add(&mut measured.recording, *which, execution, moved);
            if !exit.success() {
                measured.exit = exit;
            }
            if interrupted {
                measured.interrupted = true;
                return Ok(Next::Stop);
            }
        }
        self.plan.campaign.save(&measured.recording)?;
        Ok(Next::GoOn)
    }

    /// One run, with what comes before and after it.
    fn measure(&mut self, which: Which) -> Result<(Execution, Option<inodyne_lab::DeviceStats>), Failure> {
        let campaign = self.plan.campaign;
        if campaign.places.fresh {
            // The old one goes first: there may not be room for both.
            self.settings[which.place] = None;
            let fresh = Setting::make(self.lab, &self.specs[which.place], &self.plan)?;
            fresh.has_data(self.digests[which.place].as_deref())?;
            self.settings[which.place] = Some(fresh);
        }
        let plan = &self.plan;
        let Some(setting) = &mut self.settings[which.place] else {
            return Err(Failure::new(LACKING, "a place could not be made anew"));
        };
        shell(plan, setting, campaign.around.prepare.as_ref())?;
        setting.set_caches(which.cache)?;
        let before = setting.device_stats();
        let command = Spec {
            argv: campaign.commands[which.command].clone(),
            directory: Some(setting.directory(campaign.command.cwd.as_deref())),
            ..plan.command.clone()
        };
        let others = if setting.is_made_here() { Others::Kill } else { Others::Leave };
        let tracing = plan.tracing.as_ref().filter(|_| which.traced);
        let timeout = campaign.around.timeout;
        let execution = execute::execute(&command, tracing, others, timeout, self.interrupts, plan.is_quiet())?;
        let moved = setting.device_stats().zip(before).map(|(after, before)| after.since(before));
        note(&execution, others, timeout);
        shell(plan, setting, campaign.around.cleanup.as_ref())?;
        Ok((execution, moved))
    }
}

/// Runs a shell command of the user's in the place, unmeasured, as the same user as the command.
fn shell(plan: &Plan<'_>, setting: &Setting, script: Option<&OsString>) -> Result<(), Failure> {
    let Some(script) = script else { return Ok(()) };
    let argv = vec!["/bin/sh".into(), "-c".into(), script.clone()];
    let directory = Some(setting.directory(None));
    let command = Spec { argv, directory, output: Output::ToStderr, ..plan.command.clone() };
    let ended = execute::to_the_end(&command)?;
    if ended.exit.success() {
        return Ok(());
    }
    let script = script.to_string_lossy();
    Err(Failure::new(1, format_args!("'{script}' failed with exit code {}", ended.exit.shell_code())))
}

fn note(execution: &Execution, others: Others, timeout: Option<Duration>) {
    if let Some(timeout) = timeout.filter(|_| execution.timed_out) {
        anstream::eprintln!("inodyne: a run was killed after {timeout:?}, as --timeout says");
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

/// `--fresh` empties places, so it must not meet a directory of the user's.
pub fn check_fresh(places: &PlaceOptions) -> Result<(), Failure> {
    let existing =
        places.places.is_empty() || places.places.iter().any(|place| matches!(place.place(), Where::Existing(_)));
    if places.fresh && existing {
        return Err(Failure::new(USAGE, "--fresh needs places that are made here: --at ext4, --at xfs …"));
    }
    Ok(())
}
