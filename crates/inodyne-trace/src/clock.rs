//! Tests of the state machine of `bpf/clock.h`: the very file that the kernel runs, compiled for the host.
//!
//! A timeline is drawn with one letter per nanosecond, the way the thread really spent it:
//!
//! ```text
//! u  user mode                 k  in a call, on a CPU
//! b  blocked                   r  ready (woken or preempted), no CPU
//! ```

use bytemuck::Zeroable;
use proptest::prelude::*;

use crate::contract::{CALL_NONE, STATE_BLOCKED, STATE_READY, Thread};

unsafe extern "C" {
    fn host_born(thread: *mut Thread, now: u64);
    fn host_enter(thread: *mut Thread, now: u64, call: u16);
    fn host_enter_untimed(thread: *mut Thread, call: u16);
    fn host_exit_untimed(thread: *mut Thread) -> i32;
    fn host_exit(thread: *mut Thread, now: u64, call_slot: u32) -> u64;
    fn host_out(thread: *mut Thread, now: u64, call_slot: u32, blocked: i32);
    fn host_in(thread: *mut Thread, now: u64) -> u64;
    fn host_end(thread: *mut Thread, now: u64, call_slot: u32);
}

const BIRTH: u64 = 1_000;
const CALL: u16 = 7;
const CALL_SLOT: u32 = 3;

/// What may happen to a thread, with the instant.
#[derive(Debug, Clone, Copy)]
enum Event {
    Enter,
    /// A timed call that stands for so many that are not timed.
    EnterFor(u32),
    EnterUntimed,
    Exit,
    Out {
        blocked: bool,
    },
    Wake,
    In,
}

/// A thread, driven the way the probes drive it.
struct Driven {
    thread: Thread,
    call_walls: Vec<u64>,
}

impl Driven {
    fn born() -> Driven {
        let mut thread = Thread::zeroed();
        thread.call = CALL_NONE;
        // SAFETY: the structure is generated from the one in C, and nobody else uses it.
        unsafe { host_born(&mut thread, BIRTH) };
        Driven { thread, call_walls: Vec::new() }
    }

    fn happen(&mut self, event: Event, now: u64) {
        let thread = &raw mut self.thread;
        // SAFETY: see `born`.
        unsafe {
            match event {
                Event::Enter => host_enter(thread, now, CALL),
                Event::EnterFor(others) => {
                    self.thread.stands_for = others;
                    host_enter(thread, now, CALL);
                }
                Event::EnterUntimed => host_enter_untimed(thread, CALL),
                Event::Exit if host_exit_untimed(thread) != 0 => {}
                Event::Exit => self.call_walls.push(host_exit(thread, now, CALL_SLOT)),
                Event::Out { blocked } => host_out(thread, now, CALL_SLOT, blocked.into()),
                Event::Wake => self.thread.wake_ns = now,
                Event::In => drop(host_in(thread, now)),
            }
        }
    }

    fn end(mut self, now: u64) -> Thread {
        // SAFETY: see `born`.
        unsafe { host_end(&mut self.thread, now, CALL_SLOT) };
        self.thread.ended = now;
        self.thread
    }
}

fn kernel_ns(thread: &Thread) -> u64 {
    thread.kernel_ns.iter().sum()
}

/// Plays a drawing: every change of letter is the event that causes it.
fn play(drawing: &str) -> Thread {
    let mut driven = Driven::born();
    let mut before = 'u';
    for (at, state) in drawing.chars().enumerate() {
        let now = BIRTH + at as u64;
        let in_call = driven.thread.call != CALL_NONE;
        match (before, state) {
            _ if before == state => {}
            ('u', 'k') => driven.happen(Event::Enter, now),
            ('k', 'u') => driven.happen(Event::Exit, now),
            ('u' | 'k', 'b') => driven.happen(Event::Out { blocked: true }, now),
            ('u' | 'k', 'r') => driven.happen(Event::Out { blocked: false }, now),
            ('b', 'r') => driven.happen(Event::Wake, now),
            ('b', _) => {
                driven.happen(Event::Wake, now);
                driven.happen(Event::In, now);
            }
            ('r', _) => driven.happen(Event::In, now),
            other => panic!("no event leads from {other:?}"),
        }
        assert!(state != 'k' || in_call || before == 'u', "a call is entered from user mode");
        before = state;
    }
    driven.end(BIRTH + drawing.len() as u64)
}

