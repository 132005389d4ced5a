//! `inodyne study`: the built-in studies come out as they expect, and what cannot work is said before anything happens.
//!
//! Inputs are made in the target directory, so that they are fetched once: a first run needs apt's mirrors and PyPI.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use inodyne_model::recording::Recording;
use nix::sys::signal::{Signal, kill};
use support::state::{Moments, State};
use support::{Outcome, eventually, inodyne, load, machine, run, scratch, start};

fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

/// `inodyne study …` with a cache of the tests' own.
fn study(arguments: &[&str]) -> Command {
    let mut command = inodyne();
    command.env("XDG_CACHE_HOME", cache()).arg("study").args(arguments);
    command
}

fn quick(name: &str) -> Recording {
    let outcome = run(study(&["run", name, "--quick", "--format", "json"]).env("COLUMNS", "160"));
    if outcome.code() != Some(0) {
        let recording = outcome.recording();
        let failed: Vec<_> = recording.study.iter().flat_map(|study| study.failed()).collect();
        panic!("{name}: {:?}\n{}\n{failed:#?}", outcome.code(), outcome.stderr);
    }
    outcome.recording()
}

/// Everything that its quick form expects, holds. How many points these are is in the files.
fn passes(name: &str) {
    let _machine = machine();
    let recording = quick(name);
    let study = recording.study.expect("it says what it is");
    assert_eq!((study.name.as_str(), study.quick), (name, true));
    assert!(!study.expectations.is_empty() && study.expectations.iter().all(|expectation| expectation.held));
    // What belongs to different parts is never compared with each other.
    for comparison in &recording.comparisons {
        let part = |place: usize| study.parts.iter().position(|part| part.places.contains(&place));
        assert_eq!(part(comparison.cases.a.place), part(comparison.cases.b.place));
    }
}

#[test]
fn find_dtype_is_as_expected() {
    passes("find-dtype");
}

#[test]
fn home_server_is_as_expected() {
    passes("home-server");
}

#[test]
fn rm_tree_is_as_expected() {
    passes("rm-tree");
}

#[test]
fn ext4_vs_overlay_is_as_expected() {
    passes("ext4-vs-overlay");
}

#[test]
fn all_studies_are_listed_and_can_be_checked_and_printed() {
    let list = run(&mut study(&["list"])).ended_with(0).text();
    for name in ["find-dtype", "home-server", "rm-tree", "ext4-vs-overlay"] {
        assert!(list.contains(name), "{list}");
        let file = run(&mut study(&["show", name])).ended_with(0).text();
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies").join(format!("{name}.toml"));
        assert_eq!(file, fs::read_to_string(repository).expect("it is in the repository"));
        assert!(run(&mut study(&["check", name])).ended_with(0).text().starts_with(&format!("{name}: ")));
    }
}

/// Two parts of which one needs an input, in places that take no time.
const SMALL: &str = r#"title = "small"
[[input]]
name = "word"
script = "word.sh"
[[place]]
name = "a"
at = "tmpfs"
[[place]]
name = "b"
at = "tmpfs"
[[part]]
name = "first"
places = ["a", "b"]
data = "tree:dirs=2,files=3,bytes=1"
runs = 2
commands = [
    { name = "word", run = "grep -q right {word}/word" },
    { name = "absent", run = "no-such-program", if_found = "no-such-program" },
]
[[part]]
name = "second"
places = ["b", "a"]
compare = "places"
runs = 2
traced = 0
commands = [{ name = "sleep", run = "sleep 0.0471" }]
[[expect]]
says = "grep opens the word"
what = "traces[command=word].syscalls[name=openat].calls"
min = 1
[[expect]]
what = "traces[command=absent].wall_ns"
min = 1
"#;

/// The study and its script in a directory.
fn small(directory: &Path, text: &str, script: &str) -> String {
    fs::write(directory.join("small.toml"), text).expect("a file");
    fs::write(directory.join("word.sh"), script).expect("a file");
    directory.join("small.toml").display().to_string()
}

