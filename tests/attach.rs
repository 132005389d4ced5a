//! `inodyne attach`: what a window says about processes that ran before it and go on after it, compared with what they say themselves.

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use inodyne_model::Nanos;
use inodyne_model::cause::Cause;
use inodyne_model::ledger::{Row, RowKind};
use inodyne_model::observed::{Begin, End, Window};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::programs::copy_for_everybody;
use support::state::{Moments, our_programs};
use support::window::{Killed, Open, holds_together, syncs_slowly, window};
use support::{
    Cgroup, as_in_a_terminal, as_nobody, ask_twice_at_once, calls, eventually, fixture, inodyne, is_alive, load,
    machine, run, scratch, start, stolen_so_far,
};

/// A program of `fixtures/attached.c` that does what it is told to.
struct Attached {
    child: Killed,
    says: BufReader<ChildStdout>,
}

impl Attached {
    fn start(program: &Path, threads: u32, calls: u32) -> Attached {
        let mut command = Command::new(program);
        command.args([threads.to_string(), calls.to_string()]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let says = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut attached = Attached { child: Killed(child), says };
        attached.hears("ready");
        attached
    }

    fn pid(&self) -> i32 {
        self.child.0.id() as i32
    }

    fn hears(&mut self, word: &str) {
        let mut line = String::new();
        self.says.read_line(&mut line).expect("it says something");
        assert_eq!(line.trim(), word);
    }

    /// Has it do something, and waits until it has.
    fn does(&mut self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("it is there");
        self.hears("done");
    }
}

#[test]
fn counts_are_exactly_those_of_the_window() {
    const THREADS: u32 = 8;
    const CALLS: u32 = 5_000;
    let (_machine, scratch) = (machine(), scratch());
    let program = fixture("attached", scratch.path());
    let mut stranger = Attached::start(&program, 2, CALLS);
    let mut target = Attached::start(&program, THREADS, CALLS);
    target.does(Signal::SIGUSR1);
    let open = Open::new(&["--pid", &target.pid().to_string()]);
    target.does(Signal::SIGUSR1);
    stranger.does(Signal::SIGUSR1);
    target.does(Signal::SIGUSR2);
    let recording = open.interrupted();
    target.does(Signal::SIGUSR1);
    let trace = window(&recording);
    holds_together(trace);
    assert_eq!(trace.observed.window, Window { begin: Begin::Attached, end: End::Detached });
    assert_eq!(calls(trace, "pread64"), u64::from((THREADS + 1) * CALLS), "its threads, and its child");
    assert_eq!(trace.threads.len(), THREADS as usize + 2, "the first thread, the others, the child");
    let born = trace.observed.threads.iter().filter(|thread| thread.parent != 0).count();
    assert_eq!(born, 1, "the child alone was born inside the window");
    // All of them waited when the window began.
    let before: Vec<_> = trace.observed.waits.iter().filter(|wait| wait.began_before).collect();
    assert_eq!(before.len(), THREADS as usize + 1, "{before:?}");
    let in_futex = trace.ledger.rows.iter().any(|row| row.began_before && row.cause == Some(Cause::Futex));
    assert!(in_futex, "{:?}", trace.ledger.rows);
    // The calls that they were in are not counted: eight threads wait for the end, and then for the beginning again.
    let waited = calls(trace, "futex");
    assert!(waited >= u64::from(THREADS), "{waited}");
    assert!(is_alive(target.pid()));
}

/// While programs are being detached, a thread goes on working and sleeping: it must not seem to stay on its CPU.
#[test]
fn a_thread_was_on_its_cpu_as_long_as_the_scheduler_says() {
    const WORKS_AND_SLEEPS: &str = "
from time import perf_counter, sleep
print(flush=True)
while True:
    until = perf_counter() + 0.002
    while perf_counter() < until:
        pass
    sleep(0.02)";
    let _machine = machine();
    let mut python = Command::new("python3");
    python.args(["-c", WORKS_AND_SLEEPS]).stdout(Stdio::piped());
    let mut worker = Killed(python.spawn().expect("the tests need python3"));
    let mut says = BufReader::new(worker.0.stdout.take().expect("a pipe"));
    says.read_line(&mut String::new()).expect("it has begun");
    let stolen = stolen_so_far();
    let recording = Open::new(&["--pid", &worker.0.id().to_string(), "--for", "1s"]).ended();
    let stolen = stolen_so_far().saturating_sub(stolen);
    let trace = window(&recording);
    holds_together(trace);
    let [thread] = &trace.observed.threads[..] else { panic!("{:?}", trace.observed.threads) };
    let (ours, scheduler) = (thread.cpu_ns(), thread.scheduler_cpu_ns);
    // What the scheduler charges from a wake-up on, we call waiting for a CPU; and it has not been asked since the last switch.
    let most = scheduler + Nanos(scheduler.0 / 4) + stolen;
    let least = scheduler.saturating_sub(thread.runqueue_ns + Nanos(scheduler.0 / 4));
    assert!(least <= ours && ours <= most, "ours {ours}, the scheduler's {scheduler}, {stolen} stolen: {thread:?}");
}

#[test]
fn a_window_ends_when_nobody_is_left() {
    let (_machine, scratch) = (machine(), scratch());
    let program = fixture("attached", scratch.path());
    let mut target = Attached::start(&program, 3, 10);
    let open = Open::new(&["--pid", &target.pid().to_string()]);
    target.does(Signal::SIGUSR1);
    kill(Pid::from_raw(target.pid()), Signal::SIGTERM).expect("it is there");
    let recording = open.ended();
    let trace = window(&recording);
    holds_together(trace);
    assert_eq!(trace.observed.window.end, End::Exit);
    assert_eq!(calls(trace, "pread64"), 30);
}

#[test]
fn who_syncs_waits_for_the_journal_or_the_device() {
    let (_machine, scratch) = (machine(), scratch());
    let (target, pid) = syncs_slowly(scratch.path());
    let began = Instant::now();
    let recording = Open::new(&["--pid", &pid.to_string(), "--for", "2s"]).ended();
    let most = began.elapsed().as_secs_f64();
    let is_there = is_alive(pid as i32);
    drop(target);
    assert!(is_there);
    let trace = window(&recording);
    holds_together(trace);
    let long = trace.wall_ns.as_secs_f64();
    // Longer than it was to be on a machine that stands still for a moment.
    assert!((2.0..most).contains(&long), "{long} of {most}");
    let of = |is_meant: &dyn Fn(&Row) -> bool| -> Nanos {
        trace.ledger.rows.iter().filter(|row| is_meant(row)).map(|row| row.ns).sum()
    };
    // A busy machine takes the CPU from whoever has just waited.
    let had_cpu = trace.ledger.wall_ns.saturating_sub(of(&|row| row.kind == RowKind::Runqueue));
    let share = of(&|row| row.cause.is_some_and(Cause::is_of_files)).share_of(had_cpu);
    assert!(share > 0.5, "{share}: {:?}", trace.ledger.rows);
    let mut ids: Vec<&str> = recording.findings.iter().map(|finding| finding.id.as_str()).collect();
    // When others take the CPUs, it waits for one as well: that is said if the ledger has it.
    let queued = of(&|row| row.kind == RowKind::Runqueue).share_of(trace.ledger.wall_ns);
    ids.retain(|id| queued < 0.35 || *id != "run-queue-bound");
    assert_eq!(ids, ["sync-bound"], "{} syncs: {:?}", calls(trace, "fsync"), trace.ledger.rows);
    let report = inodyne_render::text(
        &recording,
        &inodyne_render::TextOptions { width: 100, verbose: true, ..Default::default() },
    );
    assert!(
        report.contains(&format!("window of {}.", long as u64)) && report.contains("1 thread in 1 process"),
        "{report}"
    );
    assert!(!report.contains("saves"), "nothing is promised of a window: {report}");
}

#[test]
fn who_enters_a_control_group_is_followed_and_strangers_are_not() {
    let (_machine, scratch) = (machine(), scratch());
    let program = fixture("attached", scratch.path());
    let cgroup = Cgroup::of("cpu");
    let members = cgroup.0.join("cgroup.procs");
    let mut stranger = Attached::start(&program, 1, 100);
    let mut first = Attached::start(&program, 2, 100);
    std::fs::write(&members, first.pid().to_string()).expect("it enters");
    let open = Open::new(&["--cgroup", cgroup.0.to_str().expect("text")]);
    let mut later = Attached::start(&program, 4, 100);
    std::fs::write(&members, later.pid().to_string()).expect("it enters");
    thread::sleep(Duration::from_secs(2));
    first.does(Signal::SIGUSR1);
    later.does(Signal::SIGUSR1);
    stranger.does(Signal::SIGUSR1);
    let recording = open.interrupted();
    drop((first, later));
    let trace = window(&recording);
    holds_together(trace);
    assert_eq!(calls(trace, "pread64"), 600);
    assert_eq!(trace.threads.len(), 8);
}

#[test]
fn a_window_with_a_length_waits_for_a_service_that_is_started_anew() {
    let (_machine, scratch) = (machine(), scratch());
    let program = fixture("attached", scratch.path());
    let cgroup = Cgroup::of("cpu");
    let members = cgroup.0.join("cgroup.procs");
    let mut first = Attached::start(&program, 2, 100);
    std::fs::write(&members, first.pid().to_string()).expect("it enters");
    let open = Open::new(&["--cgroup", cgroup.0.to_str().expect("text"), "--for", "8s"]);
    first.does(Signal::SIGUSR1);
    drop(first);
    assert!(eventually(|| std::fs::read(&members).is_ok_and(|members| members.is_empty())), "nobody is left");
    thread::sleep(Duration::from_millis(500));
    let mut again = Attached::start(&program, 2, 100);
    std::fs::write(&members, again.pid().to_string()).expect("it enters");
    thread::sleep(Duration::from_secs(2));
    again.does(Signal::SIGUSR1);
    let recording = open.ended();
    drop(again);
    let trace = window(&recording);
    holds_together(trace);
    assert_eq!(calls(trace, "pread64"), 400);
    assert_eq!(trace.observed.window.end, End::Detached);
    assert!(trace.wall_ns >= Nanos(8_000_000_000), "as long as was asked for: {:?}", trace.wall_ns);
    assert!(trace.observed.threads[0].born_ns >= trace.observed.started_ns);
}

#[test]
fn a_unit_is_found_by_its_name() {
    let (_machine, scratch) = (machine(), scratch());
    let program = fixture("attached", scratch.path());
    let cgroup = Cgroup::of("cpu");
    // What systemd makes for a unit, below a slice.
    let unit = format!("inodyne-test-{}", std::process::id());
    let group = cgroup.0.join(format!("{unit}.service"));
    std::fs::create_dir(&group).expect("a cgroup of the unit");
    let mut stranger = Attached::start(&program, 1, 100);
    let mut service = Attached::start(&program, 2, 100);
    std::fs::write(group.join("cgroup.procs"), service.pid().to_string()).expect("it enters");
    let open = Open::new(&["--unit", &unit]);
    service.does(Signal::SIGUSR1);
    stranger.does(Signal::SIGUSR1);
    let recording = open.interrupted();
    drop(service);
    assert!(eventually(|| std::fs::remove_dir(&group).is_ok()), "nobody is left in it");
    let trace = window(&recording);
    holds_together(trace);
    assert_eq!(calls(trace, "pread64"), 200);
    assert_eq!(recording.commands[0].label, format!("unit {unit}.service"));
}

/// A Podman container in which the program of `fixtures/attached.c` runs, with this machine's libraries.
struct Container {
    program: Attached,
    name: String,
}

impl Container {
    fn start(scratch: &Path, threads: u32, calls: u32) -> Container {
        let root = scratch.join("root");
        for directory in ["usr", "lib", "lib64"] {
            std::fs::create_dir_all(root.join(directory)).expect("a directory");
        }
        fixture("attached", &root);
        let name = format!("inodyne-test-{}", std::process::id());
        // crun refuses control groups of both versions together: in this mount namespace there is only one.
        let script = "if [ -d /sys/fs/cgroup/unified ]; then umount /sys/fs/cgroup/unified; fi\n\
            exec podman --cgroup-manager=cgroupfs run --rm --name \"$0\" --network none --pull never --ulimit nofile=1024:1024 \
            --ulimit nproc=1000:1000 -v /usr:/usr:ro -v /lib:/lib:ro -v /lib64:/lib64:ro --rootfs \"$1\" /attached \"$2\" \"$3\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, &name]).arg(&root).args([threads.to_string(), calls.to_string()]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the tests need podman");
        let says = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut container = Container { program: Attached { child: Killed(child), says }, name };
        container.program.hears("ready");
        container
    }

