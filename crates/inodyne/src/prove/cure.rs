//! Applies a finding's typed cures to the way in which its command was run.
//!
//! What can be changed is in the finding ([`Change`]); how to make a place differently is the lab's business. This module has only what
//! concerns a trial: where it starts from, which of several cures is tried, and why none can be.

use std::ffi::{OsStr, OsString};

use inodyne_lab::PlaceSpec;
use inodyne_model::command::CommandSpec;
use inodyne_model::cure::{CacheChange, Change, CommandChange, PlaceChange};
use inodyne_model::finding::Finding;
use inodyne_model::recording::Recording;
use inodyne_model::run::CacheState;

use super::variant::{self, Trial, Variant};
use super::{ProveArguments, split};

/// Reads all contents, so that they are in memory.
const READ_ALL: &str = "find . -type f -exec cat {} + >/dev/null";

/// A script, for another one to stand behind it: wherever it goes and however it ends, what follows begins in the place, and only where it
/// has succeeded. A shell heeds `set -e` only where nothing asks how the whole has ended (`|| exit`), and wants a command between parentheses.
fn apart(script: &OsStr) -> OsString {
    let mut whole = OsString::from("(\n:\n");
    whole.push(script);
    whole.push("\n)\ncode=$?; [ $code = 0 ] || exit $code\n");
    whole
}

/// What to try for this finding: the first of its cures that can be applied where it was found; one line that says why if none can be.
pub fn trial(recording: &Recording, finding: &Finding, arguments: &ProveArguments) -> Result<Trial, String> {
    if finding.bound {
        return Err("it names a limit and has no cure whose effect can be predicted".to_owned());
    }
    let base = variant::base(recording, finding, arguments)?;
    let instead = arguments.instead.iter().map(|script| Change::Command(CommandChange::Instead(script.clone())));
    let instead: Vec<Change> = instead.collect();
    let of_finding = finding.cures.iter().map(|cure| &cure.change);
    let changes: Vec<&Change> = if instead.is_empty() { of_finding.collect() } else { instead.iter().collect() };
    let mut reasons = Vec::new();
    for change in changes {
        match base.after(change) {
            Ok(cured) => return Ok(Trial { how: in_words(change, &base, &cured), base, cured }),
            Err(reason) => reasons.extend(reason),
        }
    }
    if reasons.is_empty() {
        reasons.push(format!("its cure cannot be applied to {} by itself", base.place));
    }
    Err(format!("{}: use --instead to give a command that does better", reasons.join("; ")))
}

impl Variant {
    /// The same after a change; otherwise why it cannot be changed that way, if there is more to say than that.
    fn after(&self, change: &Change) -> Result<Variant, Option<String>> {
        let at = |place: Result<PlaceSpec, inodyne_lab::ChangeError>| match place {
            Ok(place) => Ok(Variant { place, ..self.clone() }),
            Err(error) => Err(Some(error.to_string())),
        };
        match change {
            Change::Place(change) => at(self.place.changed(change)),
            Change::Setting { file, value } => at(self.place.with_setting(file, value)),
            Change::Cache(CacheChange::Warm) => Ok(Variant { cache: CacheState::Warm, ..self.clone() }),
            Change::Cache(CacheChange::Contents) => {
                let mut prepare = self.command.prepare.as_deref().map(apart).unwrap_or_default();
                prepare.push(READ_ALL);
                let command = CommandSpec { prepare: Some(prepare), ..self.command.clone() };
                Ok(Variant { cache: CacheState::Warm, command, ..self.clone() })
            }
            Change::Command(CommandChange::SideBySide { processes }) => {
                let words = self.command.argv.iter().map(|word| word.to_string_lossy().into_owned());
                let argv =
                    split::over(&words.collect::<Vec<_>>(), *processes as usize, self.only_reads).map_err(Some)?;
                Ok(self.with_argv(argv))
            }
            Change::Command(CommandChange::Instead(script)) => {
                Ok(self.with_argv(["/bin/sh", "-c", script].map(str::to_owned).to_vec()))
            }
            Change::Advice { because } => Err(because.clone()),
        }
    }

    /// Another command under the same conditions.
    fn with_argv(&self, argv: Vec<String>) -> Variant {
        let CommandSpec { label, argv, .. } = CommandSpec::new(argv.into_iter().map(OsString::from).collect());
        Variant { command: CommandSpec { label, argv, ..self.command.clone() }, ..self.clone() }
    }
}

