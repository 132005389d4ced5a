//! Ring buffers that are replaced by larger ones as more arrives: most commands need little space in them, and kernel memory cannot be
//! swapped out.

use std::cell::{Cell, RefCell};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use libbpf_rs::{AsRawLibbpf, MapCore, MapHandle, MapMut, MapType, RingBuffer, RingBufferBuilder, libbpf_sys};
use rustix::event::{Timespec, epoll};

use crate::map_of_maps::{Putting, map};

/// It is replaced once one part in so many of it arrives between two looks: the next look may come much later, on a busy machine.
const ENOUGH: u32 = 16;

/// How many times larger the next one is.
const GROWTH: u32 = 16;

/// What the kernel writes before each record (`BPF_RINGBUF_HDR_SZ` in include/uapi/linux/bpf.h).
const HEADER: usize = 8;

/// The initial size in bytes: what so many CPUs send until it is looked at again, and no more than it may grow to.
pub fn first_bytes(of_cpu: u32, cpus: usize, most: u32) -> u32 {
    (u64::from(of_cpu) * cpus as u64).next_power_of_two().min(u64::from(most)) as u32
}

/// A size in bytes, a power of two, with so much room for each of so many threads.
pub fn bytes_for(threads: u32, each: u64) -> u32 {
    (u64::from(threads) * each).next_power_of_two().min(1 << 30) as u32
}

/// How many bytes a ring buffer is to have room for at the next look, whatever has arrived by then.
#[derive(Debug, Clone, Default)]
pub struct Wanted(Rc<Cell<u32>>);

impl Wanted {
    /// Sets it.
    pub fn set(&self, bytes: u32) {
        self.0.set(bytes);
    }
}

/// How large a ring buffer of this size is to be after a look at which that much had arrived. Steps are large: the next one has to wait until
/// this one is over.
fn next_size(bytes: u32, arrived: u64, wanted: u32, most: u32) -> u32 {
    let is_small = arrived > u64::from(bytes / ENOUGH) || wanted > bytes;
    let larger = if is_small { bytes.saturating_mul(GROWTH) } else { bytes };
    larger.max(wanted).min(most)
}

/// What is done with a record.
type Take = Rc<RefCell<dyn FnMut(&[u8])>>;

/// A ring buffer, or the larger one that has taken its place.
struct Ring {
    reader: RingBuffer<'static>,
    /// Its size.
    bytes: u32,
    /// The largest that it may be replaced by.
    most: u32,
    /// Where programs look for a larger one (`bpf/ring.h`).
    place: MapHandle,
    take: Take,
    /// What has arrived since the last look, in bytes of the ring buffer.
    arrived: Rc<Cell<u64>>,
    wanted: Wanted,
    /// Whether a larger one was put into its place.
    has_larger: bool,
    /// The larger one that is being put into its place.
    next: Option<Next>,
}

struct Next {
    putting: Putting,
    reader: RingBuffer<'static>,
    bytes: u32,
}

/// All ring buffers.
pub struct Rings {
    rings: Vec<Ring>,
    /// Where programs say that one fills (`bpf/ring.h`). Whether data is there is not asked for: there nearly always is.
    filling: Rc<OwnedFd>,
}

impl Rings {
    /// None yet.
    ///
    /// # Errors
    /// There are no more file descriptors.
    pub fn new() -> io::Result<Rings> {
        Ok(Rings { rings: Vec::new(), filling: Rc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?) })
    }

    /// Readable once one fills faster than it is looked at, until [`Rings::consume`].
    pub fn filling(&self) -> Rc<OwnedFd> {
        Rc::clone(&self.filling)
    }

    /// Opens one that may be replaced by one of at most `most` bytes, a power of two, in this place.
    pub fn add(
        &mut self,
        first: &impl MapCore,
        place: &MapMut<'_>,
        most: u32,
        take: impl FnMut(&[u8]) + 'static,
    ) -> libbpf_rs::Result<Wanted> {
        let (take, arrived): (Take, _) = (Rc::new(RefCell::new(take)), Rc::default());
        let reader = opened(first, &take, &arrived)?;
        let wakes = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&*self.filling, first, epoll::EventData::new_u64(0), wakes).map_err(io::Error::from)?;
        let place = MapHandle::try_from(place)?;
        let wanted = Wanted::default();
        self.rings.push(Ring {
            reader,
            bytes: first.max_entries(),
            most,
            place,
            take,
            arrived,
            wanted: wanted.clone(),
            has_larger: false,
            next: None,
        });
        Ok(wanted)
    }

    /// Takes what has arrived.
    pub fn consume(&self) {
        let mut woken = [const { MaybeUninit::uninit() }; 16];
        // With EPOLLET, a wake-up that is taken here is not seen again. Nothing is lost if that fails: all of them are read now.
        let _ = epoll::wait(&*self.filling, &mut woken, Some(&Timespec::default()));
        self.rings.iter().for_each(Ring::consume);
    }

    /// Takes all that has arrived, once nothing more does.
    pub fn consume_last(&mut self) {
        for ring in &mut self.rings {
            ring.consume();
            ring.replace();
            ring.consume();
        }
    }

    /// Replaces those in which much has arrived since the last look, and those that are wanted larger, by larger ones.
    pub fn grow(&mut self) {
        for ring in &mut self.rings {
            if ring.next.as_ref().is_some_and(|next| next.putting.is_over()) {
                ring.replace();
            }
            let bytes = next_size(ring.bytes, ring.arrived.take(), ring.wanted.0.get(), ring.most);
            if bytes > ring.bytes && ring.next.is_none() {
                ring.grow_to(bytes);
            }
        }
    }

    /// Whether any has been replaced.
    pub fn have_grown(&self) -> bool {
        self.rings.iter().any(|ring| ring.has_larger)
    }

    /// How large they are, in bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> Vec<u32> {
        self.rings.iter().map(|ring| ring.bytes).collect()
    }
}

