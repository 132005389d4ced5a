//! Workers and their queues of tasks: the one scheduler that making, checking and removing share.
//!
//! Each worker has a queue and takes its newest task first: that walks a tree depth-first, so few directories are open
//! at a time. A worker without work steals the oldest task of another queue (the top of a tree, so much work at once),
//! unless the queues stand for something that must not be shared, such as the allocation groups of XFS. Workers form
//! groups, one for each kind of task; a task only goes to its group. An idle worker sleeps and is woken only when there is a task for it, so a
//! tree costs a few futex calls, not one per file. Where all workers share their tasks, each starts the next one once it has got its first
//! task: there is one thread more than had work at the same time, and no more.
//!
//! The pool ends when no task is queued or running. It knows nothing about files.

use std::{collections::VecDeque, sync::PoisonError, sync::atomic::Ordering, thread::Builder, thread::Scope};

use self::sync::{AtomicBool, AtomicUsize, Mutex, MutexGuard, Thread, current, park};

/// What threads synchronise with: the standard library's.
#[cfg(not(loom))]
mod sync {
    pub use std::{
        sync::{
            Mutex, MutexGuard,
            atomic::{AtomicBool, AtomicUsize},
        },
        thread::{Thread, current, park},
    };
}

/// What threads synchronise with: loom's, which tries every order in which they may meet (`make test-loom`).
#[cfg(loom)]
mod sync {
    use std::sync::Arc;

    use loom::sync::Condvar;
    pub use loom::sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize},
    };

    /// A thread that may be parked. loom 0.7 has these too, but there a thread is also woken from waits for a lock or for the end of
    /// another thread, which the real ones do not do.
    #[derive(Clone)]
    pub struct Thread(Arc<(Mutex<bool>, Condvar)>);

    loom::thread_local! {
        static CURRENT: Thread = Thread(Arc::new((Mutex::new(false), Condvar::new())));
    }

    pub fn current() -> Thread {
        CURRENT.with(Thread::clone)
    }

    pub fn park() {
        let Thread(token) = current();
        let mut is_there = token.0.lock().expect("no panic");
        while !*is_there {
            is_there = token.1.wait(is_there).expect("no panic");
        }
        *is_there = false;
    }

    impl Thread {
        pub fn unpark(&self) {
            *self.0.0.lock().expect("no panic") = true;
            self.0.1.notify_one();
        }
    }
}

/// Tasks in queues, one queue per worker.
pub(crate) struct Pool<T> {
    queues: Vec<Queue<T>>,
    groups: Vec<WorkerGroup>,
    /// Workers of the first group that take tasks; the others rest.
    active: AtomicUsize,
    /// Tasks queued or running; at zero all workers end.
    open: AtomicUsize,
    stopped: AtomicBool,
    /// Some queues have no worker, because no more threads could be had.
    short_of_threads: AtomicBool,
}

/// Workers that do the same kind of task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerGroup {
    pub workers: usize,
    /// Whether they take each other's tasks.
    pub steal: bool,
}

/// Which worker: `index` counts within its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkerId {
    pub group: usize,
    pub index: usize,
}

