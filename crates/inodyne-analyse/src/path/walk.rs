//! The walk itself: from the end of the root process back to its beginning, via whoever was waited for.
//!
//! ```text
//! time        ────────────────────────────────────────────────────────────────────▶ end of the root process
//! sh          run │ fork │ …………… blocked: child, woken by the exit of rm ……………│ ready │ run ●
//! rm              └─ run │ blocked: inode freed in the background │ run, exit ─┘
//! kworker                        idle │ xfs-inodegc ──┘
//! path        sh  │  rm  │ queue-full │ xfs-inodegc   │    rm     │    sh
//! ```
//!
//! * Time on a CPU is charged to what ran, by the pieces of work; time spent ready, to the run queue.
//! * A wait that a thread of the command ended: the walk goes to that thread, at the instant of the wake-up, and stays there; but
//!   where that thread only let time pass (it slept, or its futex timed out), no farther back than to the beginning of the wait. Then
//!   it returns: a thread that checks something every 50 ms is not why the others took so long, though they wait for its end.
//! * A wait that a helper ended: the walk goes there too, but no farther back than to the beginning of the wait; then it
//!   returns. Helpers work for many, and what they did before was not for this wait.
//! * A thread that sleeps again and again, where in the last of these sleeps a far longer life of another thread ended: it was checking
//!   whether that one was done, though nobody woke it. The walk goes to that one, at its end. For a server it is enough that one that it
//!   created ended in such a sleep (a container daemon looks at its containers ten times a second), or else that one lives and does
//!   something.
//! * A poll whose time was up, in a process for which the walk has followed a later poll to another: the process went on polling, so it
//!   waited for that one all along. The walk goes to it, no farther back than to the beginning of the poll. Clients and daemons that are
//!   written in Go poll with a time-out as long as they have any timer. The same goes for the futex of one thread that did little else
//!   before it continued to wait.
//! * Any other wait (an interrupt, somebody who is not followed) is charged to its cause.
//! * A helper that was idle until an interrupt came gave no reason to wait: that time belongs to the cause of whoever waited.
//! * At the birth of a thread the walk goes to whoever created it, and returns to no thread whose wait began only after that; for a helper's
//!   child, no farther back than before.
//! * Where the timeline ran out of room, only sums are known for what came later: a thread's time there is divided by them, up to the
//!   wait that was under way when the timeline ended, or to the thread's birth. From there the walk goes on as usual, but into no helper.
//!
//! One file, though long: each of these is a step of one walk, and all of them share its state.
//!
//! The instant only ever moves back, and each move is charged as it is made: no instant is charged twice, none is left out.

use std::collections::HashMap;

use inodyne_model::cause::Cause;
use inodyne_model::ledger::{PAGE_FAULT, RowKind};
use inodyne_model::observed::{Helper, ROOT, ThreadNumber, Waker};
use inodyne_model::path::{DoingKind, PathWait, WaitPlace};
use inodyne_model::stack::StackId;

use super::doings::{self, Doings, Waiting};
use super::frame::{Frame, is_more_of, subject};
use super::history::{Histories, History, Off, Who};
use super::places::{ALONE, Place, Places};
use super::rows::{Key, Rows, Times};
use super::servers::Servers;
use super::tail::{Part, Tail, Tails, What};
use super::waker;
use crate::causes::Classifier;
use crate::faults::Outside;

/// How many helpers of helpers the walk goes into.
const DEEPEST: usize = 6;
/// Jumps without moving back in time; more only come from a damaged file.
const MOST_JUMPS: u32 = 16;
/// The number that stands for no call.
const OUTSIDE: u32 = u32::MAX;
/// A thread that continues to wait after its time was up has done something else for no more than one part in this many of that time.
const LITTLE: u64 = 10;
/// A thread that checks whether another is done does so at least this often while that one lives.
const LOOKS: u64 = 5;

/// How far a thread's past has been used up.
#[derive(Clone, Copy)]
struct Cursor {
    offs: usize,
    pieces: usize,
}

