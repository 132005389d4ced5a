//! Places that stand on others, and places packed from their data.

mod common;

use std::{
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::Path,
    process::Command,
};

use common::{SOMEBODY, alone, lab, make, nothing_remains, refused};
use inodyne_lab::{DataSpec, LabError, MountedPlace, Note, make_cold};

/// Names, kinds, modes, times (in seconds: squashfs knows no finer), owners and contents of everything below.
fn listing(path: &Path) -> String {
    let list = "find . -mindepth 1 -printf '%P %y %m %Ts %U %G %l\\n' | sort; find . -type f -exec md5sum {} + | sort";
    let output = Command::new("sh").args(["-c", list]).current_dir(path).output().expect("a shell runs");
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn original(scratch: &Path) -> DataSpec {
    let from = scratch.join("from");
    for directory in ["a/b", "c", "empty"] {
        fs::create_dir_all(from.join(directory)).expect("made");
    }
    for number in 0..20 {
        for directory in ["a", "a/b", "c"] {
            let file = from.join(directory).join(format!("f{number}"));
            fs::write(&file, format!("{directory} {number}\n").repeat(number * 100)).expect("written");
            let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::new(1_600_000_000 + number as u64, 0);
            fs::File::open(&file).and_then(|file| file.set_modified(time)).expect("set");
        }
    }
    fs::hard_link(from.join("a/f3"), from.join("c/again")).expect("linked");
    symlink("a/f1", from.join("link")).expect("linked");
    for directory in ["a/b", "a", "c", "empty"] {
        let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_500_000_000);
        fs::File::open(from.join(directory)).and_then(|file| file.set_modified(time)).expect("set");
    }
    from.display().to_string().parse().expect("data")
}

/// Bytes that reading all files makes the devices read.
fn reading(place: &MountedPlace) -> u64 {
    let before = place.device_stats().expect("devices");
    listing(place.path());
    place.device_stats().expect("devices").since(before).read_bytes
}

#[test]
fn every_stack_shows_the_same_data_also_when_cold() {
    let _alone = alone();
    let (lab, scratch) = lab();
    let data = original(scratch.path());
    let mut plain = make(&lab, "ext4:size=64M");
    plain.fill(&data).expect("filled");
    let expected = listing(plain.path());
    drop(plain);
    for (text, fs_name, below) in [
        ("overlay:lower=ext4:size=64M", "overlay", 1),
        ("overlay:lower=ext4:size=64M,layers=3,mount=metacopy=on,redirect_dir=on", "overlay", 1),
        ("overlay:lower=[xfs:size=300M,mount=noatime],upper=tmpfs", "overlay", 2),
        ("overlay:lower=squashfs,upper=ext4:size=64M", "overlay", 2),
        ("overlay:lower=overlay:lower=ext4:size=64M,upper=ext4:size=64M", "overlay", 2),
        ("bind:ext4:size=64M", "ext4", 1),
        ("bind:[ext4:size=64M,mount=noatime],mount=nosuid", "ext4", 1),
        ("bind:squashfs", "squashfs", 1),
        ("squashfs", "squashfs", 0),
        ("squashfs:mkfs=-comp gzip -b 64K", "squashfs", 0),
        ("erofs", "erofs", 0),
        ("erofs:mkfs=-zlz4", "erofs", 0),
    ] {
        let mut place = make(&lab, text);
        assert_eq!(fs::read_dir(place.path()).expect(text).count(), 0, "{text} begins empty");
        let root = fs::metadata(place.path()).expect("the root");
        assert_eq!((root.uid(), root.gid(), root.mode() & 0o7777), (1234, 2345, 0o755), "{text}");
        let filled = place.fill(&data).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!((filled.files, filled.directories, filled.symlinks), (61, 4, 1), "{text}");
        assert!(listing(place.path()) == expected, "{text}");
        let record = place.record();
        assert_eq!((record.fs.as_str(), record.made_here, record.below.len()), (fs_name, true, below), "{text}");
        assert!(record.data.is_some());
        for _ in 0..2 {
            make_cold(&mut place).unwrap_or_else(|error| panic!("{text}: {error}"));
            // Packed, the repetitive data is small.
            let read = reading(&place);
            assert!(read >= 4 << 10, "{text} was not cold: {read} bytes read");
            assert!(listing(place.path()) == expected, "{text}");
        }
        let is_read_only = place.notes().contains(&Note::ReadOnly);
        assert_eq!(is_read_only, text.contains("squashfs") && !text.contains("overlay") || text.contains("erofs"));
        assert_eq!(fs::write(place.path().join("new"), "x").is_err(), is_read_only, "{text}");
        drop(place);
        fs::rename(scratch.path().join("from"), scratch.path().with_extension("data")).expect("out of the way");
        nothing_remains(scratch.path());
        fs::rename(scratch.path().with_extension("data"), scratch.path().join("from")).expect("back");
    }
}

