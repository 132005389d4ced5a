//! `inodyne top`: who waits for files is listed with what it waits for, at little cost, and the terminal is left as it was.

mod support;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use inodyne_analyse::Live;
use inodyne_model::Nanos;
use inodyne_model::activity::{Account, Activity};
use inodyne_model::ledger::{Row, RowKind};
use inodyne_trace::{LiveTracer, Options, Whom};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{InputFlags, LocalFlags, OutputFlags, tcgetattr};
use nix::unistd::Pid;
use serde_json::Value;
use support::window::{Killed, syncs_slowly};
use support::{
    Cgroup, Outcome, as_in_a_terminal, ask_twice_at_once, eventually, fixture, inodyne, load, machine, run, scratch,
};

/// Writes and syncs, again and again.
fn syncs(directory: &Path) -> Killed {
    let script = "import os\nf = os.open('synced', os.O_CREAT | os.O_WRONLY)\nwhile True:\n  os.write(f, b'x' * 4096)\n  os.fsync(f)\n";
    let mut command = Command::new("python3");
    Killed(command.args(["-c", script]).current_dir(directory).spawn().expect("the tests need python3"))
}

/// What `top --batch --format json` prints.
fn looks(arguments: &[&str]) -> Vec<Value> {
    parsed(&run(inodyne().args(["top", "--batch", "--format", "json"]).args(arguments)))
}

fn parsed(outcome: &Outcome) -> Vec<Value> {
    assert_eq!(outcome.code(), Some(0), "{}", outcome.stderr);
    outcome.text().lines().map(|line| serde_json::from_str(line).expect("a line is an object")).collect()
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} of {value}"))
}

#[test]
fn who_syncs_is_listed_first_with_what_it_waits_for() {
    let (_machine, scratch) = (machine(), scratch());
    let (_target, pid) = syncs_slowly(scratch.path());
    let bystander = sleepers(0);
    let pids = [pid.to_string(), bystander.pid().to_string()];
    let looks = looks(&["--pid", &pids[0], "--pid", &pids[1], "--interval", "4s", "-n", "3"]);
    assert_eq!(looks.len(), 3);
    for (at, look) in looks.iter().enumerate() {
        assert_eq!(
            (number(look, "processes"), number(look, "threads"), number(look, "lost")),
            (2.0, 2.0, 0.0),
            "{look}"
        );
        let rows = look["rows"].as_array().expect("rows");
        // On a busy machine it may not have begun to sleep at the first look.
        assert!(rows.len() == 1 || at == 0, "who only sleeps is left out: {look}");
        let row = &rows[0];
        assert_eq!((row["pid"].as_u64(), row["name"].as_str()), (Some(pid), Some("python3")), "{look}");
        let cause = row["cause"].as_str().unwrap_or_default();
        assert!(["journal", "device-flush", "device-write"].contains(&cause), "{look}");
        // A busy machine takes the CPU from whoever has just waited.
        let had_cpu = number(look, "length_ns") - number(row, "ready_ns");
        let share = number(row, "files_ns") / had_cpu;
        assert!((0.4..=1.01).contains(&share), "{share} of {look}");
        // Two calls, and two waits or more, for each round.
        assert!(number(row, "calls") > 20.0, "{look}");
        assert!(row["file"].as_str().is_none_or(|file| file.ends_with("/synced")), "{look}");
        let length = number(look, "length_ns") / 1e9;
        assert!((0.9..10.0).contains(&length), "{look}");
    }
}

