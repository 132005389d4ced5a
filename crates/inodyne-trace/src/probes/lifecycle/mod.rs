//! Births, programs, names and ends: reads the records of ended threads and processes and of executed programs, and closes the accounts of
//! those that are still alive.

mod arrived;
mod contract;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::num::NonZero;
use std::rc::Rc;

use inodyne_model::Nanos;
use inodyne_model::observed::{Helper, Program as Executed, ROOT, ThreadNumber, ThreadObserved, Wait, Waker};
use inodyne_model::run::Exit;
use inodyne_model::snapshot::{Snapshot, ThreadSoFar};
use inodyne_model::stack::StackId;
use inodyne_model::trace::Trace;

use crate::call_slots::CallSlots;
use crate::cgroups;
use crate::contract::{
    CALL_NONE, FLAG_HELPER, FLAG_KTHREAD, FLAG_SERVER, STATE_BLOCKED, STATE_READY, Thread, global, text,
};
use crate::names;
use crate::kernel::Programs;
use crate::probe::{LOSING, NOT_AT_EVENTS, Probe, Program, Seen};
use crate::options::Options;
use crate::rings::{Rings, Wanted, bytes_for, first_bytes};
use crate::skeleton::{InodyneMaps, OpenInodyneSkel};
use crate::thread_numbers::ThreadNumbers;
use arrived::{Arrived, Ended, Exec};
use contract::{ExitRecord, PROGRAM_ARGS};

/// The probe of lives.
#[derive(Default)]
pub struct Own {
    arrived: Rc<RefCell<Arrived>>,
    /// What the ring buffer is to have room for.
    room: Wanted,
}

const PROGRAMS: &[Program] = &[
    Program::at("lifecycle_fork", "sched_process_fork").on(&[Programs::KeepCpu]),
    Program::at("lifecycle_fork_held", "sched_wakeup_new").on(LOSING),
    Program::at("lifecycle_exec", "sched_process_exec").on(NOT_AT_EVENTS),
    Program::at("lifecycle_exec_again", "sched_process_exec")
        .on(&[Programs::LoseCpu])
        .done(|bss| bss.lifecycle_exec_again_done),
    Program::held("lifecycle_exec_held", "sched/sched_process_exec"),
    Program::at("lifecycle_exit", "sched_process_exit").on(NOT_AT_EVENTS),
    Program::at("lifecycle_exit_again", "sched_process_exit")
        .on(&[Programs::LoseCpu])
        .done(|bss| bss.lifecycle_exit_again_done),
    Program::held("lifecycle_exit_held", "sched/sched_process_exit"),
    // Skipped: what is left of the life counts as user mode, up to the exit.
    Program::at("lifecycle_killed", "signal_deliver").of_detail(),
    Program::at("lifecycle_rename", "task_rename"),
    Program::at("lifecycle_rename_again", "task_rename").on(LOSING).done(|bss| bss.lifecycle_rename_again_done),
];

/// Initial size of the ring buffer, per CPU: the lives and programs of some hundred processes.
const BYTES_OF_CPU: u32 = 256 << 10;

/// What a thread's end takes in the ring buffer where some fifty different calls are made in all.
const BYTES_PER_END: u64 = 640;

/// What the ring buffer takes at most, in bytes.
fn room(options: &Options) -> u32 {
    options.records_bytes.max(bytes_for(options.max_threads, BYTES_PER_END))
}

