//! Where a run happens.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A place, as it was when the runs took place.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Place {
    /// The name used in reports: the user's label, or the description.
    pub label: String,
    /// The file system's type as the kernel names it (`ext4`).
    pub fs: String,
    /// The mounted source (`/dev/loop0`), where there is one.
    pub source: String,
    /// The directory in which the command ran.
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
    /// True where inodyne made the file system and has removed it again.
    pub made_here: bool,
    /// The places that this one stands on, in the order in which they were made: what an overlay lies over, what a
    /// bind mount shows. An overlay's layers on one file system are one place here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<Place>,
}
