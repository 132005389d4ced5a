//! Tells the kernel what is no longer valid, and the host when that is done, without either ever waiting for the other.
//!
//! The kernel takes locks for this, and some of them are held by whoever waits for an answer from the host:
//!
//! - invalidating attributes takes none. But old ones may have arrived a moment ago, and whoever asked for them has not taken them yet.
//!   So one thread does it, once everybody has taken what there was to take (`takers`). Whoever makes a file is not waited for, since
//!   its answer may wait for this very guest: where the kernel does not know a file (ENOENT), the epoch is advanced, so that
//!   its name is not believed, and the kernel is told of the file again and again a little later, for whoever has it open;
//! - invalidating a file's pages waits while one of them is being read. Other threads do it, and nobody waits for them: with the
//!   file's attributes gone, the kernel asks for the modification time before it believes a page;
//! - invalidating a name waits for the lock of its directory, which is held while a name in it is looked up, made or
//!   removed. Several threads do it. A message whose names are not all done after [`TIMEOUT`] is done by the epoch: one notification
//!   that takes no lock, after which the kernel believes no name it got before, once those reading its directories are done. Kernels
//!   before 6.16 do not know it; there the message is acknowledged all the same, since otherwise the host's guests would wait for each
//!   other for ever.

use std::{
    collections::VecDeque,
    ffi::{CStr, CString},
    io, iter,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::io::Errno;
use zerocopy::IntoBytes;

use super::{
    queue::{Distinct, Queue},
    takers::Takers,
};
use crate::{
    coherence,
    fuse::abi::{InvalEntryOut, InvalInodeOut, OutHeader, notify},
    protocol::{
        frame::{self, Kind},
        invalidation::Invalidation,
    },
    transport::Outbox,
};

/// How long names may take before the epoch is used.
const TIMEOUT: Duration = Duration::from_millis(2);

/// How long until the kernel is told again of a file that it does not know: at first, and at most.
const ASKED_AGAIN: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(64)];

/// For how long: as long as the answer to whoever makes a file may take.
const UNKNOWN: Duration = coherence::TIMEOUT;

/// A name whose invalidation takes its directory's lock; if a file is called this, it is looked up again.
const ANY_NAME: &CStr = c"\x01";

/// Threads that invalidate names.
const FOR_NAMES: usize = 4;

/// Threads that wait for a directory's lock.
const FOR_LOCKS: usize = 2;

/// Threads that invalidate pages.
const FOR_PAGES: usize = 2;

/// Hands messages to the threads that apply them.
pub(super) struct Applier(Sender<(From, Vec<Invalidation>)>);

/// Whose message it is, and who is told that it is applied.
pub(super) enum From {
    /// From the host at the other end of this connection, with its number. Another host does not know it.
    Host(Arc<Outbox>, u64),
    /// The mounter's own.
    Here(Sender<()>),
}

impl From {
    fn acknowledge(&self) {
        match self {
            Self::Host(outbox, number) => outbox.send_ahead(&frame::whole(Kind::Acknowledge, &number.to_le_bytes())),
            Self::Here(applied) => drop(applied.send(())),
        }
    }
}

/// What the threads share.
struct Work {
    device: Arc<OwnedFd>,
    names: Queue<(Arc<Message>, u64, CString)>,
    /// Nodes whose pages are no longer valid.
    pages: Distinct<u64>,
    /// Nodes that the kernel did not know.
    unknown: Queue<u64>,
    takers: Arc<Takers>,
    /// Directories whose lock is to be waited for.
    locks: Distinct<u64>,
    has_epoch: AtomicBool,
}

/// A message.
struct Message {
    from: From,
    /// Where the names are.
    directories: Vec<u64>,
    names_left: AtomicUsize,
    is_done: AtomicBool,
}

impl Applier {
    /// Starts the threads.
    pub fn start(device: Arc<OwnedFd>, takers: Arc<Takers>) -> io::Result<Self> {
        let work = Arc::new(Work {
            device,
            names: Queue::default(),
            pages: Distinct::default(),
            unknown: Queue::default(),
            takers,
            locks: Distinct::default(),
            has_epoch: AtomicBool::new(true),
        });
        let (sender, messages) = channel();
        let spawn = |name: &str, run: Box<dyn FnOnce(&Work) + Send>| {
            let work = work.clone();
            thread::Builder::new().name(name.into()).spawn(move || run(&work)).map(drop)
        };
        spawn("share-apply", Box::new(move |work| work.apply(&messages)))?;
        spawn("share-unknown", Box::new(Work::apply_unknown))?;
        for _ in 0..FOR_NAMES {
            spawn("share-names", Box::new(Work::apply_names))?;
        }
        for _ in 0..FOR_LOCKS {
            spawn("share-locks", Box::new(Work::wait_for_locks))?;
        }
        for _ in 0..FOR_PAGES {
            spawn("share-pages", Box::new(Work::apply_pages))?;
        }
        Ok(Self(sender))
    }

    /// Takes a message, and never waits.
    pub fn take(&self, from: From, list: Vec<Invalidation>) {
        let _ = self.0.send((from, list));
    }
}

