//! Several alternatives raced against a base, and the best of them confirmed on fresh runs.
//!
//! ```text
//! screening      base and all alternatives in shuffled blocks; those that show no gain leave the race
//! confirmation   base, the best of those that are left (one of each setting), and the best of each together, on fresh runs
//! ```
//!
//! Both are experiments for the one scheduler. `inodyne_analyse::tuning` says what the pairs mean; what runs against what is decided here.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use inodyne_analyse::tuning::{self, Pairs};
use inodyne_lab::{DataSpec, PlaceSpec};
use inodyne_model::case::CaseKey;
use inodyne_model::command::CommandSpec;
use inodyne_model::recording::Recording;
use inodyne_model::run::{CacheState, Run};
use inodyne_model::tuning::{Measured as Figures, Objective, TuneVerdict};

use crate::error::ExperimentError;
use crate::event::Observer;
use crate::executor::Executor;
use crate::experiment::{Experiment, Group, PlaceSetup, Repetitions};
use crate::race::{self, Race};
use crate::scheduler::{self, Measured};

/// More than this are not confirmed one by one: each makes the correction for the others harsher.
const MOST_CONFIRMED: usize = 3;
/// More than this are not combined: a dozen small gains are more likely chance.
const MOST_COMBINED: usize = 4;
/// What looks better has pairs as rare as three out of three on one side, or as rare as so few pairs can be.
const RARE_ENOUGH: f64 = 0.25;

/// One way to run the command.
#[derive(Debug, Clone, PartialEq)]
pub struct Alternative {
    /// The place, made anew for each run.
    pub place: PlaceSpec,
    /// The command.
    pub command: CommandSpec,
}

/// An alternative, and what it changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Of two candidates for one setting only one can be taken.
    pub setting: String,
    /// The way to run the command.
    pub alternative: Alternative,
}

/// What is to be tuned, as data except for one thing: how candidates are combined.
pub struct Plan<'a> {
    /// The command as it is.
    pub base: Alternative,
    /// What may be faster.
    pub candidates: Vec<Candidate>,
    /// Several of them at once; none where they exclude each other.
    pub combined: &'a dyn Fn(&[usize]) -> Option<Alternative>,
    /// What is put into each place first.
    pub data: Option<DataSpec>,
    /// State of the caches before each run.
    pub cache: CacheState,
    /// What is to be improved.
    pub objective: Objective,
    /// The shell command that reads a number from what the command printed, where that is to be improved.
    pub number: Option<OsString>,
    /// Gains below this fraction count as none.
    pub margin: f64,
    /// Blocks of the screening.
    pub screening: u32,
    /// Pairs of the confirmation.
    pub confirming: u32,
    /// For the order within each block.
    pub seed: u64,
    /// Kill a run after this long.
    pub timeout: Option<Duration>,
    /// Begin no further block after this long.
    pub max_time: Option<Duration>,
}

/// What came of a candidate, or of several at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The candidates: one, or those that were combined.
    pub candidates: Vec<usize>,
    /// What it came to.
    pub verdict: TuneVerdict,
    /// What was refused, or went wrong.
    pub reason: Option<String>,
    /// While it was screened.
    pub screened: Option<Figures>,
    /// On fresh runs.
    pub confirmed: Option<Figures>,
}

/// What came of all of them.
#[derive(Debug)]
pub struct Tuned {
    /// Each candidate in order, and then the combination, where one was tried.
    pub judged: Vec<Judged>,
    /// What to take: an index into `judged`.
    pub best: Option<usize>,
    /// Whether everything was tried that was to be tried.
    pub complete: bool,
    /// What ended it early, other than the user.
    pub failure: Option<ExperimentError>,
}

/// Tries all candidates, appending to what the recording already holds.
pub fn tune<E: Executor>(
    plan: &Plan<'_>,
    executor: &mut E,
    observer: &mut dyn Observer,
    measured: &mut Measured,
) -> Tuned {
    let judged = |at| Judged {
        candidates: vec![at],
        verdict: TuneVerdict::NotTried,
        reason: None,
        screened: None,
        confirmed: None,
    };
    let judged = (0..plan.candidates.len()).map(judged).collect();
    let mut tuned = Tuned { judged, best: None, complete: false, failure: None };
    let mut is_screened = false;
    let done = (|| {
        executor.watch_signals()?;
        let begun = executor.now();
        let left = |part: u32, executor: &E| {
            plan.max_time.map(|most| (begun + most).saturating_sub(executor.now()).max(Duration::from_millis(1)) / part)
        };
        plan.screen(left(2, executor), executor, observer, measured, &mut tuned)?;
        if !measured.interrupted {
            is_screened = true;
            plan.confirm(left(1, executor), executor, observer, measured, &mut tuned)?;
        }
        Ok(())
    })();
    match done {
        Ok(()) => {}
        Err(ExperimentError::InterruptedEarly) => measured.interrupted = true,
        Err(failure) => tuned.failure = Some(failure),
    }
    tuned.complete &= tuned.failure.is_none() && !measured.interrupted;
    if !is_screened {
        // It ended before it was known which of them are the most promising.
        let not_pursued = |judged: &&mut Judged| judged.verdict == TuneVerdict::NotPursued;
        tuned.judged.iter_mut().filter(not_pursued).for_each(|judged| judged.verdict = TuneVerdict::NotTried);
    }
    tuned
}

