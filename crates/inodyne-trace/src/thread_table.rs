//! The accounts of threads, in a table that grows: for as many as may be alive at the same time it would be most of the memory that inodyne
//! takes, and most commands have few.
//!
//! A part is added long before the last one is used up, since a thread that is born when there is no room is lost. Between two looks lie 10 ms,
//! on a busy machine some more; for each thread that it starts, a CPU takes 15 to 20 µs.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use libbpf_rs::{MapHandle, MapType, libbpf_sys};

use crate::contract::{LastSent, THREADS_IN_PART, Thread};
use crate::map::ArrayView;
use crate::skeleton::InodyneMaps;

/// There is room for so many times as many threads as there were at the same time.
const RESERVE: u32 = 4;

/// How many parts have room for so many threads.
pub fn parts_for(threads: u32) -> u32 {
    threads.div_ceil(THREADS_IN_PART)
}

/// The maps in which programs look for a part.
#[derive(Debug, Clone, Copy)]
pub struct Places<'maps> {
    /// For accounts.
    pub threads: BorrowedFd<'maps>,
    /// For what has been sent of them.
    pub last_sent: BorrowedFd<'maps>,
}

impl Places<'_> {
    /// Puts the part of this number there; the one for accounts. The kernel waits for all programs meanwhile, some 10 ms.
    ///
    /// # Errors
    /// There is no memory for it, or no place.
    pub fn add(self, number: u32) -> io::Result<MapHandle> {
        let accounts = part::<Thread>(libbpf_sys::BPF_F_MMAPABLE)?;
        put(self.last_sent, number, &part::<LastSent>(0)?)?;
        put(self.threads, number, &accounts)?;
        Ok(accounts)
    }
}

fn part<T>(flags: u32) -> io::Result<MapHandle> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        map_flags: flags,
        ..Default::default()
    };
    let (key, value) = (size_of::<u32>() as u32, size_of::<T>() as u32);
    let part = MapHandle::create(MapType::Array, Some("part"), key, value, THREADS_IN_PART, &options);
    part.map_err(io::Error::other)
}

fn put(place: BorrowedFd<'_>, number: u32, part: &MapHandle) -> io::Result<()> {
    let part = part.as_fd().as_raw_fd();
    // SAFETY: key and value of the sizes that maps of maps have.
    let failed = unsafe {
        libbpf_sys::bpf_map_update_elem(
            place.as_raw_fd(),
            (&raw const number).cast(),
            (&raw const part).cast(),
            libbpf_sys::BPF_ANY.into(),
        )
    };
    if failed < 0 { Err(io::Error::from_raw_os_error(-failed)) } else { Ok(()) }
}

/// The table, as it is read.
pub struct ThreadTable {
    parts: RefCell<Vec<ArrayView<Thread>>>,
    most: u32,
}

impl ThreadTable {
    /// Of these parts, with others to come, for so many threads at most.
    ///
    /// # Errors
    /// They cannot be mapped.
    pub fn open(parts: Vec<MapHandle>, threads: u32) -> libbpf_rs::Result<ThreadTable> {
        let parts = parts.into_iter().map(ArrayView::of).collect::<libbpf_rs::Result<_>>()?;
        Ok(ThreadTable { parts: RefCell::new(parts), most: parts_for(threads) })
    }

    /// The account in this slot; none where the table has not grown as far.
    pub fn get(&self, slot: u32) -> Option<Thread> {
        let parts = self.parts.borrow();
        Some(parts.get((slot / THREADS_IN_PART) as usize)?.get((slot % THREADS_IN_PART) as usize))
    }

    /// Adds what is missing in reserve where so many slots are in use. Without memory for it, or once it is as large as it may be, it stays as it
    /// is.
    pub fn grow(&self, maps: &InodyneMaps<'_>, used: u32) {
        let places = Places { threads: maps.threads.as_fd(), last_sent: maps.last_sent.as_fd() };
        let mut parts = self.parts.borrow_mut();
        let wanted = parts_for(used.saturating_mul(RESERVE)).min(self.most);
        for number in parts.len() as u32..wanted {
            let added = places.add(number).ok().and_then(|part| ArrayView::of(part).ok());
            let Some(part) = added else { return };
            parts.push(part);
        }
    }
}
