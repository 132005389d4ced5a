//! The process that serves a file system, and how long it lives.
//!
//! It is forked here and moves out of the user's private mount namespace: it holds none of the mounts there, so it is still
//! there to answer while the last process of that namespace goes, by whatever signal, and the kernel unmounts everything.
//! Nobody has to tell it to end. Once nothing uses its file system, reading the next request fails, and it ends: so it can
//! neither be left over nor be missing. The process that uses it keeps no descriptor of the connection: should the server be
//! killed, the kernel fails what is asked of it instead of waiting for ever.
//!
//! It learns that its user has ended from a lock, which the kernel releases as soon as a process dies. The end of a socket
//! would come too late: the kernel closes it after it has unmounted, which may take as long as a slow device likes.
//!
//! The server runs Rust code after a fork, without an exec: this library has no program of its own to execute. glibc keeps
//! its allocator usable for that; no lock of ours is held by anybody who forks.

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
use inodyne_launch::{all_except, detach};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FlockOperation, MemfdFlags, fcntl_lock, memfd_create},
    io::{fcntl_dupfd_cloexec, retry_on_intr},
    process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

/// Threads that take requests. More only cost memory: the delays of a slow device are not waited for in them.
const THREADS: usize = 8;

/// From include/uapi/linux/prctl.h, since Linux 5.6.
const PR_SET_IO_FLUSHER: libc::c_int = 57;

/// Where connections come from.
pub const DEVICE: &str = "/dev/fuse";

/// A new connection to the kernel.
///
/// # Errors
/// [`DEVICE`] is not there (no module `fuse`, a container without the device), or may not be opened.
pub fn connect() -> io::Result<OwnedFd> {
    File::options().read(true).write(true).open(DEVICE).map(Into::into)
}

