//! What a reader of a place's results should know about it.

use std::{fmt, path::PathBuf};

/// Something about a place that a reader of its results should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// The image is read through the page cache, so a cold run may be served from memory.
    NotDirect {
        /// Where the image is.
        scratch: PathBuf,
    },
    /// The image is in memory, so a cold run reads, but from no disk.
    ScratchInMemory {
        /// Where the image is.
        scratch: PathBuf,
    },
    /// The directory is mounted read-only: commands that write will fail.
    ReadOnly,
    /// The user that the command runs as has no permission to write: commands that write will fail.
    NotWritable {
        /// That user.
        uid: u32,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotDirect { scratch } => write!(
                f,
                "{} does not allow direct I/O, so cold runs may be served from memory: set INODYNE_SCRATCH to a disk",
                scratch.display()
            ),
            Self::ScratchInMemory { scratch } => write!(
                f,
                "{} is in memory, so the device is faster than any disk: set INODYNE_SCRATCH to a disk",
                scratch.display()
            ),
            Self::NotWritable { uid } => {
                write!(f, "user {uid} may not write in the place: commands that write will fail")
            }
            Self::ReadOnly => f.write_str("the place is read-only: commands that write will fail"),
        }
    }
}
