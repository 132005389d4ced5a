//! `inodyne run` by somebody who may not trace: strace collects, and what it cannot know is not said.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use inodyne_model::ledger::RowKind;
use inodyne_model::trace::Tracer;
use nix::sys::signal::{Signal, kill};
use support::programs::copy_for_everybody;
use support::{Counts, as_nobody, counts, inodyne, machine, prepare, run, scratch, start, strace_table};

/// Directories that the user nobody may search.
const PATH: &str = "/usr/bin:/bin";

/// A place of nobody's with a repository in it, and a copy of the program that everybody may run.
struct Home {
    scratch: tempfile::TempDir,
    program: PathBuf,
}

impl Home {
    fn new() -> Home {
        let scratch = scratch();
        let program = copy_for_everybody(scratch.path());
        prepare(
            scratch.path(),
            "mkdir place counts; chown 65534:65534 counts; cd place; git init -q; git config user.email a@b; git config user.name a
             mkdir one two; for i in 1 2 3 4 5; do echo $i >one/$i; echo $i >two/$i; done; git add .; git commit -qm all
             echo more >>one/1; chown -R 65534:65534 .",
        );
        Home { scratch, program }
    }

    fn place(&self) -> PathBuf {
        self.scratch.path().join("place")
    }

    /// The program as nobody; git leaves its index as it is.
    fn inodyne(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        for name in ["SUDO_UID", "SUDO_GID", "SUDO_USER", "LD_LIBRARY_PATH"] {
            command.env_remove(name);
        }
        command
            .args(arguments)
            .env("HOME", self.place())
            .env("LC_ALL", "C")
            .env("PATH", PATH)
            .env("GIT_OPTIONAL_LOCKS", "0")
            .current_dir(self.place());
        as_nobody(&mut command);
        command
    }
}

/// What strace itself counts.
fn strace_counts(home: &Home, argv: &[&str]) -> Counts {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-c", "-o", "../counts/log"]).args(argv).current_dir(home.place());
    strace
        .env("HOME", home.place())
        .env("LC_ALL", "C")
        .env("PATH", PATH)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env_remove("LD_LIBRARY_PATH");
    run(as_nobody(&mut strace)).ended_with(0);
    let text = fs::read_to_string(home.scratch.path().join("counts/log")).expect("a log");
    strace_table(&text)
}

#[test]
fn who_may_not_trace_gets_exact_counts_and_no_false_row() {
    let (_machine, home) = (machine(), Home::new());
    let argv = ["git", "status", "--porcelain"];
    let outcome = run(&mut home.inodyne(&[&["run", "--format", "json", "--"], &argv[..]].concat())).ended_with(0);
    let told: Vec<&str> = outcome.stderr.lines().filter(|line| line.starts_with("inodyne: ")).collect();
    assert!(
        matches!(told[..], [line] if line.contains("CAP_BPF") && line.contains("strace is used instead")),
        "{told:?}"
    );
    let recording = outcome.recording();
    let trace = &recording.traces[0];
    assert_eq!(trace.tracer, Tracer::Strace);
    let mut theirs = strace_counts(&home, &argv);
    // A call without end is no call to either, but strace -c counts it among those that it has begun.
    theirs.remove("exit_group");
    assert_eq!(counts(&recording), theirs);
    // Only what a log of calls can tell: the time of calls, between them, and waits for children.
    for row in &trace.ledger.rows {
        let is_known = matches!(row.kind, RowKind::InCall | RowKind::OutsideCalls | RowKind::Unexplained)
            || row.cause == Some(inodyne_model::cause::Cause::Child);
        assert!(is_known, "{row:?}");
    }
    assert_eq!(trace.ledger.rows.iter().map(|row| row.ns.0).sum::<u64>(), trace.ledger.wall_ns.0);
    assert!(trace.overhead.ns_per_call > 0.0 && trace.overhead.ratio > 1.0, "{:?}", trace.overhead);
    assert_eq!(fs::read_dir(home.place()).expect("a directory").count(), 3, "nothing is left there");
}

