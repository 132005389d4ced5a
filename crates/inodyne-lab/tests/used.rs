//! File systems that look used: full to the share asked for, with free space in pieces, and nothing of it in the place.

mod common;

use std::{fs, process::Command};

use common::{alone, lab, make, nothing_remains, refused};
use inodyne_lab::make_cold;
use rustix::fs::statvfs;

fn percent(path: &std::path::Path) -> f64 {
    let stat = statvfs(path).expect("statvfs");
    (stat.f_blocks - stat.f_bfree) as f64 / stat.f_blocks as f64 * 100.0
}

#[test]
fn each_kind_is_as_full_as_asked_for_and_its_place_is_empty() {
    let _alone = alone();
    let (lab, scratch) = lab();
    for text in [
        "ext2:size=64M,full=70%",
        "ext4:size=256M,age=2,full=80%",
        "xfs:size=300M,full=80%",
        "btrfs:size=256M,age=1,full=60%",
        "ext4:size=256M,age=1",
    ] {
        let mut place = make(&lab, text);
        assert_eq!(fs::read_dir(place.path()).expect("the root").count(), 0, "{text}");
        let wear = place.record().wear.expect("it was used");
        assert!(wear.files_left > 0 && wear.files_made >= wear.files_left, "{text}: {wear:?}");
        place.fill(&"tree:dirs=20,files=50,bytes=4000".parse().expect("data")).expect("filled");
        make_cold(&mut place).expect("made cold");
        assert_eq!(fs::read_dir(place.path()).expect("the root").count(), 20, "{text}");
        let record = place.record();
        assert_eq!(record.spec.as_deref(), Some(text));
        let (full, used) = (percent(place.path()), record.wear.expect("it was used"));
        println!("{text}: {full:.1}%, {used:?}");
        assert!((f64::from(used.used_percent) - full).abs() < 3.0, "{text}: {full}, {used:?}");
        let wanted = text.rsplit_once("full=").map(|(_, percent)| percent.trim_end_matches('%').parse::<f64>());
        if let Some(Ok(wanted)) = wanted {
            assert!((full - wanted).abs() < 3.0, "{text}: {full}");
            assert_eq!(used.rounds, u32::from(text.contains("age=")) + u32::from(text.contains("age=2")));
        } else {
            assert!(used.rounds == 1 && used.files_left < used.files_made, "{used:?}");
        }
        drop(place);
        nothing_remains(scratch.path());
    }
}

/// What e2freefrag says of the free extents: many small ones instead of one large one.
#[test]
fn free_space_is_in_pieces_and_the_same_ones_each_time() {
    let _alone = alone();
    let (lab, _scratch) = lab();
    let extents = |text: &str| {
        let mut place = make(&lab, text);
        place.remount().expect("mounted again");
        let said = Command::new("e2freefrag").arg(place.record().source).output().expect("e2freefrag runs").stdout;
        let said = String::from_utf8(said).expect("text");
        let line = said.lines().find(|line| line.contains("Avg. free extent")).expect("the average").to_owned();
        let average = line.split_whitespace().rev().nth(1).and_then(|word| word.parse::<u64>().ok());
        (average.expect("a number"), said)
    };
    let (new, _) = extents("ext4:size=256M");
    let (old, said) = extents("ext4:size=256M,age=3");
    assert!(old * 4 < new, "{old} KB on average, {new} KB when new\n{said}");
    // The same files are written and deleted; when they reach the device, and so where exactly, depends on how busy the machine is.
    let (again, said) = extents("ext4:size=256M,age=3");
    assert!(again.abs_diff(old) * 20 <= old, "{again} KB on average, {old} KB before\n{said}");
}

#[test]
fn an_overlay_lies_on_a_full_file_system_and_what_cannot_be_is_said() {
    let (lab, _scratch) = lab();
    let mut place = make(&lab, "overlay:lower=ext4:size=128M,full=75%");
    place.fill(&"tree:dirs=10,files=50,bytes=20000".parse().expect("data")).expect("filled");
    let below = place.record().below[0].clone();
    assert!((percent(&below.path) - 75.0).abs() < 3.0, "{}%", percent(&below.path));
    assert!((73..=77).contains(&below.wear.expect("used").used_percent));
    let error = refused(&lab, "ext4:size=64M,mkfs=-N 16,full=90%");
    assert!(error.contains("cannot be made 90% full"), "{error}");
}
