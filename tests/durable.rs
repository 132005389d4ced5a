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

/// The shortest that any run's file system took to be flushed.
fn flushed_ns(recording: &Recording) -> u64 {
    let flush = |run: &Run| run.durable_ns.expect("it was flushed").saturating_sub(run.wall_ns).0;
    recording.runs.iter().map(flush).min().expect("there are runs")
}

#[test]
fn what_a_command_leaves_in_memory_is_written_and_timed() {
    let _machine = machine();
    let write = measured(&["-n", "3"], "dd if=/dev/urandom of=file bs=1M count=100 status=none");
    for run in &write.runs {
        assert!(run.durable_ns > Some(run.wall_ns), "{run:?}");
        assert!(run.device_write_bytes >= Some(100 * MEGABYTE), "{run:?}");
    }
    let nothing = measured(&["-n", "3"], "true");
    assert!(flushed_ns(&write) > flushed_ns(&nothing), "{} {}", flushed_ns(&write), flushed_ns(&nothing));
    let times = write.statistics[0].durable.as_ref().expect("they are times");
    assert_eq!((times.spread.n, Some(times.spread.min_ns)), (3, write.runs.iter().filter_map(|r| r.durable_ns).min()));
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

/// A command that waits for its data itself is slower to exit, and hardly slower to durable.
#[test]
fn waiting_inside_or_outside_of_the_command_is_told_apart() {
    let _machine = machine();
    let write = "dd if=/dev/urandom of=file bs=1M count=50 status=none";
    let waits = format!("{write} conv=fsync");
    let options = ["compare", "--format", "json", "--durable", "-n", "6", "--traced", "1"];
    let compared = run(inodyne().args(options).args(PLACE).args(["-c", write, "-c", &waits]));
    let recording = compared.ended_with(0).recording();
    let ratio = |metric: Metric| {
        let found = recording.comparisons.iter().find(|found| found.metric == metric).expect("it was compared");
        assert_eq!((found.pairs, found.failed, found.traced), (6, 0, false));
        found.ratio.expect("a ratio")
    };
    let (to_exit, to_durable) = (ratio(Metric::Wall), ratio(Metric::Durable));
    assert!(to_exit > 1.0 && to_durable < to_exit, "{to_exit} {to_durable}");
    assert!(recording.runs.iter().all(|run| run.durable_ns.is_some() != run.traced), "only untraced runs are timings");
}

#[test]
fn where_nothing_can_be_durable_that_is_said() {
    let _machine = machine();
    let line = run(&mut traced(&["--at", "tmpfs", "--durable", "-n", "1"], ["true"])).failed_in_one_line(2);
    assert!(line.contains("nothing is ever durable"), "{line}");
    let line = run(&mut traced(&["--durable"], ["touch", "/never"])).failed_in_one_line(2);
    assert!(line.contains("--durable is timed in untraced runs"), "{line}");
    let text =
        run(inodyne().args(["run", "--durable", "-n", "2"]).args(PLACE).args(["--", "true"])).ended_with(0).stderr;
    assert!(text.contains(" to exit, ") && text.contains(" to durable") && text.contains("to durable s"), "{text}");
}
