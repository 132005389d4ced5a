//! Keeps readers from running too far ahead of removers.
//!
//! Without it, the whole of a wide tree would be in memory, and open, before the first thousand files are gone.

use std::{
    sync::{
        Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::sync::lock;

/// Counts what is handed over and not yet taken.
pub(super) struct Gate {
    waiting: AtomicUsize,
    limit: usize,
    door: Mutex<()>,
    opened: Condvar,
}

impl Gate {
    pub fn new(limit: usize) -> Self {
        Self { waiting: AtomicUsize::new(0), limit: limit.max(1), door: Mutex::default(), opened: Condvar::new() }
    }

    /// One more was handed over.
    pub fn put(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    /// One was taken. Readers are woken when half is done, in one go instead of one by one.
    pub fn take(&self) {
        if self.waiting.fetch_sub(1, Ordering::AcqRel) == self.limit / 2 + 1 {
            drop(lock(&self.door));
            self.opened.notify_all();
        }
    }

    /// Waits while too much is handed over, but no longer once `is_stopped`.
    pub fn wait(&self, is_stopped: impl Fn() -> bool) {
        if self.waiting.load(Ordering::Relaxed) < self.limit {
            return;
        }
        let mut door = lock(&self.door);
        while self.waiting.load(Ordering::Acquire) > self.limit / 2 && !is_stopped() {
            // The time limit is for the stop only, which has nobody to notify.
            let waited = self.opened.wait_timeout(door, Duration::from_millis(50));
            door = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_reader_waits_for_removers_and_for_no_one_when_stopped() {
        let gate = Gate::new(4);
        (0..4).for_each(|_| gate.put());
        gate.wait(|| true);
        thread::scope(|scope| {
            scope.spawn(|| gate.wait(|| false));
            (0..2).for_each(|_| gate.take());
        });
        assert_eq!(gate.waiting.load(Ordering::Relaxed), 2);
        gate.wait(|| false);
    }
}
