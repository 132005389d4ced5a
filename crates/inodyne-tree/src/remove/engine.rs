//! Runs a delete: workers, their tasks, and how these follow from the plan.
//!
//! ```text
//! steal, wide      remover  Enter(dir) -> reads it, unlinks its files, pushes its directories ─┐
//!                           Unlink(names), Help(names): part of a large directory,             │
//!                           when somebody idles                                                v
//! groups, single   reader   Enter(dir) -> reads it, pushes its directories to readers       finish: the last
//!                  remover  Unlink(names) <- from readers, by allocation group              one out removes
//! ```
//!
//! Readers run ahead of removers only as far as the gate lets them, so neither memory nor descriptors grow with the
//! tree's width.

use std::{
    ffi::OsString,
    mem::MaybeUninit,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
        mpsc::{Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    thread::{ClockId, sched_getcpu},
    time::{Timespec, clock_gettime},
};

use super::{
    Control, Failure, Observer, Reason, RemoveOptions, RemoveReport,
    adapt::{Governor, govern},
    dir_fd_cache::DirFdCache,
    gate::Gate,
    names::Names,
    node::Node,
    open::Crossing,
    order::{Shared, Unsorted},
    strategy::{Plan, Strategy},
};
use crate::{
    descriptors::{descriptor_budget, widen_descriptor_table},
    pool::{Pool, WorkerGroup, WorkerId},
    processors::{move_apart, pin},
    sync::lock,
};

/// What workers do.
pub(super) enum Task {
    /// Open and read a directory.
    Enter(Arc<Node>),
    /// Go on reading a directory from where its descriptor stands.
    Resume(Arc<Node>, Arc<OwnedFd>),
    /// Unlink entries of a directory that is open.
    Unlink(Names),
    /// Take part in unlinking the sorted entries of a large directory.
    Help(Arc<Shared>),
}

/// Everything that the workers of one delete share.
pub(super) struct Engine<'a> {
    pub plan: Plan,
    pub pool: Pool<Task>,
    pub control: &'a Control,
    pub observer: &'a dyn Observer,
    pub crossing: Crossing,
    pub one_device: bool,
    pub dry_run: bool,
    /// Between readers and removers.
    pub gate: Gate,
    /// One for each worker.
    fd_caches: Vec<Mutex<DirFdCache>>,
    finished: Vec<AtomicBool>,
    started: Instant,
    /// Processor time that the first thread had used by then.
    used: Duration,
    alone: AtomicBool,
}

/// How long one thread works alone: as long as starting the others takes.
const ALONE: Duration = Duration::from_millis(1);

/// Where only one thread can remove, others are started to read ahead once it has spent more than this share of its time waiting.
const WAITED: f64 = 0.1;

/// What one worker has for itself.
pub(super) struct Worker {
    pub id: WorkerId,
    pub buffer: Vec<MaybeUninit<u8>>,
    /// Entries of the directory that is being read.
    pub unsorted: Unsorted,
    fd_cache: usize,
}

/// Bytes asked of each `getdents64`: about a thousand entries.
const BUFFER: usize = 32 * 1024;

/// The group that enters directories. Removers form the second one if there are readers, otherwise they are the first.
pub(super) const READERS: usize = 0;

impl<'a> Engine<'a> {
    pub fn new(
        mut plan: Plan,
        options: &RemoveOptions,
        control: &'a Control,
        observer: &'a dyn Observer,
        operands: usize,
    ) -> Self {
        let budget = descriptor_budget();
        // Every worker holds a few descriptors for short moments, besides those in its fd_cache.
        plan.limit_threads(budget / 8);
        let readers = WorkerGroup { workers: plan.readers, steal: true };
        let removers = WorkerGroup { workers: plan.removers, steal: plan.readers == 0 };
        let worker_groups = if plan.readers == 0 { vec![removers] } else { vec![readers, removers] };
        let workers: usize = worker_groups.iter().map(|group| group.workers).sum();
        Self {
            pool: Pool::new(&worker_groups),
            control,
            observer,
            crossing: if options.cross_mounts { Crossing::Allowed } else { Crossing::Refused },
            one_device: options.one_device,
            dry_run: options.dry_run,
            gate: Gate::new((budget / 2).min(1024)),
            fd_caches: (0..workers).map(|_| Mutex::new(DirFdCache::new(budget / 2 / workers))).collect(),
            finished: (0..operands).map(|_| AtomicBool::new(false)).collect(),
            started: Instant::now(),
            used: thread_time(),
            alone: AtomicBool::new(true),
            plan,
        }
    }

