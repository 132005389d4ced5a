//! Bad input and faults: one clear line, the documented exit code, never a panic, nothing left behind.

mod support;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use inodyne_model::cause::Cause;
use inodyne_model::ledger::Row;
use inodyne_model::observed::Program;
use inodyne_model::recording::Recording;
use inodyne_model::run::Exit;
use inodyne_model::trace::Trace;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use support::programs::copy_for_everybody;
use support::{
    Sshfs, as_nobody, calls, eventually, fixture, inodyne, is_alive, machine, nothing_lost, prepare, run, scratch, sh,
    start, trace_of, traced,
};

#[test]
fn commands_that_cannot_be_executed() {
    let _machine = machine();
    let scratch = scratch();
    fs::write(scratch.path().join("plain"), "no program").expect("written");
    prepare(scratch.path(), "echo '#!/no/such/shell' >script; chmod +x script");
    let [plain, script] = ["plain", "script"].map(|name| scratch.path().join(name));
    for (argv, code, said) in [
        ("no-such-command-anywhere", 127, "command not found"),
        ("./nor/here", 127, "command not found"),
        (script.to_str().expect("ASCII"), 127, "the interpreter in its first line"),
        (plain.to_str().expect("ASCII"), 126, "permission denied"),
        ("/usr", 126, "is a directory"),
    ] {
        let line = run(inodyne().args(["run", "--", argv])).failed_in_one_line(code);
        assert!(line.contains(argv) && line.contains(said), "{line}");
    }
}

#[test]
fn places_that_cannot_be_used() {
    let _machine = machine();
    let scratch = scratch();
    let file = scratch.path().join("file");
    fs::write(&file, "").expect("written");
    for (options, said) in [
        (&["--at", "/no/such/place"][..], "does not exist"),
        (&["--at", file.to_str().expect("ASCII")], "is not a directory"),
        (&["--at", "xfs:size=16M"], "300M"),
        (&["--at", "ext4:size=1M", "--data", "tree:dirs=100,files=100,bytes=1000"], "too small for its data"),
        (&["--at", "ext4:size=16M,mount=data=nonsense"], "cannot mount"),
        (&["--at", "ext4:size=16M,mkfs=-O nonsense"], "mkfs.ext4 failed"),
        (&["--at", "tmpfs", "--cache", "cold"], "cannot be cold"),
        (&["--at", ".", "--data", "tree:dirs=1,files=1,bytes=1"], "never filled"),
        (&["--at", "ext4:size=16M", "--data", "/no/such/data"], "/no/such/data"),
        (&["--at", "ext4:size=16M", "--data", "tree:depth=60,width=60"], "too many directories"),
        (&["--at", "ext4:size=16M", "--cwd", "nowhere"], "cannot enter this directory"),
        (&["--user", "nobody-of-this-name"], "no such user"),
    ] {
        let mut command = inodyne();
        let line = run(command.arg("run").args(options).args(["--", "true"])).failed_in_one_line(2);
        assert!(line.contains(said), "{options:?}: {line}");
    }
}

/// The range of ports has a tab between its ends.
#[test]
fn what_could_not_be_restored_is_told_in_one_line_of_plain_text() {
    let _machine = machine();
    let [ports, privileged] = ["ip_local_port_range", "ip_unprivileged_port_start"];
    let [ports, privileged] = [ports, privileged].map(|name| format!("/proc/sys/net/ipv4/{name}"));
    let before = [&ports, &privileged].map(|path| fs::read_to_string(path).expect("a setting"));
    let place = format!("tmpfs:size=1M,set={ports}=40000 50000");
    // The kernel refuses the old range as long as it would begin among privileged ports.
    let script = sh(&format!("echo 40000 >{privileged}"));
    let outcome = run(inodyne().args(["run", "--user", "root", "--at", &place, "--"]).args(script));
    fs::write(&privileged, &before[1]).expect("restored");
    fs::write(&ports, &before[0]).expect("restored");
    let outcome = outcome.ended_with(1);
    let told = outcome.stderr.lines().last().expect("a line");
    let words = before[0].split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.starts_with(&format!("inodyne: cannot restore {ports} to {words}: ")), "{told:?}");
}

