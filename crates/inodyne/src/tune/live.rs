//! An existing directory: only settings that are restored at the end may change, those of its device and of the machine.
//!
//! It is shown by a bind mount of our own for as long as a run takes: settings belong to places that are made.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use inodyne_lab::{PlaceSpec, Where};
use nix::sys::stat::{major, minor};

/// Where to find the settings of what a file system reads from and writes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Below {
    /// The queue of its disk, a partition's whole disk: `/sys/block/sda/queue`.
    Disk(PathBuf),
    /// What the kernel keeps for a file system that has no block device of its own (NFS, FUSE, virtiofs):
    /// `/sys/devices/virtual/bdi/0:45`.
    Mount(PathBuf),
    /// Nothing that has settings (tmpfs).
    Nothing,
}

impl Below {
    /// The file of a setting, where there is one.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        let (Below::Disk(directory) | Below::Mount(directory)) = self else { return None };
        Some(directory.join(name)).filter(|file| file.exists())
    }
}

/// The directory as a place that settings can belong to, and what is below its file system.
///
/// # Errors
/// It is not an existing directory.
pub fn shown(place: &PlaceSpec) -> Result<(PlaceSpec, Below), String> {
    let Where::Existing(directory) = place.place() else {
        return Err(format!("--live is for a directory that is there: leave it out, and {place} is made"));
    };
    let directory = fs::canonicalize(directory).map_err(|error| format!("{place}: {error}"))?;
    Ok((PlaceSpec::showing(&directory), below(&directory).unwrap_or(Below::Nothing)))
}

/// What is below the file system of a directory; none if nothing there has settings.
fn below(directory: &Path) -> Option<Below> {
    let device = fs::metadata(directory).ok()?.dev();
    let numbers = format!("{}:{}", major(device), minor(device));
    let Ok(device) = fs::canonicalize(format!("/sys/dev/block/{numbers}")) else {
        let mount = Path::new("/sys/devices/virtual/bdi").join(numbers);
        return mount.exists().then_some(Below::Mount(mount));
    };
    let disk = if device.join("partition").exists() { device.parent()? } else { &device };
    Some(Below::Disk(Path::new("/sys/block").join(disk.file_name()?).join("queue")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_link_leads_is_never_read_as_options() {
        let scratch = tempfile::tempdir().unwrap();
        for named in ["x,set=/proc/sys/kernel/core_pattern=|/evil", "y,mount=ro"] {
            let (directory, link) = (scratch.path().join(named), scratch.path().join("link"));
            fs::create_dir_all(&directory).unwrap();
            std::os::unix::fs::symlink(&directory, &link).unwrap();
            let (spec, _) = shown(&PlaceSpec::from(link.as_path())).unwrap();
            fs::remove_file(link).unwrap();
            let Where::Made(made) = spec.place() else { panic!("{spec:?}") };
            assert_eq!((made.setting_files().count(), made.mount_options()), (0, ""));
            let lower = Where::Existing(directory.canonicalize().unwrap());
            assert_eq!(made.lower().map(PlaceSpec::place), Some(&lower));
        }
    }
}
