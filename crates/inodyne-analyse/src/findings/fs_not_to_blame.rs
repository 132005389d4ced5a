//! `fs-not-to-blame`: the time is spent on something that has nothing to do with files. A bound, and often the answer that
//! was looked for.
//!
//! One wrong "no file system can help" costs more trust than many right ones earn, so it is said only where it is known:
//! * What others did for the command is judged by what they did, not by the call in which the command waited for them.
//! * What somebody did who was not watched counts neither as files nor as something else: a server may read files all the time.
//! * A thread that lets time pass while others of the command work with files may be waiting for them ([`beside`](super::beside)).
//! * A program that finds a file locked, sleeps and tries again waits for that lock, whoever has it.

use std::collections::BTreeMap;

use inodyne_model::cause::Cause;
use inodyne_model::finding::Finding;
use inodyne_model::ledger::{PAGE_FAULT, Row, RowKind};
use inodyne_model::observed::ThreadNumber;
use inodyne_model::syscall::{CommCalls, SyscallStats, plain_name};

use super::beside::files_beside;
use super::case::{Case, total};
use super::estimate::{self, Diagnosed};
use super::families::{concerns_files, may_concern_files, opens};
use super::remedy::advice;
use crate::units::{percent, seconds};

/// From this share of the wall-clock time on, something else is the reason.
const LEAST_SHARE: f64 = 0.5;
/// And files have at most this share.
const MOST_OF_FILES: f64 = 0.15;

/// From this share of the wall-clock time on, what may concern files, too, is told.
const WORTH_SAYING: f64 = 0.005;

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let all_elsewhere = case.ledger(|row| kind_of(row) == Kind::Elsewhere);
    let for_locks = sleeping_for_locks(case).min(all_elsewhere);
    let elsewhere = all_elsewhere - for_locks;
    let files = case.ledger(|row| kind_of(row) == Kind::Files);
    let share = elsewhere / case.wall();
    let is_of_files = |ns: f64| ns / case.wall() > MOST_OF_FILES;
    let beside = files_beside(case);
    if share < LEAST_SHARE || is_of_files(files + beside) {
        return None;
    }
    let unknown = case.ledger(|row| may_be_of_files(row)) + for_locks;
    let at_most = (files + beside + unknown).min(case.wall());
    let (more, no_time) = match (at_most - files) / case.wall() {
        little if little < WORTH_SAYING => (String::new(), "files took no time"),
        more => (
            format!("; another {} may concern files, too", percent(more)),
            "files, and what may concern them, took no time",
        ),
    };
    let mut left = for_locks;
    let rows = case.trace.ledger.rows.iter().filter(|row| kind_of(row) == Kind::Elsewhere);
    let mut rows: Vec<(&Row, f64)> = rows
        .map(|row| {
            let ns = row.ns.0 as f64;
            let taken = if row.cause == Some(Cause::Sleep) { left.min(ns) } else { 0.0 };
            left -= taken;
            (row, ns - taken)
        })
        .collect();
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    let top: Vec<_> = rows.iter().take(3).map(|(row, ns)| format!("{} {}", named(row), seconds(*ns))).collect();
    Some(
        Diagnosed {
            title: format!("{} of the time has nothing to do with files", percent(share)),
            share,
            evidence: vec![
                format!("most of it: {}", top.join(", ")),
                format!("everything that concerns files took {} of the time{more}", percent(files / case.wall())),
            ],
            predicted: estimate::at_best(case, at_most),
            cure: advice(&["look elsewhere: no file system, mount option or disk can save more than that"]),
            avoidable_calls: None,
            bound: true,
        }
        .finding_if(case, no_time),
    )
}

/// Sleeps of programs that try to lock files, in vain at least once for every two sleeps, in nanoseconds of the path: they may be between
/// two tries.
fn sleeping_for_locks(case: &Case<'_>) -> f64 {
    let threads = &case.trace.observed.threads;
    let comms: BTreeMap<ThreadNumber, &str> = threads.iter().map(|one| (one.number, one.comm.as_str())).collect();
    let of_comm = |of: &CommCalls| {
        let tries = total(of.syscalls.iter().map(finds_locked));
        if tries == 0 {
            return 0.0;
        }
        let is_its = |number| comms.get(&number).is_some_and(|comm| *comm == of.comm);
        let sleeping = case.waiting(|waited| waited.cause == Cause::Sleep && is_its(waited.wait.thread));
        if tries.saturating_mul(2) >= sleeping.count { case.on_path(&sleeping) } else { 0.0 }
    };
    case.trace.by_comm.iter().map(of_comm).sum()
}

