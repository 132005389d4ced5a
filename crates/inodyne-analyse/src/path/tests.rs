//! Timelines drawn in ASCII, one letter per nanosecond, and what the path makes of them; random ones; a long one.
//!
//! ```text
//! u user mode   k in a call   b blocked   r ready   . not born, ended, or (for a helper) idle and not asked
//! ```
//!
//! Below each thread stands who woke it, as (thread, stack), in the order of its waits.

use std::collections::BTreeMap;

use inodyne_model::Nanos;
use inodyne_model::cause::Cause;
use inodyne_model::ledger::{Ledger, RowKind, View};
use inodyne_model::observed::{BlockedSample, Helper, Observed, Sample, ThreadObserved, Waker};
use inodyne_model::path::{DoingKind, PathWait, Step, StepPart};
use inodyne_model::sample::stack;
use inodyne_model::stack::StackId;
use inodyne_model::trace::Trace;
use proptest::prelude::*;

use super::*;

mod room;

const START: u64 = 1_000;
const CALLS: [&str; 3] = ["", "fsync", "wait4"];

/// Stacks by their index in the timeline: none, then these.
const STACKS: [&str; 10] = [
    "__schedule schedule jbd2_log_wait_commit ext4_sync_file do_fsync",
    "__schedule schedule do_wait kernel_wait4",
    "__schedule schedule io_schedule bit_wait_io __wait_on_bit jbd2_journal_commit_transaction kjournald2 kthread",
    "__schedule schedule kjournald2 kthread ret_from_fork",
    "__schedule schedule unheard_of",
    "try_to_wake_up blk_complete_reqs handle_softirqs",
    "__schedule schedule futex_do_wait __futex_wait futex_wait do_futex",
    "__schedule schedule do_nanosleep hrtimer_nanosleep common_nsleep __x64_sys_clock_nanosleep",
    "__schedule schedule schedule_hrtimeout_range ep_poll do_epoll_wait __x64_sys_epoll_wait",
    "try_to_wake_up hrtimer_wakeup __hrtimer_run_queues hrtimer_interrupt",
];
/// Where a futex and a poll wait.
const FUTEX: u32 = 7;
const POLL: u32 = 9;

struct Drawing {
    trace: Trace,
}

/// How a wait of a drawing ended: by this thread, or by an interrupt (0); and where it waited.
type End = (u32, u32);

impl Drawing {
    fn new() -> Drawing {
        let mut trace = Trace::default();
        let observed = &mut trace.observed;
        observed.started_ns = Nanos(START);
        observed.stacks = (1..).zip(STACKS).map(|(id, functions)| stack(id, functions)).collect();
        observed.timeline.calls = CALLS.map(str::to_owned).into();
        observed.timeline.stacks = (0..=STACKS.len() as u64).map(StackId).collect();
        Drawing { trace }
    }

    /// A thread of the command; `call` is the call that it is in where it is in one.
    fn thread(mut self, number: u32, parent: u32, call: u32, drawing: &str, ends: &[End]) -> Drawing {
        let (born, lived) = self.draw(number, call, drawing, ends);
        let letters = |letter| lived.chars().filter(|l| *l == letter).count() as u64;
        let waits = self.trace.observed.timeline.thread.iter().filter(|thread| **thread == number).count() as u64;
        self.trace.observed.threads.push(ThreadObserved {
            number,
            parent,
            pid: number,
            tid: number,
            born_ns: Nanos(START + born),
            ended_ns: Nanos(START + born + lived.len() as u64),
            user_ns: Nanos(letters('u')),
            kernel_ns: BTreeMap::from([(CALLS[call as usize].to_owned(), Nanos(letters('k')))]),
            runqueue_ns: Nanos(letters('r')),
            blocked_ns: Nanos(letters('b')),
            waits,
            ..ThreadObserved::default()
        });
        self
    }

    fn helper(mut self, number: u32, comm: &str, drawing: &str, ends: &[End]) -> Drawing {
        let (born, lived) = self.draw(number, 0, drawing, ends);
        self.trace.observed.helpers.push(Helper {
            number,
            comm: comm.to_owned(),
            adopted_ns: Nanos(START + born),
            ended_ns: Nanos(START + born + lived.len() as u64),
            kernel_thread: true,
            ..Helper::default()
        });
        self
    }

