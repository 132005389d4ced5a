//! Reads the records of ended threads and executed programs, and closes the accounts of those that still live.

use inodyne_model::Nanos;
use inodyne_model::observed::{Helper, Program, ThreadObserved, Wait, Waker};
use inodyne_model::stack::StackId;

use crate::intf::{
    self, CALL_NONE, FLAG_HELPER, FLAG_KTHREAD, PROGRAM_ARGS, ProgramRecord, STATE_BLOCKED, STATE_READY, Thread,
    ThreadRecord,
};
use crate::names;
use crate::probes::calls::Ordinals;
use crate::probes::switches::Numbers;

/// All helpers in the order of their numbers.
pub fn helpers(
    ended: &[ThreadRecord],
    alive: impl Iterator<Item = Thread>,
    now: Nanos,
    numbers: Numbers,
) -> Vec<Helper> {
    let alive = alive.map(|thread| Thread { ended: now.0, ..thread });
    let all = ended.iter().map(|record| record.thread).chain(alive);
    let helper = |thread: Thread| Helper {
        number: numbers.of(thread.number),
        pid: thread.pid,
        tid: thread.tid,
        comm: intf::text(&thread.comm),
        adopted_ns: Nanos(thread.born),
        ended_ns: Nanos(thread.ended),
        kernel_thread: thread.flags & FLAG_KTHREAD != 0,
    };
    let mut helpers: Vec<Helper> = all.filter(|thread| thread.flags & FLAG_HELPER != 0).map(helper).collect();
    helpers.sort_by_key(|helper| helper.number);
    helpers
}

/// All threads of the command in the order of their numbers, and the waits in which living ones were when the trace ended.
pub fn threads(
    ended: &[ThreadRecord],
    alive: impl Iterator<Item = Thread>,
    ordinals: &Ordinals,
    now: Nanos,
) -> (Vec<ThreadObserved>, Vec<Wait>) {
    let is_ours = |thread: &Thread| thread.flags & FLAG_HELPER == 0;
    let ended = ended.iter().filter(|record| is_ours(&record.thread));
    let mut threads: Vec<ThreadObserved> = ended.map(|record| observed(&record.thread, ordinals)).collect();
    let mut waits = Vec::new();
    for mut thread in alive.filter(is_ours) {
        let left = now.0.saturating_sub(thread.since);
        let mut unfinished = Nanos::ZERO;
        match thread.state {
            STATE_BLOCKED => {
                thread.blocked_ns += left;
                waits.push(unfinished_wait(&thread, Nanos(left)));
            }
            STATE_READY => thread.ready_ns += left,
            _ if thread.call == CALL_NONE => thread.user_ns += left,
            _ => unfinished = Nanos(left),
        }
        thread.ended = thread.since.max(now.0);
        let mut closed = observed(&thread, ordinals);
        if let Some(call) = names::call(thread.call).filter(|_| unfinished > Nanos::ZERO) {
            *closed.kernel_ns.entry(call).or_default() += unfinished;
        }
        closed.alive = true;
        threads.push(closed);
    }
    threads.sort_by_key(|thread| thread.number);
    (threads, waits)
}

fn observed(thread: &Thread, ordinals: &Ordinals) -> ThreadObserved {
    ThreadObserved {
        number: thread.number,
        parent: thread.parent,
        pid: thread.pid,
        tid: thread.tid,
        comm: intf::text(&thread.comm),
        born_ns: Nanos(thread.born),
        ended_ns: Nanos(thread.ended),
        alive: false,
        user_ns: Nanos(thread.user_ns),
        kernel_ns: ordinals.named(&thread.kernel_ns),
        runqueue_ns: Nanos(thread.ready_ns),
        blocked_ns: Nanos(thread.blocked_ns),
        scheduler_cpu_ns: Nanos(thread.runtime),
        waits: thread.waits,
        preemptions: thread.preemptions,
    }
}

fn unfinished_wait(thread: &Thread, ns: Nanos) -> Wait {
    Wait {
        thread: thread.number,
        syscall: names::call(thread.call),
        stack: StackId(thread.stack),
        waker: Waker::Unknown,
        waker_stack: StackId::default(),
        ns,
        count: 1,
        max_ns: ns,
    }
}

/// Executed programs in the order of time.
pub fn programs(records: &[ProgramRecord]) -> Vec<Program> {
    let mut programs: Vec<Program> = records.iter().map(program).collect();
    programs.sort_by_key(|program| program.at_ns);
    programs
}

fn program(record: &ProgramRecord) -> Program {
    let length = record.args_length as usize;
    let kept = &record.args[..length.min(PROGRAM_ARGS)];
    let words = kept.strip_suffix(&[0]).unwrap_or(kept);
    let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
    Program {
        thread: record.thread,
        pid: record.pid,
        at_ns: Nanos(record.at),
        file: intf::text(&record.file),
        args: if kept.is_empty() { Vec::new() } else { words.split(|b| *b == 0).map(text).collect() },
        args_truncated: length > PROGRAM_ARGS,
    }
}
