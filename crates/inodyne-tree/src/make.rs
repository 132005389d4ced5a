//! Making a tree: each directory a task, its files written by whoever took it.
//!
//! Parallel where the file system gains from it; btrfs does not (its root lock makes four threads slower than one).
//! A directory's descriptor lives as long as its children wait to be made, and depth-first order keeps those few, so
//! a chain of a million levels needs no more descriptors than a flat tree. The first failure ends everything: half a
//! tree is of no use to anybody.

use std::{
    io,
    num::NonZero,
    ops::Range,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, XattrFlags, fsetxattr, mkdirat, mknodat, openat},
    io::{Errno, write},
    thread::sched_getcpu,
};

use crate::{
    FileSystem, TreeError, TreeSpec, content,
    plan::{Name, Place, Plan},
    pool::{Pool, WorkerGroup, WorkerId},
    processors::move_apart,
    sync::{cores, lock},
};

/// The extended attribute that tells a later check which tree a directory holds.
pub(crate) const SPEC_ATTRIBUTE: &str = "user.inodyne.tree";

/// What was made, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MakeReport {
    /// Files written.
    pub files: u64,
    /// Directories made, the root included.
    pub directories: u64,
    /// Bytes in all files together.
    pub bytes: u64,
    /// Time from the first call to the last.
    pub wall: Duration,
    /// Workers used.
    pub threads: usize,
    /// The file system that the tree is on.
    pub file_system: FileSystem,
}

/// How a tree is made.
#[derive(Clone, Copy, Debug)]
pub struct MakeOptions {
    /// This many workers instead of what suits the file system. With one, everything is made in order, as `tar` or `cp` would, so that the
    /// tree is also laid out on the disk in the same way each time.
    pub threads: Option<NonZero<usize>>,
    /// Called by all workers before each entry, and each piece of a long file: whether nobody wants the tree any more.
    pub is_unwanted: fn() -> bool,
}

impl Default for MakeOptions {
    fn default() -> Self {
        Self { threads: None, is_unwanted: || false }
    }
}

/// Makes the tree in `root`, which is created, or is an empty directory.
///
/// Nothing is flushed: whoever wants the tree on the device calls `syncfs`. How entries are laid out on the disk depends on which
/// worker was faster; where that matters, see [`make_with`].
pub fn make(spec: &TreeSpec, root: &Path) -> Result<MakeReport, TreeError> {
    make_with(spec, root, MakeOptions::default())
}

/// Like [`make`], in the way that `options` say.
///
/// # Errors
/// Also [`TreeError::Unwanted`], where nobody wants it any more; what was made until then stays.
pub fn make_with(spec: &TreeSpec, root: &Path, options: MakeOptions) -> Result<MakeReport, TreeError> {
    let started = Instant::now();
    let plan = Plan::new(spec)?;
    let directory = open_root(root)?;
    let file_system = FileSystem::of(&directory).map_err(|error| TreeError::io("inspect", root, error))?;
    // Not every file system keeps attributes; a check then needs the options again.
    let _ = fsetxattr(&directory, SPEC_ATTRIBUTE, spec.to_string().as_bytes(), XattrFlags::empty());

    let threads = options.threads.map_or_else(|| suitable_threads(file_system), NonZero::get);
    let maker = Maker {
        plan,
        pool: Pool::new(&[WorkerGroup { workers: threads, steal: true }]),
        split: if threads > 1 { FILES_PER_TASK } else { u64::MAX },
        files: AtomicU64::new(0),
        directories: AtomicU64::new(1),
        bytes: AtomicU64::new(0),
        failure: Mutex::new(None),
        is_unwanted: options.is_unwanted,
    };
    maker.expand(WorkerId { group: 0, index: 0 }, Arc::new(directory), Place::ROOT);
    let first_processor = sched_getcpu();
    maker.pool.run(
        |id| {
            move_apart(id.index, first_processor);
            id
        },
        |id, task| {
            if let Err((action, name, source)) = maker.work(*id, task) {
                lock(&maker.failure).get_or_insert(TreeError::io(action, root.join("…").join(name), source));
                maker.pool.stop();
            }
        },
    );
    if let Some(failure) = maker.failure.into_inner().expect("no worker panics while it holds this") {
        return Err(failure);
    }
    Ok(MakeReport {
        files: maker.files.into_inner(),
        directories: maker.directories.into_inner(),
        bytes: maker.bytes.into_inner(),
        wall: started.elapsed(),
        threads,
        file_system,
    })
}

/// On btrfs, four wait for each other; where a call is a round trip, more workers than processors help.
fn suitable_threads(file_system: FileSystem) -> usize {
    match file_system {
        FileSystem::Btrfs => 1,
        FileSystem::Overlay | FileSystem::Remote => 16,
        _ => cores(),
    }
}

