//! An overlay: lower layers with the data, and an upper directory that starts empty.
//!
//! Unless told otherwise, all of it lies on one ext4 made here, so that `overlay` against `ext4` compares an overlay
//! with the very file system that it lies over. A lower place that is made here and can be written to holds
//! `lower-1` (the lowest) to `lower-N`, and `upper` and `work` too where no `upper=` is given. Any other lower place
//! is the one lower layer as a whole, and the upper part lies on an ext4 of its own.
//!
//! With several layers the data is split as a container image would have it: directories are in all layers, each
//! other file is in one, dealt in turn (see [`split`]).

mod split;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use super::{Made, hand_over};
use crate::{
    DataSpec, Filled, Kind, Lab, LabError, MadePlace, MountedPlace, Note, Owner, PlaceSpec, Where, lab::MountPoint,
    mount, mount::Mount,
};

#[derive(Debug)]
pub(super) struct Overlay {
    mount: Mount,
    point: MountPoint,
    options: String,
    /// Lowest first.
    layers: Vec<PathBuf>,
    /// Where `upper` and `work` are.
    writable: PathBuf,
    upper: Option<Box<MountedPlace>>,
    lower: Box<MountedPlace>,
}

impl Overlay {
    pub fn make(made: &MadePlace, owner: Owner, lab: &Lab) -> Result<(Self, Vec<Note>), LabError> {
        let ext4 = PlaceSpec::plain(Kind::Ext4);
        let lower_spec = made.lower().unwrap_or(&ext4);
        let has_room = matches!(lower_spec.place(), Where::Made(lower) if lower.kind.is_writable());
        let lower = Box::new(lab.make(lower_spec, owner)?);
        let upper_spec = made.upper().or((!has_room).then_some(&ext4));
        let upper = upper_spec.map(|upper| lab.make(upper, owner)).transpose()?.map(Box::new);

        let layers = if has_room {
            let layers: Vec<_> =
                (1..=made.layers()).map(|number| lower.path().join(format!("lower-{number}"))).collect();
            layers.iter().try_for_each(|layer| new_root(layer, owner))?;
            layers
        } else {
            vec![lower.path().to_owned()]
        };
        let writable = upper.as_ref().unwrap_or(&lower).path().to_owned();
        new_root(&writable.join("upper"), owner)?;
        new_root(&writable.join("work"), Owner::ROOT)?;
        let point = lab.mount_point()?;
        let options = made.mount_options().to_owned();
        let mount = mount(&layers, &writable, &options, &point)?;
        let of_images = |note: &&Note| matches!(note, Note::NotDirect { .. } | Note::ScratchInMemory { .. });
        let mut notes: Vec<_> = [Some(&lower), upper.as_ref()]
            .into_iter()
            .flatten()
            .flat_map(|place| place.notes())
            .filter(of_images)
            .cloned()
            .collect();
        notes.dedup();
        Ok((Self { mount, point, options, layers, writable, upper, lower }, notes))
    }

    fn mount_again(&mut self) -> Result<(), LabError> {
        // A volatile overlay leaves a mark after which it refuses to be mounted: it may have lost data in a crash. Here
        // there was none.
        let mark = self.writable.join("work/work/incompat");
        match fs::remove_dir_all(&mark) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(LabError::io("remove directory", mark, error));
            }
            _ => {}
        }
        self.mount = mount(&self.layers, &self.writable, &self.options, &self.point)?;
        Ok(())
    }

    fn fill_layers(&mut self, data: &DataSpec, owner: Owner) -> Result<Filled, LabError> {
        let [lowest, others @ ..] = self.layers.as_slice() else { unreachable!("there is a layer") };
        if lowest == self.lower.path() {
            return self.lower.fill(data);
        }
        let filled = data.fill(lowest, owner)?;
        split::split(lowest, others)?;
        mount::sync(lowest)?;
        self.lower.settle()?;
        Ok(filled)
    }
}

/// A directory that belongs to the user, as the root of a place does.
fn new_root(directory: &Path, owner: Owner) -> Result<(), LabError> {
    let failed = |error| LabError::io("make directory", directory, error);
    fs::create_dir(directory).map_err(failed)?;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    hand_over(directory, owner)
}

fn mount(layers: &[PathBuf], writable: &Path, options: &str, point: &MountPoint) -> Result<Mount, LabError> {
    let mut ours = lower_options(layers);
    ours.push(("upperdir", writable.join("upper").display().to_string()));
    ours.push(("workdir", writable.join("work").display().to_string()));
    Mount::with(&ours, "overlay", "overlay", options, &point.directory)
}

/// The kernel takes values of at most 255 bytes (`fsconfig(2)`).
const LONGEST_VALUE: usize = 255;

/// The lower layers as options, the highest first: all in one value where they fit, as every kernel takes them, and otherwise
/// one by one (`lowerdir+`, Linux 6.8 and newer).
fn lower_options(layers: &[PathBuf]) -> Vec<(&'static str, String)> {
    let together = layers.iter().rev().map(|layer| escaped(layer)).collect::<Vec<_>>().join(":");
    if together.len() <= LONGEST_VALUE {
        return vec![("lowerdir", together)];
    }
    // Each is a single path, in which nothing separates: nothing is escaped.
    layers.iter().rev().map(|layer| ("lowerdir+", layer.display().to_string())).collect()
}

/// A lower layer's path as overlayfs reads it, where colons separate layers.
fn escaped(path: &Path) -> String {
    let path = path.display().to_string();
    path.chars().flat_map(|c| matches!(c, '\\' | ':' | ',').then_some('\\').into_iter().chain([c])).collect()
}

impl Made for Overlay {
    fn path(&self) -> &Path {
        &self.point.directory
    }

    fn remount(&mut self) -> Result<(), LabError> {
        self.mount.unmount()?;
        let below = self.lower.remount().and_then(|()| self.upper.as_mut().map_or(Ok(()), |upper| upper.remount()));
        self.mount_again()?;
        below
    }

    /// Changing the layers of a mounted overlay is not defined, so it is not mounted meanwhile.
    fn fill(&mut self, data: &DataSpec, owner: Owner) -> Result<Filled, LabError> {
        self.mount.unmount()?;
        let filled = self.fill_layers(data, owner);
        self.mount_again()?;
        filled
    }

    fn source(&self) -> String {
        "overlay".into()
    }

    fn device(&self) -> Option<(u32, u32)> {
        None
    }

    fn size_bytes(&self) -> Result<Option<u64>, LabError> {
        Ok(None)
    }

    fn below(&self) -> Vec<&MountedPlace> {
        [Some(&self.lower), self.upper.as_ref()].into_iter().flatten().map(AsRef::as_ref).collect()
    }
}
