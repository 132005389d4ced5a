//! What waits for threads to do it.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

/// What waits for threads.
pub(super) struct Queue<T>(Mutex<VecDeque<T>>, Condvar);

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self(Mutex::default(), Condvar::new())
    }
}

impl<T> Queue<T> {
    pub fn put(&self, value: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(value);
        self.1.notify_one();
    }

    /// All that is there.
    pub fn take_all(&self) -> VecDeque<T> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for the next.
    pub fn take(&self) -> T {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(value) = queue.pop_front() {
                return value;
            }
            queue = self.1.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The same, of nodes, where one that waits already is not put again.
#[derive(Default)]
pub(super) struct Distinct {
    nodes: Queue<u64>,
    waiting: Mutex<HashSet<u64>>,
}

impl Distinct {
    fn waiting(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn put(&self, node: u64) {
        if self.waiting().insert(node) {
            self.nodes.put(node);
        }
    }

    /// Waits for the next; from now on it can be put again.
    pub fn take(&self) -> u64 {
        let node = self.nodes.take();
        self.waiting().remove(&node);
        node
    }
}