pub(super) struct Walk<'a> {
    histories: &'a Histories<'a>,
    tails: &'a Tails,
    classifier: &'a Classifier<'a>,
    cursors: HashMap<ThreadNumber, Cursor>,
    frames: Vec<Frame>,
    /// Threads of the command whose wait the walk has followed to another of them, and when that wait began.
    left: Vec<(ThreadNumber, u64)>,
    thread: ThreadNumber,
    now: u64,
    start: u64,
    jumps: u32,
    rows: Rows,
    doings: Doings,
    places: Places,
    servers: Servers<'a>,
    /// The thread that the walk has come into from one that slept meanwhile: perhaps in the middle of a wait.
    entered: Option<ThreadNumber>,
    /// Which threads of other processes ended polls, by the process that polled.
    polled: HashMap<u32, Polled>,
    /// The last wait of each thread that the walk followed to a helper, and that helper.
    followed: HashMap<ThreadNumber, (Off, ThreadNumber)>,
}

/// Who ended the poll of a process that the walk last followed.
struct Polled {
    by: ThreadNumber,
    /// The end of an earlier poll from which the walk went to that one, too.
    since: Option<u64>,
}

impl<'a> Walk<'a> {
    /// A walk that has been nowhere yet.
    pub(super) fn new(histories: &'a Histories<'a>, tails: &'a Tails, classifier: &'a Classifier<'a>) -> Walk<'a> {
        Walk {
            histories,
            tails,
            classifier,
            cursors: HashMap::new(),
            frames: Vec::new(),
            left: Vec::new(),
            thread: ROOT,
            now: 0,
            start: 0,
            jumps: 0,
            rows: Rows::default(),
            doings: Doings::default(),
            places: Places::default(),
            servers: Servers::new(histories),
            entered: None,
            polled: HashMap::new(),
            followed: HashMap::new(),
        }
    }

    /// Walks from an instant of a thread back to `start`.
    pub(super) fn back(&mut self, thread: ThreadNumber, end: u64, start: u64) {
        self.cursors.clear();
        self.frames.clear();
        self.left.clear();
        self.servers.begin();
        self.entered = None;
        self.polled.clear();
        self.followed.clear();
        (self.thread, self.now, self.start, self.jumps) = (thread, end, start, 0);
        while self.now > start && self.step() {}
    }

    /// Everything that was charged.
    pub(super) fn charged(self) -> (Rows, Doings, Places) {
        (self.rows, self.doings, self.places)
    }

    /// One step back; false where nothing is known from there on.
    fn step(&mut self) -> bool {
        if let Some(frame) = self.frames.last()
            && self.now <= frame.floor
        {
            self.thread = frame.waiter;
            self.frames.pop();
            return true;
        }
        let Some(history) = self.histories.of.get(&self.thread) else { return self.give_up() };
        if self.now <= history.begins() {
            return self.before_birth(history);
        }
        if let Some(tail) = self.tails.of(self.thread).filter(|tail| self.now > tail.from) {
            self.by_sums(history, tail);
            return true;
        }
        match self.last_off(history) {
            Some(off) if off.back >= self.now => self.off_cpu(history, off),
            Some(off) => self.on_cpu(history, off.back),
            None => self.on_cpu(history, history.begins()),
        }
        true
    }

    /// The earliest instant that concerns the walk where it is.
    fn limit(&self) -> u64 {
        self.frames.last().map_or(self.start, |frame| frame.floor.max(self.start))
    }

    /// The last time off the CPU that began before now.
    fn last_off(&mut self, history: &History<'_>) -> Option<Off> {
        let now = self.now;
        let cursor = self.cursor(history);
        while cursor.offs > 0 && history.offs[cursor.offs - 1].out >= now {
            cursor.offs -= 1;
        }
        cursor.offs.checked_sub(1).map(|at| history.offs[at])
    }

    fn cursor(&mut self, history: &History<'_>) -> &mut Cursor {
        let now = self.now;
        self.cursors.entry(self.thread).or_insert_with(|| Cursor {
            offs: history.offs.partition_point(|off| off.out < now),
            // The piece that ends now, or goes on, is the next.
            pieces: history.pieces.partition_point(|piece| piece.at < now),
        })
    }

    fn before_birth(&mut self, history: &History<'_>) -> bool {
        match history.who {
            Who::Helper(helper) => helper.parent.is_some_and(|parent| self.follow_creator(parent)) || self.give_up(),
            Who::Command(thread) => {
                let knows = thread.number != ROOT && self.histories.of.contains_key(&thread.parent);
                // What its creator did before was for no wait that began after this birth.
                self.left.retain(|(_, floor)| *floor < self.now);
                knows && self.jump(thread.parent)
            }
        }
    }

    /// Goes to the helper that created the current one, within the same wait; but not where the walk is inside of its waits already.
    fn follow_creator(&mut self, creator: ThreadNumber) -> bool {
        let Some(Who::Helper(helper)) = self.histories.of.get(&creator).map(|history| &history.who) else {
            return false;
        };
        let is_inside = self.frames.iter().rev().skip(1).any(|frame| frame.waiter == creator);
        if self.jumps >= MOST_JUMPS || is_inside {
            return false;
        }
        let Some(mut frame) = self.frames.pop() else { return false };
        self.jumps += 1;
        // It was checking whether this one was done, and before the birth of this one it did something else.
        if frame.waiter == creator {
            self.thread = creator;
            return true;
        }
        frame.helper = waker::name(helper, None);
        frame.waits = self.waits_inside(&frame);
        self.frames.push(frame);
        self.thread = creator;
        true
    }

    /// The number of the waits that the walk is inside of once this frame is the innermost.
    fn waits_inside(&mut self, frame: &Frame) -> u32 {
        if let Some(around) = self.frames.last()
            && is_more_of(around, frame.cause, &frame.helper)
        {
            return around.waits;
        }
        let (cause, stack) = if frame.was_idle { (None, StackId(0)) } else { (Some(frame.cause), frame.stack) };
        let (syscall, helper) = (frame.call.clone(), frame.helper.clone());
        self.places.inside(self.waits(), PathWait { thread: frame.waiter, syscall, cause, stack, helper })
    }

    /// Nothing is known about a helper: the rest of the wait belongs to whoever waited for it. Without one, the walk ends.
    fn give_up(&mut self) -> bool {
        let Some(frame) = self.frames.last() else { return false };
        let key = Key { kind: RowKind::Blocked, cause: Some(frame.cause), ..subject(&self.frames) };
        let limit = self.limit();
        let doing = self.frames.first().map_or_else(|| frame.waiting.key(), |frame| frame.waiting.key());
        let waited = self.frames.iter().rposition(|frame| !frame.was_idle).and_then(|at| self.of_waiter(at));
        let place = waited.unwrap_or_else(|| self.here(OUTSIDE, frame.stack));
        self.charge_wait(limit, key, place, doing);
        true
    }

    /// The helper was idle: the rest of the wait was not for it, nor for one that was idle until it got work from it. False where nobody
    /// waits for it, as in a damaged file in which a helper created a thread of the command.
    fn was_idle(&mut self) -> bool {
        let limit = self.limit();
        let Some(outer) = self.frames.iter().rposition(|frame| !frame.was_idle) else { return false };
        let Some(doing) = self.frames.first().map(|frame| frame.waiting.key()) else { return false };
        let Some(place) = self.of_waiter(outer) else { return false };
        let Some(innermost) = self.frames.pop() else { return false };
        self.thread = innermost.waiter;
        let key = {
            let frame = self.frames.get(outer).unwrap_or(&innermost);
            let around = &self.frames[..outer];
            let mut key = Key { cause: Some(frame.cause), ..subject(around) };
            if around.is_empty() {
                key.syscall = frame.call.clone();
            }
            key
        };
        self.charge_wait(limit, key, place, doing);
        true
    }

    fn off_cpu(&mut self, history: &History<'_>, off: Off) {
        let entered = self.entered.take();
        let limit = self.limit().max(off.out);
        let ready_since = if off.is_blocked() { off.wake.max(limit) } else { limit };
        if self.now > ready_since {
            let mut key = Key { kind: RowKind::Runqueue, ..subject(&self.frames) };
            if self.frames.is_empty() {
                key.syscall = None;
            }
            let doing = self.doing(off.call, DoingKind::Ready);
            self.charge_wait(ready_since, key, self.here(off.call, StackId(0)), doing);
            return;
        }
        let idle = |helper: &Helper| waker::is_idle(helper, self.classifier.stack(off.stack));
        let is_idle = matches!(history.who, Who::Helper(helper) if idle(helper));
        let is_in_its_middle = entered == Some(self.thread) && self.now < off.wake;
        let is_inside_or_at_its_end = self.now == off.wake || is_in_its_middle;
        if is_inside_or_at_its_end && self.follow(&off, is_idle) {
            self.entered = is_in_its_middle.then_some(self.thread);
            return;
        }
        if is_idle && self.was_idle() {
            return;
        }
        let (call, cause) = (self.call_of(&off), self.cause(&off));
        let key = |walk: &Walk<'_>| Key { kind: RowKind::Blocked, cause: Some(cause), ..walk.subject_in(call.clone()) };
        let doing = self.doing(off.call, DoingKind::Waiting(place(&off)));
        if let Some((worker, ended)) = self.looked_for(history, &off, cause) {
            let waiting = self.waiting(&off);
            self.charge_wait(ended, key(self), self.here(off.call, off.stack), doing);
            if self.jump(worker) {
                self.doings.follow(waiting);
            }
            return;
        }
        let let_time_pass = matches!(cause, Cause::Sleep | Cause::Futex) && matches!(off.waker, Waker::Interrupt);
        if let Some((worker, at)) = self.created_and_looked_for(history, &off, cause) {
            // One that lives longer than this sleep was perhaps not the one that mattered before it.
            let lives = at == self.now;
            let floor = if lives { limit } else { self.limit() };
            self.charge_wait(at, key(self), self.here(off.call, off.stack), doing);
            self.go_into(worker, &off, floor);
            self.entered = lives.then_some(worker);
            return;
        }
        let is_time_up = is_inside_or_at_its_end && self.classifier.is_time_up(off.waker, off.waker_stack);
        let waited_for = match cause {
            Cause::Poll if is_time_up => self.polled_for(history),
            Cause::Futex if is_time_up => self.resumed(&off),
            _ => None,
        };
        if let Some(worker) = waited_for {
            self.go_into(worker, &off, limit);
            self.entered = Some(worker);
            return;
        }
        let left = self.left.last().filter(|(_, floor)| let_time_pass && self.frames.is_empty() && *floor > off.out);
        let left = left.copied();
        let limit = left.map_or(limit, |(_, floor)| limit.max(floor.min(self.now)));
        self.charge_wait(limit, key(self), self.here(off.call, off.stack), doing);
        if let Some((waiter, _)) = left {
            self.left.pop();
            self.thread = waiter;
            // What ran after the sleep may have begun before that wait, while the waiter was in another.
            self.entered = Some(waiter);
        }
    }

    /// The thread of the command whose end the current one slept for, and from where on the walk is in it; where it had slept like this
    /// before.
    fn looked_for(&mut self, history: &History<'_>, off: &Off, cause: Cause) -> Option<(ThreadNumber, u64)> {
        let let_time_pass = |off: &Off, cause| {
            matches!(cause, Cause::Sleep | Cause::Poll)
                && matches!(off.waker, Waker::Interrupt)
                && off.stack != StackId(0)
        };
        if !self.frames.is_empty() || !let_time_pass(off, cause) || self.jumps >= MOST_JUMPS {
            return None;
        }
        let until_here = self.cursor(history).offs.saturating_sub(1);
        // Where it was only preempted, it did not wait.
        let before = history.offs[..until_here].iter().rev().find(|before| before.is_blocked()).copied()?;
        if !let_time_pass(&before, self.cause(&before)) || before.call != off.call {
            return None;
        }
        let slept = off.wake.saturating_sub(off.out);
        // Until it was back on a CPU it could not know of an end.
        let until = if self.now == off.wake { off.back.saturating_add(1) } else { self.now };
        let ended = &self.histories.ends[..self.histories.ends.partition_point(|(ended, _)| *ended < until)];
        let since = ended.iter().rev().take_while(|(ended, _)| *ended > off.out.max(self.start));
        let is_meant = |number: ThreadNumber| number != self.thread && self.lived_long(number, slept);
        since.map(|(ended, number)| (*number, self.now.min(*ended))).find(|(number, _)| is_meant(*number))
    }

    /// Whether a thread lived so long that one that sleeps for `slept` ns at a time checked for its end many times.
    fn lived_long(&self, number: ThreadNumber, slept: u64) -> bool {
        let life = self.histories.of.get(&number).map_or(0, |other| other.ends().saturating_sub(other.begins()));
        life / LOOKS >= slept.max(1)
    }

    /// The same for a server: the helper that the current one slept for, among those that its process or its children created, and
    /// until when. That is one that ended meanwhile and had lived far longer than such a sleep, or else the youngest of those that were
    /// alive when the sleep ended and were not asleep as well.
    fn created_and_looked_for(
        &mut self,
        history: &History<'_>,
        off: &Off,
        cause: Cause,
    ) -> Option<(ThreadNumber, u64)> {
        let Who::Helper(server) = history.who else { return None };
        let let_time_pass = matches!(cause, Cause::Sleep | Cause::Poll) && off.stack != StackId(0);
        if !server.server || !let_time_pass || self.jumps >= MOST_JUMPS {
            return None;
        }
        if matches!(off.waker, Waker::Interrupt) && self.now == off.wake {
            let slept = off.wake.saturating_sub(off.out);
            let mut ended = self.servers.ended(server.pid, off.out.max(self.limit()), self.now);
            let is_meant = |number: ThreadNumber| self.lived_long(number, slept) && !self.is_inside(number);
            if let Some(found) = ended.find(|(number, _)| is_meant(*number)) {
                return Some(found);
            }
        }
        if self.frames.len() >= DEEPEST {
            return None;
        }
        let living: Vec<ThreadNumber> = self.servers.living(server.pid, self.now).collect();
        let sleeps = |number| {
            let cause = self.servers.wait_at(number, self.now).map(|off| self.cause(off));
            matches!(cause, Some(Cause::Sleep | Cause::Poll | Cause::Futex))
        };
        let is_meant = |number: &ThreadNumber| !self.is_inside(*number) && !sleeps(*number);
        living.into_iter().find(is_meant).map(|number| (number, self.now))
    }

    /// Whether the walk is inside of a wait of this thread.
    fn is_inside(&self, number: ThreadNumber) -> bool {
        self.frames.iter().any(|frame| frame.waiter == number)
    }

    /// The helper that the current thread waited for until its time was up: the one that ended a later wait in the same call, which it
    /// went on to after little else.
    fn resumed(&self, off: &Off) -> Option<ThreadNumber> {
        let (later, by) = self.followed.get(&self.thread)?;
        let did = later.out.saturating_sub(off.wake);
        let did_little = did.saturating_mul(LITTLE) <= off.wake.saturating_sub(off.out);
        (did_little && later.call == off.call && self.can_enter(*by)).then_some(*by)
    }

    /// The helper that the process polled for until its time was up: the one that ended a later poll of the process.
    fn polled_for(&mut self, history: &History<'_>) -> Option<ThreadNumber> {
        let by = self.polled.get(&history.process())?.by;
        if !self.can_enter(by) {
            return None;
        }
        let polled = self.polled.get_mut(&history.process())?;
        // The walk came back from there without having moved: that one was waiting for this process.
        let is_new = polled.since != Some(self.now);
        polled.since = Some(self.now);
        is_new.then_some(by)
    }

    /// Whether the walk may go into a helper that did not wake the current thread.
    fn can_enter(&self, helper: ThreadNumber) -> bool {
        let lives = |other: &History<'_>| other.begins() < self.now && self.now <= other.ends();
        let has_room = self.frames.len() < DEEPEST && self.jumps < MOST_JUMPS;
        let is_known = self.histories.of.get(&helper).is_some_and(lives);
        has_room && is_known && helper != self.thread && !self.is_inside(helper)
    }

    /// Goes to a helper that did not wake the current thread, but that the thread waited for; no farther back than to `floor`.
    fn go_into(&mut self, worker: ThreadNumber, off: &Off, floor: u64) {
        let Some(Who::Helper(helper)) = self.histories.of.get(&worker).map(|history| &history.who) else { return };
        self.jumps += 1;
        let mut frame = Frame {
            waiter: self.thread,
            floor,
            cause: self.cause(off),
            stack: off.stack,
            was_idle: false,
            call: self.call_of(off),
            helper: waker::name(helper, None),
            waiting: self.waiting(off),
            waits: ALONE,
        };
        frame.waits = self.waits_inside(&frame);
        self.frames.push(frame);
        self.thread = worker;
    }

    /// Goes to whoever ended a wait, if that is known and leads on.
    fn follow(&mut self, off: &Off, was_idle: bool) -> bool {
        let to = off.waker_thread;
        if matches!(off.waker, Waker::Interrupt | Waker::Unknown) || to == 0 || to == self.thread {
            return false;
        }
        let Some(history) = self.histories.of.get(&to) else { return false };
        if self.now < history.begins() || self.now > history.ends() || self.is_inside(to) {
            return false;
        }
        if self.now > self.histories.until && matches!(history.who, Who::Helper(_)) {
            return false;
        }
        let Who::Helper(helper) = history.who else {
            // Where the walk is inside of helpers, the one that waits for them is no thread to return to.
            let left = self.frames.is_empty().then_some((self.thread, off.out));
            let waiting = self.frames.first().map_or_else(|| self.waiting(off), |frame| frame.waiting);
            let jumped = self.jump(to);
            if jumped {
                self.left.extend(left);
                self.doings.follow(waiting);
            }
            return jumped;
        };
        if self.frames.len() >= DEEPEST || self.jumps >= MOST_JUMPS {
            return false;
        }
        self.jumps += 1;
        let around = self.frames.last().filter(|_| was_idle).map(|frame| (frame.cause, frame.stack));
        let (cause, stack) = around.unwrap_or_else(|| (self.cause(off), off.stack));
        let call = if was_idle { None } else { self.call_of(off) };
        let helper = waker::name(helper, self.classifier.stack(off.waker_stack));
        let mut frame = Frame {
            waiter: self.thread,
            floor: self.limit().max(off.out),
            cause,
            stack,
            was_idle,
            call,
            helper,
            waiting: self.waiting(off),
            waits: ALONE,
        };
        frame.waits = self.waits_inside(&frame);
        if !was_idle {
            self.followed.insert(self.thread, (*off, to));
        }
        let waiter = self.histories.of.get(&self.thread).map(History::process);
        if let Some(waiter) =
            waiter.filter(|waiter| frame.cause == Cause::Poll && !was_idle && *waiter != history.process())
        {
            self.polled.insert(waiter, Polled { by: to, since: None });
        }
        self.frames.push(frame);
        self.thread = to;
        true
    }

    /// Goes to a thread of the command, for good.
    fn jump(&mut self, to: ThreadNumber) -> bool {
        self.jumps += 1;
        if self.jumps > MOST_JUMPS {
            return false;
        }
        self.frames.clear();
        self.thread = to;
        true
    }

    fn cause(&self, off: &Off) -> Cause {
        self.classifier.cause_of(off.stack, off.waker, off.waker_stack)
    }

    /// The call of a wait, or that it was in a page fault.
    fn call_of(&self, off: &Off) -> Option<String> {
        let call = self.histories.call(off.call);
        if !call.is_empty() {
            return Some(call.to_owned());
        }
        let stack = self.classifier.stack(off.stack)?;
        (Outside::of(stack) == Outside::PageFault).then(|| PAGE_FAULT.to_owned())
    }

    /// On whose behalf something is charged, with the call that the current thread is in.
    fn subject_in(&self, call: Option<String>) -> Key {
        let mut key = subject(&self.frames);
        if self.frames.is_empty() {
            key.syscall = call;
        } else {
            key.via.extend(call);
        }
        key
    }

    /// The wait of the current thread that ended now.
    fn waiting(&self, off: &Off) -> Waiting {
        Waiting { thread: self.thread, call: off.call, place: place(off), cause: self.cause(off), since: off.out }
    }

    /// What the thread of the command that the walk is about does: the current one, or the one that waits for it.
    fn doing(&self, call: u32, kind: DoingKind) -> doings::Key {
        let own = doings::Key { thread: self.thread, call, kind };
        self.frames.first().map_or(own, |frame| frame.waiting.key())
    }

    /// The number of the waits that the walk is inside of.
    fn waits(&self) -> u32 {
        self.frames.last().map_or(ALONE, |frame| frame.waits)
    }

    /// Where the current thread is.
    fn here(&self, call: u32, stack: StackId) -> Place {
        Place { waits: self.waits(), thread: self.thread, call, stack }
    }

    /// Where the thread that waits in this frame is.
    fn of_waiter(&self, at: usize) -> Option<Place> {
        let frame = self.frames.get(at)?;
        let waits = at.checked_sub(1).map_or(ALONE, |around| self.frames[around].waits);
        Some(Place { waits, thread: frame.waiter, call: frame.waiting.call, stack: frame.stack })
    }

    fn charge_wait(&mut self, to: u64, key: Key, place: Place, doing: doings::Key) {
        let ns = self.now.saturating_sub(to);
        if ns > 0 {
            let row = self.rows.waited(key, ns, place.stack, Times::Once);
            self.places.add(row, place, ns);
            self.rows.step(to, self.thread);
            self.doings.add(doing, ns);
            self.doings.pass(self.now, to);
        }
        self.move_to(to);
    }

    fn move_to(&mut self, to: u64) {
        if to < self.now {
            self.now = to;
            self.jumps = 0;
        }
    }

    /// Charges time for which only sums are known, from now back to where the timeline of this thread ends.
    fn by_sums(&mut self, history: &History<'_>, tail: &Tail) {
        let to = tail.from.max(self.limit()).min(self.now);
        for part in tail.of_stretch(self.now - to) {
            match part.what {
                What::Ran(call) => self.charge_run(history, call, part.ns, true),
                What::Ready => {
                    let key = Key { kind: RowKind::Runqueue, ..self.subject_in(None) };
                    let doing = self.doing(OUTSIDE, DoingKind::Ready);
                    self.charge_waits(&part, key, self.here(OUTSIDE, StackId(0)), doing);
                }
                What::Blocked(off) => {
                    let key = Key { cause: Some(self.cause(&off)), ..self.subject_in(self.call_of(&off)) };
                    let doing = self.doing(off.call, DoingKind::Waiting(place(&off)));
                    self.charge_waits(&part, key, self.here(off.call, off.stack), doing);
                }
            }
        }
        self.rows.step(to, self.thread);
        self.doings.pass(self.now, to);
        self.move_to(to);
    }

    fn charge_waits(&mut self, part: &Part, key: Key, place: Place, doing: doings::Key) {
        if part.ns > 0 {
            let row = self.rows.waited(key, part.ns, place.stack, Times::Estimated(part.count));
            self.places.add(row, place, part.ns);
            self.doings.add(doing, part.ns);
        }
    }

    /// Charges time on a CPU, from now back to `since`, piece by piece.
    fn on_cpu(&mut self, history: &History<'_>, since: u64) {
        self.entered = None;
        let since = since.max(self.limit());
        while self.now > since {
            let now = self.now;
            let cursor = self.cursor(history);
            while cursor.pieces > 0 && history.pieces[cursor.pieces - 1].at >= now {
                cursor.pieces -= 1;
            }
            let at = cursor.pieces;
            let begins = at.checked_sub(1).map_or(since, |before| history.pieces[before].at.max(since)).min(now);
            let parts = history.pieces.get(at).map_or(&history.last[..], |piece| self.histories.parts(piece));
            self.charge_piece(history, parts, now - begins);
            self.rows.step(begins, self.thread);
            self.doings.pass(now, begins);
            self.move_to(begins);
        }
    }

    /// Charges `ns` of a piece. Where that is not all of it, each part gets its share, rounded down, the last the rest.
    fn charge_piece(&mut self, history: &History<'_>, parts: &[(u32, u64)], ns: u64) {
        let all = parts.iter().fold(0u64, |sum, (_, part)| sum.saturating_add(*part));
        if matches!(history.who, Who::Helper(helper) if helper.kernel_thread) {
            return self.charge_run(history, OUTSIDE, ns, false);
        }
        let estimated = all != ns;
        let mut left = ns;
        for (at, (call, part)) in parts.iter().enumerate() {
            let share = match estimated {
                false => *part,
                true if at + 1 == parts.len() => left,
                true => (u128::from(ns) * u128::from(*part) / u128::from(all.max(1))) as u64,
            };
            let share = share.min(left);
            left -= share;
            self.charge_run(history, *call, share, estimated);
        }
        self.charge_run(history, OUTSIDE, left, true);
    }

    fn charge_run(&mut self, history: &History<'_>, call: u32, ns: u64, estimated: bool) {
        if ns == 0 {
            return;
        }
        self.doings.add(self.doing(call, DoingKind::Running), ns);
        let name = self.histories.call(call);
        let place = self.here(if name.is_empty() { OUTSIDE } else { call }, StackId(0));
        let named = (!name.is_empty()).then(|| name.to_owned());
        let row = match history.who {
            Who::Command(_) if name.is_empty() => self.rows.ran_outside(self.thread, ns, estimated),
            Who::Helper(helper) if name.is_empty() && !helper.kernel_thread => {
                self.rows.ran(Key { kind: RowKind::User, ..self.subject_in(None) }, ns, estimated)
            }
            _ => self.rows.ran(Key { kind: RowKind::Kernel, ..self.subject_in(named) }, ns, estimated),
        };
        self.places.add(row, place, ns);
    }
}

/// Where a thread waited, and who ended the wait.
fn place(off: &Off) -> WaitPlace {
    WaitPlace { stack: off.stack, waker: off.waker, waker_stack: off.waker_stack }
}