#[test]
fn a_place_that_is_not_writable_for_the_user_is_the_commands_own_failure() {
    let _machine = machine();
    let scratch = scratch();
    let options = ["--user", "nobody", "--at", scratch.path().to_str().expect("ASCII")];
    let outcome = run(inodyne().arg("run").args(options).args(["--", "touch", "x"])).ended_with(1);
    assert!(
        outcome.stderr.contains("Permission denied") && outcome.stderr.contains("may not write"),
        "{}",
        outcome.stderr
    );
}

/// FUSE without `allow_other`: sshfs as most people mount it.
#[test]
fn a_place_that_refuses_root_is_the_users() {
    let _machine = machine();
    let scratch = scratch();
    prepare(scratch.path(), "mkdir there here; touch there/file; chown nobody there");
    let mounted = Sshfs::mount_for_nobody(scratch.path(), "there", "here");
    assert!(fs::read_dir(&mounted.0).is_err(), "it is for nobody only");
    let at = mounted.0.to_str().expect("ASCII");
    let outcome = run(inodyne().args(["run", "--user", "nobody", "--at", at, "--", "ls"])).ended_with(0);
    assert_eq!(outcome.text(), "file\n", "{}", outcome.stderr);
    assert!(outcome.stderr.contains("fuse"), "{}", outcome.stderr);
    let line = run(inodyne().args(["run", "--at", at, "--", "ls"])).failed_in_one_line(2);
    assert!(line.contains("refuses root") && line.contains("--user"), "{line}");
}

#[test]
fn without_root_the_capability_is_named() {
    let scratch = scratch();
    let program = copy_for_everybody(scratch.path());
    let mut command = Command::new(&program);
    let line =
        run(as_nobody(command.args(["run", "--tracer", "bpf", "--", "true"]).current_dir("/"))).failed_in_one_line(3);
    for word in ["CAP_BPF", "CAP_PERFMON", "sudo", "setcap"] {
        assert!(line.contains(word), "{line}");
    }
    let outcome = run(as_nobody(Command::new(&program).arg("doctor").current_dir("/"))).ended_with(3);
    assert!(outcome.text().contains("missing  CAP_BPF"), "{}", outcome.text());
}

#[test]
fn the_exit_code_is_the_commands_own() {
    let _machine = machine();
    for (script, code) in
        [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137), ("kill -SEGV $$", 139)]
    {
        let outcome = run(&mut traced(&[], sh(script))).ended_with(code);
        let exit = outcome.recording().runs[0].exit;
        assert_eq!(exit, if code < 128 { Exit::Code(code) } else { Exit::Signal(code - 128) });
    }
}

/// A terminal's signals go to the command's process too while it is only being started: then that has ended by them, whether
/// or not its program ever ran.
#[test]
fn an_interrupt_while_the_command_is_being_started_is_an_interrupt() {
    let _machine = machine();
    for number in 0..12 {
        let signal = [Signal::SIGINT, Signal::SIGTERM][number % 2];
        let tracing: &[&str] = if number % 4 < 2 { &[] } else { &["--no-trace"] };
        let mut command = traced(tracing, sh("sleep 60"));
        let running = start(command.process_group(0));
        let children = format!("/proc/{0}/task/{0}/children", running.pid());
        // Its first child is the guard.
        while fs::read_to_string(&children).expect("it runs").is_empty() {}
        thread::sleep(Duration::from_micros(number as u64 / 4 * 200));
        killpg(running.pid(), signal).expect("sent");
        let outcome = running.end();
        assert_eq!(outcome.code(), Some(128 + signal as i32), "{number}: {outcome:?}");
    }
}