    fn draw<'a>(&mut self, number: u32, call: u32, drawing: &'a str, ends: &[End]) -> (u64, &'a str) {
        let born = (drawing.len() - drawing.trim_start_matches('.').len()) as u64;
        let lived = drawing.trim_matches('.');
        let letters: Vec<char> = lived.chars().collect();
        let mut ends = ends.iter();
        let mut at = 0;
        let mut piece: BTreeMap<u32, u64> = BTreeMap::new();
        while at < letters.len() {
            let off = |letter: char| letter == 'b' || letter == 'r';
            if !off(letters[at]) {
                *piece.entry(if letters[at] == 'k' { call } else { 0 }).or_default() += 1;
                at += 1;
                // Every instant ends a piece: that of a wake-up is among them.
                self.piece(number, born + at as u64, std::mem::take(&mut piece));
                continue;
            }
            let blocked = letters[at..].iter().take_while(|l| **l == 'b').count();
            let ready = letters[at + blocked..].iter().take_while(|l| **l == 'r').count();
            let (by, stack) = if blocked > 0 { *ends.next().expect("every wait ends") } else { (0, 0) };
            let timeline = &mut self.trace.observed.timeline;
            timeline.thread.push(number);
            timeline.out_ns.push(born + at as u64);
            timeline.blocked_ns.push(blocked as u64);
            timeline.ready_ns.push(ready as u64);
            timeline.call.push(call);
            timeline.stack.push(stack);
            timeline.waker.push(if by == 0 { Waker::Interrupt } else { Waker::Traced });
            timeline.waker_tid.push(by);
            timeline.waker_thread.push(by);
            timeline.waker_stack.push(match (by, stack) {
                (0, FUTEX | POLL) => 10,
                (0, _) => 6,
                _ => 0,
            });
            at += blocked + ready;
        }
        (born, lived)
    }

    fn piece(&mut self, number: u32, at: u64, parts: BTreeMap<u32, u64>) {
        let work = &mut self.trace.observed.work;
        work.thread.push(number);
        work.at_ns.push(at);
        work.parts.push(parts.len() as u32);
        work.call.extend(parts.keys());
        work.ns.extend(parts.values());
    }

    /// The trace, which lasts as long as its first thread.
    fn ended(mut self) -> Trace {
        self.trace.wall_ns = self.trace.observed.threads[0].lifetime_ns();
        self.trace
    }

    fn ledger(self) -> Ledger {
        path_of(&self.ended()).expect("the timeline is complete")
    }
}

fn path_of(trace: &Trace) -> Option<Ledger> {
    let (ledger, path) = walked(trace, &Classifier::new(&trace.observed.stacks))?;
    let in_steps: u128 = path.iter().flat_map(|(_, parts)| parts).map(|part| u128::from(part.ns.0)).sum();
    assert_eq!(in_steps + u128::from(ledger.unexplained_ns.0), u128::from(ledger.wall_ns.0));
    assert_eq!(
        by_row(path.stacks.iter().map(|part| (&part.row, part.time.ns))),
        by_row(of_ledger(&ledger).iter().map(|(row, ns)| (row, *ns)))
    );
    Some(ledger)
}

/// Sums, those of zero left out.
fn by_row<'a>(all: impl Iterator<Item = (&'a PathRow, Nanos)>) -> BTreeMap<PathRow, u128> {
    let mut sums = BTreeMap::new();
    for (row, ns) in all.filter(|(_, ns)| *ns > Nanos::ZERO) {
        *sums.entry(row.clone()).or_default() += u128::from(ns.0);
    }
    sums
}

fn of_ledger(ledger: &Ledger) -> Vec<(PathRow, Nanos)> {
    let row = |row: &inodyne_model::ledger::Row| {
        let (syscall, via) = (row.syscall.clone(), row.via.clone());
        (PathRow { kind: row.kind, syscall, cause: row.cause, via }, row.ns)
    };
    ledger.rows.iter().map(row).collect()
}

fn word(kind: RowKind, cause: Option<Cause>) -> &'static str {
    match kind {
        RowKind::User => "user",
        RowKind::Kernel => "kernel",
        RowKind::Runqueue => "ready",
        RowKind::InCall => "in-call",
        RowKind::OutsideCalls => "outside-calls",
        RowKind::Unexplained => "unexplained",
        RowKind::Blocked => cause.unwrap_or(Cause::Other).as_str(),
    }
}

/// The rows in words: `fsync journal jbd2 kernel 3`.
fn words(ledger: &Ledger) -> Vec<String> {
    assert_eq!(ledger.sum(), ledger.wall_ns);
    assert_eq!(ledger.view, View::CriticalPath);
    let row = |row: &inodyne_model::ledger::Row| {
        let kind = word(row.kind, row.cause);
        let chain = row.syscall.iter().chain(&row.via).map(String::as_str);
        chain.chain([kind]).map(str::to_owned).chain([row.ns.0.to_string()]).collect::<Vec<_>>().join(" ")
    };
    let mut rows: Vec<String> = ledger.rows.iter().filter(|row| row.ns > Nanos::ZERO).map(row).collect();
    rows.sort();
    rows
}

#[test]
fn one_thread_is_its_own_path() {
    let ledger = Drawing::new().thread(1, 0, 1, "uukkkbbbbrrkku", &[(0, 1)]).ledger();
    assert_eq!(words(&ledger), ["fsync journal 4", "fsync kernel 5", "ready 2", "user 3"]);
}

/// Of a parent that waits for its child, with this stack.
fn with_a_child(stack: u32) -> Ledger {
    Drawing::new()
        .thread(1, 0, 2, "uukkbbbbbbbbbbrkku", &[(2, stack)])
        .thread(2, 1, 1, "...ruukbbbkkkkk...", &[(0, 1)])
        .ledger()
}

