//! Leaving a CPU and coming back to one: reads the table of waits, the timeline, and the pieces of work.

mod arrived;
mod contract;

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::rc::Rc;

use inodyne_launch::monotonic_ns;
use inodyne_model::Nanos;
use inodyne_model::observed::{Wait, Waker};
use inodyne_model::snapshot::Snapshot;
use inodyne_model::stack::{Stack, StackId};
use inodyne_model::trace::Trace;
use libbpf_rs::{MapCore, MapFlags};

use crate::contract::{WAKER_INTERRUPT, WAKER_KTHREAD, WAKER_PROCESS, WAKER_TRACED, global};
use crate::map::{TakenOut, pairs_and_remove};
use crate::names;
use crate::probe::{Probe, Program, Seen};
use crate::options::Options;
use crate::rings::{Rings, Wanted, bytes_for, first_bytes};
use crate::skeleton::{InodyneMaps, OpenInodyneSkel};
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

/// Deferred work, which runs with whatever task is current. The last two are one function, as kernels before 6.10 call it.
const PUT_OFF: [&str; 3] = ["handle_softirqs", "__do_softirq", "__softirqentry_text_start"];

/// Among deferred work, a packet to this machine itself arrives on top of the call that sends it (net/core/dev.c).
const SENT_HERE: [&str; 2] = ["process_backlog", "__local_bh_enable_ip"];

/// How long before the timeline ends the programs are told so. None of them takes that long from reading the clock to its record.
const AHEAD_NS: u64 = 20_000_000;

/// Initial size of the timeline's ring buffer, per CPU: what a busy one sends in some 5 ms. The reader is woken before it is full.
const BYTES_OF_CPU: u32 = 256 << 10;

/// It begins with this part of what it may grow to if that is more: whoever allows much has events that arrive faster than a reader that waits
/// for a CPU takes them.
const PART_OF_MOST: u32 = 32;

/// [`BYTES_OF_CPU`] for processes that are joined: meanwhile nobody reads it.
const BYTES_OF_CPU_IF_JOINED: u32 = 1 << 20;

/// Room in the timeline's ring buffer for each thread, if that is more: where thousands take turns, the reader may have to wait for one of them,
/// for a lock or a CPU, until all others have had theirs. No more than the ring buffer may grow to.
const BYTES_OF_THREAD: u64 = 4 << 10;

/// The probe of switches.
#[derive(Default)]
pub struct Own {
    arrived: Rc<RefCell<Arrived>>,
    max_intervals: usize,
    has_timeline: bool,
    max_threads: u32,
    room: Wanted,
    /// Until when the timeline is complete, on the monotonic clock, once it has no more room.
    until: Cell<Option<Nanos>>,
    /// For a live view: stacks that show an interrupt.
    interrupts: HashSet<StackId>,
    /// For a live view: how many rows the table of waits was left with.
    rows: usize,
    taken_out: TakenOut<WaitKey, WaitSum>,
}