fn letters(drawing: &str, letter: char) -> u64 {
    drawing.chars().filter(|l| *l == letter).count() as u64
}

#[test]
fn every_letter_is_charged_where_it_was_drawn() {
    for drawing in [
        "uuuu",
        "uukkkuu",
        "uukkbbbbbrrkkuu",  // a call that waits for a device, then for a CPU
        "uukkbbbkbbbrkkuu", // two waits in one call
        "uurrruukkrrrkkuu", // preempted in user mode and in a call
        "uubbbbrruu",       // a page fault that waits
    ] {
        let thread = play(drawing);
        let charged = [thread.user_ns, kernel_ns(&thread), thread.blocked_ns, thread.ready_ns];
        let drawn = ['u', 'k', 'b', 'r'].map(|letter| letters(drawing, letter));
        assert_eq!(charged, drawn, "{drawing}");
    }
}

#[test]
fn a_call_is_charged_its_own_waits_only() {
    let mut driven = Driven::born();
    // u    r       u  k    b       r    k  u        all of it at 10 ns a letter
    for (event, at) in [
        (Event::Out { blocked: false }, 10),
        (Event::In, 20),
        (Event::Enter, 30),
        (Event::Out { blocked: true }, 40),
        (Event::Wake, 60),
        (Event::In, 65),
        (Event::Exit, 70),
    ] {
        driven.happen(event, BIRTH + at);
    }
    assert_eq!(driven.call_walls, [40]);
    assert_eq!((driven.thread.call_blocked_ns, driven.thread.call_ready_ns), (20, 5));
    assert_eq!(driven.thread.ready_ns, 15);
}

/// ```text
/// waker   ....W.......
/// thread  kkkkkkOrrrrI      the wake-up came while the switch was under way: it was never blocked
/// ```
#[test]
fn a_wake_up_that_races_with_the_switch_leaves_no_blocked_time() {
    let mut driven = Driven::born();
    driven.happen(Event::Enter, BIRTH);
    driven.happen(Event::Wake, BIRTH + 5);
    driven.happen(Event::Out { blocked: true }, BIRTH + 6);
    assert_eq!(driven.thread.state, STATE_BLOCKED);
    driven.happen(Event::In, BIRTH + 11);
    assert_eq!((driven.thread.blocked_ns, driven.thread.ready_ns), (0, 5));
}

/// ```text
/// waker   .W...........?...    the second one is not reported
/// thread  OrrIkkkkkkObbbbbI
/// ```
#[test]
fn a_thread_whose_wake_up_was_not_seen_is_blocked_until_it_runs() {
    let mut driven = Driven::born();
    driven.happen(Event::Enter, BIRTH);
    driven.happen(Event::Out { blocked: true }, BIRTH);
    driven.happen(Event::Wake, BIRTH + 1);
    driven.happen(Event::In, BIRTH + 3);
    assert_eq!((driven.thread.blocked_ns, driven.thread.ready_ns), (1, 2));
    driven.happen(Event::Out { blocked: true }, BIRTH + 10);
    driven.happen(Event::In, BIRTH + 16);
    assert_eq!((driven.thread.blocked_ns, driven.thread.ready_ns), (1 + 6, 2));
}

#[test]
fn a_preempted_thread_is_ready_whatever_wakes_it() {
    let mut driven = Driven::born();
    driven.happen(Event::Out { blocked: false }, BIRTH + 5);
    assert_eq!(driven.thread.state, STATE_READY);
    driven.happen(Event::Wake, BIRTH + 8);
    driven.happen(Event::In, BIRTH + 9);
    assert_eq!((driven.thread.blocked_ns, driven.thread.ready_ns), (0, 4));
    assert_eq!((driven.thread.waits, driven.thread.preemptions), (0, 1));
}

