//! Starting commands for real. `start` forks and so needs a process with one thread, which libtest's is not: `main` calls one test
//! after the other.

use std::ffi::OsString;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::{Duration, Instant};

use inodyne_launch::{Input, LaunchError, LaunchSpec, Leftovers, Output, SignalReader, start};
use inodyne_model::run::Exit;
use nix::sys::signal::{SigHandler, SigSet, Signal, killpg, signal};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, getpgid, getsid, setpgid};
use rustix::event::{PollFd, PollFlags, poll};

fn main() {
    let tests: [(&str, fn()); 13] = [
        ("files_are_read_and_written", files_are_read_and_written),
        ("a_command_runs_once_it_is_released", a_command_runs_once_it_is_released),
        ("pwd_changes_only_with_the_directory", pwd_changes_only_with_the_directory),
        ("what_cannot_be_executed_is_told_before_the_release", what_cannot_be_executed_is_told_before_the_release),
        ("a_script_is_not_missing_but_its_interpreter", a_script_is_not_missing_but_its_interpreter),
        ("a_signal_to_a_held_command_acts_when_it_is_released", a_signal_to_a_held_command_acts_when_it_is_released),
        ("what_was_blocked_before_stays_blocked_and_no_more", what_was_blocked_before_stays_blocked_and_no_more),
        ("a_command_killed_before_its_release_is_told", a_command_killed_before_its_release_is_told),
        ("only_the_guard_leaves_the_session", only_the_guard_leaves_the_session),
        ("a_dropped_command_goes_with_all_its_descendants", a_dropped_command_goes_with_all_its_descendants),
        ("nothing_outlives_a_killed_process_group", nothing_outlives_a_killed_process_group),
        ("what_is_left_running_may_go_on", what_is_left_running_may_go_on),
        ("where_nothing_is_left_the_end_is_told_at_once", where_nothing_is_left_the_end_is_told_at_once),
    ];
    // Whoever started this may ignore signals (nohup does), and commands inherit that.
    for each in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGUSR1] {
        // SAFETY: the default action is no handler.
        unsafe { signal(each, SigHandler::SigDfl) }.expect("a signal that can be caught");
    }
    // And block others, as `env --block-signal` does.
    SigSet::from(Signal::SIGUSR2).thread_set_mask().expect("a mask");
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let chosen = tests.iter().filter(|(name, _)| wanted.iter().all(|word| name.contains(word)));
    let (begun, mut passed) = (Instant::now(), 0);
    for (name, test) in chosen {
        test();
        println!("test {name} ... ok");
        passed += 1;
    }
    // In libtest's form: whoever counts results finds this line. A test that fails ends the program before it.
    let (left_out, seconds) = (tests.len() - passed, begun.elapsed().as_secs_f64());
    println!(
        "\ntest result: ok. {passed} passed; 0 failed; 0 ignored; 0 measured; {left_out} filtered out; finished in {seconds:.2}s"
    );
}

fn spec(argv: &[&str]) -> LaunchSpec {
    LaunchSpec {
        argv: argv.iter().map(OsString::from).collect(),
        input: Input::Nothing,
        output: Output::Discard,
        ..LaunchSpec::default()
    }
}

