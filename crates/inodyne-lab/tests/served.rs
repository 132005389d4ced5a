//! A place behind a FUSE server of ours: it is the place behind it, and goes with it.

mod common;

use std::{
    ffi::CString,
    fs::{self, File, Permissions},
    io::{Read, Seek, SeekFrom, Write},
    os::unix::{
        ffi::OsStrExt,
        fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink},
        process::CommandExt,
    },
    path::Path,
    process::Command,
};

use common::{SOMEBODY, alone, lab, make, nothing_remains};
use inodyne_lab::make_cold;

#[test]
fn it_shows_what_is_behind_it() {
    let _alone = alone();
    let (lab, scratch) = lab();
    let mut place = make(&lab, "server=fuse:ext4:size=64M");
    let record = place.record();
    assert_eq!((record.fs.as_str(), record.label.as_str(), record.made_here), ("fuse", "server", true));
    assert_eq!(record.below[0].fs, "ext4");
    assert!(record.mount_options.contains("allow_other"), "{}", record.mount_options);
    place.fill(&"tree:dirs=20,files=30,bytes=5000".parse().expect("data")).expect("filled");
    let listing = |root: &Path| {
        let program = "find . -printf '%p %y %i %m %u %g %n %s %l %T@\\n' | sort; find . -type f | sort | xargs md5sum";
        Command::new("sh").arg("-c").arg(program).current_dir(root).output().expect("find runs").stdout
    };
    let behind = place.record().below[0].path.clone();
    let (front, back) = (listing(place.path()), listing(&behind));
    // But for the root, whose number in FUSE is always 1.
    let but_for_root =
        |text: Vec<u8>| String::from_utf8(text).expect("text").lines().skip(1).collect::<Vec<_>>().join("\n");
    assert_eq!(but_for_root(front.clone()), but_for_root(back));
    make_cold(&mut place).expect("made cold");
    let before = place.device_stats().expect("a device");
    assert_eq!(listing(place.path()), front);
    assert!(place.device_stats().expect("a device").since(before).read_bytes > 600 * 5000);
    drop(place);
    nothing_remains(scratch.path());
}

#[test]
fn everything_that_can_be_done_to_files_is_done() {
    let (lab, scratch) = lab();
    let place = make(&lab, "fuse:tmpfs:size=64M");
    let root = place.path().to_owned();
    let at = |name: &str| root.join(name);
    fs::create_dir(at("d")).expect("mkdir");
    fs::write(at("d/a"), "hello").expect("create");
    fs::set_permissions(at("d/a"), Permissions::from_mode(0o4751)).expect("chmod");
    assert_eq!(fs::metadata(at("d/a")).expect("stat").mode() & 0o7777, 0o4751);
    fs::hard_link(at("d/a"), at("b")).expect("link");
    assert_eq!(fs::metadata(at("b")).expect("stat").nlink(), 2);
    assert_eq!(fs::metadata(at("b")).expect("stat").ino(), fs::metadata(at("d/a")).expect("stat").ino());
    symlink("../elsewhere", at("d/link")).expect("symlink");
    assert_eq!(fs::read_link(at("d/link")).expect("readlink"), Path::new("../elsewhere"));
    fs::rename(at("b"), at("d/c")).expect("rename");
    fs::remove_file(at("d/a")).expect("unlink");
    assert_eq!(fs::read_to_string(at("d/c")).expect("read"), "hello");
    assert_eq!(fs::metadata(at("d/c")).expect("stat").nlink(), 1);
    let fifo = CString::new(at("fifo").as_os_str().as_bytes()).expect("a name");
    // SAFETY: the name is a C string.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    assert!(fs::metadata(at("fifo")).expect("stat").file_type().is_fifo());
    let mut appended = File::options().append(true).open(at("d/c")).expect("open");
    appended.write_all(b" world").expect("append");
    appended.set_len(8).expect("truncate");
    appended.set_modified(std::time::UNIX_EPOCH - std::time::Duration::from_millis(1500)).expect("utimens");
    appended.sync_all().expect("fsync");
    assert_eq!(fs::read_to_string(at("d/c")).expect("read"), "hello wo");
    let stat = fs::metadata(at("d/c")).expect("stat");
    assert_eq!((stat.mtime(), stat.mtime_nsec()), (-2, 500_000_000));
    let mut open = File::options().read(true).write(true).open(at("d/c")).expect("open");
    fs::remove_file(at("d/c")).expect("unlink");
    open.write_all_at(b"H", 0).expect("write to what has no name");
    let mut text = String::new();
    open.seek(SeekFrom::Start(0)).expect("seek");
    open.read_to_string(&mut text).expect("read");
    assert_eq!(text, "Hello wo");
    assert_eq!(fs::remove_dir(at("d")).expect_err("not empty").raw_os_error(), Some(libc::ENOTEMPTY));
    fs::remove_file(at("d/link")).expect("unlink");
    fs::remove_dir(at("d")).expect("rmdir");
    let flags = libc::O_EXCL;
    fs::write(at("there"), "").expect("create");
    let again = File::options().write(true).create(true).custom_flags(flags).open(at("there")).expect_err("exists");
    assert_eq!(again.raw_os_error(), Some(libc::EEXIST));
    drop((open, appended, place));
    nothing_remains(scratch.path());
}

