//! Wakes programs in the guest that watch files (inotify, fanotify) when a program on the host has changed one.
//!
//! The kernel wakes them for system calls, and for nothing else. So a thread of the mounter makes system calls on its own mount, and what
//! these ask of the host is answered here or turned into a query (`pretence`): nothing on the host changes.
//!
//! | on the host | the call here | they hear |
//! |---|---|---|
//! | a file is made | `mknod`, `mkdir`, `symlink` of the name, which is looked up | `IN_CREATE` |
//! | data changes | `utimensat` of the modification time alone, for which attributes are read | `IN_MODIFY` |
//! | attributes change | `utimensat` of both times, for which attributes are read | `IN_ATTRIB` |
//! | a file is closed after writing | `open` for writing and `close`, of which the host hears nothing | `IN_OPEN`, `IN_CLOSE_WRITE` |
//! | a name goes | `unlink`, `rmdir` of a file that is not there | `IN_DELETE` |
//! | a file is renamed | `rename` of a file that is not there | `IN_MOVED_FROM`, `IN_MOVED_TO` |
//!
//! Directories are opened by node number, as the NFS server does: only those that the kernel holds are found, and nobody watches
//! in others. The mount is in use for as long as the calls take.

mod pretence;

use std::{
    ffi::CStr,
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    sync::{Arc, atomic::Ordering::Relaxed},
    thread,
};

use rustix::{
    fs::{
        AtFlags, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, mkdirat, mknodat, openat,
        renameat, symlinkat, unlinkat, utimensat,
    },
    io::Errno,
    thread::gettid,
};

use super::{apply::drop_name, place::Place, queue::Distinct};
use crate::{
    fuse::abi::ROOT,
    protocol::happened::{ATTRIBUTES, CHANGED, CLOSED, GONE, Happened, MADE, MOVED},
};
pub(super) use pretence::{Instead, Pretence};

/// The most that may wait. Anything beyond that is lost, as it is where inotify's own queue is full.
const MOST: usize = 4096;

/// How many times a name that somebody else has just looked up is tried.
const TRIES: usize = 3;

/// What waits for the thread.
#[derive(Default)]
pub(super) struct Events {
    waiting: Distinct<Happened>,
    /// How the thread's requests are answered.
    pub pretence: Pretence,
}

impl Events {
    /// Starts the thread, for the mount at this place; `device` is its connection to the kernel.
    pub fn start(place: Place, device: Arc<OwnedFd>) -> io::Result<Arc<Self>> {
        let events = Arc::new(Self::default());
        let waker = Waker { events: events.clone(), place, device };
        thread::Builder::new().name("share-events".into()).spawn(move || waker.run())?;
        Ok(events)
    }

    /// Takes what a host says.
    pub fn take(&self, list: Vec<Happened>) {
        list.into_iter().for_each(|one| self.waiting.put_up_to(one, MOST));
    }
}

struct Waker {
    events: Arc<Events>,
    place: Place,
    device: Arc<OwnedFd>,
}

impl Waker {
    fn run(&self) {
        self.events.pretence.thread.store(gettid().as_raw_nonzero().get() as u32, Relaxed);
        loop {
            let next = self.events.waiting.take();
            // Somebody may have unmounted it, or mounted something else there.
            let Some(mount) = self.place.open() else { continue };
            // Nobody watches a directory that the kernel does not hold; nobody would know what to do about any other failure.
            let _ = self.happens(&mount, &next);
        }
    }

    fn happens(&self, mount: &OwnedFd, happened: &Happened) -> Result<(), Errno> {
        let directory = node(mount, happened.directory)?;
        let name = &*happened.name;
        let has = |what| happened.what & what != 0;
        if let (true, Some((to, new_name))) = (has(MOVED), &happened.to) {
            let to_directory = node(mount, *to)?;
            self.forget(happened.directory, name);
            self.forget(*to, new_name);
            let _plan =
                self.events.pretence.plan(Some((happened.directory, name, happened.kind)), Some((*to, new_name)));
            renameat(&directory, name, &to_directory, &**new_name)?;
            self.forget(*to, new_name);
        }
        if has(MADE) {
            self.made(&directory, happened)?;
        }
        let touch = |access| {
            let time = |nanos| Timespec { tv_sec: 0, tv_nsec: nanos };
            let times = Timestamps { last_access: time(access), last_modification: time(UTIME_NOW) };
            utimensat(&directory, name, &times, AtFlags::SYMLINK_NOFOLLOW)
        };
        if has(CHANGED) {
            touch(UTIME_OMIT)?;
        }
        if has(ATTRIBUTES) {
            touch(UTIME_NOW)?;
        }
        if has(CLOSED) && FileType::from_raw_mode(happened.kind) == FileType::RegularFile {
            let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            drop(openat(&directory, name, flags, Mode::empty())?);
        }
        if has(GONE) {
            self.forget(happened.directory, name);
            let _plan = self.events.pretence.plan(Some((happened.directory, name, happened.kind)), None);
            let is_directory = FileType::from_raw_mode(happened.kind) == FileType::Directory;
            unlinkat(&directory, name, if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() })?;
        }
        Ok(())
    }

    fn made(&self, directory: &OwnedFd, happened: &Happened) -> Result<(), Errno> {
        let name = &*happened.name;
        let _plan = self.events.pretence.plan(None, Some((happened.directory, name)));
        let mode = Mode::RUSR | Mode::WUSR;
        for _ in 0..TRIES {
            self.forget(happened.directory, name);
            let done = match FileType::from_raw_mode(happened.kind) {
                FileType::Directory => mkdirat(directory, name, mode),
                FileType::Symlink => symlinkat(c"nothing", directory, name),
                kind => mknodat(directory, name, kind, mode, 0),
            };
            if done != Err(Errno::EXIST) {
                return done;
            }
        }
        Err(Errno::EXIST)
    }

    /// Makes the kernel no longer believe what it knows of a name, so that it asks.
    fn forget(&self, directory: u64, name: &CStr) {
        drop_name(&self.device, directory, name);
    }
}

/// A directory that the kernel holds, by the number of its node. `mount` is the root.
fn node(mount: &OwnedFd, number: u64) -> Result<OwnedFd, Errno> {
    if number == ROOT {
        return openat(mount, c".", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    }
    // fs/fuse/inode.c, fuse_encode_fh: 12 bytes of type FILEID_INO64_GEN. Generations are all 0.
    let handle: [u32; 5] = [12, 0x81, (number >> 32) as u32, number as u32, 0];
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: the kernel reads a `struct file_handle`, as long as its header says.
    let opened = unsafe { libc::syscall(libc::SYS_open_by_handle_at, mount.as_raw_fd(), handle.as_ptr(), flags) };
    if opened < 0 {
        return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::STALE));
    }
    // SAFETY: just opened, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(opened as i32) })
}