#[test]
fn who_enters_a_control_group_is_listed_from_then_on() {
    let (_machine, scratch) = (machine(), scratch());
    let cgroup = Cgroup::of("cpu");
    let path = cgroup.0.to_str().expect("text");
    let arguments = ["top", "--batch", "--format", "json", "--interval", "500ms", "-n", "16", "--cgroup", path];
    let mut command = inodyne();
    let command = as_in_a_terminal(command.args(arguments)).stdout(Stdio::piped());
    let mut top = Killed(command.spawn().expect("it starts"));
    let mut lines = BufReader::new(top.0.stdout.take().expect("a pipe")).lines();
    let mut look = || -> Option<Value> {
        let line = lines.next()?.expect("text");
        Some(serde_json::from_str(&line).expect("a line is an object"))
    };
    // It has nobody to follow, and waits for somebody.
    let first = look().expect("the first look");
    assert_eq!(number(&first, "processes"), 0.0, "{first}");
    let target = syncs(scratch.path());
    std::fs::write(cgroup.0.join("cgroup.procs"), target.pid().to_string()).expect("it enters");
    let last = std::iter::from_fn(look).last().expect("more of them");
    assert_eq!(top.0.wait().expect("our child").code(), Some(0));
    drop(target);
    assert_eq!((number(&last, "processes"), last["rows"][0]["name"].as_str()), (1.0, Some("python3")), "{last}");
}

#[test]
fn text_has_a_line_for_each_process_and_one_about_the_look() {
    let (_machine, scratch) = (machine(), scratch());
    let target = syncs(scratch.path());
    let arguments = ["top", "--batch", "-n", "1", "--interval", "500ms", "--rows", "0"];
    let text = run(inodyne().args(arguments)).ended_with(0).text();
    let lines: Vec<&str> = text.lines().collect();
    let [about, titles, rest @ ..] = &lines[..] else { panic!("{text}") };
    assert!(about.contains("all processes, ") && about.contains("of a CPU"), "{text}");
    assert!(titles.contains("FILES%") && titles.ends_with("COMMAND"), "{text}");
    let pid = format!("{:>7} ", target.pid());
    assert!(rest.iter().any(|row| row.starts_with(&pid) && row.ends_with("python3")), "{text}");
    assert!(rest.last().is_some_and(|line| line.is_empty()), "{text}");
}

#[test]
fn without_a_terminal_batch_is_asked_for() {
    let said = run(inodyne().arg("top")).failed_in_one_line(2);
    assert!(said.contains("--batch"), "{said}");
}

/// `top` on a pseudo-terminal of its own.
struct AtTerminal {
    child: Killed,
    keys: File,
    slave: OwnedFd,
    shown: Receiver<Vec<u8>>,
    so_far: String,
    before: Modes,
}

/// How a terminal treats what comes and goes.
type Modes = (LocalFlags, InputFlags, OutputFlags);

fn modes(terminal: &OwnedFd) -> Modes {
    let modes = tcgetattr(terminal).expect("a terminal");
    (modes.local_flags, modes.input_flags, modes.output_flags)
}

impl AtTerminal {
    fn start(arguments: &[&str], columns: u16, rows: u16) -> AtTerminal {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(Some(&size), None).expect("a pseudo-terminal");
        let before = modes(&pair.slave);
        let mut command = inodyne();
        command.arg("top").args(arguments).env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        let end = || Stdio::from(pair.slave.try_clone().expect("a descriptor"));
        command.stdin(end()).stdout(end()).stderr(end());
        let control = || {
            // SAFETY: standard input is a terminal, which becomes that of the session that was just made; no memory is passed.
            match unsafe { nix::libc::ioctl(0, nix::libc::TIOCSCTTY, 0) } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        // Signals as in a terminal, and a session of its own.
        let command = as_in_a_terminal(&mut command);
        // SAFETY: one system call between fork and exec.
        unsafe { command.pre_exec(control) };
        let child = Killed(command.spawn().expect("it starts"));
        let keys = File::from(pair.master);
        let mut reader = keys.try_clone().expect("a descriptor");
        let (sender, shown) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 65536];
            while let Ok(length @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        AtTerminal { child, keys, slave: pair.slave, shown, so_far: String::new(), before }
    }

    /// Waits until this is drawn, from the last key on.
    fn shows(&mut self, word: &str) {
        let until = Instant::now() + Duration::from_secs(120);
        while !self.so_far.contains(word) {
            let left = until.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(bytes) => self.so_far += &String::from_utf8_lossy(&bytes),
                Err(_) => panic!("no {word:?} in {:?}", self.so_far),
            }
        }
    }

    fn press(&mut self, keys: &str) {
        self.so_far.clear();
        self.keys.write_all(keys.as_bytes()).expect("it reads");
    }

