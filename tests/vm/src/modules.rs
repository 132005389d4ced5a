//! Which modules of a kernel a guest gets: those that a test may want, with all that they depend on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::cpio::Archive;
use crate::failure::{Failure, output};
use crate::kernel::Kernel;

/// File systems, devices and networks that a test may want. What a kernel has built in, or lacks, is left out.
pub(crate) const WANTED: [&str; 55] = [
    "virtio_pci",
    "virtio_mmio",
    "virtio_blk",
    "virtio_console",
    "virtio_net",
    "virtio_rng",
    "virtio_scsi",
    "sd_mod",
    "ext4",
    "ext2",
    "xfs",
    "btrfs",
    "f2fs",
    "squashfs",
    "erofs",
    "overlay",
    "loop",
    "fuse",
    "virtiofs",
    "cuse",
    "9p",
    "9pnet_virtio",
    "9pnet_fd",
    "nfs",
    "nfsv3",
    "nfsv4",
    "nfsd",
    "cifs",
    "vfat",
    "exfat",
    "isofs",
    "nls_utf8",
    "vsock",
    "vmw_vsock_virtio_transport",
    "vsock_loopback",
    "dm_mod",
    "dm_delay",
    "dm_flakey",
    "dm_snapshot",
    "dm_crypt",
    "null_blk",
    "scsi_debug",
    "brd",
    "zram",
    "nbd",
    "md_mod",
    "raid1",
    "tun",
    "veth",
    "crc32c_generic",
    "crc32c_intel",
    "crc32c_cryptoapi",
    "xxhash_generic",
    "blake2b_generic",
    "binfmt_misc",
];

/// Adds the wanted modules below `lib/modules`, uncompressed, with their lists of dependencies.
///
/// # Errors
/// A module cannot be read, or xz or depmod is missing.
pub fn add(archive: &mut Archive, kernel: &Kernel) -> Result<(), Failure> {
    let staging = tempfile::tempdir().map_err(Failure::writing("a temporary directory"))?;
    let into = staging.path().join("lib/modules").join(&kernel.release);
    for path in closure(&read(&kernel.modules, "modules.dep")?, &read(&kernel.modules, "modules.softdep")?) {
        let from = kernel.modules.join(&path);
        let to = into.join(path.trim_end_matches(".xz").trim_end_matches(".zst"));
        let parent = to.parent().expect("it is below the directory of modules");
        fs::create_dir_all(parent).map_err(Failure::writing(parent))?;
        let script = match path.rsplit('.').next() {
            Some("xz") => "xz -dc <\"$1\" >\"$2\"",
            Some("zst") => "zstd -qdc <\"$1\" >\"$2\"",
            _ => "cat <\"$1\" >\"$2\"",
        };
        output(Command::new("sh").args(["-c", script, "unpack"]).arg(&from).arg(&to))?;
    }
    for list in ["modules.builtin", "modules.builtin.modinfo", "modules.order"] {
        let from = kernel.modules.join(list);
        if from.exists() {
            fs::copy(&from, into.join(list)).map_err(Failure::writing(&into))?;
        }
    }
    output(Command::new("depmod").arg("-b").arg(staging.path()).arg(&kernel.release))?;
    archive.copy(&into, &format!("lib/modules/{}", kernel.release)).map_err(Failure::reading(&into))
}

fn read(directory: &Path, name: &str) -> Result<String, Failure> {
    let path = directory.join(name);
    fs::read_to_string(&path).map_err(Failure::reading(&path))
}

/// The paths of all wanted modules and of what these need, in order. `softdep` names what is only loaded by a hint.
fn closure(dependencies: &str, softdep: &str) -> BTreeSet<String> {
    let all: BTreeMap<&str, Vec<&str>> = dependencies
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(path, needs)| (path, needs.split_whitespace().collect()))
        .collect();
    let by_name: BTreeMap<String, &str> = all.keys().map(|path| (name_of(path), *path)).collect();
    let hints: BTreeMap<&str, Vec<&str>> = softdep
        .lines()
        .filter_map(|line| line.strip_prefix("softdep "))
        .filter_map(|line| line.split_once(' '))
        .map(|(name, needs)| (name, needs.split_whitespace().filter(|word| !word.ends_with(':')).collect()))
        .collect();
    let mut open: Vec<String> = WANTED.iter().map(|name| (*name).to_owned()).collect();
    let mut found = BTreeSet::new();
    while let Some(name) = open.pop() {
        open.extend(hints.get(name.as_str()).into_iter().flatten().map(|hint| hint.replace('-', "_")));
        let Some(path) = by_name.get(&name) else { continue };
        if found.insert((*path).to_owned()) {
            open.extend(all[path].iter().map(|path| name_of(path)));
        }
    }
    found
}

/// `kernel/fs/nls/nls-utf8.ko.xz` is the module `nls_utf8`.
fn name_of(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split('.').next().unwrap_or(file).replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_module_needs_comes_along() {
        let dependencies = "kernel/fs/ext4/ext4.ko.xz: kernel/lib/crc16.ko.xz kernel/fs/jbd2/jbd2.ko.xz\n\
            kernel/lib/crc16.ko.xz:\nkernel/fs/jbd2/jbd2.ko.xz:\nkernel/crypto/crc32c_generic.ko.xz:\n\
            kernel/sound/snd.ko.xz:\n";
        let found = closure(dependencies, "# a comment\nsoftdep ext4 pre: crc32c-generic\n");
        let names: Vec<String> = found.iter().map(|path| name_of(path)).collect();
        assert_eq!(names, ["crc32c_generic", "ext4", "jbd2", "crc16"]);
    }
}
