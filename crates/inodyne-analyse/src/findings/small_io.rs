//! `small-io`: contents are read or written in pieces so small that the calls cost more than the bytes.
//!
//! Whether they do is judged by what a call costs, not by how little it moves: on a FUSE or network mount, a call costs a message
//! there and back. And a buffer only helps a program that makes many calls on one file: a small file takes two in any case, one for
//! its data and one that finds its end.

use inodyne_model::cause::Cause;
use inodyne_model::count::Grouped;
use inodyne_model::finding::Finding;
use inodyne_model::syscall::SyscallStats;

use super::case::{Case, Time, total};
use super::estimate::{self, Diagnosed, INSIDE};
use super::families::{opens, reads, writes};
use super::remedy::advice;
use crate::units::{percent, seconds};

/// Bytes that are copied in a nanosecond.
const COPIES: f64 = 10.0;
/// If more than this fraction of a call's cost is not copying, the calls cost more than the bytes.
const MOSTLY_CALL: f64 = 0.5;
/// A call that moves a page or more pays for the page, which no buffer makes cheaper, except where each call is a message.
const PAGE: f64 = 4_096.0;
/// Fewer calls take no time that matters, unless each is a message.
const LEAST_CALLS: u64 = 10_000;
const LEAST_MESSAGES: u64 = 1_000;
/// A message takes this long at least, in nanoseconds.
const MESSAGE: f64 = 10_000.0;
/// Fewer calls than this for each file that is opened are what a small file takes.
const LEAST_PER_FILE: f64 = 8.0;
/// Below this share of the wall-clock time buffering is not worth it.
const LEAST_SHARE: f64 = 0.1;
/// What a buffer is taken to hold.
const BUFFER: f64 = 65_536.0;
/// Copying into a buffer costs the program time, more or less of it.
const UNCERTAIN: f64 = 0.2;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let divides = case.trace.tracer.divides_calls();
    let opened = total(case.calls(opens).map(|call| call.calls.saturating_sub(call.errors)));
    let server =
        case.waiting(|waited| matches!(waited.cause, Cause::FuseServer | Cause::RemoteServer) && !waited.is_direct());
    // A call that waits, waits for something other than the call itself, except where each call is a message.
    let cost = |call: &SyscallStats| {
        let asked = server.calls.get(&call.name).map_or(0.0, |(ns, _)| *ns);
        if divides { call.cpu_ns.0 as f64 + asked } else { call.wall_ns.0 as f64 }
    };
    let is_small = |call: &SyscallStats, mean: f64| {
        let each = cost(call) / call.calls.max(1) as f64;
        let is_message = divides && each >= MESSAGE && server.calls.contains_key(&call.name);
        let (least, below) = if is_message { (LEAST_MESSAGES, BUFFER) } else { (LEAST_CALLS, PAGE) };
        call.calls >= least
            && call.calls as f64 >= opened.max(1) as f64 * LEAST_PER_FILE
            && mean < below
            && each - mean / COPIES > each * MOSTLY_CALL
            && !is_of_messages(case, &call.name)
    };
    let small: Vec<(&SyscallStats, f64)> = case
        .calls(|call| reads(call) || writes(call))
        .filter_map(|call| Some((call, call.bytes? as f64 / call.calls.saturating_sub(call.errors).max(1) as f64)))
        .filter(|(call, mean)| is_small(call, *mean))
        .collect();
    let mut time = Time::of_threads(case.threads_of(|call| small.iter().any(|(s, _)| s.name == call)));
    let (mut avoidable, mut copying) = (0.0, 0.0);
    for (call, mean) in &small {
        time.add_active_calls(&call.name, cost(call), call.calls);
        avoidable += call.calls as f64 * (1.0 - mean / BUFFER);
        copying += call.calls as f64 * mean / COPIES;
    }
    let share = case.share(&time);
    let (first, mean) = small.first()?;
    if share < LEAST_SHARE {
        return None;
    }
    let who = case.who_makes(&time, |call| if call.name == first.name { call.calls } else { 0 });
    let mut evidence: Vec<String> = small
        .iter()
        .map(|(call, mean)| format!("{} {} of {} on average", Grouped(call.calls), call.name, bytes(*mean)))
        .collect();
    let spent = if divides { " on a CPU or with a server" } else { "" };
    evidence.push(format!("{}{spent} each, {} together", seconds(time.mean()), seconds(time.ns)));
    if opened > 0 {
        let per_file = time.count as f64 / opened as f64;
        evidence.push(format!("{per_file:.0} for each of {} files that were opened", Grouped(opened)));
    }
    let call = time.mean() - case.cost() * INSIDE - copying / time.count.max(1) as f64;
    let each = call.max(time.mean() * 0.2) + estimate::around(case, &time);
    let parallel = time.ns / case.on_path(&time).max(1.0);
    Some(
        Diagnosed {
            title: format!("{who} makes {} calls of {}: {} of the time", first.name, bytes(*mean), percent(share)),
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

fn bytes(mean: f64) -> String {
    match format!("{mean:.0}").as_str() {
        "1" => "1 byte".to_owned(),
        several => format!("{several} bytes"),
    }
}

/// Whether a call mostly works on sockets and the like, or on pipes that the program waits on, itself or in `poll`: what it sends is a message
/// that somebody waits for, and a buffer would only hold it back. Known from where it was found on a CPU; where it was not sampled, it is
/// taken to work on files.
fn is_of_messages(case: &Case<'_>, call: &str) -> bool {
    let sampled = |function: fn(&str) -> bool| case.sampled_in(|name| name == call, function).count;
    let is_most = |part: u64| part * 2 > sampled(|_| true);
    let waits = case.waiting(|waited| matches!(waited.cause, Cause::Pipe | Cause::Poll));
    let calls = total(case.calls(|name| waits.calls.contains_key(name)).map(|stats| stats.calls));
    is_most(sampled(is_of_messengers)) || (waits.count * 2 > calls && is_most(sampled(is_of_pipes)))
}

/// What takes or gives one message or event a call: net/socket.c, fs/eventfd.c, fs/timerfd.c, fs/signalfd.c, inotify, what a FUSE server is
/// asked and answers (fs/fuse/dev.c), packets of a tunnel (drivers/net/tun.c).
fn is_of_messengers(function: &str) -> bool {
    matches!(
        function,
        "sock_read_iter"
            | "sock_write_iter"
            | "sock_recvmsg"
            | "sock_sendmsg"
            | "sock_splice_read"
            | "eventfd_read"
            | "eventfd_write"
            | "timerfd_read"
            | "timerfd_read_iter"
            | "signalfd_read"
            | "signalfd_read_iter"
            | "inotify_read"
            | "fuse_dev_do_read"
            | "fuse_dev_do_write"
            | "fuse_dev_read"
            | "fuse_dev_write"
            | "tun_chr_read_iter"
            | "tun_chr_write_iter"
    )
}

/// fs/pipe.c
fn is_of_pipes(function: &str) -> bool {
    matches!(
        function,
        "pipe_read" | "pipe_write" | "anon_pipe_read" | "anon_pipe_write" | "fifo_pipe_read" | "fifo_pipe_write"
    )
}
