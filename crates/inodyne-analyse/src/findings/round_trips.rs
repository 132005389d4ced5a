//! `round-trips`: each call asks a server, a FUSE server or one elsewhere, and waits for its answer.

use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::cure::{Change, PlaceChange};
use inodyne_model::finding::Finding;
use inodyne_model::ledger::PAGE_FAULT;
use inodyne_model::place::Place;
use inodyne_model::stack::function_name;
use inodyne_model::syscall::SyscallStats;

use super::case::{Case, Time, Waited, total};
use super::estimate::{self, Diagnosed};
use super::families::{changes, reads};
use super::remedy::{Remedy, advice};
use crate::units::{percent, seconds};

/// Below this share of the wall-clock time the server is fast enough.
const LEAST_SHARE: f64 = 0.2;
/// Fewer requests are no storm.
const LEAST_REQUESTS: u64 = 100;
/// FUSE whose server is on the host of a virtual machine.
const VIRTIOFS: &str = "virtiofs";
/// A share of this project, whose guest's kernel caches all it can, since it is told of changes: what the kernel calls it, and how a place
/// is described.
const SHARE: &str = "fuse.inodyne";
const SHARE_MADE: &str = "share";
/// A FUSE server of this project, which takes its time-outs from mount options.
const FUSE_MADE: &str = "fuse";
/// The options with which it is asked less.
const TIMEOUTS: &str = "entry_timeout=60,attr_timeout=60";
const MORE_AT_ONCE: &str = "answer more at once: readdirplus, larger max_read and max_write";
const KEEP_MISSES: &str = "let the kernel remember that a name does not exist, if nobody else creates files";
/// From this share of the waits on, caches are the cure: no cache answers what changes something.
const MOSTLY: f64 = 0.5;
/// The first request for a thing remains even with the best cache; how many are first ones is only known for FUSE file systems.
const STAYS: f64 = 0.25;
/// Where FUSE asks for what it has been told before and no longer believes (fs/fuse/dir.c). What it asks for the first time, it asks
/// elsewhere (`fuse_lookup`), and contents say nothing about that.
const ASKS_AGAIN: [&str; 4] =
    ["fuse_dentry_revalidate", "fuse_do_getattr", "fuse_update_get_attr", "fuse_update_attributes"];
