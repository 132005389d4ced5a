//! A directory that was there before: only settings that are restored at the end may change, those of its device and of the machine.
//!
//! It is shown by a bind mount of our own, as long as a run takes: settings belong to places that are made.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use inodyne_lab::{PlaceSpec, Where};
use nix::sys::stat::{major, minor};

/// The directory as a place that settings can belong to, and the name of the disk under it, where it has one.
///
/// # Errors
/// It is no directory that was there before.
pub fn shown(place: &PlaceSpec) -> Result<(PlaceSpec, Option<String>), String> {
    let Where::Existing(directory) = place.place() else {
        return Err(format!("--live is for a directory that is there: leave it out, and {place} is made"));
    };
    let directory = fs::canonicalize(directory).map_err(|error| format!("{place}: {error}"))?;
    let shown = format!("bind:{}", directory.display()).parse::<PlaceSpec>().map_err(|error| error.to_string())?;
    Ok((shown, disk_of(&directory)))
}

/// The disk that a file system lies on, a partition's whole disk; none where it has no block device of its own.
fn disk_of(directory: &Path) -> Option<String> {
    let device = fs::metadata(directory).ok()?.dev();
    let device = fs::canonicalize(format!("/sys/dev/block/{}:{}", major(device), minor(device))).ok()?;
    let disk = if device.join("partition").exists() { device.parent()? } else { &device };
    Some(disk.file_name()?.to_string_lossy().into_owned())
}
