//! A place with its data, and its caches: everything that must be set up before a run.

use std::path::{Path, PathBuf};

use inodyne_lab::{DeviceStats, Flusher, Lab, MountedPlace, Owner};
use inodyne_launch::Started;
use inodyne_model::place::Place;
use inodyne_model::run::CacheState;

use crate::error::ExperimentError;
use crate::event::{Event, Observer};
use crate::experiment::PlaceSetup;

/// A place that is ready.
pub struct ReadyPlace {
    /// What was started in it to keep running: ends before the place does, which it would otherwise keep in use.
    beside: Vec<Started>,
    place: MountedPlace,
}

impl ReadyPlace {
    /// Makes the place and fills it.
    pub(super) fn make(
        lab: &Lab,
        setup: &PlaceSetup,
        owner: Owner,
        observer: &mut dyn Observer,
    ) -> Result<ReadyPlace, ExperimentError> {
        let mut place = lab.make(&setup.spec, owner)?;
        if let Some(data) = &setup.data {
            let count = place.fill(data)?.left_out.len();
            if count > 0 {
                observer.event(&Event::DataLeftOut { count });
            }
        }
        for note in place.notes() {
            let (place, note) = (setup.spec.name(), note.to_string());
            observer.event(&Event::PlaceNote { place, note });
        }
        Ok(ReadyPlace { beside: Vec::new(), place })
    }

    /// Puts its machine settings in force.
    pub(super) fn enter(&self) -> Result<(), ExperimentError> {
        Ok(self.place.impose_settings()?)
    }

    /// Restores them, so that other places can have their turn.
    pub(super) fn leave(&self) {
        self.place.lift_settings();
    }

    pub(super) fn first_difference(&self, other: &ReadyPlace) -> Result<Option<PathBuf>, ExperimentError> {
        Ok(self.place.first_difference(&other.place)?)
    }

    /// What goes into the recording.
    pub(super) fn describe(&self) -> Place {
        self.place.record()
    }

    /// Whether the file system was made for this experiment.
    pub(super) fn is_made_here(&self) -> bool {
        self.place.record().made_here
    }

    /// Who keeps what a script leaves running, where that is to end with the place.
    pub(super) fn keeper(&mut self) -> Option<&mut Vec<Started>> {
        self.beside.retain(Started::has_children);
        self.is_made_here().then_some(&mut self.beside)
    }

    /// Where the command starts.
    pub(super) fn directory(&self, below: Option<&Path>) -> PathBuf {
        below.map_or_else(|| self.place.path().to_owned(), |below| self.place.path().join(below))
    }

    /// Puts the caches into a state.
    pub(super) fn set_caches(&mut self, state: CacheState) -> Result<(), ExperimentError> {
        match state {
            CacheState::AsIs => {}
            CacheState::Warm => drop(inodyne_lab::warm(self.place.path())?),
            CacheState::Cold => inodyne_lab::make_cold(&mut self.place)?,
        }
        Ok(())
    }

    /// What makes the place's data durable; with nothing left in it to flush.
    pub(super) fn clean_flusher(&self) -> Result<Flusher, ExperimentError> {
        let flusher = self.place.flusher()?;
        flusher.flush()?;
        Ok(flusher)
    }

    /// What the place's device has moved so far.
    pub(super) fn device_stats(&self) -> Option<DeviceStats> {
        self.place.device_stats()
    }
}
