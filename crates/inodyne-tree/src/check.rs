//! Checking a tree bit for bit: every name, type, length and byte, and nothing else beside them.
//!
//! Each directory is compared with the plan; what differs is a [`Problem`], counted always and described for the first
//! few. Reading stays below the root (no symbolic link is followed) and changes nothing, access times included
//! where the kernel allows that.

use std::{
    ffi::OsStr,
    fmt,
    ops::Range,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, fgetxattr, fstat, openat},
    io::{Errno, read},
};

use crate::{
    TreeError, TreeSpec, content,
    descriptors::descriptor_budget,
    make::SPEC_ATTRIBUTE,
    plan::{Name, Place, Plan},
    pool::{Pool, WorkerGroup, WorkerId},
    sync::{cores, lock},
};

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// Files compared and found right.
    pub files: u64,
    /// Directories compared, the root included.
    pub directories: u64,
    /// Bytes compared and found right.
    pub bytes: u64,
    /// How many things differ.
    pub problems: u64,
    /// The first of them, at most 20.
    pub first: Vec<Problem>,
    /// Time taken.
    pub wall: Duration,
}

impl CheckReport {
    /// Whether the tree is exactly what the specification says.
    pub fn is_clean(&self) -> bool {
        self.problems == 0
    }
}

/// One difference between a tree and its specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Below the root.
    pub path: PathBuf,
    /// In words: "missing", "not in the specification", "byte 17 differs".
    pub what: String,
}

impl fmt::Display for Problem {
    /// One line, whatever the path holds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.as_os_str().is_empty() { Path::new(".") } else { &self.path };
        for chunk in path.as_os_str().as_bytes().utf8_chunks() {
            for character in chunk.valid().chars() {
                if character.is_control() {
                    write!(f, "{}", character.escape_default())?;
                } else {
                    write!(f, "{character}")?;
                }
            }
            write!(f, "{}", chunk.invalid().escape_ascii())?;
        }
        write!(f, ": {}", self.what)
    }
}

/// Compares what is below `root` with `spec`.
pub fn check(spec: &TreeSpec, root: &Path) -> Result<CheckReport, TreeError> {
    let started = Instant::now();
    let directory = open_root(root)?;
    // Each holds a few descriptors, and more wait in its queue.
    let workers = cores().min(descriptor_budget() / 8).max(1);
    let checker = Checker {
        plan: Plan::new(spec)?,
        pool: Pool::new(&[WorkerGroup { workers, steal: true }]),
        files: AtomicU64::new(0),
        directories: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        problems: AtomicU64::new(0),
        first: Mutex::default(),
    };
    checker.directory(WorkerId { group: 0, index: 0 }, Arc::new(directory), Place::ROOT, Arc::new(Trail::default()));
    checker.pool.run(|id| id, |id, task| checker.work(*id, task));
    Ok(CheckReport {
        files: checker.files.into_inner(),
        directories: checker.directories.into_inner(),
        bytes: checker.bytes.into_inner(),
        problems: checker.problems.into_inner(),
        first: checker.first.into_inner().expect("no worker panics while it holds this"),
        wall: started.elapsed(),
    })
}

/// The specification that [`crate::make`] left at `root`, where the file system keeps attributes.
pub fn recorded_spec(root: &Path) -> Result<TreeSpec, TreeError> {
    let directory = open_root(root)?;
    let mut text = [0; 512];
    match fgetxattr(&directory, SPEC_ATTRIBUTE, &mut text) {
        Ok(length) => String::from_utf8_lossy(&text[..length]).parse(),
        Err(_) => Err(TreeError::NoRecordedSpec(root.into())),
    }
}

/// Opens the root, which may be a link to it: the user named it.
fn open_root(root: &Path) -> Result<OwnedFd, TreeError> {
    openat(CWD, root, DIRECTORY.difference(OFlags::NOFOLLOW), Mode::empty())
        .map_err(|errno| TreeError::io("open", root, errno))
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Described problems; the rest is only counted.
const DESCRIBED: usize = 20;

struct Checker<'a> {
    plan: Plan<'a>,
    pool: Pool<Task>,
    files: AtomicU64,
    directories: AtomicU64,
    bytes: AtomicU64,
    problems: AtomicU64,
    first: Mutex<Vec<Problem>>,
}

/// Several directories in one task. Whoever takes it does the first, so that a specification with many costs no memory.
struct Task {
    parent: Arc<OwnedFd>,
    level: usize,
    indices: Range<u64>,
    above: Arc<Trail>,
}

/// The path from the root to a directory, for messages, shared between siblings' parents.
#[derive(Default)]
struct Trail {
    above: Option<Arc<Trail>>,
    name: String,
}

impl Trail {
    fn path(&self) -> PathBuf {
        let mut names = Vec::new();
        let mut at = self;
        while let Some(above) = &at.above {
            names.push(&at.name);
            at = above;
        }
        names.iter().rev().collect()
    }
}

impl Drop for Trail {
    /// One level after the other: a chain of a million levels must not become a million nested drops.
    fn drop(&mut self) {
        let mut above = self.above.take();
        while let Some(trail) = above {
            above = Arc::into_inner(trail).and_then(|mut trail| trail.above.take());
        }
    }
}

