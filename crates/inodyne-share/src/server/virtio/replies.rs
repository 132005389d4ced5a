//! Requests that are not answered, and where the answers go: into the guest's memory, after the request.

use std::{
    collections::{HashMap, hash_map::Entry},
    io::{Read, Write},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use rustix::io::Errno;
use vhost_user_backend::{VringMutex, VringT};
use virtio_queue::{DescriptorChain, Reader, Writer};
use vm_memory::{GuestMemoryLoadGuard, GuestMemoryMmap};
use zerocopy::{FromBytes, IntoBytes};

use super::{MOST_PLACES, Memory, QUEUES};
use crate::{
    coherence,
    fuse::abi::OutHeader,
    protocol::frame::{self, Kind},
    transport::FrameSink,
};

/// A queue of requests.
pub(super) type Queue = VringMutex<Memory>;

/// No more requests than this can be unanswered if a guest keeps to the rules: each takes a place in its queue until it is answered.
const MOST: usize = QUEUES * MOST_PLACES;

/// A request's place in the guest's memory: what is asked, followed by room for the answer.
type Chain = DescriptorChain<GuestMemoryLoadGuard<GuestMemoryMmap>>;

/// A request that was taken from a queue.
pub(super) struct Taken {
    queue: Queue,
    chain: Chain,
}

impl Taken {
    /// The next one of a queue.
    pub fn next(queue: &Queue, memory: &GuestMemoryLoadGuard<GuestMemoryMmap>) -> Option<Self> {
        use virtio_queue::QueueT;
        let chain = queue.get_mut().get_queue_mut().pop_descriptor_chain(memory.clone())?;
        Some(Self { queue: queue.clone(), chain })
    }

    /// Its bytes, which replace what is in `message`. If it is longer than any request, it is cut off there: then it is not as long as it says.
    pub fn read(&self, message: &mut Vec<u8>) -> Option<()> {
        message.clear();
        let reader: Reader<'_> = self.chain.clone().reader(self.chain.memory()).ok()?;
        reader.take(frame::MOST as u64).read_to_end(message).ok().map(drop)
    }

    /// Gives it back with an answer. An answer for which there is no room becomes an error.
    fn give_back(&self, answer: &[u8]) {
        let length = self.write(answer).or_else(|| {
            let (header, _) = OutHeader::read_from_prefix(answer).ok()?;
            let error = -Errno::IO.raw_os_error();
            self.write(OutHeader { len: size_of::<OutHeader>() as u32, error, ..header }.as_bytes())
        });
        let mut queue = self.queue.get_mut();
        let given = queue.add_used(self.chain.head_index(), length.unwrap_or(0) as u32);
        // If the queue is no longer a queue, nobody waits for it either.
        if given.is_ok() && queue.needs_notification().unwrap_or(true) {
            let _ = queue.signal_used_queue();
        }
    }

    fn write(&self, answer: &[u8]) -> Option<usize> {
        let mut writer: Writer<'_> = self.chain.clone().writer(self.chain.memory()).ok()?;
        writer.write_all(answer).ok().map(|()| answer.len())
    }

    /// Gives back one that has no answer.
    pub fn discard(self) {
        self.give_back(&[]);
    }
}

/// Requests that are not answered.
#[derive(Default)]
pub(super) struct Replies(Mutex<Waiting>, Condvar);

#[derive(Default)]
struct Waiting {
    /// By number.
    requests: HashMap<u64, Taken>,
    /// How many answers are just being written.
    being_given: usize,
}

impl Replies {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request of that number is to be answered. A guest that uses a number twice gets the later one back, and so does one that asks for more
    /// than its queues have places.
    pub fn expect(&self, unique: u64, request: Taken) -> Result<(), Taken> {
        let requests = &mut self.waiting().requests;
        let has_room = requests.len() < MOST;
        match requests.entry(unique) {
            Entry::Vacant(free) if has_room => {
                free.insert(request);
                Ok(())
            }
            _ => Err(request),
        }
    }

    /// Waits until all are answered. What an answer waits for has a limit; should one come later all the same, it goes nowhere.
    pub fn finish(&self) {
        let waits = |waiting: &mut Waiting| !waiting.requests.is_empty() || waiting.being_given > 0;
        let left = self.1.wait_timeout_while(self.waiting(), 2 * coherence::TIMEOUT, waits);
        left.unwrap_or_else(PoisonError::into_inner).0.requests.clear();
    }
}

impl FrameSink for Replies {
    fn send(&self, bytes: &[u8]) {
        let Some((header, message)) = bytes.split_first_chunk() else { return };
        let answer = match frame::parse(*header, frame::MOST) {
            Ok((Kind::Reply, _)) => message,
            // What follows is for a mounter that is a program of ours.
            Ok((Kind::LastReply, _)) => &message[..message.len().saturating_sub(frame::LAST)],
            Ok((Kind::ChangedReply, _)) => &message[..message.len().saturating_sub(frame::CHANGED)],
            _ => return,
        };
        let Ok((OutHeader { unique, .. }, _)) = OutHeader::read_from_prefix(answer) else { return };
        let mut waiting = self.waiting();
        if let Some(request) = waiting.requests.remove(&unique) {
            waiting.being_given += 1;
            drop(waiting);
            request.give_back(answer);
            self.waiting().being_given -= 1;
            self.1.notify_all();
        }
    }

    /// The machine's connection is not the guest's.
    fn close(&self) {}
}
