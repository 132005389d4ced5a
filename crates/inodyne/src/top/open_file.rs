//! Which file a process is at right now, from what the kernel says about its threads (proc(5)): seen from outside, at no cost to the process.

use std::ffi::c_long;
use std::fs;

use libc::{
    SYS_copy_file_range, SYS_fallocate, SYS_fdatasync, SYS_flock, SYS_fsync, SYS_ftruncate, SYS_getdents64,
    SYS_pread64, SYS_preadv, SYS_preadv2, SYS_pwrite64, SYS_pwritev, SYS_pwritev2, SYS_read, SYS_readahead, SYS_readv,
    SYS_sync_file_range, SYS_syncfs, SYS_write, SYS_writev,
};

/// Calls that wait for the file whose descriptor is their first argument.
const ON_DESCRIPTOR: [c_long; 20] = [
    SYS_copy_file_range,
    SYS_fallocate,
    SYS_fdatasync,
    SYS_flock,
    SYS_fsync,
    SYS_ftruncate,
    SYS_getdents64,
    SYS_pread64,
    SYS_preadv,
    SYS_preadv2,
    SYS_pwrite64,
    SYS_pwritev,
    SYS_pwritev2,
    SYS_read,
    SYS_readahead,
    SYS_readv,
    SYS_sync_file_range,
    SYS_syncfs,
    SYS_write,
    SYS_writev,
];
/// Number of threads of a process that are examined.
const MOST_THREADS: usize = 64;

/// The file that one of its threads is waiting for in such a call; that of the first if there are several.
pub fn in_use(pid: u32) -> Option<String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten().take(MOST_THREADS);
    threads.filter_map(|thread| fs::read_to_string(thread.path().join("syscall")).ok()).find_map(|call| {
        let file = fs::read_link(format!("/proc/{pid}/fd/{}", descriptor(&call)?)).ok()?;
        // A pipe or a socket has no path.
        file.is_absolute().then(|| file.to_string_lossy().into_owned())
    })
}

/// The descriptor of `0 0x3 0x7f… …`: a call's number and its arguments; a thread that runs says so instead.
fn descriptor(call: &str) -> Option<u64> {
    let mut words = call.split_whitespace();
    let number: c_long = words.next()?.parse().ok()?;
    let first = words.next()?.strip_prefix("0x")?;
    ON_DESCRIPTOR.contains(&number).then(|| u64::from_str_radix(first, 16).ok())?
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn calls_on_descriptors_tell_which() {
        assert_eq!(descriptor(&format!("{SYS_fsync} 0x1f 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7f12\n")), Some(31));
        assert_eq!(descriptor("running\n"), None);
        assert_eq!(descriptor("-1 0x7ffe 0x7f12\n"), None);
        assert_eq!(descriptor(&format!("{} 0x7f00 0x0\n", libc::SYS_futex)), None);
    }

    #[test]
    fn a_thread_that_reads_is_found_at_its_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("fifo");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a file that makes its readers wait");
        let mut file = fs::File::options().read(true).write(true).open(&path).expect("it is ours");
        let mut reader = file.try_clone().expect("a descriptor");
        let waits = std::thread::spawn(move || reader.read_exact(&mut [0]));
        let until = Instant::now() + Duration::from_secs(20);
        let found = || in_use(std::process::id()).is_some_and(|found| found == path.to_string_lossy());
        while !found() {
            assert!(Instant::now() < until, "{:?}", in_use(std::process::id()));
            std::thread::sleep(Duration::from_millis(5));
        }
        file.write_all(&[0]).expect("somebody reads");
        waits.join().expect("it ends").expect("it has read");
    }
}