impl Probe for Own {
    fn feature(&self) -> &'static str {
        "threads, processes and programs"
    }

    fn without(&self) -> &'static str {
        "children and threads are not followed, and programs not named"
    }

    fn is_of_live_view(&self) -> bool {
        true
    }

    fn programs(&self) -> &'static [Program] {
        PROGRAMS
    }

    fn configure(&self, object: &mut OpenInodyneSkel<'_>, options: &Options, cpus: usize) -> libbpf_rs::Result<()> {
        object.maps.records.set_max_entries(first_bytes(BYTES_OF_CPU, cpus, room(options)))
    }

    fn open(
        &mut self,
        maps: &InodyneMaps<'static>,
        options: &Options,
        rings: &mut Rings,
    ) -> libbpf_rs::Result<()> {
        let arrived = Rc::clone(&self.arrived);
        self.room = rings.add(&maps.records, &maps.records_larger, room(options), move |bytes| {
            arrived.borrow_mut().take(bytes);
        })?;
        Ok(())
    }

    /// All threads that exist may end at once.
    fn look(&self, maps: &InodyneMaps<'static>) -> libbpf_rs::Result<()> {
        let variables = maps.bss_data.as_ref().expect("the object has global variables");
        self.room.set(bytes_for(global(&variables.shared).slots_used, BYTES_PER_END));
        Ok(())
    }

    /// Where a command was launched: once its first process has ended.
    fn is_complete(&self) -> bool {
        self.arrived.borrow().threads.iter().any(|thread| thread.number == ROOT)
    }

    fn read(&mut self, seen: &Seen<'_>, result: &mut Trace) -> libbpf_rs::Result<()> {
        let arrived = self.arrived.take();
        let alive = || seen.alive.iter().copied();
        let observed = &mut result.observed;
        observed.helpers = helpers(&arrived.threads, alive(), seen.stopped_ns, seen.numbers, &seen.cgroups);
        observed.cgroups = own_cgroups(&arrived.threads, alive(), &seen.cgroups);
        (observed.threads, observed.waits) = threads(&arrived.threads, alive(), &seen.call_slots, seen.stopped_ns);
        let exits = exits(&arrived.exits);
        observed.threads.iter_mut().for_each(|thread| thread.process_exit = exits.get(&thread.number).copied());
        observed.programs = programs(arrived.programs);
        // A window begins when watching begins, whoever comes into it later; a command begins with its root.
        let root = || observed.threads.first().map_or(Nanos::ZERO, |first| first.born_ns);
        observed.started_ns = seen.joined_ns.unwrap_or_else(root);
        Ok(())
    }

    /// A thread that was alive may have ended since: then its record has arrived, and says more.
    fn read_so_far(&mut self, seen: &Seen<'_>, snapshot: &mut Snapshot) -> libbpf_rs::Result<()> {
        let arrived = self.arrived.take();
        let ended: HashSet<u32> = arrived.threads.iter().map(|thread| thread.number).collect();
        let alive = || seen.alive.iter().copied().filter(|thread| !ended.contains(&thread.number));
        let observed = &mut snapshot.observed;
        (observed.threads, observed.waits) = threads(&arrived.threads, alive(), &seen.call_slots, seen.stopped_ns);
        snapshot.threads = so_far(&arrived.threads, alive(), seen.stopped_ns);
        Ok(())
    }
}

/// All helpers in the order of their numbers.
fn helpers(
    ended: &[Ended],
    alive: impl Iterator<Item = Thread>,
    now: Nanos,
    numbers: ThreadNumbers,
    cgroups: &cgroups::Names,
) -> Vec<Helper> {
    let is_helper = |flags: u8| flags & FLAG_HELPER != 0;
    let helper = |thread: &Ended| Helper {
        number: numbers.of(thread.number),
        pid: thread.pid,
        tid: thread.tid,
        comm: text(&thread.comm),
        cgroup: cgroups.get(&thread.cgroup).cloned(),
        adopted_ns: Nanos(thread.born),
        ended_ns: Nanos(thread.ended),
        kernel_thread: thread.flags & FLAG_KTHREAD != 0,
        server: thread.flags & FLAG_SERVER != 0,
        parent: (thread.parent != 0).then(|| numbers.of(thread.parent)),
    };
    let ended = ended.iter().filter(|thread| is_helper(thread.flags)).map(helper);
    let alive = alive.filter(|thread| is_helper(thread.flags));
    let alive = alive.map(|thread| helper(&Ended::of(&Thread { ended: now.0, ..thread })));
    let mut helpers: Vec<Helper> = ended.chain(alive).collect();
    helpers.sort_by_key(|helper| helper.number);
    helpers
}

