//! Slow devices: each request is late, those that run side by side are late together, and nobody waits for ever.

mod common;

use std::{
    fs::{self, File},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use common::{alone, lab, make, nothing_remains, servers};
use inodyne_lab::make_cold;

const BLOCK: usize = 4096;

/// A file of whole blocks, to be read past the page cache.
fn blocks(place: &Path, blocks: usize) -> File {
    let path = place.join("blocks");
    let written = File::create(&path).expect("created");
    (0..blocks).for_each(|block| written.write_all_at(&content(block), (block * BLOCK) as u64).expect("written"));
    written.sync_all().expect("on the device");
    File::options().read(true).custom_flags(libc::O_DIRECT).open(&path).expect("opened")
}

fn content(block: usize) -> Vec<u8> {
    vec![block as u8 ^ 0x5a; BLOCK]
}

/// Reads one block, and insists on what is in it.
fn read(file: &File, block: usize) {
    let mut memory = vec![0; 2 * BLOCK];
    let start = memory.as_ptr().align_offset(BLOCK);
    let buffer = &mut memory[start..start + BLOCK];
    file.read_exact_at(buffer, (block * BLOCK) as u64).expect("a block");
    assert!(buffer == content(block));
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

#[test]
fn each_request_is_late_on_its_own_and_many_at_once_are_late_together() {
    let (lab, scratch) = lab();
    let place = make(&lab, "ext4:size=64M,delay=40ms");
    assert_eq!(place.record().spec.as_deref(), Some("ext4:size=64M,delay=40ms"));
    let file = blocks(place.path(), 32);
    let one_by_one = timed(|| (0..10).for_each(|block| read(&file, block)));
    assert!(one_by_one >= Duration::from_millis(400), "{one_by_one:?}");
    let all_at_once = || {
        thread::scope(|scope| {
            let file = &file;
            for block in 0..32 {
                scope.spawn(move || read(file, block));
            }
        });
    };
    // The machine may stand still for a moment. Each reads from the device anew.
    let at_once = (0..3).map(|_| timed(all_at_once)).min().expect("three times");
    assert!(at_once >= Duration::from_millis(40), "{at_once:?}");
    assert!(at_once < Duration::from_millis(32 * 40 / 2), "one after the other: {at_once:?}");
    drop((file, place));
    nothing_remains(scratch.path());
}

#[test]
fn bytes_and_requests_a_second_are_limited() {
    let (lab, _scratch) = lab();
    let place = make(&lab, "xfs:size=300M,iops=200");
    let file = blocks(place.path(), 100);
    let reads = timed(|| (0..100).for_each(|block| read(&file, block)));
    assert!(reads >= Duration::from_millis(490), "{reads:?}");

    let place = make(&lab, "ext2:size=64M,bandwidth=8M");
    let file = place.path().join("file");
    // Buffered: writeback, done by the kernel's own threads, is held to the limit too.
    let write = timed(|| {
        fs::write(&file, vec![7; 4 << 20]).expect("written");
        File::open(&file).expect("opened").sync_all().expect("on the device");
    });
    assert!(write >= Duration::from_millis(490), "{write:?}");
}

/// Every kind that has a device, and stacks on one; filled and mounted again at full speed, then slow.
#[test]
fn every_kind_with_a_device_can_be_slow_and_is_read_cold() {
    let _alone = alone();
    let (lab, scratch) = lab();
    for text in [
        "ext3:size=64M,delay=20ms",
        "xfs:size=300M,delay=20ms",
        "btrfs:size=128M,delay=20ms",
        "squashfs:delay=20ms",
        "erofs:delay=20ms",
        "overlay:lower=ext4:size=64M,delay=20ms",
        "fuse:ext4:size=64M,delay=20ms",
    ] {
        let mut place = make(&lab, text);
        place.fill(&"tree:dirs=10,files=10,bytes=9000,seed=3".parse().expect("data")).expect("filled");
        make_cold(&mut place).expect("made cold");
        let before = place.device_stats().expect("a device");
        // A directory, its inode and a file's block: each after the one before it.
        let cold = timed(|| assert_eq!(fs::read(place.path().join("d7/f7")).expect("read").len(), 9000));
        let read = place.device_stats().expect("a device").since(before).read_bytes;
        assert!(cold >= Duration::from_millis(40) && read > 9000, "{text}: {cold:?}, {read} bytes");
        drop(place);
        nothing_remains(scratch.path());
    }
}

/// Answers that are late must not keep anybody from ending.
#[test]
fn a_place_with_much_to_write_is_dropped_before_its_device_could_write_it() {
    let (lab, scratch) = lab();
    let place = make(&lab, "ext4:size=64M,bandwidth=64K");
    fs::write(place.path().join("file"), vec![7; 16 << 20]).expect("written");
    // At its own speed this would take four minutes.
    let gone = timed(|| drop(place));
    assert!(gone < Duration::from_secs(60), "{gone:?}");
    nothing_remains(scratch.path());
}

#[test]
fn a_server_that_is_killed_fails_its_device_instead_of_hanging_it() {
    let (lab, scratch) = lab();
    let place = make(&lab, "ext4:size=64M,delay=1ms");
    let file = blocks(place.path(), 8);
    let ours = std::process::id() as i32;
    let server = servers().into_iter().find(|server| server.parent == ours && holds(server.pid, scratch.path()));
    let server = server.expect("its server");
    assert!(Command::new("kill").args(["-9", &server.pid.to_string()]).status().expect("kill runs").success());
    let mut buffer = vec![0; 2 * BLOCK];
    let start = buffer.as_ptr().align_offset(BLOCK);
    assert!(file.read_exact_at(&mut buffer[start..start + BLOCK], 0).is_err());
    drop((file, place));
    nothing_remains(scratch.path());
}

/// Whether a process has a file open that is, or was, in this directory.
fn holds(pid: i32, directory: &Path) -> bool {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.filter_map(|fd| fs::read_link(fd.path()).ok()).any(|path| path.starts_with(directory))
}