    /// Has it do something, and waits until it has.
    fn does(&mut self, signal: &str) {
        run(Command::new("podman").args(["kill", "--signal", signal, &self.name])).ended_with(0);
        self.program.hears("done");
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        drop(Command::new("podman").args(["kill", &self.name]).output());
        // It removes the container when that has ended.
        drop(self.program.child.0.wait());
    }
}

#[test]
fn a_container_is_followed_by_its_name_and_by_its_id() {
    let (_machine, scratch) = (machine(), scratch());
    let program = fixture("attached", scratch.path());
    let mut stranger = Attached::start(&program, 1, 100);
    let mut container = Container::start(scratch.path(), 4, 100);
    let open = Open::new(&["--container", &container.name]);
    container.does("USR1");
    stranger.does(Signal::SIGUSR1);
    // A child of it, and a process that enters it later.
    container.does("USR2");
    run(Command::new("podman").args(["exec", &container.name, "/usr/bin/true"])).ended_with(0);
    let recording = open.interrupted();
    let trace = window(&recording);
    holds_together(trace);
    // A process that enters the container makes some as well, if it lives until it is seen.
    let own = trace.by_comm.iter().filter(|comm| comm.comm == "attached").flat_map(|comm| &comm.syscalls);
    assert_eq!(own.filter(|call| call.name == "pread64").map(|call| call.calls).sum::<u64>(), 500);
    assert_eq!(recording.commands[0].label, format!("container {}", container.name));
    let id = run(Command::new("podman").args(["inspect", "--format", "{{.Id}}", &container.name])).ended_with(0).stdout;
    let id = String::from_utf8(id).expect("text");
    let by_id = Open::new(&["--container", &id[..12]]).interrupted();
    assert_eq!(window(&by_id).threads.len(), 5);
    drop(container);
    let line = run(inodyne().args(["attach", "--container", &id[..64]])).failed_in_one_line(2);
    assert!(line.contains("does not run") || line.contains("no container"), "{line}");
}