/// How many uses of a call found that somebody else had the lock of a file, or that a file which stands for a lock was there already.
fn finds_locked(call: &SyscallStats) -> u64 {
    let name = plain_name(&call.name);
    let errnos: &[&str] = match name {
        "fcntl" | "flock" => &["EAGAIN", "EACCES"],
        "link" | "linkat" => &["EEXIST"],
        _ if opens(name) => &["EEXIST"],
        _ => &[],
    };
    total(errnos.iter().filter_map(|errno| call.errors_by_errno.get(*errno).copied()))
}

/// What time was spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Files, directories and devices.
    Files,
    /// What no file system has a part in.
    Elsewhere,
    /// Others' work that was not seen, locks, and what no rule knows.
    Unknown,
}

/// Whether it is not known what that time was spent on. Waiting for a CPU is nobody's work.
pub(super) fn may_be_of_files(row: &Row) -> bool {
    kind_of(row) == Kind::Unknown && row.kind != RowKind::Runqueue
}

pub(super) fn kind_of(row: &Row) -> Kind {
    // What was asked of a file server, a journal or a device is about files, whatever is done for it.
    if row.is_of_a_server_of_files() {
        return Kind::Files;
    }
    // For somebody else's work, the last word of the chain may be a call; otherwise it is who did the work.
    let call = row.via.last().or(row.syscall.as_ref()).map(String::as_str);
    let calls_about_files = call.is_some_and(|call| concerns_files(call) || call == PAGE_FAULT);
    match (row.kind, row.cause) {
        (RowKind::User, _) => Kind::Elsewhere,
        (RowKind::Kernel, _) if calls_about_files => Kind::Files,
        // FICLONE and FIDEDUPERANGE are work with files, and so may be what a mapping is about.
        (RowKind::Kernel, _) if call.is_some_and(may_concern_files) => Kind::Unknown,
        (RowKind::Kernel, _) => Kind::Elsewhere,
        (RowKind::Blocked, Some(cause)) if cause.is_of_files() => Kind::Files,
        (RowKind::Blocked, Some(Cause::Sleep | Cause::Stopped)) => Kind::Elsewhere,
        _ => Kind::Unknown,
    }
}

fn named(row: &Row) -> String {
    let who = row.via.iter().rfind(|word| !concerns_files(word));
    let by = who.map_or_else(String::new, |who| format!(" ({who})"));
    let what = match (row.kind, row.cause) {
        (RowKind::User, _) => "user mode".to_owned(),
        (_, Some(cause)) => cause.to_string(),
        _ => row.syscall.clone().unwrap_or_else(|| "system-call overhead".to_owned()),
    };
    what + &by
}

#[cfg(test)]
mod tests {
    use inodyne_model::Nanos;

    use super::*;

    /// `kind syscall cause via…`, with `-` for nothing.
    fn row(words: &str) -> Row {
        let mut words = words.split(' ');
        let kind = match words.next() {
            Some("user") => RowKind::User,
            Some("kernel") => RowKind::Kernel,
            Some("ready") => RowKind::Runqueue,
            _ => RowKind::Blocked,
        };
        let mut row = Row::new(kind, Nanos(1));
        row.syscall = words.next().filter(|word| *word != "-").map(str::to_owned);
        row.cause = words.next().and_then(|word| Cause::ALL.into_iter().find(|cause| cause.as_str() == word));
        row.via = words.map(str::to_owned).collect();
        row
    }

    #[test]
    fn others_are_judged_by_what_they_did() {
        for (words, kind) in [
            // A client waits for a daemon, which reads, computes, sleeps.
            ("blocked recvfrom device-read socket walkd openat", Kind::Files),
            ("kernel recvfrom - socket walkd getdents64", Kind::Files),
            ("kernel recvfrom - socket walkd brk", Kind::Elsewhere),
            ("user recvfrom - socket walkd", Kind::Elsewhere),
            ("blocked recvfrom sleep socket walkd clock_nanosleep", Kind::Elsewhere),
            // Whoever serves files works for files, whatever it does.
            ("user newfstatat - fuse-server sshfs", Kind::Files),
            ("blocked newfstatat poll fuse-server sshfs poll", Kind::Files),
            ("kernel fsync - journal jbd2", Kind::Files),
            ("blocked fsync device-write journal jbd2", Kind::Files),
            // The same without anybody in between.
            ("blocked read device-read", Kind::Files),
            ("kernel newfstatat -", Kind::Files),
            ("kernel page-fault -", Kind::Files),
            ("kernel fadvise64 -", Kind::Files),
            ("kernel ioctl -", Kind::Unknown),
            ("kernel brk -", Kind::Elsewhere),
            ("user - -", Kind::Elsewhere),
            ("blocked clock_nanosleep sleep", Kind::Elsewhere),
            // Nobody knows what the other end does.
            ("blocked recvfrom socket", Kind::Unknown),
            ("blocked poll poll", Kind::Unknown),
            ("blocked futex futex", Kind::Unknown),
            ("ready - -", Kind::Unknown),
        ] {
            assert_eq!(kind_of(&row(words)), kind, "{words}");
        }
    }
}
