//! SIGKILL at random moments: nothing of the run is left, whatever it was doing.

mod support;

use std::fs;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use support::state::{Moments, State, loop_devices, names, our_programs, processes_with};
use support::{eventually, inodyne, machine, run, scratch, start};

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
        // A duration that no other process sleeps: by it the command's processes are known.
        let asleep = format!("4711.{number:03}");
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
        command.env("INODYNE_SCRATCH", images.path()).arg("prove").arg(&file).args(["dtype-missing", "-n", "50"]);
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
