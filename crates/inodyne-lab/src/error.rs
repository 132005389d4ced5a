//! What can go wrong while preparing: one type, each message one line that says what is wrong and what to do.
//!
//! A user's mistake, a machine that lacks something and a kernel's refusal are told apart by variant, because the
//! command line answers them with different exit codes ([`LabError::is_usage`]).

use std::{io, path::PathBuf};

use thiserror::Error;

use crate::{Kind, Size};

/// Why a place could not be prepared.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LabError {
    /// A description of a place that cannot be understood.
    #[error("place '{text}': {problem}")]
    PlaceSyntax {
        /// What was written.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A description of data that cannot be understood.
    #[error("data '{text}': {problem}")]
    DataSyntax {
        /// What was written.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The process lacks a capability.
    #[error("{purpose} needs {capability}: run as root (sudo), or in a container with --privileged")]
    MissingCapability {
        /// What cannot be done: "making file systems".
        purpose: &'static str,
        /// `CAP_SYS_ADMIN`.
        capability: &'static str,
    },
    /// The place does not exist.
    #[error("{} does not exist: give an existing directory, or a file system to make, such as ext4", .0.display())]
    NotThere(PathBuf),
    /// The place is something other than a directory.
    #[error("{} is not a directory: a place is a directory, or a file system to make, such as ext4", .0.display())]
    NotADirectory(PathBuf),
    /// The directory cannot be looked at by the superuser, as whom the command is to run.
    #[error(
        "{} refuses root, as FUSE without allow_other and NFS with root_squash do: name a user who may use it (--user NAME)", .0.display()
    )]
    RefusesRoot(PathBuf),
    /// An existing directory lies below where our own places are mounted.
    #[error("{} is where made places are mounted: set INODYNE_MOUNT to another empty directory", .0.display())]
    Hidden(PathBuf),
    /// The root directory is not where a file system is mounted, so its mounts cannot be kept from others.
    #[error(
        "/ is not a mount point (a chroot?), so places cannot be made here: mount it over itself first (mount --bind)"
    )]
    RootIsNoMount,
    /// No directory can be mounted over without hiding something.
    #[error("no empty directory to mount on (tried {tried}): set INODYNE_MOUNT to one")]
    NoMountDirectory {
        /// The directories that were looked at.
        tried: String,
    },
    /// The machine has no loop devices.
    #[error("no loop device ({problem}): load the kernel module with `modprobe loop`; a container needs /dev/loop*")]
    NoLoopDevice {
        /// What failed.
        problem: String,
    },
    /// The machine has no FUSE.
    #[error(
        "no /dev/fuse ({problem}): load the kernel module with `modprobe fuse`; a container needs --device /dev/fuse"
    )]
    NoFuse {
        /// What failed.
        problem: String,
    },
    /// The mkfs program is not installed.
    #[error("{program} is missing: install it with `apt-get install {package}`")]
    MkfsMissing {
        /// `mkfs.xfs`.
        program: &'static str,
        /// The Debian package.
        package: &'static str,
    },
    /// The mkfs program failed.
    #[error("{program} failed: {said}")]
    MkfsFailed {
        /// `mkfs.xfs`.
        program: &'static str,
        /// What it printed, in one line.
        said: String,
    },
    /// The size is below what the file system can be made with.
    #[error("{kind} cannot be made in {size}: it needs at least size={least}")]
    TooSmallForKind {
        /// Which file system.
        kind: Kind,
        /// What was asked for.
        size: Size,
        /// What it needs.
        least: Size,
    },
    /// No image can be made where images belong.
    #[error("no image can be made in {}: {source}; set INODYNE_SCRATCH to a directory on a disk", path.display())]
    Scratch {
        /// Where it was tried.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The disk under the images has too little room.
    #[error("{} has {free} free, {wanted} wanted: give less with size=, or another disk with INODYNE_SCRATCH", scratch.display())]
    ScratchFull {
        /// Where images are made.
        scratch: PathBuf,
        /// What it has.
        free: Size,
        /// What was asked for.
        wanted: Size,
    },
    /// The kernel cannot mount this kind of file system.
    #[error("this kernel has no {0}: load its module (`modprobe {0}`) or use another kernel")]
    NoFileSystem(Kind),
    /// The kernel refused to mount.
    #[error("cannot mount {what}: {said}")]
    MountRefused {
        /// The file system and its options.
        what: String,
        /// What the kernel said, in one line.
        said: String,
    },
    /// A setting of the kernel that cannot be changed.
    #[error("cannot set {} to {value}: {problem}", file.display())]
    Setting {
        /// The file.
        file: PathBuf,
        /// What it should be.
        value: String,
        /// Why not.
        problem: String,
    },
    /// A setting of the kernel that was changed, and cannot be restored.
    #[error("cannot restore {} to {value}: {problem}; write it there once that is mended", file.display())]
    NotRestored {
        /// The file.
        file: PathBuf,
        /// What it was.
        value: String,
        /// Why not.
        problem: String,
    },
    /// Something still uses the place.
    #[error("{} is still in use, so it cannot be unmounted: end what the command left running", .0.display())]
    Busy(PathBuf),
    /// The place lives in memory.
    #[error("{0} is in memory and cannot be cold: use --cache warm or as-is there")]
    NeverCold(String),
    /// The place lives in memory.
    #[error("{0} is in memory, where nothing is ever durable: leave --durable out, or choose a place on a device")]
    NeverDurable(String),
    /// The place ignores syncs.
    #[error("{0} is on a volatile overlay, which ignores syncs: leave --durable out, or choose another place")]
    IgnoresSyncs(String),
    /// Data does not fit.
    #[error("place {label} (size {size}) is too small for its data ({data}): give it more with size=")]
    TooSmallForData {
        /// The place.
        label: String,
        /// Its size.
        size: Size,
        /// What should go into it.
        data: String,
    },
    /// Data that does not fit where it is put before it is packed.
    #[error("data ({data}) does not fit into the {most} that {kind} is packed from: give less of it")]
    TooMuchToPack {
        /// Which file system.
        kind: Kind,
        /// As much as there is room for.
        most: Size,
        /// What should go into it.
        data: String,
    },
    /// A file system that cannot be made as full as asked for.
    #[error(
        "the file system has no room left at {reached}% and cannot be made {wanted}% full: ask for less with full="
    )]
    NotFull {
        /// What was asked for, in percent.
        wanted: u8,
        /// What was reached.
        reached: u8,
    },
    /// A script that was to make data.
    #[error("script {}: {problem}", path.display())]
    Script {
        /// The script.
        path: PathBuf,
        /// What went wrong with it, in one line.
        problem: String,
    },
    /// The user no longer wants it.
    #[error("interrupted")]
    Interrupted,
    /// Data for a directory that was there before.
    #[error("{} was there before, and is never filled: use --data only with places made here", .0.display())]
    NotFilled(PathBuf),
    /// An archive that cannot be unpacked.
    #[error("archive {}: {problem}", path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A tree could not be made.
    #[error(transparent)]
    Tree(#[from] inodyne_tree::TreeError),
    /// A system call failed, and nothing sensible can be done without it.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb: "open".
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

impl LabError {
    /// Wraps a kernel answer with what was tried, on what.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        Self::Io { action, path: path.into(), source: source.into() }
    }

    /// Whether the kernel or a file system does not permit it.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Whether the description is at fault rather than the machine (exit code 2 rather than 3).
    pub fn is_usage(&self) -> bool {
        if let Self::Tree(error) = self {
            return error.is_usage();
        }
        matches!(
            self,
            Self::PlaceSyntax { .. }
                | Self::DataSyntax { .. }
                | Self::NotThere(_)
                | Self::NotADirectory(_)
                | Self::RefusesRoot(_)
                | Self::Hidden(_)
                | Self::TooSmallForKind { .. }
                | Self::NeverCold(_)
                | Self::NeverDurable(_)
                | Self::IgnoresSyncs(_)
                | Self::TooSmallForData { .. }
                | Self::TooMuchToPack { .. }
                | Self::NotFilled(_)
                | Self::NotFull { .. }
                | Self::Script { .. }
                | Self::Archive { .. }
                | Self::MkfsFailed { .. }
                | Self::MountRefused { .. }
                | Self::Setting { .. }
        )
    }

    /// Whether a file system was full.
    pub(crate) fn is_full(&self) -> bool {
        let source = match self {
            Self::Io { source, .. } | Self::Tree(inodyne_tree::TreeError::Io { source, .. }) => source,
            _ => return false,
        };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

/// To be called now and then during work that takes long: an error if the user no longer wants it.
pub(crate) fn still_wanted() -> Result<(), LabError> {
    if inodyne_launch::is_asked_to_end() { Err(LabError::Interrupted) } else { Ok(()) }
}
