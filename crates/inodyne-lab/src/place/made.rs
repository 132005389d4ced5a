//! The places made here: what each kind mounts, in which order, and where its data goes.
//!
//! One file per family. What they share is [`Made`]: a place is mounted, can be unmounted and mounted again from the top
//! down and back, and filled. The order of the fields in each is the order of undoing.

mod bind;
mod disk;
mod fuse;
mod overlay;
mod packed;

use std::{fmt, fs, io::ErrorKind, os::unix::fs::chown, path::Path, sync::Arc};

use inodyne_model::place::Wear;

use crate::{DataSpec, Filled, Kind, Lab, LabError, MadePlace, MountedPlace, Note, Owner, mountinfo};

pub(crate) use disk::is_in_memory;

/// A place made here, mounted as long as it lives.
pub(crate) trait Made: fmt::Debug + Send + Sync {
    /// Where.
    fn path(&self) -> &Path;

    /// Unmounts and mounts again, with all that it stands on; what is only in memory stays.
    fn remount(&mut self) -> Result<(), LabError>;

    /// Puts data into it, and waits until it is on the device.
    fn fill(&mut self, data: &DataSpec, owner: Owner) -> Result<Filled, LabError>;

    /// What is mounted: `/dev/loop0`.
    fn source(&self) -> String;

    /// Its own block device.
    fn device(&self) -> Option<(u32, u32)>;

    /// How its own device, or the host of a share, is told to be slow, if it is slow.
    fn control(&self) -> Option<Arc<inodyne_fuse::Control>> {
        None
    }

    /// Deletes what makes it fuller than asked for, now that the data is in.
    fn settle(&mut self) -> Result<(), LabError> {
        Ok(())
    }

    /// Frees the device that filling has replaced, if it has. To be called when the settings of that one are restored: whoever gets it next
    /// must find it as it was.
    fn let_go(&mut self) {}

    /// What makes it look used.
    fn wear(&self) -> Result<Option<Wear>, LabError> {
        Ok(None)
    }

    /// How much it may hold; `None` where that is another place's business.
    fn size_bytes(&self) -> Result<Option<u64>, LabError>;

    /// What it stands on.
    fn below(&self) -> Vec<&MountedPlace>;
}

/// Makes the place, with what its reader should know.
pub(crate) fn make(made: &MadePlace, owner: Owner, lab: &Lab) -> Result<(Box<dyn Made>, Vec<Note>), LabError> {
    Ok(match made.kind {
        Kind::Overlay => boxed(overlay::Overlay::make(made, owner, lab)?),
        Kind::Bind => boxed(bind::Bind::make(made, owner, lab)?),
        Kind::Fuse | Kind::Share => boxed(fuse::Fuse::make(made, owner, lab)?),
        Kind::Squashfs | Kind::Erofs => boxed(packed::Packed::make(made, owner, lab)?),
        _ => boxed(disk::Disk::make(made, owner, lab)?),
    })
}

fn boxed<M: Made + 'static>((made, notes): (M, Vec<Note>)) -> (Box<dyn Made>, Vec<Note>) {
    (Box::new(made), notes)
}

/// What is to be said about images in this directory.
fn notes_on_images(scratch: &Path, is_direct: bool) -> Result<Vec<Note>, LabError> {
    Ok(if is_in_memory(&mountinfo::of(scratch)?.fs) {
        vec![Note::ScratchInMemory { scratch: scratch.into() }]
    } else if !is_direct {
        vec![Note::NotDirect { scratch: scratch.into() }]
    } else {
        vec![]
    })
}

/// Makes an empty root directory that belongs to the user; a read-only file system stays as mkfs made it.
///
/// `lost+found`, which ext file systems come with, is removed: only root may enter it, so that a user's `find` would
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
