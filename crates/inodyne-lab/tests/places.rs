//! Places of every kind: made, used, remounted, and gone without a trace.

mod common;

use std::{
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::Path,
    process::Command,
};

use common::{SOMEBODY, lab, make, mounts_outside, nothing_remains, refused, spec};
use inodyne_lab::{Lab, LabError, Note, Owner, Tunable};

#[test]
fn every_kind_is_made_used_and_gone() {
    let (lab, scratch) = lab();
    for (text, fs_name) in [
        ("ext2:size=64M", "ext2"),
        ("ext3:size=64M", "ext3"),
        ("ext4:size=64M", "ext4"),
        ("xfs:size=300M", "xfs"),
        ("btrfs:size=128M", "btrfs"),
        ("tmpfs:size=64M", "tmpfs"),
    ] {
        let mut place = make(&lab, text);
        let record = place.record();
        assert_eq!((record.fs.as_str(), record.label.as_str(), record.made_here), (fs_name, text, true));
        let wanted = text.rsplit_once('=').expect("a size").1;
        assert_eq!(inodyne_lab::Size::from_bytes(record.size_bytes.expect("a size")).to_string(), wanted);
        assert!(record.mount_options.starts_with("rw,relatime"), "{}", record.mount_options);
        assert_eq!(place.notes(), [], "{text}");
        let root = fs::metadata(place.path()).expect("the root");
        assert_eq!((root.uid(), root.gid(), root.mode() & 0o7777), (1234, 2345, 0o755));
        assert_eq!(fs::read_dir(place.path()).expect("the root").count(), 0, "{text} begins empty");

        place.fill(&"tree:dirs=20,files=10,bytes=5000".parse().expect("data")).expect("filled");
        assert_eq!(place.record().data.as_deref(), Some("tree:dirs=20,fan=100,files=10,bytes=5000,seed=0"));
        let file = place.path().join("d3/f3");
        assert_eq!(fs::metadata(&file).expect("a file").uid(), 1234);
        assert_eq!(place.device_stats().is_some(), fs_name != "tmpfs");
        let before = fs::read(&file).expect("a file");
        place.remount().expect("mounted again");
        assert_eq!(fs::read(&file).expect("still a file"), before, "{text}");
        assert_eq!(fs::metadata(place.path()).expect("the root").uid(), 1234, "{text}");
        drop(place);
        nothing_remains(scratch.path());
    }
}

#[test]
fn several_places_at_once_in_paths_of_one_length() {
    let (lab, scratch) = lab();
    let first = make(&lab, "a=ext4:size=16M");
    let second = make(&lab, "b=ext4:size=16M,mkfs=-O ^filetype");
    let third = make(&lab, "tmpfs:size=1M");
    fs::write(first.path().join("x"), "first").expect("written");
    fs::write(second.path().join("x"), "second").expect("written");
    assert_eq!(fs::read_to_string(first.path().join("x")).expect("read"), "first");
    assert_eq!(first.path().as_os_str().len(), third.path().as_os_str().len());
    assert_eq!(second.record().mkfs, ["-O", "^filetype"]);
    let freed = first.path().to_owned();
    drop(first);
    let fourth = make(&lab, "tmpfs:size=1M");
    assert_eq!(fourth.path(), freed);
    let hub = freed.parent().expect("the hub").to_owned();
    assert_eq!(fs::read_dir(&hub).expect("the hub").count(), 3);
    drop((second, third, fourth));
    assert_eq!(fs::read_dir(&hub).expect("what was there before").count(), 0);
    nothing_remains(scratch.path());
}

#[test]
fn missing_file_types_are_really_missing() {
    let (lab, _scratch) = lab();
    for (text, is_known) in [("ext4:size=16M", true), ("ext4:size=16M,mkfs=-O ^filetype", false)] {
        let place = make(&lab, text);
        fs::write(place.path().join("x"), "").expect("written");
        let directory = fs::File::open(place.path()).expect("opened");
        let entries = rustix::fs::Dir::read_from(&directory).expect("read").map(|entry| entry.expect("an entry"));
        let unknown = entries.filter(|entry| entry.file_type() == rustix::fs::FileType::Unknown).count();
        assert_eq!(unknown == 0, is_known, "{text}");
    }
}

