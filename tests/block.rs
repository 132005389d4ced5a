//! Requests to block devices against what the kernel itself counts, and against what a device was made to do.

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use inodyne_model::Nanos;
use inodyne_model::block::{Amount, Asker, BlockIo, BoundBy, Commit, Disk, IoPath, Operation, PathRequests};
use inodyne_model::io_over_time::DiskInterval;
use inodyne_model::load::Load;
use inodyne_model::trace::Trace;
use support::{machine, nothing_lost, run, scratch, sh, traced};

/// A little of everything: many small files, a large one that is synced, cold reads, deletions.
const WORK: &str = "mkdir d; for i in $(seq 200); do echo $i > d/$i; done; \
    dd if=/dev/zero of=big bs=1M count=12 conv=fsync status=none; dd if=/dev/zero of=direct bs=64k count=20 oflag=direct status=none; \
    sync -f .; echo 3 > /proc/sys/vm/drop_caches; cat big d/* > /dev/null; rm -rf d; sync -f .";

/// What /proc/diskstats counts for a device, in its order (Documentation/admin-guide/iostats.rst): reads, reads merged, sectors read, ms
/// reading, the same for writes, in flight, ms busy, ms weighted, the four for discards, flushes, ms flushing.
type Counters = [u64; 17];

fn diskstats(file: &Path) -> BTreeMap<String, Counters> {
    let text = std::fs::read_to_string(file).expect("the command wrote it");
    let line = |line: &str| {
        let mut words = line.split_whitespace().skip(2);
        let name = words.next().expect("a name").to_owned();
        let mut counters = [0; 17];
        for (counter, word) in counters.iter_mut().zip(words) {
            *counter = word.parse().expect("a number");
        }
        (name, counters)
    };
    text.lines().map(line).collect()
}

/// What /proc/diskstats counted for all devices meanwhile.
struct Counted {
    /// Between two readings by the command itself.
    within: BTreeMap<String, Counters>,
    /// Between two readings before and after it: a file system may write something of its own at the edges.
    around: BTreeMap<String, Counters>,
}

/// The trace of `script`, with the change of all counters.
fn between_readings(scratch: &Path, place: &str, script: &str) -> (Trace, Counted) {
    let files = ["around-before", "before", "after", "around-after"].map(|name| scratch.join(name));
    let [first, before, after, last] = files.each_ref().map(|file| format!("cat /proc/diskstats > {}", file.display()));
    let options = ["--at", place, "--prepare", &first, "--cleanup", &last];
    let script = format!("{before}; {script}; {after}");
    let recording = run(&mut traced(&options, sh(&script))).ended_with(0).recording();
    let trace = recording.traces.into_iter().next().expect("one trace");
    nothing_lost(&trace);
    let [first, before, after, last] = files.each_ref().map(|file| diskstats(file));
    let counted = Counted { within: change(&before, after), around: change(&first, last) };
    (trace, counted)
}

/// What was counted since `before`.
fn change(before: &BTreeMap<String, Counters>, mut after: BTreeMap<String, Counters>) -> BTreeMap<String, Counters> {
    for (name, counters) in &mut after {
        for (now, then) in counters.iter_mut().zip(before.get(name).copied().unwrap_or_default()) {
            *now -= then.min(*now);
        }
    }
    after
}

/// The disk under the file system that was made for the command: the only one that read or wrote for it besides those that others
/// use, and no other loop device did.
fn own_disk<'a>(block: &'a BlockIo, counted: &Counted) -> &'a Disk {
    let is_used =
        |disk: &&Disk| disk.name.starts_with("loop") && counted.within[&disk.name].iter().any(|count| *count > 0);
    let own = |disk: &&Disk| block.paths.iter().any(|row| row.disk == disk.number && row.asker == Asker::Command);
    let disks: Vec<&Disk> = block.disks.iter().filter(is_used).filter(own).collect();
    let [disk] = disks[..] else { panic!("not one loop device: {disks:?}") };
    disk
}

