//! A bind mount: another place, seen through a second mount. What is mounted below that place is not shown.

use std::path::Path;

use super::Made;
use crate::{DataSpec, Filled, Lab, LabError, MadePlace, MountedPlace, Note, Owner, lab::MountPoint, mount::Mount};

#[derive(Debug)]
pub(super) struct Bind {
    mount: Mount,
    point: MountPoint,
    options: String,
    shown: Box<MountedPlace>,
}

impl Bind {
    pub fn make(made: &MadePlace, owner: Owner, lab: &Lab) -> Result<(Self, Vec<Note>), LabError> {
        let Some(shown) = made.lower() else { unreachable!("parsed with a place to show") };
        let shown = Box::new(lab.make(shown, owner)?);
        let point = lab.mount_point()?;
        let options = made.mount_options().to_owned();
        let mount = Mount::bind(shown.path(), &options, &point.directory)?;
        let notes = shown.notes().to_vec();
        Ok((Self { mount, point, options, shown }, notes))
    }
}

impl Made for Bind {
    fn path(&self) -> &Path {
        &self.point.directory
    }

    fn remount(&mut self) -> Result<(), LabError> {
        self.mount.unmount()?;
        let below = self.shown.remount();
        self.mount = Mount::bind(self.shown.path(), &self.options, &self.point.directory)?;
        below
    }

    fn fill(&mut self, data: &DataSpec, _: Owner) -> Result<Filled, LabError> {
        // Filling may remount what is shown.
        self.mount.unmount()?;
        let filled = self.shown.fill(data);
        self.mount = Mount::bind(self.shown.path(), &self.options, &self.point.directory)?;
        filled
    }

    fn source(&self) -> String {
        self.shown.path().display().to_string()
    }

    fn device(&self) -> Option<(u32, u32)> {
        None
    }

    fn size_bytes(&self) -> Result<Option<u64>, LabError> {
        Ok(None)
    }

    fn below(&self) -> Vec<&MountedPlace> {
        vec![&self.shown]
    }
}
