//! Telling the kernel what is no longer true, and the host when that is done, without ever waiting for each other.
//!
//! The kernel takes locks for it, and some of them are held by whoever waits for an answer of the host:
//!
//! - that attributes are no longer true takes none, so it is said at once, by one thread;
//! - that a file's pages are no longer true waits while one of them is being read. Other threads say so, and nobody waits for
//!   them: with its attributes gone the kernel asks for the time of modification before it believes a page;
//! - that a name is no longer true waits for the lock of its directory, which is held while a name in it is looked for, made or
//!   removed. Several threads say so. A message whose names are not all done after [`TIMEOUT`] is done by the epoch: one word
//!   that takes no lock, after which the kernel believes no name it got before. Kernels before 6.16 do not know it; there the
//!   message is acknowledged all the same, since the host's guests would wait for each other for ever otherwise.

use std::{
    collections::{HashSet, VecDeque},
    ffi::CString,
    io,
    os::fd::OwnedFd,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::io::Errno;
use zerocopy::IntoBytes;

use crate::{
    fuse::abi::{InvalEntryOut, InvalInodeOut, OutHeader, notify},
    protocol::{
        frame::{self, Kind},
        invalidation::Invalidation,
    },
    transport::Outbox,
};

/// How long names may take before the epoch is used.
const TIMEOUT: Duration = Duration::from_millis(2);

/// Threads that say that names are no longer true.
const FOR_NAMES: usize = 4;

/// Threads that say that pages are no longer true.
const FOR_PAGES: usize = 2;

/// Hands messages of the host to the threads that apply them.
pub(super) struct Applier(Sender<(u64, Vec<Invalidation>)>);

/// What the threads share.
struct Work {
    device: Arc<OwnedFd>,
    outbox: Arc<Outbox>,
    names: Queue<(Arc<Message>, u64, CString)>,
    pages: Queue<u64>,
    /// Nodes in `pages`.
    queued: Mutex<HashSet<u64>>,
    has_epoch: AtomicBool,
}

/// A message of the host.
struct Message {
    number: u64,
    names_left: AtomicUsize,
    is_done: AtomicBool,
}

impl Applier {
    /// Starts the threads.
    pub fn start(device: Arc<OwnedFd>, outbox: Arc<Outbox>) -> io::Result<Self> {
        let work = Arc::new(Work {
            device,
            outbox,
            names: Queue::default(),
            pages: Queue::default(),
            queued: Mutex::default(),
            has_epoch: AtomicBool::new(true),
        });
        let (sender, messages) = channel();
        let spawn = |name: &str, run: Box<dyn FnOnce(&Work) + Send>| {
            let work = work.clone();
            thread::Builder::new().name(name.into()).spawn(move || run(&work)).map(drop)
        };
        spawn("share-apply", Box::new(move |work| work.apply(&messages)))?;
        for _ in 0..FOR_NAMES {
            spawn("share-names", Box::new(Work::apply_names))?;
        }
        for _ in 0..FOR_PAGES {
            spawn("share-pages", Box::new(Work::apply_pages))?;
        }
        Ok(Self(sender))
    }

    /// Takes a message, and never waits.
    pub fn take(&self, number: u64, list: Vec<Invalidation>) {
        let _ = self.0.send((number, list));
    }
}

impl Work {
    /// Attributes, and when each message is acknowledged.
    fn apply(&self, messages: &Receiver<(u64, Vec<Invalidation>)>) {
        let mut waiting: VecDeque<(Instant, Arc<Message>)> = VecDeque::new();
        loop {
            let first = waiting.front().map(|(due, _)| due.saturating_duration_since(Instant::now()));
            let next = match first {
                Some(left) => messages.recv_timeout(left),
                None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match next {
                Ok((number, list)) => {
                    if let Some(message) = self.begin(number, list) {
                        waiting.push_back((Instant::now() + TIMEOUT, message));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    waiting.retain(|(_, message)| !message.is_done.load(Ordering::Acquire));
                    if waiting.front().is_some_and(|(due, _)| *due <= Instant::now()) {
                        self.new_epoch();
                        waiting.drain(..).for_each(|(_, message)| self.done(&message));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Does what takes no lock, and hands out the rest. Returns the message if names are left of it.
    fn begin(&self, number: u64, list: Vec<Invalidation>) -> Option<Arc<Message>> {
        let mut names = Vec::new();
        for one in list {
            match one {
                Invalidation::Node { node, data } => {
                    self.tell(notify::INVAL_INODE, &[InvalInodeOut { node, off: -1, len: 0 }.as_bytes()]);
                    if data && self.queued.lock().unwrap_or_else(PoisonError::into_inner).insert(node) {
                        self.pages.put(node);
                    }
                }
                Invalidation::Name { directory, name } => names.push((directory, name)),
                Invalidation::AllNames => self.new_epoch(),
            }
        }
        if names.is_empty() {
            self.acknowledge(number);
            return None;
        }
        let message = Message { number, names_left: AtomicUsize::new(names.len()), is_done: AtomicBool::new(false) };
        let message = Arc::new(message);
        names.into_iter().for_each(|(directory, name)| self.names.put((message.clone(), directory, name)));
        Some(message)
    }

    fn apply_names(&self) {
        loop {
            let (message, directory, name) = self.names.take();
            // The epoch has done it.
            if message.is_done.load(Ordering::Acquire) && self.has_epoch.load(Ordering::Relaxed) {
                continue;
            }
            let out = InvalEntryOut { parent: directory, namelen: name.count_bytes() as u32, flags: 0 };
            self.tell(notify::INVAL_ENTRY, &[out.as_bytes(), name.as_bytes_with_nul()]);
            if message.names_left.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.done(&message);
            }
        }
    }

    fn apply_pages(&self) {
        loop {
            let node = self.pages.take();
            // What comes from now on is queued again.
            self.queued.lock().unwrap_or_else(PoisonError::into_inner).remove(&node);
            self.tell(notify::INVAL_INODE, &[InvalInodeOut { node, off: 0, len: 0 }.as_bytes()]);
        }
    }

    fn new_epoch(&self) {
        if self.has_epoch.load(Ordering::Relaxed) && self.say(notify::INC_EPOCH, &[]) == Err(Errno::INVAL) {
            self.has_epoch.store(false, Ordering::Relaxed);
        }
    }

    fn done(&self, message: &Message) {
        if !message.is_done.swap(true, Ordering::AcqRel) {
            self.acknowledge(message.number);
        }
    }

    fn acknowledge(&self, number: u64) {
        self.outbox.send(&frame::whole(Kind::Acknowledge, &number.to_le_bytes()));
    }

    /// A notification. That the kernel does not hold what it is about (ENOENT) is as good.
    fn tell(&self, code: i32, parts: &[&[u8]]) {
        let _ = self.say(code, parts);
    }

    fn say(&self, code: i32, parts: &[&[u8]]) -> Result<(), Errno> {
        let body = parts.concat();
        let header = OutHeader { len: (size_of::<OutHeader>() + body.len()) as u32, error: code, unique: 0 };
        rustix::io::write(&*self.device, &[header.as_bytes(), &body].concat()).map(drop)
    }
}

/// What waits for threads.
struct Queue<T>(Mutex<VecDeque<T>>, Condvar);

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self(Mutex::default(), Condvar::new())
    }
}

impl<T> Queue<T> {
    fn put(&self, value: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(value);
        self.1.notify_one();
    }

    /// Waits for the next.
    fn take(&self) -> T {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(value) = queue.pop_front() {
                return value;
            }
            queue = self.1.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