/// Aligned so that two queues never share a cache line.
#[repr(align(128))]
struct Queue<T> {
    id: WorkerId,
    tasks: Mutex<VecDeque<T>>,
    /// Set while the queue's worker sleeps or is about to.
    idle: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl<T: Send> Pool<T> {
    /// As many queues as workers.
    pub fn new(groups: &[WorkerGroup]) -> Self {
        let mut queues = Vec::new();
        for (group, WorkerGroup { workers, .. }) in groups.iter().enumerate() {
            queues.extend((0..*workers).map(|index| Queue {
                id: WorkerId { group, index },
                tasks: Mutex::default(),
                idle: AtomicBool::new(false),
                thread: Mutex::default(),
            }));
        }
        assert!(!queues.is_empty(), "a pool needs a worker");
        let active = AtomicUsize::new(usize::MAX);
        Self {
            queues,
            groups: groups.to_vec(),
            active,
            open: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            short_of_threads: AtomicBool::new(false),
        }
    }

    /// Lets only this many workers of the first group take tasks, at least one. The others rest after their current task;
    /// what is in their queues is stolen, so that group must be one that steals.
    pub fn set_active(&self, workers: usize) {
        debug_assert!(self.groups[0].steal);
        self.active.store(workers.max(1), Ordering::SeqCst);
        self.wake_all();
    }

    /// Queues a task, to be done before what is already in that queue. The id's index wraps around in its group.
    pub fn push(&self, id: WorkerId, task: T) {
        self.open.fetch_add(1, Ordering::SeqCst);
        let WorkerGroup { workers, steal } = self.groups[id.group];
        let group = self.group(id.group);
        let queue = &group[id.index % workers];
        locked(&queue.tasks).push_back(task);
        if !queue.wake() && (steal || self.is_short_of_threads()) {
            let others = if self.is_short_of_threads() { &self.queues } else { group };
            let _ = others.iter().any(Queue::wake);
        }
    }

    /// Queues a task that the calling worker `id` does next, once it is done with its current one: nobody is woken up for it.
    pub fn keep(&self, id: WorkerId, task: T) {
        self.open.fetch_add(1, Ordering::SeqCst);
        locked(&self.group(id.group)[id.index].tasks).push_back(task);
    }

    /// Wakes somebody up for what the calling worker `id` has kept, if there is any.
    pub fn offer(&self, id: WorkerId) {
        let group = self.group(id.group);
        if self.groups[id.group].steal && !locked(&group[id.index].tasks).is_empty() {
            let _ = group.iter().any(Queue::wake);
        }
    }

    /// Whether somebody in this group is waiting for work.
    pub fn has_idle(&self, group: usize) -> bool {
        self.group(group).iter().any(|queue| queue.idle.load(Ordering::Relaxed))
    }

    /// Drops everything queued; the workers end after their current task.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.wake_all();
    }

    /// Whether [`Self::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Whether the system gave fewer threads than there are queues. Those there are then do everybody's work; nobody may wait
    /// for another group.
    pub fn is_short_of_threads(&self) -> bool {
        self.short_of_threads.load(Ordering::SeqCst)
    }

    /// Works through the first queue without any other thread, while `go_on` says so; true if that was all there was to do.
    pub fn run_alone<S>(&self, state: &mut S, go_on: impl Fn() -> bool, work: impl Fn(&mut S, T)) -> bool {
        while go_on()
            && !self.is_stopped()
            && let Some(task) = { locked(&self.queues[0].tasks).pop_back() }
        {
            work(state, task);
            self.open.fetch_sub(1, Ordering::SeqCst);
        }
        self.open.load(Ordering::SeqCst) == 0
    }

    /// Runs `work` for every task, including those pushed in the meantime, on up to one thread per queue, each with what `start` made. With
    /// fewer threads if no more can be had, at worst on the caller's alone.
    pub fn run<S>(&self, start: impl Fn(WorkerId) -> S + Sync, work: impl Fn(&mut S, T) + Sync) {
        let (start, work) = (&start, &work);
        std::thread::scope(|scope| {
            // What only one queue may do waits for that queue's own worker.
            let share_all = matches!(self.groups[..], [WorkerGroup { steal: true, .. }]);
            if !share_all {
                (1..self.queues.len()).for_each(|at| self.spawn(scope, at, start, work, false));
            }
            let next = || self.spawn(scope, 1, start, work, true);
            self.worker(&self.queues[0], start, work, || _ = share_all.then(next));
        });
    }

