//! Another place, shown through servers of our own: a FUSE server, or both sides of a share.
//!
//! Unless told otherwise it is in front of an ext4 made here, so that `fuse` or `share` against `ext4` compares servers with the
//! very file system behind them. What is mounted below the place that is shown is not shown.

use std::{path::Path, sync::Arc};

use inodyne_fuse::{Control, Server};

use super::Made;
use crate::{
    DataSpec, Delay, Filled, Kind, Lab, LabError, MadePlace, MountedPlace, Note, Owner, PlaceSpec,
    fuse::{self, Sharing},
    lab::MountPoint,
    mount::Mount,
};

#[derive(Debug)]
pub(super) struct Fuse {
    /// None while what is shown is not to be in use.
    served: Option<Served>,
    /// How it is shared, where it is a share.
    sharing: Option<Sharing>,
    point: MountPoint,
    options: String,
    shown: Box<MountedPlace>,
}

/// The servers end once nothing is mounted, in this order.
#[derive(Debug)]
struct Served {
    mount: Mount,
    servers: Vec<Server>,
}

impl Fuse {
    pub fn make(made: &MadePlace, owner: Owner, lab: &Lab) -> Result<(Self, Vec<Note>), LabError> {
        let ext4 = PlaceSpec::plain(Kind::Ext4);
        let shown = Box::new(lab.make(made.lower().unwrap_or(&ext4), owner)?);
        let notes = shown.notes().to_vec();
        let point = lab.mount_point()?;
        let sharing = (made.kind == Kind::Share).then(|| Sharing {
            withholds_types: made.withholds_types(),
            delay: made.limits().delay.map(Delay::duration).unwrap_or_default(),
        });
        let mut fuse = Self { served: None, sharing, point, options: made.mount_options().to_owned(), shown };
        fuse.serve()?;
        Ok((fuse, notes))
    }

    fn serve(&mut self) -> Result<(), LabError> {
        let (shown, target, outside) = (self.shown.path(), &*self.point.directory, self.point.outside());
        let (mount, servers) = match self.sharing {
            Some(sharing) => fuse::share(shown, sharing, &self.options, target, outside)?,
            None => {
                let (mount, server) = fuse::show(shown, &self.options, target, outside)?;
                (mount, vec![server])
            }
        };
        self.served = Some(Served { mount, servers });
        Ok(())
    }

    fn unmount(&mut self) -> Result<(), LabError> {
        if let Some(served) = &mut self.served {
            served.mount.unmount()?;
        }
        // The servers let go of what they show.
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
        // Through the server it would only take longer. Filling may remount what is shown.
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

    fn control(&self) -> Option<Arc<Control>> {
        // The host of a share is the last to end, and is what can be slow.
        let host = self.served.as_ref().filter(|_| self.sharing.is_some())?.servers.last()?;
        Some(host.control().clone())
    }

    fn size_bytes(&self) -> Result<Option<u64>, LabError> {
        Ok(None)
    }

    fn below(&self) -> Vec<&MountedPlace> {
        vec![&self.shown]
    }
}
