//! Which signals guards and helper processes ignore, which were ignored before inodyne began, those that it reads itself, and those that
//! ask it to end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};

/// Signals that a terminal sends to everybody at it, or that a user sends to the whole process group: the command acts on
/// them, not its guard or a file system's server. Those end when their work does.
pub(crate) const NOT_FOR_HELPERS: [Signal; 8] = [
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGHUP,
    Signal::SIGTERM,
    Signal::SIGTSTP,
    Signal::SIGTTIN,
    Signal::SIGTTOU,
    Signal::SIGPIPE,
];

/// Ignores them in this process. One system call each; nothing is allocated, so a process that was just forked may do so.
pub(crate) fn ignore_those_not_for_helpers() {
    for each in NOT_FOR_HELPERS {
        // SAFETY: no handler is installed. The call fails only for signals that do not exist.
        unsafe { libc::signal(each as libc::c_int, libc::SIG_IGN) };
    }
}

/// Whether the end of children was ignored when [`hear_of_children`] was called.
static WERE_CHILDREN_IGNORED: AtomicBool = AtomicBool::new(false);

/// Whoever starts this process may ignore SIGCHLD, which it inherits: its children would vanish without a status. From here on they do
/// not; commands are still started the way whoever started this wants.
pub fn hear_of_children() {
    if is_ignored(Signal::SIGCHLD).unwrap_or(false) {
        WERE_CHILDREN_IGNORED.store(true, Relaxed);
        // SAFETY: no handler is installed.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    }
}

/// Whether a broken pipe was ignored before Rust's runtime began, which ignores it in every program, before `main`.
static WAS_PIPE_IGNORED: AtomicBool = AtomicBool::new(false);

/// Whether a file at its size limit was ignored before [`take_size_limits_as_errors`] was called.
static WAS_SIZE_IGNORED: AtomicBool = AtomicBool::new(false);

/// Only system calls are made: nothing of Rust's runtime is there yet.
extern "C" fn ask_what_is_ignored() {
    WAS_PIPE_IGNORED.store(is_ignored(Signal::SIGPIPE).unwrap_or(false), Relaxed);
    WAS_SIZE_IGNORED.store(is_ignored(Signal::SIGXFSZ).unwrap_or(false), Relaxed);
}

/// A write beyond the limit for the size of files (`ulimit -f`) fails with EFBIG in this process, and does not end it before it has
/// cleaned up. Commands are still started the way whoever started this wants.
pub fn take_size_limits_as_errors() {
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// The C library calls what this section points at, before the runtime begins: Rust's own library learns of its arguments that way.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_THE_RUNTIME: extern "C" fn() = ask_what_is_ignored;

/// Whether this process ignores a signal.
///
/// # Errors
/// The kernel does not know the signal.
pub fn is_ignored(signal: Signal) -> io::Result<bool> {
    // SAFETY: plain old data, valid when zero.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is changed, and the pointer is valid for writing.
    if unsafe { libc::sigaction(signal as libc::c_int, std::ptr::null(), &mut action) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(action.sa_sigaction == libc::SIG_IGN)
}

/// Signals by which a terminal, a user or a service manager asks a program to end.
pub const ASKING_TO_END: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// Whether one of [`ASKING_TO_END`] has arrived that a [`SignalReader`] is still to read: for work that takes a long time and whose result
/// nobody would want any more. Without a reader they end the process as they come.
pub fn is_asked_to_end() -> bool {
    // SAFETY: plain old data, valid when zero.
    let mut pending: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid for writing.
    unsafe { libc::sigpending(&mut pending) };
    // SAFETY: the set is valid, and the numbers are those of signals.
    ASKING_TO_END.iter().any(|signal| unsafe { libc::sigismember(&pending, *signal as libc::c_int) } == 1)
}

/// Signals that are read from a descriptor, from now on until this is dropped. Before and after, they do what they do to any program.
pub struct SignalReader {
    signals: SignalFd,
    before: SigSet,
}

impl SignalReader {
    /// Takes over these signals from their default actions, except for those that are ignored (`nohup`, a background job).
    ///
    /// # Errors
    /// The system does not allow that.
    pub fn of(signals: impl IntoIterator<Item = Signal>) -> io::Result<SignalReader> {
        let set: SigSet = signals.into_iter().filter(|signal| !is_ignored(*signal).unwrap_or(false)).collect();
        inherited_mask();
        let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let signals = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(SignalReader { signals, before })
    }

    /// The next one that has arrived; none where none has.
    pub fn arrived(&mut self) -> Option<siginfo> {
        self.signals.read_signal().ok().flatten()
    }
}

impl Drop for SignalReader {
    fn drop(&mut self) {
        // The mask is one that was there before.
        let _ = self.before.thread_set_mask();
    }
}

impl AsFd for SignalReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }
}

/// Unblocks all signals in this process: what [`SignalReader`] blocks is inherited through `execve`, and a helper is to be ended by any. One
/// system call, so a process that was just forked may do so.
///
/// # Errors
/// None but the kernel's own.
pub fn unblock_all() -> io::Result<()> {
    Ok(SigSet::empty().thread_set_mask()?)
}

/// The signals that whoever started inodyne blocks, as `env --block-signal` does: the command starts with these blocked. Known from the first time that this is asked for: before
/// anything here blocks a signal.
pub(crate) fn inherited_mask() -> SigSet {
    static INHERITED: OnceLock<SigSet> = OnceLock::new();
    *INHERITED.get_or_init(|| SigSet::thread_get_mask().unwrap_or(SigSet::empty()))
}

/// The signals that whoever started inodyne wants to be ignored (`nohup`, a shell's background job, systemd and CI runners, which ignore
/// SIGPIPE), so that the command can be started that way too.
pub(crate) fn inherited_ignores() -> io::Result<Vec<Signal>> {
    let mut ignored = Vec::new();
    for each in Signal::iterator() {
        let was_ignored = match each {
            // By this process they always are.
            Signal::SIGPIPE => WAS_PIPE_IGNORED.load(Relaxed),
            Signal::SIGXFSZ => WAS_SIZE_IGNORED.load(Relaxed),
            Signal::SIGCHLD => is_ignored(each)? || WERE_CHILDREN_IGNORED.load(Relaxed),
            _ => is_ignored(each)?,
        };
        if was_ignored {
            ignored.push(each);
        }
    }
    Ok(ignored)
}
