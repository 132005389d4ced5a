//! The timeline, for Perfetto: for each thread when it was on a CPU, when blocked and on what, and when ready without a CPU; an arrow from
//! the thread that ended a wait to the one that waited.
//!
//! ```text
//! recorded     out        wake   in             out  in (preempted)
//!               |-blocked--|ready-|              |ready|
//! drawn   on CPU|          |      | on CPU       |     | on CPU … until the thread's end
//! ```
//!
//! The critical path is a track of its own, one slice per step, named after what took most of it. Helpers are tracks below the command's
//! threads, and so are journals with their commits. Counters say how many of the command's threads were in which state, what disks did,
//! and how much data had still to be written.
//!
//! It does not include which functions ran: samples are summed where they are taken. If it is not known when threads were off a CPU,
//! it does not say that they were on one, and has no counters for them.

mod disks;
mod journals;
mod packets;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use inodyne_model::Nanos;
use inodyne_model::observed::{ThreadNumber, Waker};
use inodyne_model::path::StepPart;
use inodyne_model::stack::{Stack, StackId};
use inodyne_model::trace::Trace;

use super::Traced;
use super::lives::{comms, lives};
use super::weighted::frame_name;
use crate::line::escaped;
use crate::report::state::State;
use crate::report::words;
use crate::timeline::{Interval, Intervals};
use crate::units::duration;
use packets::{Flow, Packets};

/// No process has the number of the path's track: Linux assigns none beyond 2²².
pub(super) const PATH: u32 = (1 << 22) + 1;
/// The numbers of tracks: these, those of processes, and those of threads by their number in the trace.
const PATH_TRACK: u64 = 1;
const COUNTERS: [(u64, &str); 3] = [(2, "threads on a CPU"), (3, "threads waiting for a CPU"), (4, "threads blocked")];
const PROCESSES: u64 = 1 << 32;
const THREADS: u64 = 1 << 33;
/// Counters have a value for each of this many parts of the time.
const COUNTED: usize = 1_000;

