//! Workers and their lanes of tasks: the one scheduler that making, checking and removing share.
//!
//! Each worker has a lane and takes its newest task first: that walks a tree depth-first, so few directories are open
//! at a time. A worker without work steals the oldest task of another lane (the top of a tree, so much work at once),
//! unless the lanes stand for something that must not be shared, such as the allocation groups of XFS. An idle worker
//! sleeps and is woken only when there is a task for it, so a tree costs a few futex calls, not one a file.
//!
//! The pool ends when no task is queued or running. It knows nothing about files.

use std::{
    collections::VecDeque,
    num::NonZero,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, Thread},
};

/// Tasks in lanes, one lane a worker.
pub(crate) struct Pool<T> {
    lanes: Vec<Lane<T>>,
    steal: bool,
    /// Tasks queued or running; at zero everybody goes home.
    open: AtomicUsize,
    stopped: AtomicBool,
}

/// Aligned so that two lanes never share a cache line.
#[repr(align(128))]
struct Lane<T> {
    tasks: Mutex<VecDeque<T>>,
    /// Set while the lane's worker sleeps or is about to.
    idle: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl<T: Send> Pool<T> {
    /// As many lanes as workers; `steal` lets workers help each other.
    pub fn new(workers: usize, steal: bool) -> Self {
        let lane = || Lane { tasks: Mutex::default(), idle: AtomicBool::new(false), thread: Mutex::default() };
        Self {
            lanes: (0..workers.max(1)).map(|_| lane()).collect(),
            steal,
            open: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    /// Queues a task on a lane, to be done before what is already there.
    pub fn push(&self, lane: usize, task: T) {
        self.open.fetch_add(1, Ordering::SeqCst);
        let lane = lane % self.lanes.len();
        lock(&self.lanes[lane].tasks).push_back(task);
        if !self.wake(lane) && self.steal {
            let _ = (0..self.lanes.len()).any(|other| self.wake(other));
        }
    }

    /// Drops everything queued and sends the workers home after their current task.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.wake_all();
    }

    /// Whether [`Self::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Runs `work` for every task, those pushed meanwhile included, on one thread a lane. `work` gets the lane's number.
    pub fn run(&self, work: impl Fn(usize, T) + Sync) {
        let work = &work;
        thread::scope(|scope| {
            for lane in 1..self.lanes.len() {
                scope.spawn(move || self.worker(lane, work));
            }
            self.worker(0, work);
        });
    }

    fn worker(&self, lane: usize, work: impl Fn(usize, T)) {
        *lock(&self.lanes[lane].thread) = Some(thread::current());
        // A panic must not leave the others waiting for a task that never ends.
        let going_home = StopOnPanic(self);
        while let Some(task) = self.next(lane) {
            work(lane, task);
            if self.open.fetch_sub(1, Ordering::SeqCst) == 1 {
                self.wake_all();
            }
        }
        drop(going_home);
    }

    fn next(&self, lane: usize) -> Option<T> {
        let own = &self.lanes[lane];
        loop {
            if self.is_stopped() {
                return None;
            }
            if let Some(task) = self.take(lane) {
                return Some(task);
            }
            // Announce first, then look again: whoever pushes in between sees the announcement.
            own.idle.store(true, Ordering::SeqCst);
            let task = self.take(lane);
            if task.is_none() && self.open.load(Ordering::SeqCst) != 0 && !self.stopped.load(Ordering::SeqCst) {
                thread::park();
            }
            own.idle.store(false, Ordering::SeqCst);
            if task.is_some() {
                return task;
            }
            if self.open.load(Ordering::SeqCst) == 0 {
                return None;
            }
        }
    }

    fn take(&self, lane: usize) -> Option<T> {
        if let Some(task) = lock(&self.lanes[lane].tasks).pop_back() {
            return Some(task);
        }
        if !self.steal {
            return None;
        }
        let others = (1..self.lanes.len()).map(|step| (lane + step) % self.lanes.len());
        others.into_iter().find_map(|other| lock(&self.lanes[other].tasks).pop_front())
    }

    /// Wakes the worker of `lane` if it sleeps.
    fn wake(&self, lane: usize) -> bool {
        let lane = &self.lanes[lane];
        let slept = lane.idle.load(Ordering::SeqCst) && lane.idle.swap(false, Ordering::SeqCst);
        if slept && let Some(thread) = &*lock(&lane.thread) {
            thread.unpark();
        }
        slept
    }

    fn wake_all(&self) {
        for lane in 0..self.lanes.len() {
            self.wake(lane);
        }
    }
}

struct StopOnPanic<'a, T: Send>(&'a Pool<T>);

impl<T: Send> Drop for StopOnPanic<'_, T> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

/// Locks a mutex that no panicking thread can leave in a half-changed state.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Processors this process may use.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// A task of weight n pushes n tasks of weight n - 1.
    fn count(workers: usize, steal: bool) -> u64 {
        let pool = Pool::new(workers, steal);
        let done = AtomicU64::new(0);
        pool.push(0, 6u64);
        pool.run(|lane, weight| {
            done.fetch_add(1, Ordering::Relaxed);
            for step in 0..weight {
                pool.push(lane + step as usize, weight - 1);
            }
        });
        done.into_inner()
    }

    #[test]
    fn every_task_runs_once() {
        for workers in [1, 2, 3, 8] {
            for _ in 0..20 {
                assert_eq!((count(workers, true), count(workers, false)), (1957, 1957));
            }
        }
    }

    #[test]
    fn lanes_are_kept_without_stealing() {
        let pool = Pool::new(4, false);
        (0..100).for_each(|task| pool.push(task % 4, task));
        pool.run(|lane, task| assert_eq!(task % 4, lane));
    }

    #[test]
    fn stopping_leaves_the_rest() {
        let pool = Pool::new(2, true);
        (0..100).for_each(|task| pool.push(0, task));
        let done = AtomicU64::new(0);
        pool.run(|_, _| {
            done.fetch_add(1, Ordering::Relaxed);
            pool.stop();
        });
        assert!(done.into_inner() <= 2);
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let pool = Pool::new(2, true);
        pool.push(0, ());
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pool.run(|_, ()| panic!("seen"))));
        assert!(result.is_err());
    }
}