/// A shell that takes its precautions, tells where it is, then waits; `at` is called with inodyne's pid and the shell's.
fn while_it_waits(trap: &str, waiting: &str, at: impl FnOnce(Pid, Pid)) -> support::Outcome {
    let scratch = scratch();
    let told = scratch.path().join("pid");
    let script = format!("{trap}; echo $$ > {0}.new; mv {0}.new {0}; {waiting}", told.display());
    let running = start(&mut traced(&[], sh(&script)));
    assert!(eventually(|| told.exists()), "the command starts");
    let shell = fs::read_to_string(&told).expect("its pid").trim().parse().expect("a pid");
    at(running.pid(), Pid::from_raw(shell));
    running.end()
}

#[test]
fn a_signal_to_inodyne_alone_is_passed_on() {
    let _machine = machine();
    let outcome = while_it_waits("trap 'exit 42' INT", "while :; do sleep 0.05; done", |inodyne, _| {
        kill(inodyne, Signal::SIGINT).expect("sent");
    });
    assert_eq!(outcome.ended_with(42).recording().runs[0].exit, Exit::Code(42));
}

#[test]
fn the_second_signal_stops_at_once() {
    let _machine = machine();
    let outcome = while_it_waits("trap '' INT", "while :; do sleep 0.05; done", |inodyne, shell| {
        kill(inodyne, Signal::SIGINT).expect("sent");
        thread::sleep(Duration::from_millis(200));
        assert!(is_alive(shell.as_raw()), "the first one is the command's to obey");
        // Two that arrive while it is held up are one. One that comes when it is ending ends it, so each has time to be obeyed.
        let stops = |_| {
            let _ = kill(inodyne, Signal::SIGINT);
            eventually(|| !is_alive(shell.as_raw()))
        };
        assert!((0..3).any(stops));
    });
    let line = outcome.failed_in_one_line(130);
    assert!(line.contains("interrupted"), "{line}");
}

/// What a terminal does: the signal goes to the whole foreground process group, from the kernel.
#[test]
fn ctrl_c_in_a_terminal_ends_the_command_and_reports() {
    let _machine = machine();
    let program = env!("CARGO_BIN_EXE_inodyne");
    let driver = r#"
import os, pty, sys, time
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "run", "--", "sh", "-c", "echo ready; sleep 60"])
seen = b""
while b"ready" not in seen:
    seen += os.read(terminal, 1000)
time.sleep(0.2)
os.write(terminal, b"\x03")
try:
    while True:
        more = os.read(terminal, 1000)
        if not more: break
        seen += more
except OSError:
    pass
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(seen.decode(errors="replace"))
"#;
    let started = Instant::now();
    let outcome = run(Command::new("python3").args(["-c", driver, program])).ended_with(0);
    let told = outcome.text();
    assert!(started.elapsed() < Duration::from_secs(50), "it did not end at Ctrl-C");
    assert!(told.starts_with("130\n"), "the shell was killed by SIGINT: {told}");
    assert!(told.contains("Where the time went"), "{told}");
}

#[test]
fn stopped_and_continued() {
    let _machine = machine();
    let outcome = while_it_waits(":", "for i in $(seq 40); do sleep 0.05; done", |_, shell| {
        kill(shell, Signal::SIGSTOP).expect("stopped");
        thread::sleep(Duration::from_millis(500));
        kill(shell, Signal::SIGCONT).expect("continued");
    });
    let recording = outcome.ended_with(0).recording();
    let trace = &recording.traces[0];
    let of_shell = trace.threads[0].rows.iter().filter(|row| row.cause == Some(Cause::Stopped));
    assert!(of_shell.map(|row| row.ns.0).sum::<u64>() >= 250_000_000, "{:#?}", trace.threads[0]);
    // The path goes on to whoever let it continue: this test, which slept.
    let is_stopped = |row: &&Row| row.cause == Some(Cause::Stopped) || row.via.iter().any(|link| link == "stopped");
    let on_path = trace.ledger.rows.iter().filter(is_stopped).map(|row| row.ns.0).sum::<u64>();
    assert!(on_path >= 250_000_000, "{:#?}", trace.ledger);
}

