//! `inodyne prove`: states a finding's prediction, applies its cure in a place made for it, measures the command with and
//! without it in shuffled blocks, and scores the prediction. The score is kept in the recording.
//!
//! The command runs under the conditions under which it was recorded. Each run has a place of its own, made and filled anew,
//! so that a command may change or delete what it finds.
//!
//! | module | what it knows |
//! |---|---|
//! | `variant` | the command as it was recorded, and an experiment of that and the cured one |
//! | `cure` | which of a finding's cures is tried, and on what |
//! | `split` | how a command that ends in a list of files becomes several |
//! | `consent` | what will be run, in full, and whether the user wants that |
//! | `settings` | which settings of the machine a recording may change |
//! | `making` | which options of mkfs and mount it may give |

mod consent;
mod cure;
mod making;
mod settings;
mod split;
mod variant;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use inodyne_analyse::score;
use inodyne_experiment::Collector;
use inodyne_launch::Output;
use inodyne_model::finding::{Finding, NOTHING_PREDICTED, Proof};
use inodyne_model::recording::Recording;
use inodyne_recording::DEFAULT_LIMIT_BYTES;
use inodyne_render::{duration_beside, escaped, pairs, saving};
use inodyne_trace::Options;

use crate::failure::{ExitStatus, Failure};
use crate::format::recording_file;
use crate::keep;
use crate::measure::{self, Conditions};
use crate::say::show;
use variant::Trial;

/// Arguments of `inodyne prove`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "The prediction is printed first, and what will be run. Then the command runs without the cure and with \
    it, in shuffled blocks, under the conditions that the recording says (--cwd, --env, --prepare, --cleanup, --user), \
    each time in a place made and filled anew, and the score is printed and kept in the recording.\n\n\
    What runs is what the recording says, so it is asked for first; where nobody can be asked, give --yes.\n\n\
    By itself it can apply the cures of dtype-missing, cold-metadata, cold-data, cold-program, random-io, readahead-wasted, \
    sync-bound, copy-up, deleted-inodes, write-amplification, single-stream (where the command ends in a list of files), journal-wait, write-throttled, queue-full and small-requests \
    (where the place was made with a small journal, or with changed settings), round-trips (of a place fuse), and lock-contention (for the list of orphans of an ext4 that was made \
    with -O ^orphan_file). For all others give --instead.\n\n  \
    inodyne prove find.inodyne dtype-missing\n  \
    inodyne prove build.inodyne failed-lookups --instead 'PATH=/opt/bin make'"
)]
pub struct ProveArguments {
    /// The recording
    pub recording: PathBuf,
    /// Only this finding; otherwise all whose cure can be applied
    pub finding: Option<String>,
    /// Try this shell command instead of the recorded one, in the same place
    #[arg(long, value_name = "COMMAND")]
    pub instead: Option<String>,
    /// Pairs of runs to measure
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub pairs: u32,
    /// Try in this place instead of the recorded one
    #[arg(long = "at", value_name = "PLACE")]
    pub place: Option<String>,
    /// What to put into it, instead of what the recording says
    #[arg(long, value_name = "DATA")]
    pub data: Option<String>,
    /// Shell command to run in the place before each run, not measured, instead of what the recording says
    #[arg(long, value_name = "COMMAND")]
    pub prepare: Option<String>,
    /// Run the command as this user [default: as in the recording, otherwise the user who called sudo, otherwise the calling user]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Save the scored recording to this file instead of its own
    #[arg(short, long, value_name = "FILE", value_parser = recording_file)]
    pub output: Option<PathBuf>,
    /// Seed for the order in which runs with and without the cure take turns
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Run what the recording says without asking
    #[arg(short, long)]
    pub yes: bool,
}

/// A finding and what is tried for it.
struct Proving<'a> {
    /// Index of the finding.
    finding: usize,
    trial: Trial,
    conditions: Conditions<'a>,
}