#[test]
fn waiting_for_a_child_is_what_the_child_did() {
    let ledger = with_a_child(2);
    // Until the fork the parent (3), from then on the child, which the parent's wait did not begin any sooner.
    let rows = ["fsync journal 3", "fsync kernel 5", "ready 2", "user 5", "wait4 kernel 3"];
    assert_eq!(words(&ledger), rows);
}

#[test]
fn a_wait_whose_stack_could_not_be_taken_is_still_a_wait() {
    let ledger = Drawing::new().thread(1, 0, 1, "uukkkbbbbrrkku", &[(0, 0)]).ledger();
    assert_eq!(words(&ledger), ["fsync kernel 5", "fsync other 4", "ready 2", "user 3"]);
    // Who ended it is known.
    let ledger = with_a_child(0);
    let rows = ["fsync journal 3", "fsync kernel 5", "ready 2", "user 5", "wait4 kernel 3"];
    assert_eq!(words(&ledger), rows);
}

#[test]
fn a_thread_that_looks_now_and_then_is_not_what_takes_long() {
    // The first thread works. The second one sleeps, looks, and sleeps; at the end the first waits until the second has ended.
    let ledger = Drawing::new()
        .thread(1, 0, 1, "ukkkkkkkkkkkkkkkbbbku", &[(2, 7)])
        .thread(2, 1, 0, ".ubbbbbubbbbbbbuuuu...", &[(0, 7), (0, 7)])
        .ledger();
    assert_eq!(words(&ledger), ["fsync kernel 15", "user 6"]);
}

#[test]
fn what_is_slept_during_a_wait_is_waited_for() {
    let ledger = Drawing::new()
        .thread(1, 0, 2, "uukkbbbbbbbbbbrkku", &[(2, 2)])
        .thread(2, 1, 0, "...uubbbbbbbbuu...", &[(0, 7)])
        .ledger();
    assert_eq!(words(&ledger), ["futex 8", "ready 1", "user 6", "wait4 kernel 3"]);
}

#[test]
fn what_a_creator_slept_before_a_birth_held_up_who_waits_for_that_thread() {
    // The first thread works, then waits for the third, which the second created after a sleep, before that wait began.
    let ledger = Drawing::new()
        .thread(1, 0, 2, "uuuuuuuuuubbbbbbbbbbu", &[(3, 2)])
        .thread(2, 1, 0, ".ubbbbuu.............", &[(0, 8)])
        .thread(3, 2, 1, ".......kkkkkkkkkkkkk.", &[])
        .ledger();
    // Of the first one only its end, and what it did until it created the second.
    assert_eq!(words(&ledger), ["fsync kernel 13", "sleep 4", "user 4"]);
}

#[test]
fn who_looks_again_and_again_whether_another_is_done_waits_for_it() {
    // As an I/O benchmark does with its workers: nothing wakes the first thread but its own timer.
    let sleeper = "ukbbbubbbubbbubbbubbbuu";
    let ledger = Drawing::new()
        .thread(1, 0, 2, sleeper, &[(0, 8); 5])
        .thread(2, 1, 1, "..kbbbbbbbbbbbbbbbkk...", &[(0, 1)])
        .ledger();
    let rows = ["fsync journal 15", "fsync kernel 3", "user 3", "wait4 kernel 1", "wait4 sleep 1"];
    assert_eq!(words(&ledger), rows);
    // It is preempted before the last of these sleeps, or while the other one ends.
    for (sleeper, fsync) in [
        ("ukbbbubbbubbbrbbbubbbuu", ["fsync journal 15", "fsync kernel 3"]),
        ("ukbbbubbbubbbubbbrrrruu", ["fsync journal 14", "fsync kernel 1"]),
    ] {
        let ledger = Drawing::new()
            .thread(1, 0, 2, sleeper, &[(0, 8); 5])
            .thread(2, 1, 1, "..kbbbbbbbbbbbbbbbkk...", &[(0, 1)])
            .ledger();
        assert_eq!(words(&ledger)[..2], fsync);
    }
    // A thread that sleeps once does not check on anybody, nor does one that sleeps for about as long as the other works.
    for drawing in [".uuuuuuuuuuuuuuuuubbbuu", "ukbbbbbbbbbbbbbbbbbbbuu"] {
        let ledger = Drawing::new()
            .thread(1, 0, 2, drawing, &[(0, 8)])
            .thread(2, 1, 1, "..kbbbbbbbbbbbbbbbkk...", &[(0, 1)])
            .ledger();
        assert!(!words(&ledger).iter().any(|row| row.contains("fsync")), "{:?}", words(&ledger));
    }
}

