//! What to do about directories without types, by file system.

use inodyne_model::cure::{Change, PlaceChange};
use inodyne_model::trace::DtypeFs;

use super::super::remedy::{Remedy, advice};

/// Remedies for these file systems, the best first, each line once.
pub(super) fn for_file_systems<'a>(file_systems: impl Iterator<Item = &'a DtypeFs>) -> Vec<Remedy> {
    let mut remedies: Vec<Remedy> = Vec::new();
    // The evidence begins with a line for each of them, in the same order.
    for (line, fs) in file_systems.enumerate() {
        for remedy in of(&fs.fs) {
            if remedies.iter().all(|said| said.text != remedy.text) {
                remedies.push(remedy.answering(line));
            }
        }
    }
    if remedies.is_empty() { of("") } else { remedies }
}

fn of(fs: &str) -> Vec<Remedy> {
    let filetype = || Change::Place(PlaceChange::Feature("filetype".to_owned()));
    match fs {
        // Tried with e2fsprogs 1.47.0: tune2fs types only new entries, e2fsck -f types those that were there before.
        "ext2" | "ext3" | "ext4" => vec![
            Remedy::new("make the file system with -O filetype (the default of mke2fs)", filetype()),
            Remedy::advice(
                "or, unmounted: tune2fs -O filetype DEVICE, then e2fsck -f DEVICE, which adds the types to existing \
                 entries (tune2fs alone leaves them without)",
            ),
        ],
        "xfs" => {
            let [option, parameter, value] = ["-n", "ftype", "1"].map(str::to_owned);
            let ftype = Change::Place(PlaceChange::Mkfs { option, parameter, value });
            vec![Remedy::new("make the file system with -n ftype=1 (the default of mkfs.xfs)", ftype)]
        }
        "overlay" => vec![Remedy::new(
            "the types come from the layers: put them on a file system that stores types (ext4 with filetype, xfs with \
             ftype=1)",
            filetype(),
        )],
        "fuse" | "fuseblk" => advice(&["in the server: fill d_type in the answer to readdir, or offer readdirplus"]),
        _ => advice(&[
            "use a file system that stores types in its directories (ext4 with filetype, xfs with ftype=1, btrfs)",
            "or have its driver pass on the type that it knows",
        ]),
    }
}