/// Proves one finding, or all whose cure can be applied. One that cannot be measured does not stop the others.
pub fn run(arguments: &ProveArguments) -> Result<ExitCode, Failure> {
    let output = arguments.output.as_ref().unwrap_or(&arguments.recording);
    let mut recording = inodyne_recording::load(&arguments.recording, DEFAULT_LIMIT_BYTES)?;
    inodyne_analyse::explain(&mut recording);
    let provings = provings(&recording, arguments)?;
    keep::check_file(output)?;
    for proving in &provings {
        let finding = &recording.findings[proving.finding];
        state(finding, proving, &recording.traces[finding.trace].doubts)?;
    }
    consent::ask(arguments)?;
    let mut failures = Vec::new();
    for Proving { finding, trial, conditions } in &provings {
        let finding = &mut recording.findings[*finding];
        if provings.len() > 1 {
            show!(
                "{} of {} on {}",
                finding.id,
                escaped(&trial.base.command.label),
                escaped(&trial.base.place.to_string())
            )?;
        }
        let experiment = trial.experiment(arguments.pairs, arguments.seed).map_err(usage)?;
        let mut measured = measure::nothing();
        match conditions.add(&experiment, &mut measured) {
            Ok(()) if measured.interrupted => return Err(Failure::new(ExitStatus::Interrupted, "interrupted")),
            Ok(()) => {}
            Err(failure) if failure.status() == ExitStatus::Interrupted || provings.len() == 1 => return Err(failure),
            Err(failure) => {
                show!("  failed     {failure}")?;
                failures.push(failure);
                continue;
            }
        }
        let Some(proof) = score(&finding.predicted, &variant::pairs(&measured.recording), &trial.how) else { continue };
        let is_doubted = !recording.traces[finding.trace].doubts.is_empty();
        let score = if is_doubted { NOTHING_PREDICTED } else { proof.score(&finding.predicted).words() };
        let words = measured_in_words(&proof, score);
        finding.proved = Some(proof);
        // What cannot be saved can still be reported.
        let saved = keep::save(&recording, output);
        let shown = show!("  measured   {words}");
        saved.and(shown)?;
    }
    match failures.into_iter().next() {
        Some(first) => Err(Failure::new(first.status(), format_args!("not everything could be tried: {first}"))),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn usage(message: String) -> Failure {
    Failure::new(ExitStatus::Usage, message)
}

/// What to try, for which finding. Without a name: everything that can be tried.
fn provings<'a>(recording: &Recording, arguments: &ProveArguments) -> Result<Vec<Proving<'a>>, Failure> {
    let mut provings = Vec::new();
    let mut refusals = Vec::new();
    for (at, finding) in recording.findings.iter().enumerate() {
        if arguments.finding.as_ref().is_some_and(|id| *id != finding.id) {
            continue;
        }
        match cure::trial(recording, finding, arguments) {
            Ok(trial) => {
                let user = trial.base.command.user.as_deref();
                let conditions = Conditions::new(user, Output::Discard, Collector::Bpf(Options::default()), None)?;
                consent::check_root(&conditions, user, arguments)?;
                if let Err(refusal) = consent::check_data(user, trial.base.data.as_deref(), arguments) {
                    refusals.push(format!("{}: {refusal}", finding.id));
                    continue;
                }
                provings.push(Proving { finding: at, trial, conditions });
            }
            Err(refusal) => refusals.push(format!("{}: {refusal}", finding.id)),
        }
    }
    match (provings.is_empty(), refusals.is_empty(), &arguments.finding) {
        (false, ..) => Ok(provings),
        (true, false, _) => Err(usage(refusals.join("; "))),
        (true, true, None) => Err(usage(format!("{}: nothing was found in it", arguments.recording.display()))),
        (true, true, Some(id)) => {
            let there: Vec<&str> = recording.findings.iter().map(|finding| finding.id.as_str()).collect();
            let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
            Err(usage(format!("no finding '{id}' in {}; there: {there}", arguments.recording.display())))
        }
    }
}

/// The prediction and what will be run, before anything is tried.
fn state(finding: &Finding, proving: &Proving<'_>, doubts: &[String]) -> Result<(), Failure> {
    let Proving { trial, conditions, .. } = proving;
    let predicted = &finding.predicted;
    let [low, likely, high] = predicted.savings().map(|part| part * 100.0);
    show!("{}: {}", finding.id, escaped(&finding.title))?;
    consent::show(conditions.user.as_ref(), &trial.base)?;
    let time = |ns| duration_beside(ns, predicted.now_ns);
    for doubt in doubts {
        show!("  doubtful   {}: the prediction is not scored", escaped(doubt))?;
    }
    show!(
        "  predicted  {} [{}, {}] instead of {}: saves {likely:.0}% [{low:.0}, {high:.0}]",
        time(predicted.wall_ns),
        time(predicted.low_ns),
        time(predicted.high_ns),
        time(predicted.now_ns)
    )?;
    show!("  trying     {}", escaped(&trial.how))
}

/// `0.005 s instead of 0.187 s: saves 97% [97, 98], 10 pairs: as predicted`
fn measured_in_words(proof: &Proof, score: &str) -> String {
    let time = |ns| duration_beside(ns, proof.base_ns);
    format!(
        "{} instead of {}: {}, {}: {score}",
        time(proof.wall_ns),
        time(proof.base_ns),
        saving(proof.ratio, proof.interval()),
        pairs(proof.pairs as usize),
    )
}

#[cfg(test)]
mod tests {
    use inodyne_model::Nanos;
    use inodyne_model::finding::Prediction;

    use super::*;

    #[test]
    fn few_pairs_are_told_without_an_interval() {
        let ms = |ms: u64| Nanos(ms * 1_000_000);
        let predicted = Prediction { now_ns: ms(200), wall_ns: ms(100), low_ns: ms(80), high_ns: ms(120) };
        let told = |count: u64, wall: u64| {
            let pairs: Vec<_> = (0..count).map(|n| (ms(200), ms(wall + n % 3))).collect();
            let proof = score(&predicted, &pairs, "").expect("pairs");
            measured_in_words(&proof, proof.score(&predicted).words())
        };
        let one = "0.100 s instead of 0.200 s: saves 50%, 1 pair: as predicted so far";
        let five = "0.161 s instead of 0.200 s: saves 19%, 5 pairs: not decided, there are too few pairs";
        let six = "0.161 s instead of 0.200 s: saves 19% [19, 20], 6 pairs: not as predicted";
        assert_eq!([told(1, 100), told(5, 160), told(6, 160)], [one, five, six]);
        let slower = "0.251 s instead of 0.200 s: takes 25% longer [25, 26], 6 pairs: not as predicted";
        assert_eq!(told(6, 250), slower);
    }
}
