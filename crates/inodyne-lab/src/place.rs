//! A place that is ready for runs, until dropped: a directory that was there before (looked at, never touched), or
//! something made here, of which [`made`] knows more.

mod made;

use std::{
    io::{self, ErrorKind},
    mem,
    path::{Path, PathBuf},
};

use inodyne_fuse::{IMPOSE_LIMITS, LIFT_LIMITS};
use inodyne_model::{Nanos, place::Place};
use rustix::{fs::Access, io::Errno};

use crate::{
    DataSpec, DeviceStats, Filled, Lab, LabError, Limits, MadePlace, Note, Owner, PlaceSpec, Size, Where, device,
    digest,
    mountinfo::{self, MountInfo},
    permission,
    setting::Setting,
    spec::SettingSpec,
};
use made::{Made, is_in_memory};

/// A place that is ready for runs.
#[derive(Debug)]
pub struct MountedPlace {
    /// Restored while the device is still there.
    settings: Vec<Setting>,
    /// What the settings are made of, in their order: a device may have another name after filling.
    wanted: Vec<SettingSpec>,
    /// `None` for a directory that was there before.
    made: Option<Box<dyn Made>>,
    record: Place,
    notes: Vec<Note>,
    owner: Owner,
    /// Its own, then those of what it stands on.
    devices: Vec<(u32, u32)>,
}

impl Lab {
    /// Makes the place, or checks it where it is an existing directory.
    ///
    /// The root directory of a made place belongs to `owner`; whether that user may write in an existing one is noted
    /// ([`MountedPlace::notes`]). Places may outlive the lab.
    ///
    /// To be called while the process has one thread: the first place that is made moves the calling thread, with all
    /// that it starts later, into a mount namespace, and others would stay outside.
    pub fn make(&self, spec: &PlaceSpec, owner: Owner) -> Result<MountedPlace, LabError> {
        match spec.place() {
            Where::Existing(directory) => {
                let place = MountedPlace::existing(spec, directory, owner)?;
                self.keep_visible(place.path())?;
                Ok(place)
            }
            Where::Made(made) => MountedPlace::made(spec, made, owner, self),
        }
    }
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

    /// What the block devices below have moved so far; `None` where there is none, or none that can be told.
    pub fn device_stats(&self) -> Option<DeviceStats> {
        let stats = self.devices.iter().map(|device| DeviceStats::of(*device));
        stats.reduce(|a, b| Some(a? + b?)).flatten()
    }

    /// Major and minor number of that block device; where there are several, of the one with the data.
    pub fn device_number(&self) -> Option<(u32, u32)> {
        self.devices.first().copied()
    }

    /// Whether the place keeps nothing on any disk.
    pub fn is_in_memory(&self) -> bool {
        let below = self.below();
        let is_all_above_memory = !below.is_empty() && below.iter().all(|place| place.is_in_memory());
        is_in_memory(&self.record.fs) || is_all_above_memory
    }

    /// What it stands on; of an overlay, what it writes to comes last.
    pub(crate) fn below(&self) -> Vec<&MountedPlace> {
        self.made.as_ref().map_or_else(Vec::new, |made| made.below())
    }

    /// Unmounts and mounts again, forgetting everything cached: with all that the place stands on, from the top down and then
    /// back up. Does nothing for a directory that was there before and for a tmpfs, whose files would be
    /// lost.
    pub fn remount(&mut self) -> Result<(), LabError> {
        self.tell(LIFT_LIMITS)?;
        let Some(made) = &mut self.made else { return Ok(()) };
        made.remount()?;
        self.change_settings()?;
        self.tell(IMPOSE_LIMITS)
    }

    /// Restores those of its settings that concern more than its own device, so that what runs in other places runs on the machine as
    /// it is. They are in force from when the place is made.
    pub fn lift_settings(&self) {
        self.settings_of_machine().rev().for_each(Setting::lift);
        self.below().iter().for_each(|place| place.lift_settings());
    }