fn files_are_read_and_written() {
    let directory = tempfile::tempdir().expect("a scratch directory");
    let path = |name: &str| directory.path().join(name);
    fs::write(path("in"), "read").expect("scratch");
    let (input, output) =
        (fs::File::open(path("in")).expect("scratch"), fs::File::create(path("out")).expect("scratch"));
    let both = Output::BothToFile(output.as_raw_fd());
    let spec =
        LaunchSpec { input: Input::File(input.as_raw_fd()), output: both, ..spec(&["sh", "-c", "cat; echo err >&2"]) };
    let ended = inodyne_launch::run_to_end(&spec).expect("it starts");
    assert_eq!(
        (ended.exit, fs::read_to_string(path("out")).expect("scratch")),
        (Exit::Code(0), "readerr\n".to_owned())
    );
    let alone = LaunchSpec { output: Output::File(output.as_raw_fd()), ..self::spec(&["sh", "-c", "echo; : >&2"]) };
    inodyne_launch::run_to_end(&alone).expect("it starts");
    assert_eq!(fs::read_to_string(path("out")).expect("scratch"), "readerr\n\n");
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The children of a process.
fn children(of: Pid) -> Vec<Pid> {
    let listed = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    listed.split_ascii_whitespace().map(|pid| Pid::from_raw(pid.parse().expect("a pid"))).collect()
}

fn only<T>(mut all: Vec<T>) -> T {
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn a_command_runs_once_it_is_released() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut spec = spec(&["sh", "-c", "echo $WORD > made; exit 3"]);
    spec.directory = Some(place.path().into());
    spec.environment = vec![("WORD".into(), "said".into())];
    let held = start(&spec, None).expect("it starts");
    assert!(!place.path().join("made").exists());
    held.release().expect("the guard is there");
    let ended = held.ended(&spec).expect("it ends");
    assert_eq!(ended.exit, Exit::Code(3));
    assert!(ended.wall_ns().0 > 0);
    assert_eq!(fs::read_to_string(place.path().join("made")).expect("written"), "said\n");
    held.finish(Leftovers::Kill).expect("the guard ends");
    assert!(children(Pid::this()).is_empty());
}

fn pwd_changes_only_with_the_directory() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (other, here) = (place.path().to_owned(), std::env::current_dir().expect("it is there"));
    let printed = |directory: &std::path::Path| {
        let out = fs::File::create(place.path().join("out")).expect("scratch");
        let output = Output::File(out.as_raw_fd());
        let spec = LaunchSpec { output, directory: Some(directory.into()), ..spec(&["printenv", "PWD"]) };
        inodyne_launch::run_to_end(&spec).expect("it starts");
        fs::read_to_string(place.path().join("out")).expect("scratch")
    };
    let before = std::env::var_os("PWD");
    // The same directory by another name, as it has one over a link.
    // SAFETY: this process has one thread.
    unsafe { std::env::set_var("PWD", "/proc/self/cwd") };
    assert_eq!([printed(&here), printed(&other)], ["/proc/self/cwd\n".to_owned(), format!("{}\n", other.display())]);
    // SAFETY: as above.
    unsafe { std::env::remove_var("PWD") };
    assert_eq!(printed(&here), "");
    if let Some(before) = before {
        // SAFETY: as above.
        unsafe { std::env::set_var("PWD", before) };
    }
}

fn what_cannot_be_executed_is_told_before_the_release() {
    let of = |argv: &[&str]| start(&spec(argv), None).err().and_then(|error| error.shell_code());
    assert_eq!(of(&["no-such-command-here"]), Some(127));
    assert_eq!(of(&["/"]), Some(126));
    assert_eq!(of(&["/etc/passwd"]), Some(126));
    assert!(children(Pid::this()).is_empty());
}

/// A first line that ends as on Windows names no interpreter that there is, either.
fn a_script_is_not_missing_but_its_interpreter() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let script = place.path().join("script");
    fs::write(&script, "#!/bin/sh\r\n").expect("scratch");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let spec = spec(&[script.to_str().expect("text")]);
    let held = start(&spec, None).expect("the script is there");
    held.release().expect("the guard is there");
    let error = held.ended(&spec).expect_err("it never ran");
    assert_eq!(error.shell_code(), Some(127));
    assert!(error.to_string().ends_with("or its loader, is missing"), "{error}");
}

fn a_signal_to_a_held_command_acts_when_it_is_released() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let made = place.path().join("made");
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGUSR1] {
        let spec = spec(&["touch", made.to_str().expect("text")]);
        let held = start(&spec, None).expect("it starts");
        held.signal(signal);
        held.release().expect("the guard is there");
        let ended = held.ended(&spec).expect("its end is told as any other");
        assert_eq!(ended.exit, Exit::Signal(signal as i32));
        held.finish(Leftovers::Kill).expect("the guard ends");
    }
    assert!(!made.exists());
}

fn what_was_blocked_before_stays_blocked_and_no_more() {
    let directory = tempfile::tempdir().expect("a scratch directory");
    let path = directory.path().join("out");
    let _reads = SignalReader::of([Signal::SIGTERM]).expect("it may");
    let out = fs::File::create(&path).expect("scratch");
    let spec = LaunchSpec { output: Output::File(out.as_raw_fd()), ..spec(&["grep", "SigBlk", "/proc/self/status"]) };
    let held = start(&spec, None).expect("it starts");
    held.release().expect("the guard is there");
    assert_eq!(held.ended(&spec).expect("it ends").exit, Exit::Code(0));
    held.finish(Leftovers::Kill).expect("the guard ends");
    let blocked = 1u64 << (Signal::SIGUSR2 as u32 - 1);
    assert_eq!(fs::read_to_string(&path).expect("it is written"), format!("SigBlk:\t{blocked:016x}\n"));
}