#[test]
fn layers_share_directories_and_divide_files() {
    let (lab, scratch) = lab();
    let data = original(scratch.path());
    let mut place = make(&lab, "overlay:lower=ext4:size=64M,layers=3");
    place.fill(&data).expect("filled");
    let below = place.record().below.remove(0).path;
    let count = |layer: &str, kind: &str| {
        let output = Command::new("find").arg(below.join(layer)).args(["-mindepth", "1", "-type", kind]).output();
        output.expect("find runs").stdout.iter().filter(|byte| **byte == b'\n').count()
    };
    let files = ["lower-1", "lower-2", "lower-3"].map(|layer| count(layer, "f"));
    assert_eq!(files.iter().sum::<usize>(), 61);
    assert!(files.iter().all(|files| (19..=22).contains(files)), "{files:?}");
    for layer in ["lower-1", "lower-2", "lower-3"] {
        assert_eq!(count(layer, "d"), 4, "{layer}");
    }
    assert_eq!((count("upper", "f"), count("upper", "d")), (0, 0));
    fs::remove_file(place.path().join("a/f1")).expect("removed");
    assert_eq!(count("upper", "c"), 1, "a whiteout");
    let (first, second) = (place.path().join("a/f3"), place.path().join("c/again"));
    assert_eq!(fs::metadata(first).expect("there").ino(), fs::metadata(second).expect("there").ino());
}

/// More layers than fit into one option.
#[test]
fn an_overlay_may_have_many_layers() {
    let _alone = alone();
    let (lab, scratch) = lab();
    let data = original(scratch.path());
    for layers in [12, 40] {
        let mut place = make(&lab, &format!("overlay:lower=ext4:size=64M,layers={layers}"));
        place.fill(&data).expect("filled");
        let below = place.record().below.remove(0).path;
        let with_files = |number: &u32| {
            let layer = below.join(format!("lower-{number}"));
            let found = Command::new("find").arg(layer).args(["-type", "f"]).output().expect("find runs");
            !found.stdout.is_empty()
        };
        assert_eq!((1..=layers).filter(with_files).count(), layers as usize);
        let shown = Command::new("find").arg(place.path()).args(["-type", "f"]).output().expect("find runs").stdout;
        assert_eq!(shown.iter().filter(|byte| **byte == b'\n').count(), 61, "{layers} layers show all files");
        // The highest layer wins.
        let [lowest, highest] = [1, layers].map(|number| below.join(format!("lower-{number}/same")));
        inodyne_lab::make_cold(&mut place).expect("mounted again");
        fs::write(&lowest, "lowest").expect("written");
        fs::write(&highest, "highest").expect("written");
        inodyne_lab::make_cold(&mut place).expect("mounted again");
        assert_eq!(fs::read_to_string(place.path().join("same")).expect("read"), "highest");
    }
}

#[test]
fn a_directory_that_was_there_is_shown_and_never_written_to() {
    let (lab, scratch) = lab();
    let directory = scratch.path().join("with,comma:and\\more");
    fs::create_dir_all(directory.join("sub")).expect("made");
    fs::write(directory.join("sub/file"), "mine").expect("written");
    let stamp = |name: &str| {
        let metadata = fs::metadata(directory.join(name)).expect("there");
        (metadata.atime_nsec(), metadata.mtime_nsec(), metadata.ctime_nsec())
    };
    let names = ["", "sub", "sub/file"];
    let before = names.map(stamp);
    let mut over = make(&lab, &format!("overlay:lower=[{}],upper=ext4:size=16M", directory.display()));
    let mut bound = make(&lab, &format!("bind:[{}],mount=ro,noatime", directory.display()));
    for place in [&mut over, &mut bound] {
        assert_eq!(fs::read_to_string(place.path().join("sub/file")).expect("read"), "mine");
        assert_eq!(fs::read_dir(place.path().join("sub")).expect("read").count(), 1);
        let error = place.fill(&"tree:dirs=1".parse().expect("data")).expect_err("never filled").to_string();
        assert!(error.contains("never filled") && error.contains("with,comma"), "{error}");
        place.remount().expect("mounted again");
    }
    assert!(fs::write(bound.path().join("sub/file"), "not mine").is_err());
    fs::write(over.path().join("sub/file"), "not mine").expect("written above");
    fs::write(over.path().join("sub/new"), "").expect("written above");
    assert_eq!(names.map(stamp), before);
    assert_eq!(fs::read_to_string(directory.join("sub/file")).expect("read"), "mine");
    assert!(over.record().made_here && !bound.record().made_here);
    assert_eq!(bound.record().below[0].path, directory);
    let options = bound.record().mount_options;
    assert!(options.contains("ro,") && options.contains("noatime"), "{options}");
    assert_eq!(bound.notes(), [Note::NotWritable { uid: SOMEBODY.uid }, Note::ReadOnly]);
}