#[test]
fn ten_thousand_short_lived_processes() {
    let _machine = machine();
    let scratch = scratch();
    let trace = trace_of(&[], [fixture("children", scratch.path()).as_os_str(), OsStr::new("10000")]);
    nothing_lost(&trace);
    assert_eq!(trace.threads.len(), 10_001);
    assert_eq!(calls(&trace, "getppid"), 10_000);
    assert_eq!(calls(&trace, "wait4"), 10_000);
}

/// The programs of a trace, by their last word, with how their processes ended.
fn exits(trace: &Trace) -> BTreeMap<String, Exit> {
    let observed = &trace.observed;
    let of_process = |pid| observed.threads.iter().filter(|one| one.pid == pid).find_map(|one| one.process_exit);
    let last_word = |program: &Program| program.args.last().cloned().unwrap_or_default();
    observed.programs.iter().filter_map(|one| Some((last_word(one), of_process(one.pid)?))).collect()
}

#[test]
fn how_each_process_ended_is_what_its_parent_is_told() {
    let _machine = machine();
    // The first thread of this one ends before the process does.
    let threads = "import ctypes, os, threading, time\n\
        threading.Thread(target=lambda: (time.sleep(0.05), os._exit(5))).start()\n\
        ctypes.CDLL(None).pthread_exit(None)";
    let script = format!("sh -c 'exit 3'; sh -c 'kill -KILL $$'; python3 -c '{threads}' threads; sleep 0.01; exit 7");
    let recording = run(&mut traced(&[], sh(&script))).ended_with(7).recording();
    let trace = &recording.traces[0];
    nothing_lost(trace);
    assert_eq!(recording.runs[0].exit, Exit::Code(7));
    let exits = exits(trace);
    let of = |word: &str| exits.get(word).copied().unwrap_or_else(|| panic!("{word} in {exits:?}"));
    assert_eq!(of(&script), Exit::Code(7));
    assert_eq!([of("exit 3"), of("kill -KILL $$"), of("threads")], [Exit::Code(3), Exit::Signal(9), Exit::Code(5)]);
    assert_eq!(of("0.01"), Exit::Code(0));
}

#[test]
fn vforked_programs() {
    let _machine = machine();
    let scratch = scratch();
    let argv = [fixture("children", scratch.path()).into_os_string(), "200".into(), "vfork".into()];
    let trace = trace_of(&[], argv);
    nothing_lost(&trace);
    assert_eq!((trace.threads.len(), calls(&trace, "vfork"), calls(&trace, "execve")), (201, 200, 201));
    assert_eq!(trace.observed.programs.len(), 201);
    let of_parent = &trace.threads[0].rows;
    assert!(of_parent.iter().any(|row| row.cause == Some(Cause::Child)), "{of_parent:#?}");
}

#[test]
fn two_thousand_threads_at_once() {
    let _machine = machine();
    let script = "import threading\nthreading.stack_size(65536)\nall = threading.Barrier(2000)\n\
                  threads = [threading.Thread(target=all.wait) for _ in range(2000)]\n\
                  for t in threads: t.start()\nfor t in threads: t.join()";
    // They fight for the interpreter's lock: on a busy machine that is as many switches as the reader leaves room for.
    let trace = trace_of(&["--ring-buffer", "134217728"], ["python3", "-c", script]);
    nothing_lost(&trace);
    // More where `python3` is a wrapper.
    assert!(trace.threads.len() >= 2001, "{}", trace.threads.len());
}