/// What is tried, in words.
fn in_words(change: &Change, base: &Variant, cured: &Variant) -> String {
    match change {
        Change::Place(PlaceChange::Over(options)) if options == "volatile" => {
            "syncs ignored, by a volatile overlay".to_owned()
        }
        Change::Place(_) | Change::Setting { .. } => format!("{} instead of {}", cured.place, base.place),
        Change::Cache(CacheChange::Warm) => "warm caches instead of those of the recording".to_owned(),
        Change::Cache(CacheChange::Contents) => "contents in memory instead of the caches of the recording".to_owned(),
        Change::Command(CommandChange::SideBySide { processes }) => {
            format!("{processes} processes side by side, each with its part of the files")
        }
        Change::Command(CommandChange::Instead(script)) => format!("instead: {script}"),
        Change::Advice { .. } => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use inodyne_model::run::Exit;

    use super::*;

    fn variant(place: &str, command: &str) -> Variant {
        Variant {
            place: place.parse().unwrap(),
            data: None,
            cache: CacheState::Cold,
            command: CommandSpec::new(command.split(' ').map(OsString::from).collect()),
            exit: Exit::Code(0),
            only_reads: false,
        }
    }

    #[test]
    fn each_kind_of_change_changes_what_it_is_about_and_nothing_else() {
        let base = variant("ext4:mkfs=-O ^filetype", "cat a/1 a/2 a/3 a/4");
        let after = |change: &Change| base.after(change).unwrap();
        let typed = after(&Change::Place(PlaceChange::Feature("filetype".to_owned())));
        assert_eq!(typed, Variant { place: "ext4:mkfs=-O filetype".parse().unwrap(), ..base.clone() });
        let warm = after(&Change::Cache(CacheChange::Warm));
        assert_eq!(warm, Variant { cache: CacheState::Warm, ..base.clone() });
        let command = CommandSpec { prepare: Some("true".into()), ..base.command.clone() };
        let prepared = Variant { command, ..base.clone() };
        let read = prepared.after(&Change::Cache(CacheChange::Contents)).unwrap();
        let mut prepare = apart("true".as_ref());
        prepare.push(READ_ALL);
        assert_eq!(read.command.prepare, Some(prepare));
        let two = after(&Change::Command(CommandChange::SideBySide { processes: 2 }));
        assert_eq!((&two.place, two.command.argv[1].to_str()), (&base.place, Some("-c")));
        let setting = Change::Setting { file: "/sys/block/LOOP/queue/read_ahead_kb".to_owned(), value: "0".to_owned() };
        assert!(after(&setting).place.to_string().ends_with("set=/sys/block/LOOP/queue/read_ahead_kb=0"));
    }

    /// What reads all contents is a `find` that tells where it is called.
    #[test]
    fn contents_are_read_in_the_place_after_what_prepares_has_succeeded() {
        let scratch = tempfile::tempdir().unwrap();
        let [place, programs, told] = ["place", "programs", "told"].map(|name| scratch.path().join(name));
        let here = |script: &str| {
            let mut shell = std::process::Command::new("/bin/sh");
            shell.args(["-c", script]).current_dir(scratch.path()).env("TOLD", &told);
            shell
        };
        let make = "mkdir place programs; printf '#!/bin/sh\npwd -P >\"$TOLD\"\n' >programs/find; chmod +x programs/*";
        assert!(here(make).status().unwrap().success());
        let path = format!("{}:/usr/bin:/bin", programs.display());
        let place = place.canonicalize().unwrap();
        let ends = |prepare: Option<&str>| {
            let base = variant("ext4", "cat a");
            let command = CommandSpec { prepare: prepare.map(OsString::from), ..base.command.clone() };
            let read = Variant { command, ..base }.after(&Change::Cache(CacheChange::Contents)).unwrap();
            let script = read.command.prepare.unwrap().into_string().unwrap();
            let code = here(&script).current_dir(&place).env("PATH", &path).status().unwrap().code();
            let read = std::fs::read_to_string(&told).is_ok_and(|told| told.trim() == place.to_str().unwrap());
            let _ = std::fs::remove_file(&told);
            (code, read)
        };
        let fine = ["", "# nothing", "mkdir -p x && cd x", "cd / # there", "exit 0", "cat <<END >there\nEND"];
        for prepare in std::iter::once(None).chain(fine.map(Some)) {
            assert_eq!(ends(prepare), (Some(0), true), "{prepare:?}");
        }
        let ends = ["false", "exit 7", "set -e; false; true"].map(|prepare| ends(Some(prepare)));
        assert_eq!(ends, [(Some(1), false), (Some(7), false), (Some(1), false)]);
    }

    /// A recording may have been made with caches as they were: then `prove` begins with those.
    #[test]
    fn what_is_tried_does_not_say_that_caches_were_cold() {
        let base = Variant { cache: CacheState::AsIs, ..variant("ext4", "find .") };
        for change in [CacheChange::Warm, CacheChange::Contents].map(Change::Cache) {
            let words = in_words(&change, &base, &base.after(&change).unwrap());
            assert!(!words.contains("cold"), "{words}");
        }
    }

    #[test]
    fn what_cannot_be_changed_says_why() {
        let base = variant("ext4", "find .");
        let refused = |change: &Change| base.after(change).unwrap_err();
        assert_eq!(refused(&Change::advice()), None);
        assert_eq!(refused(&Change::Place(PlaceChange::Below)).as_deref(), Some("ext4 is not an overlay"));
        let two = Change::Command(CommandChange::SideBySide { processes: 2 });
        assert!(refused(&two).unwrap().contains("does not end in a list of files"));
    }
}