#[test]
fn the_command_ends_as_it_does_without_strace() {
    let (_machine, home) = (machine(), Home::new());
    let code = |script: &str| run(&mut home.inodyne(&["run", "--", "sh", "-c", script])).code();
    assert_eq!(code("exit 7"), Some(7));
    assert_eq!(code("kill -9 $$"), Some(137));
    let line = run(&mut home.inodyne(&["run", "--tracer", "strace", "--", "no-such-command"])).failed_in_one_line(127);
    assert!(line.contains("no-such-command"), "{line}");
    let line = run(&mut home.inodyne(&["run", "--", "./no-such-command"])).stderr;
    assert!(line.contains("no-such-command: "), "{line}");
    assert_eq!(run(&mut home.inodyne(&["run", "--", "./no-such-command"])).code(), Some(127));
    assert_eq!(run(&mut home.inodyne(&["run", "--", "/tmp"])).code(), Some(126));
    // Scripts that strace itself cannot execute.
    prepare(&home.place(), "echo 'echo $1; exit 6' >plain; echo '#!/no/such/shell' >lost; chmod 755 plain lost");
    let outcome = run(&mut home.inodyne(&["run", "--", "./plain", "a word"])).ended_with(6);
    assert_eq!(outcome.text(), "a word\n");
    let outcome = run(&mut home.inodyne(&["run", "--", "./lost"])).ended_with(127);
    assert!(outcome.stderr.contains("./lost: cannot execute: the interpreter"), "{}", outcome.stderr);
    // Its descriptors have the same numbers as without inodyne.
    let script = "exec 3</dev/null; ls /proc/self/fd";
    let numbers = |outcome: support::Outcome| {
        let text = outcome.ended_with(0).text();
        text.lines().filter(|line| line.parse().is_ok_and(|number: u32| number < 500)).collect::<Vec<_>>().join(" ")
    };
    let traced = numbers(run(&mut home.inodyne(&["run", "--", "sh", "-c", script])));
    assert_eq!(traced, numbers(run(&mut home.inodyne(&["run", "--no-trace", "--", "sh", "-c", script]))));
}

#[test]
fn a_signal_is_passed_on_to_the_command() {
    let (_machine, home) = (machine(), Home::new());
    let ready = home.place().join("ready");
    let script = "trap 'exit 9' TERM; touch ready; while :; do sleep 0.05; done";
    let running = start(&mut home.inodyne(&["run", "--tracer", "strace", "--", "sh", "-c", script]));
    assert!(support::eventually(|| Path::new(&ready).exists()));
    std::thread::sleep(Duration::from_millis(100));
    kill(running.pid(), Signal::SIGTERM).expect("it runs");
    running.end().ended_with(9);
}

#[test]
fn it_is_said_what_is_missing() {
    let (_machine, home) = (machine(), Home::new());
    let mut command = home.inodyne(&["run", "--", "/bin/true"]);
    let line = run(command.env("PATH", "/nowhere")).failed_in_one_line(3);
    assert!(line.contains("CAP_BPF"), "{line}");
    let mut command = home.inodyne(&["run", "--tracer", "strace", "--", "/bin/true"]);
    let line = run(command.env("PATH", "/nowhere")).failed_in_one_line(3);
    assert!(line.contains("strace is not installed"), "{line}");
    let doctor = run(&mut home.inodyne(&["doctor"])).ended_with(3).stderr;
    assert!(doctor.contains("until then inodyne run uses strace"), "{doctor}");
    // A report says where its times are from.
    let report = run(&mut home.inodyne(&["run", "--", "ls"])).ended_with(0).stderr;
    let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Made from a log of strace, whose own cost, "), "{report}");
}

#[test]
fn where_the_kernel_refuses_the_programs_strace_is_used() {
    let _machine = machine();
    let mut command = inodyne();
    command.args(["run", "--format", "json", "--", "ls", "/"]).env("INODYNE_TEST_REFUSE", "calls");
    let outcome = run(&mut command).ended_with(0);
    assert!(outcome.stderr.contains("strace is used instead"), "{}", outcome.stderr);
    assert_eq!(outcome.recording().traces[0].tracer, Tracer::Strace);
}
