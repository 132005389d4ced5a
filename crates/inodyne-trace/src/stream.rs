//! What comes through the ring buffers while the command runs: ended threads, executed programs, off-CPU intervals, pieces
//! of work.

use std::cell::RefCell;
use std::rc::Rc;

use libbpf_rs::{MapCore, RingBuffer, RingBufferBuilder};

use crate::intf::{
    FLAG_HELPER, IntervalRecord, ProgramRecord, RECORD_PROGRAM, RECORD_THREAD, TIMELINE_INTERVAL, TIMELINE_WORK,
    ThreadRecord, WorkHead, WorkPart,
};

/// What has arrived so far.
#[derive(Default)]
pub struct Arrived {
    pub threads: Vec<ThreadRecord>,
    pub programs: Vec<ProgramRecord>,
    pub intervals: Vec<IntervalRecord>,
    /// Intervals that came but were beyond the bound.
    pub dropped_intervals: u64,
    /// Pieces of work, with the parts of all of them one after the other.
    pub work: Vec<WorkHead>,
    pub work_parts: Vec<WorkPart>,
    /// Pieces that came but were beyond the bound.
    pub dropped_work: u64,
}

/// Both ring buffers and what has arrived through them.
pub struct Stream {
    rings: RingBuffer<'static>,
    arrived: Rc<RefCell<Arrived>>,
}

impl Stream {
    /// Reads from the maps `records` and `timeline`, keeping at most `max_intervals` intervals and twice as many pieces.
    pub fn new(
        records: &dyn MapCore,
        timeline: &dyn MapCore,
        max_intervals: usize,
    ) -> Result<Stream, libbpf_rs::Error> {
        let arrived = Rc::new(RefCell::new(Arrived::default()));
        let (lives, intervals) = (Rc::clone(&arrived), Rc::clone(&arrived));
        let mut builder = RingBufferBuilder::new();
        builder.add(records, move |bytes| {
            let mut arrived = lives.borrow_mut();
            match bytes.first_chunk().map(|kind| u32::from_ne_bytes(*kind)) {
                Some(RECORD_THREAD) => arrived.threads.push(read(bytes)),
                Some(RECORD_PROGRAM) => arrived.programs.push(read(bytes)),
                _ => unreachable!("the programs send two kinds of records"),
            }
            0
        })?;
        builder.add(timeline, move |bytes| {
            let mut arrived = intervals.borrow_mut();
            match bytes.first_chunk().map(|kind| u32::from_ne_bytes(*kind)) {
                Some(TIMELINE_INTERVAL) if arrived.intervals.len() < max_intervals => {
                    arrived.intervals.push(read(bytes));
                }
                Some(TIMELINE_INTERVAL) => arrived.dropped_intervals += 1,
                // Two pieces for each interval: one ends where a thread leaves its CPU, one where it wakes another.
                Some(TIMELINE_WORK) if arrived.work.len() / 2 < max_intervals => arrived.add_work(bytes),
                Some(TIMELINE_WORK) => arrived.dropped_work += 1,
                _ => unreachable!("the programs send two kinds of records"),
            }
            0
        })?;
        Ok(Stream { rings: builder.build()?, arrived })
    }

    /// Takes everything that waits in the ring buffers.
    pub fn drain(&self) {
        // The callbacks never fail, so neither does this.
        let _ = self.rings.consume();
    }

    /// How many threads of the command have ended.
    pub fn threads_ended(&self) -> usize {
        self.arrived.borrow().threads.iter().filter(|record| record.thread.flags & FLAG_HELPER == 0).count()
    }

    /// True once the thread with this number has ended.
    pub fn has_ended(&self, number: u32) -> bool {
        self.arrived.borrow().threads.iter().any(|record| record.thread.number == number)
    }

    /// Everything that arrived.
    pub fn finish(self) -> Arrived {
        self.drain();
        self.arrived.take()
    }
}

impl Arrived {
    fn add_work(&mut self, bytes: &[u8]) {
        let head: WorkHead = read(bytes);
        let parts = bytes[size_of::<WorkHead>()..].chunks_exact(size_of::<WorkPart>());
        self.work_parts.extend(parts.take(head.count as usize).map(read::<WorkPart>));
        self.work.push(head);
    }
}

/// Ring-buffer records are longer than their structure: the kernel rounds them up to eight bytes.
fn read<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> T {
    bytemuck::pod_read_unaligned(&bytes[..size_of::<T>()])
}