    /// Starts the worker of a queue, and lets it start the next one if it is to.
    fn spawn<'scope, S>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        at: usize,
        start: &'scope (impl Fn(WorkerId) -> S + Sync),
        work: &'scope (impl Fn(&mut S, T) + Sync),
        and_next: bool,
    ) {
        let Some(queue) = self.queues.get(at).filter(|_| !self.is_short_of_threads()) else { return };
        let next = move || _ = and_next.then(|| self.spawn(scope, at + 1, start, work, true));
        if Builder::new().spawn_scoped(scope, move || self.worker(queue, start, work, next)).is_err() {
            self.short_of_threads.store(true, Ordering::SeqCst);
            self.wake_all();
        }
    }

    /// One worker, until nothing is left to do; `begun` is called when it has got its first task.
    fn worker<S>(
        &self,
        queue: &Queue<T>,
        start: impl Fn(WorkerId) -> S,
        work: impl Fn(&mut S, T),
        begun: impl FnOnce(),
    ) {
        *locked(&queue.thread) = Some(current());
        // A panic must not leave the others waiting for a task that never ends.
        let stop_on_panic = StopOnPanic(self);
        let mut state = start(queue.id);
        let mut begun = Some(begun);
        while let Some(task) = self.next(queue) {
            if let Some(begun) = begun.take() {
                begun();
            }
            work(&mut state, task);
            if self.open.fetch_sub(1, Ordering::SeqCst) == 1 {
                self.wake_all();
            }
        }
        drop(stop_on_panic);
    }

    fn next(&self, queue: &Queue<T>) -> Option<T> {
        loop {
            if self.is_stopped() {
                return None;
            }
            if queue.id.group == 0 && queue.id.index >= self.active.load(Ordering::SeqCst) {
                if self.open.load(Ordering::SeqCst) == 0 {
                    return None;
                }
                // What it kept is for the others now. The first one never rests.
                if !locked(&queue.tasks).is_empty() {
                    self.queues[0].wake();
                }
                park();
                continue;
            }
            if let Some(task) = self.take(queue) {
                return Some(task);
            }
            // Announce first, then look again: whoever pushes in between sees the announcement.
            queue.idle.store(true, Ordering::SeqCst);
            let task = self.take(queue);
            if task.is_none() && self.open.load(Ordering::SeqCst) != 0 && !self.stopped.load(Ordering::SeqCst) {
                park();
            }
            queue.idle.store(false, Ordering::SeqCst);
            if task.is_some() {
                return task;
            }
            if self.open.load(Ordering::SeqCst) == 0 {
                return None;
            }
        }
    }

    fn take(&self, queue: &Queue<T>) -> Option<T> {
        if self.is_short_of_threads() {
            // What was handed over comes first, so that it does not pile up.
            let handed_over = &self.queues[self.groups[0].workers..];
            if let Some(task) = handed_over.iter().find_map(|other| locked(&other.tasks).pop_front()) {
                return Some(task);
            }
        }
        // Those who are handed work keep its order: neighbours on the disk then go one after the other. The first group makes
        // its own, and going deep first keeps little of it waiting.
        let own = if queue.id.group == 0 { locked(&queue.tasks).pop_back() } else { locked(&queue.tasks).pop_front() };
        if let Some(task) = own {
            return Some(task);
        }
        if !self.groups[queue.id.group].steal {
            return None;
        }
        let (before, after) = self.group(queue.id.group).split_at(queue.id.index);
        after[1..].iter().chain(before).find_map(|other| locked(&other.tasks).pop_front())
    }

    fn group(&self, group: usize) -> &[Queue<T>] {
        let first = self.groups[..group].iter().map(|group| group.workers).sum();
        &self.queues[first..][..self.groups[group].workers]
    }

    fn wake_all(&self) {
        for queue in &self.queues {
            queue.idle.store(false, Ordering::SeqCst);
            if let Some(thread) = &*locked(&queue.thread) {
                thread.unpark();
            }
        }
    }
}

impl<T> Queue<T> {
    /// Wakes this queue's worker if it sleeps.
    fn wake(&self) -> bool {
        let slept = self.idle.load(Ordering::SeqCst) && self.idle.swap(false, Ordering::SeqCst);
        if slept && let Some(thread) = &*locked(&self.thread) {
            thread.unpark();
        }
        slept
    }
}

struct StopOnPanic<'a, T: Send>(&'a Pool<T>);

impl<T: Send> Drop for StopOnPanic<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

/// Locks a mutex that no panicking thread can leave in a half-changed state.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, loom))]
mod loom_tests {
    //! Every order in which workers, pushes and sleeps may meet, for the smallest pools that can show anything. loom fails
    //! where no thread can go on: that is what a lost wake-up looks like.

    use std::sync::Arc;

    use super::*;

    /// With at most this many preemptions in one run: beyond that the number of orders explodes, and faults show with
    /// very few (Musuvathi and Qadeer, PLDI 2007).
    fn bounded() -> loom::model::Builder {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model
    }