impl Work {
    /// Attributes, and when each message is acknowledged.
    fn apply(&self, messages: &Receiver<(From, Vec<Invalidation>)>) {
        let mut waiting: VecDeque<(Instant, Arc<Message>)> = VecDeque::new();
        loop {
            let first = waiting.front().map(|(due, _)| due.saturating_duration_since(Instant::now()));
            let next = match first {
                Some(left) => messages.recv_timeout(left),
                None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match next {
                Ok(first) => {
                    // All that have come, so that they wait only once.
                    let all: Vec<_> = iter::once(first).chain(messages.try_iter()).collect();
                    self.let_take(|_| true);
                    for (from, list) in all {
                        if let Some(message) = self.begin(from, list) {
                            waiting.push_back((Instant::now() + TIMEOUT, message));
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    waiting.retain(|(_, message)| !message.is_done.load(Ordering::Acquire));
                    if waiting.front().is_some_and(|(due, _)| *due <= Instant::now()) {
                        self.let_take(|directory| {
                            waiting.iter().any(|(_, message)| message.directories.contains(&directory))
                        });
                        self.new_epoch();
                        waiting.drain(..).for_each(|(_, message)| self.done(&message));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Does what takes no lock, and hands out the rest. Returns the message if it has names left.
    fn begin(&self, from: From, list: Vec<Invalidation>) -> Option<Arc<Message>> {
        let mut names = Vec::new();
        for one in list {
            match one {
                Invalidation::Node { node, data } => {
                    // Somebody may be about to make it known.
                    if !self.drops_attributes(node) {
                        self.new_epoch();
                        self.unknown.put(node);
                    }
                    if data {
                        self.pages.put(node);
                    }
                }
                Invalidation::Name { directory, name } => names.push((directory, name)),
                Invalidation::AllNames => self.new_epoch(),
            }
        }
        if names.is_empty() {
            from.acknowledge();
            return None;
        }
        let message = Arc::new(Message {
            from,
            directories: names.iter().map(|(directory, _)| *directory).collect(),
            names_left: AtomicUsize::new(names.len()),
            is_done: AtomicBool::new(false),
        });
        names.into_iter().for_each(|(directory, name)| self.names.put((message.clone(), directory, name)));
        Some(message)
    }

    /// Whether the kernel knew the node; it no longer believes the attributes that it has of it.
    fn drops_attributes(&self, node: u64) -> bool {
        let out = InvalInodeOut { node, off: -1, len: 0 };
        self.say(notify::INVAL_INODE, &[out.as_bytes()]) != Err(Errno::NOENT)
    }

    /// Waits until those who look up names in, or read, the directories that are meant have taken their answers.
    fn let_take(&self, is_meant: impl Fn(u64) -> bool) {
        self.takers.wait(is_meant, |directory| self.locks.put(directory));
    }

    fn wait_for_locks(&self) {
        loop {
            let directory = self.locks.take();
            let number = self.takers.last();
            self.drop_name(directory, ANY_NAME);
            self.takers.are_done(directory, number);
        }
    }

    fn apply_unknown(&self) {
        let mut nodes = Vec::new();
        let mut pause = ASKED_AGAIN[0];
        loop {
            let mut new = self.unknown.take_all();
            if nodes.is_empty() && new.is_empty() {
                new.push_back(self.unknown.take());
            }
            pause = if new.is_empty() { (pause * 2).min(ASKED_AGAIN[1]) } else { ASKED_AGAIN[0] };
            let now = Instant::now();
            nodes.extend(new.into_iter().map(|node| (node, now + UNKNOWN)));
            thread::sleep(pause);
            nodes.retain(|(node, until)| !self.drops_attributes(*node) && now < *until);
        }
    }

    fn apply_names(&self) {
        loop {
            let (message, directory, name) = self.names.take();
            // The epoch has done it.
            if message.is_done.load(Ordering::Acquire) && self.has_epoch.load(Ordering::Relaxed) {
                continue;
            }
            self.drop_name(directory, &name);
            if message.names_left.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.done(&message);
            }
        }
    }

    /// Makes the kernel no longer believe that the directory has such a file, or has none.
    fn drop_name(&self, directory: u64, name: &CStr) {
        drop_name(&self.device, directory, name);
    }

    fn apply_pages(&self) {
        loop {
            let node = self.pages.take();
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
            message.from.acknowledge();
        }
    }

    /// Sends a notification. If the kernel does not hold what it is about (ENOENT), that is as good, for a name and for pages.
    fn tell(&self, code: i32, parts: &[&[u8]]) {
        let _ = self.say(code, parts);
    }

    fn say(&self, code: i32, parts: &[&[u8]]) -> Result<(), Errno> {
        say(&self.device, code, parts)
    }
}

/// Makes the kernel no longer believe that a directory has such a file, or has none. If it does not hold the name, that is as good.
pub(super) fn drop_name(device: &OwnedFd, directory: u64, name: &CStr) {
    let out = InvalEntryOut { parent: directory, namelen: name.count_bytes() as u32, flags: 0 };
    let _ = say(device, notify::INVAL_ENTRY, &[out.as_bytes(), name.to_bytes_with_nul()]);
}

fn say(device: &OwnedFd, code: i32, parts: &[&[u8]]) -> Result<(), Errno> {
    let body = parts.concat();
    let header = OutHeader { len: (size_of::<OutHeader>() + body.len()) as u32, error: code, unique: 0 };
    rustix::io::write(device, &[header.as_bytes(), &body].concat()).map(drop)
}