    /// Puts those settings in force again.
    pub fn impose_settings(&self) -> Result<(), LabError> {
        self.below().iter().try_for_each(|place| place.impose_settings())?;
        self.settings_of_machine().try_for_each(Setting::impose)
    }

    fn settings_of_machine(&self) -> impl DoubleEndedIterator<Item = &Setting> {
        let both = self.settings.iter().zip(&self.wanted);
        both.filter(|(_, wanted)| !wanted.names_device()).map(|(setting, _)| setting)
    }

    /// Puts data into a place made here, and waits until it is on the device.
    ///
    /// squashfs and erofs are made again from it. In an overlay it goes into the lower layers, and the upper directory
    /// stays empty.
    pub fn fill(&mut self, data: &DataSpec) -> Result<Filled, LabError> {
        self.tell(LIFT_LIMITS)?;
        let Some(made) = self.made.as_mut() else {
            return Err(LabError::NotFilled(self.record.path.clone()));
        };
        let filled = made.fill(data, self.owner);
        self.look_again()?;
        let filled = filled.map_err(|error| match error.is_full() {
            true => self.too_small(data),
            false => error,
        })?;
        self.record.data_digest = Some(digest::of(self.path())?);
        self.record.data = Some(data.to_string());
        self.tell(IMPOSE_LIMITS)?;
        Ok(filled)
    }

    /// Deletes what makes it fuller than asked for, after a place that stands on this one has put data in.
    pub(crate) fn settle(&mut self) -> Result<(), LabError> {
        let Some(made) = &mut self.made else { return Ok(()) };
        made.settle()?;
        self.look_again()
    }

    /// The first path, below the root, that is not the same here and there. Reads everything in both.
    pub fn first_difference(&self, other: &Self) -> Result<Option<PathBuf>, LabError> {
        digest::first_difference(self.path(), other.path())
    }

    fn too_small(&self, data: &DataSpec) -> LabError {
        let sized = std::iter::once(&self.record).chain(&self.record.below).find_map(|place| place.size_bytes);
        let size = Size::from_bytes(sized.unwrap_or_default());
        LabError::TooSmallForData { label: self.record.label.clone(), size, data: data.to_string() }
    }

    fn existing(spec: &PlaceSpec, directory: &Path, owner: Owner) -> Result<Self, LabError> {
        let (path, info) = match look_at(directory) {
            // A FUSE file system without `allow_other` is for its user only, a private directory on NFS with `root_squash` too.
            Err(error) if error.is_refused() && owner.uid != 0 => {
                permission::as_owner(owner, || look_at(directory)).unwrap_or(Err(error))?
            }
            Err(error) if error.is_refused() && rustix::process::geteuid().is_root() => {
                return Err(LabError::RefusesRoot(directory.into()));
            }
            looked => looked?,
        };
        let notes = match permission::check(&path, Access::WRITE_OK | Access::EXEC_OK, owner) {
            Err(Errno::ROFS) => vec![Note::ReadOnly],
            Err(Errno::ACCESS) => vec![Note::NotWritable { uid: owner.uid }],
            _ => Vec::new(),
        };
        let devices = device::under(&info).into_iter().collect();
        let record = Place {
            label: spec.name(),
            fs: info.fs,
            source: info.source,
            path,
            mount_options: info.options,
            ..Place::default()
        };
        Ok(Self { settings: vec![], wanted: vec![], made: None, record, notes, owner, devices })
    }

    fn made(spec: &PlaceSpec, made: &MadePlace, owner: Owner, lab: &Lab) -> Result<Self, LabError> {
        let (mounted, notes) = made::make(made, owner, lab)?;
        let shows_existing = made.kind.shows() && mounted.below().iter().all(|place| !place.record.made_here);
        let record = Place {
            label: spec.name(),
            spec: Some(made.to_string()),
            mkfs: made.mkfs_words(),
            limits: limits(made.limits()),
            made_here: !shows_existing,
            ..Place::default()
        };
        let mut wanted = made.settings().to_vec();
        // Another scheduler gives its queue new values of other settings.
        wanted.sort_by_key(|wanted| !wanted.is_scheduler());
        let mut place = Self { settings: vec![], wanted, made: Some(mounted), record, notes, owner, devices: vec![] };
        place.look_again()?;
        if place.record.mount_options.split(',').any(|option| option == "ro") && !place.notes.contains(&Note::ReadOnly)
        {
            place.notes.push(Note::ReadOnly);
        }
        place.tell(IMPOSE_LIMITS)?;
        Ok(place)
    }