/// Where it asks for a name for which the kernel knows no file.
const LOOKS_UP: &str = "fuse_lookup";
const UNCERTAIN: f64 = 0.35;
const UNCERTAIN_OF_FUSE: f64 = 0.15;
/// Functions in whose stacks a request makes a file, or opens one on NFS 4, which has state at the server: no cache answers these
/// (`create` of the directory operations in all file systems; fs/nfs/nfs4proc.c, a pointer of `rpc_ops`).
const MAKES_OR_OPENS: [&str; 2] = ["create", "nfs4_atomic_open"];
/// What sends a file's data to its server, in whatever call: also as a lock is given back, or as the last descriptor goes with its process.
const SAVES: [&str; 4] = ["__nfs_commit_inode", "wait_on_commit", "nfs_wb_all", "fuse_set_nowrite"];
/// What a call takes that is answered from the cache, as a fraction of one that asks a server on the same machine.
const CACHED: f64 = 0.1;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let is_served = |cause| matches!(cause, Cause::FuseServer | Cause::RemoteServer);
    let time = case.waiting(|waited| is_served(waited.cause));
    let share = case.share(&time);
    if time.count < LEAST_REQUESTS || share < LEAST_SHARE {
        return None;
    }
    let server = match (case.fs(), case.made_as()) {
        _ if case.waiting(|waited| waited.cause == Cause::RemoteServer).ns > time.ns / 2.0 => Server::Elsewhere,
        (VIRTIOFS, _) => Server::Host,
        (SHARE, _) | (_, Some(SHARE_MADE)) => Server::Share,
        _ => Server::Fuse,
    };
    // What a cache may answer the next time. A call that opens may make a file.
    let makes = |function: &str| MAKES_OR_OPENS.iter().any(|part| function.contains(part));
    let saves = |function: &str| SAVES.contains(&function_name(function));
    let is_of_caches = |waited: &Waited<'_>| {
        let asks = is_served(waited.cause) && !changes(waited.call) && !waited.passes(makes);
        asks && !waited.passes(saves) && !waited.is_direct()
    };
    let asking = case.waiting(is_of_caches);
    let asks_again = |function: &str| ASKS_AGAIN.contains(&function_name(function));
    let again = case.waiting(|waited| is_served(waited.cause) && !changes(waited.call) && waited.passes(asks_again));
    let contents = case.waiting(|waited| waited.cause == Cause::RemoteServer && is_of_contents(waited));
    // And how much that would save: a request that is known to go away takes the rest of the call with it.
    let (cached, saves, uncertain) = match server {
        Server::Share => (Time::default(), 0.0, UNCERTAIN),
        Server::Fuse | Server::Host => {
            let saves = case.on_path(&calls_of(case, &again)) * (1.0 - CACHED);
            (again, saves, UNCERTAIN_OF_FUSE)
        }
        Server::Elsewhere => {
            let names = case.waiting(|waited| is_of_caches(waited) && !is_of_contents(waited));
            let saves = case.on_path(&names) * (1.0 - STAYS);
            (names, saves, UNCERTAIN)
        }
    };
    let no_cache_helps = cached.ns < time.ns * MOSTLY;
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
        let direct = case.waiting(|waited| is_served(waited.cause) && waited.is_direct()).ns > 0.0;
        evidence.push(format!(
            "no cache answers {} of that, which changes something, or opens or closes a file{}",
            percent(changing),
            if direct { ", or is direct I/O" } else { "" }
        ));
    }
    if server == Server::Elsewhere && contents.ns > 0.0 {
        let part = percent(contents.ns / time.ns);
        evidence.push(format!("{part} of that brings contents, which are not asked for while they are in memory"));
    }
    let misses = if server == Server::Fuse { misses(case, &asking) } else { 0 };
    if matches!(server, Server::Fuse | Server::Host) {
        let part = percent(cached.ns / time.ns);
        evidence.push(format!("{part} of that asks again about files that the kernel had already been told about"));
    }
    let mut cure = match server {
        Server::Fuse if misses > 0 && no_cache_helps => Vec::new(),
        Server::Fuse if no_cache_helps && asking.ns >= time.ns * MOSTLY => advice(&[MORE_AT_ONCE]),
        Server::Elsewhere if no_cache_helps && contents.ns >= time.ns * MOSTLY => advice(&[larger_requests(case.fs())]),
        _ if no_cache_helps => Vec::new(),
        _ => server.caches(case),
    };
    if misses > 0 {
        evidence.push(format!(
            "{} calls found nothing by that name; FUSE asks its server about a missing name every time, unless the server gives a negative_timeout",
            Grouped(misses)
        ));
        cure.push(Remedy::advice(match case.made_as() {
            Some(FUSE_MADE) => format!("{KEEP_MISSES}: mount=negative_timeout=60"),
            _ => format!("{KEEP_MISSES}: negative_timeout"),
        }));
    }
    cure.push(Remedy::advice("work on several files at once, so that the answers overlap"));
    let predicted =
        if no_cache_helps { estimate::at_best_of(case, share) } else { estimate::without(case, saves, uncertain) };
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

/// How many of the calls that looked names up found nothing, where that is most of what was asked. An upper bound: a call may have looked
/// for it in another file system, too.
fn misses(case: &Case<'_>, asking: &Time) -> u64 {
    let is_kept = |place: &Place| place.spec.as_ref().is_some_and(|spec| spec.contains("negative_timeout"));
    if case.recording.places.get(case.trace.place).is_some_and(is_kept) {
        return 0;
    }
    let looks_up = |function: &str| function.contains(LOOKS_UP);
    let looking =
        case.waiting(|waited| waited.cause == Cause::FuseServer && !changes(waited.call) && waited.passes(looks_up));
    let missing = |name: &str| {
        let enoent = |call: &SyscallStats| call.errors_by_errno.get("ENOENT").copied().unwrap_or(0);
        total(case.calls(|call| call == name).map(enoent))
    };
    let misses = total(looking.calls.iter().map(|(name, (_, count))| missing(name).min(*count)));
    if misses as f64 >= asking.count as f64 * MOSTLY { misses } else { 0 }
}