/// The timeline as a file of protobuf packets.
pub fn perfetto(traced: &Traced<'_>) -> Vec<u8> {
    let trace = traced.trace;
    let intervals = Intervals::new(trace);
    let stacks: HashMap<StackId, &Stack> = trace.observed.stacks.iter().map(|stack| (stack.id, stack)).collect();
    let mut packets = Packets::default();
    let mut of_thread: HashMap<ThreadNumber, Vec<(u64, Interval<'_>)>> = HashMap::new();
    for (number, interval) in (1..).zip(intervals.iter()) {
        of_thread.entry(interval.thread).or_default().push((number, interval));
    }
    let lives = lives(trace);
    let drawn: BTreeSet<ThreadNumber> = lives.iter().map(|life| life.number).collect();
    packets.track(PATH_TRACK, &format!("critical path: {}", traced.title()));
    let mut processes = BTreeSet::new();
    for life in &lives {
        let process = PROCESSES + u64::from(life.pid);
        if processes.insert(life.pid) {
            packets.process(process, life.pid, &life.comm);
        }
        packets.thread(THREADS + u64::from(life.number), process, life.pid, life.tid, &life.comm);
    }
    let knows_cpu = trace.knows_who_was_on_cpu();
    let on_cpu = |packets: &mut Packets, track, from, to, flow| {
        if knows_cpu {
            packets.slice(track, "on CPU", from, to, &[], flow);
        }
    };
    let mut counts = Counts::new(trace.wall_ns.0);
    for life in &lives {
        let track = THREADS + u64::from(life.number);
        let (mut at, mut flow) = (life.from, Flow::None);
        for (number, interval) in of_thread.get(&life.number).into_iter().flatten() {
            on_cpu(&mut packets, track, at, interval.out_ns, flow);
            let (wake, back) = (interval.wake_ns(), interval.back_ns());
            if let Some(cause) = interval.cause {
                let name = State::Blocked(cause).words();
                packets.slice(track, &name, interval.out_ns, wake, &details(interval, &stacks), Flow::None);
            }
            packets.slice(track, "waiting for a CPU", wake, back, &[("call", escaped(interval.call))], Flow::None);
            flow = Flow::None;
            // An arrow ends where the thread that waited has a CPU again.
            if knows_cpu && is_known(interval) && drawn.contains(&interval.waker_thread) {
                let waker = THREADS + u64::from(interval.waker_thread);
                packets.instant(waker, &format!("wakes {}", life.comm), wake, Flow::From(*number));
                flow = Flow::To(*number);
            }
            if life.counts {
                counts.add([(at, interval.out_ns), (wake, back), (interval.out_ns, wake)]);
            }
            at = back;
        }
        on_cpu(&mut packets, track, at, life.to, flow);
        if life.counts {
            counts.add([(at, life.to), (0, 0), (0, 0)]);
        }
    }
    critical_path(&mut packets, trace);
    if knows_cpu {
        counts.write(&mut packets);
    }
    disks::write(&mut packets, trace);
    journals::write(&mut packets, trace);
    packets.finish()
}

/// Whether it is known who ended the wait.
fn is_known(interval: &Interval<'_>) -> bool {
    interval.waker_thread != interval.thread && !matches!(interval.waker, Waker::Interrupt | Waker::Unknown)
}

fn critical_path(packets: &mut Packets, trace: &Trace) {
    let path = &trace.path;
    let row = |part: &StepPart| {
        let row = path.rows.get(part.row as usize)?;
        let (subject, what, _) = words(row.kind, row.syscall.as_deref(), row.cause);
        let via = row.via.join(" > ");
        let words = [subject, what, via].into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>();
        Some((escaped(&words.join(" ")), part.ns))
    };
    let comms = comms(trace);
    for (step, parts) in path.iter() {
        let mut parts: Vec<(String, Nanos)> = parts.iter().filter_map(row).collect();
        parts.sort_by_key(|(_, ns)| Reverse(*ns));
        let ns: u64 = parts.iter().fold(0, |sum, (_, ns)| sum.saturating_add(ns.0));
        let Some((name, _)) = parts.first().cloned() else { continue };
        // For a step with one part, its name and length say everything.
        let of: Vec<String> = parts.iter().map(|(words, ns)| format!("{words}: {}", duration(*ns))).collect();
        let of = if of.len() > 1 { of.join(", ") } else { String::new() };
        let thread = comms.get(&step.thread).map_or_else(String::new, |comm| escaped(comm));
        let to = step.from_ns.saturating_add(ns);
        packets.slice(PATH_TRACK, &name, step.from_ns, to, &[("in", thread), ("of", of)], Flow::None);
    }
}

fn details(interval: &Interval<'_>, stacks: &HashMap<StackId, &Stack>) -> [(&'static str, String); 3] {
    let names = |id| {
        let frames = stacks.get(&id).map_or(&[][..], |stack| stack.frames.as_slice());
        frames.iter().map(|frame| escaped(&frame_name(frame))).collect::<Vec<_>>().join(" < ")
    };
    [("call", escaped(interval.call)), ("woken by", interval.woken_by()), ("stack", names(interval.stack))]
}

/// How many threads were in which state, on average in each part of the time.
struct Counts {
    /// When the command ends.
    end: u64,
    /// Nanoseconds of each part.
    each: u64,
    sums: [Vec<u64>; COUNTERS.len()],
}

impl Counts {
    fn new(wall_ns: u64) -> Counts {
        let each = (wall_ns / COUNTED as u64).max(1);
        Counts { end: wall_ns, each, sums: [(); COUNTERS.len()].map(|()| vec![0; COUNTED + 1]) }
    }

    /// Adds a thread's times in the states.
    fn add(&mut self, times: [(u64, u64); COUNTERS.len()]) {
        for (sums, (from, to)) in self.sums.iter_mut().zip(times) {
            let end = self.each.saturating_mul(sums.len() as u64).min(to);
            let mut at = from;
            while at < end {
                let part = at / self.each;
                let until = (part + 1).saturating_mul(self.each).min(end);
                let sum = &mut sums[part as usize];
                *sum = sum.saturating_add(until - at);
                at = until;
            }
        }
    }

    /// Writes the counters where they change; at the end they are zero, since helpers may be drawn for longer.
    fn write(&self, packets: &mut Packets) {
        for ((track, name), sums) in COUNTERS.into_iter().zip(&self.sums) {
            packets.counter_track(track, name);
            let mut before = None;
            for (part, sum) in (0u64..).zip(sums).filter(|(part, _)| *part < COUNTED as u64) {
                if before != Some(sum) {
                    packets.counter(track, part.saturating_mul(self.each), *sum as f64 / self.each as f64);
                }
                before = Some(sum);
            }
            if before != Some(&0) {
                packets.counter(track, self.end, 0.0);
            }
        }
    }
}