#[test]
fn the_doings_say_whose_wait_was_on_the_path_and_whose_was_followed() {
    let trace = Drawing::new()
        .thread(1, 0, 2, "uukkbbbbbbbbbbrkku", &[(2, 2)])
        .thread(2, 1, 1, "...ruukbbbkkkkk...", &[(0, 1)])
        .thread(3, 1, 1, "...ubbbbbbbbbku...", &[(0, 1)])
        .ended();
    let (ledger, path) = walked(&trace, &Classifier::new(&trace.observed.stacks)).unwrap();
    let mut said: Vec<String> = Vec::new();
    let mut sum = 0;
    for doing in &path.doings {
        let what = match doing.kind {
            DoingKind::Running => "runs",
            DoingKind::Ready => "is ready",
            DoingKind::Waiting(_) => "waits",
            DoingKind::Followed(_) => "is waited with",
        };
        sum += if matches!(doing.kind, DoingKind::Followed(_)) { 0 } else { doing.ns.0 };
        said.push(format!("{} {what} in {} {}", doing.thread, doing.syscall.as_deref().unwrap_or("-"), doing.ns.0));
    }
    let expected = [
        "1 runs in - 3",
        "1 runs in wait4 3",
        "1 is ready in wait4 1",
        "1 is waited with in wait4 10",
        "2 runs in - 2",
        "2 is ready in fsync 1",
        "2 runs in fsync 5",
        "2 waits in fsync 3",
    ];
    said.sort();
    let mut expected = expected.map(str::to_owned);
    expected.sort();
    assert_eq!(said, expected);
    assert_eq!(sum, ledger.wall_ns.0);
}

#[test]
fn a_wait_for_the_journal_is_what_the_journal_did() {
    // The journal's thread was idle, was given work before the wait, ran, waited for the device, ran, and woke the command.
    let ledger = Drawing::new()
        .thread(1, 0, 1, "ukkbbbbbbbbbbku", &[(2, 1)])
        .helper(2, "jbd2/loop0-8", "uubuuubbbuuuuuuu", &[(1, 4), (0, 3)])
        .ledger();
    let rows = ["fsync journal jbd2 device-write 3", "fsync journal jbd2 kernel 7", "fsync kernel 3", "user 2"];
    assert_eq!(words(&ledger), rows);
}

#[test]
fn a_helper_that_was_idle_held_nobody_up() {
    let ledger = Drawing::new()
        .thread(1, 0, 1, "ukkbbbbbbbbbbku", &[(2, 1)])
        .helper(2, "kworker/0:1", "bbbbbbbbbbruuuuu", &[(0, 4)])
        .ledger();
    let rows = [
        "fsync journal 7",
        "fsync journal kworker kernel 2",
        "fsync journal kworker ready 1",
        "fsync kernel 3",
        "user 2",
    ];
    assert_eq!(words(&ledger), rows);
}

#[test]
fn a_helper_that_nobody_waits_for_ends_the_walk_all_the_same() {
    // No helper creates a thread of the command, but a damaged file may say so.
    let ledger = Drawing::new()
        .thread(1, 0, 2, "uukkbbbbbbbbbbrkku", &[(2, 2)])
        .thread(2, 3, 1, "........kkkkkk....", &[])
        .helper(3, "kworker/0:1", "bbbbbbbbbbbbbbbbbb", &[(0, 4)])
        .ledger();
    assert!(words(&ledger).contains(&"fsync kernel 6".to_owned()), "{ledger:?}");
}

#[test]
fn a_helper_that_a_helper_gave_work_to_waits_for_nothing_of_its_own() {
    // The first worker hands the work on to the second, which wakes the command.
    let ledger = Drawing::new()
        .thread(1, 0, 1, "ukkbbbbbbbbbbku", &[(3, 1)])
        .helper(2, "xlog/0", "bbbbbbuuuuuuuuuu", &[(0, 4)])
        .helper(3, "kworker/0:1", "bbbbbbbbbruuuuuu", &[(2, 4)])
        .ledger();
    let rows = [
        "fsync journal 3",
        "fsync journal kworker kernel 3",
        "fsync journal kworker ready 1",
        "fsync journal kworker xlog kernel 3",
        "fsync kernel 3",
        "user 2",
    ];
    assert_eq!(words(&ledger), rows);
}

#[test]
fn what_a_helper_did_before_it_was_known_belongs_to_the_wait() {
    let ledger = Drawing::new()
        .thread(1, 0, 1, "ukkbbbbbbbbbbku", &[(2, 1)])
        .helper(2, "jbd2/loop0-8", ".............uuu", &[])
        .ledger();
    assert_eq!(words(&ledger), ["fsync journal jbd2 journal 10", "fsync kernel 3", "user 2"]);
}

#[test]
fn what_a_child_of_a_helper_did_was_for_the_wait_too() {
    // A server that was asked has a child answer; about the child of one that is not known, no more can be known.
    let rows = |parent| {
        let mut drawing = Drawing::new()
            .thread(1, 0, 1, "ukkbbbbbbbbbbku", &[(3, 1)])
            .helper(2, "sshd", "..uuuuuuubbbbb", &[(0, 1)])
            .helper(3, "find", "......uuuuuuuu", &[]);
        drawing.trace.observed.helpers[1].parent = parent;
        words(&drawing.ledger())
    };
    let with = |first| [first, "fsync journal find kernel 7", "fsync kernel 3", "user 2"];
    assert_eq!(rows(None), with("fsync journal find journal 3"));
    let mut known = with("fsync journal sshd kernel 3");
    known.sort();
    assert_eq!(rows(Some(2)), known);
}