const WORD: &str = "echo right >word; printf x >>\"$TRACE\"\n";

#[test]
fn a_study_of_ones_own_has_its_parts_in_one_recording() {
    let (_machine, scratch) = (machine(), scratch());
    let file = small(scratch.path(), SMALL, WORD);
    let trace = scratch.path().join("made");
    let recording = scratch.path().join("small.inodyne");
    let again = || -> Outcome {
        let mut command = study(&["run", &file, "--format", "json", "-o"]);
        command.arg(&recording).env("TRACE", &trace).env("XDG_CACHE_HOME", scratch.path());
        run(&mut command).ended_with(0)
    };
    let first = again().recording();
    let study = first.study.as_ref().expect("it says what it is");
    let parts: Vec<_> =
        study.parts.iter().map(|part| (part.name.as_str(), &part.places[..], &part.commands[..])).collect();
    assert_eq!(parts, [("first", &[0, 1][..], &[0][..]), ("second", &[2, 3][..], &[1][..])]);
    assert_eq!(study.parts[0].left_out, ["absent: no-such-program is not installed"]);
    // What is about a command that is not here is not checked.
    assert_eq!(study.expectations.iter().map(|e| e.says.as_str()).collect::<Vec<_>>(), ["grep opens the word"]);
    assert_eq!(first.runs.len(), 2 * 3 + 2 * 2);
    assert_eq!(first, load(&recording).expect("it was kept"));
    // The input is made once.
    again();
    assert_eq!(fs::read_to_string(&trace).expect("the script ran"), "x");
    let shown = run(inodyne().arg("show").arg(&recording)).ended_with(0).text();
    assert!(shown.starts_with("small: small") && shown.contains("true   grep opens the word"), "{shown}");
}

#[test]
fn what_does_not_hold_is_said_with_what_was_seen() {
    let (_machine, scratch) = (machine(), scratch());
    let wrong = SMALL.replace("min = 1\n[[expect]]", "min = 0.5\nmax = 0.75\n[[expect]]");
    let file = small(scratch.path(), &wrong, "echo right >word\n");
    let outcome = run(study(&["run", &file]).env("XDG_CACHE_HOME", scratch.path()));
    assert!(outcome.text().contains("FALSE  grep opens the word: expected 0.5 to 0.75, seen "), "{}", outcome.text());
    let line = outcome.failed_in_one_line(1);
    assert!(line.starts_with("1 of 1 expectations does not hold: grep opens the word: expected 0.5 to 0.75"), "{line}");
}

#[test]
fn an_input_that_cannot_be_made_is_said_in_the_words_of_its_script() {
    let scratch = scratch();
    let file = small(scratch.path(), SMALL, "echo one; echo the network is gone; exit 9\n");
    let line = run(study(&["run", &file]).env("XDG_CACHE_HOME", scratch.path())).failed_in_one_line(3);
    assert!(line.starts_with("the input word cannot be made: the network is gone (all of it: "), "{line}");
    let left: Vec<_> = fs::read_dir(scratch.path().join("inodyne")).expect("its cache").flatten().collect();
    assert_eq!(left.iter().map(|entry| entry.file_name()).collect::<Vec<_>>(), ["word.log"]);
}

