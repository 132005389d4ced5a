//! Data: trees, copies and archives are in the place what they were outside, and never outside the place.

mod common;

use std::{
    fs,
    io::Write,
    os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink},
    path::Path,
    process::Command,
    time::{Duration, SystemTime},
};

use common::{lab, make, scratch};
use inodyne_lab::{DataSpec, Filled, LabError, MountedPlace};

fn data(path: impl AsRef<Path>) -> DataSpec {
    path.as_ref().display().to_string().parse().expect("data")
}

/// A directory with a bit of everything.
fn original(root: &Path) {
    fs::create_dir_all(root.join("sub/deeper")).expect("made");
    fs::write(root.join("sub/file"), "contents").expect("written");
    fs::write(root.join("sub/odd\nnäme"), [0, 159]).expect("written");
    fs::hard_link(root.join("sub/file"), root.join("sub/deeper/again")).expect("linked");
    symlink("/etc/passwd", root.join("out")).expect("linked");
    symlink("sub/file", root.join("in")).expect("linked");
    fs::set_permissions(root.join("sub/file"), fs::Permissions::from_mode(0o4751)).expect("set");
    fs::set_permissions(root.join("sub/deeper"), fs::Permissions::from_mode(0o500)).expect("set");
    for name in ["sub/file", "sub/deeper", "sub"] {
        let file = fs::File::open(root.join(name)).expect("opened");
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_007)).expect("set");
    }
}

fn is_the_same(place: &MountedPlace, filled: &Filled) {
    let root = place.path();
    assert_eq!(fs::read_to_string(root.join("sub/file")).expect("read"), "contents");
    assert_eq!(fs::read(root.join("sub/odd\nnäme")).expect("read"), [0, 159]);
    assert_eq!(fs::read_link(root.join("out")).expect("a link"), Path::new("/etc/passwd"));
    assert_eq!(fs::read_link(root.join("in")).expect("a link"), Path::new("sub/file"));
    let stat = |name: &str| fs::symlink_metadata(root.join(name)).expect(name);
    assert_eq!((stat("sub/file").ino(), stat("sub/file").nlink()), (stat("sub/deeper/again").ino(), 2));
    assert_eq!(stat("sub/file").mode() & 0o7777, 0o4751);
    assert_eq!(stat("sub/deeper").mode() & 0o7777, 0o500);
    for name in ["sub/file", "sub/deeper", "sub"] {
        assert_eq!(stat(name).mtime(), 1_000_000_007, "{name}");
    }
    for name in ["", "out", "sub", "sub/file", "sub/deeper"] {
        assert_eq!((stat(name).uid(), stat(name).gid()), (1234, 2345), "{name}");
    }
    assert_eq!((filled.files, filled.directories, filled.symlinks), (3, 2, 2));
}

#[test]
fn a_directory_is_copied() {
    let (lab, scratch) = lab();
    let from = scratch.path().join("from");
    original(&from);
    assert!(Command::new("mkfifo").arg(from.join("pipe")).status().expect("mkfifo runs").success());
    let mut place = make(&lab, "ext4:size=64M");
    let filled = place.fill(&data(&from)).expect("filled");
    is_the_same(&place, &filled);
    assert_eq!((filled.bytes, filled.left_out), (10, vec!["pipe".into()]));
}

#[test]
fn archives_are_unpacked_whatever_compresses_them() {
    let (lab, scratch) = lab();
    let from = scratch.path().join("from");
    original(&from);
    for (name, flag) in [("a.tar", "--posix"), ("a.tar.gz", "-z"), ("a.tar.xz", "-J"), ("a.tar.zst", "")] {
        let archive = scratch.path().join(name);
        if flag.is_empty() {
            let plain = fs::read(scratch.path().join("a.tar")).expect("read");
            fs::write(&archive, zstd::encode_all(plain.as_slice(), 3).expect("compressed")).expect("written");
        } else {
            let tar = Command::new("tar").arg(flag).arg("-cf").arg(&archive).arg("-C").arg(&from).arg(".").status();
            assert!(tar.expect("tar runs").success(), "{name}");
        }
        let mut place = make(&lab, "xfs:size=300M");
        let filled = place.fill(&data(&archive)).unwrap_or_else(|error| panic!("{name}: {error}"));
        is_the_same(&place, &filled);
    }
}

