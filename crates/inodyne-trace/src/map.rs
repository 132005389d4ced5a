//! Reading BPF maps: array maps through mmap, without a system call per element; hash maps in batches.

use std::cell::RefCell;
use std::collections::HashSet;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd};

use bytemuck::AnyBitPattern;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapMut, libbpf_sys};
use rustix::mm::{MapFlags as MmapFlags, ProtFlags, mmap, munmap};

const PAGE: usize = 4096;

/// A `BPF_F_MMAPABLE` array map, mapped for reading as far as it has been read. Its elements change under the reader while programs are
/// attached: every read copies one element out.
pub struct ArrayView<T> {
    map: MapHandle,
    mapping: RefCell<Mapping>,
    entries: usize,
    element: PhantomData<T>,
}

/// The beginning of a map in this process's memory.
struct Mapping {
    base: *const u8,
    length: usize,
}

impl<T: AnyBitPattern> ArrayView<T> {
    /// For an array map whose elements are `T`.
    pub fn new(map: &MapMut<'_>) -> Result<ArrayView<T>, libbpf_rs::Error> {
        ArrayView::of(MapHandle::try_from(map)?)
    }

    /// The same for a map that it owns.
    pub fn of(map: MapHandle) -> Result<ArrayView<T>, libbpf_rs::Error> {
        assert_eq!(map.value_size() as usize, size_of::<T>(), "the map holds another structure");
        let entries = map.max_entries() as usize;
        let mapping = Mapping::of(&map, PAGE)?;
        Ok(ArrayView { map, mapping: RefCell::new(mapping), entries, element: PhantomData })
    }

    /// Elements of an array map lie on 8-byte boundaries.
    const STRIDE: usize = size_of::<T>().next_multiple_of(8);

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// A copy of one element.
    pub fn get(&self, index: usize) -> T {
        assert!(index < self.entries, "beyond the end of the map");
        let end = (index + 1) * Self::STRIDE;
        let mut mapping = self.mapping.borrow_mut();
        if end > mapping.length {
            let whole = (self.entries * Self::STRIDE).next_multiple_of(PAGE);
            *mapping = Mapping::of(&self.map, end.next_power_of_two().clamp(PAGE, whole))
                .expect("memory to map more of a table");
        }
        // SAFETY: inside the mapping; any bytes make a valid T; volatile, since the kernel may write meanwhile.
        unsafe { mapping.base.add(index * Self::STRIDE).cast::<T>().read_volatile() }
    }

    /// Makes one element zero.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn clear(&self, index: usize) -> Result<(), libbpf_rs::Error> {
        clear_element(&self.map, index as u32)
    }
}

/// Makes one element of an array map zero.
///
/// # Errors
/// The kernel refuses it.
pub fn clear_element(map: &impl MapCore, index: u32) -> Result<(), libbpf_rs::Error> {
    map.update(&index.to_ne_bytes(), &vec![0; map.value_size() as usize], MapFlags::ANY)
}

