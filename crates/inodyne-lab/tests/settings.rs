//! Settings of the kernel: changed as long as a place is there, and restored after any end.

mod common;

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use common::{alone, hold, lab, make, nothing_remains, refused, scratch};

fn value(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).expect("a setting").trim().to_owned()
}

#[test]
fn a_places_own_device_is_set_and_the_record_says_so() {
    let (lab, scratch) = lab();
    let read_ahead_set = "set=/sys/block/LOOP/queue/read_ahead_kb=4,set=/sys/block/LOOP/queue/scheduler=none";
    for text in [
        format!("ext4:size=16M,{read_ahead_set}"),
        format!("squashfs:{read_ahead_set}"),
        format!("overlay:lower=[ext4:size=16M,{read_ahead_set}]"),
    ] {
        let mut place = make(&lab, &text);
        place.fill(&"tree:dirs=2,files=2,bytes=10".parse().expect("data")).expect("filled");
        for _ in 0..2 {
            let record = place.record();
            let record = record.below.first().unwrap_or(&record);
            let name = record.source.trim_start_matches("/dev/");
            assert_eq!(value(format!("/sys/block/{name}/queue/read_ahead_kb")), "4", "{text}");
            let recorded: Vec<_> = record.settings.iter().map(|(file, value)| format!("{file}={value}")).collect();
            let expected = ["read_ahead_kb=4", "scheduler=none"].map(|set| format!("/sys/block/{name}/queue/{set}"));
            assert_eq!(recorded, expected, "{text}");
            place.remount().expect("mounted again");
        }
        drop(place);
        nothing_remains(scratch.path());
    }
}

#[test]
fn a_file_that_comes_and_goes_with_the_mount_is_set_again() {
    let (lab, _scratch) = lab();
    let mut place = make(&lab, "ext4:size=16M,set=/sys/fs/ext4/LOOP/mb_stream_req=32");
    let file = place.record().source.replace("/dev/", "/sys/fs/ext4/") + "/mb_stream_req";
    assert_eq!(value(&file), "32");
    place.remount().expect("mounted again");
    assert_eq!(value(&file), "32");
}

#[test]
fn another_scheduler_takes_no_setting_back() {
    let (lab, _scratch) = lab();
    let queue = "/sys/block/LOOP/queue";
    let mut place = make(&lab, &format!("ext4:size=16M,set={queue}/nr_requests=32,set={queue}/scheduler=mq-deadline"));
    let file = place.record().source.replace("/dev/", "/sys/block/") + "/queue/nr_requests";
    assert_eq!(value(&file), "32");
    place.remount().expect("mounted again");
    assert_eq!(value(&file), "32");
}

#[test]
fn places_may_want_the_same_and_not_the_different() {
    let _alone = alone();
    let (lab, _scratch) = lab();
    let path = "/proc/sys/kernel/msgmni";
    let before = value(path);
    let first = make(&lab, &format!("tmpfs:size=1M,set={path}=31000"));
    let second = make(&lab, &format!("tmpfs:size=1M,set={path}=31000"));
    let error = refused(&lab, &format!("tmpfs:size=1M,set={path}=31001"));
    assert!(
        error.ends_with("another place has set /proc/sys/kernel/msgmni to 31000: use one of them at a time"),
        "{error}"
    );
    drop(first);
    assert_eq!(value(path), "31000");
    drop(second);
    assert_eq!(value(path), before);
}

#[test]
fn a_place_whose_settings_are_lifted_leaves_the_machine_to_others() {
    let _alone = alone();
    let (lab, _scratch) = lab();
    let path = "/proc/sys/kernel/msgmni";
    let before = value(path);
    // A scheduler is set before the others.
    let device_set = "set=/sys/block/LOOP/queue/read_ahead_kb=4,set=/sys/block/LOOP/queue/scheduler=mq-deadline";
    let first = make(&lab, &format!("overlay:lower=[ext4:size=16M,set={path}=31002,{device_set}]"));
    let read_ahead = first.record().below[0].source.replace("/dev/", "/sys/block/") + "/queue/read_ahead_kb";
    assert_eq!(value(path), "31002");
    first.lift_settings();
    assert_eq!((value(path), value(&read_ahead)), (before.clone(), "4".to_owned()));
    let second = make(&lab, &format!("tmpfs:size=1M,set={path}=31003"));
    assert_eq!(value(path), "31003");
    second.lift_settings();
    let base = make(&lab, "tmpfs:size=1M");
    base.impose_settings().expect("it has none");
    assert_eq!(value(path), before);
    for _ in 0..2 {
        for (place, set) in [(&first, "31002"), (&second, "31003")] {
            place.impose_settings().expect("in force");
            assert_eq!(value(path), set);
            place.lift_settings();
            assert_eq!(value(path), before);
        }
    }
}