#[test]
fn mistakes_are_said_before_anything_happens() {
    let scratch = scratch();
    let wrong = small(scratch.path(), &SMALL.replace("runs = 2", "runs = 0"), WORD);
    let outcome = run(&mut study(&["run", &wrong])).ended_with(2);
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    assert_eq!(
        lines,
        [
            format!("inodyne: {wrong}:15:8: runs must be 1 or more"),
            format!("inodyne: {wrong}:24:8: runs must be 1 or more")
        ]
    );
    assert!(run(&mut study(&["check", &wrong])).ended_with(2).stdout.is_empty());
    let names = run(&mut study(&["run", "find-types"])).failed_in_one_line(2);
    assert!(names.contains("no study 'find-types': there are find-dtype, "), "{names}");
    assert!(run(&mut study(&["run", "./absent.toml"])).failed_in_one_line(2).contains("./absent.toml: No such file"));
    let odd = scratch.path().join("odd.toml");
    let told = |bytes: &[u8]| {
        fs::write(&odd, bytes).expect("a file");
        run(study(&["check"]).arg(&odd)).failed_in_one_line(2)
    };
    assert!(told(b"").ends_with("odd.toml:1:1: missing field `title`"), "{}", told(b""));
    let line = told(b"title = \"x\"\nabout = \"\xc3\xa4\xff\"\n");
    assert!(line.ends_with("odd.toml:2:11: the text is not UTF-8 from here on"), "{line}");
    let line = run(&mut study(&["check", "/dev/zero"])).failed_in_one_line(2);
    assert!(line.contains("larger than 1 MiB"), "{line}");
}

/// The first part removes the directory of the recording.
#[test]
fn a_study_that_cannot_be_saved_goes_on_and_is_kept_elsewhere() {
    let (_machine, scratch) = (machine(), scratch());
    let gone = scratch.path().join("gone");
    fs::create_dir(&gone).expect("made");
    let removing = format!("sh -c 'grep -q right {{word}}/word && rm -rf {}'", gone.display());
    let text = SMALL.replace("grep -q right {word}/word", &removing);
    let file = small(scratch.path(), &text, "echo right >word\n");
    let mut command = study(&["run", &file, "--format", "json", "-o"]);
    command.arg(gone.join("x.inodyne")).env("XDG_CACHE_HOME", scratch.path());
    let outcome = run(&mut command).ended_with(3);
    let runs = outcome.recording().runs.len();
    assert_eq!(runs, 2 * 3 + 2 * 2, "both parts");
    let (_, elsewhere) = outcome.stderr.trim_end().rsplit_once("the recording is in ").expect("it says where");
    assert!(outcome.stderr.lines().filter(|line| line.contains("the recording is in ")).count() == 1);
    assert_eq!(load(Path::new(elsewhere)).expect("a recording").runs.len(), runs);
    fs::remove_file(elsewhere).expect("it is there");
}

/// What earlier parts have measured is kept when a later one is disturbed.
#[test]
fn an_interrupted_study_keeps_what_was_measured_and_leaves_nothing() {
    let (_machine, scratch) = (machine(), scratch());
    let images = scratch.path().join("images");
    fs::create_dir(&images).expect("a directory");
    let slow = SMALL.replace("runs = 2\ntraced = 0", "runs = 500\ntraced = 0").replace("tmpfs", "ext4:size=64M");
    let file = small(scratch.path(), &slow, "echo right >word\n");
    let before = State::now(&images);
    let mut moments = Moments::new();
    for (number, signal) in [Signal::SIGINT, Signal::SIGKILL, Signal::SIGINT, Signal::SIGKILL].into_iter().enumerate() {
        let recording = scratch.path().join(format!("{number}.inodyne"));
        let mut command = study(&["run", &file, "-o"]);
        command.arg(&recording).env("XDG_CACHE_HOME", scratch.path()).env("INODYNE_SCRATCH", &images);
        let running = start(&mut command);
        let second = || load(&recording).is_ok_and(|r| r.study.is_some_and(|study| study.parts.len() == 2));
        assert!(eventually(second), "the second part never began");
        thread::sleep(Duration::from_millis(moments.below(300)));
        kill(running.pid(), signal).expect("it is there");
        let outcome = running.end();
        assert!(!outcome.status.success(), "{signal}: {}", outcome.stderr);
        assert!(eventually(|| State::now(&images) == before), "{signal}: {:?}", State::now(&images));
        let kept = load(&recording).expect("it is whole");
        assert!(
            kept.runs.iter().any(|run| run.command == 0) && kept.runs.iter().any(|run| run.command == 1),
            "{signal}"
        );
        assert!(kept.study.expect("a study").expectations.is_empty(), "nothing is held against half of it");
    }
}
