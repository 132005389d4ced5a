//! The page cache against what util-linux's fincore counts of it, and against what programs ask for.

mod support;

use std::path::Path;

use inodyne_model::page_cache::{Asked, Brought, Contents, FilePages, PageCache, Used};
use inodyne_model::trace::Trace;
use support::{Cgroup, fixture, machine, nothing_lost, scratch, sh};

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4_096;

/// One file of 24 MiB, of which nothing is in memory; 128 KiB are read ahead.
const COLD: &[&str] = &[
    "--at",
    "ext4:size=256M,set=/sys/block/LOOP/queue/read_ahead_kb=128",
    "--data",
    "tree:dirs=1,files=1,bytes=25165824",
    "--cache",
    "cold",
];

/// What was seen of the page cache in a run of `script`, which leaves nothing out.
fn seen(options: &[&str], script: &str) -> (Trace, PageCache) {
    let trace = support::trace_of(options, sh(script));
    nothing_lost(&trace);
    let cache = trace.page_cache.clone().expect("the page cache is looked at");
    assert_eq!(cache.not_followed_bytes, 0);
    (trace, cache)
}

fn asked(cache: &PageCache) -> &Asked {
    cache.asked.as_ref().expect("a kernel that shows what is asked for")
}

/// What was made of a file's pages.
fn file(cache: &PageCache, name: &str) -> Option<Used> {
    asked(cache).files.iter().find(|file| file.name == name).map(|FilePages { used, .. }| *used)
}

/// What fincore counted of a file at the end of the script, in bytes.
fn counted(file: &Path) -> u64 {
    let text = std::fs::read_to_string(file).expect("fincore wrote it");
    text.trim().parse().expect("a number")
}

/// Shell words that have fincore count the bytes of `name` in memory.
fn count(name: &str, into: &Path) -> String {
    format!("fincore --noheadings --bytes --output RES {name} > {}", into.display())
}

#[test]
fn what_is_brought_is_what_lies_in_memory_and_what_is_used_is_what_was_read() {
    let (_machine, scratch) = (machine(), scratch());
    let result = scratch.path().join("bytes");
    // From the middle on, since other programs look at the beginning.
    let script = format!("dd if=d0/f0 of=/dev/null bs=4k skip=1000 count=256 status=none; {}", count("d0/f0", &result));
    let (_, cache) = seen(COLD, &script);
    let of_file = file(&cache, "f0").expect("it was read");
    assert_eq!((of_file.used_bytes, of_file.beside_bytes), (MIB, 0));
    assert_eq!(of_file.distinct_bytes, counted(&result), "fincore");
    assert!(of_file.unused_bytes() > 0 && of_file.unused_bytes() <= MIB, "read ahead: {of_file:?}");
    let by_dd = |row: &&Brought| row.comm == "dd" && row.syscall == "read" && row.contents == Contents::Files;
    let on_place: Vec<&Brought> =
        cache.brought.iter().filter(by_dd).filter(|row| row.name.starts_with("loop")).collect();
    assert_eq!(on_place.iter().map(|row| row.bytes).collect::<Vec<_>>(), [of_file.distinct_bytes]);
}

#[test]
fn what_is_read_again_is_asked_for_again_and_not_brought() {
    let _machine = machine();
    let (_, cache) = seen(COLD, "cat d0/f0 d0/f0 d0/f0 > /dev/null");
    let of_file = file(&cache, "f0").expect("it was read");
    assert_eq!((of_file.distinct_bytes, of_file.used_bytes), (24 * MIB, 24 * MIB));
    // The rest is from starting the programs.
    let read = asked(&cache).read_bytes;
    assert!((72 * MIB..73 * MIB).contains(&read), "{read}");
    assert_eq!(cache.again_bytes(), 0);
}

#[test]
fn a_large_call_asks_for_all_of_it_once() {
    let _machine = machine();
    // ext2 has single pages in the cache: the kernel shows few of those that a call finds in one go, where it waits for the last of them.
    for place in [COLD[1], "ext2:size=256M,set=/sys/block/LOOP/queue/read_ahead_kb=128"] {
        let options = [&["--at", place], &COLD[2..]].concat();
        for bytes in ["128k", "24M"] {
            let (_, cache) = seen(&options, &format!("dd if=d0/f0 of=/dev/null bs={bytes} status=none"));
            let of_file = file(&cache, "f0").expect("it was read");
            assert_eq!((of_file.distinct_bytes, of_file.used_bytes), (24 * MIB, 24 * MIB), "{place} {bytes}");
            assert!((24 * MIB..25 * MIB).contains(&asked(&cache).read_bytes), "{:?}", asked(&cache));
        }
    }
}

