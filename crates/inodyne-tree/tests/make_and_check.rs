//! Trees are what their specification says, and every difference is found.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use inodyne_tree::{MakeOptions, TreeError, TreeSpec, check, make, make_with, recorded_spec};

fn spec(text: &str) -> TreeSpec {
    text.parse().expect("a good specification")
}

#[test]
fn a_tree_is_made_and_found_right() {
    for text in ["depth=3,width=5,bytes=0..300", "dirs=30,fan=4,files=~6,bytes=~900,seed=5", "dirs=0,files=9", "dirs=2"]
    {
        let place = tempfile::tempdir().expect("a temporary directory");
        let root = place.path().join("tree");
        let made = make(&spec(text), &root).expect("made");
        let report = check(&spec(text), &root).expect("checked");
        assert!(report.is_clean(), "{text}: {:?}", report.first);
        assert_eq!((made.files, made.directories, made.bytes), (report.files, report.directories, report.bytes));
        assert_eq!(made.directories, fs_directories(&root));
    }
}

#[test]
fn the_same_seed_gives_the_same_tree_and_another_another() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let root = place.path().join("tree");
    make(&spec("dirs=3,files=4,bytes=100,seed=1"), &root).expect("made");
    assert!(check(&spec("dirs=3,files=4,bytes=100,seed=1"), &root).expect("checked").is_clean());
    assert_eq!(check(&spec("dirs=3,files=4,bytes=100,seed=2"), &root).expect("checked").problems, 12);
}

#[test]
fn large_files_are_right_in_every_piece() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let root = place.path().join("tree");
    let spec = spec("dirs=1,files=1,bytes=1000003");
    make(&spec, &root).expect("made");
    assert!(check(&spec, &root).expect("checked").is_clean());
    let file = root.join("d0/f0");
    let mut bytes = fs::read(&file).expect("read");
    bytes[600_001] ^= 1;
    fs::write(&file, bytes).expect("written");
    let report = check(&spec, &root).expect("checked");
    assert_eq!(report.first[0].to_string(), "d0/f0: byte 600001 differs");
}

#[test]
fn every_kind_of_difference_is_found() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let root = place.path().join("tree");
    let spec = spec("dirs=4,files=4,bytes=10");
    make(&spec, &root).expect("made");
    fs::write(root.join("d0/extra"), "").expect("written");
    fs::remove_file(root.join("d1/f1")).expect("removed");
    fs::write(root.join("d1/f2"), "short").expect("written");
    fs::remove_dir_all(root.join("d2")).expect("removed");
    fs::remove_file(root.join("d3/f3")).expect("removed");
    symlink("f2", root.join("d3/f3")).expect("linked");
    fs::write(root.join("lost+found"), "").expect("written");
    let report = check(&spec, &root).expect("checked");
    let mut found: Vec<_> = report.first.iter().map(ToString::to_string).collect();
    found.sort();
    let expected = [
        "d0/extra: not in the specification",
        "d1/f1: missing",
        "d1/f2: 5 bytes, not 10",
        "d2: missing",
        "d3/f3: not a file",
        "lost+found: not in the specification",
    ];
    assert_eq!(found, expected);
    assert_eq!(report.problems, 6);
    fs::remove_file(root.join("lost+found")).expect("removed");
    fs::create_dir(root.join("lost+found")).expect("made");
    assert_eq!(check(&spec, &root).expect("checked").problems, 5);
}

#[test]
fn nothing_is_made_over_existing_files() {
    let place = tempfile::tempdir().expect("a temporary directory");
    fs::write(place.path().join("mine"), "").expect("written");
    assert!(matches!(make(&spec("dirs=1"), place.path()), Err(TreeError::NotEmpty(_))));
}

#[test]
fn a_tree_knows_its_specification() {
    let place = tempfile::tempdir_in("/var/tmp").expect("a temporary directory");
    let root = place.path().join("tree");
    assert!(matches!(recorded_spec(place.path()), Err(TreeError::NoRecordedSpec(_))));
    make(&spec("dirs=2,bytes=~7"), &root).expect("made");
    assert_eq!(recorded_spec(&root).expect("recorded"), spec("dirs=2,bytes=~7"));
}

#[test]
fn a_very_deep_tree_is_made_and_checked() {
    let place = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
    let root = place.path().join("tree");
    let spec = spec("depth=20000,width=1,bytes=1");
    make(&spec, &root).expect("made");
    assert!(check(&spec, &root).expect("checked").is_clean());
    fs::rename(root.join("d0"), place.path().join("gone")).expect("renamed");
    let report = check(&spec, &root).expect("checked");
    assert_eq!((report.problems, report.first[0].to_string()), (1, "d0: missing".into()));
    std::process::Command::new("rm").arg("-rf").arg(place.path()).status().expect("rm runs");
}

fn fs_directories(root: &Path) -> u64 {
    let entries = fs::read_dir(root).expect("read").map(|entry| entry.expect("an entry"));
    1 + entries.filter(|entry| entry.path().is_dir()).map(|entry| fs_directories(&entry.path())).sum::<u64>()
}

#[test]
fn one_that_nobody_wants_any_more_is_given_up() {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    let is_unwanted = || ASKED.fetch_add(1, Ordering::Relaxed) >= 100;
    // Many directories, many files in one, and a file of many pieces.
    for text in ["dirs=1000000000,fan=10", "dirs=1,files=1000000", "dirs=1,files=1,bytes=10000000000"] {
        ASKED.store(0, Ordering::Relaxed);
        let place = tempfile::tempdir().expect("a temporary directory");
        let options = MakeOptions { is_unwanted, ..MakeOptions::default() };
        let error = make_with(&spec(text), place.path(), options).expect_err("it was given up");
        assert!(matches!(error, TreeError::Unwanted) && !error.is_usage(), "{text}: {error}");
        let bytes = fs::metadata(place.path().join("d0/f0")).map_or(0, |file| file.len());
        assert!(fs_directories(place.path()) <= 101 && bytes <= 100 << 18, "{text}");
        assert!(fs::read_dir(place.path().join("d0")).expect("read").count() <= 100, "{text}");
    }
}
