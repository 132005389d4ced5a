//! What to do about directories without types, by file system.

use std::collections::BTreeSet;

use inodyne_model::trace::DtypeFs;

/// Advice for these file systems, the best first, each line once.
pub(super) fn for_file_systems<'a>(file_systems: impl Iterator<Item = &'a DtypeFs>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let lines = file_systems.flat_map(|fs| advice(&fs.fs)).filter(|line| seen.insert(**line));
    let lines: Vec<_> = lines.map(|line| (*line).to_owned()).collect();
    if lines.is_empty() { advice("").iter().map(|line| (*line).to_owned()).collect() } else { lines }
}

fn advice(fs: &str) -> &'static [&'static str] {
    match fs {
        // Tried with e2fsprogs 1.47.0: tune2fs types only new entries, e2fsck -f types those that were there before.
        "ext2" | "ext3" | "ext4" => &[
            "make the file system with -O filetype (the default of mke2fs)",
            "or, unmounted: tune2fs -O filetype DEVICE, then e2fsck -f DEVICE, which adds the types to existing \
             entries (tune2fs alone leaves them without)",
        ],
        "xfs" => &["make the file system with -n ftype=1 (the default of mkfs.xfs)"],
        "overlay" => &[
            "the types come from the layers: put them on a file system that stores types (ext4 with filetype, xfs with \
             ftype=1)",
        ],
        "fuse" | "fuseblk" => &["in the server: fill d_type in the answer to readdir, or offer readdirplus"],
        _ => &[
            "use a file system that stores types in its directories (ext4 with filetype, xfs with ftype=1, btrfs)",
            "or have its driver pass on the type that it knows",
        ],
    }
}
