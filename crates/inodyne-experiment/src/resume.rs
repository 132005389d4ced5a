//! What an earlier recording of the same experiment holds, to be taken instead of running it again.
//!
//! A block is taken as a whole or not at all: its runs are compared with one another because they were close in time.

use inodyne_model::command::CommandSpec;
use inodyne_model::place::Place;
use inodyne_model::recording::Recording;
use inodyne_model::run::Run;
use inodyne_model::trace::Trace;
use inodyne_model::tuning::{Tried, TuneVerdict};

use crate::error::ExperimentError;
use crate::order::RunKey;

/// A recording that ended early.
#[derive(Debug)]
pub struct Earlier {
    recording: Recording,
    /// Whether something was run again, so that what came later does not continue it.
    is_over: bool,
}

/// What an earlier recording holds of a block.
#[derive(Debug, PartialEq)]
pub(crate) enum Block {
    /// These runs, at least one.
    Ran(Vec<(RunKey, Run)>),
    /// Its experiment had ended before it, though not all blocks were run.
    Ended,
    /// Nothing, or not all of it: it is to be run.
    Unknown,
}

impl Earlier {
    /// What this recording holds.
    pub fn new(recording: Recording) -> Earlier {
        Earlier { recording, is_over: false }
    }

    /// Whether it holds more than what was measured and taken so far, to be taken or not: then it is the better one to keep.
    pub fn holds_more_than(&self, measured: &Recording) -> bool {
        self.recording.runs.len() > measured.runs.len()
    }

    /// Checks whether places and commands are those that it begins with, as far as it got.
    ///
    /// # Errors
    /// It is of another experiment; the text says where they differ.
    pub(crate) fn check(&self, places: &[Place], commands: &[CommandSpec]) -> Result<(), ExperimentError> {
        if self.is_over {
            return Ok(());
        }
        let differs = |what: &str, now: &str, then: &str| {
            Err(ExperimentError::OtherExperiment { what: what.to_owned(), now: now.to_owned(), then: then.to_owned() })
        };
        for (at, (now, then)) in places.iter().zip(&self.recording.places).enumerate() {
            if now.label != then.label {
                return differs("place", &now.label, &then.label);
            }
            // Those that are not made yet hold what the first one does.
            let is_known = at == 0 || now.data_digest.is_some();
            if is_known && now.data_digest != then.data_digest {
                return differs("data of place", &now.label, &format!("other data in {}", then.label));
            }
        }
        let mut both = commands.iter().zip(&self.recording.commands);
        both.find(|(now, then)| now != then).map_or(Ok(()), |(now, then)| match now.label == then.label {
            true => differs("command", &now.label, &format!("{} under other conditions", then.label)),
            false => differs("command", &now.label, &then.label),
        })
    }

    /// A block of an experiment that has no place from `end` on: its runs, in the order in which they took place, where all of it took place:
    /// every case has its run, or a later block or experiment began. Nothing is known about cases without one. From the first block on for
    /// which that is not so, nothing.
    pub(crate) fn block(&mut self, keys: &[RunKey], end: usize) -> Block {
        let key = |run: &Run| RunKey { case: run.key(), block: run.block, traced: run.traced };
        let is_later = |run: &Run| {
            keys.iter().any(|key| run.key() == key.case && run.traced == key.traced && run.block > key.block)
        };
        let runs = &self.recording.runs;
        let is_meant = |run: &&Run| keys.contains(&key(run));
        let of_block: Vec<(RunKey, Run)> = runs.iter().filter(is_meant).map(|run| (key(run), run.clone())).collect();
        // It went on to another experiment: whatever ended this one, as the time for it, ended it for good.
        let went_on = runs.iter().any(|run| run.place >= end);
        let is_whole = of_block.len() == keys.len() || (!of_block.is_empty() && runs.iter().any(is_later));
        self.is_over |= !is_whole && !went_on;
        match of_block.is_empty() {
            _ if self.is_over => Block::Unknown,
            true => Block::Ended,
            false => Block::Ran(of_block),
        }
    }

    /// The trace of a run.
    pub(crate) fn trace(&self, key: RunKey) -> Option<Trace> {
        let mut of_case = self.recording.traces.iter().filter(|trace| trace.key() == key.case);
        let traced = |run: &&Run| run.traced && run.key() == key.case;
        let number = self.recording.runs.iter().filter(traced).position(|run| run.block == key.block)?;
        of_case.nth(number).cloned()
    }

    /// Why a place of which it has no run was refused, as far as it says so.
    pub(crate) fn refusal(&self, at: usize) -> String {
        let tried = self.recording.tuning.iter().flat_map(|tuning| &tuning.tried);
        let mut refused = tried.filter(|tried| tried.verdict == TuneVerdict::Refused);
        let is_meant = |tried: &&Tried| self.place(at).is_some_and(|place| place.label == tried.written());
        let reason = refused.find(is_meant).and_then(|tried| tried.reason.clone());
        reason.unwrap_or_else(|| "it could not be made when this was begun".to_owned())
    }

