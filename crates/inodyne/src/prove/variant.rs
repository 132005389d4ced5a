//! The ways in which a command is tried: as in the recording, and with a cure.

use std::ffi::{OsStr, OsString};

use inodyne_experiment::{Experiment, Group, PlaceSetup, Repetitions};
use inodyne_lab::{DataSpec, LabError, PlaceSpec};
use inodyne_model::Nanos;
use inodyne_model::case::CaseKey;
use inodyne_model::command::{CommandSpec, Stdin};
use inodyne_model::finding::Finding;
use inodyne_model::place::Place;
use inodyne_model::recording::Recording;
use inodyne_model::run::{CacheState, Exit};

use super::{ProveArguments, settings, split};

/// One way to run the command.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// The place, made anew for each run.
    pub place: PlaceSpec,
    /// What is put into it first.
    pub data: Option<String>,
    /// State of the caches before the run.
    pub cache: CacheState,
    /// What runs, and under which conditions.
    pub command: CommandSpec,
    /// How it is expected to end: as in the recording.
    pub exit: Exit,
    /// Whether it was seen to change nothing.
    pub only_reads: bool,
}

/// Both ways, and what the difference is.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// As in the recording.
    pub base: Variant,
    /// With the cure.
    pub cured: Variant,
    /// The difference in words.
    pub how: String,
}

/// The command as it was, with the user's changes.
///
/// # Errors
/// It cannot be run again; a line says why.
pub fn base(recording: &Recording, finding: &Finding, arguments: &ProveArguments) -> Result<Variant, String> {
    let place = recording.places.get(finding.place).ok_or("its place is not in the recording")?;
    let command = recording.commands.get(finding.command).ok_or("its command is not in the recording")?;
    let trace = recording.traces.get(finding.trace).ok_or("its trace is not in the recording")?;
    if command.argv.is_empty() {
        return Err("it is of a window of processes that ran already, and cannot be run again".to_owned());
    }
    let same = |run: &&inodyne_model::run::Run| run.traced && run.key() == trace.key();
    let command = CommandSpec {
        prepare: arguments.prepare.clone().map(Into::into).or_else(|| command.prepare.clone()),
        user: arguments.user.clone().or_else(|| command.user.clone()),
        // What it read is not in the recording.
        stdin: Stdin::Empty,
        ..command.clone()
    };
    // Another directory, variable or script would be used instead, not only another word.
    let cwd = command.cwd.iter().map(|cwd| cwd.as_os_str());
    let is_lossy = |word: &OsStr| word.to_string_lossy().contains(char::REPLACEMENT_CHARACTER);
    let words = command.words().chain(command.env.keys()).map(OsString::as_os_str);
    if words.chain(cwd).any(is_lossy) {
        return Err("its command, or what runs around it, is not all UTF-8, which a recording does not keep".to_owned());
    }
    Ok(Variant {
        place: place_to_make(place, arguments)?,
        data: arguments.data.clone().or_else(|| place.data.clone()),
        cache: trace.cache,
        command,
        exit: recording.runs.iter().find(same).map_or(Exit::Code(0), |run| run.exit),
        only_reads: split::only_reads(trace),
    })
}

/// A command may be an `rm`: it is run again only in places made for it.
fn place_to_make(place: &Place, arguments: &ProveArguments) -> Result<PlaceSpec, String> {
    let parse = |text: &str| text.parse::<PlaceSpec>().map_err(|error: LabError| error.to_string());
    if let Some(place) = &arguments.place {
        let spec = parse(place)?;
        return match spec.is_made() {
            true => Ok(spec),
            false => Err(format!("{place} is there already: nothing is tried in it")),
        };
    }
    // A recording is a file like any other: its claim that a directory was made here is not believed.
    let described = place.spec.as_ref().filter(|_| place.made_here).map(|spec| parse(spec)).transpose()?;
    match described.filter(PlaceSpec::is_all_made) {
        Some(spec) => settings::check(&spec).map(|()| spec),
        None => Err(format!(
            "it was found in {}, where nothing is tried: give --at a place to make (such as ext4), and --data what to put into it",
            place.path.display()
        )),
    }
}

