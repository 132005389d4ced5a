//! A file that answers late: under a loop device, a disk that is slow.
//!
//! A loop device over this file is a disk whose every request, be it from the command, the journal's thread or writeback,
//! is held to the limits: the whole device is slow, and not only what one process asks of it. Reading and writing the image
//! itself begins at once and bypasses the page cache; only the answer waits. Any number of answers wait at the same time,
//! in one queue that one thread serves.
//!
//! The file system has no name that anybody could find: it is mounted nowhere, only the loop device has its one file open,
//! and it goes with the device. While a place is made, filled or mounted again, its device is not held to any limit.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    ffi::OsStr,
    fs::File,
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::FileExt,
    },
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant, UNIX_EPOCH},
};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
    WriteFlags,
};
use rustix::{
    fs::{FallocateFlags, fallocate, fstat},
    io::retry_on_intr,
};

use crate::{
    OnCommand, Server,
    rate_limit::{RateLimiter, Rates},
};

/// The command to hold the file to its rates ([`crate::Control::send`]).
pub const IMPOSE_LIMITS: u8 = b'i';
/// The command to let it be as fast as it can be, as it is at first.
pub const LIFT_LIMITS: u8 = b'l';

/// Answers that wait for their time.
struct Answers {
    begun: Instant,
    queue: Mutex<Queue>,
    changed: Condvar,
}

struct Queue {
    limiter: RateLimiter,
    is_held: bool,
    /// The earliest first; of two at the same time, the one that came first.
    waiting: BinaryHeap<Reverse<Waiting>>,
    next: u64,
}

struct Waiting {
    due: Duration,
    number: u64,
    answer: Box<dyn FnOnce() + Send>,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

impl Answers {
    fn new(rates: Rates) -> Self {
        let queue = Queue { limiter: RateLimiter::new(rates), is_held: false, waiting: BinaryHeap::new(), next: 0 };
        Self { begun: Instant::now(), queue: Mutex::new(queue), changed: Condvar::new() }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self, is_held: bool) {
        self.queue().is_held = is_held;
        self.changed.notify_all();
    }

    /// When a request that arrives now is to be answered; `None` for at once.
    fn due(&self, bytes: u64) -> Option<Duration> {
        let mut queue = self.queue();
        queue.is_held.then(|| queue.limiter.due(self.begun.elapsed(), bytes))
    }

    /// Gives an answer when it is due.
    fn at(&self, due: Option<Duration>, answer: impl FnOnce() + Send + 'static) {
        let Some(due) = due.filter(|due| *due > self.begun.elapsed()) else { return answer() };
        let mut queue = self.queue();
        let number = queue.next;
        queue.next += 1;
        queue.waiting.push(Reverse(Waiting { due, number, answer: Box::new(answer) }));
        if queue.waiting.peek().is_some_and(|Reverse(first)| first.number == number) {
            self.changed.notify_all();
        }
    }

