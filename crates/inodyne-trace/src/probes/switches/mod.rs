//! Leaving a CPU and coming back to one: reads the table of waits, the timeline, and the pieces of work.

mod arrived;
mod contract;

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use inodyne_model::Nanos;
use inodyne_model::loss::Loss;
use inodyne_model::observed::{Timeline, Wait, Waker, Work};
use inodyne_model::snapshot::Snapshot;
use inodyne_model::stack::{Stack, StackId};
use inodyne_model::trace::Trace;
use libbpf_rs::RingBufferBuilder;

use crate::call_slots::CallSlots;
use crate::contract::{CALL_SLOTS, WAKER_INTERRUPT, WAKER_KTHREAD, WAKER_PROCESS, WAKER_TRACED};
use crate::map::{pairs, pairs_and_remove};
use crate::names;
use crate::probe::{Point, Probe, Program, Seen};
use crate::options::Options;
use crate::skeleton::{InodyneMaps, OpenInodyneSkel};
use crate::thread_numbers::ThreadNumbers;
use arrived::Arrived;
use contract::{WaitKey, WaitSum};

/// Functions that run with somebody else as the current task: a waker below one of these is an interrupt.
const INTERRUPTS: [&str; 6] = [
    "asm_sysvec_",
    "asm_common_interrupt",
    "asm_exc_nmi",
    "irq_exit_rcu",
    // arch/arm64/kernel/entry-common.c
    "el0_interrupt",
    "el1_interrupt",
];

/// What was put off until now, and runs with whoever is the current task.
const PUT_OFF: &str = "handle_softirqs";

/// Of what was put off, a packet to this machine itself arrives on top of the call that sends it (net/core/dev.c).
const SENT_HERE: [&str; 2] = ["process_backlog", "__local_bh_enable_ip"];

/// The probe of switches.
#[derive(Default)]
pub struct Own {
    arrived: Rc<RefCell<Arrived>>,
    /// Of a live view: stacks that show an interrupt.
    interrupts: HashSet<StackId>,
}

impl Probe for Own {
    fn feature(&self) -> &'static str {
        "time off the CPU"
    }

    fn without(&self) -> &'static str {
        "it is not seen who waits, and for what"
    }

    fn is_of_live_view(&self) -> bool {
        true
    }

    fn programs(&self) -> &'static [Program] {
        &[
            Program { name: "switches_switch", point: Point::Tracepoint("sched_switch") },
            Program { name: "switches_waking", point: Point::Tracepoint("sched_waking") },
        ]
    }

    fn configure(&self, object: &mut OpenInodyneSkel<'_>, options: &Options, _cpus: usize) -> libbpf_rs::Result<()> {
        object.maps.last_sent.set_max_entries(options.max_threads)?;
        object.maps.timeline.set_max_entries(options.timeline_bytes)
    }

    fn open<'maps>(
        &mut self,
        maps: &'maps InodyneMaps<'static>,
        options: &Options,
        rings: &mut RingBufferBuilder<'maps, 'static>,
    ) -> libbpf_rs::Result<()> {
        let (arrived, max_intervals) = (Rc::clone(&self.arrived), options.max_intervals);
        rings.add(&maps.timeline, move |bytes| {
            arrived.borrow_mut().take(bytes, max_intervals);
            0
        })?;
        Ok(())
    }

    fn switches_so_far(&self) -> u64 {
        let arrived = self.arrived.borrow();
        arrived.intervals.len() as u64 + arrived.dropped_intervals
    }

    fn read(&mut self, seen: &Seen<'_>, result: &mut Trace) -> libbpf_rs::Result<()> {
        let arrived = self.arrived.take();
        result.lost.add(Loss::Intervals, arrived.dropped_intervals);
        result.lost.add(Loss::Work, arrived.dropped_work);
        let observed = &mut result.observed;
        // Beside those that had not ended.
        observed.waits.extend(waits(pairs(&seen.maps.waits)?));
        find_interrupts(&mut observed.waits, &interrupt_stacks(&observed.stacks));
        observed.waits.sort_by_key(|wait| (wait.thread, Reverse(wait.ns), wait.stack, wait.waker_stack));
        (observed.timeline, observed.work) =
            timeline(&arrived, observed.started_ns, &observed.stacks, &seen.call_slots, seen.numbers);
        Ok(())
    }

    /// A thread that has ended waits no more, so what is told of it here need not be kept.
    fn read_so_far(&mut self, seen: &Seen<'_>, snapshot: &mut Snapshot) -> libbpf_rs::Result<()> {
        let observed = &mut snapshot.observed;
        self.interrupts.extend(interrupt_stacks(&observed.stacks));
        let ended: HashSet<u32> =
            observed.threads.iter().filter(|thread| !thread.alive).map(|thread| thread.number).collect();
        let is_over = |key: &WaitKey| ended.contains(&key.thread);
        observed.waits.extend(waits(pairs_and_remove(&seen.maps.waits, is_over)?));
        find_interrupts(&mut observed.waits, &self.interrupts);
        Ok(())
    }
}