impl Plan<'_> {
    fn screen<E: Executor>(
        &self,
        most: Option<Duration>,
        executor: &mut E,
        observer: &mut dyn Observer,
        measured: &mut Measured,
        tuned: &mut Tuned,
    ) -> Result<(), ExperimentError> {
        let all: Vec<&Alternative> = self.candidates.iter().map(|candidate| &candidate.alternative).collect();
        let repetitions = Repetitions { untraced: self.screening, max_time: most, ..Repetitions::default() };
        let first = First::of(&measured.recording, self.cache);
        let done = self.race(&all, repetitions, self.seed, true, executor, observer, measured);
        let race = Race { objective: self.objective, margin: Some(self.margin) };
        tuned.complete = true;
        for (at, judged) in tuned.judged.iter_mut().enumerate() {
            let seen = first.seen(measured, at + 1, self.objective);
            // Nobody waits for those that have left the race.
            let is_out = seen.refused.is_some() || race.is_over_for(&first.pairs(measured, at + 1));
            tuned.complete &= is_out || seen.blocks >= self.screening as usize;
            judged.screened = tuning::screened(&seen.pairs);
            (judged.verdict, judged.reason) = match (seen.refused, seen.failed, &judged.screened) {
                (Some(refused), _, _) => (TuneVerdict::Refused, Some(refused)),
                (None, Some(failed), _) => (TuneVerdict::Failed, Some(failed)),
                (None, None, None) => (TuneVerdict::NotTried, None),
                // One pair says nothing. One that loses the race has at least two.
                (None, None, Some(seen)) if seen.pairs < self.least_pairs() => (TuneVerdict::NotTried, None),
                (None, None, Some(seen)) if self.looks_better(seen) => (TuneVerdict::NotPursued, None),
                _ => (TuneVerdict::NoGain, None),
            };
        }
        done
    }

    /// Runs a base and alternatives to it in turn.
    #[allow(clippy::too_many_arguments, reason = "who, how often, and what runs it")]
    fn race<E: Executor>(
        &self,
        alternatives: &[&Alternative],
        repetitions: Repetitions,
        seed: u64,
        is_screening: bool,
        executor: &mut E,
        observer: &mut dyn Observer,
        measured: &mut Measured,
    ) -> Result<(), ExperimentError> {
        let all: Vec<&Alternative> = std::iter::once(&self.base).chain(alternatives.iter().copied()).collect();
        let setup = |one: &&Alternative| PlaceSetup { spec: one.place.clone(), data: self.data.clone() };
        let cases = (0..all.len()).map(|at| CaseKey::new(at, at, self.cache)).collect();
        // One that is being confirmed stays to the end, whatever its runs say meanwhile.
        let margin = is_screening.then_some(self.margin);
        let experiment = Experiment {
            places: all.iter().map(setup).collect(),
            commands: all.iter().map(|one| one.command.clone()).collect(),
            groups: vec![Group { cases }],
            repetitions,
            seed,
            fresh: true,
            timeout: self.timeout,
            durable: self.objective == Objective::Durable,
            number: self.number.clone(),
            margin: Some(self.margin),
            expected_exit: None,
            keep_cut_short: false,
            race: Some(Race { objective: self.objective, margin }),
            output_once: false,
        };
        scheduler::run(&experiment, executor, observer, measured)
    }

    /// With fewer pairs from the screening than this, nothing is said.
    fn least_pairs(&self) -> usize {
        self.screening.min(2) as usize
    }

    /// Whether pairs from the screening look like a gain above the margin.
    fn looks_better(&self, seen: &Figures) -> bool {
        let rarest = 0.5f64.powi(seen.pairs as i32 - 1);
        seen.ratio < 1.0 - self.margin && seen.pairs >= self.least_pairs() && seen.p <= RARE_ENOUGH.max(rarest)
    }

    /// The candidates that look better, the best one of each setting, the best of all first.
    fn promising(&self, judged: &[Judged]) -> Vec<usize> {
        let mut best: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
        for (at, (candidate, judged)) in self.candidates.iter().zip(judged).enumerate() {
            let is_left = judged.verdict == TuneVerdict::NotPursued;
            if let Some(ratio) = judged.screened.filter(|_| is_left).map(|seen| seen.ratio) {
                let of_setting = best.entry(&candidate.setting).or_insert((ratio, at));
                if ratio < of_setting.0 {
                    *of_setting = (ratio, at);
                }
            }
        }
        let mut best: Vec<(f64, usize)> = best.into_values().collect();
        best.sort_by(|a, b| a.0.total_cmp(&b.0));
        best.into_iter().map(|(_, at)| at).collect()
    }

    fn confirm<E: Executor>(
        &self,
        most: Option<Duration>,
        executor: &mut E,
        observer: &mut dyn Observer,
        measured: &mut Measured,
        tuned: &mut Tuned,
    ) -> Result<(), ExperimentError> {
        let promising = self.promising(&tuned.judged);
        let together = &promising[..promising.len().min(MOST_COMBINED)];
        let combined = (together.len() > 1).then(|| (self.combined)(together)).flatten();
        let singles = &promising[..promising.len().min(MOST_CONFIRMED)];
        if singles.is_empty() {
            return Ok(());
        }
        let of_singles = singles.iter().map(|at| &self.candidates[*at].alternative);
        let all: Vec<&Alternative> = of_singles.chain(&combined).collect();
        let mut judged: Vec<usize> = singles.to_vec();
        if combined.is_some() {
            judged.push(tuned.judged.len());
            tuned.judged.push(Judged {
                candidates: together.to_vec(),
                verdict: TuneVerdict::NotTried,
                reason: None,
                screened: None,
                confirmed: None,
            });
        }
        let needed = tuning::pairs_needed(all.len());
        let pairs = self.confirming.max(needed as u32);
        let repetitions = Repetitions { untraced: pairs, max_time: most, ..Repetitions::default() };
        let first = First::of(&measured.recording, self.cache);
        let done = self.race(&all, repetitions, self.seed.wrapping_add(1), false, executor, observer, measured);
        let seen: Vec<Seen> = (1..=all.len()).map(|place| first.seen(measured, place, self.objective)).collect();
        let of_each: Vec<Pairs> = seen.iter().map(|seen| seen.pairs.clone()).collect();
        let is_done = |seen: &Seen| seen.refused.is_some() || seen.failed.is_some() || seen.blocks >= pairs as usize;
        tuned.complete &= seen.iter().all(is_done);
        for ((at, seen), confirmed) in judged.iter().zip(seen).zip(tuning::confirmed(&of_each, self.margin)) {
            let judged = &mut tuned.judged[*at];
            judged.confirmed = confirmed.map(|(figures, _)| figures);
            let ended = match &done {
                Err(failure) => failure.to_string(),
                Ok(()) if measured.interrupted => "it was interrupted".to_owned(),
                Ok(()) if seen.blocks < pairs as usize => "the time was over".to_owned(),
                Ok(()) => "its runs say nothing of what was to become better".to_owned(),
            };
            let count = seen.pairs.len();
            (judged.verdict, judged.reason) = match (seen.refused, seen.failed, confirmed) {
                (Some(refused), _, _) => (TuneVerdict::Refused, Some(refused)),
                (None, Some(failed), _) => (TuneVerdict::Failed, Some(failed)),
                (None, None, Some((_, true))) => (TuneVerdict::Helps, None),
                // So few pairs can say nothing, whatever they are.
                (None, None, _) if count < needed => {
                    let reason = format!("{ended} after {count} of the {needed} fresh pairs that can decide");
                    (TuneVerdict::NotTried, Some(reason))
                }
                (None, None, _) => (TuneVerdict::NotConfirmed, None),
            };
        }
        tuned.best = self.best(&tuned.judged);
        done
    }

    /// The fastest of those that help. Several at once only where they are faster than one alone by more than the margin.
    fn best(&self, judged: &[Judged]) -> Option<usize> {
        let helping = judged.iter().enumerate().filter(|(_, one)| one.verdict == TuneVerdict::Helps);
        let ratio = |one: &Judged| {
            let alone = if one.candidates.len() > 1 { self.margin } else { 0.0 };
            one.confirmed.map_or(1.0, |figures| figures.ratio) + alone
        };
        helping.min_by(|(_, a), (_, b)| ratio(a).total_cmp(&ratio(b))).map(|(at, _)| at)
    }
}

