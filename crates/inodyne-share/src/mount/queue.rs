//! What waits for threads to do it.

use std::{
    collections::{HashSet, VecDeque},
    hash::Hash,
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

/// The same, except that what is already waiting is not added again.
pub(super) struct Distinct<T> {
    queue: Queue<T>,
    waiting: Mutex<HashSet<T>>,
}

impl<T> Default for Distinct<T> {
    fn default() -> Self {
        Self { queue: Queue::default(), waiting: Mutex::default() }
    }
}

impl<T: Clone + Eq + Hash> Distinct<T> {
    fn waiting(&self) -> MutexGuard<'_, HashSet<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn put(&self, value: T) {
        self.put_up_to(value, usize::MAX);
    }

    /// The same, unless that many are waiting.
    pub fn put_up_to(&self, value: T, most: usize) {
        let mut waiting = self.waiting();
        if waiting.len() < most && waiting.insert(value.clone()) {
            self.queue.put(value);
        }
    }

    /// Waits for the next; from now on it can be put again.
    pub fn take(&self) -> T {
        let value = self.queue.take();
        self.waiting().remove(&value);
        value
    }
}