/// The waits as the kernel side summed them; wakers are not told from interrupts yet.
fn waits(pairs: Vec<(WaitKey, WaitSum)>) -> Vec<Wait> {
    let wait = |(key, sum): (WaitKey, WaitSum)| Wait {
        thread: key.thread,
        syscall: names::call(key.call),
        stack: StackId(key.stack),
        waker: waker(key.waker),
        waker_stack: StackId(key.waker_stack),
        ns: Nanos(sum.ns),
        count: sum.count,
        max_ns: Nanos(sum.max_ns),
        began_before: key.began_before != 0,
    };
    pairs.into_iter().map(wait).collect()
}

/// A waker whose stack shows an interrupt was only there by chance.
fn find_interrupts(waits: &mut [Wait], interrupts: &HashSet<StackId>) {
    for wait in waits.iter_mut().filter(|wait| interrupts.contains(&wait.waker_stack)) {
        wait.waker = Waker::Interrupt;
    }
}

/// The intervals and the pieces of work as columns.
fn timeline(
    arrived: &Arrived,
    started: Nanos,
    stacks: &[Stack],
    call_slots: &CallSlots,
    numbers: ThreadNumbers,
) -> (Timeline, Work) {
    let interrupts = interrupt_stacks(stacks);
    let mut calls = Index::default();
    let mut stack_ids = Index::default();
    let mut timeline = Timeline::default();
    for interval in &arrived.intervals {
        timeline.thread.push(numbers.of(interval.thread));
        timeline.out_ns.push(interval.out.saturating_sub(started.0));
        timeline.blocked_ns.push(interval.wake.saturating_sub(interval.out));
        timeline.ready_ns.push(interval.r#in.saturating_sub(interval.wake));
        timeline.call.push(calls.of(names::call(interval.call).unwrap_or_default()));
        timeline.stack.push(stack_ids.of(StackId(interval.stack)));
        let waker_stack = StackId(interval.waker_stack);
        let interrupt = interrupts.contains(&waker_stack);
        timeline.waker.push(if interrupt { Waker::Interrupt } else { waker(interval.waker) });
        timeline.waker_tid.push(interval.waker_tid);
        timeline.waker_thread.push(numbers.of(interval.waker_number));
        timeline.waker_stack.push(stack_ids.of(waker_stack));
    }
    let mut work = Work::default();
    for piece in &arrived.work {
        work.thread.push(numbers.of(piece.thread));
        work.at_ns.push(piece.at.saturating_sub(started.0));
        work.parts.push(piece.count);
    }
    for part in &arrived.work_parts {
        let outside = part.call_slot as usize == CALL_SLOTS;
        work.call.push(calls.of(if outside { String::new() } else { call_slots.name(part.call_slot) }));
        work.ns.push(part.ns);
    }
    timeline.calls = calls.values;
    timeline.stacks = stack_ids.values;
    (timeline, work)
}

fn waker(kind: u8) -> Waker {
    match kind {
        WAKER_TRACED => Waker::Traced,
        WAKER_PROCESS => Waker::OtherProcess,
        WAKER_KTHREAD => Waker::KernelThread,
        WAKER_INTERRUPT => Waker::Interrupt,
        _ => Waker::Unknown,
    }
}

fn interrupt_stacks(stacks: &[Stack]) -> HashSet<StackId> {
    stacks.iter().filter(|stack| shows_interrupt(stack)).map(|stack| stack.id).collect()
}

fn shows_interrupt(stack: &Stack) -> bool {
    let has = |prefix: &str| stack.symbols().any(|name| name.starts_with(prefix));
    INTERRUPTS.iter().any(|prefix| has(prefix)) || (has(PUT_OFF) && !SENT_HERE.iter().all(|prefix| has(prefix)))
}

/// Small numbers for values, in the order of their first use.
struct Index<T> {
    numbers: HashMap<T, u32>,
    values: Vec<T>,
}

impl<T> Default for Index<T> {
    fn default() -> Index<T> {
        Index { numbers: HashMap::new(), values: Vec::new() }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Index<T> {
    fn of(&mut self, value: T) -> u32 {
        if let Some(number) = self.numbers.get(&value) {
            return *number;
        }
        let number = self.values.len() as u32;
        self.values.push(value.clone());
        self.numbers.insert(value, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::planted::{every_field_counts, planted};
    use contract::{IntervalRecord, WorkPart, WorkRecord};

    unsafe extern "C" {
        fn host_plant_wait_key(to: *mut WaitKey);
        fn host_plant_wait_sum(to: *mut WaitSum);
        fn host_plant_interval(to: *mut IntervalRecord);
        fn host_plant_work(to: *mut WorkRecord);
    }

    /// The columns that one record makes.
    fn columns(arrived: &Arrived) -> (Timeline, Work) {
        let call_slots = CallSlots::of(&[(1, 0, 6)]);
        timeline(arrived, Nanos(1_000), &[], &call_slots, ThreadNumbers { threads: 7 })
    }

    fn of_interval(interval: &IntervalRecord) -> (Timeline, Work) {
        columns(&Arrived { intervals: vec![*interval], ..Arrived::default() })
    }

    fn of_work(record: &WorkRecord) -> (Timeline, Work) {
        let mut arrived = Arrived::default();
        let head = [contract::TIMELINE_WORK, record.thread].map(u32::to_ne_bytes).concat();
        let tail = [record.count, record.unused].map(u32::to_ne_bytes).concat();
        let part = |part: &WorkPart| {
            [part.call_slot.to_ne_bytes(), part.unused.to_ne_bytes()].into_iter().flatten().chain(part.ns.to_ne_bytes())
        };
        let parts: Vec<u8> = record.part.iter().flat_map(part).collect();
        arrived.take(&[head, record.at.to_ne_bytes().to_vec(), tail, parts].concat(), 1);
        columns(&arrived)
    }

    #[test]
    fn a_packet_that_arrives_while_it_is_sent_is_no_interrupt() {
        let stack = |symbols: &str| inodyne_model::sample::stack(1, symbols);
        let arrives = "sock_def_readable tcp_rcv_established tcp_v4_rcv __netif_receive_skb_one_core process_backlog \
                       net_rx_action handle_softirqs do_softirq.part.0 __local_bh_enable_ip __dev_queue_xmit";
        assert!(!shows_interrupt(&stack(&format!("{arrives} tcp_sendmsg __sys_sendto do_syscall_64"))));
        assert!(shows_interrupt(&stack(&format!("{arrives} asm_sysvec_apic_timer_interrupt"))));
        assert!(shows_interrupt(&stack("hrtimer_wakeup handle_softirqs do_softirq.part.0 __local_bh_enable_ip ksys_write")));
        assert!(!shows_interrupt(&stack("unix_stream_sendmsg __sys_sendto do_syscall_64")));
    }

    #[test]
    fn every_part_of_a_wait_reaches_its_meaning() {
        let (key, sum): (WaitKey, WaitSum) = (planted(host_plant_wait_key), planted(host_plant_wait_sum));
        let expected = Wait {
            thread: 401,
            syscall: Some("write".to_owned()),
            stack: StackId(403),
            waker: Waker::KernelThread,
            waker_stack: StackId(404),
            ns: Nanos(405),
            count: 406,
            max_ns: Nanos(407),
            began_before: true,
        };
        assert_eq!(waits(vec![(key, sum)]), [expected]);
        every_field_counts("wait_key", key, &[], |key| waits(vec![(*key, sum)]));
        every_field_counts("wait_sum", sum, &[], |sum| waits(vec![(key, *sum)]));
    }

    #[test]
    fn every_part_of_an_interval_reaches_its_meaning() {
        let interval: IntervalRecord = planted(host_plant_interval);
        let (timeline, _) = of_interval(&interval);
        assert_eq!((timeline.thread, timeline.waker_tid, timeline.waker_thread), (vec![501], vec![502], vec![503]));
        assert_eq!((timeline.out_ns, timeline.blocked_ns, timeline.ready_ns), (vec![504], vec![10], vec![1]));
        assert_eq!((timeline.stacks, timeline.stack, timeline.waker_stack), (vec![StackId(507), StackId(508)], vec![0], vec![1]));
        assert_eq!((timeline.calls, timeline.waker), (vec!["write".to_owned()], vec![Waker::OtherProcess]));
        every_field_counts("interval_record", interval, &["kind", "unused"], of_interval);
    }

    #[test]
    fn every_part_of_a_piece_reaches_its_meaning() {
        let record: WorkRecord = planted(host_plant_work);
        let (timeline, work) = of_work(&record);
        assert_eq!((work.thread, work.at_ns, work.parts), (vec![601], vec![602], vec![3]));
        assert_eq!((timeline.calls, work.call), (vec!["read".to_owned(), String::new()], vec![0, 1, 0]));
        assert_eq!(work.ns, [604, 605, 606]);
        every_field_counts("work_record", record, &["kind", "unused"], of_work);
        every_field_counts("work_part", record.part[0], &["unused"], |part| {
            let mut changed = record;
            changed.part[0] = *part;
            of_work(&changed)
        });
    }
}
