//! What comparisons of whole recordings must say.

use inodyne_model::Nanos;
use inodyne_model::ledger::RowKind;
use inodyne_model::run::{CacheState, Exit, Run};
use inodyne_model::sample;

use super::*;

/// Runs of two places in blocks: `slower` is the second's time over the first's.
fn blocks(count: u32, slower: f64) -> Recording {
    let mut recording = sample::empty();
    recording.places = vec![sample::ext4("a", &[]), sample::ext4("b", &[])];
    recording.commands = vec![sample::command("find .")];
    let mut random = Random::seeded(9);
    for block in 0..count {
        for (place, factor) in [(0, 1.0), (1, slower)] {
            let wall = sample::ms(100.0 * factor * (random.normal() * 0.01).exp());
            recording.push_run(Run { block, ..sample::run(place, CacheState::Warm, false, wall) });
        }
    }
    recording
}

fn explained(mut recording: Recording) -> Recording {
    crate::explain(&mut recording);
    recording
}

fn headline(recording: Recording) -> Comparison {
    let recording = explained(recording);
    let mut walls = recording.comparisons.into_iter().filter(|c| c.metric == Metric::Wall);
    let first = walls.next().unwrap();
    assert!(walls.next().is_none());
    first
}

#[test]
fn a_slower_place_is_called_slower() {
    let found = headline(blocks(20, 1.12));
    assert_eq!((found.verdict, found.pairs, found.traced), (Verdict::Slower, 20, false));
    let (low, high) = (found.ci_low.unwrap(), found.ci_high.unwrap());
    assert!(low > 1.09 && low < 1.12 && high > 1.12 && high < 1.15, "[{low}, {high}]");
    assert_eq!(headline(blocks(20, 0.9)).verdict, Verdict::Faster);
    assert_eq!(headline(blocks(20, 1.0)).verdict, Verdict::NoDifference);
    assert_eq!(headline(blocks(3, 2.0)).verdict, Verdict::NotEnoughRuns);
}

#[test]
fn one_case_is_compared_with_nothing() {
    let mut recording = blocks(10, 1.0);
    recording.runs.retain(|run| run.place == 0);
    recording.order.clear();
    let recording = explained(recording);
    assert!(recording.comparisons.is_empty() && recording.ledger_differences.is_empty());
}

#[test]
fn a_failed_run_is_kept_and_withholds_the_verdict() {
    let mut recording = blocks(20, 1.5);
    recording.runs[7].exit = Exit::Signal(9);
    let found = headline(recording);
    assert_eq!((found.verdict, found.failed, found.pairs), (Verdict::Withheld, 1, 20));
    assert!(found.ratio.unwrap() > 1.4);
}

/// The comparison of two places' user times in ten blocks; `times` gives them for a block.
fn user_times(times: impl Fn(u32) -> [f64; 2]) -> Comparison {
    let mut recording = blocks(10, 1.0);
    for run in &mut recording.runs {
        run.usage.user_ns = sample::ms(times(run.block)[run.place]);
    }
    let json = serde_json::to_string(&explained(recording)).unwrap();
    let recording: Recording = serde_json::from_str(&json).unwrap();
    recording.comparisons.into_iter().find(|c| c.metric == Metric::User).unwrap()
}

#[test]
fn a_base_that_is_zero_now_and_then_is_compared_all_the_same() {
    let zeros = |count: u32| move |block: u32| [if block < count { 0.0 } else { 2.0 }, 3.0];
    let (one, four) = (user_times(zeros(1)), user_times(zeros(4)));
    assert_eq!((one.ratio, one.ci_low, one.ci_high, one.verdict), (Some(1.5), Some(1.5), Some(1.5), Verdict::Slower));
    assert_eq!((four.ratio, four.ci_low, four.ci_high, four.verdict), (Some(1.5), Some(1.5), None, Verdict::Slower));
}

#[test]
fn what_only_one_side_has_is_slower_or_faster() {
    let only_b = user_times(|_| [0.0, 1_000.0]);
    assert_eq!((only_b.ratio, only_b.ci_low, only_b.verdict), (None, None, Verdict::Slower));
    assert_eq!(user_times(|_| [1_000.0, 0.0]).verdict, Verdict::Faster);
    let both_ways = user_times(|block| if block < 8 { [0.0, 1.0] } else { [2.0, 1.0] });
    assert_eq!(both_ways.verdict, Verdict::NotEnoughRuns);
}

#[test]
fn how_precise_a_ratio_is_is_a_part_of_it() {
    let of = |slower: f64| precision(&blocks(20, slower), 0, CacheState::Warm).unwrap();
    let (near, far) = (of(1.0), of(10.0));
    assert!((near / far - 1.0).abs() < 0.001, "{near} and {far}");
}