/// The time for each entry depends on its own name, not on its path; and no path is too long.
#[test]
fn deep_archives_are_unpacked_and_empty_ones_are_no_mistake() {
    let (lab, scratch) = lab();
    let from = scratch.path().join("from");
    fs::create_dir(&from).expect("made");
    let make_them =
        "cd \"$1\" && for i in $(seq 1200); do mkdir d && cd -P d || exit 1; done; echo deep > file; chmod 500 .";
    let made = Command::new("sh").args(["-c", make_them, "sh"]).arg(&from).status();
    assert!(made.expect("sh runs").success());
    let archive = scratch.path().join("deep.tar");
    let tar = Command::new("tar").arg("-cf").arg(&archive).arg("-C").arg(&from).arg(".").status();
    assert!(tar.expect("tar runs").success());
    let mut place = make(&lab, "ext4:size=64M");
    let filled = place.fill(&data(&archive)).expect("filled");
    assert_eq!((filled.directories, filled.files, filled.bytes), (1200, 1, 5));
    let deepest = place.path().join(["d"; 1200].join("/"));
    assert_eq!(fs::read_to_string(deepest.join("file")).expect("there"), "deep\n");
    assert_eq!(fs::metadata(&deepest).expect("there").permissions().mode() & 0o7777, 0o500);

    let empty = scratch.path().join("empty.tar");
    let tar = Command::new("tar").arg("-cf").arg(&empty).args(["--files-from", "/dev/null"]).status();
    assert!(tar.expect("tar runs").success());
    let filled = make(&lab, "ext4:size=64M").fill(&data(&empty)).expect("filled with nothing");
    assert_eq!((filled.files, filled.directories, filled.bytes), (0, 0, 0));
}

/// A file with holes has two forms in archives. Neither may come out as another file.
#[test]
fn sparse_files_in_archives_are_whole_or_refused() {
    let (lab, scratch) = lab();
    let from = scratch.path().join("from");
    fs::create_dir(&from).expect("made");
    let file = fs::File::create(from.join("holes")).expect("made");
    for at in [0, 1 << 20, 5 << 20] {
        file.write_all_at(b"some", at).expect("written");
    }
    file.set_len(8 << 20).expect("set");
    let archive = scratch.path().join("a.tar");
    let filled = |form: &str| {
        let mut tar = Command::new("tar");
        tar.args([form, "--sparse", "-cf"]).arg(&archive).arg("-C").arg(&from).arg(".");
        assert!(tar.status().expect("tar runs").success());
        assert!(fs::metadata(&archive).expect("made").len() < 1 << 20, "it has no holes");
        let mut place = make(&lab, "ext4:size=64M");
        let result = place.fill(&data(&archive));
        result.map(|_| fs::read(place.path().join("holes")).expect("read"))
    };
    assert!(filled("--format=gnu").expect("filled") == fs::read(from.join("holes")).expect("read"));
    let error = filled("--format=posix").expect_err("another file").to_string();
    assert!(error.contains("holes is sparse") && error.contains("--format=gnu"), "{error}");
}

/// A tar archive with one entry whose name nobody checked.
fn hostile(path: &Path, entries: &[(&str, tar::EntryType, &str)]) {
    let mut builder = tar::Builder::new(fs::File::create(path).expect("made"));
    for (name, kind, to) in entries {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().expect("gnu").name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        header.set_size(0);
        if !to.is_empty() {
            header.set_link_name_literal(to).expect("fits");
        }
        header.set_cksum();
        builder.append(&header, &[][..]).expect("appended");
    }
    builder.into_inner().and_then(|mut file| file.flush()).expect("finished");
}

