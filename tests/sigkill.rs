//! SIGKILL at random moments: nothing of the run is left, whatever it was doing.

mod support;

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use support::programs;
use support::state::{Moments, State, loop_devices, names, our_programs, processes_with, servers_over};
use support::{Cgroup, eventually, inodyne, machine, run, scratch, start};

const KILLS: u64 = 50;
/// A run takes about a second: file system, data, tracer, command. The moments cover all of it.
const LATEST_MS: u64 = 1500;

#[test]
fn at_fifty_random_moments_nothing_is_left() {
    let _machine = machine();
    let images = scratch();
    let before = State::now(images.path());
    let programs_before = our_programs();
    let mut moments = Moments::new();
    for number in 0..KILLS {
        // A duration that no other process sleeps, not even one that another run of this test has left: it identifies the command's
        // processes.
        let asleep = format!("4711.{:07}{number:03}", std::process::id());
        let script = format!(
            "sleep {asleep} & (setsid sleep {asleep} &) & sleep {asleep} & kill -STOP $!; find . >/dev/null; sleep {asleep}"
        );
        let mut command = inodyne();
        command.env("INODYNE_SCRATCH", images.path());
        command.args(["run", "--at", "ext4:size=64M", "--data", "tree:dirs=100,files=10,bytes=1", "--cache", "cold"]);
        let running = start(command.args(["--", "sh", "-c", &script]));
        let moment = moments.below(LATEST_MS);
        thread::sleep(Duration::from_millis(moment));
        kill(running.pid(), Signal::SIGKILL).expect("it is killed");
        let told = format!("kill {number} after {moment} ms");
        assert!(eventually(|| processes_with(&asleep).is_empty()), "{told}: {:?}", processes_with(&asleep));
        drop(running.end());
        assert!(eventually(|| our_programs() <= programs_before), "{told}: BPF programs are still loaded");
        assert!(
            eventually(|| State::now(images.path()) == before),
            "{told}: {before:?}\n{:?}",
            State::now(images.path())
        );
    }
}

/// A proof makes its own places and changes them; killed, it leaves none, and the recording as it was.
#[test]
fn a_proof_that_is_killed_leaves_nothing() {
    let _machine = machine();
    let (images, scratch) = (scratch(), scratch());
    let file = scratch.path().join("find.inodyne");
    let slow = ["--at", "ext4:size=64M,mkfs=-O ^filetype", "--data", "tree:dirs=100,files=30,bytes=1"];
    run(inodyne().args(["run", "--cache", "warm", "-o"]).arg(&file).args(slow).args(["--", "find", "."])).ended_with(0);
    let recorded = fs::read(&file).expect("the recording");
    let before = State::now(images.path());
    let beside = names(scratch.path());
    let mut moments = Moments::new();
    for number in 0..10 {
        let mut command = inodyne();
        command.env("INODYNE_SCRATCH", images.path()).args(["prove", "--yes"]).arg(&file).args([
            "dtype-missing",
            "-n",
            "50",
        ]);
        let running = start(&mut command);
        let moment = moments.below(LATEST_MS);
        thread::sleep(Duration::from_millis(moment));
        kill(running.pid(), Signal::SIGKILL).expect("it is killed");
        drop(running.end());
        let told = format!("kill {number} after {moment} ms");
        assert!(
            eventually(|| State::now(images.path()) == before),
            "{told}: {before:?}\n{:?}",
            State::now(images.path())
        );
        assert_eq!(fs::read(&file).expect("it is still there"), recorded, "{told}");
        assert_eq!(names(scratch.path()), beside, "{told}");
    }
}

/// As a service manager or a CI runner ends a job: all processes of its control group at once, also those that would clean up.
#[test]
fn a_setting_is_restored_when_the_whole_control_group_is_killed() {
    const SETTING: &str = "/proc/sys/kernel/msgmax";
    let (_machine, images, cgroup) = (machine(), scratch(), Cgroup::of_service());
    let value = || fs::read_to_string(SETTING).expect("the setting").trim().to_owned();
    let before = value();
    let other = (before.parse::<u64>().expect("a number") - 1).to_string();
    let members = cgroup.0.join("cgroup.procs");
    let place = format!("ext4:size=64M,set={SETTING}={other}");
    let mut command = Command::new("sh");
    command.env("INODYNE_SCRATCH", images.path());
    command.args(["-c", "echo $$ >\"$0\"; exec \"$@\""]).arg(&members).arg(inodyne().get_program());
    let running = start(command.args(["run", "--no-trace", "--at", &place, "--", "sleep", "4711.888"]));
    assert!(eventually(|| value() == other && processes_with("4711.888").len() >= 2));
    fs::write(cgroup.0.join("cgroup.kill"), "1").expect("Linux 5.14 or later");
    drop(running.end());
    let restored = eventually(|| value() == before);
    if !restored {
        fs::write(SETTING, &before).expect("it could be written before");
    }
    assert!(restored, "it stayed {other}");
}

