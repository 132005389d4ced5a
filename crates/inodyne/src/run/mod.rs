//! `inodyne run`: prepare → collect → recording → explain → show.
//!
//! | module | step |
//! |---|---|
//! | `setting` | prepare: places, data, caches |
//! | `execute` | collect: one execution, traced or not |
//! | `interrupt` | what Ctrl-C and its like do meanwhile |
//! | `progress` | what a terminal shows meanwhile |
//! | `silence` | a command without its standard output |
//! | `record` | what goes into the recording |

mod execute;
mod interrupt;
mod progress;
mod record;
mod setting;
mod silence;

use std::process::ExitCode;

use inodyne_lab::Lab;
use inodyne_model::recording::Recording;
use inodyne_model::run::{CacheState, Exit};
use inodyne_trace::launch::{Others, Spec};
use inodyne_trace::{Options, capability};

use crate::cli::{Format, RunArguments};
use crate::failure::{Failure, INTERRUPTED, LACKING, UNTRUSTED};
use crate::host;
use crate::report::{self, TextTo};
use execute::Execution;
use record::Which;
use setting::Setting;
use silence::Silence;

/// Different paths that `--paths` keeps.
const MOST_PATHS: u32 = 16_384;

/// Runs the command.
pub fn run(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let plan = Plan::new(arguments)?;
    let (mut recording, exit, _) = recorded(&plan)?;
    inodyne_analyse::explain(&mut recording);
    if let Some(path) = &arguments.output {
        recording.save(path)?;
    }
    report::print(&recording, arguments.format, None, TextTo::Stderr);
    plan.exit_code(&recording, exit)
}

/// Runs the command without its standard output, and says nothing of it.
pub fn untold(arguments: &RunArguments) -> Result<Recording, Failure> {
    let silence = Silence::begin()?;
    let (recording, _, interrupted) = recorded(&Plan::new(arguments)?)?;
    drop(silence);
    match interrupted {
        true => Err(Failure::new(INTERRUPTED, "interrupted")),
        false => Ok(recording),
    }
}

/// All runs that are planned, how the last one ended that did not succeed, and whether the user wanted no more of them.
fn recorded(plan: &Plan<'_>) -> Result<(Recording, Exit, bool), Failure> {
    let arguments = plan.arguments;
    let mut recording = Recording::new(env!("CARGO_PKG_VERSION"), host::now_unix_s(), host::describe());
    recording.commands.push(record::command(&arguments.argv));
    let mut exit = Exit::Code(0);
    let lab = Lab::new();
    let mut settings: Vec<Setting> =
        setting::specs(arguments).iter().map(|spec| Setting::make(&lab, spec, plan)).collect::<Result<_, _>>()?;
    recording.places = settings.iter().map(Setting::place).collect();
    for which in plan.schedule(settings.len()) {
        let execution = plan.measure(&mut settings[which.place], which, &mut recording)?;
        if !execution.exit.success() {
            exit = execution.exit;
        }
        if execution.interrupted {
            return Ok((recording, exit, true));
        }
    }
    Ok((recording, exit, false))
}

/// What matters of a run to those that follow.
struct Done {
    exit: Exit,
    interrupted: bool,
}

/// What is to be done, understood and checked before anything happens.
struct Plan<'a> {
    arguments: &'a RunArguments,
    caches: Vec<CacheState>,
    command: Spec,
    tracing: Option<Options>,
}