    /// Removes `nodes`, which are operands, and notes in the report what a stop left.
    pub fn run(&self, nodes: Vec<Arc<Node>>, operands: &[OsString], report: &mut RemoveReport) {
        // The newest task is taken first, so the first operand goes in last.
        for node in nodes.into_iter().rev() {
            self.enter_later(0, node);
        }
        if !self.work_alone() {
            self.work_together();
        }
        if self.control.is_stopped() {
            let unfinished = operands.iter().zip(&self.finished).filter(|(_, done)| !done.load(Ordering::Relaxed));
            report.unfinished.extend(unfinished.map(|(operand, _)| operand.clone()));
        }
    }

    /// Most trees are gone before a second thread would have been started; true if this was one.
    fn work_alone(&self) -> bool {
        let mut worker = self.worker(WorkerId { group: READERS, index: 0 });
        let all = self.pool.run_alone(&mut worker, || self.is_alone(), |worker, task| self.deal_with(worker, task));
        self.alone.store(false, Ordering::Relaxed);
        all
    }

    /// Whether the only thread so far is to go on alone.
    pub fn is_alone(&self) -> bool {
        if !self.alone.load(Ordering::Relaxed) {
            return false;
        }
        let elapsed = self.started.elapsed();
        if elapsed < ALONE {
            return true;
        }
        self.plan.strategy == Strategy::Single && thread_time() - self.used > elapsed.mul_f64(1.0 - WAITED)
    }

    fn work_together(&self) {
        widen_descriptor_table(descriptor_budget());
        let first_processor = sched_getcpu();
        thread::scope(|scope| {
            let (done, ended) = channel();
            if self.plan.start < self.plan.removers {
                self.pool.set_active(self.plan.start);
                let governor = Governor::new(self.plan.start, self.plan.removers);
                let removed = || self.control.files() + self.control.directories();
                let watch = move || govern(governor, &ended, removed, |workers| self.pool.set_active(workers));
                // If no thread can be had, their number stays as it is.
                let _ = thread::Builder::new().spawn_scoped(scope, watch);
            }
            let start = |id| {
                self.place(id, first_processor);
                self.worker(id)
            };
            self.pool.run(start, |worker, task| self.deal_with(worker, task));
            drop::<Sender<()>>(done);
        });
    }

    fn worker(&self, id: WorkerId) -> Worker {
        let fd_cache = if id.group == READERS { id.index } else { self.plan.readers + id.index };
        Worker { id, buffer: vec![MaybeUninit::uninit(); BUFFER], unsorted: Unsorted::default(), fd_cache }
    }

    fn deal_with(&self, worker: &mut Worker, task: Task) {
        match task {
            Task::Enter(node) => self.enter(worker, node),
            Task::Resume(node, descriptor) => self.resume(worker, node, descriptor),
            Task::Unlink(names) => self.unlink_batch(worker, names),
            Task::Help(names) => self.help(worker, &names),
        }
    }

    /// Inodes are freed by the processor that unlinked them, so a group's remover must stay on one. Others begin side by side.
    fn place(&self, id: WorkerId, first_processor: usize) {
        if self.plan.groups.is_some() && id.group != READERS {
            pin(id.index);
        } else if self.plan.strategy == Strategy::Steal {
            move_apart(id.index, first_processor);
        }
    }