#[test]
fn mistakes_in_stacks_get_one_clear_line() {
    let (lab, _scratch) = lab();
    for (text, says) in [
        ("overlay:lower=/no/such", "/no/such does not exist"),
        ("overlay:lower=ext4:size=16M,mount=nonsense", "nonsense"),
        ("overlay:lower=ext4:size=1K", "it needs at least size=64K"),
        ("bind:tmpfs,mount=size=1M", "'size=1M' belongs to"),
        ("bind:tmpfs,mount=data=journal", "'data=journal' belongs to the file system"),
        ("squashfs:mkfs=-nonsense", "mksquashfs failed: "),
        ("erofs:mkfs=-Znonsense", "mkfs.erofs failed: "),
        ("squashfs:mount=nonsense", "nonsense"),
    ] {
        let error = refused(&lab, text);
        assert!(error.contains(says), "{text}: {error}");
    }
    let made = make(&lab, "ext4:size=16M");
    let error = refused(&lab, &format!("bind:{}", made.path().display()));
    assert!(error.contains("set INODYNE_MOUNT"), "{error}");
}

#[test]
fn data_too_large_for_a_layer_is_said_so() {
    let (lab, _scratch) = lab();
    let tree: DataSpec = "tree:dirs=100,files=100,bytes=100000".parse().expect("data");
    let mut place = make(&lab, "small=overlay:lower=ext4:size=16M");
    let error = place.fill(&tree).expect_err("too much").to_string();
    assert!(error.starts_with("place small (size 16M) is too small for its data ("), "{error}");
}

#[test]
fn data_too_large_to_be_packed_is_said_so() {
    let (lab, _scratch) = lab();
    let disk = make(&lab, "ext4:size=32M");
    let small = lab.with_scratch(disk.path());
    let tree: DataSpec = "tree:dirs=100,files=100,bytes=100000".parse().expect("data");
    for kind in ["squashfs", "erofs"] {
        let error = make(&small, kind).fill(&tree).expect_err("too much").to_string();
        assert!(
            error.starts_with("data (tree:dirs=100,") && error.contains(&format!("M that {kind} is packed")),
            "{error}"
        );
    }
}

#[test]
fn a_volatile_overlay_is_filled_and_made_cold_like_any_other() {
    let _alone = alone();
    let (lab, scratch) = lab();
    let data = original(scratch.path());
    let mut place = make(&lab, "overlay:lower=[ext4:size=64M],mount=volatile");
    place.fill(&data).expect("filled");
    assert!(place.record().mount_options.contains("volatile"), "{:?}", place.record());
    let before = listing(place.path());
    fs::write(place.path().join("a/f1"), "changed").expect("written");
    make_cold(&mut place).expect("made cold");
    assert_ne!(listing(place.path()), before, "what was written is still there");
}

/// A volatile overlay itself would say at once that everything is flushed.
#[test]
fn what_is_written_to_an_overlay_is_flushed_where_it_goes() {
    const BYTES: u64 = 8 << 20;
    let (lab, _scratch) = lab();
    for text in [
        "overlay:lower=[ext4:size=64M],mount=volatile",
        "bind:[overlay:lower=[ext4:size=64M],mount=volatile]",
        "overlay:lower=tmpfs,upper=ext4:size=64M",
    ] {
        let place = make(&lab, text);
        let flusher = place.flusher().expect("it is on a device");
        let before = place.device_stats().expect("a device");
        fs::write(place.path().join("file"), vec![7; BYTES as usize]).expect("written");
        flusher.flush().expect("flushed");
        let written = place.device_stats().expect("a device").since(before).write_bytes;
        assert!(written >= BYTES, "{text}: {written} bytes");
    }
    let place = make(&lab, "overlay:lower=[ext4:size=64M],upper=tmpfs");
    assert!(matches!(place.flusher(), Err(LabError::NeverDurable(_))));
}
