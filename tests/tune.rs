//! Tuning for real: planted truths are found with what they need, nothing is found where nothing can help, and nothing is left behind.

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use inodyne_model::recording::Recording;
use inodyne_model::tuning::{Risk, Tried, TuneVerdict, Tuning};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::{major, minor};
use support::state::{Moments, State};
use support::{Outcome, eventually, fixture, inodyne, load, machine, run, scratch, start};

/// Tunes, and reads what was kept.
fn tuned(file: &Path, options: &[&str], command: &[&str]) -> (Outcome, Tuning) {
    tuned_by("6", file, options, command)
}

/// The same, confirmed on so many pairs: short runs need more, as one that was held up must not decide.
fn tuned_by(pairs: &str, file: &Path, options: &[&str], command: &[&str]) -> (Outcome, Tuning) {
    let mut tune = inodyne();
    tune.args(["tune", "--no-trace", "-n", pairs, "-o"]).arg(file).args(options).arg("--").args(command);
    let outcome = run(&mut tune).ended_with(0);
    let tuning = load(file).expect("it was kept").tuning.expect("a tuning");
    (outcome, tuning)
}

/// How often something is tried: here, and by `make test-tune`.
fn times(short: u64, long: u64) -> u64 {
    if std::env::var_os("INODYNE_LONG").is_some() { long } else { short }
}

fn best(tuning: &Tuning) -> &Tried {
    &tuning.tried[tuning.best.unwrap_or_else(|| panic!("nothing helps: {tuning:?}"))]
}

/// Most of the time of a walk over large inodes goes into waiting for blocks of the inode table.
#[test]
fn read_ahead_of_inodes_helps_a_cold_walk_on_a_slow_device() {
    let (_machine, scratch) = (machine(), scratch());
    let file = scratch.path().join("walk.inodyne");
    let place = "ext4:size=128M,mkfs=-O ^dir_index -I 1024,delay=5ms";
    let options = ["--at", place, "--data", "tree:dirs=30,files=100,bytes=1", "--cache", "cold", "--setting"];
    let options: Vec<&str> = options.into_iter().chain(["inode_readahead_blks"]).collect();
    let (outcome, tuning) = tuned_by("10", &file, &options, &["find", ".", "-size", "+1k"]);
    let best = best(&tuning);
    assert_eq!((best.verdict, best.risk(), tuning.complete), (TuneVerdict::Helps, Risk::None, true));
    let confirmed = best.confirmed.expect("it was confirmed");
    assert!(confirmed.pairs >= 6 && confirmed.ci_high.is_some_and(|high| high < 0.8), "{confirmed:?}");
    let told = outcome.text();
    assert!(told.contains("inode_readahead_blks=") && told.contains("/etc/fstab: add"), "{told}");
    assert!(told.lines().count() <= 24 && told.lines().all(|line| line.chars().count() <= 80), "{told}");
    let shown = run(inodyne().arg("show").arg(&file)).ended_with(0).text();
    assert_eq!(shown, told);
    let csv = run(inodyne().args(["show", "--section", "tune", "--format", "csv"]).arg(&file)).ended_with(0).text();
    assert_eq!(csv.lines().count(), 1 + tuning.tried.len(), "{csv}");
}

/// More blocks of metadata change than a small journal holds: everybody waits until those in it are written to their places.
#[test]
fn a_larger_journal_helps_a_storm_of_new_files_on_a_slow_device() {
    let (_machine, scratch) = (machine(), scratch());
    let file = scratch.path().join("storm.inodyne");
    let storm = "
import os
for directory in map(str, range(300)):
    os.mkdir(directory)
    for name in map(str, range(100)):
        os.close(os.open(directory + '/' + name, os.O_CREAT))";
    let options = ["--at", "ext4:size=256M,mkfs=-J size=4,delay=10ms", "--setting", "journal-size=64"];
    let (outcome, tuning) = tuned_by("12", &file, &options, &["/usr/bin/python3", "-c", storm]);
    assert_eq!(best(&tuning).written(), "-J size=64");
    assert!(outcome.text().contains("mkfs.ext4 -J size=64"), "{}", outcome.text());
}

