//! Ctrl-C as a clean stop: no thread is cut off in the middle, and what is left is reported.
//!
//! The handler only sets a flag. When the delete has ended, the signal is sent again with its default effect, so that
//! the shell sees a process that died of it, as it does with GNU rm. A second Ctrl-C ends the process at once, unless it
//! comes so soon that it belongs to the first: `timeout` signals both the process and its group.

use std::{
    mem,
    sync::atomic::{AtomicI32, AtomicI64, Ordering},
};

use inodyne_tree::Control;

/// The delete of this process.
pub static CONTROL: Control = Control::new();

static SIGNAL: AtomicI32 = AtomicI32::new(0);

const STOPPING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

extern "C" fn stop(signal: libc::c_int) {
    const SOON_NS: i64 = 500_000_000;
    static FIRST_NS: AtomicI64 = AtomicI64::new(0);
    let now = now_ns();
    match FIRST_NS.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed) {
        Err(first) if now - first > SOON_NS => die_of(signal),
        _ => {}
    }
    SIGNAL.store(signal, Ordering::Relaxed);
    CONTROL.stop();
}

/// A clock that a signal handler may read; never zero.
fn now_ns() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is ours, and the call is safe in signal handlers.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    (now.tv_sec * 1_000_000_000 + now.tv_nsec).max(1)
}

/// Makes interrupting signals a stop. Signals that the parent had set to be ignored stay ignored.
pub fn catch() {
    for signal in STOPPING {
        // SAFETY: both structures are plain data for which zero is valid, and the handler only stores to atomics.
        unsafe {
            let mut before: libc::sigaction = mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut before);
            if before.sa_sigaction != libc::SIG_IGN {
                let mut action: libc::sigaction = mem::zeroed();
                action.sa_sigaction = stop as *const () as usize;
                action.sa_flags = libc::SA_RESTART;
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
    }
}

/// Nobody reads what is printed any more: that stops GNU rm, by a signal that the Rust runtime ignores.
pub fn reader_is_gone() {
    stop(libc::SIGPIPE);
}

/// Dies of the signal that asked for the stop, if one did.
pub fn die_of_it() {
    let signal = SIGNAL.load(Ordering::Relaxed);
    if signal != 0 {
        die_of(signal);
    }
}

fn die_of(signal: libc::c_int) {
    // SAFETY: neither restoring a signal's default effect nor raising it has requirements, not even in a handler.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
