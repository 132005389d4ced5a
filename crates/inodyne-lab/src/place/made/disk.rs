//! A file system of its own, empty at first: on a loop device over an image, or a tmpfs.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::statvfs;

use super::{Made, hand_over, notes_on_images};
use crate::{
    DataSpec, Filled, Kind, Lab, LabError, MadePlace, MountedPlace, Note, Owner, device, image,
    lab::MountPoint,
    loop_device::LoopDevice,
    mkfs, mount,
    mount::Mount,
    wear::{Filler, Wear},
};

#[derive(Debug)]
pub(super) struct Disk {
    mount: Mount,
    /// Where it looks used: the whole file system, of which the place is a directory, mounted below.
    used: Option<Used>,
    point: MountPoint,
    kind: Kind,
    options: String,
    disk: Option<LoopDevice>,
}

/// A file system that others have used.
#[derive(Debug)]
struct Used {
    whole: Mount,
    filler: Filler,
}

/// The directory of a used file system that is the place, and the one beside it with what others have left.
const DATA: &str = "data";
const FILLER: &str = "filler";

impl Disk {
    pub fn make(made: &MadePlace, owner: Owner, lab: &Lab) -> Result<(Self, Vec<Note>), LabError> {
        let point = lab.mount_point()?;
        let (disk, options, notes) = if made.kind.has_device() {
            let (image, size) = image::create(lab.scratch(), made.size)?;
            let disk = LoopDevice::new(image, made.limits(), point.outside())?;
            let notes = notes_on_images(lab.scratch(), disk.is_direct())?;
            mkfs::format(made.kind, disk.path(), size, &made.mkfs_words())?;
            (Some(disk), made.mount_options().to_owned(), notes)
        } else {
            let size = made.size.map(|size| format!(",size={}", size.bytes())).unwrap_or_default();
            (None, format!("mode=755{size},{}", made.mount_options()), vec![])
        };
        Ok((Self::on(point, made.kind, options, disk, owner, made.wear())?, notes))
    }

    /// An empty ext4 to build something on: sparse, so that it costs what is written to it.
    pub fn workshop(scratch: &Path, point: MountPoint, owner: Owner) -> Result<Self, LabError> {
        let (image, size) = image::create(scratch, None)?;
        let disk = LoopDevice::attach(&image)?;
        // As many inodes as blocks: by default there are only enough for files of 16 KiB on average.
        mkfs::format(Kind::Ext4, disk.path(), size, &["-i".into(), "4096".into()])?;
        Self::on(point, Kind::Ext4, String::new(), Some(disk), owner, Wear::default())
    }

    fn on(
        point: MountPoint,
        kind: Kind,
        options: String,
        disk: Option<LoopDevice>,
        owner: Owner,
        wear: Wear,
    ) -> Result<Self, LabError> {
        let mount = mount(kind, &options, disk.as_ref(), &point)?;
        if wear.is_none() {
            hand_over(&point.directory, owner)?;
            return Ok(Self { mount, used: None, point, kind, options, disk });
        }
        let [data, others] = [DATA, FILLER].map(|name| point.directory.join(name));
        for (directory, mode) in [(&data, 0o755), (&others, 0o700)] {
            let made = fs::create_dir(directory);
            made.and_then(|()| fs::set_permissions(directory, fs::Permissions::from_mode(mode)))
                .map_err(|error| LabError::io("make directory", directory, error))?;
        }
        hand_over(&data, owner)?;
        let filler = Filler::make(&others, wear)?;
        let top = bind(&point)?;
        Ok(Self { mount: top, used: Some(Used { whole: mount, filler }), point, kind, options, disk })
    }
}

fn mount(kind: Kind, options: &str, disk: Option<&LoopDevice>, point: &MountPoint) -> Result<Mount, LabError> {
    Mount::new(kind.name(), &source(kind, disk), options, &point.directory)
}

/// Shows only the place of a used file system.
fn bind(point: &MountPoint) -> Result<Mount, LabError> {
    Mount::bind(&point.directory.join(DATA), "", &point.directory)
}

fn source(kind: Kind, disk: Option<&LoopDevice>) -> String {
    disk.map_or_else(|| kind.name().into(), |disk| disk.path().display().to_string())
}

impl Made for Disk {
    fn path(&self) -> &Path {
        &self.point.directory
    }

    fn remount(&mut self) -> Result<(), LabError> {
        if let Some(disk) = &self.disk {
            self.mount.unmount()?;
            if let Some(used) = &mut self.used {
                used.whole.unmount()?;
            }
            disk.forget_buffers()?;
            let mounted = mount(self.kind, &self.options, Some(disk), &self.point)?;
            self.mount = match &mut self.used {
                None => mounted,
                Some(used) => {
                    used.whole = mounted;
                    bind(&self.point)?
                }
            };
        }
        Ok(())
    }

    fn fill(&mut self, data: &DataSpec, owner: Owner) -> Result<Filled, LabError> {
        let filled = data.fill(self.path(), owner)?;
        mount::sync(self.path())?;
        self.settle()?;
        Ok(filled)
    }

    fn settle(&mut self) -> Result<(), LabError> {
        if let Some(used) = &mut self.used {
            self.mount.unmount()?;
            used.filler.trim()?;
            self.mount = bind(&self.point)?;
        }
        Ok(())
    }

    fn wear(&self) -> Result<Option<inodyne_model::place::Wear>, LabError> {
        self.used.as_ref().map(|used| used.filler.record(self.path())).transpose()
    }

    fn source(&self) -> String {
        source(self.kind, self.disk.as_ref())
    }

    fn device(&self) -> Option<(u32, u32)> {
        self.disk.as_ref().map(LoopDevice::number)
    }

    fn control(&self) -> Option<Arc<inodyne_fuse::Control>> {
        self.disk.as_ref().and_then(LoopDevice::control)
    }

    fn size_bytes(&self) -> Result<Option<u64>, LabError> {
        if let Some(device) = self.device() {
            return device::size_bytes(device).map(Some);
        }
        let stat = statvfs(self.path()).map_err(|errno| LabError::io("inspect", PathBuf::from(self.path()), errno))?;
        Ok(Some(stat.f_blocks.saturating_mul(stat.f_frsize)))
    }

    fn below(&self) -> Vec<&MountedPlace> {
        vec![]
    }
}

/// Whether a kind of file system keeps nothing on any disk.
pub(crate) fn is_in_memory(fs: &str) -> bool {
    matches!(fs, "tmpfs" | "ramfs" | "devtmpfs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workshop_has_room_for_many_small_files() {
        let (lab, scratch) = (Lab::new(), Path::new("/var/tmp"));
        let workshop = Disk::workshop(scratch, lab.mount_point().unwrap(), Owner::ROOT).unwrap();
        let (files, size) = (statvfs(workshop.path()).unwrap().f_files, workshop.size_bytes().unwrap().unwrap());
        assert!(files >= size / 4096 / 100 * 99, "{files} in {size} bytes");
    }
}