/// The moments above would prove nothing if none of them hit a running command.
#[test]
fn what_is_looked_for_is_there_meanwhile() {
    let _machine = machine();
    let images = scratch();
    let mut command = inodyne();
    command.env("INODYNE_SCRATCH", images.path());
    let running = start(command.args(["run", "--at", "ext4:size=64M", "--", "sleep", "4711.999"]));
    assert!(eventually(|| !processes_with("4711.999").is_empty() && our_programs() > 0));
    // inodyne's own arguments have the word too; the command's process is another.
    assert!(eventually(|| processes_with("4711.999").len() >= 2), "{:?}", processes_with("4711.999"));
    assert!(!loop_devices(images.path()).is_empty());
    kill(running.pid(), Signal::SIGKILL).expect("it is killed");
    drop(running.end());
    assert!(eventually(|| processes_with("4711.999").is_empty()));
}

const SERVED_KILLS: u64 = 12;

/// Slow devices and FUSE places have servers of ours, which nobody tells to end.
#[test]
fn no_server_and_no_script_outlives_a_killed_run() {
    let _machine = machine();
    let images = scratch();
    let script = images.path().join("make");
    programs::script(&script, "#!/bin/sh\nmkdir d; echo x > d/f; (setsid sleep 4712.5 &); sleep 0.1\n");
    let data = format!("script:{}", script.display());
    let before = State::now(images.path());
    let mut moments = Moments::new();
    for number in 0..SERVED_KILLS {
        let mut command = inodyne();
        command.env("INODYNE_SCRATCH", images.path());
        command.args([
            "compare",
            "--at",
            "fuse:ext4:size=64M",
            "--at",
            "ext4:size=64M,delay=1ms,full=50%",
            "--data",
            &data,
        ]);
        let running = start(command.args([
            "--cache",
            "cold",
            "-n",
            "2",
            "--",
            "sh",
            "-c",
            "find .; dd if=/dev/zero of=z bs=1M count=4",
        ]));
        let moment = moments.below(LATEST_MS);
        thread::sleep(Duration::from_millis(moment));
        kill(running.pid(), Signal::SIGKILL).expect("it is killed");
        drop(running.end());
        let told = format!("kill {number} after {moment} ms");
        assert!(eventually(|| processes_with("4712.5").is_empty()), "{told}: {:?}", processes_with("4712.5"));
        assert!(eventually(|| servers_over(images.path()).is_empty()), "{told}: {:?}", servers_over(images.path()));
        assert!(
            eventually(|| State::now(images.path()) == before),
            "{told}: {before:?}\n{:?}",
            State::now(images.path())
        );
    }
}

/// What kills inodyne's whole process group misses the processes of the command that have a session of their own: the guard
/// must be there to end them, or they keep the place and its servers in use.
#[test]
fn nothing_outlives_a_killed_process_group() {
    let _machine = machine();
    let images = scratch();
    let before = State::now(images.path());
    for number in 0..5 {
        let asleep = format!("4713.{number}");
        let script = format!("setsid sleep {asleep} & sleep {asleep}");
        let mut command = inodyne();
        command.env("INODYNE_SCRATCH", images.path()).process_group(0);
        command.args(["run", "--no-trace", "--at", "fuse:ext4:size=64M,delay=1ms", "--", "sh", "-c", &script]);
        let running = start(&mut command);
        // inodyne, its guard, the shell and both of them.
        assert!(eventually(|| processes_with(&asleep).len() >= 5), "{:?}", processes_with(&asleep));
        killpg(running.pid(), Signal::SIGKILL).expect("it is killed");
        drop(running.end());
        assert!(eventually(|| processes_with(&asleep).is_empty()), "{:?}", processes_with(&asleep));
        assert!(eventually(|| servers_over(images.path()).is_empty()), "{:?}", servers_over(images.path()));
        assert!(eventually(|| State::now(images.path()) == before), "{before:?}\n{:?}", State::now(images.path()));
    }
}
