//! A place that is ready for runs, until dropped.
//!
//! Three kinds: a directory that was there before (looked at, never touched), a tmpfs, and a file system on a loop
//! device over an image. The order of the fields is the order of undoing: unmount, then remove the mount point, then
//! let go of the device, which detaches its image, which is then gone.

use std::{
    fmt, fs,
    io::ErrorKind,
    os::unix::fs::chown,
    path::{Path, PathBuf},
};

use inodyne_model::place::Place;
use rustix::{
    fs::{Access, statvfs},
    io::Errno,
};

use crate::{
    DataSpec, DeviceStats, Filled, LabError, MadePlace, PlaceSpec, Size, device, image, lab::MountPoint,
    loop_device::LoopDevice, mkfs, mount, mount::Mount, mountinfo, permission,
};

/// For whom a place is made: the user that the command runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl Owner {
    /// The superuser.
    pub const ROOT: Self = Self { uid: 0, gid: 0 };
}

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

/// A place that is ready for runs.
#[derive(Debug)]
pub struct MountedPlace {
    mounted: Mounted,
    record: Place,
    notes: Vec<Note>,
    owner: Owner,
    device: Option<(u32, u32)>,
}

#[derive(Debug)]
enum Mounted {
    Existing,
    Made { mount: Mount, options: String, _point: MountPoint, disk: Option<LoopDevice> },
}

impl MountedPlace {
    /// The directory in which commands run.
    pub fn path(&self) -> &Path {
        &self.record.path
    }

    /// What goes into the recording.
    pub fn record(&self) -> Place {
        self.record.clone()
    }

    /// What to tell the user about this place.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// What the block device below has moved so far; `None` where there is none, or none that can be told.
    pub fn device_stats(&self) -> Option<DeviceStats> {
        DeviceStats::of(self.device?)
    }

    /// Major and minor number of that block device.
    pub fn device_number(&self) -> Option<(u32, u32)> {
        self.device
    }

    /// Whether the place keeps nothing on any disk.
    pub fn is_in_memory(&self) -> bool {
        is_in_memory(&self.record.fs)
    }

    /// Unmounts and mounts again, forgetting everything cached. Does nothing for a directory that was there before
    /// and for a tmpfs, whose files would be lost.
    pub fn remount(&mut self) -> Result<(), LabError> {
        if let Mounted::Made { mount, options, disk: Some(disk), .. } = &mut self.mounted {
            mount.unmount()?;
            disk.forget_buffers()?;
            *mount = Mount::new(&self.record.fs, &self.record.source, options, &self.record.path)?;
        }
        Ok(())
    }

    /// Puts data into a place made here, and waits until it is on the device.
    pub fn fill(&mut self, data: &DataSpec) -> Result<Filled, LabError> {
        if !self.record.made_here {
            return Err(LabError::NotFilled(self.record.path.clone()));
        }
        let filled = data.fill(&self.record.path, self.owner).and_then(|filled| {
            mount::sync(&self.record.path)?;
            Ok(filled)
        });
        let size = Size::from_bytes(self.record.size_bytes.unwrap_or_default());
        let filled = filled.map_err(|error| match error.is_full() {
            true => LabError::TooSmallForData { label: self.record.label.clone(), size, data: data.to_string() },
            false => error,
        })?;
        self.record.data = Some(data.to_string());
        Ok(filled)
    }

    pub(crate) fn existing(spec: &PlaceSpec, directory: &Path, owner: Owner) -> Result<Self, LabError> {
        let path = directory.canonicalize().map_err(|error| match error.kind() {
            ErrorKind::NotFound => LabError::NotThere(directory.into()),
            ErrorKind::NotADirectory => LabError::NotADirectory(directory.into()),
            _ => LabError::io("look at", directory, error),
        })?;
        if !path.is_dir() {
            return Err(LabError::NotADirectory(directory.into()));
        }
        let info = mountinfo::of(&path)?;
        let notes = match permission::check(&path, Access::WRITE_OK | Access::EXEC_OK, owner) {
            Err(Errno::ROFS) => vec![Note::ReadOnly],
            Err(Errno::ACCESS) => vec![Note::NotWritable { uid: owner.uid }],
            _ => Vec::new(),
        };
        let device = device::under(&info);
        let record = Place {
            label: spec.name(),
            fs: info.fs,
            source: info.source,
            path,
            mount_options: info.options,
            ..Place::default()
        };
        Ok(Self { mounted: Mounted::Existing, record, notes, owner, device })
    }