/// The control groups of those with whom it began.
fn own_cgroups(ended: &[Ended], alive: impl Iterator<Item = Thread>, cgroups: &cgroups::Names) -> Vec<String> {
    let ended = ended.iter().map(|thread| (thread.flags, thread.cgroup));
    let all = ended.chain(alive.map(|thread| (thread.flags, thread.cgroup)));
    let own = all.filter(|(flags, _)| flags & FLAG_HELPER == 0).filter_map(|(_, cgroup)| cgroups.get(&cgroup));
    own.collect::<BTreeSet<&String>>().into_iter().cloned().collect()
}

/// All threads of the command in the order of their numbers, and the waits in which living ones were when the trace ended.
fn threads(
    ended: &[Ended],
    alive: impl Iterator<Item = Thread>,
    call_slots: &CallSlots,
    now: Nanos,
) -> (Vec<ThreadObserved>, Vec<Wait>) {
    let is_ours = |flags: u8| flags & FLAG_HELPER == 0;
    let ended = ended.iter().filter(|thread| is_ours(thread.flags));
    let mut threads: Vec<ThreadObserved> = ended.map(|thread| observed(thread, call_slots)).collect();
    let mut waits = Vec::new();
    for mut thread in alive.filter(|thread| is_ours(thread.flags)) {
        let left = now.0.saturating_sub(thread.since);
        let mut unfinished = Nanos::ZERO;
        match thread.state {
            STATE_BLOCKED => {
                // Since it was woken it has waited for a CPU. A signal wakes it at the very moment at which it stops (`wake_by_signal`). One
                // that was woken before that is ready if it has raced with its wake-up, and still waits if that was for another reason.
                let ready = if thread.wake_ns >= thread.since { now.0.saturating_sub(thread.wake_ns) } else { 0 };
                let blocked = left.saturating_sub(ready);
                thread.blocked_ns += blocked;
                thread.ready_ns += ready;
                waits.push(unfinished_wait(&thread, Nanos(blocked)));
            }
            STATE_READY => thread.ready_ns += left,
            // `so_far` has it.
            _ if thread.untimed != 0 => {}
            _ if thread.call == CALL_NONE => thread.user_ns += left,
            _ => unfinished = Nanos(left),
        }
        thread.ended = thread.since.max(now.0);
        let mut closed = observed(&Ended::of(&thread), call_slots);
        if let Some(call) = names::call(thread.call).filter(|_| unfinished > Nanos::ZERO) {
            *closed.kernel_ns.entry(call).or_default() += unfinished;
        }
        closed.alive = true;
        threads.push(closed);
    }
    threads.sort_by_key(|thread| thread.number);
    (threads, waits)
}

/// What else a live view needs to know about each thread.
fn so_far(
    ended: &[Ended],
    alive: impl Iterator<Item = Thread>,
    now: Nanos,
) -> HashMap<ThreadNumber, ThreadSoFar> {
    let one = |thread: &Ended| {
        let so_far = ThreadSoFar {
            calls: thread.calls,
            pid_here: NonZero::new(thread.pid_here),
            untimed_ns: Nanos(thread.untimed_ns),
            stood_ns: Nanos(thread.stood_ns),
        };
        (thread.number, so_far)
    };
    let closed = |thread: Thread| {
        let left = if thread.untimed != 0 { now.0.saturating_sub(thread.since) } else { 0 };
        one(&Ended::of(&Thread { untimed_ns: thread.untimed_ns + left, ..thread }))
    };
    ended.iter().map(one).chain(alive.map(closed)).collect()
}

