//! SIGKILL at random moments: nothing of the run is left, whatever it was doing.

mod support;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use libbpf_rs::query::ProgInfoIter;
use nix::sys::signal::{Signal, kill};
use support::{eventually, inodyne, machine, scratch, start};

const KILLS: u64 = 50;
/// A run takes about a second: file system, data, tracer, command. The moments cover all of it.
const LATEST_MS: u64 = 1500;

/// The state that a run may change and must give back.
#[derive(Debug, PartialEq, Eq)]
struct State {
    mounts: String,
    loop_devices: Vec<String>,
    images: Vec<String>,
    settings: Vec<String>,
}

impl State {
    fn now(images: &Path) -> State {
        let setting = |name: &str| fs::read_to_string(Path::new("/proc/sys").join(name)).unwrap_or_default();
        State {
            mounts: fs::read_to_string("/proc/self/mountinfo").expect("the mounts"),
            loop_devices: loop_devices(images),
            images: names(images),
            settings: ["vm/drop_caches", "kernel/perf_event_paranoid", "vm/dirty_ratio"].map(setting).into(),
        }
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Those that are bound to a file in this directory: others may come and go meanwhile.
fn loop_devices(images: &Path) -> Vec<String> {
    let file = |name: &String| fs::read_to_string(Path::new("/sys/block").join(name).join("loop/backing_file"));
    let bound = |name: &String| file(name).is_ok_and(|file| Path::new(file.trim_end()).starts_with(images));
    let mut devices: Vec<String> = names(Path::new("/sys/block")).into_iter().filter(bound).collect();
    devices.sort();
    devices
}

fn processes_with(word: &str) -> Vec<String> {
    let of = |pid: String| fs::read(Path::new("/proc").join(pid).join("cmdline")).ok();
    let lines = names(Path::new("/proc")).into_iter().filter_map(of);
    lines.map(|line| String::from_utf8_lossy(&line).into_owned()).filter(|line| line.contains(word)).collect()
}

fn our_programs() -> usize {
    ProgInfoIter::default().filter(|program| program.name == "calls_enter").count()
}

/// A linear congruential generator (Knuth's MMIX constants): good enough to pick moments, and the seed is printed.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

#[test]
fn at_fifty_random_moments_nothing_is_left() {
    let _machine = machine();
    let images = scratch();
    let before = State::now(images.path());
    let programs_before = our_programs();
    let mut random = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64;
    println!("seed {random}");
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
        let moment = next(&mut random) % LATEST_MS;
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