impl Trial {
    /// Pairs of untraced runs in places made anew, after one of each that does not count: from then on, programs and libraries are in
    /// memory, or thrown out as always.
    ///
    /// # Errors
    /// What should be put into a place makes no sense.
    pub fn experiment(&self, pairs: u32, seed: u64) -> Result<Experiment, String> {
        let setup = |variant: &Variant| -> Result<PlaceSetup, String> {
            let data = variant.data.as_ref().map(|data| data.parse::<DataSpec>()).transpose();
            Ok(PlaceSetup { spec: variant.place.clone(), data: data.map_err(|error| error.to_string())? })
        };
        let case = |at: usize, variant: &Variant| CaseKey::new(at, at, variant.cache);
        Ok(Experiment {
            places: vec![setup(&self.base)?, setup(&self.cured)?],
            commands: vec![self.base.command.clone(), self.cured.command.clone()],
            groups: vec![Group { cases: vec![case(0, &self.base), case(1, &self.cured)] }],
            repetitions: Repetitions { warmup: 1, untraced: pairs, ..Repetitions::default() },
            seed,
            fresh: true,
            timeout: None,
            durable: false,
            number: None,
            margin: None,
            expected_exit: Some(self.base.exit),
            keep_cut_short: false,
            race: None,
            output_once: false,
        })
    }
}

/// The times of each block, without the cure and with it, from a recording of [`Trial::experiment`].
pub fn pairs(recording: &Recording) -> Vec<(Nanos, Nanos)> {
    let of = |place: usize, block: u32| {
        recording.runs.iter().find(|run| run.place == place && run.block == block).map(|run| run.wall_ns)
    };
    let blocks = recording.runs.iter().map(|run| run.block + 1).max().unwrap_or(0);
    (0..blocks).filter_map(|block| of(0, block).zip(of(1, block))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments() -> ProveArguments {
        ProveArguments {
            recording: "x".into(),
            finding: None,
            instead: None,
            pairs: 1,
            place: None,
            data: None,
            prepare: None,
            user: None,
            output: None,
            seed: 1,
            yes: true,
        }
    }

    #[test]
    fn what_a_recording_does_not_keep_is_not_run_as_something_else() {
        let mut recording = inodyne_model::sample::find_recording();
        inodyne_analyse::explain(&mut recording);
        let lossy = || OsString::from("caf\u{fffd}");
        let find = CommandSpec::new(vec!["find".into()]);
        let refused = |command: CommandSpec, prepare: Option<&str>| {
            let recording = Recording { commands: vec![command], ..recording.clone() };
            let arguments =
                ProveArguments { place: Some("ext4".to_owned()), prepare: prepare.map(str::to_owned), ..arguments() };
            let tried = base(&recording, &recording.findings[0], &arguments);
            tried.is_err_and(|told| told.contains("not all UTF-8"))
        };
        let prepared = CommandSpec { prepare: Some(lossy()), ..find.clone() };
        assert!(!refused(find.clone(), None) && !refused(prepared.clone(), Some("true")));
        for command in [
            prepared,
            CommandSpec { cleanup: Some(lossy()), ..find.clone() },
            CommandSpec { cwd: Some(lossy().into()), ..find.clone() },
            CommandSpec { env: [("WORD".into(), lossy())].into(), ..find.clone() },
            CommandSpec::new(vec!["ls".into(), lossy()]),
        ] {
            assert!(refused(command.clone(), None), "{command:?}");
        }
    }

    #[test]
    fn only_what_is_made_here_is_made_again() {
        let place = |spec: &str, made_here| Place { spec: Some(spec.to_owned()), made_here, ..Place::default() };
        let arguments = arguments();
        let is_tried = |spec: &str, made_here| place_to_make(&place(spec, made_here), &arguments).is_ok();
        assert!(is_tried("ext4:size=1G", true) && is_tried("overlay:lower=xfs", true) && !is_tried("ext4", false));
        for spec in ["/etc", "bind:/etc", "overlay:lower=/etc", "bind:bind:/etc", "overlay:lower=[bind:/etc]"] {
            assert!(!is_tried(spec, true), "{spec}");
        }
    }
}
