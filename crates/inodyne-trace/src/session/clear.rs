//! Makes loaded programs forget a run, so that they can serve another one: all maps empty or zero, and all variables zero. Loading takes some
//! 70 ms, most of it the verifier's, and this a few.

use std::os::fd::AsFd;

use libbpf_rs::skel::Skel;
use libbpf_rs::{ErrorKind, Map, MapCore, MapFlags, MapInfo, MapType, libbpf_sys, num_possible_cpus};
use rustix::mm::{MapFlags as MmapFlags, ProtFlags, mmap, munmap};

use crate::map::clear_element;
use crate::skeleton::InodyneSkel;

/// Maps of maps with the accounts of threads: [`crate::thread_table::ThreadTable::clear`] is for these.
const OF_THREADS: [&str; 2] = ["threads", "last_sent"];

/// Makes all maps empty or zero, while no program is attached, except for those with the accounts of threads. What is in ring buffers must have
/// been read. Where they have grown, the places of larger ones are emptied; otherwise these are left alone: to write to one makes some kernels
/// wait for 10 to 20 ms, though it is empty.
///
/// # Errors
/// The kernel refuses it, or there is a kind of map that is not known here.
pub fn clear(skeleton: &InodyneSkel<'static>, have_rings_grown: bool) -> libbpf_rs::Result<()> {
    skeleton.object().maps().try_for_each(|map| clear_map(&map, have_rings_grown))
}

fn clear_map(map: &Map<'_>, have_rings_grown: bool) -> libbpf_rs::Result<()> {
    match map.map_type() {
        MapType::Array => clear_array(map),
        MapType::PercpuArray => {
            let zeros = vec![vec![0; map.value_size() as usize]; num_possible_cpus()?];
            indices(map).try_for_each(|index| map.update_percpu(&index.to_ne_bytes(), &zeros, MapFlags::ANY))
        }
        MapType::Hash | MapType::LruHash => {
            let keys: Vec<Vec<u8>> = map.keys().collect();
            keys.iter().try_for_each(|key| map.delete(key))
        }
        MapType::Queue => {
            while map.lookup_and_delete(&[])?.is_some() {}
            Ok(())
        }
        MapType::ArrayOfMaps if OF_THREADS.iter().any(|of_threads| map.name() == *of_threads) => Ok(()),
        MapType::ArrayOfMaps if !have_rings_grown => Ok(()),
        // The place of a larger ring buffer; the first one is empty.
        MapType::ArrayOfMaps => match map.delete(&0u32.to_ne_bytes()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
        MapType::RingBuf => Ok(()),
        // Of a kind that is not known here.
        _ => Err(std::io::Error::from(std::io::ErrorKind::Unsupported).into()),
    }
}

fn indices(map: &Map<'_>) -> std::ops::Range<u32> {
    0..map.max_entries()
}

fn clear_array(map: &Map<'_>) -> libbpf_rs::Result<()> {
    let flags = MapInfo::new(map.as_fd())?.info.map_flags;
    if flags & libbpf_sys::BPF_F_RDONLY_PROG != 0 {
        // Constants.
        return Ok(());
    }
    if flags & libbpf_sys::BPF_F_MMAPABLE == 0 {
        return indices(map).try_for_each(|index| clear_element(map, index));
    }
    let bytes = map.value_size().next_multiple_of(8) as usize * map.max_entries() as usize;
    let length = bytes.next_multiple_of(rustix::param::page_size());
    // SAFETY: a new shared mapping of a map of that many whole pages.
    let base = unsafe {
        mmap(std::ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MmapFlags::SHARED, map.as_fd(), 0)
    }
    .map_err(std::io::Error::from)?;
    // SAFETY: the mapping is that long and aligned to pages, and no program that would write to it is attached.
    let words = unsafe { std::slice::from_raw_parts_mut(base.cast::<u64>(), length / 8) };
    // Few are not, and reading leaves the others in caches as they were.
    words.iter_mut().filter(|word| **word != 0).for_each(|word| *word = 0);
    // SAFETY: exactly the mapping made above. A failure changes nothing.
    let _ = unsafe { munmap(base, length) };
    Ok(())
}