#[test]
fn a_daemon_lives_on_in_a_directory_and_dies_with_a_made_place() {
    let _machine = machine();
    let scratch = scratch();
    let daemon = fixture("daemon", scratch.path());
    for (place, survives) in [(".", true), ("ext4:size=16M", false)] {
        let told = scratch.path().join(if survives { "kept" } else { "killed" });
        let outcome = run(&mut traced(&["--at", place], [daemon.as_os_str(), told.as_os_str()])).ended_with(0);
        assert!(outcome.stderr.contains("processes that the command left running: 1"), "{}", outcome.stderr);
        let trace = outcome.recording().traces.remove(0);
        assert!(calls(&trace, "getppid") >= 100, "its calls while the root lived count");
        let pid: i32 = fs::read_to_string(told.with_extension("done")).expect("its pid").trim().parse().expect("a pid");
        assert_eq!(is_alive(pid), survives);
        if survives {
            kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it is ours");
        }
    }
}

#[test]
fn commands_that_trace_and_change_their_world_themselves() {
    let _machine = machine();
    for script in [
        "strace -f -o /dev/null ls / >/dev/null",
        "unshare -m true",
        "unshare -p -f sh -c 'ls / >/dev/null'",
        "mkdir -p empty && ! chroot empty /bin/true 2>/dev/null",
    ] {
        let recording = run(&mut traced(&["--at", "tmpfs"], sh(script))).ended_with(0).recording();
        nothing_lost(&recording.traces[0]);
        assert!(calls(&recording.traces[0], "execve") >= 2, "{script}");
    }
}

#[test]
fn a_program_executed_by_another_thread() {
    let _machine = machine();
    let scratch = scratch();
    let trace = trace_of(&[], [fixture("exec_in_thread", scratch.path()).as_os_str(), OsStr::new("true")]);
    nothing_lost(&trace);
    let comms: Vec<&str> = trace.by_comm.iter().map(|c| c.comm.as_str()).collect();
    assert!(comms.contains(&"true"), "{comms:?}");
    assert!(trace.threads.iter().all(|thread| thread.lifetime_ns.0 > 0));
    assert!(trace.observed.threads.iter().all(|thread| !thread.alive), "{:#?}", trace.observed.threads);
}

#[test]
fn calls_of_32_bits_are_told_apart() {
    let _machine = machine();
    let scratch = scratch();
    let trace = trace_of(&[], [fixture("calls32", scratch.path()).as_os_str(), OsStr::new("500")]);
    nothing_lost(&trace);
    assert_eq!(calls(&trace, "i386:getpid"), 500);
    assert_eq!(calls(&trace, "writev"), 0, "20 is writev in 64 bits");
}

#[test]
fn interrupted_and_restarted_calls() {
    let _machine = machine();
    let scratch = scratch();
    let trace = trace_of(&[], [fixture("interrupted", scratch.path()).as_os_str(), OsStr::new("20")]);
    nothing_lost(&trace);
    let read = trace.syscalls.iter().find(|call| call.name == "read").expect("it reads");
    assert_eq!(read.errors_by_errno.get("ERESTARTSYS"), Some(&(20 + 20)), "{:?}", read.errors_by_errno);
    assert!(trace.ledger.rows.iter().any(|row| row.cause == Some(Cause::Pipe)), "{:#?}", trace.ledger);
}

#[test]
fn the_command_is_the_users_own() {
    let _machine = machine();
    let script = "echo $(id -un) $(id -gn) $(stat -c %U .) $GREETING $(basename $PWD); cat";
    let options =
        ["run", "--user", "nobody", "--at", "ext4:size=16M", "--env", "GREETING=hello", "--prepare", "mkdir below"];
    let mut command = inodyne();
    command.args(options).args(["--cwd", "below", "--", "sh", "-c", script]).stdin(Stdio::piped());
    let mut running = start(&mut command);
    let mut stdin = running.child.stdin.take().expect("piped");
    std::io::Write::write_all(&mut stdin, b"passed through\n").expect("written");
    drop(stdin);
    let outcome = running.end().ended_with(0);
    assert_eq!(outcome.text(), "nobody nogroup nobody hello below\npassed through\n");
}