/// What the kernel must be told when it mounts what is served by `connection`: keys and values for `fsconfig`.
pub fn mount_options(connection: &OwnedFd) -> [(&'static str, String); 4] {
    [
        ("fd", connection.as_raw_fd().to_string()),
        ("rootmode", "40000".into()),
        ("user_id", "0".into()),
        ("group_id", "0".into()),
    ]
}

/// The process that serves a file system, seen from the one that uses it. To be dropped after the file system.
#[derive(Debug)]
pub struct Server {
    pid: Pid,
    control: Arc<Control>,
    _life: OwnedFd,
}

/// The channel through which a server is told something. A command is one byte; the file system gives it its meaning.
#[derive(Debug)]
pub struct Control(Mutex<UnixStream>);

impl Control {
    /// Sends the server a command; returns once it has been carried out.
    ///
    /// # Errors
    /// The server has ended, or does not answer.
    pub fn send(&self, command: u8) -> io::Result<()> {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stream.write_all(&[command])?;
        stream.read_exact(&mut [0])
    }
}

/// Called in the server for each command, and with `None` when nobody is left to send any.
pub type OnCommand = Arc<dyn Fn(Option<u8>) + Send + Sync>;

/// An answer that takes longer than this will not come.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Tells the process that uses a server that it is ready, and listens to that process from then on.
pub struct Ready {
    control: UnixStream,
    life: OwnedFd,
}

impl Ready {
    /// To be called by the server's work once requests can be answered.
    ///
    /// # Errors
    /// The process that uses it has ended, or no thread can be started.
    pub fn tell(self, on_command: OnCommand) -> io::Result<()> {
        let Self { mut control, life } = self;
        control.write_all(b".")?;
        let listener = on_command.clone();
        thread::Builder::new().spawn(move || {
            let mut command = [0];
            while let Ok(()) = control.read_exact(&mut command) {
                listener(Some(command[0]));
                if control.write_all(&command).is_err() {
                    break;
                }
            }
        })?;
        thread::Builder::new().spawn(move || {
            let _ = retry_on_intr(|| fcntl_lock(&life, FlockOperation::LockExclusive));
            on_command(None);
        })?;
        Ok(())
    }
}

impl Server {
    /// Starts a server for what is mounted on `connection`, and waits until it answers.
    ///
    /// `name` is what `ps` shows. `outside` is the mount namespace that it moves to. `make` is called in the new process, which has
    /// no other descriptors than `kept`.
    ///
    /// # Errors
    /// No process can be forked, or it ended before it answered.
    pub fn start<F: Filesystem>(
        name: &CStr,
        connection: OwnedFd,
        outside: BorrowedFd<'_>,
        kept: &[BorrowedFd<'_>],
        make: impl FnOnce() -> io::Result<(F, OnCommand)>,
    ) -> io::Result<Self> {
        let number = connection.as_raw_fd();
        // SAFETY: it is open for as long as the server's work has it, and here until the fork.
        let kept = [kept, &[unsafe { BorrowedFd::borrow_raw(number) }]].concat();
        Self::run(name, outside, &kept, move |ready| {
            let (file_system, on_command) = make()?;
            let mut config = Config::default();
            config.acl = SessionACL::All;
            config.n_threads = Some(THREADS);
            let session = Session::from_fd(file_system, connection, SessionACL::All, config)?;
            ready.tell(on_command)?;
            session.run()
        })
    }

    /// Starts a process that does `work`, and waits until the work says that it is ready. The process ends when the work does: the work must
    /// see for itself that nobody uses what it serves. Otherwise as [`Server::start`].
    ///
    /// # Errors
    /// No process can be forked, or it ended before it was ready.
    pub fn run(
        name: &CStr,
        outside: BorrowedFd<'_>,
        kept: &[BorrowedFd<'_>],
        work: impl FnOnce(Ready) -> io::Result<()>,
    ) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(TIMEOUT))?;
        let life = memfd_create("inodyne-life", MemfdFlags::CLOEXEC)?;
        fcntl_lock(&life, FlockOperation::NonBlockingLockExclusive)?;
        let kept = kept.iter().map(AsRawFd::as_raw_fd);
        let own = [life.as_raw_fd(), outside.as_raw_fd(), theirs.as_raw_fd()];
        let closed = all_except(kept.chain(own).collect());
        // SAFETY: the child uses copies of what was ready before, closes what is not its own, and never returns.
        let pid = match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()),
            0 => {
                // SAFETY: just forked, and what is closed is none of what is kept.
                unsafe { detach(&closed, name) };
                // A panic must not run the destructors of the parent's copies: those unmount.
                let served = catch_unwind(AssertUnwindSafe(|| serve(outside, theirs, &life, work)));
                // SAFETY: ends the copy, and nothing else.
                unsafe { libc::_exit(i32::from(!matches!(served, Ok(Ok(()))))) }
            }
            pid => Pid::from_raw(pid).unwrap_or(Pid::INIT),
        };
        drop((work, theirs));
        let server = Self { pid, control: Arc::new(Control(Mutex::new(ours))), _life: life };
        let ready = server.control.0.lock().unwrap_or_else(PoisonError::into_inner).read_exact(&mut [0]);
        ready.map_err(|_| io::Error::other("the server has ended at once"))?;
        Ok(server)
    }

    /// The channel through which it can be told something, for as long as it lives.
    pub fn control(&self) -> &Arc<Control> {
        &self.control
    }
}

impl Drop for Server {
    /// Waits for its end, so that what it had open is closed. One whose file system is still in use carries on until it is not.
    fn drop(&mut self) {
        let stream = self.control.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = stream.shutdown(std::net::Shutdown::Both);
        let Ok(process) = pidfd_open(self.pid, PidfdFlags::empty()) else { return };
        let timeout = Timespec { tv_sec: TIMEOUT.as_secs() as i64, tv_nsec: 0 };
        let _ = retry_on_intr(|| poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&timeout)));
        let _ = waitpid(Some(self.pid), WaitOptions::NOHANG);
    }
}

/// The server's whole life.
fn serve(
    outside: BorrowedFd<'_>,
    control: UnixStream,
    life: &OwnedFd,
    work: impl FnOnce(Ready) -> io::Result<()>,
) -> io::Result<()> {
    move_into_link_name_space(outside.as_fd(), Some(LinkNameSpaceType::Mount))?;
    // SAFETY: no memory is passed.
    unsafe {
        // Reclaiming memory for this process must not wait for writes to what it serves. Inherited by threads.
        libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
        // Answers are due to the microsecond.
        libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0);
        // The kernel has applied the user's umask.
        libc::umask(0);
    }
    work(Ready { control, life: fcntl_dupfd_cloexec(life, 0)? })
}