#[test]
fn a_server_that_looks_whether_its_child_is_done_waits_for_that() {
    // It checks every two nanoseconds, woken by a timer; in the last sleep its child had ended.
    let rows = |server, parent| {
        let mut drawing = Drawing::new()
            .thread(1, 0, 1, "ukkbbbbbbbbbbbbbbku", &[(2, 1)])
            .helper(2, "podman", "..uuubbubbubbubbu", &[(0, 8); 4])
            .helper(3, "find", ".....uuuuuuuuuu", &[]);
        for helper in &mut drawing.trace.observed.helpers {
            (helper.server, helper.pid) = (server, helper.number);
        }
        drawing.trace.observed.helpers[1].parent = parent;
        words(&drawing.ledger())
    };
    let rest = ["fsync kernel 3", "user 2"];
    let looks = ["fsync journal podman kernel 3", "fsync journal podman sleep 1"];
    let mut all = [&["fsync journal podman sleep find kernel 10"], &looks[..], &rest[..]].concat();
    let mut got = rows(true, Some(2));
    all.sort();
    got.sort();
    assert_eq!(got, all);
    // Somebody else's child, and a helper that nobody asked: it slept.
    for slept in [rows(true, None), rows(false, Some(2))] {
        assert!(slept.contains(&"fsync journal podman sleep 8".to_owned()), "{slept:?}");
    }
}

#[test]
fn a_server_that_looks_at_its_children_waits_for_the_youngest_that_does_something() {
    // A timer wakes systemd twice, and finally its child does. What came in between is systemd's own.
    let rows = |parent, youngest: &[End]| {
        let mut drawing = Drawing::new()
            .thread(1, 0, 1, "ukkbbbbbbbbbbbbbbku", &[(2, 1)])
            .helper(2, "systemd", "..uubbbubbbubbbbu", &[(0, 8), (0, 8), (3, 8)])
            .helper(3, "find", "...uuuuuuuuuuuuuu", &[])
            .helper(4, "pause", "....ubbbbbbbbbbbbb", youngest);
        for helper in &mut drawing.trace.observed.helpers {
            (helper.server, helper.pid) = (true, helper.number);
        }
        drawing.trace.observed.helpers[1].parent = parent;
        drawing.trace.observed.helpers[2].parent = parent;
        words(&drawing.ledger())
    };
    let asleep = rows(Some(2), &[(0, 8)]);
    assert!(asleep.contains(&"fsync journal systemd sleep find kernel 10".to_owned()), "{asleep:?}");
    assert!(!asleep.iter().any(|row| row.contains("pause") || row.ends_with("sleep 3")), "{asleep:?}");
    // In the middle of a wait for the disk it is not asleep.
    let reads = rows(Some(2), &[(0, 3)]);
    assert!(reads.iter().any(|row| row.starts_with("fsync journal systemd sleep pause")), "{reads:?}");
    // Nobody's child that is known: it slept.
    let slept = rows(None, &[(0, 8)]);
    assert!(slept.contains(&"fsync journal systemd sleep 6".to_owned()), "{slept:?}");
}

#[test]
fn who_polls_on_after_its_time_was_up_waited_for_who_ended_a_later_poll() {
    let rows = |asker: &str, server: &str, ends: &[End]| {
        let drawing = Drawing::new()
            .thread(1, 0, 1, asker, &[(0, POLL), (0, POLL), (2, POLL)])
            .helper(2, "dockerd", server, ends);
        words(&drawing.ledger())
    };
    let client = "ukkbbbbubbbbubbbbku";
    let works = rows(client, ".uuuuuuuuuuuuuuuuu.", &[]);
    assert_eq!(works, ["fsync kernel 3", "fsync poll dockerd kernel 12", "user 4"]);
    // It was in the middle of a wait of its own when the time was up, and is followed from there.
    let reads = rows(client, ".uuuubbbbbbbbbuuuu.", &[(0, 3)]);
    assert_eq!(reads, ["fsync kernel 3", "fsync poll dockerd device-write 7", "fsync poll dockerd kernel 5", "user 4"]);
    // Asked only then: before that, the client waited for its time to be up.
    let asked = rows("ukkbbbbubbbbukkbbku", ".bbbbbbbbbbbbbuuuu.", &[(1, 4)]);
    assert_eq!(asked, ["fsync kernel 5", "fsync poll 8", "fsync poll dockerd kernel 2", "user 4"]);
    // Not born yet, so not known.
    let young = rows(client, ".............uuuuu.", &[]);
    assert_eq!(young, ["fsync kernel 3", "fsync poll 8", "fsync poll dockerd kernel 4", "user 4"]);
}

#[test]
fn who_waits_on_after_its_time_was_up_waited_for_the_same_all_along() {
    // Like the runtime of a Go program, which checks on its threads now and then.
    let rows = |asker: &str, server: &str| {
        let drawing =
            Drawing::new().thread(1, 0, 1, asker, &[(0, FUTEX), (2, FUTEX)]).helper(2, "dockerd", server, &[]);
        words(&drawing.ledger())
    };
    let little = rows("ukbbbbbbbbbbbbbbbbbbbbkbbbku", ".uuuuuuuuuuuuuuuuuuuuuuuuuu.");
    assert_eq!(little, ["fsync futex dockerd kernel 23", "fsync kernel 3", "user 2"]);
    let much = rows("ukbbbbbkkkkkkkkkkkkkkkkbbbku", ".uuuuuuuuuuuuuuuuuuuuuuuuuu.");
    assert_eq!(much, ["fsync futex 5", "fsync futex dockerd kernel 3", "fsync kernel 18", "user 2"]);
}