    /// Runs a pool of these workers to its end, one loom thread per worker; a task of weight n pushes n of weight n - 1.
    fn every_order(groups: &'static [WorkerGroup], first: &'static [(WorkerId, usize)], total: usize) {
        bounded().check(move || {
            let pool = Arc::new(Pool::new(groups));
            let done = Arc::new(AtomicUsize::new(0));
            first.iter().for_each(|(id, weight)| pool.push(*id, *weight));
            let work = |pool: Arc<Pool<usize>>, done: Arc<AtomicUsize>, queue: usize| {
                pool.worker(
                    &pool.queues[queue],
                    |id| id,
                    |id, weight| {
                        done.fetch_add(1, Ordering::SeqCst);
                        (0..weight).for_each(|step| pool.push(WorkerId { index: id.index + step, ..*id }, weight - 1));
                    },
                    || (),
                );
            };
            let others: Vec<_> = (1..pool.queues.len())
                .map(|queue| {
                    let (pool, done) = (pool.clone(), done.clone());
                    loom::thread::spawn(move || work(pool, done, queue))
                })
                .collect();
            work(pool.clone(), done.clone(), 0);
            others.into_iter().for_each(|other| other.join().expect("it ends"));
            assert_eq!(done.load(Ordering::SeqCst), total);
        });
    }

    const FIRST: WorkerId = WorkerId { group: 0, index: 0 };

    #[test]
    fn thieves_find_what_is_pushed_and_everybody_ends() {
        every_order(&[WorkerGroup { workers: 2, steal: true }], &[(FIRST, 2)], 5);
    }

    #[test]
    fn a_task_for_a_sleeping_worker_wakes_it() {
        every_order(&[WorkerGroup { workers: 2, steal: false }], &[(FIRST, 2)], 5);
    }

    #[test]
    fn groups_wait_for_each_other_and_end_together() {
        const GROUPS: [WorkerGroup; 2] =
            [WorkerGroup { workers: 1, steal: true }, WorkerGroup { workers: 1, steal: false }];
        every_order(&GROUPS, &[(FIRST, 1), (WorkerId { group: 1, index: 0 }, 1)], 4);
    }

    #[test]
    fn resting_workers_end_too() {
        loom::model(|| {
            let pool = Arc::new(Pool::new(&[WorkerGroup { workers: 2, steal: true }]));
            pool.push(FIRST, ());
            pool.set_active(1);
            let other = pool.clone();
            let resting = loom::thread::spawn(move || {
                other.worker(&other.queues[1], |id| id, |_, ()| unreachable!("it rests"), || ())
            });
            pool.worker(&pool.queues[0], |id| id, |_, ()| (), || ());
            resting.join().expect("it ends");
        });
    }

    #[test]
    fn what_was_kept_by_one_that_rests_is_done_by_another() {
        bounded().check(|| {
            let pool = Arc::new(Pool::new(&[WorkerGroup { workers: 2, steal: true }]));
            let done = Arc::new(AtomicUsize::new(0));
            pool.push(WorkerId { group: 0, index: 1 }, 1);
            let work = |pool: &Pool<usize>, queue: usize, done: &AtomicUsize| {
                let work = |id: &mut WorkerId, weight: usize| {
                    done.fetch_add(1, Ordering::SeqCst);
                    if weight > 0 {
                        pool.keep(*id, weight - 1);
                        pool.set_active(1);
                    }
                };
                pool.worker(&pool.queues[queue], |id| id, work, || ());
            };
            let (other, also) = (pool.clone(), done.clone());
            let second = loom::thread::spawn(move || work(&other, 1, &also));
            work(&pool, 0, &done);
            second.join().expect("it ends");
            assert_eq!(done.load(Ordering::SeqCst), 2);
        });
    }

