//! A place with its data, and its caches: everything that must be so before a run.

use std::path::{Path, PathBuf};

use inodyne_lab::{DeviceStats, Flusher, Lab, MountedPlace, Owner, PlaceSpec};
use inodyne_model::place::Place;
use inodyne_model::run::CacheState;

use super::Plan;
use crate::failure::Failure;

/// A place that is ready.
pub struct Setting {
    place: MountedPlace,
}

impl Setting {
    /// Makes the place and fills it.
    pub fn make(lab: &Lab, spec: &PlaceSpec, plan: &Plan<'_>) -> Result<Setting, Failure> {
        let owner = match &plan.command.user {
            Some(user) => Owner { uid: user.uid, gid: user.gid },
            None => Owner { uid: nix::unistd::geteuid().as_raw(), gid: nix::unistd::getegid().as_raw() },
        };
        let mut place = lab.make(spec, owner)?;
        if let Some(data) = &plan.campaign.places.data {
            let filled = place.fill(data)?;
            if !filled.left_out.is_empty() {
                let count = filled.left_out.len();
                anstream::eprintln!("inodyne: left out of the data: {count} devices, sockets or pipes");
            }
        }
        for note in place.notes() {
            anstream::eprintln!("inodyne: {}: {note}", spec.name());
        }
        Ok(Setting { place })
    }

    /// What goes into the recording.
    pub fn place(&self) -> Place {
        self.place.record()
    }

    /// Whether the file system was made for this run.
    pub fn is_made_here(&self) -> bool {
        self.place.record().made_here
    }

    /// Where the command starts.
    pub fn directory(&self, below: Option<&Path>) -> PathBuf {
        below.map_or_else(|| self.place.path().to_owned(), |below| self.place.path().join(below))
    }

    /// Puts the caches into a state.
    pub fn set_caches(&mut self, state: CacheState) -> Result<(), Failure> {
        match state {
            CacheState::AsIs => {}
            CacheState::Warm => drop(inodyne_lab::warm(self.place.path())?),
            CacheState::Cold => inodyne_lab::make_cold(&mut self.place)?,
        }
        Ok(())
    }

    /// What makes the place's data durable; with nothing left in it to flush.
    pub fn clean_flusher(&self) -> Result<Flusher, Failure> {
        let flusher = self.place.flusher()?;
        flusher.flush()?;
        Ok(flusher)
    }

    /// What the place's device has moved so far.
    pub fn device_stats(&self) -> Option<DeviceStats> {
        self.place.device_stats()
    }
}