/// Files that were just made are noted as read by whoever reads them first: each is a write.
#[test]
fn noatime_helps_who_reads_files_for_the_first_time() {
    let (_machine, scratch) = (machine(), scratch());
    let file = scratch.path().join("reads.inodyne");
    let place = ["--at", "ext4:size=128M,delay=50ms", "--data", "tree:dirs=40,files=50,bytes=100"];
    let options: Vec<&str> = place.into_iter().chain(["--objective", "durable", "--setting", "atime"]).collect();
    let (outcome, tuning) = tuned_by("12", &file, &options, &["sh", "-c", "cat */* >/dev/null"]);
    assert_eq!((best(&tuning).written().as_str(), best(&tuning).risk()), ("noatime", Risk::None));
    assert!(outcome.text().contains("until durable"), "{}", outcome.text());
}

/// A number that the command prints, and not its time: what is fastest is not best.
#[test]
fn a_number_of_the_commands_own_is_what_becomes_better() {
    let (_machine, scratch) = (machine(), scratch());
    let file = scratch.path().join("number.inodyne");
    // It prints 100 and sleeps for nothing, or 140 and for a while, among words and errors.
    let command = ["sh", "-c", "echo about IOPS >&2; echo iops={more}; sleep 0.0{more}"];
    let tuned = |objective: &str| {
        let options = ["--at", "tmpfs", "-L", "more=100,140,120", "--objective", objective];
        let (outcome, tuning) = tuned(&file, &options, &command);
        (outcome.text(), tuning)
    };
    let (told, tuning) = tuned("highest:sed -n s/iops=//p");
    assert_eq!((best(&tuning).written().as_str(), tuning.number.as_deref()), ("more=140", Some("sed -n s/iops=//p")));
    assert!(told.contains(" on tmpfs (as is): 100.0\n"), "{told}");
    assert!(told.contains("more=140 helps: 140.0 instead of 100.0, +40% [+40%, +40%]"), "{told}");
    let runs = load(&file).expect("it was kept").runs;
    assert!(runs.iter().all(|run| run.number.is_some_and(|number| (100.0..=140.0).contains(&number))), "{runs:?}");
    let (told, tuning) = tuned("lowest:sed -n s/iops=//p");
    assert_eq!((tuning.best, tuning.complete), (None, true), "{told}");
    assert!(told.contains("No setting was shown to help by 2% or more"), "{told}");
}

#[test]
fn what_prints_no_number_is_told() {
    let (_machine, scratch) = (machine(), scratch());
    for (objective, said) in
        [("lowest:true", "printed \"\""), ("highest:echo -1", "printed \"-1\""), ("lowest:exit 3", "exit code 3")]
    {
        let options = ["--at", "tmpfs", "-L", "more=1,2", "--objective", objective];
        let mut tune = inodyne();
        let outcome = run(tune
            .args(["tune", "--no-trace"])
            .args(options)
            .args(["--", "echo", "{more}"])
            .current_dir(scratch.path()));
        let last = outcome.stderr.lines().last().unwrap_or_default();
        assert!(outcome.status.code() == Some(1) && last.contains(said), "{}", outcome.stderr);
    }
}

/// With a trace, the finding comes first; its risk is stated.
#[test]
fn metacopy_helps_a_chown_on_an_overlay() {
    let (_machine, scratch) = (machine(), scratch());
    let file = scratch.path().join("chown.inodyne");
    let options = ["--at", "overlay:lower=ext4:size=128M", "--data", "tree:dirs=3,files=100,bytes=8000"];
    let settings = ["--setting", "metacopy", "--setting", "redirect_dir"];
    let options: Vec<&str> = options.into_iter().chain(settings).collect();
    let (outcome, tuning) = tuned_by("12", &file, &options, &["chown", "-R", "1", "."]);
    let best = best(&tuning);
    assert_eq!((best.written().as_str(), best.risk()), ("metacopy=on", Risk::Security));
    assert!(outcome.text().contains("Its risk: security"), "{}", outcome.text());
    // Renaming is not part of it.
    assert_ne!(tuning.tried[1].verdict, TuneVerdict::Helps);
}

/// A tree that somebody looked at a moment ago, which the kernel no longer trusts unless it is told to.
#[test]
fn timeouts_help_who_looks_at_a_fuse_server_again() {
    let (_machine, scratch) = (machine(), scratch());
    let file = scratch.path().join("again.inodyne");
    let options = ["--at", "fuse:tmpfs", "--data", "tree:dirs=10,files=100,bytes=1", "--setting", "fuse-timeouts"];
    let before = ["--prepare", "find . -size +1k >/dev/null; sleep 1.1"];
    let (outcome, tuning) = tuned_by("8", &file, &[&options[..], &before].concat(), &["find", ".", "-size", "+1k"]);
    let best = best(&tuning);
    assert_eq!((best.verdict, best.risk()), (TuneVerdict::Helps, Risk::Safety));
    assert!(best.confirmed.is_some_and(|confirmed| confirmed.ratio < 0.8), "{best:?}");
    let told = outcome.text();
    assert!(told.contains("-o entry_timeout=60,attr_timeout=60") && !told.contains("not tried here"), "{told}");
}