#[test]
fn who_is_returned_to_in_the_middle_of_a_wait_waits_for_who_ended_that() {
    // The third slept, and ran from before the wait that it ended: the first was in another one at that time.
    let ledger = Drawing::new()
        .thread(1, 0, 1, "ukkbbbbbbbkkbbku", &[(2, FUTEX), (3, FUTEX)])
        .thread(2, 1, 0, ".uuuuuuuuuu.....", &[])
        .thread(3, 1, 0, ".bbbbbbbuuuuuuu.", &[(0, 8)])
        .ledger();
    assert_eq!(words(&ledger), ["fsync kernel 1", "user 15"]);
}

#[test]
fn a_part_of_the_path_has_its_stack_and_the_waits_around_it() {
    let mut drawing = Drawing::new().thread(1, 0, 1, "ukkbbbbbbbbbbku", &[(2, 1)]).helper(
        2,
        "jbd2/loop0-8",
        "uubuuubbbuuuuuuu",
        &[(1, 4), (0, 3)],
    );
    let observed = &mut drawing.trace.observed;
    // The journal's thread was seen at two places, and the command called from two of its functions, once from the first.
    let ran = |stack, count| Sample {
        thread: 2,
        syscall: None,
        user_mode: false,
        stack: StackId(stack),
        user_stack: StackId(0),
        count,
    };
    observed.helper_samples = vec![ran(20, 3), ran(21, 4)];
    let called = |user_stack, count| BlockedSample {
        thread: 1,
        syscall: Some("fsync".to_owned()),
        user_stack: StackId(user_stack),
        count,
    };
    observed.blocked_samples = vec![called(30, 1), called(31, 0)];
    let trace = drawing.ended();
    let (_, path) = walked(&trace, &Classifier::new(&trace.observed.stacks)).unwrap();
    let part = |part: &PathTime| {
        let wait = |wait: &PathWait| {
            format!(
                "{} in {} at {} for {}",
                wait.thread,
                wait.syscall.as_deref().unwrap_or("-"),
                wait.stack.0,
                wait.helper
            )
        };
        let waits: Vec<String> = part.waits.iter().map(wait).collect();
        let StackTime { thread, stack, user_stack, ns, .. } = part.time;
        format!(
            "[{}] {thread}: {} at {}, from {}: {ns}",
            waits.join(", "),
            word(part.row.kind, part.row.cause),
            stack.0,
            user_stack.0,
            ns = ns.0
        )
    };
    let mut said: Vec<String> = path.stacks.iter().map(part).collect();
    said.sort();
    let expected = [
        "[1 in fsync at 1 for jbd2] 2: device-write at 3, from 30: 3",
        "[1 in fsync at 1 for jbd2] 2: kernel at 20, from 30: 3",
        "[1 in fsync at 1 for jbd2] 2: kernel at 21, from 30: 4",
        "[] 1: kernel at 0, from 0: 3",
        "[] 1: user at 0, from 0: 2",
    ];
    assert_eq!(said, expected);
}

#[test]
fn stacks_of_a_helper_times_callers_do_not_grow_without_bound() {
    let journal = "uubuuubbbuuuuuuu";
    let mut drawing = Drawing::new().thread(1, 0, 1, "ukkbbbbbbbbbbku", &[(2, 1)]).helper(
        2,
        "jbd2/loop0-8",
        journal,
        &[(1, 4), (0, 3)],
    );
    let observed = &mut drawing.trace.observed;
    let ran = |stack| Sample {
        thread: 2,
        syscall: None,
        user_mode: false,
        stack: StackId(stack),
        user_stack: StackId(0),
        count: 1,
    };
    let called = |user_stack| BlockedSample {
        thread: 1,
        syscall: Some("fsync".to_owned()),
        user_stack: StackId(user_stack),
        count: 1,
    };
    observed.helper_samples = (1000..1100).map(ran).collect();
    observed.blocked_samples = (2000..2100).map(called).collect();
    let trace = drawing.ended();
    let (_, path) = walked(&trace, &Classifier::new(&trace.observed.stacks)).unwrap();
    let of_helper = |time: &&StackTime| time.thread == 2 && time.kind == RowKind::Kernel;
    let times: Vec<&StackTime> = path.stacks.iter().map(|part| &part.time).filter(of_helper).collect();
    assert!(
        times.iter().all(|time| time.stack.0 >= 1000 && time.user_stack.0 == 0),
        "by its own stacks only: {times:?}"
    );
    assert_eq!(times.iter().map(|time| time.ns.0).sum::<u64>(), 7);
}

