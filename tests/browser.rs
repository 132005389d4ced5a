//! The HTML report in a real browser: real recordings, hostile names included, clicked through in headless Chromium.

mod support;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use inodyne_model::Nanos;
use inodyne_model::observed::{Observed, Sample, ThreadObserved, Wait, Waker};
use inodyne_model::recording::Recording;
use inodyne_model::run::CacheState;
use inodyne_model::sample;
use inodyne_model::stack::{Frame, Stack, StackId};
use inodyne_model::trace::Trace;
use support::{beside_others, inodyne, machine, run, scratch};

fn drive(arguments: &[&OsStr]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/browser/drive.py");
    let outcome = run(Command::new("python3").arg(script).args(arguments));
    assert_eq!(outcome.code(), Some(0), "{}\n{}", outcome.text(), outcome.stderr);
}

fn report(recording: &Path) -> PathBuf {
    let page = recording.with_extension("html");
    run(inodyne().arg("show").arg(recording).arg("-o").arg(&page)).ended_with(0);
    page
}

#[test]
fn a_report_of_two_places_can_be_clicked_through() {
    let measuring = machine();
    let scratch = scratch();
    let recording = scratch.path().join("two.inodyne");
    let mut command = inodyne();
    command.args(["run", "-n", "3", "--at", "slow=ext4:size=64M,mkfs=-O ^filetype", "--at", "fast=ext4:size=64M"]);
    command.args(["--data", "tree:dirs=100,files=30,bytes=1", "--cache", "cold", "-o"]).arg(&recording);
    run(command.args(["--", "sh", "-c", "find . | xargs -n 500 -P 2 stat >/dev/null"])).ended_with(0);
    drop(measuring);
    let _machine = beside_others();
    drive(&["--expect".as_ref(), "dtype-missing".as_ref(), report(&recording).as_os_str()]);
}

const STUDY: &str = r#"title = "Is memory faster?"
[[place]]
name = "memory"
at = "tmpfs"
[[place]]
name = "disk"
at = "ext4:size=64M"
[[part]]
name = "looking"
title = "at every file"
places = ["memory", "disk"]
data = "tree:dirs=10,files=30,bytes=1"
runs = 6
traced = 1
commands = [{ name = "find", run = "find . -size +1k" }, { name = "absent", run = "absent", if_found = "no-such-program" }]
[[part]]
name = "sleeping"
places = ["memory"]
runs = 2
traced = 0
commands = [{ name = "sleep", run = "sleep 0.05" }]
[[expect]]
says = "find asks for every file"
what = "traces[command=find].syscalls[name=newfstatat].calls"
min = 300
[[expect]]
says = "sleeping takes no time"
what = "runs[command=sleep].wall_ns"
max = 1
"#;

/// The verdicts of its parts, what was expected and what was seen, and each case folded in.
#[test]
fn a_study_can_be_clicked_through() {
    let _machine = beside_others();
    let scratch = scratch();
    let (file, recording) = (scratch.path().join("memory.toml"), scratch.path().join("memory.inodyne"));
    fs::write(&file, STUDY).expect("a file");
    run(inodyne().args(["study", "run"]).arg(&file).arg("-o").arg(&recording)).ended_with(1);
    let expected = [
        "memory: Is memory faster?",
        "Not as expected, in 1 of 2 points",
        "looking: at every file",
        "left out: absent: no-such-program is not installed",
        "disk",
        "FALSE",
        "sleeping takes no time",
        "find asks for every file",
        "Where the time went",
    ];
    let mut arguments: Vec<&OsStr> = expected.iter().flat_map(|text| ["--expect".as_ref(), text.as_ref()]).collect();
    let page = report(&recording);
    arguments.push(page.as_os_str());
    drive(&arguments);
}

#[test]
fn names_of_files_are_text() {
    let _machine = beside_others();
    let scratch = scratch();
    let data = scratch.path().join("data");
    let hostile: [&[u8]; 5] = [
        b"'\"&amp;<b>",
        b"<!-- x",
        "javascript:alert(1) \u{202e}txt.exe\u{2028}".as_bytes(),
        b"not utf-8 \xff\xfe",
        b"<img src=x onerror=alert(1)>",
    ];
    // Those with the most files are sure to be shown.
    for (files, name) in (40..).step_by(10).zip(hostile) {
        let directory = data.join(OsStr::from_bytes(name));
        fs::create_dir_all(&directory).expect("a directory of this name");
        for file in 0..files {
            fs::write(directory.join(format!("{file}")), "").expect("a file");
        }
    }
    let recording = scratch.path().join("names.inodyne");
    let mut command = inodyne();
    command.args(["run", "--at", "ext4:size=64M,mkfs=-O ^filetype", "--data"]);
    command.arg(&data).args(["-n", "1", "-o"]).arg(&recording).args(["--", "find", ".", "-not", "-name"]);
    run(command.arg("</script><img src=x onerror=alert(3)>\u{202e}")).ended_with(0);
    let page = report(&recording);
    let expected = ["<img src=x onerror=alert(1)>", "\\u{202e}", "\u{fffd}", "</script><img src=x onerror=alert(3)>"];
    let mut arguments: Vec<&OsStr> = expected.iter().flat_map(|text| ["--expect".as_ref(), text.as_ref()]).collect();
    arguments.push(page.as_os_str());
    drive(&arguments);
}