    /// Waits for its end, and insists that the terminal is as it was.
    fn ended(mut self) {
        let status = self.child.0.wait().expect("it is our child");
        self.shows("\x1b[?1049l");
        self.shows("\x1b[?25h");
        assert_eq!(status.code(), Some(0), "{:?}", self.so_far);
        assert!(modes(&self.slave) == self.before, "as it was: {:?}", modes(&self.slave));
    }
}

#[test]
fn keys_change_what_is_shown_and_the_terminal_is_left_as_it_was() {
    let (_machine, scratch) = (machine(), scratch());
    let target = syncs(scratch.path());
    let into = scratch.path().join("recordings");
    std::fs::create_dir(&into).expect("a directory");
    let arguments = ["--interval", "500ms", "--for", "1s", "--into", into.to_str().expect("text")];
    let mut top = AtTerminal::start(&arguments, 80, 24);
    top.shows("FILES%*");
    assert!(!modes(&top.slave).0.contains(LocalFlags::ICANON), "keys are read one by one");
    top.press("?");
    top.shows("freeze");
    top.press("x");
    let pid = target.pid().to_string();
    top.press(&format!("/{pid}\r"));
    top.shows(&pid);
    top.press("\r");
    top.shows("fsync");
    top.press("w");
    top.shows("RECORDING");
    top.shows("recorded");
    top.press(" ");
    top.shows("FROZEN");
    top.press("q");
    top.shows("\x1b[?1049l");
    top.shows("recorded");
    top.ended();
    let written: Vec<_> =
        std::fs::read_dir(&into).expect("a directory").map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(written.len(), 1, "{written:?}");
    let recording = load(&written[0]).expect("a recording");
    // Recordings have the kernel's own numbers, which are others in a PID namespace.
    drop(target);
    let names: Vec<&str> = recording.traces[0].threads.iter().map(|thread| thread.comm.as_str()).collect();
    assert!(names.contains(&"python3"), "{names:?}");
}

#[test]
fn signals_and_the_end_of_whom_is_watched_leave_the_terminal_as_it_was() {
    let (_machine, scratch) = (machine(), scratch());
    let target = syncs(scratch.path());
    let pid = target.pid().to_string();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        let mut top = AtTerminal::start(&["--pid", &pid, "--interval", "300ms"], 200, 60);
        top.shows("WAITS");
        kill(Pid::from_raw(top.child.pid() as i32), signal).expect("it is there");
        top.ended();
    }
    let mut top = AtTerminal::start(&["--pid", &pid, "--interval", "300ms"], 200, 60);
    top.shows("WAITS");
    drop(target);
    top.shows("nobody is left");
    top.ended();
}

#[test]
fn a_second_signal_does_not_end_it_in_its_own_way() {
    let (_machine, scratch) = (machine(), scratch());
    let target = syncs(scratch.path());
    let pid = target.pid().to_string();
    let mut command = inodyne();
    command.args(["top", "--batch", "--interval", "200ms", "--pid", &pid]);
    let mut top = Killed(as_in_a_terminal(&mut command).stdout(Stdio::piped()).spawn().expect("it starts"));
    let mut said = BufReader::new(top.0.stdout.take().expect("a pipe"));
    said.read_line(&mut String::new()).expect("the first look");
    ask_twice_at_once(Pid::from_raw(top.pid() as i32));
    assert_eq!(top.0.wait().expect("our child").code(), Some(0));
    let mut top = AtTerminal::start(&["--pid", &pid, "--interval", "300ms"], 200, 60);
    top.shows("WAITS");
    ask_twice_at_once(Pid::from_raw(top.child.pid() as i32));
    top.ended();
}

#[test]
fn without_colours_none_is_drawn() {
    let (_machine, scratch) = (machine(), scratch());
    let target = syncs(scratch.path());
    let pid = target.pid().to_string();
    for (arguments, colours) in [(&["--color", "never"][..], false), (&[], true)] {
        let arguments = [&["--pid", &pid, "--interval", "300ms", "-n", "3"][..], arguments].concat();
        let mut top = AtTerminal::start(&arguments, 80, 24);
        top.shows("\x1b[?25h");
        // Blue and green, of the foreground.
        let has_colours = ["\x1b[38;5;4", "\x1b[38;5;2"].iter().any(|colour| top.so_far.contains(colour));
        assert_eq!(has_colours, colours, "{:?}", top.so_far);
    }
}