impl Ring {
    /// On a busy machine it may take seconds until no program that has not seen the larger one can be running; others fill it at once.
    /// So it is read meanwhile: what a thread has sent to it comes after all that the thread had sent to this one before, so only as much of it is
    /// taken as was there before this one was emptied.
    fn consume(&self) {
        let next = self.next.as_ref().map(|next| &next.reader);
        let before = next.map(|next| (produced(next), produced(&self.reader)));
        // The callbacks never fail, so neither does this.
        let _ = self.reader.consume();
        if let (Some(next), Some((until, of_this))) = (next, before)
            && consumed(&self.reader) >= of_this
        {
            consume_until(next, until);
        }
    }

    /// If the kernel has no memory for a larger one, the present one has to do.
    fn grow_to(&mut self, bytes: u32) {
        let next = || {
            let larger = map(MapType::RingBuf, 0, bytes, 0)?;
            let reader = opened(&larger, &self.take, &self.arrived)?;
            let putting = Putting::begin(self.place.as_fd(), 0, &larger)?;
            Ok::<_, libbpf_rs::Error>(Next { putting, reader, bytes })
        };
        match next() {
            Ok(next) => (self.next, self.has_larger) = (Some(next), true),
            Err(_) => self.most = self.bytes,
        }
    }

    /// Switches to the larger one: once it is in place no program writes to the smaller one any more, and what a thread has sent there comes
    /// before what it sends from then on.
    fn replace(&mut self) {
        let Some(next) = self.next.take() else { return };
        match next.putting.wait() {
            Ok(()) => {
                self.consume();
                (self.reader, self.bytes) = (next.reader, next.bytes);
            }
            Err(_) => self.most = self.bytes,
        }
    }
}

/// The map may be closed afterwards.
fn opened(map: &impl MapCore, take: &Take, arrived: &Rc<Cell<u64>>) -> libbpf_rs::Result<RingBuffer<'static>> {
    let (take, arrived) = (Rc::clone(take), Rc::clone(arrived));
    let mut builder = RingBufferBuilder::new();
    builder.add(map, move |record| {
        arrived.set(arrived.get() + (record.len().next_multiple_of(8) + HEADER) as u64);
        take.borrow_mut()(record);
        0
    })?;
    builder.build()
}

/// How many bytes have been sent since it was made.
fn produced(reader: &RingBuffer<'_>) -> u64 {
    // SAFETY: the ring belongs to the reader, which outlives the call.
    unsafe { libbpf_sys::ring__producer_pos(only(reader)) }
}

/// How many of these have been taken.
fn consumed(reader: &RingBuffer<'_>) -> u64 {
    // SAFETY: as above.
    unsafe { libbpf_sys::ring__consumer_pos(only(reader)) }
}

/// Takes what was sent before position `until`. Stops at a record that is still being written.
fn consume_until(reader: &RingBuffer<'_>, until: u64) {
    let mut at = consumed(reader);
    while at < until {
        // SAFETY: as above; its callbacks are those of the reader.
        unsafe { libbpf_sys::ring__consume_n(only(reader), 1) };
        let now = consumed(reader);
        if now == at {
            break;
        }
        at = now;
    }
}

/// The one ring that a reader here has.
fn only(reader: &RingBuffer<'_>) -> *mut libbpf_sys::ring {
    // SAFETY: the reader is a live object of libbpf.
    unsafe { libbpf_sys::ring_buffer__ring(reader.as_libbpf_object().as_ptr(), 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_grows_by_large_steps_for_what_arrives_and_for_what_is_wanted() {
        const MIB: u32 = 1 << 20;
        assert_eq!(next_size(MIB, 0, 0, 64 * MIB), MIB);
        assert_eq!(next_size(MIB, u64::from(MIB) / 16, MIB, 64 * MIB), MIB, "that much it has room for");
        assert_eq!(next_size(MIB, u64::from(MIB) / 16 + 1, 0, 64 * MIB), 16 * MIB);
        assert_eq!(next_size(MIB, 0, 2 * MIB, 64 * MIB), 16 * MIB);
        assert_eq!(next_size(MIB, 0, 32 * MIB, 64 * MIB), 32 * MIB);
        assert_eq!(next_size(16 * MIB, u64::MAX, 32 * MIB, 64 * MIB), 64 * MIB);
    }

    #[test]
    fn room_for_threads_is_a_power_of_two() {
        assert_eq!([0, 1, 3, 256].map(|threads| bytes_for(threads, 4096)), [1, 4096, 16_384, 1 << 20]);
        assert_eq!(bytes_for(u32::MAX, 4096), 1 << 30);
    }
}