#[test]
fn pages_that_are_made_to_be_written_are_not_brought() {
    let _machine = machine();
    let script = "dd if=/dev/zero of=new bs=1M count=8 status=none; cp d0/f0 copy; cat new > appended";
    let (_, cache) = seen(COLD, script);
    assert_eq!(file(&cache, "f0").map(|used| used.distinct_bytes), Some(24 * MIB), "{cache:?}");
    for made in ["new", "copy", "appended"] {
        assert_eq!(file(&cache, made), None);
    }
    // `io_submit` may also read.
    let by_aio = "fio --name=a --filename=new --ioengine=libaio --rw=write --bs=64k --size=4M --fallocate=none --output=/dev/null";
    let (_, cache) = seen(COLD, by_aio);
    let brought = cache.brought.iter().filter(|row| row.syscall == "io_submit");
    assert_eq!(brought.map(|row| row.bytes).sum::<u64>(), 0, "{cache:?}");
}

#[test]
fn page_faults_ask_for_single_pages_and_the_rest_is_read_around_them() {
    let (_machine, scratch) = (machine(), scratch());
    let program = fixture("findings/readahead-wasted", scratch.path());
    let result = scratch.path().join("bytes");
    const TOUCHES: u64 = 20;
    let script = format!("{} d0/f0 {TOUCHES}; {}", program.display(), count("d0/f0", &result));
    let (_, cache) = seen(COLD, &script);
    let of_file = file(&cache, "f0").expect("it was read");
    assert_eq!(of_file.distinct_bytes, counted(&result), "fincore");
    // Each touch is a fault, or found its page mapped beside another.
    assert!(of_file.used_bytes > 0 && of_file.used_bytes <= TOUCHES * PAGE, "{of_file:?}");
    assert!(of_file.used_bytes + of_file.beside_bytes >= TOUCHES / 2 * PAGE, "{of_file:?}");
    assert!(of_file.unused_bytes() > of_file.distinct_bytes / 4, "{of_file:?}");
    assert!(asked(&cache).faults >= of_file.used_bytes / PAGE, "{:?}", asked(&cache));
}

#[test]
fn what_memory_is_too_small_for_is_taken_from_it_and_brought_again() {
    let (_machine, cgroup) = (machine(), Cgroup::holding("16M"));
    let script = format!("echo $$ > {}/cgroup.procs; cat d0/f0 > /dev/null; cat d0/f0 > /dev/null", cgroup.0.display());
    let (_, cache) = seen(COLD, &script);
    assert!(cache.evicted_own_bytes >= 24 * MIB - 16 * MIB, "{cache:?}");
    assert!(cache.evicted_bytes >= cache.evicted_own_bytes);
    assert!(cache.again_bytes() >= 24 * MIB - 16 * MIB, "{cache:?}");
    assert_eq!(file(&cache, "f0").map(|used| (used.distinct_bytes, used.used_bytes)), Some((24 * MIB, 24 * MIB)));
}

#[test]
fn many_small_files_are_followed_each() {
    let _machine = machine();
    let options = ["--at", "ext4:size=256M", "--data", "tree:dirs=20,fan=20,files=100,bytes=5000", "--cache", "cold"];
    let (_, cache) = seen(&options, "find . -type f -exec cat {} + > /dev/null");
    let used = asked(&cache).of_brought;
    // Two pages each.
    let of_files = 2_000 * 2 * PAGE;
    assert!(used.used_bytes >= of_files && used.used_bytes < of_files + 2 * MIB, "{used:?}");
    let metadata = |row: &&Brought| row.contents == Contents::Metadata && row.name.starts_with("loop");
    let metadata: u64 = cache.brought.iter().filter(metadata).map(|row| row.bytes).sum();
    // Inodes of 256 bytes, and a block of each directory.
    assert!(metadata >= 2_000 * 256 + 20 * PAGE, "{:?}", cache.brought);
}
