//! How many bytes a device has really moved: what tells a cold run from one that only claims to be.

use std::{fs, ops::Add, os::unix::fs::MetadataExt, path::Path};

use crate::{
    LabError,
    mountinfo::{self, MountInfo},
};

/// Bytes that a block device has read and written since it appeared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceStats {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

impl DeviceStats {
    /// What was moved since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            write_bytes: self.write_bytes.saturating_sub(earlier.write_bytes),
        }
    }

    /// The counters of the device with this number; none where there is no such device.
    pub fn of((major, minor): (u32, u32)) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?)
    }

    /// Columns: reads, merged, sectors, ms, writes, merged, sectors. A sector is 512 bytes, whatever the device has.
    fn parse(text: &str) -> Option<Self> {
        let columns: Vec<u64> = text.split_whitespace().map_while(|column| column.parse().ok()).collect();
        Some(Self { read_bytes: columns.get(2)? * 512, write_bytes: columns.get(6)? * 512 })
    }
}

impl Add for DeviceStats {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { read_bytes: self.read_bytes + other.read_bytes, write_bytes: self.write_bytes + other.write_bytes }
    }
}

/// What a directory is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ground {
    /// The kind of its file system: `ext4`.
    pub fs: String,
    /// The number of that file system's block device, if there is exactly one that the kernel names.
    pub device: Option<(u32, u32)>,
}

impl Ground {
    /// For an existing directory.
    ///
    /// # Errors
    /// The directory cannot be looked at.
    pub fn of(directory: &Path) -> Result<Self, LabError> {
        let mount = mountinfo::of(directory)?;
        Ok(Self { device: under(&mount), fs: mount.fs })
    }
}

/// How large a block device is.
pub(crate) fn size_bytes((major, minor): (u32, u32)) -> Result<u64, LabError> {
    let file = format!("/sys/dev/block/{major}:{minor}/size");
    let text = fs::read_to_string(&file).map_err(|error| LabError::io("read", &file, error))?;
    Ok(text.trim().parse::<u64>().unwrap_or_default() * 512)
}

/// The block device under a mount, if there is exactly one that the kernel names.
pub(crate) fn under(mount: &MountInfo) -> Option<(u32, u32)> {
    if mount.device.0 != 0 {
        return Some(mount.device);
    }
    // btrfs has device numbers of its own; its first device is the source.
    let source = Path::new(&mount.source);
    let number = source.starts_with("/dev").then(|| fs::metadata(source).ok()).flatten()?.rdev();
    (number != 0).then(|| (rustix::fs::major(number), rustix::fs::minor(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_become_bytes() {
        let text =
            "     100        3     2048       12       50        0      16        5        0       20       17\n";
        assert_eq!(DeviceStats::parse(text), Some(DeviceStats { read_bytes: 1 << 20, write_bytes: 8192 }));
        assert_eq!(DeviceStats::parse("1 2 3"), None);
    }
}