impl<'a> Plan<'a> {
    fn new(arguments: &'a RunArguments) -> Result<Plan<'a>, Failure> {
        let tracing = (!arguments.no_trace).then(|| Options {
            sample_hz: arguments.sample_hz,
            timeline_bytes: arguments.ring_buffer,
            max_paths: if arguments.paths { MOST_PATHS } else { 0 },
            ..Options::default()
        });
        if tracing.is_some() {
            capability::require_for_tracing().map_err(|missing| Failure::new(LACKING, missing))?;
        }
        let command = Spec {
            argv: arguments.argv.clone(),
            directory: None,
            environment: arguments.environment.clone(),
            user: host::user(arguments.user.as_deref())?,
            stdout_to_stderr: arguments.format == Format::Json,
        };
        Ok(Plan { arguments, caches: arguments.caches.iter().map(|c| (*c).into()).collect(), command, tracing })
    }

    /// Progress would be lost among the command's output on a terminal.
    fn is_quiet(&self) -> bool {
        use std::io::IsTerminal;
        !std::io::stderr().is_terminal() || std::io::stdout().is_terminal()
    }

    /// What runs when: for each state of the caches the untraced runs in blocks, then the traced ones. A block has one
    /// run in each place, and each block begins with another place, so that a machine that is busy for a while favours
    /// none of them.
    fn schedule(&self, places: usize) -> Vec<Which> {
        let untraced = if self.tracing.is_none() { self.arguments.runs.max(1) } else { self.arguments.runs };
        let blocks = untraced + u32::from(self.tracing.is_some());
        let of_block = |cache: CacheState, block: u32| {
            let order = (0..places).map(move |place| (place + block as usize) % places);
            order.map(move |place| Which { place, cache, block, traced: block >= untraced })
        };
        let of_cache =
            |cache: &CacheState| (0..blocks).flat_map(move |block| of_block(*cache, block)).collect::<Vec<_>>();
        self.caches.iter().flat_map(of_cache).collect()
    }

    /// One run; adds it to the recording.
    fn measure(&self, setting: &mut Setting, which: Which, recording: &mut Recording) -> Result<Done, Failure> {
        self.shell(setting, self.arguments.prepare.as_ref())?;
        setting.set_caches(which.cache)?;
        let before = setting.device_stats();
        let command =
            Spec { directory: Some(setting.directory(self.arguments.cwd.as_deref())), ..self.command.clone() };
        let others = if setting.is_made_here() { Others::Kill } else { Others::Leave };
        let tracing = self.tracing.as_ref().filter(|_| which.traced);
        let execution = execute::execute(&command, tracing, others, self.is_quiet())?;
        let moved = setting.device_stats().zip(before).map(|(after, before)| after.since(before));
        self.note_left_running(&execution, others);
        self.shell(setting, self.arguments.cleanup.as_ref())?;
        let done = Done { exit: execution.ended.exit, interrupted: execution.interrupted };
        record::add(recording, which, execution, moved);
        Ok(done)
    }

    /// Runs a shell command of the user's in the place, unmeasured, as the same user as the command.
    fn shell(&self, setting: &Setting, script: Option<&std::ffi::OsString>) -> Result<(), Failure> {
        let Some(script) = script else { return Ok(()) };
        let argv = vec!["/bin/sh".into(), "-c".into(), script.clone()];
        let command =
            Spec { argv, directory: Some(setting.directory(None)), stdout_to_stderr: true, ..self.command.clone() };
        let ended = execute::to_the_end(&command)?;
        if ended.exit.success() {
            return Ok(());
        }
        let script = script.to_string_lossy();
        Err(Failure::new(1, format_args!("'{script}' failed with exit code {}", ended.exit.shell_code())))
    }

    fn note_left_running(&self, execution: &Execution, others: Others) {
        if execution.ended.left_running > 0 {
            let count = execution.ended.left_running;
            let fate = match others {
                Others::Kill => "killed, since the place is gone now",
                Others::Leave => "they run on, untraced",
            };
            anstream::eprintln!("inodyne: processes that the command left running: {count} ({fate})");
        }
    }

    /// The command's own, unless the trace is not to be trusted.
    fn exit_code(&self, recording: &Recording, exit: Exit) -> Result<ExitCode, Failure> {
        let lost: u64 = recording.traces.iter().map(|trace| trace.lost.total()).sum();
        if lost > self.arguments.max_lost {
            let allowed = self.arguments.max_lost;
            return Err(Failure::new(
                UNTRUSTED,
                format_args!(
                    "{lost} events were lost ({allowed} allowed): do not trust this trace; see the report's last lines"
                ),
            ));
        }
        let code = exit.shell_code();
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(INTERRUPTED)))
    }
}
