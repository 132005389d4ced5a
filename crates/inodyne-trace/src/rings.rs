//! Ring buffers that are replaced by larger ones as more arrives: most commands need little of them, and memory of the kernel cannot be
//! swapped out.

use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, AsRawFd};
use std::rc::Rc;

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapMut, MapType, RingBuffer, RingBufferBuilder, libbpf_sys};

/// What part of it arrives between two looks where it is replaced: the next look may come much later, on a busy machine.
const ENOUGH: u32 = 16;

/// By how much the next one is larger.
const GROWTH: u32 = 16;

/// What the kernel writes before each record (`BPF_RINGBUF_HDR_SZ` in include/uapi/linux/bpf.h).
const HEADER: usize = 8;

/// How many bytes a ring buffer is to have room for at the next look, whatever has arrived by then.
#[derive(Debug, Clone, Default)]
pub struct Wanted(Rc<Cell<u32>>);

impl Wanted {
    /// So many.
    pub fn set(&self, bytes: u32) {
        self.0.set(bytes);
    }
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
}

/// All ring buffers.
#[derive(Default)]
pub struct Rings(Vec<Ring>);

impl Rings {
    /// Opens one that may be replaced by one of so many bytes at most, a power of two, in this place.
    pub fn add(
        &mut self,
        first: &impl MapCore,
        place: &MapMut<'_>,
        most: u32,
        take: impl FnMut(&[u8]) + 'static,
    ) -> libbpf_rs::Result<Wanted> {
        let (take, arrived): (Take, _) = (Rc::new(RefCell::new(take)), Rc::default());
        let reader = opened(first, &take, &arrived)?;
        let place = MapHandle::try_from(place)?;
        let wanted = Wanted::default();
        self.0.push(Ring { reader, bytes: first.max_entries(), most, place, take, arrived, wanted: wanted.clone() });
        Ok(wanted)
    }

    /// Takes what has arrived.
    pub fn consume(&self) {
        self.0.iter().for_each(Ring::consume);
    }

    /// Replaces those in which much has arrived since the last look, and those of which more is wanted, by larger ones.
    pub fn grow(&mut self) {
        for ring in &mut self.0 {
            let much = ring.arrived.take() > u64::from(ring.bytes / ENOUGH);
            let larger = if much { ring.bytes.saturating_mul(GROWTH) } else { ring.bytes };
            let bytes = larger.max(ring.wanted.0.get()).min(ring.most);
            // Where the kernel has no memory for a larger one, it does with the one it has.
            if bytes > ring.bytes && ring.grow_to(bytes).is_err() {
                ring.most = ring.bytes;
            }
        }
    }

    /// How large they are, in bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> Vec<u32> {
        self.0.iter().map(|ring| ring.bytes).collect()
    }
}

impl Ring {
    fn consume(&self) {
        // The callbacks never fail, so neither does this.
        let _ = self.reader.consume();
    }

    fn grow_to(&mut self, bytes: u32) -> libbpf_rs::Result<()> {
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        let larger = MapHandle::create(MapType::RingBuf, Some("larger_ring"), 0, 0, bytes, &options)?;
        let reader = opened(&larger, &self.take, &self.arrived)?;
        self.place.update(&0u32.to_ne_bytes(), &larger.as_fd().as_raw_fd().to_ne_bytes(), MapFlags::ANY)?;
        // The kernel has waited until no program writes to the smaller one any more (maybe_wait_bpf_programs in kernel/bpf/syscall.c), and
        // what a thread has sent there comes before what it sends from now on.
        self.consume();
        (self.reader, self.bytes) = (reader, bytes);
        Ok(())
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