    pub(crate) fn made(
        spec: &PlaceSpec,
        made: &MadePlace,
        owner: Owner,
        scratch: &Path,
        point: MountPoint,
    ) -> Result<Self, LabError> {
        let fs = made.kind.name();
        let (mkfs, mut notes) = (made.mkfs_words(), Vec::new());
        let (disk, source, options) = if made.kind.mkfs().is_some() {
            let (image, size) = image::create(scratch, made.size)?;
            let disk = LoopDevice::attach(&image)?;
            if is_in_memory(&mountinfo::of(scratch)?.fs) {
                notes.push(Note::ScratchInMemory { scratch: scratch.into() });
            } else if !disk.is_direct() {
                notes.push(Note::NotDirect { scratch: scratch.into() });
            }
            mkfs::format(made.kind, disk.path(), size, &mkfs)?;
            let source = disk.path().display().to_string();
            (Some(disk), source, made.mount_options().to_owned())
        } else {
            let size = made.size.map(|size| format!(",size={}", size.bytes())).unwrap_or_default();
            (None, fs.to_owned(), format!("mode=755{size},{}", made.mount_options()))
        };
        let path = point.directory.clone();
        let mount = Mount::new(fs, &source, &options, &path)?;
        hand_over(&path, owner)?;
        let info = mountinfo::of(&path)?;
        let device = disk.as_ref().map(LoopDevice::number).transpose()?;
        let record = Place {
            label: spec.name(),
            fs: info.fs,
            source,
            mkfs,
            mount_options: info.options,
            size_bytes: Some(size_of(&path, device)?),
            made_here: true,
            path,
            ..Place::default()
        };
        Ok(Self { mounted: Mounted::Made { mount, options, _point: point, disk }, record, notes, owner, device })
    }
}

fn is_in_memory(fs: &str) -> bool {
    matches!(fs, "tmpfs" | "ramfs" | "devtmpfs")
}

/// Makes an empty root directory that belongs to the user; a read-only file system stays as mkfs made it.
///
/// `lost+found`, with which ext file systems come, goes: it may be entered by root only, so that a user's `find` would
/// fail there, and other file systems have none, so that the places would differ. fsck makes it again when needed.
fn hand_over(path: &Path, owner: Owner) -> Result<(), LabError> {
    match fs::remove_dir(path.join("lost+found")) {
        Err(error) if error.kind() == ErrorKind::ReadOnlyFilesystem => return Ok(()),
        Err(error) if error.kind() != ErrorKind::NotFound && error.kind() != ErrorKind::DirectoryNotEmpty => {
            return Err(LabError::io("remove", path.join("lost+found"), error));
        }
        _ => {}
    }
    match chown(path, Some(owner.uid), Some(owner.gid)) {
        Err(error) if error.kind() != ErrorKind::ReadOnlyFilesystem => Err(LabError::io("hand over", path, error)),
        _ => Ok(()),
    }
}

/// Bytes of the device, or what a tmpfs may hold.
fn size_of(path: &Path, device: Option<(u32, u32)>) -> Result<u64, LabError> {
    if let Some((major, minor)) = device {
        let file = format!("/sys/dev/block/{major}:{minor}/size");
        let text = fs::read_to_string(&file).map_err(|error| LabError::io("read", &file, error))?;
        return Ok(text.trim().parse::<u64>().unwrap_or_default() * 512);
    }
    let stat = statvfs(path).map_err(|errno| LabError::io("inspect", path, errno))?;
    Ok(stat.f_blocks.saturating_mul(stat.f_frsize))
}
