//! File systems of our own, through FUSE: for a directory that is shown through a server, and for a device that is slow.
//!
//! | module | what it knows |
//! |---|---|
//! | `slow` | one file, an image, that answers late |
//! | `pace` | how late; pure |
//! | `passthrough` | a directory, shown as it is |
//! | `nodes` | what the kernel knows of that directory's files |
//!
//! Each is served by a process of its own, forked here, which stands outside of the private mount namespace: it holds none
//! of its mounts, so it is still there to answer while the last process of the namespace goes, by whatever signal, and the
//! kernel unmounts everything. Nobody has to tell it to end. Once nothing uses its file system, reading the next request
//! fails, and it ends: so it can neither be left over nor be missed. The process that uses it keeps no descriptor of the
//! connection: should the server be killed, the kernel fails what is asked of it instead of waiting for ever.
//!
//! That its user has ended it learns from a lock, which the kernel releases as soon as a process dies. The end of a socket
//! would come too late: the kernel closes it after it has unmounted, which may take as long as a slow device likes.
//!
//! The server runs Rust code after a fork, without an exec: this library has no program of its own to execute. glibc keeps
//! its allocator usable for that; no lock of ours is held by anybody who forks.

pub(crate) mod passthrough;
pub(crate) mod slow;

mod nodes;
mod pace;

use std::{
    ffi::CStr,
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use fuser::{Config, Filesystem, Session, SessionACL};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FlockOperation, MemfdFlags, fcntl_lock, memfd_create},
    io::{fcntl_dupfd_cloexec, retry_on_intr},
    process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

use crate::{
    LabError,
    apart::{all_but, stand_apart},
};

/// Threads that take requests. More only cost memory: the delays of a slow device are not waited for in them.
const THREADS: usize = 8;

/// Of include/uapi/linux/prctl.h, since Linux 5.6.
const PR_SET_IO_FLUSHER: libc::c_int = 57;

/// Where file systems are served.
const DEVICE: &str = "/dev/fuse";

/// A new connection to the kernel.
pub(crate) fn connect() -> Result<OwnedFd, LabError> {
    let opened = File::options().read(true).write(true).open(DEVICE);
    opened.map(Into::into).map_err(|error| LabError::NoFuse { problem: error.to_string() })
}