#[test]
fn mount_and_mkfs_options_arrive() {
    let (lab, _scratch) = lab();
    let place = make(&lab, "ext4:size=64M,mkfs=-I 128 -E stride=4,mount=data=journal,noatime,nodev,commit=7");
    let options = place.record().mount_options;
    for option in ["noatime", "nodev", "commit=7", "data=journal"] {
        assert!(options.split(',').any(|word| word == option), "{option} in {options}");
    }
    let dump = Command::new("dumpe2fs").arg("-h").arg(place.record().source).output().expect("dumpe2fs runs");
    let dump = String::from_utf8_lossy(&dump.stdout);
    assert!(dump.contains("Inode size:	          128") && dump.contains("RAID stride:              4"), "{dump}");
    let place = make(&lab, "ext4:size=16M,mount=ro");
    assert!(fs::write(place.path().join("x"), "").is_err());
}

#[test]
fn of_options_about_access_times_the_last_one_counts() {
    let (lab, _scratch) = lab();
    for (options, is_noatime) in
        [("strictatime,noatime", true), ("noatime,strictatime", false), ("noatime,nodev,relatime", false)]
    {
        for text in [format!("ext4:size=16M,mount={options}"), format!("bind:[ext4:size=16M],mount={options}")] {
            let record = make(&lab, &text).record();
            assert_eq!(record.mount_options.split(',').any(|option| option == "noatime"), is_noatime, "{record:?}");
        }
    }
}

#[test]
fn what_is_tried_for_a_size_can_be_made_in_it() {
    let (lab, _scratch) = lab();
    for (kind, settings, sizes) in [
        ("xfs", &["log-size", "agcount"][..], &["300M", "512M", "1G", "2G", "2560M"][..]),
        ("ext4", &["journal-size"][..], &["256M", "1G"][..]),
    ] {
        for size in sizes {
            let place = spec(&format!("{kind}:size={size}"));
            for setting in settings {
                let setting = Tunable::named(setting).expect("it is known");
                for value in setting.values_for(&place) {
                    let changed = setting.apply(&place, value.text).expect("it fits");
                    drop(lab.make(&changed, SOMEBODY).unwrap_or_else(|error| panic!("{changed}: {error}")));
                }
            }
        }
    }
}

#[test]
fn the_kernel_does_not_go_on_making_the_file_system() {
    let (lab, _scratch) = lab();
    for text in ["ext4:size=2G", "ext4:size=2G,mkfs=-E stride=4"] {
        let place = make(&lab, text);
        let groups = Command::new("dumpe2fs").arg(place.record().source).output().expect("dumpe2fs runs").stdout;
        let groups = String::from_utf8_lossy(&groups).into_owned();
        let (all, zeroed) = (groups.matches("Inode table at").count(), groups.matches("ITABLE_ZEROED").count());
        assert!(all == 16 && zeroed == all, "{text}: {zeroed} of {all} groups have their inode tables");
    }
}

#[test]
fn an_existing_directory_is_described_and_not_touched() {
    let (lab, scratch) = lab();
    let directory = scratch.path().join("data");
    fs::create_dir(&directory).expect("made");
    let before = fs::metadata(&directory).expect("there");
    let mut place = make(&lab, &format!("mine={}", directory.display()));
    let record = place.record();
    assert_eq!((record.label.as_str(), record.made_here, record.path.as_path()), ("mine", false, directory.as_path()));
    let real = Command::new("stat").args(["-f", "-c", "%T"]).arg(&directory).output().expect("stat runs");
    assert!(String::from_utf8_lossy(&real.stdout).contains(&record.fs[..3]), "{record:?}");
    assert!(!record.source.is_empty() && record.mount_options.starts_with("rw"));
    let error = place.fill(&"tree:dirs=1".parse().expect("data")).expect_err("existing directories are not filled");
    assert!(error.to_string().contains("never filled"), "{error}");
    place.remount().expect("nothing to do");
    drop(place);
    let after = fs::metadata(&directory).expect("still there");
    assert_eq!(
        (before.mtime_nsec(), before.ctime_nsec(), before.mode()),
        (after.mtime_nsec(), after.ctime_nsec(), after.mode())
    );
}