/// On a mount that already exists, what is restored at the end is tried, and what else would help is said.
#[test]
fn a_mount_that_is_there_is_read_ahead_otherwise_and_its_options_are_advised() {
    let (_machine, scratch) = (machine(), scratch());
    let server = fixture("findings/round-trips", scratch.path());
    let place = scratch.path().join("place");
    fs::create_dir(&place).expect("a directory");
    let script = format!("cd '{}' && '{}' serve 100", place.display(), server.display());
    assert!(Command::new("sh").args(["-c", &script]).status().expect("it starts").success());
    let mounted = place.join("mnt");
    let device = fs::metadata(&mounted).expect("it is mounted").dev();
    let read_ahead = format!("/sys/class/bdi/{}:{}/read_ahead_kb", major(device), minor(device));
    let before = fs::read_to_string(&read_ahead).expect("the kernel has it");
    let file = scratch.path().join("mount.inodyne");
    let mut tune = inodyne();
    tune.args(["tune", "--live", "-n", "6", "--screening", "2", "--setting", "read_ahead_kb=4096", "--at"])
        .arg(&mounted);
    tune.arg("-o").arg(&file).args(["--", "sh", "-c", "i=0; while [ $i -lt 500 ]; do [ -e file ]; i=$((i+1)); done"]);
    let outcome = run(&mut tune);
    let after = fs::read_to_string(&read_ahead).expect("the kernel has it");
    assert!(Command::new("umount").arg(&mounted).status().expect("it starts").success());
    let told = outcome.ended_with(0).text();
    assert_eq!(before, after);
    let tried = &load(&file).expect("it was kept").tuning.expect("a tuning").tried;
    assert!(tried.len() == 1 && tried[0].screened.is_some(), "{tried:?}");
    assert!(told.contains("not tried here") && told.contains("entry_timeout"), "{told}");
}

#[test]
fn nothing_helps_a_loop_of_cached_reads_and_what_is_refused_is_told() {
    let (_machine, scratch) = (machine(), scratch());
    let file = scratch.path().join("reads.inodyne");
    let settings =
        ["commit=60", "read_ahead_kb=1024", "vfs_cache_pressure=50", "nr_requests=100000", "journal-size=900"];
    let settings = settings.iter().flat_map(|setting| ["--setting", setting]);
    let place = ["--at", "ext4:size=64M", "--data", "tree:dirs=1,files=1,bytes=65536", "--margin", "10%"];
    let options: Vec<&str> = place.into_iter().chain(settings).collect();
    let reads = "for i in $(seq 100); do read line < d0/f0; done; true";
    let (outcome, tuning) = tuned(&file, &options, &["sh", "-c", reads]);
    assert_eq!((tuning.best, tuning.complete, tuning.tried.len() >= 5), (None, true, true), "{tuning:?}");
    assert!(outcome.text().contains("No setting was shown to help by 10% or more"), "{}", outcome.text());
    let refused: Vec<&Tried> = tuning.tried.iter().filter(|tried| tried.verdict == TuneVerdict::Refused).collect();
    let reasons: Vec<&str> = refused.iter().filter_map(|tried| tried.reason.as_deref()).collect();
    assert_eq!(refused.len(), 2, "{tuning:?}");
    assert!(reasons[0].contains("nr_requests") && reasons[1].contains("mkfs.ext4"), "{reasons:?}");
    assert!(outcome.text().contains("nr_requests=100000 refused"), "{}", outcome.text());
}

