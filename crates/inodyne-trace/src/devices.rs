//! Numbers and names of devices.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The kernel's own encoding of a device number, 12 bits of major and 20 of minor (include/linux/kdev_t.h), as people write it: `7:3`.
pub fn number(device: u32) -> String {
    format!("{}:{}", device >> 20, device & 0xf_ffff)
}

/// The name of the block device with this number (`loop3`); the number if there is none, or no longer one.
pub fn name(number: &str) -> String {
    let directory = fs::read_link(format!("/sys/dev/block/{number}")).ok();
    let name = directory.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| number.to_owned())
}

/// The disks to which a device passes on its I/O (LVM, dm-crypt, md), down to those that have requests of their own (multipath) or pass it
/// on no further; the device itself if it is one.
pub fn disks_below(number: &str, has_requests: &dyn Fn(&str) -> bool) -> BTreeSet<String> {
    disks_below_at(Path::new("/sys/dev/block"), number, has_requests)
}

fn disks_below_at(devices: &Path, number: &str, has_requests: &dyn Fn(&str) -> bool) -> BTreeSet<String> {
    if has_requests(number) {
        return BTreeSet::from([number.to_owned()]);
    }
    let device = devices.join(number);
    let lower = fs::read_dir(device.join("slaves")).into_iter().flatten().flatten();
    let number_of = |device: &Path| fs::read_to_string(device.join("dev")).ok().map(|text| text.trim().to_owned());
    let disk = |device: &Path| {
        // For a partition, its disk, whose directory contains the partition's.
        let disk = if device.join("partition").exists() { device.parent()? } else { device };
        number_of(disk)
    };
    let lower = lower.filter_map(|entry| disk(&fs::canonicalize(entry.path()).ok()?));
    let below: BTreeSet<String> =
        lower.filter(|lower| lower != number).flat_map(|lower| disks_below_at(devices, &lower, has_requests)).collect();
    if below.is_empty() { BTreeSet::from([number.to_owned()]) } else { below }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_stacked_lies_on_the_disks_at_the_bottom() {
        let sys = tempfile::tempdir().unwrap();
        let make = |path: &str, number: &str, lower: &[&str]| {
            let directory = sys.path().join("devices").join(path);
            fs::create_dir_all(directory.join("slaves")).unwrap();
            fs::write(directory.join("dev"), format!("{number}\n")).unwrap();
            fs::create_dir_all(sys.path().join("block")).unwrap();
            symlink(&directory, sys.path().join("block").join(number)).unwrap();
            for lower in lower {
                let name = lower.rsplit('/').next().unwrap();
                symlink(sys.path().join("devices").join(lower), directory.join("slaves").join(name)).unwrap();
            }
        };
        make("sda", "8:0", &[]);
        make("sda/sda3", "8:3", &[]);
        fs::write(sys.path().join("devices/sda/sda3/partition"), "3\n").unwrap();
        make("sdb", "8:16", &[]);
        make("dm-0", "253:0", &["sda/sda3"]);
        make("dm-1", "253:1", &["dm-0", "sdb"]);
        let below_of = |number: &str, has: &[&str]| {
            let below = disks_below_at(&sys.path().join("block"), number, &|number| has.contains(&number));
            below.into_iter().collect::<Vec<_>>()
        };
        let below = |number: &str| below_of(number, &["8:0"]);
        assert_eq!(below_of("253:1", &["8:0", "253:0"]), ["253:0", "8:16"], "requests of its own");
        assert_eq!(below("253:0"), ["8:0"]);
        assert_eq!(below("253:1"), ["8:0", "8:16"]);
        assert_eq!(below("8:16"), ["8:16"]);
        assert_eq!(below("259:2"), ["259:2"], "there is none any more");
    }
}