#[test]
fn a_thousand_threads_are_joined_at_once() {
    const THREADS: u32 = 1_000;
    let (_machine, scratch) = (machine(), scratch());
    let program = fixture("attached", scratch.path());
    let mut target = Attached::start(&program, THREADS, 3);
    // By its name, which nobody else has.
    let open = Open::new(&["--name", "attached"]);
    target.does(Signal::SIGUSR1);
    let recording = open.interrupted();
    let trace = window(&recording);
    holds_together(trace);
    assert_eq!(trace.threads.len(), THREADS as usize + 1);
    assert_eq!(calls(trace, "pread64"), u64::from(THREADS * 3));
    let joined = trace.observed.threads.iter().filter(|thread| thread.parent == 0).map(|thread| thread.born_ns);
    let (first, last) = (joined.clone().min().expect("some"), joined.max().expect("some"));
    let took = last.saturating_sub(first).as_secs_f64();
    assert!(took < 0.5, "it took {took} s");
    eprintln!("joined {THREADS} threads in {took} s");
}

/// How often it is killed: 20 times, or as often as is asked for.
fn kills() -> u32 {
    let asked = std::env::var("INODYNE_TEST_KILLS").ok();
    asked.map_or(20, |text| text.parse().expect("INODYNE_TEST_KILLS is a number"))
}