/// Step by step: from when, in which thread, and what each piece was.
#[test]
fn the_path_says_when() {
    let trace = Drawing::new()
        .thread(1, 0, 2, "uukkbbbbbbbbbbrkku", &[(2, 2)])
        .thread(2, 1, 1, "...ruukbbbkkkkk...", &[(0, 1)])
        .ended();
    let (_, path) = walked(&trace, &Classifier::new(&trace.observed.stacks)).unwrap();
    let step = |(step, parts): (&Step, &[StepPart])| {
        let row = |part: &StepPart| {
            let row = &path.rows[part.row as usize];
            format!("{} {} {}", row.syscall.as_deref().unwrap_or("-"), word(row.kind, row.cause), part.ns.0)
        };
        format!("{} in {}: {}", step.from_ns, step.thread, parts.iter().map(row).collect::<Vec<_>>().join(", "))
    };
    let expected = [
        "0 in 1: - user 2",
        "2 in 1: wait4 kernel 1",
        "3 in 2: - ready 1",
        "4 in 2: - user 2",
        "6 in 2: fsync kernel 1",
        "7 in 2: fsync journal 3",
        "10 in 2: fsync kernel 4",
        "14 in 1: - ready 1",
        "15 in 1: wait4 kernel 2",
        "17 in 1: - user 1",
    ];
    assert_eq!(path.iter().map(step).collect::<Vec<_>>(), expected);
}

#[test]
fn what_came_before_the_command_is_unexplained() {
    let mut drawing = Drawing::new().thread(1, 0, 1, "uuuu", &[]);
    drawing.trace.wall_ns = Nanos(10);
    assert_eq!(words(&path_of(&drawing.trace).unwrap()), ["unexplained 6", "user 4"]);
}

#[test]
fn no_path_where_something_was_lost_or_is_missing() {
    let drawn = || Drawing::new().thread(1, 0, 1, "ukkbbku", &[(0, 1)]).trace;
    assert!(path_of(&drawn()).is_some());
    let mut lost = drawn();
    lost.lost.intervals = 1;
    assert!(path_of(&lost).is_none());
    let mut old = drawn();
    old.observed.timeline.waker_thread.clear();
    assert!(path_of(&old).is_none());
    let mut off = drawn();
    (off.observed.timeline, off.observed.work) = Default::default();
    assert!(path_of(&off).is_none());
}

/// Anything at all in the columns: some of it makes sense, most does not.
fn nonsense() -> impl Strategy<Value = Trace> {
    let small = || prop_oneof![0u64..60, any::<u64>()];
    let interval = (0u32..6, small(), small(), small(), (0u32..5, 0u32..9, 0u32..7, 0u32..9));
    let piece = (0u32..6, small(), 0u32..4, prop::collection::vec((0u32..5, small()), 0..4));
    let life = (small(), small(), 0u32..5, any::<bool>(), small());
    let lives = prop::collection::vec(life, 1..6);
    (prop::collection::vec(interval, 0..40), prop::collection::vec(piece, 0..40), lives, small()).prop_map(
        |(intervals, pieces, lives, wall)| {
            let mut trace = Drawing::new().trace;
            let observed = &mut trace.observed;
            for (number, (born, life, parent, is_helper, user)) in (1..).zip(lives) {
                let (born_ns, ended_ns) = (Nanos(born), Nanos(born.saturating_add(life)));
                if is_helper && number > 1 {
                    let helper = Helper { number, adopted_ns: born_ns, ended_ns, ..Helper::default() };
                    observed.helpers.push(helper);
                } else {
                    let (pid, user_ns) = (number / 2, Nanos(user));
                    let thread =
                        ThreadObserved { number, parent, pid, born_ns, ended_ns, user_ns, ..Default::default() };
                    observed.threads.push(thread);
                }
            }
            for (thread, out, blocked, ready, (call, stack, by, waker_stack)) in intervals {
                let timeline = &mut observed.timeline;
                timeline.thread.push(thread);
                timeline.out_ns.push(out);
                timeline.blocked_ns.push(blocked);
                timeline.ready_ns.push(ready);
                timeline.call.push(call);
                timeline.stack.push(stack);
                timeline.waker.push(if by == 0 { Waker::Interrupt } else { Waker::Traced });
                timeline.waker_tid.push(by);
                timeline.waker_thread.push(by);
                timeline.waker_stack.push(waker_stack);
            }
            for (thread, at, count, parts) in pieces {
                observed.work.thread.push(thread);
                observed.work.at_ns.push(at);
                observed.work.parts.push(count);
                observed.work.call.extend(parts.iter().map(|(call, _)| *call));
                observed.work.ns.extend(parts.iter().map(|(_, ns)| *ns));
            }
            // Some columns are shorter than they should be.
            observed.timeline.stack.truncate(30);
            trace.wall_ns = Nanos(wall);
            trace
        },
    )
}

