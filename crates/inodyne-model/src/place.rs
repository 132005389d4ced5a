//! Where a run happens.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};

use crate::Nanos;

/// A place, as it was when the runs took place.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Place {
    /// The name used in reports: the user's label, or the description.
    pub label: String,
    /// The file system's type as the kernel names it (`ext4`).
    pub fs: String,
    /// The mounted source (`/dev/loop0`), where there is one.
    pub source: String,
    /// The directory in which the command ran. Anything in it that is not UTF-8 is replaced in JSON.
    #[serde(serialize_with = "text_of")]
    pub path: PathBuf,
    /// The description that it was made from, without a label; none for a directory that was there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<String>,
    /// Extra arguments given to mkfs; empty for a directory that was there before.
    #[serde(default)]
    pub mkfs: Vec<String>,
    /// The mount options as the kernel reports them.
    pub mount_options: String,
    /// Size of the device or limit of the file system in bytes, for places made here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Settings changed for the runs, by their file under /sys or /proc/sys.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// What was put into the place first, as described by the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// What identifies that data: the same in two places where names, types, sizes, modes, link targets and contents are
    /// the same. Only to be compared with others of the same version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_digest: Option<String>,
    /// What its device was limited to, where it was made slow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// How it was used before the data was put in, where it was made old or full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wear: Option<Wear>,
    /// True where inodyne made the file system and has removed it again.
    pub made_here: bool,
    /// The places that this one stands on, in the order in which they were made: what an overlay lies over, what a
    /// bind mount shows. An overlay's layers on one file system are one place here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<Place>,
}

impl Place {
    /// The name used in reports: the label, or where it is.
    pub fn name(&self) -> String {
        if self.label.is_empty() { self.path.display().to_string() } else { self.label.clone() }
    }
}

/// A path as text: to the system it is bytes.
fn text_of<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    path.to_string_lossy().serialize(serializer)
}

/// What a device is limited to: for everybody's requests, including those of the kernel's own threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// How much later every answer comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<Nanos>,
    /// Bytes per second, read and written together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_bytes_per_s: Option<u64>,
    /// Requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<u32>,
}

/// Traces of use: files that others are imagined to have written and deleted, outside of where the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Wear {
    /// How often it was filled and half of the files, chosen at random, deleted.
    pub rounds: u32,
    /// The seed of that choice: the same seed leaves the same files.
    pub seed: u64,
    /// Files written in total.
    pub files_made: u64,
    /// Those that are still there.
    pub files_left: u64,
    /// Bytes in these.
    pub bytes_left: u64,
    /// How full the file system was when the place was ready, data included, in percent.
    pub used_percent: u8,
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_place_whose_name_is_no_text_is_written() {
        let place = Place { path: OsStr::from_bytes(b"/srv/caf\xe9").into(), ..Place::default() };
        let json = serde_json::to_string(&place).expect("it is written");
        let read: Place = serde_json::from_str(&json).expect("it is read");
        assert_eq!(read.path, Path::new("/srv/caf\u{fffd}"));
    }
}