/// Where the places and commands of a race begin in the recording.
#[derive(Clone, Copy)]
struct First {
    place: usize,
    command: usize,
    cache: CacheState,
}

/// What was seen of one alternative.
struct Seen {
    /// Of the base and of the alternative, block by block.
    pairs: Pairs,
    /// In how many blocks both ran.
    blocks: usize,
    refused: Option<String>,
    /// How it ended differently from the base.
    failed: Option<String>,
}

impl First {
    fn of(recording: &Recording, cache: CacheState) -> First {
        First { place: recording.places.len(), command: recording.commands.len(), cache }
    }

    /// Runs of the base and of one alternative, block by block.
    fn pairs(self, measured: &Measured, at: usize) -> Vec<(&Run, &Run)> {
        let case = |at: usize| CaseKey::new(self.place + at, self.command + at, self.cache);
        race::pairs(&measured.recording, case(0), case(at))
    }

    fn seen(self, measured: &Measured, at: usize, objective: Objective) -> Seen {
        let pairs = self.pairs(measured, at);
        let failed = pairs.iter().find(|(base, run)| base.exit != run.exit);
        Seen {
            pairs: Pairs::of(pairs.iter().copied(), objective),
            blocks: pairs.len(),
            refused: measured.refused.get(&(self.place + at)).cloned(),
            failed: failed.map(|(base, run)| {
                format!("the command ended with {}, not {}", run.exit.shell_code(), base.exit.shell_code())
            }),
        }
    }
}

#[cfg(test)]
mod tests;