/// A larger directory is filled by several workers.
const FILES_PER_TASK: u64 = 2048;

/// Longer files are written in pieces of this size.
const PIECE: usize = 256 * 1024;

struct Maker<'a> {
    plan: Plan<'a>,
    pool: Pool<Task>,
    split: u64,
    files: AtomicU64,
    directories: AtomicU64,
    bytes: AtomicU64,
    failure: Mutex<Option<TreeError>>,
    is_unwanted: fn() -> bool,
}

enum Task {
    Directory { parent: Arc<OwnedFd>, place: Place },
    Files { directory: Arc<OwnedFd>, place: Place, files: Range<u64> },
}

/// What was tried, on which name, and the answer.
type Failure = (&'static str, String, Errno);

impl Maker<'_> {
    fn work(&self, id: WorkerId, task: Task) -> Result<(), Failure> {
        match task {
            Task::Directory { .. } if self.is_over() => Ok(()),
            Task::Directory { parent, place } => {
                let name = self.plan.directory_name(place);
                mkdirat(&parent, name.as_str(), Mode::from_raw_mode(0o777))
                    .map_err(|errno| ("make directory", name.as_str().into(), errno))?;
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let directory = openat(&parent, name.as_str(), flags, Mode::empty())
                    .map_err(|errno| ("open directory", name.as_str().into(), errno))?;
                drop(parent);
                self.directories.fetch_add(1, Ordering::Relaxed);
                self.expand(id, Arc::new(directory), place);
                Ok(())
            }
            Task::Files { directory, place, files } => self.write_files(&directory, place, files),
        }
    }

    /// Queues what belongs in a directory that now exists.
    fn expand(&self, id: WorkerId, directory: Arc<OwnedFd>, place: Place) {
        for index in self.plan.children(place).rev() {
            let place = Place { level: place.level + 1, index };
            self.pool.push(id, Task::Directory { parent: directory.clone(), place });
        }
        let files = self.plan.files(place);
        let mut first = 0;
        while first < files {
            let end = first.saturating_add(self.split).min(files);
            self.pool.push(id, Task::Files { directory: directory.clone(), place, files: first..end });
            first = end;
        }
    }

    fn write_files(&self, directory: &OwnedFd, place: Place, files: Range<u64>) -> Result<(), Failure> {
        let (mut made, mut bytes, mut buffer) = (0, 0, Vec::new());
        for file in files {
            if self.is_over() {
                break;
            }
            let name = self.plan.file_name(place, file);
            let key = self.plan.file_key(place, file);
            let length = self.plan.file_bytes(key);
            self.write_file(directory, name, key, length, &mut buffer)
                .map_err(|errno| ("write", name.as_str().into(), errno))?;
            made += 1;
            bytes += length;
        }
        self.files.fetch_add(made, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Whether nothing more is to be made, because something failed or nobody wants it.
    fn is_over(&self) -> bool {
        if (self.is_unwanted)() {
            lock(&self.failure).get_or_insert(TreeError::Unwanted);
            self.pool.stop();
        }
        self.pool.is_stopped()
    }

    fn write_file(
        &self,
        directory: &OwnedFd,
        name: Name,
        key: u64,
        length: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        let mode = Mode::from_raw_mode(0o666);
        if length == 0 {
            return mknodat(directory, name.as_str(), FileType::RegularFile, mode, 0);
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(directory, name.as_str(), flags, mode)?;
        let mut offset = 0;
        while offset < length && !self.is_over() {
            let piece = (length - offset).min(PIECE as u64) as usize;
            buffer.resize(piece, 0);
            content::fill(key, offset, buffer);
            write_all(&file, buffer)?;
            offset += piece as u64;
        }
        Ok(())
    }
}

fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match write(file, bytes) {
            Ok(0) => return Err(Errno::NOSPC),
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Opens the root, made if missing, and insists that it is empty.
fn open_root(root: &Path) -> Result<OwnedFd, TreeError> {
    match mkdirat(CWD, root, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(TreeError::io("make directory", root, errno)),
    }
    let directory = openat(CWD, root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| TreeError::io("open", root, errno))?;
    if is_empty(&directory).map_err(|error| TreeError::io("read", root, error))? {
        Ok(directory)
    } else {
        Err(TreeError::NotEmpty(root.into()))
    }
}

/// Whether `directory` has no entries but `lost+found`, which comes with a new ext4.
fn is_empty(directory: impl AsFd) -> io::Result<bool> {
    for entry in rustix::fs::Dir::read_from(directory)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b".." | b"lost+found") {
            return Ok(false);
        }
    }
    Ok(true)
}