/// Whoever asks is who owns, and who is asked whether that is permitted; the server's own power is nobody's.
#[test]
fn users_stay_who_they_are() {
    let (lab, _scratch) = lab();
    let place = make(&lab, "fuse:ext4:size=64M");
    let as_user = |uid: u32, script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).current_dir(place.path()).uid(uid).gid(SOMEBODY.gid);
        shell.output().expect("sh runs").status.success()
    };
    assert!(as_user(SOMEBODY.uid, "umask 027; echo x > file; mkdir dir; ln -s file link; mkfifo fifo"));
    for (name, mode) in [("file", 0o640), ("dir", 0o750), ("fifo", 0o640), ("link", 0o777)] {
        let stat = fs::symlink_metadata(place.path().join(name)).expect("stat");
        assert_eq!((stat.uid(), stat.gid(), stat.mode() & 0o7777), (SOMEBODY.uid, SOMEBODY.gid, mode), "{name}");
    }
    fs::set_permissions(place.path().join("dir"), Permissions::from_mode(0o700)).expect("chmod");
    let other = SOMEBODY.uid + 1;
    assert!(as_user(other, "cat file"), "the group may read");
    assert!(!as_user(other, "echo y >> file") && !as_user(other, "ls dir") && !as_user(other, "rm -f file"));
    assert!(!as_user(other, "echo z > new"));
}

#[test]
fn an_existing_directory_is_shown_without_what_is_mounted_below() {
    let (lab, scratch) = lab();
    let kept = scratch.path().join("kept");
    fs::create_dir_all(kept.join("sub")).expect("made");
    fs::set_permissions(&kept, Permissions::from_mode(0o755)).expect("ours");
    fs::write(kept.join("sub/file"), "below").expect("written");
    let mut place = make(&lab, &format!("fuse:{}", kept.display()));
    let hidden = make(&lab, "tmpfs");
    assert!(
        Command::new("mount").arg("--bind").arg(hidden.path()).arg(kept.join("sub")).status().expect("runs").success()
    );
    assert!(!place.record().made_here);
    assert_eq!(fs::read_to_string(place.path().join("sub/file")).expect("read"), "below");
    let error = place.fill(&"tree:dirs=1".parse().expect("data")).expect_err("never filled").to_string();
    assert!(error.contains("never filled"), "{error}");
    assert_eq!(fs::read_to_string(place.path().join("sub/file")).expect("still served"), "below");
    assert!(Command::new("umount").arg(kept.join("sub")).status().expect("runs").success());
    drop((place, hidden));
    fs::remove_dir_all(kept).expect("ours");
    nothing_remains(scratch.path());
}