#[test]
fn archives_cannot_leave_the_place() {
    use tar::EntryType::{Directory, Link, Regular, Symlink};
    let (lab, scratch) = lab();
    let outside = scratch.path().join("outside");
    fs::create_dir(&outside).expect("made");
    let outside_text = outside.display().to_string();
    let archive = scratch.path().join("hostile.tar");
    let cases: [&[(&str, tar::EntryType, &str)]; 5] = [
        &[("../escaped", Regular, "")],
        &[("../escaped/", Directory, "")],
        &[("link", Symlink, &outside_text), ("link/escaped", Regular, "")],
        &[("up", Symlink, "../.."), ("up/escaped", Regular, "")],
        &[("hard", Link, "/etc/passwd")],
    ];
    for entries in cases {
        hostile(&archive, entries);
        let mut place = make(&lab, "tmpfs:size=1M");
        let error = place.fill(&data(&archive)).expect_err("an escape");
        assert!(matches!(error, LabError::Archive { .. }), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
        let hub = place.path().parent().expect("the hub");
        assert!(!hub.join("escaped").exists() && !hub.parent().expect("above").join("escaped").exists());
        assert_eq!(fs::read_dir(&outside).expect("read").count(), 0);
    }
    // Not through a link inside the place either: it may lead elsewhere by then.
    hostile(&archive, &[("d", Directory, ""), ("link", Symlink, "d"), ("link/f", Regular, "")]);
    let error = make(&lab, "tmpfs:size=1M").fill(&data(&archive)).expect_err("a link").to_string();
    assert!(error.contains("its entry link/f would leave the place"), "{error}");
    // A second name of the same name is none.
    hostile(&archive, &[("f", Regular, ""), ("./f", Link, "f")]);
    let mut place = make(&lab, "tmpfs:size=1M");
    assert_eq!(place.fill(&data(&archive)).expect("filled").files, 1);
    hostile(&archive, &[("f", Link, "f")]);
    let error = make(&lab, "tmpfs:size=1M").fill(&data(&archive)).expect_err("it is not there").to_string();
    assert!(error.contains("its entry f: No such file"), "{error}");
    // An absolute name is taken below the place, as tar itself does.
    hostile(&archive, &[("/etc/inside", Regular, "")]);
    let mut place = make(&lab, "tmpfs:size=1M");
    place.fill(&data(&archive)).expect("filled");
    assert!(place.path().join("etc/inside").exists());
}

#[test]
fn what_is_no_data_is_said_so() {
    let (lab, scratch) = lab();
    let text = scratch.path().join("text");
    fs::write(&text, "no archive").expect("written");
    let cut = scratch.path().join("cut.tar.gz");
    fs::write(&cut, [0x1f, 0x8b, 8, 0, 0]).expect("written");
    let pipe = scratch.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    // As from `<(zcat ...)`.
    let mut writer = fs::File::options().read(true).write(true).open(&pipe).expect("opened");
    writer.write_all(&[0; 1024]).expect("written");
    let mut place = make(&lab, "tmpfs:size=1M");
    for (from, says) in [
        (pipe.as_path(), "pipe: is a pipe: give a file"),
        (text.as_path(), "is not a tar archive (tar, tar.gz, tar.zst and tar.xz are read)"),
        (cut.as_path(), "cut.tar.gz"),
        (Path::new("/no/such"), "'/no/such': does not exist"),
        (Path::new("/dev/null"), "is not a tar archive"),
    ] {
        let error = place.fill(&data(from)).expect_err("no data").to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_place_too_small_says_how_to_give_it_more() {
    let (lab, scratch) = lab();
    let from = scratch.path().join("from");
    fs::create_dir(&from).expect("made");
    fs::write(from.join("large"), vec![1; 24 << 20]).expect("written");
    let archive = scratch.path().join("large.tar");
    let status = Command::new("tar").arg("-cf").arg(&archive).arg("-C").arg(&from).arg("large").status();
    assert!(status.expect("tar runs").success());
    for text in ["small=ext4:size=16M", "small=tmpfs:size=16M"] {
        let tree = "tree:dirs=100,files=100,bytes=100000".parse().expect("data");
        for data in [tree, data(&from), data(&archive)] {
            let mut place = make(&lab, text);
            let error = place.fill(&data).expect_err("too much").to_string();
            assert!(error.starts_with("place small (size 16M) is too small for its data ("), "{error}");
            assert!(error.ends_with("give it more with size="), "{error}");
        }
    }
}

#[test]
fn a_source_is_only_read() {
    let (lab, _other) = lab();
    let scratch = scratch();
    let from = scratch.path().join("from");
    original(&from);
    let list = || {
        // Reading a symbolic link changes its access time, and there is no way to ask for another.
        let [link, other] = ["%p %i %m %T@ %C@\\n", "%p %i %m %T@ %A@ %C@\\n"];
        let arguments = ["-type", "l", "-printf", link, "-o", "-printf", other];
        Command::new("find").arg(&from).args(arguments).output().expect("find runs").stdout
    };
    // The first look changes access times itself.
    list();
    let before = list();
    let mut place = make(&lab, "tmpfs:size=1M");
    place.fill(&data(&from)).expect("filled");
    assert_eq!(String::from_utf8_lossy(&list()), String::from_utf8_lossy(&before));
}

/// A script, and a place for it where its user may read it.
fn script(directory: &Path, text: &str) -> String {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).expect("ours");
    let path = directory.join("make");
    // Written by another process: while this one had it open for writing, so would a child that a test beside it forks, and the
    // kernel starts no file that somebody has open for writing (ETXTBSY).
    let mut write = Command::new("sh");
    write.args(["-c", r#"printf %s "$1" >"$0" && chmod 755 "$0""#]).arg(&path).arg(text);
    assert!(write.status().expect("sh runs").success());
    format!("script:{}", path.display())
}

#[test]
fn a_script_makes_data_as_the_places_owner_and_leaves_nobody_behind() {
    let (lab, _scratch) = lab();
    let outside = scratch();
    let asleep = format!("4713.{}", std::process::id());
    let text =
        format!("#!/bin/sh\nid -u > uid; echo $INODYNE_SEED > seed; mkdir d; setsid sleep {asleep} & echo said\n");
    for place in ["ext4:size=64M", "squashfs", "overlay:lower=ext4:size=64M,layers=2", "fuse:tmpfs"] {
        let mut place = make(&lab, place);
        let filled = place.fill(&data(script(outside.path(), &text) + ",seed=7")).expect("filled");
        assert_eq!((filled.files, filled.directories), (2, 1));
        let read = |name: &str| fs::read_to_string(place.path().join(name)).expect(name);
        assert_eq!((read("uid").trim(), read("seed").trim()), ("1234", "7"));
        assert_eq!(fs::metadata(place.path().join("d")).expect("made").uid(), 1234);
        let found = Command::new("pgrep").args(["-f", &format!("sleep {asleep}")]).output().expect("pgrep runs").stdout;
        assert_eq!(String::from_utf8_lossy(&found), "");
    }
}

#[test]
fn a_script_that_fails_is_quoted_in_one_line() {
    let (lab, _scratch) = lab();
    let outside = scratch();
    let mut place = make(&lab, "ext4:size=64M");
    for (text, says) in [
        ("#!/bin/sh\necho a >&2\necho no luck >&2\nexit 3\n", "exit status: 3: no luck"),
        ("#!/no/such/shell\n", "No such file"),
        ("#!/bin/sh\nhead -c 200M /dev/zero > big || exit 1\n", "No space left"),
    ] {
        let made = place.fill(&data(script(outside.path(), text)));
        let error = made.expect_err(text).to_string();
        assert!(error.contains(says) && error.contains("/make: ") && error.lines().count() == 1, "{error}");
        fs::remove_file(place.path().join("big")).ok();
    }
    let error = place.fill(&data("script:/no/such")).expect_err("not there");
    assert!(
        error.is_usage() && error.to_string() == "script /no/such: No such file or directory (os error 2)",
        "{error}"
    );
}

#[test]
fn the_same_data_has_the_same_digest_in_every_kind_of_place() {
    let (lab, scratch) = lab();
    let from = scratch.path().join("from");
    original(&from);
    let fill = |kind: &str, data: &DataSpec| {
        let mut place = make(&lab, kind);
        place.fill(data).expect("filled");
        place
    };
    let kinds = [
        "ext2:size=64M",
        "ext4:size=64M,mkfs=-O ^filetype",
        "xfs:size=300M",
        "btrfs:size=128M",
        "tmpfs",
        "squashfs",
        "erofs",
        "overlay:lower=ext4:size=64M,layers=3",
        "fuse:ext4:size=64M",
        "bind:tmpfs",
    ];
    let first = fill(kinds[0], &data(&from));
    let digest = first.record().data_digest.expect("a digest");
    for kind in kinds {
        let place = fill(kind, &data(&from));
        assert_eq!(place.record().data_digest.as_deref(), Some(digest.as_str()), "{kind}");
        assert_eq!(place.first_difference(&first).expect("read"), None);
    }
    fs::write(from.join("sub/file"), "content!").expect("changed");
    let other = fill("ext4:size=64M", &data(&from));
    assert_ne!(other.record().data_digest.as_deref(), Some(digest.as_str()));
    assert_eq!(other.first_difference(&first).expect("read").as_deref(), Some(Path::new("sub/deeper/again")));
    fs::remove_dir_all(from).expect("ours");
}
