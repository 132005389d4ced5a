//! The accounts of threads, in a table that grows: sized for as many as may be alive at the same time, it would be most of the memory that
//! inodyne takes, and most commands have few.
//!
//! A part is added long before the last one is used up, since a thread that is born when there is no room is lost. Looks are 10 ms apart,
//! somewhat more on a busy machine; a CPU takes 15 to 20 µs for each thread that it starts.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libbpf_rs::{MapHandle, MapType, libbpf_sys};

use crate::contract::{LastSent, THREADS_IN_PART, Thread};
use crate::map::{ArrayView, clear_element};
use crate::map_of_maps::{Putting, map};

/// There is room for this many times the number of threads that were there at the same time.
const RESERVE: u32 = 4;

/// How many parts it takes to hold so many threads.
pub fn parts_for(threads: u32) -> u32 {
    threads.div_ceil(THREADS_IN_PART)
}

struct Part {
    accounts: ArrayView<Thread>,
    last_sent: MapHandle,
}

/// The table, as it is read.
pub struct ThreadTable {
    /// Where programs find the parts, and where they find what has been sent of the accounts in them.
    places: [OwnedFd; 2],
    parts: RefCell<Vec<Part>>,
    added: RefCell<Vec<Putting>>,
    most: u32,
}

impl ThreadTable {
    /// Begins a table with parts for `first` threads, in the maps `threads` and `last_sent`, that may grow to `most` threads.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn begin(
        threads: BorrowedFd<'_>,
        last_sent: BorrowedFd<'_>,
        first: u32,
        most: u32,
    ) -> libbpf_rs::Result<ThreadTable> {
        let places = [threads.try_clone_to_owned()?, last_sent.try_clone_to_owned()?];
        let most = parts_for(most);
        let table = ThreadTable { places, parts: RefCell::default(), added: RefCell::default(), most };
        table.add_up_to(parts_for(first).min(most))?;
        Ok(table)
    }

    /// Waits until all parts are in place.
    ///
    /// # Errors
    /// The kernel refuses one.
    pub fn wait(&self) -> io::Result<()> {
        self.added.take().into_iter().try_for_each(Putting::wait)
    }

    /// The account in this slot; none if the table has not grown that far.
    pub fn get(&self, slot: u32) -> Option<Thread> {
        let parts = self.parts.borrow();
        Some(parts.get((slot / THREADS_IN_PART) as usize)?.accounts.get((slot % THREADS_IN_PART) as usize))
    }

    /// Makes the table blank, of which so many slots were ever used. It stays as large as it is.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn clear(&self, used: u32) -> libbpf_rs::Result<()> {
        let parts = self.parts.borrow();
        for slot in 1..=used.min((parts.len() as u32 * THREADS_IN_PART).saturating_sub(1)) {
            let (part, at) = (&parts[(slot / THREADS_IN_PART) as usize], slot % THREADS_IN_PART);
            part.accounts.clear(at as usize)?;
            clear_element(&part.last_sent, at)?;
        }
        Ok(())
    }

    /// Adds what is missing from the reserve when so many slots are in use. Without memory for it, or once the table is as large as it may be, it
    /// stays as it is.
    pub fn grow(&self, used: u32) {
        let _ = self.add_up_to(parts_for(used.saturating_mul(RESERVE)).min(self.most));
    }

    fn add_up_to(&self, wanted: u32) -> libbpf_rs::Result<()> {
        let mut parts = self.parts.borrow_mut();
        for number in parts.len() as u32..wanted {
            let (account, sent) = (size_of::<Thread>() as u32, size_of::<LastSent>() as u32);
            let accounts = map(MapType::Array, account, THREADS_IN_PART, libbpf_sys::BPF_F_MMAPABLE)?;
            let last_sent = map(MapType::Array, sent, THREADS_IN_PART, 0)?;
            for (place, part) in self.places.iter().zip([&accounts, &last_sent]) {
                self.added.borrow_mut().push(Putting::begin(place.as_fd(), number, part)?);
            }
            parts.push(Part { accounts: ArrayView::of(accounts)?, last_sent });
        }
        Ok(())
    }
}