/// One letter is 10 ns, `K` a call that is timed and stands for another one:
///
/// ```text
/// measured  uu kkkk uuu kk uuu KKK u kkk bb kk uu
/// charged   uu ............... KKK ..... bb kk uu     a dot: user or kernel, with no way to tell how much of each
/// ```
#[test]
fn a_call_that_is_not_timed_is_charged_to_neither_until_it_leaves_the_cpu() {
    let mut driven = Driven::born();
    for (event, at) in [
        (Event::EnterUntimed, 20),
        (Event::Exit, 60),
        (Event::EnterUntimed, 90),
        (Event::Exit, 110),
        (Event::EnterFor(1), 140),
        (Event::Exit, 170),
        (Event::EnterUntimed, 180),
        (Event::Out { blocked: true }, 210),
        (Event::Wake, 230),
        (Event::In, 230),
        (Event::Exit, 250),
    ] {
        driven.happen(event, BIRTH + at);
    }
    assert_eq!(driven.thread.call, CALL_NONE);
    assert_eq!((driven.thread.call_blocked_ns, driven.thread.stands_for), (20, 0));
    let thread = driven.end(BIRTH + 270);
    assert_eq!((thread.user_ns, thread.untimed_ns, thread.blocked_ns), (20, 180, 20));
    // The timed one, the one that it stands for, and what was left of the last one after its wait.
    assert_eq!((kernel_ns(&thread), thread.stood_ns), (30 + 30 + 20, 30));
}

/// What a call runs after it has left the CPU is known for each call, so none has to stand for others.
#[test]
fn a_call_stands_for_others_up_to_its_first_switch_only() {
    let mut driven = Driven::born();
    for (event, at) in [
        (Event::EnterFor(7), 0),
        (Event::Out { blocked: true }, 10),
        (Event::Wake, 20),
        (Event::In, 20),
        (Event::Exit, 50),
    ] {
        driven.happen(event, BIRTH + at);
    }
    assert_eq!((kernel_ns(&driven.thread), driven.thread.stood_ns), (8 * 10 + 30, 7 * 10));
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Enter),
        (1u32..100).prop_map(Event::EnterFor),
        Just(Event::EnterUntimed),
        Just(Event::Exit),
        any::<bool>().prop_map(|blocked| Event::Out { blocked }),
        Just(Event::Wake),
        Just(Event::In),
    ]
}

proptest! {
    /// Any order of events, sensible or not (some may have been missed): nothing is lost and nothing counted twice.
    #[test]
    fn the_parts_sum_to_the_whole(events in prop::collection::vec((any_event(), 0u64..1_000_000), 0..200)) {
        let mut driven = Driven::born();
        let mut now = BIRTH;
        for (event, after) in events {
            now += after;
            driven.happen(event, now);
        }
        let thread = driven.end(now);
        let measured_ns = kernel_ns(&thread) - thread.stood_ns;
        let whole = thread.user_ns + thread.untimed_ns + measured_ns + thread.blocked_ns + thread.ready_ns;
        prop_assert_eq!(whole, now - BIRTH);
    }

    /// What a call is charged for waiting is never more than its wall time.
    #[test]
    fn a_call_never_waits_longer_than_it_lasts(waits in prop::collection::vec((1u64..1000, 0u64..1000, 1u64..1000), 0..20)) {
        let mut driven = Driven::born();
        driven.happen(Event::Enter, BIRTH);
        let mut now = BIRTH;
        for (ran, blocked, ready) in waits {
            driven.happen(Event::Out { blocked: true }, now + ran);
            driven.happen(Event::Wake, now + ran + blocked);
            now += ran + blocked + ready;
            driven.happen(Event::In, now);
        }
        driven.happen(Event::Exit, now);
        let wall = driven.call_walls[0];
        prop_assert!(driven.thread.call_blocked_ns + driven.thread.call_ready_ns <= wall);
        prop_assert_eq!(wall - driven.thread.call_blocked_ns - driven.thread.call_ready_ns, kernel_ns(&driven.thread));
    }
}
