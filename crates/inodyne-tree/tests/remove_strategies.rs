//! Every strategy removes everything, on every file system, whatever the tree's shape.

mod common;

use std::{ffi::OsStr, fs, os::unix::fs::symlink, path::Path};

use common::{Place, in_namespace, listing, removed, run};
use inodyne_tree::{FileSystem, RemoveOptions, Strategy, make};

fn fill(root: &Path) -> (u64, u64) {
    let shapes =
        ["dirs=150,fan=10,files=0..9,bytes=~100", "dirs=0,files=5000", "depth=300,width=1", "dirs=40,files=3,fan=2"];
    let (mut files, mut directories) = (3, 2);
    fs::create_dir(root).expect("made");
    for (number, shape) in shapes.iter().enumerate() {
        let made = make(&shape.parse().expect("a specification"), &root.join(number.to_string())).expect("made");
        files += made.files;
        directories += made.directories;
    }
    symlink("/etc", root.join("link")).expect("linked");
    symlink("nowhere", root.join("dangling")).expect("linked");
    fs::hard_link(root.join("1/f0"), root.join("second")).expect("linked");
    fs::create_dir(root.join("empty")).expect("made");
    (files, directories)
}

fn everything_goes(kind: &str, mkfs: &[&str], file_system: FileSystem) {
    let place = Place::new(kind, mkfs);
    let root = place.path.join("tree");
    for strategy in [None].into_iter().chain(Strategy::ALL.map(Some)) {
        for threads in [None, Some(1), Some(9)] {
            let (files, directories) = fill(&root);
            let before = listing(&root);
            let counted = removed(&root, &RemoveOptions { dry_run: true, strategy, threads, ..Default::default() }).0;
            assert_eq!((counted.files, counted.directories), (files, directories));
            assert!(counted.allocated_bytes > Some(0) || kind == "btrfs");
            assert_eq!(listing(&root), before, "a dry run changed something");

            let (report, failed) = removed(&root, &RemoveOptions { strategy, threads, ..Default::default() });
            assert_eq!(failed, [""; 0], "{kind} {strategy:?} {threads:?}");
            assert_eq!((report.files, report.directories), (files, directories), "{kind} {strategy:?} {threads:?}");
            assert!(!root.exists() && report.unfinished.is_empty());
            assert_eq!(report.plans[0].0, file_system);
            assert_eq!(report.plans[0].1, strategy.unwrap_or(Strategy::for_file_system(file_system)));
        }
    }
}

#[test]
fn on_tmpfs() {
    if in_namespace("on_tmpfs") {
        everything_goes("tmpfs", &[], FileSystem::Memory);
    }
}

#[test]
fn on_ext4() {
    if in_namespace("on_ext4") {
        everything_goes("ext4", &[], FileSystem::Ext);
    }
}

/// The listing of such an ext4 does not say what is a directory.
#[test]
fn on_ext4_without_types() {
    if in_namespace("on_ext4_without_types") {
        everything_goes("ext4", &["-O", "^filetype"], FileSystem::Ext);
    }
}

#[test]
fn on_xfs() {
    if in_namespace("on_xfs") {
        everything_goes("xfs", &[], FileSystem::Xfs);
    }
}

#[test]
fn on_xfs_with_many_groups() {
    if in_namespace("on_xfs_with_many_groups") {
        everything_goes("xfs", &["-d", "agcount=13"], FileSystem::Xfs);
    }
}

#[test]
fn on_btrfs() {
    if in_namespace("on_btrfs") {
        everything_goes("btrfs", &[], FileSystem::Btrfs);
    }
}

/// A directory in the lower layer is copied up when something in it is removed, and then looks younger.
#[test]
fn on_an_overlay_deeper_than_there_are_descriptors() {
    if !in_namespace("on_an_overlay_deeper_than_there_are_descriptors") {
        return;
    }
    for (lower, upper) in [("tmpfs", "tmpfs"), ("ext4", "tmpfs"), ("ext4", "ext4")] {
        let (lower, upper) = (Place::new(lower, &[]), Place::new(upper, &[]));
        for name in ["upper", "work", "merged"] {
            fs::create_dir(upper.path.join(name)).expect("made");
        }
        let made = make(&"depth=200,width=1,files=3".parse().expect("a specification"), &lower.path.join("tree"));
        let made = made.expect("made");
        let merged = upper.path.join("merged");
        let layers = format!(
            "lowerdir={},upperdir={},workdir={}",
            lower.path.display(),
            upper.path.join("upper").display(),
            upper.path.join("work").display()
        );
        run(
            "mount",
            &["-t", "overlay", "test", "-o", &layers]
                .map(OsStr::new)
                .into_iter()
                .chain([merged.as_ref()])
                .collect::<Vec<_>>(),
        );
        let (report, failed) = removed(&merged.join("tree"), &RemoveOptions::default());
        assert_eq!(failed, [""; 0]);
        assert_eq!((report.files, report.directories), (made.files, made.directories));
        assert_eq!(report.plans[0].0, FileSystem::Overlay);
        run("umount", &[merged.as_ref()]);
    }
}

#[test]
fn subvolumes_go_too_unless_told_to_stay_on_the_device() {
    if !in_namespace("subvolumes_go_too_unless_told_to_stay_on_the_device") {
        return;
    }
    let place = Place::new("btrfs", &[]);
    let root = place.path.join("tree");
    fs::create_dir(&root).expect("made");
    let inner = root.join("inner");
    common::run("btrfs", &["subvolume".as_ref(), "create".as_ref(), inner.as_ref()]);
    fs::write(inner.join("file"), "x").expect("written");
    let (_, failed) = removed(&root, &RemoveOptions { one_device: true, ..Default::default() });
    assert_eq!(
        (failed, listing(&root)),
        (vec!["inner: it is on a different device".into()], vec!["inner/".into(), "inner/file".into()])
    );
    let (_, failed) = removed(&root, &RemoveOptions::default());
    assert_eq!((failed, root.exists()), (vec![], false));
}
