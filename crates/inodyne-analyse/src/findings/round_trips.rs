//! `round-trips`: each call asks a server, of FUSE or elsewhere, and waits for its answer.

use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::finding::Finding;

use super::case::Case;
use super::estimate::{self, Diagnosed};
use super::remedy::{Remedy, advice};
use crate::units::{percent, seconds};

/// Below this share of the wall-clock time the server is fast enough.
const LEAST_SHARE: f64 = 0.2;
/// Fewer requests are no storm.
const LEAST_REQUESTS: u64 = 100;
/// FUSE whose server is on the host of a virtual machine.
const VIRTIOFS: &str = "virtiofs";
/// The first request for a thing stays even with the best cache; how many are first ones is not known.
const STAYS: f64 = 0.25;
const UNCERTAIN: f64 = 0.35;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let time = case.waiting(|waited| matches!(waited.cause, Cause::FuseServer | Cause::RemoteServer));
    let share = case.share(&time);
    if time.count < LEAST_REQUESTS || share < LEAST_SHARE {
        return None;
    }
    let remote = case.waiting(|waited| waited.cause == Cause::RemoteServer).ns > time.ns / 2.0;
    let mut evidence =
        vec![format!("{} requests × {} = {}", Grouped(time.count), seconds(time.mean()), seconds(time.ns))];
    evidence.extend(time.top_calls().iter().take(4).filter_map(|(call, ns, count)| {
        let calls = case.calls(|name| name == *call).next()?.calls;
        Some(format!(
            "{} of {} {call} asked the server, {}",
            Grouped((*count).min(calls)),
            Grouped(calls),
            seconds(*ns)
        ))
    }));
    let mut cure = match remote {
        true => advice(&[
            "let the client cache longer: actimeo=60 and nocto (NFS), cache=loose (9p), actimeo (SMB), where nobody else writes",
            "ask for less: names with attributes in one request (READDIRPLUS), larger rsize and wsize",
        ]),
        false if case.fs() == VIRTIOFS => advice(&[
            "let the guest's kernel cache: `--cache always` of virtiofsd, where nobody else writes",
            "where the host writes too: a share that tells the guest of changes (`inodyne share`)",
        ]),
        false => advice(&[
            "let the kernel cache: entry_timeout and attr_timeout of a second or more, FOPEN_KEEP_CACHE, cached directories",
            "answer more at once: readdirplus, larger max_read and max_write",
        ]),
    };
    cure.push(Remedy::advice("work on several files at once, so that the answers overlap"));
    let server = match case.fs() {
        _ if remote => "a server elsewhere",
        VIRTIOFS => "the host of this virtual machine",
        _ => "a FUSE server",
    };
    Some(
        Diagnosed {
            title: format!(
                "{} waits for {server}, request by request: {} of the time",
                case.who(&time),
                percent(share)
            ),
            share,
            evidence,
            predicted: estimate::without(case, case.on_path(&time) * (1.0 - STAYS), UNCERTAIN),
            cure,
            avoidable_calls: None,
            bound: false,
        }
        .finding(case),
    )
}