fn a_command_killed_before_its_release_is_told() {
    let spec = spec(&["true"]);
    let held = start(&spec, None).expect("it starts");
    held.signal(Signal::SIGKILL);
    // Until its guard has ended, too: then nobody takes the order any more.
    let hung_up = |held: &[PollFd<'_>]| held[0].revents().contains(PollFlags::HUP);
    let mut guard = [PollFd::new(&held, PollFlags::empty())];
    while !hung_up(&guard) {
        poll(&mut guard, None).expect("it can be waited for");
    }
    held.release().expect("that is told below");
    let error = held.ended(&spec).expect_err("it never ran");
    assert!(matches!(error, LaunchError::Killed { signal: 9, .. }), "{error}");
    assert_eq!(
        (error.shell_code(), error.to_string().as_str()),
        (Some(137), "true: killed by signal 9 before it began")
    );
}

fn only_the_guard_leaves_the_session() {
    let spec = spec(&["sleep", "1000"]);
    let _held = start(&spec, None).expect("it starts");
    let guard = only(children(Pid::this()));
    // Before the command does anything, or it might be too late.
    assert_eq!(getsid(Some(guard)), Ok(guard));
    let command = only(children(guard));
    // Otherwise a terminal's signals and its input would not reach the command.
    assert_eq!(getsid(Some(command)), getsid(None));
    assert_eq!(getpgid(Some(command)), getpgid(None));
}

/// The processes that have this word among their arguments.
fn with_argument(word: &str) -> Vec<Pid> {
    let has_it = |pid: &i32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    };
    let all = fs::read_dir("/proc").expect("there is a /proc").flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(has_it).map(Pid::from_raw).collect()
}

const LEAVES_TWO: &str = "sleep $0 & (setsid sleep $0 &)";

fn a_dropped_command_goes_with_all_its_descendants() {
    let asleep = format!("1{}", std::process::id());
    let spec = spec(&["sh", "-c", &format!("{LEAVES_TWO}; exec sleep $0"), &asleep]);
    let held = start(&spec, None).expect("it starts");
    held.release().expect("the guard is there");
    eventually("all three sleep", || with_argument(&asleep).len() == 3);
    drop(held);
    assert_eq!(with_argument(&asleep), []);
}

/// The starter and the command die at the same time; the guard is left to end what has a session of its own.
fn nothing_outlives_a_killed_process_group() {
    for round in 0..20 {
        let asleep = format!("3{round}{}", std::process::id());
        let spec = spec(&["sh", "-c", "setsid sleep $0 & exec sleep $0", &asleep]);
        // SAFETY: this process has one thread, so the copy is whole.
        match unsafe { nix::unistd::fork() }.expect("it forks") {
            ForkResult::Child => {
                setpgid(Pid::this(), Pid::this()).expect("a group of its own");
                let held = start(&spec, None).expect("it starts");
                held.release().expect("the guard is there");
                let _ = held.ended(&spec);
                std::process::exit(1);
            }
            ForkResult::Parent { child } => {
                eventually("both sleep", || with_argument(&asleep).len() == 2);
                killpg(child, Signal::SIGKILL).expect("it is ours");
                waitpid(child, None).expect("it is our child");
                eventually("nothing is left", || with_argument(&asleep).is_empty());
            }
        }
    }
}

fn what_is_left_running_may_go_on() {
    let asleep = format!("2{}", std::process::id());
    let spec = spec(&["sh", "-c", LEAVES_TWO, &asleep]);
    for leftovers in [Leftovers::Leave, Leftovers::Kill] {
        let held = start(&spec, None).expect("it starts");
        held.release().expect("the guard is there");
        assert_eq!(held.ended(&spec).expect("it ends").left_running, 2);
        eventually("both sleep", || with_argument(&asleep).len() == 2);
        held.finish(leftovers).expect("the guard ends");
        // One that is just executing its program has no arguments for a moment.
        let expected = if leftovers == Leftovers::Leave { 2 } else { 0 };
        eventually("as many are left as shall be", || with_argument(&asleep).len() == expected);
        with_argument(&asleep)
            .into_iter()
            .for_each(|pid| nix::sys::signal::kill(pid, Signal::SIGKILL).expect("it is ours"));
        eventually("they are gone", || with_argument(&asleep).is_empty());
    }
}

/// Whoever times how long it takes until everything is on the disk begins to flush only then.
fn where_nothing_is_left_the_end_is_told_at_once() {
    let spec = spec(&["sh", "-c", "true & wait"]);
    let held = start(&spec, None).expect("it starts");
    let guard = only(children(Pid::this()));
    held.release().expect("the guard is there");
    assert_eq!(held.ended(&spec).expect("it ends").left_running, 0);
    // It has read what tells of the command's end, 128 bytes, and not about each process on this machine. What its children have
    // read counts only in the account of the whole process.
    let read = fs::read_to_string(format!("/proc/{guard}/task/{guard}/io")).expect("its account");
    let read = read.lines().find_map(|line| line.strip_prefix("rchar: ")).expect("it is told");
    assert!(read.parse::<u64>().expect("a number") < 500, "{read} bytes");
    held.finish(Leftovers::Kill).expect("the guard ends");
}
