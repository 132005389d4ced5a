//! What all operations need of threads: their number, and locks that survive a panic.

use std::{
    num::NonZero,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

/// Locks a mutex that no panicking thread can leave in a half-changed state.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Processors this process may use.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}
