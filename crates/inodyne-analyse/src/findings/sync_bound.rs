//! `sync-bound`: the program waits for its data to be on the device, again and again.

use std::collections::BTreeSet;

use inodyne_model::Nanos;
use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::cure::{Change, PlaceChange};
use inodyne_model::finding::Finding;
use inodyne_model::syscall::{SyscallStats, plain_name};

use super::case::{Case, Time, Waited};
use super::estimate::{self, Diagnosed};
use super::families::{syncs, writes};
use super::others;
use super::remedy::Remedy;
use crate::units::{percent, seconds, times};

/// Below this share of the wall-clock time the program does not wait for syncs.
const LEAST_SHARE: f64 = 0.1;
/// Writes count as synchronous if at least this fraction of their waiting is for syncs.
const MOSTLY_SYNC: f64 = 0.5;
/// Where more of the calls of a name than this wait for a sync, all of them count: the others found it done already.
const NEARLY_ALL: f64 = 0.9;
/// With fewer, there is nothing to combine.
const LEAST_SYNCS: u64 = 5;
/// A write that goes to the cache only, in nanoseconds: what remains of a synchronous one. A few microseconds either way
/// do not show beside a sync.
const CACHED_WRITE: f64 = 3_000.0;
/// A synchronous write of so many bytes on average waits for its data above all, and whatever syncs once for all of them waits for
/// the same data.
const LARGE_WRITE: u64 = 1 << 20;
/// What is not synced is written later, and partly while the program still runs.
const UNCERTAIN: f64 = 0.12;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let is_meant = |waited: &Waited<'_>| waited.is_sync() && !waited.is_copy_up() && !waited.call.is_empty();
    let waiting = case.waiting(is_meant);
    // Where waits are not known, what a sync does is known by its name, but not which writes are synchronous.
    let divides = case.trace.tracer.divides_calls();
    let waits = |call: &SyscallStats| {
        if !divides {
            return syncs(&call.name);
        }
        let synced = waiting.calls.get(&call.name).map_or(0.0, |(ns, _)| *ns);
        // Some of the writes of one name may be synchronous, to another file: they are not why the others wait.
        synced > 0.0 && (syncs(&call.name) || synced >= call.blocked_ns.0 as f64 * MOSTLY_SYNC)
    };
    let threads = if divides { waiting.threads.clone() } else { case.threads_of(syncs) };
    let mut time = Time::of_threads(threads);
    let mut evidence = Vec::new();
    let mut large = BTreeSet::new();
    for call in case.calls(|call| syncs(call) || writes(call)).filter(|call| waits(call)) {
        let all = Grouped(call.calls);
        let of_call = case.calls_waiting(call, is_meant);
        if writes(&call.name) && (of_call as f64) < call.calls as f64 * NEARLY_ALL {
            // Other calls of that name go to the cache, or to other files.
            let synced = waiting.calls.get(&call.name).map_or(0.0, |(ns, _)| *ns);
            time.add_active_calls(&call.name, synced, of_call);
            let mean = synced / of_call.max(1) as f64;
            evidence.push(format!(
                "{} of {all} {} wait for a sync, {} each",
                Grouped(of_call),
                call.name,
                seconds(mean)
            ));
            continue;
        }
        let stays = if writes(&call.name) { call.calls as f64 * CACHED_WRITE } else { 0.0 };
        if writes(&call.name) && call.bytes.unwrap_or(0) / call.calls.max(1) >= LARGE_WRITE {
            large.insert(call.name.as_str());
        }
        time.add_calls(&call.name, (call.wall_ns.0 as f64 - stays).max(0.0), call.calls);
        let what = if writes(&call.name) { "synchronous " } else { "" };
        let mean = call.wall_ns.0 as f64 / call.calls.max(1) as f64;
        evidence.push(format!("{all} {what}{}, {} each", call.name, seconds(mean)));
    }
    let share = case.share(&time);
    if time.count < LEAST_SYNCS || share < LEAST_SHARE {
        return None;
    }
    let mut causes = std::collections::BTreeMap::<_, f64>::new();
    for waited in case.waits().filter(|waited| waited.is_sync() && time.calls.contains_key(waited.call)) {
        *causes.entry(waited.cause.as_str()).or_default() += waited.wait.ns.0 as f64;
    }
    let mut causes: Vec<_> = causes.into_iter().collect();
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    let causes: Vec<_> = causes.iter().map(|(cause, ns)| format!("{cause} {}", seconds(*ns))).collect();
    if !causes.is_empty() {
        evidence.push(format!("in them it waits for: {}", causes.join(", ")));
    }
    evidence.extend(others::evidence(case));
    let who = case.who(&time);
    let moves = |cause| matches!(cause, Cause::DeviceWrite | Cause::QueueFull | Cause::WriteThrottle);
    let data = case.waiting(|waited| is_meant(waited) && large.contains(waited.call) && moves(waited.cause));
    if data.ns > 0.0 {
        evidence.push(format!(
            "{} of it is for the data of writes of a megabyte or more: a single sync at the end waits for that, too",
            seconds(data.ns)
        ));
    }
    let mut cure = vec![Remedy::advice(
        "sync once at the end, or once for many writes (a transaction, a group commit; conv=fsync instead of oflag=dsync)",
    )];
    if time.calls.keys().any(|call| plain_name(call) == "fsync") {
        cure.push(Remedy::advice("fdatasync instead of fsync, where times of the file do not matter"));
    }
    cure.push(Remedy::new(
        "where a crash may cost the data: no sync at all (an overlay mounted volatile, eatmydata)",
        no_sync(case),
    ));
    // One sync at the end keeps what a reader of the finished file relies on.
    let saved = (case.on_path(&time) - case.on_path(&data)).max(0.0) * (1.0 - 1.0 / time.count as f64);
    Some(
        Diagnosed {
            title: format!(
                "{who} waits for its data to reach the device, {}: {} of the time",
                times(time.count),
                percent(share)
            ),
            share,
            evidence,
            predicted: estimate::without(case, saved, UNCERTAIN),
            cure,
            avoidable_calls: Some(time.count - 1),
            bound: false,
        }
        .finding(case),
    )
}

/// Syncs ignored by the place, where the waiting is in calls such as `fsync`. A volatile overlay passes O_SYNC and O_DSYNC of
/// writes on to the file below (fs/overlayfs/file.c): seen on 6.18.
fn no_sync(case: &Case<'_>) -> Change {
    let blocked =
        |is_meant: fn(&str) -> bool| case.calls(is_meant).fold(Nanos::ZERO, |sum, call| sum + call.blocked_ns);
    if blocked(syncs) > blocked(writes) {
        Change::Place(PlaceChange::Over("volatile".to_owned()))
    } else {
        Change::Advice { because: Some("its writes are synchronous themselves, which no place can ignore".to_owned()) }
    }
}
