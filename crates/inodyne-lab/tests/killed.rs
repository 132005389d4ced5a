//! Killed at any moment, nothing remains: the promise that lets people run this as root.

mod common;

use std::{
    process::{Command, Stdio},
    thread,
    time::Instant,
};

use common::{hold, nothing_remains, scratch};

#[test]
fn killed_at_random_moments_nothing_remains() {
    killed_at_random_moments(&["ext4:size=256M", "xfs:size=300M"], 12);
}

#[test]
fn stacks_killed_at_random_moments_leave_nothing() {
    killed_at_random_moments(&["overlay:lower=ext4:size=256M,layers=2", "bind:squashfs", "erofs"], 12);
}

#[test]
fn served_places_killed_at_random_moments_leave_nothing() {
    killed_at_random_moments(&["fuse:ext4:size=64M", "ext4:size=64M,delay=1ms", "xfs:size=300M,bandwidth=200M"], 12);
}

#[test]
fn shares_killed_at_random_moments_leave_nothing() {
    killed_at_random_moments(&["share:ext4:size=64M", "share:tmpfs,withhold-types,delay=50us"], 12);
}

/// What was to be written at the device's speed is then written at once.
#[test]
fn a_slow_device_with_much_to_write_does_not_outlive_its_owner() {
    let scratch = scratch();
    let mut child = Command::new(hold())
        .arg("ext4:size=64M,bandwidth=64K")
        .env("INODYNE_SCRATCH", scratch.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the example runs");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("its output")));
    let made = lines.next().expect("a line").expect("a line");
    let place = made.rsplit(' ').next().expect("a path");
    let file = format!("/proc/{}/root{place}/file", child.id());
    // At its own speed this would take four minutes.
    std::fs::write(file, vec![7; 16 << 20]).expect("written");
    child.kill().expect("killed");
    child.wait().expect("gone");
    nothing_remains(scratch.path());
}

fn killed_at_random_moments(places: &[&str], times: u32) {
    let scratch = scratch();
    let start = || {
        Command::new(hold())
            .args(places)
            .args(["--", "tree:dirs=100,files=50,bytes=100"])
            .env("INODYNE_SCRATCH", scratch.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the example runs")
    };
    // How long it takes to get ready tells over which span to kill it.
    let started = Instant::now();
    let mut child = start();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("its output")));
    assert!(lines.any(|line| line.expect("a line") == "ready"), "it gets ready");
    let span = started.elapsed();
    child.kill().expect("killed");
    child.wait().expect("gone");
    nothing_remains(scratch.path());

    let mut random = seed();
    for _ in 0..times {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let moment = span.mul_f64(1.1 * (random >> 11) as f64 / (1u64 << 53) as f64);
        let mut child = start();
        thread::sleep(moment);
        child.kill().expect("killed");
        child.wait().expect("gone");
        nothing_remains(scratch.path());
    }
}

/// Different moments each time; `INODYNE_TEST_SEED` set to a seed that was printed gives the same ones again.
fn seed() -> u64 {
    let given = std::env::var("INODYNE_TEST_SEED").ok();
    let given = given.map(|seed| seed.parse().expect("INODYNE_TEST_SEED is a number"));
    let seed: u64 = given.unwrap_or_else(|| 0x2545_f491_4f6c_dd1d ^ u64::from(std::process::id()));
    println!("INODYNE_TEST_SEED={seed}");
    // The generator stays at zero for ever.
    seed.max(1)
}

#[test]
fn ended_properly_nothing_remains_at_once() {
    let scratch = scratch();
    let mut child = Command::new(hold())
        .args(["btrfs:size=128M", "tmpfs"])
        .env("INODYNE_SCRATCH", scratch.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("the example runs");
    assert!(child.wait().expect("ended").success());
    nothing_remains(scratch.path());
}
