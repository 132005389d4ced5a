//! Workers and their lanes of tasks: the one scheduler that making, checking and removing share.
//!
//! Each worker has a lane and takes its newest task first: that walks a tree depth-first, so few directories are open
//! at a time. A worker without work steals the oldest task of another lane (the top of a tree, so much work at once),
//! unless the lanes stand for something that must not be shared, such as the allocation groups of XFS. Workers form
//! crews, one for each kind of task; a task only goes to its crew. An idle worker sleeps and is woken only when there is a task for it, so a tree costs a few futex calls, not one a file.
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
    crews: Vec<Crew>,
    /// Workers of the first crew that take tasks; the others rest.
    active: AtomicUsize,
    /// Tasks queued or running; at zero everybody goes home.
    open: AtomicUsize,
    stopped: AtomicBool,
    /// Some lanes have no worker.
    shorthanded: AtomicBool,
}

/// Workers that do the same kind of task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crew {
    pub workers: usize,
    /// Whether they take each other's tasks.
    pub steal: bool,
}

/// Which worker: `index` counts within its crew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    pub crew: usize,
    pub index: usize,
}

/// Aligned so that two lanes never share a cache line.
#[repr(align(128))]
struct Lane<T> {
    seat: Seat,
    tasks: Mutex<VecDeque<T>>,
    /// Set while the lane's worker sleeps or is about to.
    idle: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl<T: Send> Pool<T> {
    /// As many lanes as workers.
    pub fn new(crews: &[Crew]) -> Self {
        let mut lanes = Vec::new();
        for (crew, Crew { workers, .. }) in crews.iter().enumerate() {
            lanes.extend((0..*workers).map(|index| Lane {
                seat: Seat { crew, index },
                tasks: Mutex::default(),
                idle: AtomicBool::new(false),
                thread: Mutex::default(),
            }));
        }
        assert!(!lanes.is_empty(), "a pool needs a worker");
        let active = AtomicUsize::new(usize::MAX);
        Self {
            lanes,
            crews: crews.to_vec(),
            active,
            open: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            shorthanded: AtomicBool::new(false),
        }
    }

    /// Lets only so many workers of the first crew take tasks, at least one. The others rest after their current task;
    /// what is in their lanes is stolen, so that crew must be one that steals.
    pub fn set_active(&self, workers: usize) {
        debug_assert!(self.crews[0].steal);
        self.active.store(workers.max(1), Ordering::SeqCst);
        self.wake_all();
    }

    /// Queues a task, to be done before what is already in that lane. The seat's index wraps around in its crew.
    pub fn push(&self, seat: Seat, task: T) {
        self.open.fetch_add(1, Ordering::SeqCst);
        let Crew { workers, steal } = self.crews[seat.crew];
        let crew = self.crew(seat.crew);
        let lane = &crew[seat.index % workers];
        lock(&lane.tasks).push_back(task);
        if !lane.wake() && (steal || self.is_shorthanded()) {
            let company = if self.is_shorthanded() { &self.lanes } else { crew };
            let _ = company.iter().any(Lane::wake);
        }
    }

    /// Whether somebody of this crew waits for work.
    pub fn has_idle(&self, crew: usize) -> bool {
        self.crew(crew).iter().any(|lane| lane.idle.load(Ordering::Relaxed))
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

    /// Whether the system gave fewer threads than there are lanes. Those there are then do everybody's work; nobody may wait
    /// for another crew.
    pub fn is_shorthanded(&self) -> bool {
        self.shorthanded.load(Ordering::SeqCst)
    }

    /// Works off the first lane without any other thread, while `go_on` says so; true if that was all there is to do.
    pub fn run_alone<S>(&self, state: &mut S, go_on: impl Fn() -> bool, work: impl Fn(&mut S, T)) -> bool {
        while go_on()
            && !self.is_stopped()
            && let Some(task) = { lock(&self.lanes[0].tasks).pop_back() }
        {
            work(state, task);
            self.open.fetch_sub(1, Ordering::SeqCst);
        }
        self.open.load(Ordering::SeqCst) == 0
    }

    /// Runs `work` for every task, those pushed meanwhile included, on one thread a lane, each with what `start` made. With
    /// fewer threads if there are no more to be had, at worst on the caller's alone.
    pub fn run<S>(&self, start: impl Fn(Seat) -> S + Sync, work: impl Fn(&mut S, T) + Sync) {
        let (start, work) = (&start, &work);
        thread::scope(|scope| {
            for lane in &self.lanes[1..] {
                if thread::Builder::new().spawn_scoped(scope, move || self.worker(lane, start, work)).is_err() {
                    self.shorthanded.store(true, Ordering::SeqCst);
                    self.wake_all();
                    break;
                }
            }
            self.worker(&self.lanes[0], start, work);
        });
    }

    fn worker<S>(&self, lane: &Lane<T>, start: impl Fn(Seat) -> S, work: impl Fn(&mut S, T)) {
        *lock(&lane.thread) = Some(thread::current());
        // A panic must not leave the others waiting for a task that never ends.
        let going_home = StopOnPanic(self);
        let mut state = start(lane.seat);
        while let Some(task) = self.next(lane) {
            work(&mut state, task);
            if self.open.fetch_sub(1, Ordering::SeqCst) == 1 {
                self.wake_all();
            }
        }
        drop(going_home);
    }

    fn next(&self, lane: &Lane<T>) -> Option<T> {
        loop {
            if self.is_stopped() {
                return None;
            }
            if lane.seat.crew == 0 && lane.seat.index >= self.active.load(Ordering::SeqCst) {
                if self.open.load(Ordering::SeqCst) == 0 {
                    return None;
                }
                thread::park();
                continue;
            }
            if let Some(task) = self.take(lane) {
                return Some(task);
            }
            // Announce first, then look again: whoever pushes in between sees the announcement.
            lane.idle.store(true, Ordering::SeqCst);
            let task = self.take(lane);
            if task.is_none() && self.open.load(Ordering::SeqCst) != 0 && !self.stopped.load(Ordering::SeqCst) {
                thread::park();
            }
            lane.idle.store(false, Ordering::SeqCst);
            if task.is_some() {
                return task;
            }
            if self.open.load(Ordering::SeqCst) == 0 {
                return None;
            }
        }
    }

    fn take(&self, lane: &Lane<T>) -> Option<T> {
        if self.is_shorthanded() {
            // What was handed over comes first, so that it does not pile up.
            let handed_over = &self.lanes[self.crews[0].workers..];
            if let Some(task) = handed_over.iter().find_map(|other| lock(&other.tasks).pop_front()) {
                return Some(task);
            }
        }
        // Those who are handed work keep its order: neighbours on the disk then go one after the other. The first crew makes
        // its own, and going deep first keeps little of it waiting.
        let own = if lane.seat.crew == 0 { lock(&lane.tasks).pop_back() } else { lock(&lane.tasks).pop_front() };
        if let Some(task) = own {
            return Some(task);
        }
        if !self.crews[lane.seat.crew].steal {
            return None;
        }
        let (before, after) = self.crew(lane.seat.crew).split_at(lane.seat.index);
        after[1..].iter().chain(before).find_map(|other| lock(&other.tasks).pop_front())
    }

    fn crew(&self, crew: usize) -> &[Lane<T>] {
        let first = self.crews[..crew].iter().map(|crew| crew.workers).sum();
        &self.lanes[first..][..self.crews[crew].workers]
    }

    fn wake_all(&self) {
        for lane in &self.lanes {
            lane.idle.store(false, Ordering::SeqCst);
            if let Some(thread) = &*lock(&lane.thread) {
                thread.unpark();
            }
        }
    }
}

impl<T> Lane<T> {
    /// Wakes this lane's worker if it sleeps.
    fn wake(&self) -> bool {
        let slept = self.idle.load(Ordering::SeqCst) && self.idle.swap(false, Ordering::SeqCst);
        if slept && let Some(thread) = &*lock(&self.thread) {
            thread.unpark();
        }
        slept
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

    fn seat(index: usize) -> Seat {
        Seat { crew: 0, index }
    }

    /// A task of weight n pushes n tasks of weight n - 1.
    fn count(workers: usize, steal: bool) -> u64 {
        let pool = Pool::new(&[Crew { workers, steal }]);
        let done = AtomicU64::new(0);
        pool.push(seat(0), 6u64);
        pool.run(
            |seat| seat,
            |seat, weight| {
                done.fetch_add(1, Ordering::Relaxed);
                for step in 0..weight {
                    pool.push(Seat { index: seat.index + step as usize, ..*seat }, weight - 1);
                }
            },
        );
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
    fn lanes_are_kept_without_stealing_and_crews_always() {
        let pool = Pool::new(&[Crew { workers: 4, steal: false }, Crew { workers: 2, steal: true }]);
        (0..100).for_each(|task| pool.push(seat(task), (0, task)));
        (0..100).for_each(|task| pool.push(Seat { crew: 1, index: 0 }, (1, task)));
        pool.run(|seat| seat, |seat, (crew, task)| assert!(crew == seat.crew && (crew == 1 || task % 4 == seat.index)));
    }

    #[test]
    fn resting_workers_do_nothing_and_go_home() {
        let pool = Pool::new(&[Crew { workers: 4, steal: true }]);
        (0..100).for_each(|task| pool.push(seat(task), task));
        pool.set_active(2);
        pool.run(|seat| seat, |seat, _| assert!(seat.index < 2));
        (0..100).for_each(|task| pool.push(seat(task), task));
        pool.run(|seat| seat, |_, task| pool.set_active(task % 4));
    }

    #[test]
    fn one_thread_can_begin_and_the_others_go_on() {
        let pool = Pool::new(&[Crew { workers: 4, steal: true }]);
        (0..100).for_each(|task| pool.push(seat(0), task));
        let mut alone = Vec::new();
        assert!(!pool.run_alone(&mut alone, || pool.open.load(Ordering::Relaxed) > 90, |seen, task| seen.push(task)));
        assert_eq!(alone, (90..100).rev().collect::<Vec<_>>());
        pool.run(|seat| seat, |_, task| assert!(task < 90));
        assert!(pool.run_alone(&mut (), || true, |(), _| {}));
    }

    #[test]
    fn stopping_leaves_the_rest() {
        let pool = Pool::new(&[Crew { workers: 2, steal: true }]);
        (0..100).for_each(|task| pool.push(seat(0), task));
        let done = AtomicU64::new(0);
        pool.run(
            |_| (),
            |(), _| {
                done.fetch_add(1, Ordering::Relaxed);
                pool.stop();
            },
        );
        assert!(done.into_inner() <= 2);
    }

    #[test]
    fn those_there_are_do_the_work_of_those_there_are_not() {
        let pool = Pool::new(&[Crew { workers: 2, steal: true }, Crew { workers: 3, steal: false }]);
        pool.shorthanded.store(true, Ordering::SeqCst);
        (0..100).for_each(|task| pool.push(Seat { crew: task % 2, index: task }, task));
        let done = AtomicU64::new(0);
        pool.worker(&pool.lanes[0], |seat| seat, |_, _| _ = done.fetch_add(1, Ordering::Relaxed));
        assert_eq!(done.into_inner(), 100);
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let pool = Pool::new(&[Crew { workers: 2, steal: true }]);
        pool.push(seat(0), ());
        let run = std::panic::AssertUnwindSafe(|| pool.run(|_| (), |(), ()| panic!("seen")));
        assert!(std::panic::catch_unwind(run).is_err());
    }
}