/// At most one winner in twenty trials is by chance, even with the default margin and many settings.
#[test]
fn chance_wins_hardly_ever() {
    let (_machine, scratch) = (machine(), scratch());
    let file = scratch.path().join("chance.inodyne");
    let reads = "for i in $(seq 100); do read line < d0/f0; done; true";
    let settings = [
        "vfs_cache_pressure=50",
        "vfs_cache_pressure=10",
        "read_ahead_kb=1024",
        "read_ahead_kb=0",
        "inode_readahead_blks=256",
    ];
    let settings = settings.iter().flat_map(|setting| ["--setting", setting]);
    let place = ["--at", "ext4:size=64M", "--data", "tree:dirs=1,files=1,bytes=65536"];
    let options: Vec<&str> = place.into_iter().chain(settings).collect();
    let trials = times(2, 20);
    let winner = |number: u64| {
        let seed = number.to_string();
        let (_, tuning) = tuned(&file, &[&options[..], &["--seed", &seed]].concat(), &["sh", "-c", reads]);
        tuning.best.map(|best| tuning.tried[best].clone())
    };
    let winners: Vec<Tried> = (0..trials).filter_map(winner).collect();
    assert!(winners.len() <= 1, "{winners:?} of {trials}");
}

#[test]
fn the_users_own_parameters_are_tuned_too() {
    let (_machine, scratch) = (machine(), scratch());
    let file = scratch.path().join("sleep.inodyne");
    let options = ["--at", "tmpfs", "--setting", "vfs_cache_pressure=50", "--param", "time=0.3,0.05"];
    let (_, tuning) = tuned_by("8", &file, &options, &["sleep", "{time}"]);
    assert_eq!(best(&tuning).written(), "time=0.05");
}

/// In a directory that already existed, only what is restored changes.
#[test]
fn live_settings_are_restored() {
    let (_machine, scratch) = (machine(), scratch());
    let file = scratch.path().join("live.inodyne");
    let pressure = || std::fs::read_to_string("/proc/sys/vm/vfs_cache_pressure").expect("it is there");
    let before = pressure();
    let at = scratch.path().display().to_string();
    let options = ["--live", "--at", at.as_str(), "--setting", "vfs_cache_pressure=77"];
    let (_, tuning) = tuned(&file, &options, &["sh", "-c", "cat /proc/sys/vm/vfs_cache_pressure >> seen"]);
    assert_eq!(tuning.tried.len(), 1);
    let seen = std::fs::read_to_string(scratch.path().join("seen")).expect("the command wrote it");
    assert!(seen.lines().any(|line| line == "77") && seen.lines().any(|line| line == before.trim()), "{seen}");
    assert_eq!(pressure(), before);
}

/// What was measured before a SIGKILL is not measured again.
#[test]
fn a_killed_tuning_goes_on_from_where_it_was() {
    let (_machine, scratch) = (machine(), scratch());
    let file = scratch.path().join("killed.inodyne");
    let begun = scratch.path().join("begun");
    let script = format!("echo {{time}} >> {}; sleep {{time}}", begun.display());
    let runs = || std::fs::read_to_string(&begun).unwrap_or_default().lines().count();
    let tune = |file: &Path, more: &[&str]| {
        let mut tune = inodyne();
        tune.args(["tune", "-n", "8", "--at", "tmpfs", "--param", "time=0.5,0.05,0.6", "-o"]).arg(file).args(more);
        tune.args(["--setting", "vfs_cache_pressure=50", "--", "sh", "-c", &script]);
        tune
    };
    let first = start(&mut tune(&file, &[]));
    assert!(eventually(|| runs() >= 8), "it runs: {}", runs());
    kill(first.pid(), Signal::SIGKILL).expect("it is there");
    drop(first.end());
    let kept = load(&file).expect("it was kept");
    let told = run(inodyne().arg("show").arg(&file)).ended_with(0).text();
    assert!(told.contains("before anything was judged"), "{told}");
    assert!((2..=runs()).contains(&kept.runs.len()), "{} of {}", kept.runs.len(), runs());
    let before = runs();
    run(&mut tune(&file, &["--resume"])).ended_with(0);
    let whole = load(&file).expect("it was kept");
    let tuning = whole.tuning.clone().expect("a tuning");
    assert_eq!((best(&tuning).written().as_str(), tuning.complete), ("time=0.05", true));
    assert_eq!(whole.traces.len(), 1);
    // All but the runs of the block that was cut short were taken over as they were.
    let taken = whole.runs.len() - (runs() - before);
    let again = kept.runs.len() - taken;
    assert!(again < 4, "{again} of {} runs were done again", kept.runs.len());
    assert_eq!(whole.runs[..taken], kept.runs[..taken]);
    // Once more, and nothing runs.
    let before = runs();
    run(&mut tune(&file, &["--resume"])).ended_with(0);
    let same = load(&file).expect("it was kept");
    assert_eq!((runs(), same.runs, same.tuning, same.traces.len()), (before, whole.runs, whole.tuning, 1));
    // It cannot be continued as something else, and stays as it is.
    let refused = run(&mut tune(&file, &["--resume", "--objective", "durable"])).ended_with(2);
    assert!(refused.stderr.contains("leave --resume out"), "{}", refused.stderr);
    let refused = run(&mut tune(&file, &["--resume", "--setting", "vfs_cache_pressure=77"])).ended_with(2);
    assert!(refused.stderr.contains("of something else: place vfs_cache_pressure=77"), "{}", refused.stderr);
    assert_eq!(runs(), before);
    // Where there is no recording yet, it begins one.
    let other = scratch.path().join("other.inodyne");
    run(&mut tune(&other, &["--resume"])).ended_with(0);
    assert!(load(&other).expect("it was kept").tuning.is_some_and(|tuning| tuning.complete));
}