/// Where less was seen than was counted: no request may be seen that was not done.
fn differences(block: &BlockIo, disk: &Disk, counted: &Counted) -> Vec<String> {
    let of_disk = |counters: &BTreeMap<String, Counters>| counters[&disk.name];
    let (within, around) = (of_disk(&counted.within), of_disk(&counted.around));
    let mut differences = Vec::new();
    let mut compare = |seen: u64, what: &str, sum: fn(&Counters) -> u64| {
        let (least, most) = (sum(&within), sum(&around));
        assert!(seen <= most, "{what}: {seen}, and only {most} were done");
        if seen < least {
            differences.push(format!("{what}: {seen}, and not {least} to {most}"));
        }
    };
    let sum = |operations: &[Operation]| {
        let rows = block.requests.iter();
        let of_disk = rows.filter(|row| row.disk == disk.number && operations.contains(&row.operation));
        of_disk.fold((0, 0), |sum, row| (sum.0 + row.amount.requests, sum.1 + row.amount.bytes / 512))
    };
    let (reads, writes) = (sum(&[Operation::Read]), sum(&[Operation::Write, Operation::Other]));
    let discards = sum(&[Operation::Discard]);
    compare(reads.0, "reads", |counted| counted[0]);
    compare(reads.1, "sectors read", |counted| counted[2]);
    compare(writes.0, "writes", |counted| counted[4]);
    compare(writes.1, "sectors written", |counted| counted[6]);
    compare(discards.0, "discards", |counted| counted[11]);
    compare(discards.1, "sectors discarded", |counted| counted[13]);
    compare(sum(&[Operation::Flush]).0, "flushes", |counted| counted[15]);
    compare(disk.merged, "merged", |counted| counted[1] + counted[5] + counted[12]);
    differences
}

/// Some kernels run no programs in the context of certain processes, which includes interrupts that arrive there: where such a process
/// works, many requests are missed, else one in a run of twenty or so. So of several runs one must be exact.
const RUNS: usize = 6;

/// The first of several runs that is exact. Each of them must pass `holds`.
fn exact(directory: &Path, place: &str, script: &str, holds: impl Fn(&BlockIo, &Disk)) -> (Trace, Counted) {
    let mut different = Vec::new();
    for _ in 0..RUNS {
        let (trace, counted) = between_readings(directory, place, script);
        let block = trace.block.as_ref().expect("block devices are looked at");
        let disk = own_disk(block, &counted);
        holds(block, disk);
        different.push(differences(block, disk, &counted));
        if different.last().is_some_and(Vec::is_empty) {
            return (trace, counted);
        }
    }
    panic!("{place}: {different:#?}");
}

/// Of several runs, which return how many bytes they saw, one must have seen them all.
fn one_run_sees_all(bytes: u64, run: impl FnMut() -> u64) {
    let seen: Vec<u64> = std::iter::repeat_with(run).take(RUNS).take_while(|seen| *seen < bytes).collect();
    assert!(seen.len() < RUNS, "never all {bytes} bytes: {seen:?}");
}

#[test]
fn requests_bytes_merges_and_flushes_are_those_of_diskstats() {
    let (_machine, scratch) = (machine(), scratch());
    let journaled = ["ext4", "ext4:mount=data=journal", "ext4:mount=data=writeback"];
    for place in ["ext2", "ext3", "xfs:size=512M", "btrfs:size=512M"].into_iter().chain(journaled) {
        exact(scratch.path(), place, WORK, |block, disk| {
            let of_paths: u64 = block.paths.iter().map(|row| row.amount.requests).sum();
            assert_eq!(of_paths, block.requests.iter().map(|row| row.amount.requests).sum::<u64>());
            let unknown = block.paths.iter().filter(|row| row.disk == disk.number && row.path == IoPath::Other);
            let unknown: Vec<_> = unknown.map(|row| (&row.comm, row.amount.requests)).collect();
            let requests: u64 = unknown.iter().map(|(_, requests)| requests).sum();
            assert!(requests <= 2, "{place}: no path is known of {unknown:?}");
        });
    }
}

/// The bytes on a path, on the disk that the command used.
fn bytes_on(trace: &Trace, counted: &Counted, path: IoPath) -> u64 {
    let block = trace.block.as_ref().expect("block devices are looked at");
    let disk = own_disk(block, counted);
    let rows = block.paths.iter().filter(|row| row.disk == disk.number && row.path == path);
    rows.map(|row| row.amount.bytes).sum()
}

#[test]
fn a_journal_of_data_writes_several_times_what_one_of_metadata_writes() {
    let (_machine, scratch) = (machine(), scratch());
    let script = "dd if=/dev/zero of=big bs=1M count=16 status=none; sync -f .";
    let committed = |place| {
        let (trace, counted) = exact(scratch.path(), place, script, |_, _| ());
        bytes_on(&trace, &counted, IoPath::JournalCommit)
    };
    let (ordered, data) = (committed("ext4"), committed("ext4:mount=data=journal"));
    assert!(data >= 16 << 20, "all data go to the journal: {data}");
    assert!(ordered < data / 4, "only metadata: {ordered} of {data}");
}