/// A process that starts others which do nothing, and says when all are there.
fn sleepers(count: usize) -> Killed {
    let script = format!(
        "import os, signal, sys\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n\
         for _ in range({count}):\n  if os.fork() == 0:\n    signal.pause()\nsys.stdout.write('ready\\n')\nsys.stdout.flush()\nsignal.pause()\n"
    );
    let mut command = Command::new("python3");
    let mut child =
        command.args(["-c", &script]).stdout(Stdio::piped()).process_group(0).spawn().expect("the tests need python3");
    let mut said = [0; 6];
    child.stdout.take().expect("a pipe").read_exact(&mut said).expect("it says that it is ready");
    Killed(child)
}

#[test]
fn three_thousand_processes_cost_little() {
    let _machine = machine();
    let target = sleepers(3_000);
    let looks = looks(&["--interval", "2s", "-n", "4"]);
    // All of its process group, which it leads.
    kill(Pid::from_raw(-(target.pid() as i32)), Signal::SIGKILL).expect("they are there");
    let costs: Vec<f64> = looks.iter().map(|look| number(look, "own_cpu")).collect();
    println!("of a CPU: {costs:?}");
    for look in &looks {
        assert!(number(look, "processes") >= 3_000.0 && number(look, "lost") == 0.0, "{look}");
    }
    let mean = costs.iter().sum::<f64>() / costs.len() as f64;
    assert!(mean < 0.15, "{costs:?}");
}

/// Asks for its parent, again and again.
fn calls_all_the_time() -> Killed {
    let mut command = Command::new("python3");
    Killed(command.args(["-c", "import os\nwhile True:\n  os.getppid()\n"]).spawn().expect("the tests need python3"))
}

/// A program of `fixtures/rounds.c`, which has made no call yet except the one that it is in.
struct Rounds {
    child: Killed,
    asks: ChildStdin,
    says: BufReader<ChildStdout>,
}