#[test]
fn a_script_without_an_interpreter_and_ignored_signals() {
    let _machine = machine();
    let scratch = scratch();
    prepare(scratch.path(), "echo 'grep SigIgn /proc/self/status' > script; chmod +x script");
    let script = scratch.path().join("script");
    let program = env!("CARGO_BIN_EXE_inodyne");
    let told = run(Command::new("nohup").arg(program).args(["run", "--"]).arg(&script)).ended_with(0).text();
    let mask = u64::from_str_radix(told.trim().rsplit('\t').next().expect("a mask"), 16).expect("hexadecimal");
    let standard = (1 << 31) - 1;
    assert_eq!(mask & standard, 1 << (Signal::SIGHUP as u64 - 1), "only what nohup ignores is ignored: {told}");
}

/// Daemons do so, and what they start inherits it: the kernel tells nobody how a child has ended.
#[test]
fn whoever_ignores_the_end_of_children_hears_of_the_commands() {
    let _machine = machine();
    let mut ignoring = Command::new("timeout");
    ignoring.args(["-k", "5", "120", "env", "--ignore-signal=CHLD", env!("CARGO_BIN_EXE_inodyne")]);
    let told = run(ignoring.args(["run", "--at", "ext4", "--", "grep", "SigIgn", "/proc/self/status"]));
    let told = told.ended_with(0).text();
    let line = told.lines().find(|line| line.starts_with("SigIgn")).expect("the command says it");
    let mask = u64::from_str_radix(line.rsplit('\t').next().expect("a mask"), 16).expect("hexadecimal");
    assert!(
        mask & 1 << (Signal::SIGCHLD as u64 - 1) != 0,
        "the command's own children are as whoever started it wants: {told}"
    );
}

/// systemd ignores a broken pipe for services, and so do CI runners. The runtime of Rust ignores it in inodyne itself, which ignores a file at
/// its size limit too: neither is for the command.
#[test]
fn what_inodyne_ignores_is_ignored_by_the_command_only_where_whoever_started_it_ignores_it() {
    let _machine = machine();
    for (option, is_ignored) in [("--default-signal=PIPE,XFSZ", false), ("--ignore-signal=PIPE,XFSZ", true)] {
        let mut command = Command::new("env");
        command.args([option, env!("CARGO_BIN_EXE_inodyne"), "run", "--no-trace"]);
        let told = run(command.args(["--", "grep", "SigIgn", "/proc/self/status"])).ended_with(0).text();
        let mask = u64::from_str_radix(told.trim().rsplit('\t').next().expect("a mask"), 16).expect("hexadecimal");
        for signal in [Signal::SIGPIPE, Signal::SIGXFSZ] {
            assert_eq!(mask & 1 << (signal as u64 - 1) != 0, is_ignored, "{option}, {signal}: {told}");
        }
    }
}

#[test]
fn a_recording_beyond_the_size_limit_for_files_is_an_error_and_leaves_nothing() {
    let _machine = machine();
    let scratch = scratch();
    let mut command = Command::new("prlimit");
    command.args(["--fsize=100", env!("CARGO_BIN_EXE_inodyne"), "run", "--no-trace", "-o"]);
    command.arg(scratch.path().join("one.inodyne")).args(["--", "true"]);
    let outcome = run(&mut command).ended_with(3);
    assert!(outcome.stderr.contains("File too large"), "{}", outcome.stderr);
    assert_eq!(fs::read_dir(scratch.path()).expect("a directory").count(), 0, "nothing is left of it");
}

#[test]
fn json_is_all_there_is_on_standard_output() {
    let _machine = machine();
    let outcome = run(&mut traced(&[], sh("echo loud"))).ended_with(0);
    drop(outcome.recording());
    assert!(outcome.stderr.contains("loud"));
    let outcome = run(inodyne().args(["run", "--", "echo", "mine"])).ended_with(0);
    assert_eq!(outcome.text(), "mine\n");
}