    #[test]
    fn a_stop_reaches_sleepers() {
        loom::model(|| {
            let pool = Arc::new(Pool::new(&[WorkerGroup { workers: 2, steal: false }]));
            pool.push(FIRST, ());
            let other = pool.clone();
            let sleeper = loom::thread::spawn(move || other.worker(&other.queues[1], |id| id, |_, ()| (), || ()));
            pool.worker(&pool.queues[0], |id| id, |_, ()| pool.stop(), || ());
            sleeper.join().expect("it ends");
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    fn id(index: usize) -> WorkerId {
        WorkerId { group: 0, index }
    }

    /// A task of weight n pushes n tasks of weight n - 1.
    fn count(workers: usize, steal: bool) -> u64 {
        let pool = Pool::new(&[WorkerGroup { workers, steal }]);
        let done = AtomicU64::new(0);
        pool.push(id(0), 6u64);
        pool.run(
            |id| id,
            |id, weight| {
                done.fetch_add(1, Ordering::Relaxed);
                for step in 0..weight {
                    pool.push(WorkerId { index: id.index + step as usize, ..*id }, weight - 1);
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
        let pool = Pool::new(&[WorkerGroup { workers: 4, steal: false }, WorkerGroup { workers: 2, steal: true }]);
        (0..100).for_each(|task| pool.push(id(task), (0, task)));
        (0..100).for_each(|task| pool.push(WorkerId { group: 1, index: 0 }, (1, task)));
        pool.run(|id| id, |id, (group, task)| assert!(group == id.group && (group == 1 || task % 4 == id.index)));
    }

    #[test]
    fn resting_workers_do_nothing_and_go_home() {
        let pool = Pool::new(&[WorkerGroup { workers: 4, steal: true }]);
        (0..100).for_each(|task| pool.push(id(task), task));
        pool.set_active(2);
        pool.run(|id| id, |id, _| assert!(id.index < 2));
        (0..100).for_each(|task| pool.push(id(task), task));
        pool.run(|id| id, |_, task| pool.set_active(task % 4));
    }

    #[test]
    fn one_thread_can_begin_and_the_others_go_on() {
        let pool = Pool::new(&[WorkerGroup { workers: 4, steal: true }]);
        (0..100).for_each(|task| pool.push(id(0), task));
        let mut alone = Vec::new();
        assert!(!pool.run_alone(&mut alone, || pool.open.load(Ordering::Relaxed) > 90, |seen, task| seen.push(task)));
        assert_eq!(alone, (90..100).rev().collect::<Vec<_>>());
        pool.run(|id| id, |_, task| assert!(task < 90));
        assert!(pool.run_alone(&mut (), || true, |(), _| {}));
    }

    #[test]
    fn threads_come_as_there_is_work_for_them() {
        let started = |tasks: usize| {
            let pool = Pool::new(&[WorkerGroup { workers: 8, steal: true }]);
            let (started, all_at_once) = (AtomicU64::new(0), std::sync::Barrier::new(tasks));
            (0..tasks).for_each(|_| pool.push(id(0), ()));
            pool.run(|_| _ = started.fetch_add(1, Ordering::Relaxed), |(), ()| _ = all_at_once.wait());
            started.into_inner()
        };
        assert_eq!(started(8), 8);
        assert!(started(1) <= 2);
        assert!(started(3) <= 4);
    }

    #[test]
    fn what_is_kept_is_done_next() {
        let pool = Pool::new(&[WorkerGroup { workers: 1, steal: true }]);
        (0..3).for_each(|task| pool.push(id(0), task));
        let done = std::sync::Mutex::new(Vec::new());
        pool.run(
            |id| id,
            |id, task| {
                done.lock().unwrap().push(task);
                if task == 2 {
                    pool.keep(*id, 9);
                }
            },
        );
        assert_eq!(done.into_inner().unwrap(), [2, 9, 1, 0]);
    }

    #[test]
    fn stopping_leaves_the_rest() {
        let pool = Pool::new(&[WorkerGroup { workers: 2, steal: true }]);
        (0..100).for_each(|task| pool.push(id(0), task));
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
        let pool = Pool::new(&[WorkerGroup { workers: 2, steal: true }, WorkerGroup { workers: 3, steal: false }]);
        pool.short_of_threads.store(true, Ordering::SeqCst);
        (0..100).for_each(|task| pool.push(WorkerId { group: task % 2, index: task }, task));
        let done = AtomicU64::new(0);
        pool.worker(&pool.queues[0], |id| id, |_, _| _ = done.fetch_add(1, Ordering::Relaxed), || ());
        assert_eq!(done.into_inner(), 100);
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let pool = Pool::new(&[WorkerGroup { workers: 2, steal: true }]);
        pool.push(id(0), ());
        let run = std::panic::AssertUnwindSafe(|| pool.run(|_| (), |(), ()| panic!("seen")));
        assert!(std::panic::catch_unwind(run).is_err());
    }
}
