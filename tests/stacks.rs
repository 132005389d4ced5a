//! Stacks in user mode: the functions of a program that itself says how long it was in each, with all the ways to their names.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use support::{inodyne, machine, prepare, run, scratch, stolen_so_far};

/// Compiles `fixtures/stacks.c` as `stacks`, with frame pointers and debug information.
fn compile(into: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/stacks.c");
    let flags = "-std=gnu11 -O2 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -Wall -Werror";
    prepare(into, &format!("cc {flags} -o stacks {}", source.display()));
}

/// What the program said, and the folded stacks of its trace.
struct Seen {
    told: String,
    folded: Vec<(String, u64)>,
    /// CPU time that the machine's host gave to others meanwhile, in nanoseconds: nothing is sampled then.
    stolen: u64,
}

impl Seen {
    fn new(directory: &Path) -> Seen {
        Seen::by(inodyne(), directory)
    }

    /// Traced by this program, which is inodyne or runs it.
    fn by(mut command: Command, directory: &Path) -> Seen {
        let recording = directory.join("stacks.inodyne");
        command.args(["run", "--at"]).arg(directory).arg("-o").arg(&recording).arg("--").arg(directory.join("stacks"));
        let before = stolen_so_far();
        let told = run(&mut command).ended_with(0).text();
        let stolen = stolen_so_far().saturating_sub(before).0;
        let folded = run(inodyne().args(["show", "--format", "folded"]).arg(&recording)).ended_with(0).text();
        let line = |line: &str| {
            let (stack, ns) = line.rsplit_once(' ').expect("a stack and its time");
            (stack.to_owned(), ns.parse().expect("nanoseconds"))
        };
        let seen = Seen { folded: folded.lines().map(line).collect(), told, stolen };
        let map = seen.word("map");
        assert!(map.starts_with("/tmp/perf-") && map.ends_with(".map"), "{map}");
        fs::remove_file(map).expect("the program's own map");
        seen
    }

    fn word(&self, key: &str) -> &str {
        let line = self.told.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {key}:\n{}", self.told))
    }

    /// Time in stacks that hold these frames, one below the other.
    fn time(&self, frames: &str) -> u64 {
        self.folded.iter().filter(|(stack, _)| stack.contains(frames)).map(|(_, ns)| ns).sum()
    }

    /// That a part took as long as the program says. Time without a CPU, on a busy machine, has no stack, and what is stolen from one
    /// part is missing there in the samples, by which time is divided.
    fn holds(&self, key: &str, frames: &str) {
        let told: u64 = self.word(key).parse().expect("nanoseconds");
        let (seen, ready) = (self.time(frames), self.time("[waiting for a CPU]"));
        let most = told + told / 10 + self.stolen;
        let least = (told - told / 10).saturating_sub(ready + self.stolen);
        assert!((least..=most).contains(&seen), "{frames}: {seen} of {told}, {ready} ready: {:#?}", self.folded);
    }

    fn all_hold(&self) {
        self.holds("computed", ";main;computes");
        self.holds("generated", ";main;generates;generated code");
        self.holds("waited", ";main;waits;");
        assert_eq!(self.time(";computes;clock_nanosleep"), 0, "{:#?}", self.folded);
        let slept = self.time("[blocked: sleep]");
        assert!(slept > 0 && self.time(";main;waits;") >= slept - slept / 20, "{:#?}", self.folded);
    }
}

#[test]
fn numbers_of_processes_are_those_of_the_tracers_pid_namespace() {
    let (_machine, scratch) = (machine(), scratch());
    compile(scratch.path());
    let mut command = Command::new("unshare");
    // Its map of generated code is named by the number that the program has there.
    command.args(["--pid", "--fork", "--mount-proc"]).arg(env!("CARGO_BIN_EXE_inodyne"));
    Seen::by(command, scratch.path()).all_hold();
}

#[test]
fn every_function_has_the_time_that_the_program_says() {
    let (_machine, scratch) = (machine(), scratch());
    compile(scratch.path());
    let seen = Seen::new(scratch.path());
    seen.all_hold();
    // A function that the compiler has inlined into another one.
    seen.holds("computed", ";main;computes;inlined_work");
}

#[test]
fn a_stripped_program_is_named_by_its_debug_file() {
    let (_machine, scratch) = (machine(), scratch());
    compile(scratch.path());
    let script = "objcopy --only-keep-debug stacks stacks.debug && strip stacks && objcopy --add-gnu-debuglink=stacks.debug stacks";
    prepare(scratch.path(), script);
    let symbols = run(Command::new("nm").arg(scratch.path().join("stacks")));
    assert!(symbols.stderr.contains("no symbols"), "{symbols:?}");
    Seen::new(scratch.path()).all_hold();
}

#[test]
fn a_trace_against_itself_shows_no_difference_and_another_one_does() {
    let (_machine, scratch) = (machine(), scratch());
    compile(scratch.path());
    drop(Seen::new(scratch.path()));
    let recording = scratch.path().join("stacks.inodyne");
    let difference = |format: &str| {
        let mut command = inodyne();
        command.args(["diff", "--format", format]).arg(&recording).arg(&recording);
        run(&mut command).ended_with(0).text()
    };
    for line in difference("folded").lines() {
        let mut words = line.rsplit(' ');
        assert_eq!(words.next(), words.next(), "{line}");
    }
    assert!(difference("svg").contains("since"));
}