#[test]
fn recordings_that_cannot_be_read() {
    let scratch = scratch();
    let path = |name: &str| scratch.path().join(name);
    let mut newer = Recording::new("9.9", 0, Default::default());
    newer.schema = "inodyne/2".to_owned();
    inodyne_recording::save(&newer, &path("newer")).expect("written");
    let whole = fs::read(path("newer")).expect("read");
    fs::write(path("truncated"), &whole[..whole.len() / 2]).expect("written");
    fs::write(path("corrupt"), b"\x28\xb5\x2f\xfd\x00 nonsense that is no frame").expect("written");
    fs::write(path("empty"), b"").expect("written");
    fs::write(path("text"), b"not compressed").expect("written");
    for (file, said) in [
        ("newer", "newer inodyne"),
        ("truncated", "not a readable recording"),
        ("corrupt", "not a readable recording"),
        ("empty", "not a readable recording"),
        ("text", "not a readable recording"),
        ("missing", "No such file"),
        (".", "directory"),
    ] {
        let line = run(inodyne().arg("show").arg(path(file))).failed_in_one_line(2);
        assert!(line.contains(said), "{file}: {line}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let _machine = machine();
    let scratch = scratch();
    let recording = scratch.path().join("kept.inodyne");
    run(inodyne().args(["run", "-o"]).arg(&recording).args(["--", "true"])).ended_with(0);
    let program = env!("CARGO_BIN_EXE_inodyne");
    let script = "set -o pipefail; \"$0\" show --format json \"$1\" | head -1";
    let outcome = run(Command::new("bash").args(["-c", script, program]).arg(&recording)).ended_with(0);
    assert_eq!(outcome.text(), "{\n");
    assert_eq!(outcome.stderr, "");
}

#[test]
fn an_output_that_cannot_be_written_is_said() {
    let _machine = machine();
    let outcome = run(inodyne().args(["run", "-o", "/no/such/directory/x", "--", "true"])).ended_with(2);
    assert!(outcome.stderr.contains("/no/such/directory/x"), "{}", outcome.stderr);
}

/// Names are data: nothing that a file is called may move the cursor.
#[test]
fn names_with_escapes_and_broken_text_are_shown_harmlessly() {
    let _machine = machine();
    let wild = OsStr::from_bytes(b"wild\x1b[2J\nname\xff\xe2\x80\xae");
    let prepare = "for i in $(seq 9); do d=\"$(printf 'wild\\033[2J\\nname\\377\\342\\200\\256')$i\"; mkdir \"$d\"; \
                   for j in $(seq 99); do : > \"$d/$j\"; done; done";
    let mut command = inodyne();
    command.args(["run", "-v", "--at", "ext4:size=64M,mkfs=-O ^filetype", "--prepare", prepare]);
    let outcome = run(command.args(["--", "find", "."]).arg("-not").arg("-name").arg(wild)).ended_with(0);
    let told = &outcome.stderr;
    assert!(told.matches("wild").count() >= 2, "the report names the argument and the directories:\n{told}");
    let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!outcome.stderr.contains(harmful), "{:?}", outcome.stderr);
}

/// `diff <(a) <(b)` and the like: what a shell opens for the command arrives there, and nothing else does.
#[test]
fn the_command_gets_the_descriptors_it_was_given_and_no_others() {
    let _machine = machine();
    let program = env!("CARGO_BIN_EXE_inodyne");
    let script = "\"$0\" run -- cat <(echo one) <(echo two)";
    assert_eq!(run(Command::new("bash").args(["-c", script, program])).ended_with(0).text(), "one\ntwo\n");
    // The test has descriptors of its own that programs inherit, so the same command is asked without inodyne too.
    let script = "ls /proc/$$/fd";
    let without = run(Command::new("sh").args(["-c", script]).stdin(Stdio::null())).ended_with(0).text();
    let with = run(inodyne().args(["run", "--at", "ext4:size=16M", "--", "sh", "-c", script])).ended_with(0).text();
    assert_eq!(with, without);
}

#[test]
fn a_process_of_which_only_the_first_thread_has_ended_is_no_zombie() {
    let _machine = machine();
    let scratch = scratch();
    let started = Instant::now();
    let outcome = run(&mut traced(&["--at", "tmpfs"], [fixture("half_dead", scratch.path())])).ended_with(0);
    assert!(outcome.stderr.contains("processes that the command left running: 1"), "{}", outcome.stderr);
    assert!(started.elapsed() < Duration::from_secs(50), "it was waited for, not killed");
}

#[test]
fn after_an_interrupt_no_further_run_begins() {
    let _machine = machine();
    let scratch = scratch();
    let began = scratch.path().join("began");
    let script = format!("echo x >> {}; exec sleep 60", began.display());
    let running = start(&mut traced(&["-n", "5"], sh(&script)));
    assert!(eventually(|| began.exists()), "the command starts");
    kill(running.pid(), Signal::SIGTERM).expect("sent");
    let recording = running.end().ended_with(143).recording();
    assert_eq!((recording.runs.len(), recording.runs[0].exit), (1, Exit::Signal(15)));
    assert_eq!(fs::read_to_string(&began).expect("it began"), "x\n");
}

/// With one run, the command says how it ended; with several, more were wanted.
#[test]
fn an_interrupt_that_the_command_obeys_with_success_is_one_where_runs_are_missing() {
    let _machine = machine();
    for (options, code) in [(&["--no-trace", "-n", "5"][..], 130), (&["--no-trace"], 0)] {
        let scratch = scratch();
        let began = scratch.path().join("began");
        let script = format!("trap 'exit 0' INT; echo x >> {}; while :; do sleep 0.05; done", began.display());
        let running = start(&mut traced(options, sh(&script)));
        assert!(eventually(|| began.exists()), "the command starts");
        kill(running.pid(), Signal::SIGINT).expect("sent");
        let recording = running.end().ended_with(code).recording();
        assert_eq!((recording.runs.len(), recording.runs[0].exit), (1, Exit::Code(0)));
    }
}

#[test]
fn interrupted_while_a_place_is_filled_nothing_is_left() {
    let _machine = machine();
    let scratch = scratch();
    let mut command = inodyne();
    command.env("INODYNE_SCRATCH", scratch.path());
    command.args(["run", "--at", "ext4:size=4G", "--data", "tree:dirs=20000,files=100,bytes=1", "--", "true"]);
    let running = start(&mut command);
    let is_attached = || {
        let devices = fs::read_dir("/sys/block").expect("block devices").flatten();
        devices.into_iter().any(|device| {
            let image = fs::read_to_string(device.path().join("loop/backing_file")).unwrap_or_default();
            image.starts_with(&*scratch.path().to_string_lossy())
        })
    };
    assert!(eventually(is_attached));
    thread::sleep(Duration::from_millis(500));
    let sent = Instant::now();
    kill(running.pid(), Signal::SIGINT).expect("sent");
    drop(running.end());
    assert!(sent.elapsed() < Duration::from_secs(20), "it went on filling");
    assert!(eventually(|| !is_attached()), "the image is still attached");
}

#[test]
fn a_recording_may_come_through_a_pipe() {
    let _machine = machine();
    let scratch = scratch();
    let recording = scratch.path().join("kept.inodyne");
    run(inodyne().args(["run", "-o"]).arg(&recording).args(["--", "true"])).ended_with(0);
    let direct = run(inodyne().arg("show").arg(&recording)).ended_with(0);
    let program = env!("CARGO_BIN_EXE_inodyne");
    let bash = |script: &str| {
        let mut command = Command::new("bash");
        command.args(["-c", script, program]).env("LC_ALL", "C");
        command
    };
    let piped = run(bash("\"$0\" show <(cat \"$1\")").arg(&recording));
    assert_eq!(piped.ended_with(0).stdout, direct.stdout);
    let line = run(&mut bash("\"$0\" show <(echo nonsense)")).failed_in_one_line(2);
    assert!(line.contains("not a readable recording"), "{line}");
}