#[test]
fn killed_at_any_moment_it_leaves_nothing_loaded_and_its_target_running() {
    let (_machine, scratch) = (machine(), scratch());
    let program = fixture("attached", scratch.path());
    let mut target = Attached::start(&program, 4, 100);
    let before = our_programs();
    let mut moments = Moments::new();
    for number in 0..kills() {
        let mut command = inodyne();
        let running = start(command.args(["attach", "--pid", &target.pid().to_string()]));
        thread::sleep(Duration::from_millis(moments.below(1_500)));
        kill(running.pid(), Signal::SIGKILL).expect("it is killed");
        drop(running.end());
        assert!(eventually(|| our_programs() <= before), "kill {number}: programs are still loaded");
        assert!(is_alive(target.pid()), "kill {number}");
    }
    target.does(Signal::SIGUSR1);
    target.does(Signal::SIGUSR2);
}

/// The pid of kthreadd, where it can be seen.
fn thread_of_the_kernel() -> Option<String> {
    let name = std::fs::read_to_string("/proc/2/comm").ok()?;
    (name.trim() == "kthreadd").then(|| "2".to_owned())
}

#[test]
fn a_process_in_a_pid_namespace_is_followed_by_its_number_there() {
    let (_machine, scratch) = (machine(), scratch());
    let file = scratch.path().join("recording");
    let script = format!(
        "sleep 60 & p=$!; {} attach --pid $p --for 1s -o {}; kill $p",
        env!("CARGO_BIN_EXE_inodyne"),
        file.display()
    );
    run(Command::new("unshare").args(["--pid", "--fork", "--mount-proc", "sh", "-c", &script])).ended_with(0);
    let trace = support::load(&file).expect("it was written").traces.remove(0);
    assert_eq!(trace.threads.len(), 1);
    assert_eq!(trace.threads[0].comm, "sleep");
}

