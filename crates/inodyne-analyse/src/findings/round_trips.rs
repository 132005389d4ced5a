//! `round-trips`: each call asks a server, of FUSE or elsewhere, and waits for its answer.

use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::finding::Finding;

use super::case::Case;
use super::estimate::{self, Diagnosed};
use super::families::changes;
use super::remedy::{Remedy, advice};
use crate::units::{percent, seconds};

/// Below this share of the wall-clock time the server is fast enough.
const LEAST_SHARE: f64 = 0.2;
/// Fewer requests are no storm.
const LEAST_REQUESTS: u64 = 100;
/// FUSE whose server is on the host of a virtual machine.
const VIRTIOFS: &str = "virtiofs";
/// A share of this project, whose guest's kernel caches all it can: it is told of changes.
const SHARE: &str = "fuse.inodyne";
/// From this part of the waits on, caches are the cure: what changes something no cache answers.
const MOSTLY: f64 = 0.5;
/// The first request for a thing stays even with the best cache; how many are first ones is not known.
const STAYS: f64 = 0.25;
const UNCERTAIN: f64 = 0.35;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let is_served = |cause| matches!(cause, Cause::FuseServer | Cause::RemoteServer);
    let time = case.waiting(|waited| is_served(waited.cause));
    let share = case.share(&time);
    if time.count < LEAST_REQUESTS || share < LEAST_SHARE {
        return None;
    }
    let server = match case.fs() {
        _ if case.waiting(|waited| waited.cause == Cause::RemoteServer).ns > time.ns / 2.0 => Server::Elsewhere,
        VIRTIOFS => Server::Host,
        SHARE => Server::Share,
        _ => Server::Fuse,
    };
    // What a cache may answer the next time. A call that opens may make a file.
    let makes = |function: &str| function.contains("create");
    let asking = case.waiting(|waited| is_served(waited.cause) && !changes(waited.call) && !waited.passes(makes));
    let no_cache_helps = server == Server::Share || asking.ns < time.ns * MOSTLY;
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
    if asking.ns < time.ns {
        let changing = (time.ns - asking.ns) / time.ns;
        evidence.push(format!("{} of that changes something, which no cache answers", percent(changing)));
    }
    let mut cure = if no_cache_helps { Vec::new() } else { server.caches(case.fs()) };
    cure.push(Remedy::advice("work on several files at once, so that the answers overlap"));
    let predicted = if no_cache_helps {
        estimate::at_best_of(case, share)
    } else {
        estimate::without(case, case.on_path(&asking) * (1.0 - STAYS), UNCERTAIN)
    };
    Some(
        Diagnosed {
            title: format!(
                "{} waits for {}, request by request: {} of the time",
                case.who(&time),
                server.name(),
                percent(share)
            ),
            share,
            evidence,
            predicted,
            cure,
            avoidable_calls: None,
            bound: no_cache_helps,
        }
        .finding(case),
    )
}

/// Who answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Server {
    Fuse,
    Share,
    Host,
    Elsewhere,
}

impl Server {
    fn name(self) -> &'static str {
        match self {
            Server::Fuse => "a FUSE server",
            Server::Share => "the host of this share",
            Server::Host => "the host of this virtual machine",
            Server::Elsewhere => "a server elsewhere",
        }
    }

    /// How it is asked less.
    fn caches(self, fs: &str) -> Vec<Remedy> {
        match self {
            Server::Elsewhere => advice(&match fs {
                "9p" => [
                    "let the client cache: cache=loose, where nobody else writes",
                    "ask for more at once: a larger msize (cache=loose,msize=524288)",
                ],
                "cifs" | "smb3" => [
                    "let the client cache longer: actimeo=60, where nobody else writes",
                    "ask for more at once: larger rsize and wsize",
                ],
                _ => [
                    "let the client cache longer: actimeo=60 and nocto, where nobody else writes",
                    "ask for less: names with attributes in one request (READDIRPLUS), larger rsize and wsize",
                ],
            }),
            Server::Host => advice(&[
                "let the guest's kernel cache: `--cache always` of virtiofsd, where nobody else writes",
                "where the host writes too: a share that tells the guest of changes (`inodyne share`)",
            ]),
            Server::Fuse => advice(&[
                "let the kernel cache: entry_timeout and attr_timeout of a second or more, FOPEN_KEEP_CACHE, cached directories",
                "answer more at once: readdirplus, larger max_read and max_write",
            ]),
            // It does.
            Server::Share => Vec::new(),
        }
    }
}
