//! Inner maps, and putting them into maps of maps. The kernel makes the caller wait until no program can be running that has not seen the
//! change, for some 10 ms, more on a busy machine (`maybe_wait_bpf_programs` in kernel/bpf/syscall.c); programs see it at once. So a separate
//! thread waits for each, while whatever arrives is still read.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::thread::{self, JoinHandle};

use inodyne_launch::Urgent;
use libbpf_rs::{MapHandle, MapType, libbpf_sys};

/// A map that is being put into its place.
#[derive(Debug)]
pub struct Putting(JoinHandle<io::Result<()>>);

impl Putting {
    /// Begins to put a map into a slot of a map of maps.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn begin(place: BorrowedFd<'_>, number: u32, map: &MapHandle) -> io::Result<Putting> {
        let (place, map) = (place.try_clone_to_owned()?, map.as_fd().try_clone_to_owned()?);
        let put = move || {
            // While the map is put there, the kernel runs no programs of perf events on that CPU (`bpf_disable_instrumentation`, include/linux/bpf.h):
            // this thread must not lose it to one of the command's. Where it is not permitted to keep it, what is skipped is counted.
            Urgent::before_all_from_now_on();
            let map = map.as_raw_fd();
            // SAFETY: key and value have the sizes that maps of maps use.
            let failed = unsafe {
                libbpf_sys::bpf_map_update_elem(
                    place.as_raw_fd(),
                    (&raw const number).cast(),
                    (&raw const map).cast(),
                    libbpf_sys::BPF_ANY.into(),
                )
            };
            if failed < 0 { Err(io::Error::from_raw_os_error(-failed)) } else { Ok(()) }
        };
        Ok(Putting(thread::Builder::new().spawn(put)?))
    }

    /// Whether no program that has not seen it can be running any more.
    pub fn is_over(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits until that is so.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn wait(self) -> io::Result<()> {
        self.0.join().expect("a thread that does not panic")
    }
}

/// Makes a map to be put there: a ring buffer, or an array of values of this size.
///
/// # Errors
/// There is no memory for it.
pub fn map(kind: MapType, value_size: u32, entries: u32, flags: u32) -> libbpf_rs::Result<MapHandle> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        map_flags: flags,
        ..Default::default()
    };
    let key_size = if kind == MapType::RingBuf { 0 } else { size_of::<u32>() as u32 };
    MapHandle::create(kind, Some("inodyne_part"), key_size, value_size, entries, &options)
}
