//! `small-io`: contents are read or written in pieces so small that the calls cost more than the bytes.

use inodyne_model::count::Grouped;
use inodyne_model::finding::Finding;
use inodyne_model::syscall::SyscallStats;

use super::case::{Case, Time};
use super::estimate::{self, Diagnosed, INSIDE, percent, seconds};
use super::families::{reads, writes};
use super::remedy::advice;

/// Mean bytes of a call below which the way in and out of the kernel outweighs the copying (some 10 GB/s: 100 ns).
const SMALL: f64 = 1_024.0;
/// Fewer calls take no time that matters.
const LEAST_CALLS: u64 = 10_000;
/// Below this share of the wall-clock time buffering is not worth it.
const LEAST_SHARE: f64 = 0.1;
/// What a buffer is taken to hold.
const BUFFER: f64 = 65_536.0;
/// Copying into a buffer costs the program time, more or less of it.
const UNCERTAIN: f64 = 0.2;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let small: Vec<(&SyscallStats, f64)> = case
        .calls(|call| reads(call) || writes(call))
        .filter_map(|call| Some((call, call.bytes? as f64 / call.calls.saturating_sub(call.errors).max(1) as f64)))
        .filter(|(call, mean)| call.calls >= LEAST_CALLS && *mean < SMALL)
        .collect();
    let mut time =
        Time { threads: case.threads_of(|call| small.iter().any(|(s, _)| s.name == call)), ..Time::default() };
    let divides = case.trace.tracer.divides_calls();
    let mut avoidable = 0.0;
    for (call, mean) in &small {
        // What waits, waits for something else than the call itself.
        let ns = if divides { call.cpu_ns } else { call.wall_ns };
        time.add_calls(&call.name, ns.0 as f64, call.calls);
        avoidable += call.calls as f64 * (1.0 - mean / BUFFER);
    }
    let share = case.share(&time);
    if small.is_empty() || share < LEAST_SHARE {
        return None;
    }
    let who = case.who(&time);
    let mut evidence: Vec<String> = small
        .iter()
        .map(|(call, mean)| format!("{} {} of {mean:.0} bytes on average", Grouped(call.calls), call.name))
        .collect();
    let spent = if divides { " on a CPU" } else { "" };
    evidence.push(format!("{}{spent} each, {} together", seconds(time.mean()), seconds(time.ns)));
    let each = (time.mean() - case.cost() * INSIDE).max(time.mean() * 0.2) + estimate::around(case, &time);
    let parallel = time.ns / case.on_path(&time).max(1.0);
    let (first, mean) = small.first()?;
    Some(
        Diagnosed {
            title: format!("{who} makes {} of {mean:.0} bytes: {} of the time", first.name, percent(share)),
            share,
            evidence,
            predicted: estimate::without(case, each * avoidable / parallel, UNCERTAIN),
            cure: advice(&["read and write through a buffer of 64 KiB (stdio, BufReader, dd bs=64k), or map the file"]),
            avoidable_calls: Some(avoidable as u64),
            bound: false,
        }
        .finding(case),
    )
}
