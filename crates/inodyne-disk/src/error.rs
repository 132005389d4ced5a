//! Why a disk cannot be measured: each message is one line that says what is wrong and what to do.

use std::io;
use std::path::PathBuf;

use inodyne_lab::LabError;

/// Why a disk was not measured, or why the result was not saved.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The directory cannot be examined.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// There is no such directory.
    #[error("{} is not a directory: give one on the disk that is to be measured", .0.display())]
    NotADirectory(PathBuf),
    /// fio is not installed.
    #[error("measuring a disk needs fio: install fio (apt-get install fio)")]
    NoFio,
    /// The directory is not on a disk, or spans more than one.
    #[error("{}: {fs} {why}, so no disk can be measured there: give a directory on a disk's own file system", directory.display())]
    NoDisk {
        /// The directory.
        directory: PathBuf,
        /// The kind of its file system.
        fs: String,
        /// What it is on instead.
        why: &'static str,
    },
    /// The file system does not support direct I/O there.
    #[error(
        "{}: {fs} reads and writes through memory only, so the disk cannot be measured there: give a directory on another file system of it",
        directory.display()
    )]
    NotDirect {
        /// The directory.
        directory: PathBuf,
        /// The kind of its file system.
        fs: String,
    },
    /// There is too little free space.
    #[error("{} has {} MB free, and the measurement needs {} MB: make room, or give another directory of the disk", directory.display(), free / 1_000_000, needed / 1_000_000)]
    NoRoom {
        /// The directory.
        directory: PathBuf,
        /// The bytes that are free there.
        free: u64,
        /// The bytes that are needed.
        needed: u64,
    },
    /// No file can be created there.
    #[error("no file can be made in {}: {source}", directory.display())]
    File {
        /// The directory.
        directory: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The disk is too slow for the time allowed.
    #[error("the disk wrote less than {} KiB in the time that it was given: give it more with --for", least / 1024)]
    TooSlow {
        /// The fewest bytes that are enough.
        least: u64,
    },
    /// fio failed.
    #[error("fio failed while {doing}: {said}")]
    Fio {
        /// What it was supposed to do.
        doing: &'static str,
        /// What it said.
        said: String,
    },
    /// Something other than the disk was measured.
    #[error(
        "fio moved {} MB while {doing}, and {disk} only {} MB of these: what answered is memory, so nothing is known of the disk",
        asked / 1_000_000,
        moved / 1_000_000
    )]
    NotTheDisk {
        /// The name of the disk.
        disk: String,
        /// What fio was supposed to do.
        doing: &'static str,
        /// The bytes that fio moved.
        asked: u64,
        /// The bytes that the disk moved in the meantime.
        moved: u64,
    },
    /// Nothing says where the result could be saved.
    #[error("there is no directory to keep what is measured: set XDG_STATE_HOME")]
    Nowhere,
    /// The result cannot be written.
    #[error("{}: {source}, so what was measured is not kept", path.display())]
    NotKept {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

impl DiskError {
    /// Whether the user can fix it by naming another directory.
    pub fn is_usage(&self) -> bool {
        match self {
            DiskError::Lab(error) => error.is_usage(),
            DiskError::NotADirectory(_) | DiskError::NoDisk { .. } | DiskError::NotDirect { .. } => true,
            DiskError::File { source, .. } => source.kind() != io::ErrorKind::StorageFull,
            _ => false,
        }
    }
}
