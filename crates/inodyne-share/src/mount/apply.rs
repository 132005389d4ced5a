//! Telling the kernel what is no longer true, and the host when that is done, without ever waiting for each other.
//!
//! The kernel takes locks for it, and some of them are held by whoever waits for an answer of the host:
//!
//! - that attributes are no longer true takes none. But old ones may have been brought a moment ago, and whoever asked for them has not
//!   taken them yet. So it is said, by one thread, once everybody has taken what there was to take (`takers`). Who makes a file is
//!   not waited for, since its answer may wait for this very guest: where the kernel does not know a file (ENOENT), the epoch is moved on, so that
//!   its name is not believed, and it is told of again and again a little later, for whoever has it open;
//! - that a file's pages are no longer true waits while one of them is being read. Other threads say so, and nobody waits for
//!   them: with its attributes gone the kernel asks for the time of modification before it believes a page;
//! - that a name is no longer true waits for the lock of its directory, which is held while a name in it is looked for, made or
//!   removed. Several threads say so. A message whose names are not all done after [`TIMEOUT`] is done by the epoch: one word
//!   that takes no lock, after which the kernel believes no name it got before, once those are done who read its directories. Kernels before
//!   6.16 do not know it; there the message is acknowledged all the same, since the host's guests would wait for each other for
//!   ever otherwise.

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

/// How long after one another a file that the kernel does not know is told of again, at first and at last.
const ASKED_AGAIN: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(64)];

/// For how long: as long as an answer to who makes a file may take.
const UNKNOWN: Duration = coherence::TIMEOUT;

/// Saying that a name is no longer true takes its directory's lock; if a file has this one, it is looked up again.
const ANY_NAME: &CStr = c"\x01";

/// Threads that say that names are no longer true.
const FOR_NAMES: usize = 4;

/// Threads that wait for a directory's lock.
const FOR_LOCKS: usize = 2;

/// Threads that say that pages are no longer true.
const FOR_PAGES: usize = 2;

/// Hands messages to the threads that apply them.
pub(super) struct Applier(Sender<(From, Vec<Invalidation>)>);

/// Whose message it is, and who hears that it is applied.
pub(super) enum From {
    /// The host's at the other end of this connection, by its number. Another host does not know it.
    Host(Arc<Outbox>, u64),
    /// The mounter's own.
    Here(Sender<()>),
}

impl From {
    fn acknowledge(&self) {
        match self {
            Self::Host(outbox, number) => outbox.send(&frame::whole(Kind::Acknowledge, &number.to_le_bytes())),
            Self::Here(applied) => drop(applied.send(())),
        }
    }
}

/// What the threads share.
struct Work {
    device: Arc<OwnedFd>,
    names: Queue<(Arc<Message>, u64, CString)>,
    /// Nodes whose pages are no longer true.
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
                    // All that have come, so that they wait once.
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

    /// Does what takes no lock, and hands out the rest. Returns the message if names are left of it.
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

    /// Whether the kernel knew the node; it believes no attributes of it that it has.
    fn drops_attributes(&self, node: u64) -> bool {
        let out = InvalInodeOut { node, off: -1, len: 0 };
        self.say(notify::INVAL_INODE, &[out.as_bytes()]) != Err(Errno::NOENT)
    }

    /// Waits until those who have looked up names or read directories that are meant have taken their answers.
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

    /// The kernel does not believe that the directory has such a file, or has none.
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

    /// A notification. That the kernel does not hold what it is about (ENOENT) is as good: of a name, and of pages.
    fn tell(&self, code: i32, parts: &[&[u8]]) {
        let _ = self.say(code, parts);
    }

    fn say(&self, code: i32, parts: &[&[u8]]) -> Result<(), Errno> {
        say(&self.device, code, parts)
    }
}

/// The kernel does not believe that a directory has such a file, or has none. That it does not hold it is as good.
pub(super) fn drop_name(device: &OwnedFd, directory: u64, name: &CStr) {
    let out = InvalEntryOut { parent: directory, namelen: name.count_bytes() as u32, flags: 0 };
    let _ = say(device, notify::INVAL_ENTRY, &[out.as_bytes(), name.to_bytes_with_nul()]);
}

fn say(device: &OwnedFd, code: i32, parts: &[&[u8]]) -> Result<(), Errno> {
    let body = parts.concat();
    let header = OutHeader { len: (size_of::<OutHeader>() + body.len()) as u32, error: code, unique: 0 };
    rustix::io::write(device, &[header.as_bytes(), &body].concat()).map(drop)
}