    /// Queues a directory for reading, in the queue of the worker that found it.
    pub fn enter_later(&self, queue: usize, node: Arc<Node>) {
        self.control.seen_directories.fetch_add(1, Ordering::Relaxed);
        self.pool.push(WorkerId { group: READERS, index: queue }, Task::Enter(node));
    }

    /// Queues a directory for the worker that found it to read next, without waking anybody up.
    pub fn enter_next(&self, queue: usize, node: Arc<Node>) {
        self.control.seen_directories.fetch_add(1, Ordering::Relaxed);
        self.pool.keep(WorkerId { group: READERS, index: queue }, Task::Enter(node));
    }

    /// Queues the rest of a directory that is being read.
    pub fn resume_later(&self, queue: usize, node: &Arc<Node>, descriptor: &Arc<OwnedFd>) {
        node.expect(1);
        self.pool.push(WorkerId { group: READERS, index: queue }, Task::Resume(node.clone(), descriptor.clone()));
    }

    /// Queues entries for unlinking: by group where there are groups, otherwise for whoever is free.
    pub fn unlink_later(&self, queue: usize, names: Names) {
        names.directory.expect(1);
        self.gate.put();
        let group = if self.plan.readers == 0 { READERS } else { READERS + 1 };
        let index = self.plan.groups.map_or(queue, |groups| groups.group(names.directory.inode));
        self.pool.push(WorkerId { group, index }, Task::Unlink(names));
    }

    /// Asks for another worker's help with a large directory.
    pub fn help_later(&self, queue: usize, names: &Arc<Shared>) {
        names.directory.expect(1);
        self.pool.push(WorkerId { group: READERS, index: queue }, Task::Help(names.clone()));
    }

    /// The directories that this worker opened.
    pub fn fd_cache(&self, worker: &Worker) -> MutexGuard<'_, DirFdCache> {
        lock(&self.fd_caches[worker.fd_cache])
    }

    /// The descriptor of a directory that may have been parked.
    pub fn descriptor(&self, worker: &Worker, node: &Arc<Node>) -> Result<Arc<OwnedFd>, Errno> {
        self.retry_without_descriptors(worker, || self.fd_cache(worker).descriptor(node))
    }

    /// Tries again while descriptors run out: first parks its own directories, then those of others, then waits.
    pub fn retry_without_descriptors<T>(
        &self,
        worker: &Worker,
        mut attempt: impl FnMut() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        const PATIENCE: u32 = 2000;
        for _ in 0..PATIENCE {
            match attempt() {
                Err(Errno::MFILE | Errno::NFILE) if !self.is_stopped() => {
                    let (others, own) = self.fd_caches.split_at(worker.fd_cache);
                    if !own.iter().chain(others).any(|fd_cache| lock(fd_cache).close_half()) {
                        thread::sleep(Duration::from_millis(1));
                    }
                }
                answer => return answer,
            }
        }
        attempt()
    }

    /// Whether everybody should stop; passes it on to the pool.
    pub fn is_stopped(&self) -> bool {
        let stopped = self.control.is_stopped();
        if stopped && !self.pool.is_stopped() {
            self.pool.stop();
        }
        stopped
    }

    /// Reports that `entry` of `directory`, or the directory itself, stays, and marks what must therefore stay too.
    pub fn fail(&self, directory: &Node, entry: Option<&std::ffi::CStr>, reason: Reason) {
        self.control.failures.fetch_add(1, Ordering::Relaxed);
        directory.spoil();
        self.observer.failed(&Failure { path: &directory.path(entry), reason });
    }

    /// Like [`Self::fail`], for what the kernel refused.
    pub fn refuse(&self, directory: &Node, entry: Option<&std::ffi::CStr>, errno: Errno) {
        self.fail(directory, entry, Reason::Refused(errno));
    }

    /// Notes that nothing more will happen to an operand.
    pub fn operand_finished(&self, number: usize) {
        self.finished[number].store(true, Ordering::Relaxed);
    }
}

/// Processor time of the calling thread.
fn thread_time() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(tv_sec as u64, tv_nsec as u32)
}
