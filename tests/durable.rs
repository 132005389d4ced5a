//! `--durable`: what a command leaves in memory is timed, and what was there before it is not.

mod support;

use inodyne_model::metric::Metric;
use inodyne_model::recording::Recording;
use inodyne_model::run::Run;
use support::{inodyne, machine, run, traced};

const MEGABYTE: u64 = 1_000_000;
const PLACE: [&str; 2] = ["--at", "ext4:size=512M"];

fn measured(options: &[&str], script: &str) -> Recording {
    let options = [&PLACE[..], &["--durable", "--no-trace"], options].concat();
    run(&mut traced(&options, ["sh", "-c", script])).ended_with(0).recording()
}

/// How long the place's file system took to be flushed in each run, the shortest first.
fn flushes_ns(recording: &Recording) -> Vec<u64> {
    let flush = |run: &Run| run.durable_ns.expect("it was flushed").saturating_sub(run.wall_ns).0;
    let mut times: Vec<u64> = recording.runs.iter().map(flush).collect();
    times.sort_unstable();
    times
}

#[test]
fn what_a_command_leaves_in_memory_is_written() {
    let _machine = machine();
    let recording = measured(&["-n", "3"], "dd if=/dev/urandom of=file bs=1M count=100 status=none");
    for run in &recording.runs {
        assert!(run.durable_ns > Some(run.wall_ns), "{run:?}");
        assert!(run.device_write_bytes >= Some(100 * MEGABYTE), "{run:?}");
    }
    let times = recording.statistics[0].durable.as_ref().expect("they are times");
    let least = recording.runs.iter().filter_map(|run| run.durable_ns).min();
    assert_eq!((times.spread.n, Some(times.spread.min_ns)), (3, least));
}

/// On a busy machine flushing nothing may take long too, but not always; flushing 200 MB takes long most of the time, whoever
/// else writes. The file is a new one each time: ext4 begins to write one that was cut off and written again when it is
/// closed (`auto_da_alloc`).
#[test]
fn the_time_to_durable_has_the_flush_in_it() {
    let _machine = machine();
    let script = "dd if=/dev/zero of=file bs=1M count=200 status=none";
    let options = ["-n", "7", "--prepare", "rm -f file"];
    let (much, nothing) = (flushes_ns(&measured(&options, script)), flushes_ns(&measured(&options, "true")));
    let (much, nothing) = (much[much.len() / 2], nothing[0]);
    assert!(much > 3 * nothing, "flushing 200 MB took {much} ns, nothing {nothing} ns");
    // A clock that is not read after the flush shows microseconds.
    assert!(much > 1_000_000, "200 MB were not written in {much} ns");
}

#[test]
fn what_was_written_before_is_not_charged() {
    let _machine = machine();
    let before = "dd if=/dev/urandom of=file bs=1M count=100 status=none";
    for cache in ["as-is", "warm", "cold"] {
        let recording = measured(&["-n", "2", "--cache", cache, "--prepare", before], "echo a little >little");
        for run in &recording.runs {
            assert!(run.durable_ns.is_some() && run.device_write_bytes < Some(20 * MEGABYTE), "{cache}: {run:?}");
        }
    }
}

#[test]
fn both_times_are_compared() {
    let _machine = machine();
    let write = "dd if=/dev/urandom of=file bs=1M count=20 status=none";
    let waits = format!("{write} conv=fsync");
    let options = ["compare", "--format", "json", "--durable", "-n", "6", "--traced", "1"];
    let compared = run(inodyne().args(options).args(PLACE).args(["-c", write, "-c", &waits]));
    let recording = compared.ended_with(0).recording();
    let medians = |metric: Metric| {
        let found = recording.comparisons.iter().find(|found| found.metric == metric).expect("it was compared");
        assert_eq!((found.pairs, found.failed, found.traced), (6, 0, false));
        assert!(found.ci_low.is_some(), "{found:?}");
        [found.a_median_ns, found.b_median_ns]
    };
    let (to_exit, to_durable) = (medians(Metric::Wall), medians(Metric::Durable));
    assert!(to_exit[0] < to_durable[0] && to_exit[1] < to_durable[1], "{to_exit:?} {to_durable:?}");
    assert!(recording.runs.iter().all(|run| run.durable_ns.is_some() != run.traced), "only untraced runs are timings");
}

#[test]
fn where_nothing_can_be_durable_that_is_said() {
    let _machine = machine();
    let line = run(&mut traced(&["--at", "tmpfs", "--durable", "-n", "1"], ["true"])).failed_in_one_line(2);
    assert!(line.contains("nothing is ever durable"), "{line}");
    let line = run(&mut traced(&["--durable"], ["touch", "/never"])).failed_in_one_line(2);
    assert!(line.contains("--durable is timed in untraced runs"), "{line}");
    let text = run(inodyne().args(["run", "-v", "--durable", "-n", "2"]).args(PLACE).args(["--", "true"]))
        .ended_with(0)
        .stderr;
    assert!(text.contains(" to exit, ") && text.contains(" to durable\n"), "{text}");
    assert!(text.lines().any(|line| line.trim_start().starts_with("to durable ")), "a row of the runs: {text}");
}