#[test]
fn one_window_after_the_other_is_kept_counted_and_shown() {
    let (_machine, scratch) = (machine(), scratch());
    let program = fixture("attached", scratch.path());
    let target = Attached::start(&program, 2, 100);
    let (ring, metrics) = (scratch.path().join("ring"), scratch.path().join("counters.prom"));
    std::fs::create_dir(&ring).expect("a directory");
    let mut command = inodyne();
    command.args(["attach", "--pid", &target.pid().to_string(), "--every", "2s", "--for", "500ms", "--keep", "1h"]);
    let command = command.arg("--into").arg(&ring).arg("--metrics").arg(&metrics);
    let mut series = Killed(as_in_a_terminal(command).spawn().expect("it starts"));
    let recordings = || -> Vec<std::path::PathBuf> {
        let mut all: Vec<_> =
            std::fs::read_dir(&ring).expect("a directory").flatten().map(|entry| entry.path()).collect();
        all.sort();
        all
    };
    assert!(eventually(|| recordings().len() >= 2 && metrics.exists()));
    kill(Pid::from_raw(series.0.id() as i32), Signal::SIGINT).expect("it is there");
    assert_eq!(series.0.wait().expect("it is our child").code(), Some(0));
    let kept = recordings();
    for path in &kept {
        holds_together(window(&load(path).expect("a recording")));
    }
    let text = std::fs::read_to_string(&metrics).expect("counters");
    let windows =
        text.lines().find_map(|line| line.strip_prefix("inodyne_windows_total{")?.rsplit(' ').next()?.parse().ok());
    assert_eq!(windows, Some(kept.len()), "{text}");
    let shown = run(inodyne().arg("show").arg(&ring)).ended_with(0).text();
    assert_eq!(shown, run(inodyne().arg("show").arg(kept.last().expect("some"))).ended_with(0).text(), "the newest");
    let early = run(inodyne().arg("show").arg(format!("{}@2001-01-01T00:00Z", ring.display()))).failed_in_one_line(2);
    assert!(early.contains("which is later"), "{early}");
    let says = |more: &[&str]| run(inodyne().args(["attach", "--all"]).args(more).arg("--into").arg(&ring)).code();
    assert_eq!([says(&["--every", "1s", "--for", "2s"]), says(&["--every", "1s"]), says(&[])], [Some(2); 3]);
}