impl Checker<'_> {
    fn work(&self, id: WorkerId, mut task: Task) {
        let Some(index) = task.indices.next() else { return };
        let place = Place { level: task.level, index };
        let name = self.plan.directory_name(place);
        let opened = openat(&task.parent, name.as_str(), DIRECTORY, Mode::empty());
        let trail = Arc::new(Trail { above: Some(task.above.clone()), name: name.as_str().to_owned() });
        if task.indices.is_empty() {
            drop(task);
        } else {
            self.pool.push(id, task);
        }
        match opened {
            Ok(directory) => self.directory(id, Arc::new(directory), place, trail),
            Err(errno) => self.problem(&trail, None, missing_or(errno, "a directory")),
        }
    }

    fn directory(&self, id: WorkerId, directory: Arc<OwnedFd>, place: Place, trail: Arc<Trail>) {
        self.directories.fetch_add(1, Ordering::Relaxed);
        let (children, files) = (self.plan.children(place), self.plan.files(place));
        match rustix::fs::Dir::read_from(&directory) {
            Ok(entries) => {
                for entry in entries {
                    let entry = match entry {
                        Ok(entry) => entry,
                        Err(errno) => {
                            self.problem(&trail, None, errno.to_string());
                            break;
                        }
                    };
                    let bytes = entry.file_name().to_bytes();
                    let known = match Name::parse(bytes) {
                        Some(('d', index)) if children.contains(&index) => {
                            let child = Place { level: place.level + 1, index };
                            self.plan.directory_name(child).as_str().as_bytes() == bytes
                        }
                        Some(('f', index)) if index < files => {
                            self.plan.file_name(place, index).as_str().as_bytes() == bytes
                        }
                        _ => false,
                    };
                    // A new ext4 comes with it.
                    let may_be_directory = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
                    let own = place == Place::ROOT && bytes == b"lost+found" && may_be_directory;
                    if !known && !own && !matches!(bytes, b"." | b"..") {
                        self.problem(&trail, Some(OsStr::from_bytes(bytes)), "not in the specification".into());
                    }
                }
            }
            Err(errno) => self.problem(&trail, None, errno.to_string()),
        }
        if !children.is_empty() {
            let (parent, above) = (directory.clone(), trail.clone());
            self.pool.push(id, Task { parent, level: place.level + 1, indices: children, above });
        }
        let mut buffer = vec![0; BUFFER];
        let mut expected = Vec::new();
        for file in 0..files {
            let name = self.plan.file_name(place, file);
            let key = self.plan.file_key(place, file);
            match compare(&directory, name, key, self.plan.file_bytes(key), &mut buffer, &mut expected) {
                Ok(bytes) => {
                    self.files.fetch_add(1, Ordering::Relaxed);
                    self.bytes.fetch_add(bytes, Ordering::Relaxed);
                }
                Err(what) => self.problem(&trail, Some(name.as_str().as_ref()), what),
            }
        }
    }

    fn problem(&self, trail: &Trail, name: Option<&OsStr>, what: String) {
        self.problems.fetch_add(1, Ordering::Relaxed);
        let mut first = lock(&self.first);
        if first.len() < DESCRIBED {
            let directory = trail.path();
            first.push(Problem { path: name.map_or(directory.clone(), |name| directory.join(name)), what });
        }
    }
}

const BUFFER: usize = 256 * 1024;

/// Reads a file against what it should hold; says what differs.
fn compare(
    directory: &OwnedFd,
    name: Name,
    key: u64,
    length: u64,
    buffer: &mut [u8],
    expected: &mut Vec<u8>,
) -> Result<u64, String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = |flags| openat(directory, name.as_str(), flags, Mode::empty());
    // Only an owner may ask for access times to stay as they are.
    let file = open(flags | OFlags::NOATIME)
        .or_else(|errno| if errno == Errno::PERM { open(flags) } else { Err(errno) })
        .map_err(|errno| missing_or(errno, "a file"))?;
    let stat = fstat(&file).map_err(|errno| errno.to_string())?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err("not a file".into());
    }
    if stat.st_size as u64 != length {
        return Err(format!("{} bytes, not {length}", stat.st_size));
    }
    let mut offset = 0;
    while offset < length {
        // A whole number of words, so that every piece starts where the generator can start.
        let wanted = (length - offset).min(buffer.len() as u64) as usize;
        let mut got = 0;
        while got < wanted {
            match read(&file, &mut buffer[got..wanted]) {
                Ok(0) => return Err(format!("ends at byte {}", offset + got as u64)),
                Ok(more) => got += more,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.to_string()),
            }
        }
        expected.resize(wanted, 0);
        content::fill(key, offset, expected);
        if let Some(differs) = (0..wanted).find(|&at| buffer[at] != expected[at]) {
            return Err(format!("byte {} differs", offset + differs as u64));
        }
        offset += wanted as u64;
    }
    Ok(length)
}

fn missing_or(errno: Errno, wanted: &str) -> String {
    match errno {
        Errno::NOENT => "missing".into(),
        Errno::NOTDIR | Errno::LOOP => format!("not {wanted}"),
        errno => errno.to_string(),
    }
}