    /// Notes what the kernel says of the place now: filling may change what is mounted.
    fn look_again(&mut self) -> Result<(), LabError> {
        let Some(made) = &self.made else { return Ok(()) };
        let info = mountinfo::of(made.path())?;
        self.record.path = made.path().into();
        self.record.source = made.source();
        self.record.fs = info.fs;
        self.record.mount_options = info.options;
        self.record.size_bytes = made.size_bytes()?;
        self.record.wear = made.wear()?;
        self.record.below = made.below().iter().map(|place| place.record()).collect();
        self.devices = made.device().into_iter().collect();
        for device in made.below().iter().flat_map(|place| &place.devices) {
            if !self.devices.contains(device) {
                self.devices.push(*device);
            }
        }
        self.change_settings()
    }

    /// Tells all devices below whether to hold their limits: not while they are made ready, since nobody needs to wait for that.
    fn tell(&self, command: u8) -> Result<(), LabError> {
        let told = self.made.as_ref().and_then(|made| made.control()).map_or(Ok(()), |device| device.send(command));
        told.map_err(|error| LabError::io("reach the server of", &self.record.path, error))?;
        self.below().iter().try_for_each(|place| place.tell(command))
    }

    /// Changes what is not changed yet, and what has come back with its old value.
    fn change_settings(&mut self) -> Result<(), LabError> {
        let device = Path::new(&self.record.source).file_name().unwrap_or_default().to_owned();
        self.record.settings.clear();
        let wanted = self.wanted.iter().map(|wanted| (wanted.path(&device), wanted.value.as_str()));
        self.settings = Setting::all_again(mem::take(&mut self.settings), &wanted.collect::<Vec<_>>())?;
        if let Some(made) = &mut self.made {
            made.let_go();
        }
        let recorded = |setting: &Setting| (setting.path().display().to_string(), setting.value().to_owned());
        self.record.settings.extend(self.settings.iter().map(recorded));
        // One may have changed another.
        self.settings.iter().try_for_each(Setting::check)
    }
}

/// A directory without symbolic links in its path, and its mount.
fn look_at(directory: &Path) -> Result<(PathBuf, MountInfo), LabError> {
    let look = || {
        let path = directory.canonicalize()?;
        let is_directory = path.metadata()?.is_dir();
        Ok((path, is_directory))
    };
    let (path, is_directory) = look().map_err(|error: io::Error| match error.kind() {
        ErrorKind::NotFound => LabError::NotThere(directory.into()),
        ErrorKind::NotADirectory => LabError::NotADirectory(directory.into()),
        _ => LabError::io("look at", directory, error),
    })?;
    if !is_directory {
        return Err(LabError::NotADirectory(directory.into()));
    }
    let info = mountinfo::of(&path)?;
    Ok((path, info))
}

/// As the recording has it.
fn limits(limits: Limits) -> Option<inodyne_model::place::Limits> {
    (!limits.is_none()).then(|| inodyne_model::place::Limits {
        delay_ns: limits.delay.map(|delay| Nanos(delay.duration().as_nanos() as u64)),
        bandwidth_bytes_per_s: limits.bandwidth.map(Size::bytes),
        iops: limits.iops,
    })
}

impl Drop for MountedPlace {
    fn drop(&mut self) {
        // What is still to be written is written as fast as possible: a server that does not hear this has ended.
        let _ = self.tell(LIFT_LIMITS);
        // Each was changed on top of those before it.
        while self.settings.pop().is_some() {}
    }
}