impl Mapping {
    /// The first bytes of a map: whole pages, and no more than it has.
    fn of(map: &MapHandle, length: usize) -> Result<Mapping, libbpf_rs::Error> {
        // SAFETY: a new shared read-only mapping of a map of at least this length (the kernel refuses a longer one).
        let base = unsafe { mmap(std::ptr::null_mut(), length, ProtFlags::READ, MmapFlags::SHARED, map.as_fd(), 0) }
            .map_err(std::io::Error::from)?;
        Ok(Mapping { base: base.cast(), length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `of`; no reference into it outlives self. A failure changes nothing.
        let _ = unsafe { munmap(self.base.cast_mut().cast(), self.length) };
    }
}

/// How many pairs are read at a time, unless a bucket of the map has more.
const AT_ONCE: usize = 256;

/// All pairs of a hash map. Most are nearly empty, so the memory for them grows with what is there (libbpf-rs 0.27 would take that of a full map).
///
/// # Errors
/// The kernel refuses to show the map.
pub fn pairs<K: AnyBitPattern, V: AnyBitPattern>(map: &impl MapCore) -> Result<Vec<(K, V)>, libbpf_rs::Error> {
    let mut pairs = Vec::new();
    for_each_pair(map, AT_ONCE, |key, value| {
        pairs.push((bytemuck::pod_read_unaligned(key), bytemuck::pod_read_unaligned(value)))
    })?;
    Ok(pairs)
}

/// Shows each key with its value.
fn for_each_pair(
    map: &impl MapCore,
    mut at_once: usize,
    mut show: impl FnMut(&[u8], &[u8]),
) -> Result<(), libbpf_rs::Error> {
    let (key_size, value_size) = (map.key_size() as usize, map.value_size() as usize);
    let (mut keys, mut values) = (vec![0; key_size * at_once], vec![0; value_size * at_once]);
    let mut at = None;
    loop {
        let (mut next, mut count) = (0u32, at_once as u32);
        let from = at.as_mut().map_or(std::ptr::null_mut(), std::ptr::from_mut::<u32>);
        // SAFETY: there is room for so many keys and values, and a position in a hash map is a `u32` (`__htab_map_lookup_and_delete_batch` in
        // kernel/bpf/hashtab.c).
        let failed = unsafe {
            libbpf_sys::bpf_map_lookup_batch(
                map.as_fd().as_raw_fd(),
                from.cast(),
                (&raw mut next).cast(),
                keys.as_mut_ptr().cast(),
                values.as_mut_ptr().cast(),
                &raw mut count,
                std::ptr::null(),
            )
        };
        match -failed {
            0 | libc::ENOENT => {}
            // A bucket has more.
            libc::ENOSPC => {
                at_once *= 2;
                (keys, values) = (vec![0; key_size * at_once], vec![0; value_size * at_once]);
                continue;
            }
            error => return Err(libbpf_rs::Error::from_raw_os_error(error)),
        }
        let read = keys.chunks_exact(key_size).zip(values.chunks_exact(value_size)).take(count as usize);
        read.for_each(|(key, value)| show(key, value));
        if failed != 0 {
            return Ok(());
        }
        at = Some(next);
    }
}

/// The same for a map that is still being written, from which those that are over are removed.
pub fn pairs_and_remove<K: AnyBitPattern, V: AnyBitPattern>(
    map: &impl MapCore,
    is_over: impl Fn(&K) -> bool,
) -> Result<Vec<(K, V)>, libbpf_rs::Error> {
    let (mut pairs, mut over) = (Vec::new(), Vec::new());
    for_each_pair(map, AT_ONCE, |key, value| {
        let pair: (K, V) = (bytemuck::pod_read_unaligned(key), bytemuck::pod_read_unaligned(value));
        if is_over(&pair.0) {
            over.push(key.to_vec());
        }
        pairs.push(pair);
    })?;
    over.iter().try_for_each(|key| map.delete(key))?;
    Ok(pairs)
}

/// Rows of threads that have ended, taken out of a table so that it has room for others.
pub struct TakenOut<K, V>(RefCell<Vec<(K, V)>>);

impl<K, V> Default for TakenOut<K, V> {
    fn default() -> TakenOut<K, V> {
        TakenOut(RefCell::default())
    }
}

impl<K: AnyBitPattern, V: AnyBitPattern> TakenOut<K, V> {
    /// Takes the rows whose thread is not among the living ones, which are given by number, out of a map that is still being written. Rows are
    /// looked at one by one: during a batch the kernel runs no programs of perf events on that CPU.
    ///
    /// # Errors
    /// The kernel refuses to show or remove a row.
    pub fn take(
        &self,
        map: &impl MapCore,
        thread: impl Fn(&K) -> u32,
        living: impl FnOnce() -> HashSet<u32>,
    ) -> Result<(), libbpf_rs::Error> {
        let keys: Vec<Vec<u8>> = map.keys().collect();
        // A thread with a row was born before the row was written, so one that is not alive now has ended, and writes no more.
        let living = living();
        for key in keys {
            let row: K = bytemuck::pod_read_unaligned(&key);
            if living.contains(&thread(&row)) {
                continue;
            }
            if let Some(value) = map.lookup(&key, MapFlags::ANY)? {
                map.delete(&key)?;
                self.0.borrow_mut().push((row, bytemuck::pod_read_unaligned(&value)));
            }
        }
        Ok(())
    }

    /// All rows: those that were taken out, and those that are there.
    ///
    /// # Errors
    /// The kernel refuses to show the table.
    pub fn and_those_in(&self, map: &impl MapCore) -> Result<Vec<(K, V)>, libbpf_rs::Error> {
        let mut all = self.0.take();
        all.extend(pairs(map)?);
        Ok(all)
    }
}

/// The start of each CPU's copy of the one element of a per-CPU array.
pub fn per_cpu<T: AnyBitPattern>(map: &impl MapCore) -> Result<Vec<T>, libbpf_rs::Error> {
    let copies = map.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
    Ok(copies.iter().map(|copy| bytemuck::pod_read_unaligned(&copy[..size_of::<T>()])).collect())
}

/// A record of a ring buffer. It is longer than its structure: the kernel rounds it up to eight bytes.
pub fn record<T: AnyBitPattern>(bytes: &[u8]) -> T {
    bytemuck::pod_read_unaligned(&bytes[..size_of::<T>()])
}

/// A structure whose end may be missing: it is then zeros.
pub fn record_from<T: AnyBitPattern>(bytes: &[u8]) -> T {
    let mut whole = vec![0; size_of::<T>()];
    let length = bytes.len().min(whole.len());
    whole[..length].copy_from_slice(&bytes[..length]);
    record(&whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pairs_are_read_however_many_at_a_time() {
        assert!(rustix::process::geteuid().is_root(), "this test makes a map: run it as root");
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        for entries in [0, 1, 700] {
            let map = MapHandle::create(libbpf_rs::MapType::Hash, Some("some"), 4, 8, 1_000, &options).expect("a map");
            let written: Vec<(u32, u64)> = (0..entries).map(|at| (at * 7, u64::from(at) << 33)).collect();
            for (key, value) in &written {
                map.update(&key.to_ne_bytes(), &value.to_ne_bytes(), MapFlags::ANY).expect("there is room");
            }
            for at_once in [1, 2, 256, 2_000] {
                let mut read: Vec<(u32, u64)> = Vec::new();
                let read_all = for_each_pair(&map, at_once, |key, value| read.push((record(key), record(value))));
                read_all.expect("it can be read");
                read.sort_unstable();
                assert_eq!(read, written, "{at_once} at a time");
            }
        }
    }
}