/// Threads that take turns waiting for each other: sensible, and all of it known.
fn turns() -> impl Strategy<Value = (u64, Observed)> {
    prop::collection::vec((1u64..50, 0u64..20, 0u32..3), 1..200).prop_map(|rounds| {
        let mut now = START;
        let mut trace = Drawing::new().trace;
        let observed = &mut trace.observed;
        let mut waits_since = [START; 3];
        let mut running = 0;
        for (ran, ready, next) in rounds {
            now += ran;
            let next = if next == running { (next + 1) % 3 } else { next };
            let (work, timeline) = (&mut observed.work, &mut observed.timeline);
            work.thread.push(running + 1);
            work.at_ns.push(now - START);
            work.parts.push(1);
            work.call.push(1);
            work.ns.push(ran);
            let out = waits_since[next as usize];
            timeline.thread.push(next + 1);
            timeline.out_ns.push(out - START);
            timeline.blocked_ns.push(now - out);
            timeline.ready_ns.push(ready);
            timeline.call.push(1);
            timeline.stack.push(1);
            timeline.waker.push(Waker::Traced);
            timeline.waker_tid.push(running + 1);
            timeline.waker_thread.push(running + 1);
            timeline.waker_stack.push(0);
            waits_since[running as usize] = now;
            now += ready;
            running = next;
        }
        now += 5;
        for number in 1..=3u32 {
            let ended_ns = Nanos(now);
            let pid = if number == running + 1 { 1 } else { number };
            observed.threads.push(ThreadObserved {
                number,
                parent: 1,
                pid,
                born_ns: Nanos(START),
                ended_ns,
                ..Default::default()
            });
        }
        // The root process is that of whoever ran last.
        observed.threads[0].pid = 1;
        for thread in &mut observed.threads {
            let last = thread.number == running + 1;
            thread.ended_ns = Nanos(if last { now } else { now - 1 });
            thread.kernel_ns = BTreeMap::from([("fsync".to_owned(), Nanos(if last { 5 } else { 0 }))]);
        }
        (now - START, std::mem::take(observed))
    })
}

proptest! {
    #[test]
    fn turns_are_charged_once_and_leave_nothing((wall, observed) in turns()) {
        let ready: u64 = observed.timeline.ready_ns.iter().sum();
        let mut trace = Trace { wall_ns: Nanos(wall), observed, ..Trace::default() };
        for thread in &mut trace.observed.threads {
            let said: u64 = trace.observed.work.thread.iter().zip(&trace.observed.work.ns)
                .filter(|(number, _)| **number == thread.number).map(|(_, ns)| *ns).sum();
            *thread.kernel_ns.entry("fsync".to_owned()).or_default() += Nanos(said);
        }
        let ledger = path_of(&trace).unwrap();
        prop_assert_eq!(ledger.sum(), Nanos(wall));
        prop_assert_eq!(ledger.unexplained_ns, Nanos::ZERO);
        // Somebody always ran or was ready: the path finds them all, and no wait.
        let of = |kind| ledger.rows.iter().filter(|row| row.kind == kind).map(|row| row.ns.0).sum::<u64>();
        prop_assert_eq!(of(RowKind::Runqueue), ready);
        prop_assert_eq!(of(RowKind::Blocked), 0);
        prop_assert_eq!(of(RowKind::Kernel), wall - ready);
    }

    #[test]
    fn nonsense_sums_to_the_wall_time_all_the_same(trace in nonsense()) {
        if let Some(ledger) = path_of(&trace) {
            let sum: u128 = ledger.rows.iter().map(|row| u128::from(row.ns.0)).sum();
            prop_assert_eq!(sum, u128::from(trace.wall_ns.0));
        }
    }
}

/// A million switches between two threads.
#[test]
fn every_interval_is_looked_at_once() {
    // Anything quadratic would not end within the patience of a test runner.
    let mut trace = Drawing::new().trace;
    million(&mut trace, 1_000_000);
    let ledger = path_of(&trace).unwrap();
    assert_eq!(ledger.sum(), trace.wall_ns);
    assert_eq!(ledger.unexplained_ns, Nanos::ZERO);
}

fn million(trace: &mut Trace, switches: u64) {
    let observed = &mut trace.observed;
    for at in 0..switches {
        let (thread, other) = ((at % 2) as u32 + 1, ((at + 1) % 2) as u32 + 1);
        let now = at * 10;
        observed.work.thread.push(thread);
        observed.work.at_ns.push(now + 8);
        observed.work.parts.push(1);
        observed.work.call.push(1);
        observed.work.ns.push(8);
        let timeline = &mut observed.timeline;
        timeline.thread.push(other);
        timeline.out_ns.push((now + 8).saturating_sub(10));
        timeline.blocked_ns.push(now + 8 - (now + 8).saturating_sub(10));
        timeline.ready_ns.push(2);
        timeline.call.push(1);
        timeline.stack.push(1);
        timeline.waker.push(Waker::Traced);
        timeline.waker_tid.push(thread);
        timeline.waker_thread.push(thread);
        timeline.waker_stack.push(0);
    }
    let last = (switches % 2) as u32 + 1;
    let end = START + switches * 10;
    for number in 1..=2 {
        let ended_ns = Nanos(if number == last { end } else { end - 1 });
        observed.threads.push(ThreadObserved {
            number,
            pid: 1,
            born_ns: Nanos(START),
            ended_ns,
            parent: 1,
            ..Default::default()
        });
    }
    trace.wall_ns = Nanos(switches * 10);
}