/// What the kernel must be told when it mounts what is served by `connection`.
pub(crate) fn mount_options(connection: &OwnedFd) -> [(&'static str, String); 4] {
    [
        ("fd", connection.as_raw_fd().to_string()),
        ("rootmode", "40000".into()),
        ("user_id", "0".into()),
        ("group_id", "0".into()),
    ]
}

/// The process that serves a file system, seen from the one that uses it. To be dropped after the file system.
#[derive(Debug)]
pub(crate) struct Server {
    pid: Pid,
    control: Arc<Control>,
    _life: OwnedFd,
}

/// A word to a server, and the word back.
#[derive(Debug)]
pub(crate) struct Control(Mutex<UnixStream>);

impl Control {
    /// Tells the server something; returns once it has heard it.
    pub fn tell(&self, word: u8) -> io::Result<()> {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stream.write_all(&[word])?;
        stream.read_exact(&mut [0])
    }
}

/// Who hears each word that a server is told, and `None` when nobody is left to tell any.
pub(crate) type Hear = Arc<dyn Fn(Option<u8>) + Send + Sync>;

/// An answer that takes longer than this will not come.
const PATIENCE: Duration = Duration::from_secs(10);

impl Server {
    /// Starts a server for what is mounted on `connection`, and waits until it answers.
    ///
    /// `outside` is the mount namespace to stand in. `make` is called in the new process, which has no other descriptors
    /// than `kept`.
    pub fn start<F: Filesystem>(
        name: &CStr,
        connection: OwnedFd,
        outside: BorrowedFd<'_>,
        kept: &[BorrowedFd<'_>],
        make: impl FnOnce() -> io::Result<(F, Hear)>,
    ) -> Result<Self, LabError> {
        let failed = |error: io::Error| LabError::io("serve", DEVICE, error);
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        ours.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        let life = memfd_create("inodyne-life", MemfdFlags::CLOEXEC).map_err(|errno| failed(errno.into()))?;
        fcntl_lock(&life, FlockOperation::NonBlockingLockExclusive).map_err(|errno| failed(errno.into()))?;
        let kept = kept.iter().map(AsRawFd::as_raw_fd);
        let own = [life.as_raw_fd(), connection.as_raw_fd(), outside.as_raw_fd(), theirs.as_raw_fd()];
        let closed = all_but(kept.chain(own).collect());
        // SAFETY: the child uses copies of what was ready before, closes what is not its own, and never returns.
        let pid = match unsafe { libc::fork() } {
            -1 => return Err(failed(io::Error::last_os_error())),
            0 => {
                // SAFETY: just forked, and what is closed is none of what is kept.
                unsafe { stand_apart(&closed, name) };
                // A panic must not run the destructors of the parent's copies: those unmount.
                let served = catch_unwind(AssertUnwindSafe(|| serve(connection, outside, theirs, &life, make)));
                // SAFETY: ends the copy, and nothing else.
                unsafe { libc::_exit(i32::from(!matches!(served, Ok(Ok(()))))) }
            }
            pid => Pid::from_raw(pid).unwrap_or(Pid::INIT),
        };
        drop((connection, theirs));
        let server = Self { pid, control: Arc::new(Control(Mutex::new(ours))), _life: life };
        let ready = server.control.0.lock().unwrap_or_else(PoisonError::into_inner).read_exact(&mut [0]);
        ready.map_err(|_| failed(io::Error::other("the server has ended at once")))?;
        Ok(server)
    }

    /// By what it can be told something.
    pub fn control(&self) -> &Arc<Control> {
        &self.control
    }
}

impl Drop for Server {
    /// Waits for its end, so that what it had open is closed. One whose file system is still in use goes on until it is not.
    fn drop(&mut self) {
        let stream = self.control.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = stream.shutdown(std::net::Shutdown::Both);
        let Ok(process) = pidfd_open(self.pid, PidfdFlags::empty()) else { return };
        let timeout = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
        let _ = retry_on_intr(|| poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&timeout)));
        let _ = waitpid(Some(self.pid), WaitOptions::NOHANG);
    }
}

/// The server's whole life.
fn serve<F: Filesystem>(
    connection: OwnedFd,
    outside: BorrowedFd<'_>,
    mut control: UnixStream,
    life: &OwnedFd,
    make: impl FnOnce() -> io::Result<(F, Hear)>,
) -> io::Result<()> {
    move_into_link_name_space(outside.as_fd(), Some(LinkNameSpaceType::Mount))?;
    // SAFETY: no memory is passed.
    unsafe {
        // Memory that this process asks for must not be waited for by writing to what it serves. Inherited by threads.
        libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
        // Answers are due to the microsecond.
        libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0);
        // The kernel has applied the user's.
        libc::umask(0);
    }
    let (file_system, hear) = make()?;
    let mut config = Config::default();
    config.acl = SessionACL::All;
    config.n_threads = Some(THREADS);
    let session = Session::from_fd(file_system, connection, SessionACL::All, config)?;
    control.write_all(b".")?;
    let (listener, life) = (hear.clone(), fcntl_dupfd_cloexec(life, 0)?);
    thread::Builder::new().spawn(move || {
        let mut word = [0];
        while let Ok(()) = control.read_exact(&mut word) {
            listener(Some(word[0]));
            if control.write_all(&word).is_err() {
                break;
            }
        }
    })?;
    thread::Builder::new().spawn(move || {
        let _ = retry_on_intr(|| fcntl_lock(&life, FlockOperation::LockExclusive));
        hear(None);
    })?;
    session.run()
}