const PROGRAMS: &[Program] = &[
    Program::at("switches_switch", "sched_switch"),
    Program::at("switches_waking", "sched_waking"),
];

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
        PROGRAMS
    }

    fn configure(&self, object: &mut OpenInodyneSkel<'_>, options: &Options, cpus: usize) -> libbpf_rs::Result<()> {
        object.maps.waits.set_max_entries(options.max_rows)?;
        let of_cpu = if options.joins { BYTES_OF_CPU_IF_JOINED } else { BYTES_OF_CPU };
        let first = first_bytes(of_cpu, cpus, options.timeline_bytes).max(options.timeline_bytes / PART_OF_MOST);
        object.maps.timeline.set_max_entries(first)
    }

    fn open(
        &mut self,
        maps: &InodyneMaps<'static>,
        options: &Options,
        rings: &mut Rings,
    ) -> libbpf_rs::Result<()> {
        self.max_intervals = options.max_intervals;
        (self.has_timeline, self.max_threads) = (options.timeline, options.max_threads);
        let arrived = Rc::clone(&self.arrived);
        self.room = rings.add(&maps.timeline, &maps.timeline_larger, options.timeline_bytes, move |bytes| {
            arrived.borrow_mut().take(bytes);
        })?;
        Ok(())
    }

    /// Once there is no more room, has the programs send nothing that begins later.
    fn look(&self, maps: &InodyneMaps<'static>) -> libbpf_rs::Result<()> {
        if self.until.get().is_some() {
            return Ok(());
        }
        if self.has_timeline {
            let variables = maps.bss_data.as_ref().expect("the object has global variables");
            let threads = global(&variables.shared).slots_used.min(self.max_threads);
            self.room.set(bytes_for(threads, BYTES_OF_THREAD));
        }
        if !self.arrived.borrow().is_full(self.max_intervals) {
            return Ok(());
        }
        let until = monotonic_ns() + Nanos(AHEAD_NS);
        maps.timeline_until.update(&0u32.to_ne_bytes(), &until.0.to_ne_bytes(), MapFlags::ANY)?;
        self.until.set(Some(until));
        Ok(())
    }

    fn make_room_in_tables(
        &self,
        maps: &InodyneMaps<'static>,
        living: &dyn Fn() -> HashSet<u32>,
    ) -> libbpf_rs::Result<()> {
        self.taken_out.take(&maps.waits, |key| key.thread, living)
    }

    fn switches_so_far(&self) -> u64 {
        self.arrived.borrow().intervals() as u64
    }

    fn has_no_more_room(&self) -> bool {
        self.until.get().is_some()
    }

    fn used_so_far(&self, maps: &InodyneMaps<'static>) -> Option<(usize, u32)> {
        Some((self.rows, maps.waits.max_entries()))
    }

    fn read(&mut self, seen: &Seen<'_>, result: &mut Trace) -> libbpf_rs::Result<()> {
        let arrived = self.arrived.take();
        let observed = &mut result.observed;
        // In addition to those that had not ended.
        observed.waits.extend(waits(self.taken_out.and_those_in(&seen.maps.waits)?));
        find_interrupts(&mut observed.waits, &interrupt_stacks(&observed.stacks));
        observed.waits.sort_by_key(|wait| (wait.thread, Reverse(wait.ns), wait.stack, wait.waker_stack));
        let interrupts = interrupt_stacks(&observed.stacks);
        (observed.timeline, observed.work) =
            arrived.finish(observed.started_ns, &interrupts, &seen.call_slots, seen.numbers);
        let until = self.until.get().filter(|until| *until < seen.stopped_ns);
        observed.timeline.until_ns = until.map(|until| until.saturating_sub(observed.started_ns).0);
        Ok(())
    }

    /// A thread that has ended waits no more, so what is reported about it here need not be kept.
    fn read_so_far(&mut self, seen: &Seen<'_>, snapshot: &mut Snapshot) -> libbpf_rs::Result<()> {
        let observed = &mut snapshot.observed;
        self.interrupts.extend(interrupt_stacks(&observed.stacks));
        let ended: HashSet<u32> =
            observed.threads.iter().filter(|thread| !thread.alive).map(|thread| thread.number).collect();
        let is_over = |key: &WaitKey| ended.contains(&key.thread);
        let pairs: Vec<(WaitKey, WaitSum)> = pairs_and_remove(&seen.maps.waits, is_over)?;
        self.rows = pairs.iter().filter(|(key, _)| !is_over(key)).count();
        observed.waits.extend(waits(pairs));
        find_interrupts(&mut observed.waits, &self.interrupts);
        Ok(())
    }
}

/// The waits as the kernel side summed them; wakers are not yet told apart from interrupts.
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
    let is_put_off = PUT_OFF.iter().any(|prefix| has(prefix));
    INTERRUPTS.iter().any(|prefix| has(prefix)) || (is_put_off && !SENT_HERE.iter().all(|prefix| has(prefix)))
}

#[cfg(test)]
mod tests {
    use inodyne_model::observed::{Timeline, Work};

    use super::*;
    use crate::call_slots::CallSlots;
    use crate::thread_numbers::ThreadNumbers;
    use crate::contract::planted::{every_field_counts, planted};
    use contract::{IntervalRecord, WorkPart, WorkRecord};

    unsafe extern "C" {
        fn host_plant_wait_key(to: *mut WaitKey);
        fn host_plant_wait_sum(to: *mut WaitSum);
        fn host_plant_interval(to: *mut IntervalRecord);
        fn host_plant_work(to: *mut WorkRecord);
    }

    /// The columns that one record makes.
    fn columns(arrived: Arrived) -> (Timeline, Work) {
        let call_slots = CallSlots::of(&[(1, 0, 6)]);
        arrived.finish(Nanos(1_000), &HashSet::new(), &call_slots, ThreadNumbers { threads: 7 })
    }

    fn of_interval(interval: &IntervalRecord) -> (Timeline, Work) {
        let mut arrived = Arrived::default();
        arrived.add_interval(interval);
        columns(arrived)
    }

    fn of_work(record: &WorkRecord) -> (Timeline, Work) {
        let mut arrived = Arrived::default();
        let head = [contract::TIMELINE_WORK, record.thread].map(u32::to_ne_bytes).concat();
        let tail = [record.count, record.unused].map(u32::to_ne_bytes).concat();
        let part = |part: &WorkPart| {
            [part.call_slot.to_ne_bytes(), part.unused.to_ne_bytes()].into_iter().flatten().chain(part.ns.to_ne_bytes())
        };
        let parts: Vec<u8> = record.part.iter().flat_map(part).collect();
        arrived.take(&[head, record.at.to_ne_bytes().to_vec(), tail, parts].concat());
        columns(arrived)
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
        let of_5_15 = "hrtimer_wakeup __do_softirq do_softirq __local_bh_enable_ip tcp_sendmsg __sys_sendto";
        assert!(shows_interrupt(&stack(of_5_15)));
        assert!(shows_interrupt(&stack("bio_endio __softirqentry_text_start run_ksoftirqd smpboot_thread_fn kthread")));
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