#[test]
fn a_command_that_fails_has_nothing_to_tune() {
    let _machine = machine();
    for options in [&["--no-trace"][..], &[]] {
        let settings = ["--at", "tmpfs", "--setting", "vfs_cache_pressure=50"];
        let outcome = run(inodyne().arg("tune").args(options).args(settings).args(["--", "false"])).ended_with(1);
        let last = outcome.stderr.lines().last().unwrap_or_default();
        assert!(last.contains("'false' ended otherwise than expected: with exit code 1"), "{}", outcome.stderr);
        assert!(!outcome.text().contains(" helps"), "{}", outcome.text());
    }
}

#[test]
fn with_caches_in_another_state_it_is_another_tuning() {
    let (_machine, scratch) = (machine(), scratch());
    let file = scratch.path().join("kept.inodyne");
    let tune = |more: &[&str]| {
        let mut tune = inodyne();
        tune.args(["tune", "--no-trace", "-n", "1", "--screening", "1", "--at", "tmpfs"]).args(more);
        tune.args(["--setting", "vfs_cache_pressure=50", "-o"]).arg(&file).args(["--", "true"]);
        run(&mut tune)
    };
    tune(&[]).ended_with(0);
    let before = load(&file).expect("it was kept");
    let line = tune(&["--resume", "--cache", "warm"]).failed_in_one_line(2);
    assert!(line.contains("in this state of the caches"), "{line}");
    assert_eq!(load(&file).expect("it is there"), before);
}

/// Ctrl-C ends with what is known; SIGKILL leaves nothing either.
#[test]
fn an_end_at_any_moment_leaves_the_machine_as_it_was() {
    let (_machine, images) = (machine(), scratch());
    let before = State::now(images.path());
    let tune = |file: Option<&Path>| {
        let mut command = inodyne();
        command.env("INODYNE_SCRATCH", images.path()).args(["tune", "--no-trace", "-n", "50", "--screening", "50"]);
        command.args(file.iter().flat_map(|file| [Path::new("-o"), file]));
        // Each run takes so long that there is time between the first ones and the end.
        command.args([
            "--at",
            "ext4:size=64M,delay=10ms",
            "--data",
            "tree:dirs=10,files=10,bytes=1",
            "--cache",
            "cold",
        ]);
        command.args(["--setting", "vfs_cache_pressure=77", "--setting", "read_ahead_kb=64", "--setting", "atime"]);
        start(command.args(["--", "find", "."]))
    };
    let mut moments = Moments::new();
    for number in 0..times(10, 30) {
        let running = tune(None);
        let moment = moments.below(2_000);
        thread::sleep(Duration::from_millis(moment));
        kill(running.pid(), Signal::SIGKILL).expect("it is killed");
        drop(running.end());
        let told = format!("kill {number} after {moment} ms");
        assert!(
            eventually(|| State::now(images.path()) == before),
            "{told}: {before:?}\n{:?}",
            State::now(images.path())
        );
    }
    let kept = scratch();
    let file = kept.path().join("ended.inodyne");
    let running = tune(Some(&file));
    let has_runs = |recording: Recording| recording.runs.len() >= 6;
    assert!(eventually(|| load(&file).is_ok_and(has_runs)), "nothing was kept");
    kill(running.pid(), Signal::SIGINT).expect("it runs");
    let outcome = running.end().ended_with(130);
    assert!(outcome.text().contains("It ended early"), "{}", outcome.text());
    assert!(load(&file).expect("it was kept").tuning.is_some_and(|tuning| !tuning.complete));
    assert!(eventually(|| State::now(images.path()) == before));
}
