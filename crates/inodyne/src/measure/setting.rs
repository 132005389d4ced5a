//! A place with its data, and its caches: everything that must be so before a run.

use std::path::{Path, PathBuf};

use inodyne_lab::{DeviceStats, Flusher, Lab, MountedPlace, Owner, PlaceSpec};
use inodyne_model::place::Place;
use inodyne_model::run::CacheState;
use inodyne_render::escaped;

use super::Plan;
use crate::failure::{Failure, UNTRUSTED};

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
            anstream::eprintln!("inodyne: {}: {note}", escaped(&spec.name()));
        }
        Ok(Setting { place })
    }

    /// Fails where this place holds other data than that one: comparing them would say nothing. Existing directories are
    /// nobody's data but the user's, and are not looked at.
    pub fn has_same_data(&self, other: &Setting) -> Result<(), Failure> {
        let (ours, theirs) = (self.place.record(), other.place.record());
        let digests = ours.data_digest.as_ref().zip(theirs.data_digest.as_ref());
        if digests.is_none_or(|(ours, theirs)| ours == theirs) {
            return Ok(());
        }
        let first = self.place.first_difference(&other.place)?;
        let first = first.map_or_else(|| "nothing any more".into(), |path| path.display().to_string());
        Err(Failure::new(
            UNTRUSTED,
            format_args!(
                "{} and {} were filled with different data, first different: {first}; data must be the same each time",
                theirs.label, ours.label
            ),
        ))
    }

    /// Fails where this place, made anew, was filled with other data than before.
    pub fn has_data(&self, digest: Option<&str>) -> Result<(), Failure> {
        let record = self.place.record();
        match digest.zip(record.data_digest.as_deref()) {
            Some((before, now)) if before != now => Err(Failure::new(
                UNTRUSTED,
                format_args!(
                    "{} was filled with other data than before; data must be the same each time",
                    record.label
                ),
            )),
            _ => Ok(()),
        }
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
