//! Another place, shown through a FUSE server of our own: what such a server costs.
//!
//! Unless told otherwise it stands before an ext4 made here, so that `fuse` against `ext4` compares a server with the very
//! file system behind it. What is mounted below the place that is shown is not.

use std::path::Path;

use inodyne_fuse::Server;

use super::Made;
use crate::{
    DataSpec, Filled, Kind, Lab, LabError, MadePlace, MountedPlace, Note, Owner, PlaceSpec, fuse, lab::MountPoint,
    mount::Mount,
};

#[derive(Debug)]
pub(super) struct Fuse {
    /// None while what is shown is not to be in use.
    served: Option<Served>,
    point: MountPoint,
    options: String,
    shown: Box<MountedPlace>,
}

/// The server ends once nothing is mounted.
#[derive(Debug)]
struct Served {
    mount: Mount,
    _server: Server,
}

impl Fuse {
    pub fn make(made: &MadePlace, owner: Owner, lab: &Lab) -> Result<(Self, Vec<Note>), LabError> {
        let ext4 = PlaceSpec::plain(Kind::Ext4);
        let shown = Box::new(lab.make(made.lower().unwrap_or(&ext4), owner)?);
        let notes = shown.notes().to_vec();
        let point = lab.mount_point()?;
        let mut fuse = Self { served: None, point, options: made.mount_options().to_owned(), shown };
        fuse.serve()?;
        Ok((fuse, notes))
    }

    fn serve(&mut self) -> Result<(), LabError> {
        let (mount, server) =
            fuse::show(self.shown.path(), &self.options, &self.point.directory, self.point.outside())?;
        self.served = Some(Served { mount, _server: server });
        Ok(())
    }

    fn unmount(&mut self) -> Result<(), LabError> {
        if let Some(served) = &mut self.served {
            served.mount.unmount()?;
        }
        // The server lets go of what it shows.
        self.served = None;
        Ok(())
    }
}

impl Made for Fuse {
    fn path(&self) -> &Path {
        &self.point.directory
    }

    fn remount(&mut self) -> Result<(), LabError> {
        self.unmount()?;
        let below = self.shown.remount();
        self.serve()?;
        below
    }

    fn fill(&mut self, data: &DataSpec, _: Owner) -> Result<Filled, LabError> {
        // By the server it would only take longer. What is shown may be mounted anew by it.
        self.unmount()?;
        let filled = self.shown.fill(data);
        self.serve()?;
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