impl Rounds {
    fn start(scratch: &Path, rounds: u32) -> Rounds {
        let mut command = Command::new(fixture("rounds", scratch));
        let command = command.arg(rounds.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = Killed(command.spawn().expect("it starts"));
        let asks = child.0.stdin.take().expect("a pipe");
        let says = BufReader::new(child.0.stdout.take().expect("a pipe"));
        let rounds = Rounds { child, asks, says };
        rounds.waits();
        rounds
    }

    /// Waits until it has left its CPU in `read`: then proc_pid_syscall(5) says so.
    fn waits(&self) {
        let file = format!("/proc/{}/syscall", self.child.pid());
        let read = format!("{} 0x0 ", nix::libc::SYS_read);
        assert!(eventually(|| std::fs::read_to_string(&file).is_ok_and(|text| text.starts_with(&read))));
    }

    /// Makes the rounds; returns how many of its calls have ended since it was asked.
    fn made(&mut self) -> u64 {
        self.asks.write_all(b"x").expect("it reads");
        let mut line = String::new();
        self.says.read_line(&mut line).expect("it says how many");
        self.waits();
        line.trim().parse().expect("a number")
    }
}

/// The rows in which its own calls ran.
fn of_call<'a>(account: &'a Account, name: &'a str) -> impl Iterator<Item = &'a Row> {
    let of_it = move |row: &&Row| row.syscall.as_deref().is_some_and(|call| call.ends_with(name));
    account.rows.iter().filter(of_it)
}

fn ran_in(account: &Account, name: &str) -> f64 {
    of_call(account, name).filter(|row| row.kind == RowKind::Kernel).map(|row| row.ns).sum::<Nanos>().0 as f64
}

#[test]
fn where_not_every_call_is_timed_all_are_counted_and_the_times_sum() {
    let (_machine, scratch) = (machine(), scratch());
    let mut rounds = Rounds::start(scratch.path(), 400_000);
    let mut tracer = LiveTracer::new(&Options::default()).expect("this machine can trace");
    let costs = tracer.costs_of_calls();
    assert!(costs.on_average(8) <= costs.timed_ns, "{costs:?}");
    tracer.join(&Whom::Processes(vec![rounds.child.0.id()])).expect("it is there");
    let mut live = Live::default();
    live.add(tracer.snapshot().expect("it reads"));
    let mut shares = Vec::new();
    for timed_one_in in [1, 8, 64, 1] {
        tracer.time_one_call_in(timed_one_in);
        let made = rounds.made();
        let activity: Activity = live.add(tracer.snapshot().expect("it reads")).expect("the second one");
        let [process] = &activity.processes[..] else { panic!("one process: {activity:?}") };
        let account = &process.account;
        assert_eq!((account.calls, activity.lost.total()), (made, 0), "one in {timed_one_in}");
        let sum: Nanos = account.rows.iter().map(|row| row.ns).sum();
        assert_eq!(sum, activity.length_ns, "one in {timed_one_in}: {:?}", account.rows);
        // Waits are not estimated.
        let waits: Vec<&Row> = of_call(account, "poll").filter(|row| row.kind == RowKind::Blocked).collect();
        assert_eq!(waits.iter().map(|row| row.count).sum::<u64>(), 10, "{waits:?}");
        assert!(waits.iter().map(|row| row.ns).sum::<Nanos>() >= Nanos(10_000_000), "{waits:?}");
        for row in &account.rows {
            let is_of_cpu = matches!(row.kind, RowKind::User | RowKind::Kernel);
            assert_eq!(row.estimated, is_of_cpu && timed_one_in > 1, "one in {timed_one_in}: {row:?}");
        }
        let (of_stat, of_getppid) = (ran_in(account, "fstatat"), ran_in(account, "getppid"));
        shares.push(of_stat / (of_stat + of_getppid));
    }
    println!("of the time in both calls in stat, where all, one in 8, one in 64, and all are timed: {shares:?}");
    // Every eighth call of it is a stat: had every eighth one been timed, it would be all or nothing.
    for share in &shares {
        assert!((share - shares[0]).abs() < 0.2, "{shares:?}");
    }
}

#[test]
fn beyond_its_budget_fewer_calls_are_timed_and_that_is_said() {
    let _machine = machine();
    let target = calls_all_the_time();
    let pid = target.pid().to_string();
    let arguments = ["--pid", &pid, "--interval", "1s", "-n", "3"];
    let little = looks(&[&arguments[..], &["--budget", "0.001%"]].concat());
    let timed = |look: &Value| number(look, "timed_one_in");
    let is_over = |look: &Value| number(look, "tracing_cpu") > number(look, "budget_cpu");
    assert!(little.iter().any(|look| timed(look) == 1.0 && is_over(look)), "{little:?}");
    assert!(little.iter().any(|look| timed(look) == 64.0 && is_over(look)), "{little:?}");
    let much = looks(&[&arguments[..], &["--budget", "10000%"]].concat());
    assert!(much.iter().all(|look| timed(look) == 1.0 && !is_over(look)), "{much:?}");
    let rarely = looks(&[&arguments[..], &["--budget", "10000%", "--sample-calls", "8"]].concat());
    assert!(rarely.iter().all(|look| timed(look) == 8.0 && !is_over(look)), "{rarely:?}");
    let text = |budget| {
        run(inodyne().args(["top", "--batch"]).args(arguments).args(["--budget", budget])).ended_with(0).text()
    };
    let said = text("0.001%");
    assert!(said.contains("; over the budget of 0.001%\n"), "{said}");
    assert!(said.contains("; timing 1 call in 64, over the budget of 0.001%\n"), "{said}");
    assert!(!text("10000%").contains("budget"));
}

#[test]
fn what_is_estimated_is_marked_on_the_screen() {
    let _machine = machine();
    let target = calls_all_the_time();
    let pid = target.pid().to_string();
    let arguments = ["--pid", &pid, "--interval", "300ms", "--sample-calls", "8", "--budget", "10000%"];
    let mut top = AtTerminal::start(&arguments, 200, 60);
    top.shows("timing 1 call in 8 (budget 10000%)");
    top.press("\r");
    top.shows("getppid");
    top.shows("~");
    top.press("q");
    top.ended();
}