fn observed(thread: &Ended, call_slots: &CallSlots) -> ThreadObserved {
    ThreadObserved {
        number: thread.number,
        parent: thread.parent,
        pid: thread.pid,
        tid: thread.tid,
        comm: text(&thread.comm),
        born_ns: Nanos(thread.born),
        ended_ns: Nanos(thread.ended),
        alive: false,
        user_ns: Nanos(thread.user_ns),
        kernel_ns: call_slots.named(&thread.kernel),
        runqueue_ns: Nanos(thread.ready_ns),
        blocked_ns: Nanos(thread.blocked_ns),
        scheduler_cpu_ns: Nanos(thread.runtime),
        waits: thread.waits,
        preemptions: thread.preemptions,
        process_exit: None,
    }
}

/// How processes ended, by the last thread of each.
fn exits(records: &[ExitRecord]) -> HashMap<ThreadNumber, Exit> {
    records.iter().map(|record| (record.thread, Exit::of_status(record.status))).collect()
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
        began_before: thread.joined == 1,
    }
}

/// Executed programs in chronological order.
fn programs(arrived: Vec<Exec>) -> Vec<Executed> {
    let mut programs: Vec<Executed> = arrived.into_iter().map(|one| program(&one)).collect();
    programs.sort_by_key(|program| program.at_ns);
    programs
}