#[test]
fn the_time_at_a_device_is_the_time_it_takes() {
    const DELAY_NS: u64 = 5_000_000;
    let (_machine, scratch) = (machine(), scratch());
    let script = "dd if=/dev/zero of=f bs=4k count=40 oflag=direct status=none; sync -f .; echo 3 > /proc/sys/vm/drop_caches; \
        dd if=f of=/dev/null bs=4k count=40 iflag=direct status=none";
    let (trace, counted) = between_readings(scratch.path(), "ext4:delay=5ms", script);
    let block = trace.block.as_ref().expect("block devices are looked at");
    let disk = own_disk(block, &counted);
    let direct = block.paths.iter().find(|row| row.disk == disk.number && row.path == IoPath::Direct);
    let amount = &direct.expect("dd reads and writes directly").amount;
    // Not all: see RUNS.
    assert!((60..=80).contains(&amount.requests), "{}", amount.requests);
    assert_eq!(amount.timed, amount.requests);
    // A busy machine adds to some, so the median is what counts.
    let median = amount.device.quantile(0.5, Nanos::ZERO, amount.device_ns);
    let mean = amount.mean_device_ns().expect("they are timed");
    assert!(mean.0 >= DELAY_NS, "{mean:?}");
    assert!(median.0 < 2 * DELAY_NS, "{median:?}");
}

#[test]
fn what_bounds_a_command_is_said_with_the_depth_that_its_disk_had() {
    let _machine = machine();
    for (place, script, by, depth) in [
        ("ext4:delay=5ms", "dd if=/dev/zero of=f bs=4k count=100 oflag=direct", BoundBy::Latency, 0.7..1.5),
        // Without the limit on write-back, which would hold requests down where one takes long.
        (
            "ext4:bandwidth=50M,set=/sys/block/LOOP/queue/wbt_lat_usec=0",
            "dd if=/dev/zero of=f bs=1M count=200 conv=fsync",
            BoundBy::Throughput,
            4.0..1e3,
        ),
        ("ext4:delay=5ms", "sleep 8", BoundBy::NotTheDevice, 0.0..1e3),
    ] {
        // Something of its own, so that the disk does anything at all.
        let script = format!("echo > begun; sync begun; {script}");
        let trace = support::trace_of(&["--at", place], sh(&script));
        let block = trace.block.as_ref().expect("block devices are looked at");
        let bound = block.bound.as_ref().expect("it worked with a disk");
        let disk = block.disks.iter().find(|disk| disk.number == bound.disk).expect("one of those");
        assert!(disk.name.starts_with("loop"), "{disk:?}");
        let load = Load::of(disk, &block.paths, trace.wall_ns);
        assert_eq!(bound.by, by, "{script}: {load:?}");
        assert!(depth.contains(&load.depth), "{script}: {load:?}");
    }
}

/// They are threads of the process that asked for it, but are not followed.
#[test]
fn what_workers_of_io_uring_read_is_the_commands() {
    const BYTES: u64 = 4 << 20;
    let _machine = machine();
    let script = format!(
        "fio --name=a --filename=file --ioengine=io_uring --force_async=1 --rw=read --direct=1 --bs=64k --size={BYTES} --output=/dev/null"
    );
    let read = || {
        let mut command = traced(&["--at", "ext4:size=128M", "--cache", "cold"], sh(&script));
        let recording = run(&mut command).ended_with(0).recording();
        let block = recording.traces[0].block.as_ref().expect("block devices are looked at");
        let name = recording.places[0].source.trim_start_matches("/dev/");
        let disk = block.disks.iter().find(|disk| disk.name == name).expect("it was read from");
        let is_direct = |row: &&PathRequests| row.disk == disk.number && row.path == IoPath::Direct;
        let direct = block.paths.iter().filter(is_direct);
        let askers: Vec<_> = direct.map(|row| (row.asker, row.comm.clone(), row.amount.bytes)).collect();
        assert!(askers.iter().all(|(asker, ..)| *asker == Asker::Command), "{askers:?}");
        let bytes: u64 = askers.iter().map(|(.., bytes)| bytes).sum();
        assert!(bytes <= BYTES, "{askers:?}");
        bytes
    };
    one_run_sees_all(BYTES, read);
}

