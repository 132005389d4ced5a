//! `inodyne diff`, `inodyne run --baseline` and gates: counts decide whatever else the machine does, and nothing fails that did not change.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use inodyne_model::count::Grouped;
use serde_json::Value;
use support::{Outcome, inodyne, machine, run, scratch};

/// A program that asks for as many files that are not there as its last argument says, besides what any start of Python does.
const PROGRAM: &str = "import os, sys, json, email.message
for n in range(int(sys.argv[1])):
    try:
        os.stat(f'/tmp/inodyne-none-{n}')
    except FileNotFoundError:
        pass
";

/// How often the same is tried.
const TRIALS: usize = 20;

/// Programs that keep every CPU and the file system busy, ended when this value is dropped.
struct Busy(Vec<Child>);

impl Busy {
    fn new(directory: &Path) -> Busy {
        let script = "while :; do mkdir -p busy.$1 && : >busy.$1/x && ls -lR /usr/include >busy.$1/y 2>/dev/null; rm -rf busy.$1; done";
        let one = |number: usize| {
            let mut shell = Command::new("sh");
            shell.args(["-c", script, "sh", &number.to_string()]).current_dir(directory);
            shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a shell")
        };
        Busy((0..3).map(one).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Records the program with so many planted calls.
fn record(directory: &Path, name: &str, planted: usize, options: &[&str]) -> PathBuf {
    let recording = directory.join(name);
    program(inodyne().args(["run", "-o"]).arg(&recording).args(options), directory, planted).ended_with(0);
    recording
}

/// Runs an `inodyne run` of the program. Python's files of compiled code are neither looked at by date nor written.
fn program(command: &mut Command, directory: &Path, planted: usize) -> Outcome {
    let python = ["--", "python3", "-I", "-B", "-c", PROGRAM, &planted.to_string()];
    run(command.args(python).current_dir(directory))
}

fn diff(old: &Path, new: &Path, options: &[&str]) -> Outcome {
    run(inodyne().arg("diff").args([old, new]).args(options))
}

#[test]
fn planted_calls_fail_a_gate_every_time_and_an_unchanged_program_never() {
    let (_machine, scratch) = (machine(), scratch());
    let directory = scratch.path();
    let baseline = record(directory, "baseline.inodyne", 0, &[]);
    let _busy = Busy::new(directory);
    let gates = ["--fail-if", "calls(newfstatat) > +5%", "--fail-if", "errors(newfstatat) > +20"];
    for trial in 0..TRIALS {
        for (planted, code) in [(200, 1), (0, 0)] {
            let new = record(directory, "new.inodyne", planted, &[]);
            let outcome = diff(&baseline, &new, &gates);
            assert_eq!(
                outcome.code(),
                Some(code),
                "trial {trial}, {planted} planted: {}\n{}",
                outcome.stderr,
                outcome.text()
            );
            let failed: Vec<&str> = outcome.stderr.lines().collect();
            assert_eq!(failed.len(), if planted > 0 { 2 } else { 0 }, "{failed:?}");
            assert!(
                failed.iter().all(|line| line.starts_with("inodyne: FAILED: ") && line.contains(" → ")),
                "{failed:?}"
            );
        }
    }
}

#[test]
fn a_run_is_held_against_its_baseline() {
    let (_machine, scratch) = (machine(), scratch());
    let directory = scratch.path();
    let baseline = record(directory, "baseline.inodyne", 0, &["--paths"]);
    let against = |planted: usize, options: &[&str]| {
        let mut command = inodyne();
        command.args(["run", "--paths", "--baseline"]).arg(&baseline).args(options);
        program(&mut command, directory, planted)
    };
    let failed = against(200, &["--fail-if", "paths > +50", "-o", "new.inodyne"]).ended_with(1);
    assert!(failed.stderr.contains("Against the baseline\n"), "{}", failed.stderr);
    let line = failed.stderr.lines().last().expect("a line");
    assert!(line.starts_with("inodyne: FAILED: paths > +50: "), "{line}");
    assert!(directory.join("new.inodyne").exists() && failed.stderr.contains("/tmp/inodyne-none-"));
    against(200, &[]).ended_with(0);
    against(0, &["--fail-if", "paths > +50"]).ended_with(0);
    // If the report is in a file format, it stays alone on standard output.
    let json = against(200, &["--fail-if", "calls(newfstatat) > +199", "--format", "json"]).ended_with(1);
    json.recording();
    let mut command = inodyne();
    command.args(["run", "--baseline"]).arg(&baseline).args(["--fail-if", "calls > 0", "--", "sh", "-c", "exit 7"]);
    run(&mut command).ended_with(7);
}

#[test]
fn all_forms_say_the_same_and_files_say_which() {
    let (_machine, scratch) = (machine(), scratch());
    let directory = scratch.path();
    let old = record(directory, "old.inodyne", 0, &["-n", "6"]);
    let new = record(directory, "new.inodyne", 200, &["-n", "6"]);
    let json = diff(&old, &new, &["--format", "json"]).ended_with(0).text();
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let case = &json["cases"][0];
    let calls = case["calls"].as_array().expect("calls");
    let stat = calls.iter().find(|call| call["name"] == "newfstatat").expect("it was called");
    let side = |side: &str| stat["calls"][side].as_u64().expect("a count");
    assert_eq!(side("new") - side("old"), 200);
    assert_eq!(
        stat["errors_by_errno"]["ENOENT"]["new"],
        stat["errors_by_errno"]["ENOENT"]["old"].as_u64().unwrap_or(0) + 200
    );
    assert_eq!((&case["times"][0]["pairs"], &case["times"][0]["traced"]), (&6.into(), &false.into()));
    let text = diff(&old, &new, &[]).ended_with(0).text();
    let is_row = |line: &&str| line.trim_start().starts_with("newfstatat ") && line.contains("+200");
    let row: Vec<&str> = text.lines().find(is_row).expect("its row").split_whitespace().collect();
    let written = |count: u64| Grouped(count).to_string();
    assert_eq!(row[1..4], [written(side("old")), written(side("new")), "+200".to_owned()]);
    assert!(text.contains("not interleaved"), "{text}");
    for (name, begins) in
        [("x.html", "<!DOCTYPE html>"), ("x.md", ""), ("x.xml", "<?xml"), ("x.json", "{"), ("x.txt", "")]
    {
        let file = directory.join(name);
        let gate = ["--fail-if", "calls(newfstatat) > +5%"];
        let outcome = run(inodyne().arg("diff").args([&old, &new]).args(gate).arg("-o").arg(&file)).ended_with(1);
        let written = fs::read_to_string(&file).expect("it was written");
        assert!(written.starts_with(begins) && written.contains("newfstatat"), "{name}: {written}");
        assert!(outcome.stdout.is_empty() && outcome.stderr.lines().count() == 1, "{}", outcome.stderr);
    }
    // The verdict that the runs allow, and nothing where there is none to be had.
    let wall = diff(&old, &new, &["--fail-if", "wall > +900%"]).ended_with(0);
    assert!(wall.text().contains("held"), "{}", wall.text());
}

#[test]
fn nothing_differs_between_a_recording_and_itself() {
    let (_machine, scratch) = (machine(), scratch());
    let recording = record(scratch.path(), "one.inodyne", 3, &["--paths"]);
    let gates =
        ["--fail-if", "calls > +0", "--fail-if", "errors > +0", "--fail-if", "bytes > +0", "--fail-if", "paths > +0"];
    let outcome = diff(&recording, &recording, &gates).ended_with(0);
    assert!(outcome.text().contains("Calls, errors, findings and paths are the same."), "{}", outcome.text());
    assert_eq!(outcome.stderr, "");
}

#[test]
fn what_cannot_be_held_against_each_other_is_refused_in_one_line() {
    let (_machine, scratch) = (machine(), scratch());
    let directory = scratch.path();
    let good = record(directory, "good.inodyne", 0, &[]);
    let whole = fs::read(&good).expect("it was written");
    let (damaged, foreign) = (directory.join("damaged.inodyne"), directory.join("foreign.inodyne"));
    fs::write(&damaged, &whole[..whole.len() / 2]).expect("a file");
    fs::write(&foreign, "<html>not a recording</html>").expect("a file");
    for bad in [&damaged, &foreign, &directory.join("none.inodyne")] {
        let name = bad.file_name().expect("a name").to_string_lossy().into_owned();
        for [old, new] in [[bad, &good], [&good, bad]] {
            assert!(diff(old, new, &[]).failed_in_one_line(2).contains(&name));
        }
        let mut command = inodyne();
        let refused =
            run(command.args(["run", "--baseline"]).arg(bad).args(["--", "touch", "ran"]).current_dir(directory));
        assert!(refused.failed_in_one_line(2).contains(&name) && !directory.join("ran").exists());
    }
    for (gate, says) in [
        ("calls > 5%", "column 9: a percentage is a change: write +5%"),
        ("finding(sync-bond)", "column 9: no finding is called sync-bond"),
        ("calls(opneat) > +5%", "column 7: no system call is called opneat: openat may be meant"),
        ("", "column 1: write calls"),
    ] {
        let refused = diff(&good, &good, &["--fail-if", gate]).failed_in_one_line(2);
        assert!(refused.contains(says), "{refused}");
    }
    let alone = run(inodyne().args(["run", "--fail-if", "calls > +5%", "--", "true"])).failed_in_one_line(2);
    assert!(alone.contains("--baseline"), "{alone}");
    let refused = diff(&good, &good, &["--section", "wall"]).failed_in_one_line(2);
    assert!(refused.contains("folded"), "{refused}");
}

#[test]
fn a_gate_that_nothing_was_measured_for_fails() {
    let (_machine, scratch) = (machine(), scratch());
    let old = record(scratch.path(), "old.inodyne", 0, &[]);
    let new = record(scratch.path(), "new.inodyne", 0, &["--no-trace"]);
    let line = diff(&old, &new, &["--fail-if", "calls > +5%"]).failed_in_one_line(1);
    assert!(line.contains("NOT MEASURED") && line.contains("the new recording has no trace"), "{line}");
    let undecided = diff(&old, &new, &["--fail-if", "wall > +10%"]).ended_with(0);
    assert!(undecided.stderr.starts_with("inodyne: undecided: wall > +10%"), "{}", undecided.stderr);
}
