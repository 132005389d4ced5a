//! Renamed aside before it is deleted: what is mounted below stays where its user has it.

mod common;

use std::{fs, path::Path};

use common::{Memory, Place, in_namespace, listing};
use inodyne_tree::{Control, RemoveOptions, RemoveReport, remove_aside, remove_left_behind};

fn mounted(at: &Path) {
    fs::create_dir_all(at).expect("made");
    common::run("mount", &["-t".as_ref(), "tmpfs".as_ref(), "test".as_ref(), at.as_ref()]);
    fs::write(at.join("kept"), "").expect("written");
}

fn aside(operands: &[&Path], options: &RemoveOptions) -> RemoveReport {
    let operands: Vec<_> = operands.iter().map(Into::into).collect();
    remove_aside(&operands, options, &Control::new(), &Memory::default())
}

#[test]
fn a_mount_is_not_moved_with_what_is_above_it() {
    if !in_namespace("a_mount_is_not_moved_with_what_is_above_it") {
        return;
    }
    let place = Place::new("tmpfs", &[]);
    let [tree, other] = ["a tree", "other"].map(|name| place.path.join(name));
    mounted(&tree.join("sub/mnt"));
    fs::write(tree.join("file"), "").expect("written");
    fs::create_dir(&other).expect("made");
    let report = aside(&[&tree, &other], &RemoveOptions::default());
    assert_eq!(
        (report.files, report.directories, report.failures),
        (1, 3, 1),
        "with the directory that was made for `other`"
    );
    assert_eq!(listing(&place.path), ["a tree/", "a tree/sub/", "a tree/sub/mnt/", "a tree/sub/mnt/kept"]);
}

#[test]
fn what_is_mounted_in_what_was_left_is_not_emptied() {
    if !in_namespace("what_is_mounted_in_what_was_left_is_not_emptied") {
        return;
    }
    let place = Place::new("tmpfs", &[]);
    let left = place.path.join(".inodyne-trash-1-a");
    mounted(&left.join("trash/tree/mnt"));
    fs::set_permissions(&left, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("set");
    let crossing = RemoveOptions { cross_mounts: true, ..RemoveOptions::default() };
    let other = place.path.join("other");
    fs::create_dir(&other).expect("made");
    assert_eq!(aside(&[&other], &crossing).failures, 1);
    remove_left_behind(&[other.into()], &crossing, &Control::new(), &Memory::default());
    assert!(left.join("trash/tree/mnt/kept").exists());
}

#[test]
fn what_nobody_wants_deleted_any_more_keeps_its_name() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let tree = place.path().join("tree");
    fs::create_dir(&tree).expect("made");
    let control = Control::new();
    control.stop();
    let report = remove_aside(&[tree.clone().into()], &RemoveOptions::default(), &control, &Memory::default());
    assert_eq!(report.unfinished, [tree.as_os_str()]);
    assert_eq!(listing(place.path()), ["tree/"]);
}