#[test]
fn what_is_written_after_the_end_is_told_apart() {
    const BYTES: u64 = 8 << 20;
    let _machine = machine();
    // A new file each time: ext4 begins to write a truncated one when it is closed (ext4(5): auto_da_alloc).
    let script = sh(&format!("dd if=/dev/zero of=f.$$ bs=1M count={} status=none", BYTES >> 20));
    let written = || {
        let options = ["-n", "1", "--at", "ext4", "--durable"];
        let recording = run(&mut traced(&options, script.clone())).ended_with(0).recording();
        let block = recording.traces[0].block.as_ref().expect("block devices are looked at");
        let is_loop =
            |row: &PathRequests| block.disks.iter().any(|d| d.number == row.disk && d.name.starts_with("loop"));
        let written = block.paths.iter().filter(|row| row.path == IoPath::Writeback && is_loop(row));
        let of =
            |after: bool| written.clone().filter(|row| row.after == after).map(|row| row.amount.bytes).sum::<u64>();
        assert!(of(false) < BYTES, "{:?}", block.paths);
        of(true)
    };
    one_run_sees_all(BYTES, written);
}

#[test]
fn commits_of_a_journal_are_those_that_its_file_system_counts() {
    let (_machine, scratch) = (machine(), scratch());
    let counted = scratch.path().join("commits");
    // Each fsync of a file that has just been made commits a transaction (fs/jbd2: /proc/fs/jbd2/DEVICE/info).
    let script = format!(
        "info=/proc/fs/jbd2/$(basename $(findmnt -no SOURCE -T .))-8/info; head -n 1 $info > {0}; \
         for i in 1 2 3 4 5 6 7; do echo $i > $i; sync $i; done; head -n 1 $info >> {0}",
        counted.display()
    );
    // Nothing is committed because of its age: neither before the command has counted, nor after.
    let trace = support::trace_of(&["--at", "ext4:mount=commit=300", "--prepare", "sync -f ."], sh(&script));
    nothing_lost(&trace);
    let text = std::fs::read_to_string(&counted).expect("the command wrote it");
    let totals: Vec<u64> = text.lines().filter_map(|line| line.split(' ').next()?.parse().ok()).collect();
    let [before, after] = totals[..] else { panic!("{text:?}") };
    let journal = trace.journals.iter().find(|journal| journal.name.starts_with("loop") && journal.commits >= 7);
    let journal = journal.unwrap_or_else(|| panic!("{:?}", trace.journals));
    assert_eq!(journal.commits, after - before);
    assert!(journal.handles >= Some(7) && journal.blocks >= Some(7) && journal.logging_ns > Some(Nanos(0)));
    // Taken one by one they agree: one after the other, within the command, and together as long as the phases of all.
    let each = journal.all().unwrap_or_else(|| panic!("not all were kept: {journal:?}"));
    let begin = |commit: &Commit| commit.from_ns.expect("jbd2 tells when a commit begins");
    assert!(each.iter().all(|commit| begin(commit) <= commit.to_ns && commit.to_ns <= trace.wall_ns));
    assert!(each.windows(2).all(|pair| pair[0].to_ns <= begin(&pair[1])), "{each:?}");
    let took: Nanos = each.iter().map(|commit| commit.to_ns.saturating_sub(begin(commit))).sum();
    assert_eq!(Some(took), [journal.locked_ns, journal.flushing_ns, journal.logging_ns].into_iter().sum());
    assert_eq!(each.iter().map(|commit| commit.blocks).sum::<Option<u64>>(), journal.blocks);
}

#[test]
fn thousands_of_processes_that_read_need_no_more_room_than_one() {
    let _machine = machine();
    // More than there are rows.
    let script = sh("dd if=/dev/zero of=f bs=4k count=1 conv=fsync status=none; for i in $(seq 5000); do \
        dd if=f of=/dev/null bs=4k count=1 iflag=direct status=none; done");
    let trace = support::trace_of(&["--at", "ext4"], script);
    nothing_lost(&trace);
    let block = trace.block.as_ref().expect("block devices are looked at");
    let direct = block.paths.iter().filter(|row| row.path == IoPath::Direct && row.asker == Asker::Command);
    let requests: u64 = direct.map(|row| row.amount.requests).sum();
    // Not all: see RUNS.
    assert!((4_000..=5_000).contains(&requests), "{requests}");
}