#[test]
fn a_damaged_file_about_a_disk_is_told_once_however_many_windows_there_are() {
    let (_machine, scratch) = (machine(), scratch());
    let (state, ring) = (scratch.path().join("state"), scratch.path().join("ring"));
    let kept = state.join("inodyne/disks");
    for directory in [&kept, &ring] {
        std::fs::create_dir_all(directory).expect("a directory");
    }
    std::fs::write(kept.join("damaged.json"), "{").expect("a file");
    let target = Killed(Command::new("sleep").arg("1000").spawn().expect("it starts"));
    let mut command = inodyne();
    command.args(["attach", "--pid", &target.pid().to_string(), "--every", "1s", "--for", "100ms", "--into"]);
    let series = start(command.arg(&ring).env("XDG_STATE_HOME", &state));
    let were_several = eventually(|| std::fs::read_dir(&ring).expect("a directory").count() >= 3);
    // The second signal does not end it in its own way.
    ask_twice_at_once(series.pid());
    let outcome = series.end().ended_with(0);
    assert!(were_several, "{}", outcome.stderr);
    assert_eq!(outcome.stderr.matches("damaged.json is ignored").count(), 1, "{}", outcome.stderr);
}

#[test]
fn a_series_about_processes_ends_with_them() {
    let (_machine, scratch) = (machine(), scratch());
    let target = Killed(Command::new("sleep").arg("1000").spawn().expect("it starts"));
    let mut command = inodyne();
    command.args(["attach", "--pid", &target.pid().to_string(), "--every", "1s", "--for", "100ms", "--into"]);
    let series = start(command.arg(scratch.path()));
    let was_watched = eventually(|| std::fs::read_dir(scratch.path()).expect("a directory").count() >= 1);
    let label = format!("nobody is left of pid {} (sleep)", target.pid());
    drop(target);
    let outcome = series.end().ended_with(0);
    assert!(was_watched, "{}", outcome.stderr);
    assert_eq!(outcome.stderr.matches(&label).count(), 1, "{}", outcome.stderr);
}

#[test]
fn what_cannot_be_followed_is_said_in_one_line() {
    let says = |arguments: &[&str], code: i32| run(inodyne().arg("attach").args(arguments)).failed_in_one_line(code);
    assert!(says(&["--pid", "4194304"], 2).contains("no such process"));
    // A PID namespace of its own has none.
    if let Some(pid) = thread_of_the_kernel() {
        assert!(says(&["--pid", &pid], 2).contains("thread of the kernel"));
    }
    assert!(says(&["--name", "nobody-has-this"], 2).contains("no process is called"));
    assert!(says(&["--cgroup", "/no/such/group"], 2).contains("no such control group"));
    assert!(says(&["--cgroup", "/proc"], 2).contains("is not a control group"));
    assert!(says(&["--unit", "no-such-unit"], 2).contains("no unit no-such-unit.service runs"));
    assert!(says(&["--container", "no-such-container"], 2).contains("no container is called that"));
    let scratch = scratch();
    let program = copy_for_everybody(scratch.path());
    let mut command = Command::new(&program);
    let line = run(as_nobody(command.args(["attach", "--all", "--for", "1s"]).current_dir("/"))).failed_in_one_line(3);
    assert!(line.contains("CAP_BPF"), "{line}");
    assert_eq!(run(inodyne().arg("attach")).code(), Some(2));
}