/// Ten minutes of two threads that take turns 3,333 times a second, and 5,000 different stacks: as much as a build.
#[test]
fn ten_minutes_open_at_once() {
    let scratch = scratch();
    let recording = scratch.path().join("long.inodyne");
    inodyne_recording::save(&ten_minutes(), &recording).expect("a recording can be saved");
    let page = report(&recording);
    let _machine = machine();
    drive(&["--within".as_ref(), "2".as_ref(), "--megabytes".as_ref(), "10".as_ref(), page.as_os_str()]);
}

fn ten_minutes() -> Recording {
    const TURNS: u64 = 2_000_000;
    const TURN_NS: u64 = 300_000;
    const STACKS: u64 = 5_000;
    let started_ns = Nanos(1_000_000_000);
    let ended_ns = started_ns + Nanos(TURNS * TURN_NS);
    let mut observed = Observed { started_ns, sample_hz: 997, ..Observed::default() };
    let timeline = &mut observed.timeline;
    timeline.calls = ["", "read", "write", "fsync"].map(str::to_owned).into();
    timeline.stacks = (0..=STACKS).map(StackId).collect();
    let mut waits = BTreeMap::<(u32, u64, u64), (u64, u64)>::new();
    for turn in 0..TURNS {
        // One runs for most of a turn and wakes the other, which has waited since its own last turn.
        let (runs, waits_for) = ((turn % 2) as u32 + 1, (turn % 2 + 1) as u32 % 2 + 1);
        let (begin, end) = (turn * TURN_NS, (turn + 1) * TURN_NS - 5_000);
        observed.work.thread.push(runs);
        observed.work.at_ns.push(end);
        observed.work.parts.push(2);
        observed.work.call.extend([0, turn as u32 % 3 + 1]);
        observed.work.ns.extend([100_000, TURN_NS - 105_000]);
        let out = begin.saturating_sub(5_000);
        let (call, stack) = (turn % 3 + 1, turn % 50 + 1);
        let timeline = &mut observed.timeline;
        timeline.thread.push(waits_for);
        timeline.out_ns.push(out);
        timeline.blocked_ns.push(end - out);
        timeline.ready_ns.push(5_000);
        timeline.call.push(call as u32);
        timeline.stack.push(stack as u32);
        timeline.waker.push(Waker::Traced);
        timeline.waker_tid.push(1000 + runs);
        timeline.waker_thread.push(runs);
        timeline.waker_stack.push(0);
        let sum = waits.entry((waits_for, call, stack)).or_default();
        *sum = (sum.0 + end - out, sum.1 + 1);
    }
    let names = observed.timeline.calls.clone();
    for ((thread, call, stack), (ns, count)) in waits {
        observed.waits.push(Wait {
            thread,
            syscall: Some(names[call as usize].clone()),
            stack: StackId(stack),
            waker: Waker::Traced,
            waker_stack: StackId(0),
            ns: Nanos(ns),
            count,
            max_ns: Nanos(TURN_NS),
            began_before: false,
        });
    }
    for number in 1..=2 {
        let blocked: Nanos = observed.waits.iter().filter(|wait| wait.thread == number).map(|wait| wait.ns).sum();
        let lifetime = ended_ns - started_ns;
        observed.threads.push(ThreadObserved {
            number,
            parent: number - 1,
            pid: 1001,
            tid: 1000 + number,
            comm: "builder".to_owned(),
            born_ns: started_ns,
            ended_ns,
            user_ns: Nanos(TURNS / 2 * 100_000),
            kernel_ns: BTreeMap::from([("read".to_owned(), lifetime - blocked - Nanos(TURNS / 2 * 105_000))]),
            runqueue_ns: Nanos(TURNS / 2 * 5_000),
            blocked_ns: blocked,
            waits: TURNS / 2,
            ..ThreadObserved::default()
        });
    }
    for stack in 1..=STACKS {
        // Near the root they are the same, and differ more and more towards the leaf.
        let function = |depth: u64| Frame::Symbol(format!("function_{depth}_{}", stack % (depth * depth * 4 + 1)));
        let frames = (0..35).rev().map(function).collect();
        observed.stacks.push(Stack { id: StackId(stack), frames, truncated: false });
        for thread in 1..=2 {
            observed.samples.push(Sample {
                thread,
                syscall: (stack % 2 == 0).then(|| "read".to_owned()),
                user_mode: stack % 2 == 1,
                stack: StackId(if stack % 2 == 0 { stack } else { 0 }),
                user_stack: StackId(STACKS + 1 - stack),
                count: 40 + stack % 50,
            });
        }
    }
    let mut recording = sample::empty();
    recording.places = vec![sample::ext4("ext4", &[])];
    recording.commands = vec![sample::command("make world")];
    let wall_ns = ended_ns - started_ns;
    recording.push_run(sample::run(0, CacheState::AsIs, true, wall_ns));
    recording.traces = vec![Trace { wall_ns, observed, ..Trace::default() }];
    recording
}