#[test]
fn mistakes_in_settings_get_one_clear_line() {
    let (lab, scratch) = lab();
    for (text, says) in [
        ("ext4:size=16M,set=/sys/block/LOOP/queue/no-such=1", "/queue/no-such to 1: there is no such file"),
        ("ext4:size=16M,set=/sys/block/LOOP/queue/scheduler=nonsense", "Invalid argument"),
        ("ext4:size=16M,set=/sys/block/LOOP/queue/nr_requests=1", "nr_requests to 1: "),
        ("tmpfs:set=/sys/kernel/../../etc/hostname=x", "only files under /sys and /proc/sys"),
        ("tmpfs:set=/sys/fs/cgroup/unified/cgroup.max.depth=1", "leads out of /sys/"),
    ] {
        let error = refused(&lab, text);
        assert!(error.contains(says), "{text}: {error}");
        nothing_remains(scratch.path());
    }
}

fn start(scratch: &Path, place: &str) -> Child {
    let mut command = Command::new(hold());
    command.arg(place).env("INODYNE_SCRATCH", scratch).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::piped()).spawn().expect("the example runs")
}

fn ready(child: &mut Child) {
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    if !lines.any(|line| line.expect("a line") == "ready") {
        let mut said = String::new();
        child.stderr.take().expect("its errors").read_to_string(&mut said).expect("text");
        panic!("it does not get ready: {said}");
    }
}

/// The guards of a process.
fn guards(parent: u32) -> Vec<String> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).expect("children");
    let is_guard = |pid: &&str| value(format!("/proc/{pid}/comm")) == "inodyne-guard";
    children.split_whitespace().filter(is_guard).map(str::to_owned).collect()
}

/// What a process has open.
fn descriptors(pid: &str) -> Vec<PathBuf> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).expect("descriptors").flatten();
    descriptors.filter_map(|fd| fs::read_link(fd.path()).ok()).collect()
}

#[test]
fn a_killed_process_leaves_no_setting() {
    let _alone = alone();
    let scratch = scratch();
    let path = "/proc/sys/kernel/msgmax";
    let before = value(path);
    let wanted = (before.parse::<u64>().expect("a number") + 1).to_string();
    let place = format!("ext4:size=16M,set={path}={wanted},set=/sys/block/LOOP/queue/read_ahead_kb=8");
    for round in 0..8 {
        let mut child = start(scratch.path(), &place);
        if round % 2 == 0 {
            ready(&mut child);
            assert_eq!(value(path), wanted);
            let guards = guards(child.id());
            assert_eq!(guards.len(), 2);
            for guard in &guards {
                // The end by which it said that it is ready is closed right after that.
                let started = Instant::now();
                while descriptors(guard).len() > 2 && started.elapsed() < Duration::from_secs(20) {
                    thread::sleep(Duration::from_millis(5));
                }
                let open = descriptors(guard);
                assert!(
                    open.len() == 2 && open.iter().any(|to| to.starts_with("/proc") || to.starts_with("/sys")),
                    "{open:?}"
                );
                let signals = ["INT", "TERM", "HUP", "QUIT", "TSTP", "PIPE"].map(|name| format!("-{name}"));
                for signal in signals {
                    assert!(Command::new("kill").arg(signal).arg(guard).status().expect("kill runs").success());
                }
            }
            let another = start(scratch.path(), &place).wait_with_output().expect("ended");
            let said = String::from_utf8_lossy(&another.stderr);
            assert!(said.contains("another inodyne has changed it"), "{said}");
        } else {
            thread::sleep(Duration::from_millis(15 * round));
        }
        child.kill().expect("killed");
        child.wait().expect("gone");
        let started = Instant::now();
        while value(path) != before {
            assert!(started.elapsed() < Duration::from_secs(20), "not restored");
            thread::sleep(Duration::from_millis(5));
        }
        nothing_remains(scratch.path());
    }
}

#[test]
fn ended_properly_a_setting_is_restored_before_the_end() {
    let _alone = alone();
    let scratch = scratch();
    let path = "/proc/sys/fs/inotify/max_queued_events";
    let before = value(path);
    let mut child = start(scratch.path(), &format!("tmpfs:size=1M,set={path}=16383"));
    ready(&mut child);
    assert_eq!(value(path), "16383");
    drop(child.stdin.take());
    assert!(child.wait().expect("ended").success());
    assert_eq!(value(path), before);
}
