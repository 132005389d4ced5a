//! Mapped files that others shorten while they are read.
//!
//! Where a file no longer has the page that is read, the kernel sends SIGBUS, which ends the whole process: whoever may write to a program
//! could end the tracer that names its functions. A copy of the file would not do, since its debug information may be in other files, which
//! are found by its path. So threads that read such files see zeroes instead, like at the end of a file's last page. Pages that cannot be
//! read at all, as from a broken disk, are zeroes, too.

use std::cell::Cell;
use std::sync::OnceLock;

use libc::{BUS_ADRERR, MAP_ANONYMOUS, MAP_FAILED, MAP_FIXED, MAP_PRIVATE, PROT_READ, SIGBUS, c_int, c_void};

thread_local! {
    /// Whether this thread sees zeroes.
    static SEES_ZEROES: Cell<bool> = const { Cell::new(false) };
}

/// What was done about the signal before, and the size of a page.
static BEFORE: OnceLock<(libc::sigaction, usize)> = OnceLock::new();

/// From now on, this thread reads what mapped files lack as zeroes. For other threads nothing changes.
pub fn read_as_zeroes() {
    BEFORE.get_or_init(|| {
        // SAFETY: all zeroes are a valid value, and what it means is said below.
        let (mut before, mut ours) = unsafe { std::mem::zeroed::<(libc::sigaction, libc::sigaction)>() };
        ours.sa_sigaction = on_sigbus as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: both are valid, and the handler does nothing that a handler may not do. If it fails, the signal ends the process.
        let _ = unsafe { libc::sigaction(SIGBUS, &ours, &mut before) };
        (before, rustix::param::page_size())
    });
    SEES_ZEROES.set(true);
}

extern "C" fn on_sigbus(_: c_int, information: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel gives it with SA_SIGINFO; an address belongs to this code alone.
    let (code, address) = unsafe { ((*information).si_code, (*information).si_addr() as usize) };
    let before = BEFORE.get();
    if let Some((_, page)) = before.filter(|_| code == BUS_ADRERR && SEES_ZEROES.get()) {
        let (start, protection, flags) = (address & !(page - 1), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
        // SAFETY: there is a mapping of a file, whose owner reads this page just now and finds nothing in it.
        let mapped = unsafe { libc::mmap(start as *mut c_void, *page, protection, flags, -1, 0) };
        if mapped != MAP_FAILED {
            return;
        }
        loop {
            // Whoever waits for this thread does so only for a while.
            // SAFETY: it only waits.
            unsafe { libc::pause() };
        }
    }
    // As without us: it comes again at once.
    // SAFETY: what was valid before still is; all zeroes are the default.
    unsafe {
        let default = std::mem::zeroed();
        libc::sigaction(SIGBUS, before.map_or(&default, |(before, _)| before), std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

    use super::*;

    #[test]
    fn what_a_file_lost_while_it_is_read_is_zeroes() {
        let page = rustix::param::page_size();
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&vec![7; 3 * page]).expect("written");
        let read = move || {
            read_as_zeroes();
            // SAFETY: a new mapping, wherever there is room.
            let base = unsafe { mmap(std::ptr::null_mut(), 3 * page, ProtFlags::READ, MapFlags::PRIVATE, &file, 0) };
            let base = base.expect("mapped");
            // SAFETY: inside of the mapping.
            let byte = |at: usize| unsafe { base.cast::<u8>().add(at).read_volatile() };
            assert_eq!(byte(page), 7);
            file.set_len(page as u64).expect("shortened");
            let read = [0, page - 1, page, 3 * page - 1, 2 * page, 0].map(byte);
            // SAFETY: the mapping, which nothing refers to any more.
            unsafe { munmap(base, 3 * page) }.expect("unmapped");
            read
        };
        let read = std::thread::spawn(read).join().expect("it goes on");
        assert_eq!(read, [7, 7, 0, 0, 0, 7]);
    }
}