#[test]
fn what_a_reader_should_know_is_noted() {
    let (lab, scratch) = lab();
    let place = make(&lab, &scratch.path().display().to_string());
    assert_eq!(place.notes(), [Note::NotWritable { uid: SOMEBODY.uid }]);
    let made = make(&lab, "ext4:size=16M,mount=ro");
    let place = make(&lab, "/sys");
    assert_eq!(place.notes(), [Note::NotWritable { uid: SOMEBODY.uid }]);
    let (other, _scratch) = common::lab();
    let in_memory = common::lab().0.with_scratch("/dev/shm");
    assert_eq!(make(&in_memory, "ext4:size=1M").notes(), [Note::ScratchInMemory { scratch: "/dev/shm".into() }]);
    assert_eq!(make(&other, &made.path().display().to_string()).notes(), [Note::ReadOnly]);
    let error = lab.make(&spec(&made.path().display().to_string()), SOMEBODY).expect_err("our own");
    assert!(error.to_string().contains("set INODYNE_MOUNT"), "{error}");
}

#[test]
fn mistakes_get_one_clear_line() {
    let (lab, scratch) = lab();
    let file = scratch.path().join("file");
    fs::write(&file, "").expect("written");
    symlink("/nowhere", scratch.path().join("dangling")).expect("linked");
    for (text, says) in [
        ("/no/such/place", "/no/such/place does not exist"),
        (&*file.display().to_string(), "is not a directory"),
        (&*file.join("x").display().to_string(), "is not a directory"),
        (&*scratch.path().join("dangling").display().to_string(), "does not exist"),
        ("xfs:size=100M", "it needs at least size=300M"),
        ("btrfs:size=1M", "it needs at least size=109M"),
        ("ext4:size=1K", "it needs at least size=64K"),
        ("ext4:size=1000T", "give less with size="),
        ("ext4:size=16M,mkfs=-O ^nonsense", "mkfs.ext4 failed: Invalid filesystem option set: ^nonsense"),
        ("xfs:size=300M,mkfs=-d nonsense=1", "mkfs.xfs failed: unknown option -d nonsense=1"),
        ("ext4:size=16M,mount=nonsense", "Unknown parameter 'nonsense'"),
        ("ext4:size=16M,mount=commit=soon", "commit"),
        ("ext4:size=16M,mkfs=-O ^has_journal,mount=data=journal", "can't mount with data=, fs mounted w/o journal"),
        ("xfs:size=300M,mount=logbufs=99", "logbufs"),
        ("tmpfs:mount=nonsense=1", "nonsense"),
        ("btrfs:size=128M,mount=subvol=none", "subvol"),
    ] {
        let error = refused(&lab, text);
        assert!(error.contains(says), "{text}: {error}");
    }
    let mut lab = lab;
    for nowhere in [Path::new("/no/such"), Path::new("/proc"), &file] {
        lab = lab.with_scratch(nowhere);
        let error = refused(&lab, "ext4:size=1M");
        assert!(error.contains("no image can be made in") && error.contains("INODYNE_SCRATCH"), "{error}");
    }
}

#[test]
fn a_place_in_use_is_said_to_be_busy_and_still_goes() {
    let (lab, scratch) = lab();
    let mut place = make(&lab, "ext4:size=16M");
    let open = fs::File::create(place.path().join("x")).expect("made");
    assert!(matches!(place.remount(), Err(LabError::Busy(_))));
    let path = place.path().to_owned();
    drop(place);
    assert!(!path.exists());
    drop(open);
    nothing_remains(scratch.path());
}

#[test]
fn without_root_the_missing_capability_is_named() {
    let thread = std::thread::spawn(|| {
        let none = rustix::thread::CapabilitySets {
            effective: rustix::thread::CapabilitySet::empty(),
            permitted: rustix::thread::CapabilitySet::empty(),
            inheritable: rustix::thread::CapabilitySet::empty(),
        };
        rustix::thread::set_capabilities(None, none).expect("capabilities of this thread dropped");
        Lab::new().make(&spec("ext4"), Owner::ROOT).expect_err("no capability").to_string()
    });
    let error = thread.join().expect("joined");
    assert!(error.contains("CAP_SYS_ADMIN") && error.contains("sudo"), "{error}");
}

#[test]
fn the_owner_can_write_and_the_namespace_is_private() {
    let (lab, _scratch) = lab();
    let place = lab.make(&spec("ext4:size=16M"), Owner { uid: 65534, gid: 65534 }).expect("made");
    let status = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "touch", "x"])
        .current_dir(place.path())
        .status();
    assert!(status.expect("setpriv runs").success());
    let inside = fs::read_to_string("/proc/thread-self/mounts").expect("the mounts inside");
    assert!(inside.contains(&*place.path().to_string_lossy()));
    assert!(!mounts_outside().contains(&*place.path().to_string_lossy()));
}
