//! What tells a disk from others. Its number and its name do not: both may go to another disk after the next boot, or once it is gone.
//!
//! If /sys has nothing unique to the disk, its name, size and model have to do. A loop device is identified by its file. If that
//! no longer has a name, the kernel's running count of all disks that ever appeared tells it from others, until the next boot.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What identifies a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its name below /sys/block when it was looked at.
    pub name: String,
    /// How large it is.
    pub size_bytes: u64,
    /// What its maker calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its unique identifier, as /sys gives it: `wwid naa.5000c500a1b2c3d4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// Files in a disk's directory that hold a unique identifier, the best first: from its maker, from the device mapper, from md.
const OWN: [&str; 7] = ["wwid", "device/wwid", "device/cid", "serial", "device/serial", "dm/uuid", "md/uuid"];

/// The prefix of an identifier that is valid only until the next boot.
const UNTIL_BOOT: &str = "disk ";

/// The size of the sectors that /sys counts in, whatever sector size a disk has.
const SECTOR_BYTES: u64 = 512;

impl Identity {
    /// Identifies the disk with this number, `MAJOR:MINOR`, or the one that this is a partition of; `None` if there is no such disk.
    pub fn of(number: &str) -> Option<Identity> {
        Identity::at(Path::new("/"), &format!("sys/dev/block/{number}"))
    }

    /// All disks currently present.
    pub fn all() -> Vec<Identity> {
        let disks = fs::read_dir("/sys/block").into_iter().flatten().flatten();
        disks.filter_map(|disk| Identity::of_directory(Path::new("/"), &disk.path())).collect()
    }

    /// The same for a path below another root directory.
    fn at(root: &Path, device: &str) -> Option<Identity> {
        let device = root.join(device).canonicalize().ok()?;
        let is_partition = device.join("partition").exists();
        Identity::of_directory(root, if is_partition { device.parent()? } else { &device })
    }

    fn of_directory(root: &Path, disk: &Path) -> Option<Identity> {
        let read = |name: &str| text(&disk.join(name));
        let sectors: u64 = read("size")?.parse().ok()?;
        let own = || OWN.iter().find_map(|name| Some(format!("{} {}", name.rsplit('/').next()?, read(name)?)));
        Some(Identity {
            name: disk.file_name()?.to_string_lossy().into_owned(),
            size_bytes: sectors * SECTOR_BYTES,
            model: read("device/model"),
            id: match read("loop/backing_file") {
                Some(file) => of_file(root, &file).or_else(|| until_boot(root, &read("diskseq")?)),
                None => own(),
            },
        })
    }

    /// Whether this is the same disk, whatever it is called now.
    pub fn is_same(&self, other: &Identity) -> bool {
        self.key() == other.key()
    }

    /// Whether it can never come back once it is gone.
    pub(crate) fn ends_with_boot(&self) -> bool {
        self.id.as_ref().is_some_and(|id| id.starts_with(UNTIL_BOOT))
    }

    /// What two disks have in common only if they are the same one.
    pub(crate) fn key(&self) -> (&str, u64, Option<&str>) {
        (self.id.as_deref().unwrap_or(&self.name), self.size_bytes, self.model.as_deref())
    }
}

/// A loop device's file, if it is still where it was when the device was set up.
fn of_file(root: &Path, file: &str) -> Option<String> {
    let found = fs::metadata(root.join(PathBuf::from(file).strip_prefix("/").ok()?)).ok()?;
    found.is_file().then(|| format!("file {file} inode {}", found.ino()))
}

/// An identifier from the number of a disk that is gone by the next boot at the latest.
fn until_boot(root: &Path, number: &str) -> Option<String> {
    let boot = text(&root.join("proc/sys/kernel/random/boot_id"))?;
    Some(format!("{UNTIL_BOOT}{number} of boot {boot}"))
}

/// The text in a file; `None` if there is none.
fn text(file: &Path) -> Option<String> {
    let bytes = fs::read(file).ok()?;
    let text = String::from_utf8_lossy(&bytes).split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A root directory with a disk `8:0` that has these files, and a partition `8:1` of it.
    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let write = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let disk = root.path().join("sys/devices/pci/block/sda");
        write(disk.join("size"), "2048\n");
        write(disk.join("sda1/partition"), "1\n");
        for (name, text) in files {
            write(disk.join(name), text);
        }
        write(root.path().join("proc/sys/kernel/random/boot_id"), "b-1\n");
        fs::create_dir_all(root.path().join("sys/dev/block")).unwrap();
        symlink(&disk, root.path().join("sys/dev/block/8:0")).unwrap();
        symlink(disk.join("sda1"), root.path().join("sys/dev/block/8:1")).unwrap();
        root
    }

    fn identity(files: &[(&str, &str)]) -> Identity {
        Identity::at(root(files).path(), "sys/dev/block/8:0").unwrap()
    }

    #[test]
    fn a_disk_is_known_by_what_its_maker_gave_it_and_a_partition_is_of_its_disk() {
        let files = [("device/model", "Fast  Disk \n"), ("device/wwid", "naa.1\n"), ("device/serial", "S1\n")];
        let expected = Identity {
            name: "sda".to_owned(),
            size_bytes: 1 << 20,
            model: Some("Fast Disk".to_owned()),
            id: Some("wwid naa.1".to_owned()),
        };
        assert_eq!(identity(&files), expected);
        assert_eq!(Identity::at(root(&files).path(), "sys/dev/block/8:1"), Some(expected));
        assert_eq!(Identity::at(root(&files).path(), "sys/dev/block/8:2"), None);
        assert_eq!(identity(&[("serial", "S2")]).id.as_deref(), Some("serial S2"));
    }

    #[test]
    fn disks_are_the_same_whatever_they_are_called_unless_nothing_else_is_known() {
        let named = |name: &str, id: Option<&str>| Identity {
            name: name.to_owned(),
            size_bytes: 1,
            model: None,
            id: id.map(str::to_owned),
        };
        assert_eq!(named("sda", Some("wwid 1")).key(), named("sdb", Some("wwid 1")).key());
        assert_ne!(named("sda", Some("wwid 1")).key(), named("sda", Some("wwid 2")).key());
        assert_ne!(named("sda", None).key(), named("sdb", None).key());
        assert_ne!(named("sda", None).key(), Identity { size_bytes: 2, ..named("sda", None) }.key());
    }

    #[test]
    fn a_loop_device_is_its_file_and_one_whose_file_has_no_name_lasts_until_the_next_boot() {
        let loops = |file: &str| root(&[("loop/backing_file", file), ("diskseq", "17\n")]);
        let id = |root: &tempfile::TempDir| Identity::at(root.path(), "sys/dev/block/8:0").unwrap().id.unwrap();
        let image = loops("/image\n");
        fs::write(image.path().join("image"), "").unwrap();
        assert!(id(&image).starts_with("file /image inode "), "{}", id(&image));
        assert_eq!(id(&loops("/image (deleted)\n")), "disk 17 of boot b-1");
        assert_eq!(id(&loops("/disk\n")), "disk 17 of boot b-1");
    }
}