#[test]
fn runs_without_a_partner_are_in_no_pair() {
    let mut recording = blocks(20, 1.0);
    recording.runs.pop();
    recording.order.pop();
    assert_eq!(headline(recording).pairs, 19);
}

#[test]
fn places_and_commands_are_each_held_against_the_first() {
    let mut recording = sample::empty();
    recording.places = vec![sample::ext4("a", &[]), sample::ext4("b", &[]), sample::ext4("c", &[])];
    recording.commands = vec![sample::command("find ."), sample::command("ls -R")];
    for (command, place) in [(1, 2), (0, 0), (1, 0), (0, 1), (1, 1), (0, 2)] {
        recording.push_run(Run { command, ..sample::run(place, CacheState::Cold, false, sample::ms(5.0)) });
    }
    let recording = explained(recording);
    let walls = recording.comparisons.iter().filter(|c| c.metric == Metric::Wall);
    let found: Vec<_> =
        walls.map(|c| ((c.cases.a.place, c.cases.a.command), (c.cases.b.place, c.cases.b.command))).collect();
    let expected = [
        ((0, 0), (1, 0)),
        ((0, 0), (2, 0)),
        ((0, 0), (0, 1)),
        ((0, 1), (1, 1)),
        ((1, 0), (1, 1)),
        ((0, 1), (2, 1)),
        ((2, 0), (2, 1)),
    ];
    assert_eq!(found, expected);
}

#[test]
fn differences_of_rows_sum_to_the_difference_of_the_times() {
    let recording = explained(sample::find_recording());
    assert_eq!(recording.ledger_differences.len(), 2);
    for difference in &recording.ledger_differences {
        let sum: i64 = difference.rows.iter().map(|row| row.difference_ns).sum();
        assert_eq!(sum, difference.b_wall_ns.0 as i64 - difference.a_wall_ns.0 as i64);
        let largest = &difference.rows[0];
        assert_eq!((largest.kind, largest.syscall.as_deref()), (RowKind::Kernel, Some("newfstatat")));
        assert_eq!(largest.low_ns, None);
    }
}

#[test]
fn the_time_to_durable_is_compared_by_itself() {
    let recording = explained(sample::durable_recording());
    let found = |metric: Metric| recording.comparisons.iter().find(|c| c.metric == metric).unwrap();
    assert_eq!(found(Metric::Wall).verdict, Verdict::NoDifference);
    let durable = found(Metric::Durable);
    assert_eq!((durable.verdict, durable.pairs, durable.traced), (Verdict::Slower, 20, false));
    let of_ext4 = recording.statistics.iter().find(|s| s.case.place == 0).unwrap();
    assert!(of_ext4.trend.is_none() && of_ext4.durable.as_ref().unwrap().trend.is_some());
    // A run whose flush failed is in no pair.
    let mut recording = sample::durable_recording();
    recording.runs[0].durable_ns = None;
    let recording = explained(recording);
    let durable = recording.comparisons.iter().find(|c| c.metric == Metric::Durable).unwrap();
    assert_eq!(durable.pairs, 19);
    assert!(explained(blocks(20, 1.0)).comparisons.iter().all(|c| c.metric != Metric::Durable));
}

#[test]
fn calls_and_rows_are_compared_over_several_traces() {
    let mut recording = sample::empty();
    recording.places = vec![sample::ext4("slow", &[]), sample::ext4("fast", &[])];
    recording.commands = vec![sample::command("find .")];
    for block in 0..12u64 {
        for place in [0, 1] {
            let mut trace = sample::find_trace(place, CacheState::Cold, place == 1);
            trace.wall_ns += Nanos(block * 1_000);
            let run = sample::run(place, CacheState::Cold, true, trace.wall_ns);
            recording.push_run(Run { block: block as u32, ..run });
            recording.traces.push(trace);
        }
    }
    let recording = explained(recording);
    let verdict = |metric: &str| {
        let metric: Metric = metric.parse().unwrap();
        let found = recording.comparisons.iter().find(|c| c.metric == metric).unwrap();
        assert!(found.traced && found.pairs == 12);
        found.verdict
    };
    assert_eq!(verdict("wall"), Verdict::Faster);
    assert_eq!(verdict("syscall:newfstatat:wall"), Verdict::Faster);
    assert_eq!(verdict("syscall:getdents64:cpu"), Verdict::NoDifference);
    assert_eq!(verdict("ledger:kernel:newfstatat"), Verdict::Faster);
    assert_eq!(verdict("ledger:blocked:getdents64:device-read"), Verdict::NoDifference);
    assert!(recording.ledger_differences[0].rows[0].low_ns.is_some());
    // A row of a few microseconds is not worth a comparison.
    assert!(recording.comparisons.iter().all(|c| c.metric.to_string() != "ledger:kernel:brk"));
}