/// Whether it brings contents: in a call that reads or in a page fault, and not where that asks first whether the file is still the same.
fn is_of_contents(waited: &Waited<'_>) -> bool {
    let asks_about_it = |function: &str| {
        let name = function_name(function);
        name.contains("revalidate") || name.contains("getattr")
    };
    let brings = (reads(waited.call) && !changes(waited.call)) || waited.call == PAGE_FAULT;
    brings && !waited.is_direct() && !waited.passes(asks_about_it)
}

/// How to bring contents from a server elsewhere in fewer requests.
fn larger_requests(fs: &str) -> &'static str {
    match fs {
        "9p" => {
            "bring more at once: a larger msize, and where nobody else writes cache=loose, which reads ahead (cache=loose,msize=524288)"
        }
        fs if matches!(fs, "cifs" | "smb3") || fs.starts_with("nfs") => {
            "bring more at once: a larger rsize, and read ahead further (/sys/class/bdi/MAJOR:MINOR/read_ahead_kb)"
        }
        _ => "bring more at once: read ahead further (/sys/class/bdi/MAJOR:MINOR/read_ahead_kb)",
    }
}

/// The calls in which these waits are, each in proportion to how much of its waiting they are.
fn calls_of(case: &Case<'_>, waits: &Time) -> Time {
    let all = case.waiting(|_| true);
    let mut calls = Time::of_threads(waits.threads.clone());
    for (name, (ns, count)) in &waits.calls {
        let part = ns / all.calls.get(name).map_or(*ns, |(all, _)| *all).max(1.0);
        for call in case.calls(|call| call == name) {
            calls.add_calls(name, call.wall_ns.0 as f64 * part, *count);
        }
    }
    calls
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

    /// How to ask it less.
    fn caches(self, case: &Case<'_>) -> Vec<Remedy> {
        match self {
            Server::Elsewhere => advice(&match case.fs() {
                "9p" => [
                    "let the client cache: cache=loose, where nobody else writes",
                    "ask for more at once: a larger msize (cache=loose,msize=524288)",
                ],
                "cifs" | "smb3" => [
                    "let the client cache longer: actimeo=60, where nobody else writes",
                    "ask for more at once: larger rsize and wsize",
                ],
                fs if fs.starts_with("nfs") => [
                    "let the client cache longer: actimeo=60 and nocto, where nobody else writes",
                    "ask for less: names with attributes in one request (READDIRPLUS), larger rsize and wsize",
                ],
                _ => [
                    "let the client cache longer, where nobody else writes: the options of its mount say how",
                    "or work on a copy: take over the tree in one go (tar, rsync), and bring back what has changed",
                ],
            }),
            Server::Host => advice(&[
                "let the guest's kernel cache: `--cache always` of virtiofsd, where nobody else writes",
                "where the host writes too: a share that tells the guest of changes (`inodyne share`)",
            ]),
            Server::Fuse if case.made_as() == Some(FUSE_MADE) => vec![
                Remedy::new(
                    format!("let the kernel cache for longer, where nobody else writes: mount={TIMEOUTS}"),
                    Change::Place(PlaceChange::Mount(TIMEOUTS.to_owned())),
                ),
                Remedy::advice(MORE_AT_ONCE),
            ],
            Server::Fuse => advice(&[
                "let the kernel cache: entry_timeout and attr_timeout of a second or more, FOPEN_KEEP_CACHE, cached directories",
                MORE_AT_ONCE,
            ]),
            // It caches already.
            Server::Share => Vec::new(),
        }
    }
}
