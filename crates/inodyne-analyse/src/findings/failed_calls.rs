//! `failed-calls`: calls that fail in bulk for a reason other than that nothing is there: `unlink` on directories, `ioctl` on
//! something that is not a terminal. Each of them is wasted.

use inodyne_model::count::Grouped;
use inodyne_model::finding::Finding;
use inodyne_model::syscall::SyscallStats;

use super::case::{Case, Time, failed};
use super::estimate::{self, Diagnosed, INSIDE};
use super::remedy::Remedy;
use crate::units::seconds;

/// Fewer are the start-up of some program.
const LEAST_FAILURES: u64 = 200;
/// At least this fraction of a call's uses fails: a habit of the program, not an accident.
const LEAST_PART: f64 = 0.01;
/// A failing call is cheap, so this asks for less than other findings do. Below it, the cost does not matter.
const LEAST_SHARE: f64 = 0.001;
/// From this many on, it is a defect of the program, whatever it costs here: it will cost more over a network.
const HABIT: u64 = 1_000;
/// A failing call may have warmed what the next one needs.
const UNCERTAIN: f64 = 0.3;

/// Errors that are answers: the caller asked whether something is so, and the kernel said no. ENOENT belongs to `failed-lookups`.
/// Whether a file system can do something (clone a file, keep attributes) is asked for each file, since each may be elsewhere.
const ANSWERS: &[&str] = &[
    "EOPNOTSUPP",
    "ENOTSUP",
    "ENOSYS",
    "ENOENT",
    "ENOTDIR",
    "EAGAIN",
    "EWOULDBLOCK",
    "EINPROGRESS",
    "EINTR",
    "ETIMEDOUT",
    "ETIME",
    "ECHILD",
    "ENODATA",
    "EPIPE",
    "ESRCH",
    "ERESTARTSYS",
    "ERESTARTNOINTR",
    "ERESTARTNOHAND",
    "ERESTART_RESTARTBLOCK",
    "other",
];

/// The same: EACCES from `access` says that something may not be executed or written, ENXIO from `lseek` that no data or hole follows
/// (SEEK_DATA, SEEK_HOLE), EINVAL from `readlink` says that something is not a symbolic link, EPERM from `epoll_ctl` that a file is never waited for (Go
/// asks this for each file that it opens), EXDEV that a file cannot be cloned or renamed to another file system.
fn is_answer(call: &str, errno: &str) -> bool {
    let is_of_call = matches!(
        (call, errno),
        ("readlink" | "readlinkat", "EINVAL")
            | ("epoll_ctl", "EPERM" | "EEXIST")
            | ("access" | "faccessat" | "faccessat2", "EACCES" | "EROFS")
            | ("lseek", "ENXIO")
            | ("ioctl" | "copy_file_range" | "link" | "linkat" | "rename" | "renameat" | "renameat2", "EXDEV")
    );
    ANSWERS.contains(&errno) || is_of_call
}

pub(super) fn diagnose(case: &Case<'_>) -> Option<Finding> {
    let mut failing: Vec<(&SyscallStats, &str, u64)> = case
        .calls(|_| true)
        .flat_map(|call| call.errors_by_errno.iter().map(move |(errno, count)| (call, errno.as_str(), *count)))
        .filter(|(call, errno, count)| {
            !is_answer(&call.name, errno) && *count >= LEAST_FAILURES && *count as f64 >= call.calls as f64 * LEAST_PART
        })
        .collect();
    failing.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
    let idle = case.waiting(|waited| !waited.cause.is_of_files());
    let mut time = Time::of_threads(case.threads_of(|call| failing.iter().any(|(s, _, _)| s.name == call)));
    for (call, _, count) in &failing {
        // Time that it waits in them for anything but files is no cost of failing.
        let other = idle.calls.get(&call.name).map_or(0.0, |(ns, _)| *ns);
        let ns = (failed(call) - other).max(0.0) * *count as f64 / call.errors.max(1) as f64;
        time.add_active_calls(&call.name, ns, *count);
    }
    let share = case.share(&time);
    let (first, errno, _) = failing.first()?;
    if share < LEAST_SHARE && time.count < HABIT {
        return None;
    }
    let mut evidence: Vec<String> = failing
        .iter()
        .map(|(call, errno, count)| {
            format!(
                "{} of {} {} fail with {errno}{}",
                Grouped(*count),
                Grouped(call.calls),
                call.name,
                meaning(&call.name, errno)
            )
        })
        .collect();
    evidence.push(format!("{} each, {} together", seconds(time.mean()), seconds(time.ns)));
    let each = (time.mean() - case.cost() * INSIDE).max(time.mean() * 0.2) + estimate::around(case, &time);
    let parallel = time.ns / case.on_path(&time).max(1.0);
    Some(
        Diagnosed {
            title: {
                let failing = |call: &SyscallStats| call.errors_by_errno.get(*errno).copied().unwrap_or(0);
                let count = |call: &SyscallStats| if call.name == first.name { failing(call) } else { 0 };
                format!("{} makes {} calls that fail with {errno}", case.who_makes(&time, count), first.name)
            },
            share,
            evidence,
            predicted: estimate::without(case, each * time.count as f64 / parallel, UNCERTAIN),
            cure: (0..)
                .zip(&failing)
                .map(|(line, (call, errno, _))| Remedy::advice(cure(&call.name, errno)).answering(line))
                .collect(),
            avoidable_calls: Some(time.count),
            bound: false,
        }
        .finding(case),
    )
}

fn meaning(call: &str, errno: &str) -> &'static str {
    match (call, errno) {
        // Linux answers EISDIR for directories, and EPERM where the sticky bit or an attribute forbids it (may_delete, fs/namei.c).
        ("unlink" | "unlinkat", "EISDIR") => ": they are directories",
        ("rmdir" | "unlinkat", "ENOTEMPTY") => ": the directory is not empty yet",
        ("ioctl", "ENOTTY") => ": the file is not a terminal, or its file system does not know the request",
        ("lseek", "ESPIPE") => ": it is a pipe",
        (_, "EEXIST") => ": it is there already",
        (_, "EACCES" | "EPERM") => ": not permitted",
        ("close", "EBADF") => ": the descriptor is closed already",
        (_, "EBADF") => ": no such descriptor is open",
        _ => "",
    }
}

fn cure(call: &str, errno: &str) -> String {
    match (call, errno) {
        ("unlink" | "unlinkat", "EISDIR") => {
            "take rmdir (or AT_REMOVEDIR) for directories: readdir has told which entries these are (d_type)".to_owned()
        }
        ("rmdir" | "unlinkat", "ENOTEMPTY") => {
            "remove a directory after the last of its entries, not before".to_owned()
        }
        ("ioctl", "ENOTTY") => {
            "ask once and remember the answer: whether a file is a terminal, or what its file system can do, does not change"
                .to_owned()
        }
        ("mkdir" | "mkdirat", "EEXIST") => "remember which directories are there already".to_owned(),
        ("close", "EBADF") => "do not close every possible descriptor one by one: close_range does it in one call".to_owned(),
        _ => format!("remember the answer of {call}, or try less often"),
    }
}