    /// Gives one answer after the other, for ever.
    fn give(&self) -> ! {
        let mut queue = self.queue();
        loop {
            let now = self.begun.elapsed();
            let next = queue.waiting.peek().map(|Reverse(first)| first.due);
            queue = match next {
                Some(due) if due <= now || !queue.is_held => {
                    let first = queue.waiting.pop();
                    drop(queue);
                    if let Some(Reverse(first)) = first {
                        (first.answer)();
                    }
                    self.queue()
                }
                Some(due) => {
                    self.changed.wait_timeout(queue, due - now).map_or_else(|lost| lost.into_inner().0, |woken| woken.0)
                }
                None => self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

/// A file system with one file, below the directories of its path. The root has number 1, each part of the path the next one.
pub struct SlowFile {
    image: File,
    size: u64,
    path: PathBuf,
    answers: Arc<Answers>,
}

/// Nothing about the file ever changes but its bytes.
const FOR_EVER: Duration = Duration::from_secs(1 << 30);

/// More requests than a loop device has in flight, each split in two.
const MOST_REQUESTS: u16 = 512;

impl SlowFile {
    /// Starts a server that shows `image` as the file `path` on `connection`, in the mount namespace `outside`. The file is held to
    /// its rates between [`IMPOSE_LIMITS`] and [`LIFT_LIMITS`], and no longer once the process that started it has ended.
    ///
    /// # Errors
    /// The image cannot be inspected, or as for [`Server::start`].
    pub fn serve(
        image: OwnedFd,
        path: &Path,
        rates: Rates,
        connection: OwnedFd,
        outside: BorrowedFd<'_>,
    ) -> io::Result<Server> {
        let size = fstat(&image)?.st_size as u64;
        let image = File::from(image);
        Server::start(c"inodyne-disk", connection, outside, &[image.as_fd()], || {
            let answers = Arc::new(Answers::new(rates));
            let (waiter, listener) = (answers.clone(), answers.clone());
            thread::Builder::new().spawn(move || waiter.give())?;
            // When nobody is left to say so, nobody is left to measure either.
            let on_command = move |command| listener.hold(command == Some(IMPOSE_LIMITS));
            let file = SlowFile { image: image.try_clone()?, size, path: path.to_owned(), answers };
            Ok((file, Arc::new(on_command) as OnCommand))
        })
    }

    fn attributes(&self, ino: INodeNo) -> FileAttr {
        let is_file = ino.0 == 1 + self.path.iter().count() as u64;
        FileAttr {
            ino,
            size: if is_file { self.size } else { 0 },
            blocks: self.size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: if is_file { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    /// Something that is done to the image and answered with nothing.
    fn empty(&self, reply: ReplyEmpty, done: impl FnOnce(&File) -> rustix::io::Result<()>) {
        let due = self.answers.due(0);
        let result = done(&self.image);
        self.answers.at(due, move || match result {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(Errno::from_i32(errno.raw_os_error())),
        });
    }
}

impl Filesystem for SlowFile {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let missing = |_| io::Error::other("this kernel's FUSE has no asynchronous direct I/O");
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).map_err(missing)?;
        let _ = config.set_max_background(MOST_REQUESTS);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if self.path.iter().nth(parent.0 as usize - 1) == Some(name) {
            reply.entry(&FOR_EVER, &self.attributes(INodeNo(parent.0 + 1)), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOR_EVER, &self.attributes(ino));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES | FopenFlags::FOPEN_NOFLUSH;
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let due = self.answers.due(size.into());
        let mut buffer = Aligned::new(size as usize);
        match read_at(&self.image, buffer.bytes(), offset) {
            Ok(length) => self.answers.at(due, move || reply.data(&buffer.bytes()[..length])),
            Err(error) => self.answers.at(due, move || reply.error(error.into())),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let due = self.answers.due(data.len() as u64);
        let mut buffer = Aligned::new(data.len());
        buffer.bytes().copy_from_slice(data);
        match self.image.write_all_at(buffer.bytes(), offset) {
            Ok(()) => {
                let length = data.len() as u32;
                self.answers.at(due, move || reply.written(length));
            }
            Err(error) => self.answers.at(due, move || reply.error(error.into())),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.empty(reply, |image| retry_on_intr(|| rustix::fs::fdatasync(image)));
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let mode = FallocateFlags::from_bits_retain(mode as u32);
        self.empty(reply, |image| retry_on_intr(|| fallocate(image, mode, offset, length)));
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // The block size tells the loop device what it may discard.
        reply.statfs(self.size / 4096, 0, 0, 1, 0, 4096, 255, 4096);
    }
}

/// As much as there is, up to the end of the file.
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read_at(&mut buffer[length..], offset + length as u64) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// Memory as direct I/O wants it.
struct Aligned {
    memory: Vec<u8>,
    length: usize,
}

impl Aligned {
    const TO: usize = 4096;

    fn new(length: usize) -> Self {
        Self { memory: vec![0; length + Self::TO], length }
    }

    fn bytes(&mut self) -> &mut [u8] {
        let start = self.memory.as_ptr().align_offset(Self::TO).min(Self::TO);
        &mut self.memory[start..start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn answers_come_when_they_are_due_and_at_once_when_nothing_is_held() {
        let rates = Rates { delay: Duration::from_millis(200), ..Rates::default() };
        let answers = Arc::new(Answers::new(rates));
        let waiter = answers.clone();
        thread::spawn(move || waiter.give());
        let (sender, given) = channel();
        let ask = |number: u32| {
            let sender = sender.clone();
            answers.at(answers.due(1), move || sender.send(number).unwrap());
        };
        ask(1);
        assert_eq!(given.try_recv(), Ok(1), "nothing is held yet");
        answers.hold(true);
        let asked = Instant::now();
        (2..100).for_each(ask);
        assert!(given.try_recv().is_err());
        assert_eq!(given.iter().take(98).collect::<Vec<_>>(), (2..100).collect::<Vec<_>>());
        assert!(asked.elapsed() >= Duration::from_millis(200));
        ask(100);
        answers.hold(false);
        assert_eq!(given.recv(), Ok(100));
    }
}