/// Several that each read in order take turns at the device, and one that jumps does not.
#[test]
fn what_several_read_in_order_is_in_order() {
    let _machine = machine();
    let in_order = |script: &str| {
        let prepare = "for i in 1 2 3; do dd if=/dev/zero of=f$i bs=1M count=4 conv=fsync status=none; done";
        let options = ["--at", "ext4", "--prepare", prepare];
        let recording = run(&mut traced(&options, sh(script))).ended_with(0).recording();
        let trace = recording.traces.into_iter().next().expect("one trace");
        nothing_lost(&trace);
        let block = trace.block.expect("it has one");
        let mut direct = Amount::default();
        let rows = block.paths.iter().filter(|row| row.path == IoPath::Direct && row.asker == Asker::Command);
        rows.for_each(|row| direct.add(&row.amount));
        // Not of all: see RUNS.
        assert!(direct.requests >= 700, "{direct:?}");
        direct.in_order()
    };
    let beside = "for i in 1 2 3; do dd if=f$i of=/dev/null bs=4k iflag=direct status=none & done; wait";
    let part = in_order(beside);
    assert!(part > 0.9, "{part}");
    let apart = "i=0; while [ $i -lt 1000 ]; do echo $((i * 389 % 1024)); i=$((i+1)); done | \
        xargs -I{} dd if=f1 of=/dev/null bs=4k count=1 skip={} iflag=direct status=none";
    let part = in_order(apart);
    assert!(part < 0.1, "{part}");
}

#[test]
fn disks_over_time_sum_to_what_they_did_and_show_when() {
    let _machine = machine();
    let script = "dd if=/dev/zero of=f bs=64k count=64 oflag=direct status=none; sync -f .; sleep 0.7; \
        dd if=f of=/dev/null bs=64k count=64 iflag=direct status=none";
    let trace = support::trace_of(&["--at", "ext2:delay=1ms"], sh(script));
    nothing_lost(&trace);
    let block = trace.block.as_ref().expect("block devices are looked at");
    let course = block.over_time.as_ref().expect("it is looked at");
    let bound = block.bound.as_ref().expect("it worked with a disk");
    let seen: Vec<_> = course
        .iter()
        .map(|(from, interval)| {
            let disk = interval.of_disk(&bound.disk).cloned().unwrap_or_default();
            (interval.to_ns - from, disk)
        })
        .collect();
    let rows = || block.requests.iter().filter(|row| row.disk == bound.disk && !row.after);
    let bytes = |operation| rows().filter(|row| row.operation == operation).map(|row| row.amount.bytes).sum::<u64>();
    assert_eq!(seen.iter().map(|(_, disk)| disk.read_bytes).sum::<u64>(), bytes(Operation::Read));
    assert_eq!(seen.iter().map(|(_, disk)| disk.written_bytes).sum::<u64>(), bytes(Operation::Write));
    let (requests, at_device) =
        (rows().map(|row| row.amount.requests).sum::<u64>(), rows().map(|row| row.amount.device_ns).sum());
    assert_eq!(seen.iter().map(|(_, disk)| disk.requests).sum::<u64>(), requests);
    assert_eq!(seen.iter().map(|(_, disk)| disk.device_ns).sum::<Nanos>(), at_device);
    let last = course.intervals.last().expect("intervals");
    assert!(last.to_ns >= trace.wall_ns, "to the end: {last:?} of {:?}", trace.wall_ns);
    assert!(last.dirty_bytes.is_some() && last.writeback_bytes.is_some(), "{last:?}");
    // Written before the pause, read after it, 64 KiB at a time. What the file system does of its own accord, such as reading bitmaps
    // ahead (fs/ext4/mballoc.c: ext4_mb_prefetch), comes in blocks of 4 KiB.
    let moves = |bytes: u64, disk: &DiskInterval| bytes >= disk.requests.max(1) * (16 << 10);
    let writes = |(_, disk): &(Nanos, DiskInterval)| moves(disk.written_bytes, disk);
    let reads = |(_, disk): &(Nanos, DiskInterval)| moves(disk.read_bytes, disk);
    let last_written = seen.iter().rposition(writes).expect("something was written");
    let after = &seen[last_written + 1..];
    let read = after.iter().position(reads).unwrap_or_else(|| panic!("nothing was read after that: {seen:?}"));
    let pause: Nanos = after[..read].iter().map(|(length, _)| *length).sum();
    assert!(pause.0 >= 400_000_000, "{pause:?} of {seen:?}");
}
