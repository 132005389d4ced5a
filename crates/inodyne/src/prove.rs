//! `inodyne prove`: states a finding's prediction, applies its cure in a place made for it, measures the command with and
//! without it in turns, and scores the prediction. The score is kept in the recording.
//!
//! Each run has a place of its own, made and filled anew, so that a command may change or delete what it finds. Which one of
//! a pair comes first changes from pair to pair.
//!
//! | module | what it knows |
//! |---|---|
//! | `cure` | which findings' cures can be applied, and how |
//! | `split` | how a command that ends in a list of files becomes several |

mod cure;
mod split;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use inodyne_analyse::{predicted_saving, score};
use inodyne_model::Nanos;
use inodyne_model::finding::{Finding, Proof};
use inodyne_model::recording::Recording;
use inodyne_render::{cut, duration_beside, escaped};

use crate::cli::{Cli, Command, ProveArguments};
use crate::failure::{Failure, USAGE};
use crate::run;
use cure::{Trial, Variant};

/// A longer command is cut where it is named.
const LONGEST_COMMAND: usize = 72;

/// Proves one finding, or all whose cure can be applied.
pub fn run(arguments: &ProveArguments) -> Result<ExitCode, Failure> {
    let mut recording = Recording::load(&arguments.recording)?;
    inodyne_analyse::explain(&mut recording);
    let trials = trials(&recording, arguments)?;
    for (at, trial) in trials {
        let command = recording.commands.get(recording.findings[at].command).map_or("", |command| &command.label);
        state(&recording.findings[at], &trial, command);
        let pairs = measure(&trial, arguments)?;
        let finding = &mut recording.findings[at];
        let Some(proof) = score(&finding.predicted, &pairs, &trial.how) else { continue };
        tell(&proof);
        finding.proved = Some(proof);
        recording.save(arguments.output.as_ref().unwrap_or(&arguments.recording))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What is to be tried, for which finding. Without a name: everything that can be.
fn trials(recording: &Recording, arguments: &ProveArguments) -> Result<Vec<(usize, Trial)>, Failure> {
    let usage = |text: String| Failure::new(USAGE, text);
    let mut trials = Vec::new();
    let mut refusals = Vec::new();
    for (at, finding) in recording.findings.iter().enumerate() {
        if arguments.finding.as_ref().is_some_and(|id| *id != finding.id) {
            continue;
        }
        match cure::trial(recording, finding, arguments) {
            Ok(trial) => trials.push((at, trial)),
            Err(refusal) => refusals.push(format!("{}: {refusal}", finding.id)),
        }
    }
    match (trials.is_empty(), refusals.is_empty(), &arguments.finding) {
        (false, ..) => Ok(trials),
        (true, false, _) => Err(usage(refusals.join("; "))),
        (true, true, None) => Err(usage(format!("{}: nothing was found in it", arguments.recording.display()))),
        (true, true, Some(id)) => {
            let there: Vec<&str> = recording.findings.iter().map(|finding| finding.id.as_str()).collect();
            let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
            Err(usage(format!("no finding '{id}' in {}; there: {there}", arguments.recording.display())))
        }
    }
}

/// The prediction, before anything is tried.
fn state(finding: &Finding, trial: &Trial, command: &str) {
    let predicted = &finding.predicted;
    let [low, likely, high] = predicted_saving(predicted).map(|part| part * 100.0);
    anstream::println!("{}: {}", finding.id, escaped(&finding.title));
    let command = cut(&escaped(command), LONGEST_COMMAND);
    let time = |ns| duration_beside(ns, predicted.now_ns);
    anstream::println!("  command    {command} on {}", escaped(&trial.base.place));
    anstream::println!(
        "  predicted  {} [{}, {}] instead of {}: saves {likely:.0}% [{low:.0}, {high:.0}]",
        time(predicted.wall_ns),
        time(predicted.low_ns),
        time(predicted.high_ns),
        time(predicted.now_ns)
    );
    anstream::println!("  trying     {}", escaped(&trial.how));
}

fn tell(proof: &Proof) {
    let saved = |ratio: f64| (1.0 - ratio) * 100.0;
    let verdict = if proof.within { "as predicted" } else { "not as predicted" };
    let time = |ns| duration_beside(ns, proof.base_ns);
    anstream::println!(
        "  measured   {} instead of {}: saves {:.0}% [{:.0}, {:.0}], {} pairs: {verdict}",
        time(proof.wall_ns),
        time(proof.base_ns),
        saved(proof.ratio),
        saved(proof.ci_high),
        saved(proof.ci_low),
        proof.pairs
    );
}

/// Pairs of times, without the cure and with it.
fn measure(trial: &Trial, arguments: &ProveArguments) -> Result<Vec<(Nanos, Nanos)>, Failure> {
    let quiet = !std::io::stderr().is_terminal();
    let mut pairs = Vec::new();
    // One of each that does not count: programs and libraries are in memory from then on, or thrown out as always.
    for pair in 0..=arguments.pairs {
        let (first, second) = if pair % 2 == 0 { (&trial.base, &trial.cured) } else { (&trial.cured, &trial.base) };
        let (a, b) = (once(first, arguments)?, once(second, arguments)?);
        let (base, cured) = if pair % 2 == 0 { (a, b) } else { (b, a) };
        if pair > 0 {
            pairs.push((base, cured));
        }
        if !quiet {
            let time = |ns| duration_beside(ns, base);
            anstream::eprintln!(
                "inodyne: pair {pair} of {}: {} without, {} with",
                arguments.pairs,
                time(base),
                time(cured)
            );
        }
    }
    Ok(pairs)
}

/// One untraced run in a place of its own. This is all that proving knows of running.
fn once(variant: &Variant, arguments: &ProveArguments) -> Result<Nanos, Failure> {
    let mut words: Vec<OsString> = ["inodyne", "run", "--no-trace", "--at"].map(OsString::from).into();
    words.push(variant.place.clone().into());
    for (option, value) in [("--data", &variant.data), ("--prepare", &variant.prepare), ("--user", &arguments.user)] {
        if let Some(value) = value {
            words.extend([option.into(), value.into()]);
        }
    }
    words.extend([format!("--cache={}", variant.cache).into(), "--".into()]);
    words.extend(variant.argv.iter().map(OsString::from));
    let parsed = Cli::try_parse_from(words).map_err(|error| Failure::new(USAGE, error.kind()))?;
    let Command::Run(run) = parsed.command else { unreachable!("the words begin with run") };
    let recording = run::untold(&run)?;
    let last = recording.runs.last().filter(|run| run.exit == variant.exit);
    let failed = || {
        let label = recording.commands.first().map_or("", |command| &command.label);
        Failure::new(1, format_args!("'{label}' ended otherwise than in the recording: nothing is proved"))
    };
    last.map(|run| run.wall_ns).ok_or_else(failed)
}