    /// What it says about a place.
    pub(crate) fn place(&self, at: usize) -> Option<&Place> {
        self.recording.places.get(at)
    }
}

#[cfg(test)]
mod tests {
    use inodyne_model::case::CaseKey;
    use inodyne_model::host::Host;
    use inodyne_model::run::CacheState;
    use inodyne_model::tuning::{Risk, Set, Tuning};

    use super::*;

    fn key(case: usize, block: u32) -> RunKey {
        RunKey { case: CaseKey::new(case, case, CacheState::Cold), block, traced: false }
    }

    fn earlier(runs: &[(usize, u32)]) -> Earlier {
        let mut recording = Recording::new("0.0.0", 0, Host::default());
        let place =
            |label: &str| Place { label: label.to_owned(), data_digest: Some("1".to_owned()), ..Place::default() };
        recording.places = ["a", "b"].map(place).into();
        recording.commands = vec![CommandSpec::new(vec!["find".into()]); 2];
        let run = |(case, block): &(usize, u32)| Run {
            place: *case,
            command: *case,
            cache: CacheState::Cold,
            block: *block,
            ..Run::default()
        };
        recording.runs = runs.iter().map(run).collect();
        Earlier::new(recording)
    }

    #[test]
    fn a_block_is_taken_as_a_whole() {
        let block = |number| [key(0, number), key(1, number)];
        let mut whole = earlier(&[(1, 0), (0, 0), (0, 1)]);
        let taken = |of: Block| match of {
            Block::Ran(runs) => runs.iter().map(|(key, _)| key.case.place).collect::<Vec<_>>(),
            Block::Ended => panic!("nothing came after it"),
            Block::Unknown => Vec::new(),
        };
        assert_eq!(taken(whole.block(&block(0), 2)), [1, 0]);
        // The second one was cut short, and what is run again then has no continuation.
        assert!(taken(whole.block(&block(1), 2)).is_empty() && taken(whole.block(&block(0), 2)).is_empty());
        // One that was refused has no run, and the others went on.
        let mut refused = earlier(&[(0, 0), (0, 1)]);
        let both = [taken(refused.block(&block(0), 2)), taken(refused.block(&[key(0, 1)], 2))];
        assert_eq!(both, [[0], [0]]);
    }

    #[test]
    fn an_experiment_that_another_came_after_has_ended() {
        let block = |number| [key(0, number), key(1, number)];
        // One was refused in the second block, which was the last one that there was time for.
        let mut ended = earlier(&[(0, 0), (1, 0), (0, 1), (2, 0)]);
        let second = ended.block(&block(1), 2);
        assert!(matches!(&second, Block::Ran(runs) if runs.len() == 1), "{second:?}");
        assert_eq!(ended.block(&[key(0, 2)], 2), Block::Ended);
        assert!(matches!(ended.block(&[key(2, 0)], 3), Block::Ran(_)));
        assert_eq!(ended.block(&[key(2, 1)], 3), Block::Unknown);
        // What is run again now may end with fewer runs: those that there are stay.
        let held = |runs: usize| {
            let mut measured = ended.recording.clone();
            measured.runs.truncate(runs);
            ended.holds_more_than(&measured)
        };
        assert_eq!([held(3), held(4)], [true, false]);
    }

    #[test]
    fn what_was_refused_says_why_as_before() {
        let mut known = earlier(&[(0, 0)]);
        let set = Set { name: "b".into(), written: "b".into(), risk: Risk::None, finding: None, permanent: "".into() };
        let tried = Tried {
            settings: vec![set],
            verdict: TuneVerdict::Refused,
            reason: Some("mkfs.ext4 failed".to_owned()),
            screened: None,
            confirmed: None,
        };
        known.recording.tuning = Some(Tuning { tried: vec![tried], ..Tuning::default() });
        assert_eq!([0, 1].map(|at| known.refusal(at) == "mkfs.ext4 failed"), [false, true]);
    }

    #[test]
    fn another_experiment_is_refused() {
        let known = earlier(&[(0, 0)]);
        let place = |label: &str, digest: Option<&str>| Place {
            label: label.to_owned(),
            data_digest: digest.map(str::to_owned),
            ..Place::default()
        };
        let find = CommandSpec::new(vec!["find".into()]);
        assert!(
            known
                .check(&[place("a", Some("1")), place("b", None), place("c", None)], std::slice::from_ref(&find))
                .is_ok()
        );
        let said = |places: &[Place], command: CommandSpec| {
            known.check(places, std::slice::from_ref(&command)).unwrap_err().to_string()
        };
        assert!(said(&[place("x", None)], find.clone()).contains("place x instead of a"));
        let elsewhere = CommandSpec { cwd: Some("d".into()), ..find };
        assert!(said(&[place("a", Some("1"))], elsewhere.clone()).contains("under other conditions"));
        for other in [place("a", None), place("a", Some("2"))] {
            assert!(said(&[other], elsewhere.clone()).contains("data of place a instead of other data"));
        }
    }
}