fn program(one: &Exec) -> Executed {
    let words = one.args.strip_suffix(&[0]).unwrap_or(&one.args);
    let word = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
    Executed {
        thread: one.thread,
        pid: one.pid,
        at_ns: Nanos(one.at),
        file: word(&one.file),
        args: if one.args.is_empty() { Vec::new() } else { words.split(|b| *b == 0).map(word).collect() },
        args_truncated: one.args_length as usize > PROGRAM_ARGS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::planted::{every_field_counts, planted};
    use contract::ProgramRecord;

    unsafe extern "C" {
        fn host_plant_thread(to: *mut Thread);
        fn host_plant_program(to: *mut ProgramRecord);
        fn host_plant_exit(to: *mut ExitRecord);
    }

    /// The first call slot is that of `read`.
    fn call_slots() -> CallSlots {
        CallSlots::of(&[(1, 0, 1)])
    }

    fn cgroups() -> cgroups::Names {
        cgroups::Names::from([(232, "/planted".to_owned())])
    }

    /// Of a thread that has ended, and of one that lives in each of the three states.
    fn decoded(thread: &Thread) -> impl std::fmt::Debug + use<> {
        let now = Nanos(1_000_000);
        let ended = observed(&Ended::of(thread), &call_slots());
        let ours = Thread { flags: thread.flags & !FLAG_HELPER, ..*thread };
        let states = [0, STATE_READY, STATE_BLOCKED, ours.state].map(|state| Thread { state, ..ours });
        let alive = states.map(|state| threads(&[], [state].into_iter(), &call_slots(), now));
        let numbers = ThreadNumbers { threads: 7 };
        let all = [Ended::of(thread)];
        let helpers = helpers(&all, [].into_iter(), now, numbers, &cgroups());
        (ended, alive, helpers, so_far(&all, [ours].into_iter(), now))
    }

    /// What only the kernel side uses.
    const UNREAD: [&str; 22] = [
        "task", "call_start", "call_blocked_ns", "call_ready_ns", "group", "depth", "touched", "waker_stack",
        "waker_tid", "waker", "executed", "renamed", "unused2", "waker_number", "slot", "unseen_ns", "runtime_start", "pages_of_call", "page_read", "page_faulted",
        "random", "stands_for",
    ];

    #[test]
    fn every_part_of_an_account_reaches_its_meaning() {
        let thread: Thread = planted(host_plant_thread);
        let of = observed(&Ended::of(&thread), &call_slots());
        let times = [of.born_ns, of.ended_ns, of.user_ns, of.runqueue_ns, of.blocked_ns, of.scheduler_cpu_ns];
        assert_eq!(times, [221, 222, 203, 215, 216, 224].map(Nanos));
        assert_eq!([of.number, of.parent, of.pid, of.tid], [209, 225, 226, 227]);
        assert_eq!([of.waits, of.preemptions], [217, 218]);
        let more =
            ThreadSoFar { calls: 230, pid_here: NonZero::new(231), untimed_ns: Nanos(234), stood_ns: Nanos(235) };
        assert_eq!(so_far(&[], [thread].into_iter(), Nanos(1_000)), HashMap::from([(209, more)]));
        // What it has run since its last transition, if it is running.
        let untimed = Thread { untimed: 1, state: 0, call: CALL_NONE, flags: 0, ..thread };
        let runs = ThreadSoFar { untimed_ns: Nanos(234 + 1_000 - 202), ..more };
        assert_eq!(so_far(&[], [untimed].into_iter(), Nanos(1_000)), HashMap::from([(209, runs)]));
        let (closed, _) = threads(&[], [untimed].into_iter(), &call_slots(), Nanos(1_000));
        assert_eq!(closed[0].user_ns, Nanos(203));
        assert_eq!((of.comm.as_str(), of.kernel_ns["read"]), ("planted", Nanos(229)));
        let helper = helpers(
            &[Ended::of(&thread)],
            [].into_iter(),
            Nanos(1),
            ThreadNumbers { threads: 7 },
            &cgroups(),
        );
        let helper = &helper[0];
        assert_eq!([helper.number, helper.pid, helper.tid], [209, 226, 227]);
        assert_eq!([helper.adopted_ns, helper.ended_ns], [Nanos(221), Nanos(222)]);
        assert!(helper.kernel_thread);
        assert_eq!(helper.cgroup.as_deref(), Some("/planted"));
        let ours = [0, FLAG_HELPER].map(|flags| own_cgroups(&[], [Thread { flags, ..thread }].into_iter(), &cgroups()));
        assert_eq!(ours, [vec!["/planted".to_owned()], Vec::new()]);
        assert!(!helper.server);
        assert_eq!(helper.parent, Some(225));
        let blocked = Thread { state: STATE_BLOCKED, flags: 0, ..thread };
        let (closed, waits) = threads(&[], [blocked].into_iter(), &call_slots(), Nanos(1_000));
        assert_eq!((waits[0].stack, waits[0].ns), (StackId(211), Nanos(210 - 202)));
        assert_eq!(waits[0].syscall.as_deref(), Some("write"));
        let times = [closed[0].blocked_ns, closed[0].runqueue_ns];
        assert_eq!(times, [216 + 210 - 202, 215 + 1_000 - 210].map(Nanos), "it is woken, and has no CPU");
        let at_once = Thread { wake_ns: 202, ..blocked };
        let (closed, waits) = threads(&[], [at_once].into_iter(), &call_slots(), Nanos(1_000));
        assert_eq!([waits[0].ns, closed[0].runqueue_ns], [0, 215 + 1_000 - 202].map(Nanos), "a signal has woken it");
        let asleep = Thread { wake_ns: 201, ..blocked };
        let (closed, waits) = threads(&[], [asleep].into_iter(), &call_slots(), Nanos(1_000));
        assert_eq!([waits[0].ns, closed[0].runqueue_ns], [1_000 - 202, 215].map(Nanos), "nobody has woken it since");
        every_field_counts("thread", thread, &UNREAD, decoded);
    }

    #[test]
    fn every_part_of_a_program_reaches_its_meaning() {
        let record: ProgramRecord = planted(host_plant_program);
        let decoded = |record: &ProgramRecord| program(&Exec::of(record));
        let one = decoded(&record);
        assert_eq!((one.thread, one.pid, one.at_ns), (302, 303, Nanos(305)));
        assert_eq!((one.file.as_str(), one.args, one.args_truncated), ("/bin/file", vec!["ab".to_owned(), "c".to_owned()], false));
        every_field_counts("program_record", record, &["kind"], decoded);
    }

    #[test]
    fn every_part_of_an_exit_reaches_its_meaning() {
        let record: ExitRecord = planted(host_plant_exit);
        assert_eq!(exits(&[record]), HashMap::from([(311, Exit::Code(3))]));
        every_field_counts("exit_record", record, &["kind"], |record| exits(&[*record]));
    }
}
