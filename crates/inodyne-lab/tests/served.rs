//! Places behind servers of ours, of FUSE or of a share: each is the place behind it, and goes with it.

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
    time::{Duration, Instant},
};

use common::{SOMEBODY, alone, lab, make, nothing_remains, servers};
use inodyne_lab::make_cold;

#[test]
fn it_shows_what_is_behind_it() {
    shows_what_is_behind_it("server=fuse:ext4:size=64M");
}

#[test]
fn a_share_shows_what_is_behind_it() {
    shows_what_is_behind_it("server=share:ext4:size=64M");
}

fn shows_what_is_behind_it(spec: &str) {
    let _alone = alone();
    let (lab, scratch) = lab();
    let mut place = make(&lab, spec);
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
    everything_is_done("fuse:tmpfs:size=64M");
}

#[test]
fn everything_that_can_be_done_to_files_is_done_in_a_share() {
    everything_is_done("share:tmpfs:size=64M");
}

fn everything_is_done(spec: &str) {
    let _alone = alone();
    let (lab, scratch) = lab();
    let place = make(&lab, spec);
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

/// Whoever asks is the owner, and the one whose permissions are checked; nobody gets the server's own power.
#[test]
fn users_stay_who_they_are() {
    users_stay("fuse:ext4:size=64M");
}

#[test]
fn users_stay_who_they_are_in_a_share() {
    users_stay("share:ext4:size=64M");
}

fn users_stay(spec: &str) {
    let _alone = alone();
    let (lab, _scratch) = lab();
    let place = make(&lab, spec);
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

/// The kernel remembers that there is no such file, and asks for it to be made; somebody else has made it meanwhile.
#[test]
fn a_file_that_has_come_meanwhile_is_opened_by_whom_it_lets() {
    let (lab, scratch) = lab();
    let place = make(&lab, "fuse:ext4:size=64M,mount=negative_timeout=600");
    let behind = place.record().below[0].path.clone();
    for (name, mode) in [("public", 0o666), ("private", 0o600)] {
        assert!(!place.path().join(name).exists());
        fs::write(behind.join(name), "theirs ").expect("written");
        fs::set_permissions(behind.join(name), Permissions::from_mode(mode)).expect("chmod");
        assert!(!place.path().join(name).exists(), "{name} is looked up again");
    }
    let append = |name: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("echo ours >> {name}")]).current_dir(place.path());
        shell.uid(SOMEBODY.uid).gid(SOMEBODY.gid).output().expect("sh runs").status.success()
    };
    assert!(append("public") && !append("private"));
    let read = |name: &str| fs::read_to_string(behind.join(name)).expect("read");
    assert_eq!((read("public").as_str(), read("private").as_str()), ("theirs ours\n", "theirs "));
    drop(place);
    nothing_remains(scratch.path());
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

/// How much the kernel has asked of a share: its guest reads each request by one `read`, and reads nothing else that way.
fn requests() -> u64 {
    let own = std::process::id() as i32;
    let guest = servers().into_iter().find(|server| server.parent == own && server.name == "inodyne-guest");
    let io = fs::read_to_string(format!("/proc/{}/io", guest.expect("a share's guest").pid)).expect("its I/O");
    let reads = io.lines().find_map(|line| line.strip_prefix("syscr: ")).expect("the count of reads");
    reads.parse().expect("a number")
}

/// The study `find-dtype` rests on this. With types the kernel asks twice per directory, and one of these is for what comes after the last
/// entry, which the guest answers itself: `tests/share.rs` counts how often the host is asked. Without types it asks for each file.
#[test]
fn a_walk_of_a_share_asks_for_directories_and_without_types_for_files_too() {
    const DIRECTORIES: u64 = 60;
    const FILES: u64 = 1800;
    let _alone = alone();
    let asked = |spec: &str| {
        let (lab, scratch) = lab();
        let mut place = make(&lab, spec);
        place.fill(&"tree:dirs=60,files=30,bytes=1".parse().expect("data")).expect("filled");
        make_cold(&mut place).expect("made cold");
        let before = requests();
        let found = Command::new("find").arg(place.path()).output().expect("find runs");
        assert_eq!(found.stdout.iter().filter(|byte| **byte == b'\n').count() as u64, FILES + DIRECTORIES + 1);
        let asked = requests() - before;
        drop(place);
        nothing_remains(scratch.path());
        asked
    };
    let with = asked("share:ext4:size=64M,delay=100us");
    assert!((DIRECTORIES..DIRECTORIES * 2 + 30).contains(&with), "{with} requests");
    let without = asked("share:ext4:size=64M,withhold-types,delay=100us");
    assert!((FILES..FILES + DIRECTORIES * 4 + 30).contains(&without), "{without} requests");
}

/// The delay applies to each request, and there is none while the place is made ready.
#[test]
fn a_slow_host_answers_late_once_the_place_is_ready() {
    let _alone = alone();
    let (lab, scratch) = lab();
    let started = Instant::now();
    let mut place = make(&lab, "share:tmpfs:size=64M,delay=200ms");
    place.fill(&"tree:dirs=20,files=30,bytes=1".parse().expect("data")).expect("filled");
    assert_eq!(place.record().limits.and_then(|limits| limits.delay_ns).map(|delay| delay.0), Some(200_000_000));
    // Each of 600 files has been read by then, through the share.
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    let started = Instant::now();
    assert!(fs::metadata(place.path().join("absent")).is_err());
    assert!(started.elapsed() >= Duration::from_millis(200), "{:?}", started.elapsed());
    drop(place);
    nothing_remains(scratch.path());
}
