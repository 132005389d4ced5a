//! Cold is cold: proved by the bytes that a device reads.

mod common;

use std::{fs, path::Path, process::Command};

use common::{alone, lab, make};
use inodyne_lab::{LabError, MountedPlace, Warmed, make_cold, warm};

/// Bytes that `find`, asking for each inode, makes the device read.
fn find_reads(place: &MountedPlace) -> u64 {
    let before = place.device_stats().expect("a device");
    let output = Command::new("find").arg(place.path()).args(["-size", "+100k"]).output().expect("find runs");
    assert!(output.status.success());
    place.device_stats().expect("a device").since(before).read_bytes
}

#[test]
fn cold_reads_and_warm_does_not() {
    let _alone = alone();
    let (lab, _scratch) = lab();
    for text in ["ext4:size=64M", "ext2:size=64M", "xfs:size=300M", "btrfs:size=128M"] {
        let mut place = make(&lab, text);
        place.fill(&"tree:dirs=100,files=20,bytes=10".parse().expect("data")).expect("filled");
        for _ in 0..2 {
            make_cold(&mut place).expect("cold");
            let cold = find_reads(&place);
            assert!(cold > 100 << 10, "{text}: {cold} bytes read");
        }
        make_cold(&mut place).expect("cold");
        // The kernel may need memory for others now and then, and other programs may empty the caches of the whole machine:
        // more often than not neither happens.
        let mut reads = [(); 9].map(|()| {
            assert_eq!(warm(place.path()).expect("warm"), Warmed { directories: 101, others: 2000 }, "{text}");
            find_reads(&place)
        });
        reads.sort_unstable();
        assert_eq!(reads[4], 0, "{text}: {reads:?}");
    }
}

#[test]
fn memory_is_never_cold() {
    let (lab, _scratch) = lab();
    let mut place = make(&lab, "ram=tmpfs:size=1M");
    let error = make_cold(&mut place).expect_err("in memory");
    assert!(matches!(error, LabError::NeverCold(_)));
    assert_eq!(error.to_string(), "ram is in memory and cannot be cold: use --cache warm or as-is there");
    let mut place = make(&lab, "/dev/shm");
    assert!(matches!(make_cold(&mut place), Err(LabError::NeverCold(_))));
}

#[test]
fn warming_changes_nothing_and_stays_inside() {
    let (lab, _scratch) = lab();
    let place = make(&lab, "ext4:size=16M,mount=strictatime");
    let inner = make(&lab, "tmpfs:size=1M");
    let [directory, mounted] = ["d", "d/m"].map(|name| place.path().join(name));
    fs::create_dir_all(&mounted).expect("made");
    std::os::unix::fs::symlink("/", directory.join("everything")).expect("linked");
    fs::write(inner.path().join("x"), "").expect("written");
    let bound = rustix::mount::mount_bind(inner.path(), &mounted);
    bound.expect("bound");
    let accessed = |path: &Path| fs::symlink_metadata(path).expect("there").accessed().expect("a time");
    let before = accessed(&directory);
    assert_eq!(warm(place.path()).expect("warm"), Warmed { directories: 2, others: 1 });
    assert_eq!(accessed(&directory), before);
    rustix::mount::unmount(&mounted, rustix::mount::UnmountFlags::empty()).expect("unmounted");
}

#[test]
fn a_directory_that_was_there_can_be_cold_too() {
    let _alone = alone();
    let (lab, _scratch) = lab();
    let mut made = make(&lab, "ext4:size=64M");
    made.fill(&"tree:dirs=50,files=20,bytes=10".parse().expect("data")).expect("filled");
    // Seen from another lab the same mount is just a directory.
    let mut place = {
        let (other, _scratch) = common::lab();
        make(&other, &made.path().join("d1").display().to_string())
    };
    assert!(!place.record().made_here && place.device_stats().is_some());
    assert_eq!(place.device_number(), made.device_number());
    make_cold(&mut place).expect("cold");
    assert!(find_reads(&place) > 0);
}
