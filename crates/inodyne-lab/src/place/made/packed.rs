//! squashfs and erofs: made from their data in one go, and never written to again.
//!
//! The data is first put on an ext4 that exists only for that time, then packed into an image without a name. Until there
//! is data, the image is one of an empty directory.

use std::{
    mem,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    process,
    sync::Arc,
};

use super::{Made, disk::Disk, notes_on_images};
use crate::{
    DataSpec, Filled, Kind, Lab, LabError, Limits, MadePlace, MountedPlace, Note, Owner, Size, device, image,
    lab::MountPoint, loop_device::LoopDevice, mkfs, mount::Mount,
};

#[derive(Debug)]
pub(super) struct Packed {
    mount: Mount,
    point: MountPoint,
    disk: LoopDevice,
    /// The one before filling, until [`Made::let_go`].
    replaced: Option<LoopDevice>,
    kind: Kind,
    mkfs: Vec<String>,
    options: String,
    limits: Limits,
    scratch: PathBuf,
}

impl Packed {
    pub fn make(made: &MadePlace, owner: Owner, lab: &Lab) -> Result<(Self, Vec<Note>), LabError> {
        let (point, kind, mkfs) = (lab.mount_point()?, made.kind, made.mkfs_words());
        let scratch = lab.scratch().to_owned();
        let workshop = Disk::workshop(&scratch, point.another()?, owner)?;
        let limits = made.limits();
        let disk = LoopDevice::new(pack(kind, &workshop, &mkfs, &scratch)?, limits, point.outside())?;
        let notes = notes_on_images(&scratch, disk.is_direct())?;
        let options = format!("ro,{}", made.mount_options());
        let mount = mount(kind, &disk, &options, &point)?;
        Ok((Self { mount, point, disk, replaced: None, kind, mkfs, options, limits, scratch }, notes))
    }
}

/// An image of what is in the workshop.
fn pack(kind: Kind, workshop: &Disk, mkfs: &[String], scratch: &Path) -> Result<OwnedFd, LabError> {
    // The packer sets the size; without a name the image can only be opened by the number of our descriptor.
    let (image, _): (OwnedFd, _) = image::create(scratch, Some(Size::from_mib(1)))?;
    let path = PathBuf::from(format!("/proc/{}/fd/{}", process::id(), image.as_raw_fd()));
    mkfs::pack(kind, workshop.path(), &path, mkfs)?;
    Ok(image)
}

fn mount(kind: Kind, disk: &LoopDevice, options: &str, point: &MountPoint) -> Result<Mount, LabError> {
    Mount::new(kind.name(), &disk.path().display().to_string(), options, &point.directory)
}

impl Made for Packed {
    fn path(&self) -> &Path {
        &self.point.directory
    }

    fn remount(&mut self) -> Result<(), LabError> {
        self.mount.unmount()?;
        self.disk.forget_buffers()?;
        self.mount = mount(self.kind, &self.disk, &self.options, &self.point)?;
        Ok(())
    }

    fn fill(&mut self, data: &DataSpec, owner: Owner) -> Result<Filled, LabError> {
        let mut workshop = Disk::workshop(&self.scratch, self.point.another()?, owner)?;
        let most = Size::from_bytes(workshop.size_bytes()?.unwrap_or_default());
        let filled = workshop.fill(data, owner).map_err(|error| match error.is_full() {
            true => LabError::TooMuchToPack { kind: self.kind, most, data: data.to_string() },
            false => error,
        })?;
        let image = pack(self.kind, &workshop, &self.mkfs, &self.scratch)?;
        let disk = LoopDevice::new(image, self.limits, self.point.outside())?;
        self.mount.unmount()?;
        self.replaced = Some(mem::replace(&mut self.disk, disk));
        self.mount = mount(self.kind, &self.disk, &self.options, &self.point)?;
        Ok(filled)
    }

    fn let_go(&mut self) {
        self.replaced = None;
    }

    fn source(&self) -> String {
        self.disk.path().display().to_string()
    }

    fn device(&self) -> Option<(u32, u32)> {
        Some(self.disk.number())
    }

    fn control(&self) -> Option<Arc<inodyne_fuse::Control>> {
        self.disk.control()
    }

    fn size_bytes(&self) -> Result<Option<u64>, LabError> {
        device::size_bytes(self.disk.number()).map(Some)
    }

    fn below(&self) -> Vec<&MountedPlace> {
        vec![]
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_device_that_filling_replaces_is_not_free_before_it_is_let_go() {
        let scratch = tempfile::tempdir_in("/var/tmp").unwrap();
        let lab = Lab::new().with_scratch(scratch.path());
        let spec = "squashfs".parse::<crate::PlaceSpec>().unwrap();
        let crate::Where::Made(made) = spec.place() else { panic!("{spec:?}") };
        let (mut packed, _) = Packed::make(made, Owner::ROOT, &lab).unwrap();
        let before = packed.source();
        let backing = fs::canonicalize(before.replace("/dev/", "/sys/block/")).unwrap().join("loop/backing_file");
        let image = fs::read_to_string(&backing).unwrap();
        packed.fill(&"tree:dirs=1,files=1,bytes=10".parse().unwrap(), Owner::ROOT).unwrap();
        assert_ne!(packed.source(), before);
        assert_eq!(fs::read_to_string(&backing).unwrap(), image);
        packed.let_go();
        // By now another place may have it.
        assert_ne!(fs::read_to_string(&backing).ok(), Some(image));
    }
}
