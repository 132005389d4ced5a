//! What comes through the ring buffer of the timeline while the command runs: intervals off the CPU and pieces of work.

use std::mem::offset_of;

use super::contract::{IntervalRecord, TIMELINE_INTERVAL, TIMELINE_WORK, WorkPart, WorkRecord};
use crate::map::record;

/// A piece of work without its parts.
#[derive(Debug, Clone, Copy)]
pub struct Piece {
    /// Whose.
    pub thread: u32,
    /// When it ended.
    pub at: u64,
    /// How many of the parts are its.
    pub count: u32,
}

/// What has arrived so far.
#[derive(Default)]
pub struct Arrived {
    /// Intervals off the CPU.
    pub intervals: Vec<IntervalRecord>,
    /// Intervals that came but were beyond the bound.
    pub dropped_intervals: u64,
    /// Pieces of work.
    pub work: Vec<Piece>,
    /// The parts of all of them one after the other.
    pub work_parts: Vec<WorkPart>,
    /// Pieces that came but were beyond the bound.
    pub dropped_work: u64,
}

impl Arrived {
    /// Takes a record, where it keeps at most `max_intervals` intervals and twice as many pieces.
    pub fn take(&mut self, bytes: &[u8], max_intervals: usize) {
        match bytes.first_chunk().map(|kind| u32::from_ne_bytes(*kind)) {
            Some(TIMELINE_INTERVAL) if self.intervals.len() < max_intervals => self.intervals.push(record(bytes)),
            Some(TIMELINE_INTERVAL) => self.dropped_intervals += 1,
            // Two pieces for each interval: one ends where a thread leaves its CPU, one where it wakes another.
            Some(TIMELINE_WORK) if self.work.len() / 2 < max_intervals => self.add_work(bytes),
            Some(TIMELINE_WORK) => self.dropped_work += 1,
            _ => unreachable!("the programs send two kinds of records"),
        }
    }

    /// A piece is sent with as many parts as it has.
    fn add_work(&mut self, bytes: &[u8]) {
        let field = |at: usize| u32::from_ne_bytes(*bytes[at..].first_chunk().expect("a piece has a head"));
        let at = bytes[offset_of!(WorkRecord, at)..].first_chunk().expect("a piece has a head");
        let piece = Piece {
            thread: field(offset_of!(WorkRecord, thread)),
            at: u64::from_ne_bytes(*at),
            count: field(offset_of!(WorkRecord, count)),
        };
        let parts = bytes[offset_of!(WorkRecord, part)..].chunks_exact(size_of::<WorkPart>());
        self.work_parts.extend(parts.take(piece.count as usize).map(record::<WorkPart>));
        self.work.push(piece);
    }
}
