//! Every finding is made where its fixture makes exactly that trouble, and nowhere else: the matrix of all fixtures and all
//! findings. Healthy commands are left in peace. The program of the third study is seen through.
//!
//! `docs/findings/matrix.md` is what this test found; run it with INODYNE_UPDATE=1 to rewrite it, and look at the
//! difference.

mod support;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use inodyne_model::Nanos;
use inodyne_model::block::{Amount, Asker, IoPath, PathRequests};
use inodyne_model::ledger::RowKind;
use inodyne_model::recording::Recording;
use support::{Cgroup, fixture, fixture_cpp, inodyne, machine, nothing_lost, prepare, run, scratch};
use tempfile::TempDir;

/// A program that makes one kind of trouble, and how it is run. `FIXTURE` stands for the compiled `fixtures/findings/ID.c`,
/// `CGROUP` for a cgroup with two megabytes of memory, `READS` and `CPU` for what lets a shell into one with few reads and little CPU time.
struct Case {
    id: &'static str,
    options: &'static [&'static str],
    script: &'static str,
    /// What else is said, and why that is right.
    also: &'static [(&'static str, &'static str)],
}

const fn case(id: &'static str, options: &'static [&'static str], script: &'static str) -> Case {
    Case { id, options, script, also: &[] }
}

const SMALL: &[&str] = &["--at", "ext4:size=256M"];
const TMPFS: &[&str] = &["--at", "tmpfs"];
/// A device that needs ten times as long for what is read ahead as for one page.
const JUMPS: &[&str] = &[
    "--at",
    "ext4:size=1G,bandwidth=50M,set=/sys/block/LOOP/queue/read_ahead_kb=512",
    "--data",
    "tree:dirs=1,files=1,bytes=200000000",
    "--cache",
    "cold",
];
/// Not in the same second as what comes next: then the inodes could be taken again.
const DELETES: &str = "find d0 -type f -delete; sleep 1.1";
const CREATES: &str = "sh -c 'i=0; while [ $i -lt 600 ]; do : >d0/n$i; i=$((i+1)); done'";

const CASES: &[Case] = &[
    case(
        "cold-data",
        // A slow device here too, so that most is waiting on a busy machine as well, where a copy takes longer.
        &["--at", "ext4:size=1G,delay=5ms", "--data", "tree:dirs=1,files=4,bytes=30000000", "--cache", "cold"],
        "cat d0/* >/dev/null",
    ),
    case(
        "cold-metadata",
        &["--at", "ext4:size=1G", "--data", "tree:dirs=1500,files=10,bytes=1", "--cache", "cold"],
        "find . -size +1k",
    ),
    // Its pages lie in it, and so on the slow device.
    case(
        "cold-program",
        &["--at", "ext4:size=512M,delay=5ms", "--prepare", "cp FIXTURE program", "--cache", "cold"],
        "./program",
    ),
    // The one that syncs is not part of the command, just as neighbours are not. Without barriers a commit is one wait for blocks that nobody may
    // change and one for its record, so that a slow CPU does not hide it.
    case(
        "commit-storm",
        &[
            "--at",
            "ext4:size=256M,delay=5ms,mount=barrier=0",
            "--prepare",
            "FIXTURE beside",
            "--cleanup",
            "touch stop; sleep 0.1",
        ],
        "FIXTURE 100000",
    ),
    case(
        "copy-up",
        &["--at", "overlay:lower=ext4:size=1G", "--data", "tree:dirs=3,files=100,bytes=100"],
        "chown -R 1 .",
    ),
    // So many were deleted in the group of inodes in which it creates new ones.
    case(
        "deleted-inodes",
        &[
            "--at",
            "ext4:size=512M,mkfs=-O ^has_journal",
            "--data",
            "tree:dirs=1,files=12000,bytes=1",
            "--prepare",
            DELETES,
        ],
        CREATES,
    ),
    // Without writeback throttling, which would hold back what makes the queue long.
    case(
        "device-saturated",
        &["--at", "ext4:size=1G,bandwidth=50M,set=/sys/block/LOOP/queue/wbt_lat_usec=0"],
        "dd if=/dev/zero of=f bs=1M count=100 conv=fsync",
    ),
    case(
        "dtype-missing",
        &["--at", "ext4:size=256M,mkfs=-O ^filetype", "--data", "tree:dirs=300,files=30,bytes=1", "--cache", "warm"],
        "find .",
    ),
    case("failed-calls", SMALL, "FIXTURE 200000"),
    case("failed-lookups", SMALL, "FIXTURE 500 40"),
    case("fs-not-to-blame", TMPFS, "sleep 0.2"),
    case("futex-contention", TMPFS, "FIXTURE 4 20000"),
    case("cpu-limited", TMPFS, "sh -c 'CPU; i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done'"),
    case(
        "io-limited",
        &["--at", "ext4:size=1G", "--data", "tree:dirs=150,files=5,bytes=1", "--cache", "cold"],
        "sh -c 'READS; exec find . -size +1k'",
    ),
    case("journal-wait", &["--at", "ext4:size=1G,delay=1ms,mkfs=-J size=1 -b 1024"], "FIXTURE 4 3000"),
    case("kernel-cpu-bound", TMPFS, "FIXTURE 30000"),
    case("lock-contention", TMPFS, "FIXTURE 8 2000"),
    case("memory-pressure", &["--at", "ext4:size=1G"], "FIXTURE CGROUP 400 2"),
    case(
        "mmap-faults",
        &["--at", "ext4:size=1G", "--data", "tree:dirs=1,files=1,bytes=200000000", "--cache", "cold"],
        "FIXTURE d0/f0 3000",
    ),
    case(
        "process-storm",
        &["--at", "tmpfs", "--data", "tree:dirs=1,files=300,bytes=1"],
        "find . -type f -exec /bin/cat {} ';'",
    ),
    case("queue-full", &["--at", "ext4:size=1G,set=/sys/block/LOOP/queue/nr_requests=4"], "FIXTURE 32 200"),
    case(
        "random-io",
        &["--at", "ext4:size=1G,delay=5ms", "--data", "tree:dirs=1,files=1,bytes=100000000", "--cache", "cold"],
        "FIXTURE d0/f0 300",
    ),
    case("readahead-wasted", JUMPS, "FIXTURE d0/f0 200"),
    case("repeated-stat", &["--at", "tmpfs", "--paths"], "FIXTURE 20 5000"),
    // The server is not part of the command, as with any server.
    case(
        "round-trips",
        &["--at", "tmpfs", "--prepare", "FIXTURE serve 100", "--cleanup", "umount mnt"],
        "FIXTURE 2000",
    ),
    case("run-queue-bound", TMPFS, "FIXTURE 8 100"),
    case(
        "single-stream",
        // A slow device: what is waited for on a busy machine, too, is the device, and not a CPU for its driver.
        &["--at", "ext4:size=1G,delay=5ms", "--data", "tree:dirs=1,files=300,bytes=8192", "--cache", "cold"],
        "FIXTURE d0/*",
    ),
    case("small-io", SMALL, "FIXTURE 200000"),
    case(
        "small-requests",
        &[
            "--at",
            "ext4:size=1G,delay=5ms,set=/sys/block/LOOP/queue/read_ahead_kb=4",
            "--data",
            "tree:dirs=1,files=1,bytes=1600000",
            "--cache",
            "cold",
        ],
        "dd if=d0/f0 of=/dev/null bs=4k",
    ),
    case("stat-per-entry", &["--at", "ext4:size=256M", "--data", "tree:dirs=30,files=100"], "FIXTURE d*"),
    case("sync-bound", SMALL, "FIXTURE 200"),
    case("user-cpu-bound", TMPFS, "FIXTURE 200"),
    case(
        "write-amplification",
        &["--at", "ext4:size=1G,bandwidth=100M,mount=data=journal,mkfs=-J size=16"],
        "dd if=/dev/zero of=f bs=1M count=100 conv=fsync",
    ),
    case("write-throttled", &["--at", "ext4:size=1G,set=/proc/sys/vm/dirty_bytes=8388608"], "FIXTURE 100"),
];

/// How often anybody has emptied the caches of the machine, as the kernel counts it.
fn caches_emptied() -> Vec<String> {
    let counters = std::fs::read_to_string("/proc/vmstat").expect("counters");
    counters.lines().filter(|line| line.starts_with("drop_")).map(str::to_owned).collect()
}

/// What a run reads from devices where everything is in memory: at most a page here and there.
const WARM_BYTES: u64 = 256 << 10;
/// How many times a command is tried whose caches should be warm and are not.
const MOST_TRIES: usize = 5;

/// The recording of a command. Where another program emptied the caches of the machine meanwhile, or its own were emptied in another way,
/// what was to be warm was not, and the recording is about something else: then it is made again.
fn recorded(options: &[&str], script: &str) -> Recording {
    let is_warm = options.contains(&"warm");
    let mut tries = 0;
    loop {
        let before = caches_emptied();
        let mut command = inodyne();
        command.args(["run", "--format", "json"]).args(options).args(["--", "sh", "-c", &format!("exec {script}")]);
        let recording = run(&mut command).ended_with(0).recording();
        recording.traces.iter().for_each(nothing_lost);
        tries += 1;
        let has_read = recording.runs.iter().any(|run| run.device_read_bytes > Some(WARM_BYTES));
        let is_emptied = caches_emptied() != before || (has_read && tries < MOST_TRIES);
        if !is_warm || !is_emptied {
            return recording;
        }
    }
}

/// What is said about a command: the ids in their order.
fn said(options: &[&str], script: &str) -> Vec<String> {
    ids(&recorded(options, script))
}

fn ids(recording: &Recording) -> Vec<String> {
    recording.findings.iter().map(|finding| finding.id.clone()).collect()
}

/// Where the machine is busy with something else, a command may wait for a CPU for longer than for what its fixture is about. That is to
/// be said then, if the ledger bears it out, and nothing that has no ground here.
fn is_said_of_a_busy_machine(recording: &Recording, expected: &BTreeSet<&str>) -> bool {
    let ledger = &recording.traces[0].ledger;
    let ready: Nanos = ledger.rows.iter().filter(|row| row.kind == RowKind::Runqueue).map(|row| row.ns).sum();
    let found = ids(recording);
    let is_known = |id: &String| id == "run-queue-bound" || expected.contains(id.as_str());
    ready.share_of(ledger.wall_ns) > 0.25
        && found.iter().any(|id| id == "run-queue-bound")
        && found.iter().all(is_known)
}

/// Where the disk below a loop device is busy with something else, a request for a page may take a good part of the time of half a megabyte,
/// and nothing shows that reading less ahead would help. Then what can be said of mapped files that come from the device is that they do.
fn is_said_of_a_busy_disk(recording: &Recording, expected: &BTreeSet<&str>) -> bool {
    let mean_ns = |of: fn(&PathRequests) -> bool| {
        let mut all = Amount::default();
        let paths = recording.traces[0].block.iter().flat_map(|block| &block.paths);
        paths.filter(|row| of(row)).for_each(|row| all.add(&row.amount));
        all.mean_device_ns()
    };
    let small = mean_ns(|row| row.path == IoPath::MetadataRead);
    let large = mean_ns(|row| row.path == IoPath::DataRead && row.asker == Asker::Command);
    let found = ids(recording);
    expected.contains("readahead-wasted")
        && found == ["cold-program"]
        && small.zip(large).is_some_and(|(small, large)| small.share_of(large) > 0.25)
}

/// A busy machine may change what is said for at most so many fixtures.
const MOST_BUSY: usize = 4;

/// Cgroups that allow little.
struct Limits {
    memory: Cgroup,
    reads: Cgroup,
    cpu: Cgroup,
}

/// The options and the command of a case, its fixture compiled where it has one.
fn words(case: &Case, programs: &TempDir, limits: &Limits) -> (Vec<String>, String) {
    let program = match case.options.iter().chain([&case.script]).any(|text| text.contains("FIXTURE")) {
        true => fixture(&format!("findings/{}", case.id), programs.path()).display().to_string(),
        false => String::new(),
    };
    let cgroup = limits.memory.0.display().to_string();
    let filled = |text: &&str| {
        let text = text.replace("READS", &limits.reads.reads(25)).replace("CPU", &limits.cpu.cpu(5));
        text.replace("CGROUP", &cgroup).replace("FIXTURE", &program)
    };
    (case.options.iter().map(filled).collect(), filled(&case.script))
}

#[test]
fn every_fixture_has_its_finding_and_no_other() {
    let (_machine, programs) = (machine(), scratch());
    let limits = Limits { memory: Cgroup::new(), reads: Cgroup::of("blkio"), cpu: Cgroup::of("cpu") };
    let mut table = String::new();
    let (mut wrong, mut busy) = (Vec::new(), Vec::new());
    for case in CASES {
        let (options, script) = words(case, &programs, &limits);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let recording = recorded(&options, &script);
        let mut found = ids(&recording);
        let expected: BTreeSet<&str> = case.also.iter().map(|(id, _)| *id).chain([case.id]).collect();
        if found.iter().map(String::as_str).collect::<BTreeSet<_>>() != expected {
            let is_busy =
                is_said_of_a_busy_machine(&recording, &expected) || is_said_of_a_busy_disk(&recording, &expected);
            let all = if is_busy { &mut busy } else { &mut wrong };
            all.push(format!("{}: {found:?}", case.id));
            found = [case.id].into_iter().chain(case.also.iter().map(|(id, _)| *id)).map(str::to_owned).collect();
        }
        let options = case.options.join(" ").replace("--at ", "");
        let why: String = case.also.iter().map(|(_, why)| format!(" ({why})")).collect();
        writeln!(table, "| {} | `{}` on {options} | {}{why} |", case.id, case.script, found.join(", "))
            .expect("a string");
    }
    assert!(wrong.is_empty(), "said otherwise than expected: {wrong:#?}");
    assert!(busy.len() <= MOST_BUSY, "the machine is too busy to say anything of the fixtures: {busy:#?}");
    assert!(CASES.iter().map(|case| case.also.len()).sum::<usize>() <= 2, "too many are said of each other's fixtures");
    let all: BTreeSet<&str> = inodyne_analyse::finding_ids().collect();
    assert_eq!(CASES.iter().map(|case| case.id).collect::<BTreeSet<_>>(), all, "a fixture for every finding");
    let page = format!(
        "# Which findings are reported about which fixtures\n\nMade by `tests/findings.rs`: each fixture (`fixtures/findings/`) makes the \
         trouble of one finding, and runs\nunder `inodyne run`. `FIXTURE` is the compiled program of that name.\n\n\
         | fixture for | command | reported |\n|---|---|---|\n{table}"
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings/matrix.md");
    if std::env::var_os("INODYNE_UPDATE").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    assert_eq!(
        std::fs::read_to_string(&path).unwrap_or_default(),
        page,
        "INODYNE_UPDATE=1 writes docs/findings/matrix.md anew"
    );
}

/// Findings that may be made for any command: they only say where the time is.
const HONEST: [&str; 4] = ["fs-not-to-blame", "kernel-cpu-bound", "user-cpu-bound", "run-queue-bound"];

#[test]
fn healthy_commands_are_left_in_peace() {
    let _machine = machine();
    let data = "tree:dirs=200,fan=1000,files=20,bytes=3000";
    let mut said_of = Vec::new();
    for script in [
        "find . -type f >/dev/null",
        "ls -lR . >/dev/null",
        "du -s . >/dev/null",
        "sh -c 'mkdir copy-$$ && cp -r d* copy-$$'",
        "tar cf archive.tar d0 d1 d2",
        "grep -rc x . >/dev/null",
        "rm -rf d0 d1 d2 d3",
        "git init -q .",
        "sh -c 'git init -q --bare .g$$ && GIT_DIR=.g$$ GIT_WORK_TREE=. git add d*'",
        "sh -c 'for i in $(seq 20); do echo int i\\; | cc -x c -c -o i.o -; done'",
        "python3 -c 'import json, os; [os.stat(\".\") for _ in range(50)]'",
        "sha256sum d0/f0 d1/f0 d2/f0 >/dev/null",
        "sort -R /etc/passwd -o sorted",
        "sleep 0.1",
    ] {
        // Programs and their libraries are in memory from the first time on.
        let warm = format!("{{ ({script}) >/dev/null 2>&1; true; }}");
        let prepare = if script.starts_with("rm") { "rm --version >/dev/null" } else { &warm };
        // What was prepared is not committed meanwhile: neither is the journal full nor have five seconds passed.
        let place = "ext4:size=512M,mkfs=-J size=64,mount=commit=300";
        let options = ["--at", place, "--data", data, "--cache", "warm", "--prepare", prepare];
        let found = said(&options, script);
        let honest = found.iter().all(|id| HONEST.contains(&id.as_str()));
        if !honest || found.len() > 1 {
            said_of.push(format!("{script}: {found:?}"));
        }
    }
    assert!(said_of.is_empty(), "{said_of:#?}");
}

/// The same commands without the trouble: what is not said about them.
const TWINS: &[Case] = &[
    case(
        "small-requests",
        &["--at", "ext4:size=1G,delay=5ms", "--data", "tree:dirs=1,files=1,bytes=1600000", "--cache", "cold"],
        "dd if=d0/f0 of=/dev/null bs=4k",
    ),
    case(
        "small-requests",
        &["--at", "ext4:size=1G,delay=5ms", "--data", "tree:dirs=1,files=1,bytes=1600000", "--cache", "cold"],
        "dd if=d0/f0 of=/dev/null bs=1M iflag=direct",
    ),
    case(
        "random-io",
        &[
            "--at",
            "ext4:size=1G",
            "--data",
            "tree:dirs=1,files=1,bytes=4000000",
            "--cache",
            "warm",
            "--prepare",
            "cat d0/f0 >/dev/null",
        ],
        "FIXTURE d0/f0 3000",
    ),
    // Where every request takes equally long, however much it brings; and where all of it is asked for.
    case(
        "readahead-wasted",
        &[
            "--at",
            "ext4:size=1G,delay=100ms,set=/sys/block/LOOP/queue/read_ahead_kb=128",
            "--data",
            "tree:dirs=1,files=1,bytes=200000000",
            "--cache",
            "cold",
        ],
        "FIXTURE d0/f0 60",
    ),
    case("readahead-wasted", JUMPS, "dd if=d0/f0 of=/dev/null bs=64k count=400"),
    case(
        "write-amplification",
        &["--at", "ext4:size=1G,bandwidth=100M,mkfs=-J size=16"],
        "dd if=/dev/zero of=f bs=1M count=100 conv=fsync",
    ),
    case(
        "cold-program",
        &["--at", "ext4:size=512M,delay=5ms", "--prepare", "cp FIXTURE program && ./program", "--cache", "warm"],
        "./program",
    ),
    // With a journal an inode can be taken again at once; and without one where none was deleted.
    case(
        "deleted-inodes",
        &["--at", "ext4:size=512M", "--data", "tree:dirs=1,files=12000,bytes=1", "--prepare", DELETES],
        CREATES,
    ),
    case(
        "deleted-inodes",
        &["--at", "ext4:size=512M,mkfs=-O ^has_journal", "--data", "tree:dirs=1,files=12000,bytes=1"],
        CREATES,
    ),
    // Alone, a journal is committed when it likes.
    case("commit-storm", &["--at", "ext4:size=256M,delay=5ms,mount=barrier=0"], "FIXTURE 100000"),
    // One after the other is never several at once.
    case("device-saturated", &["--at", "ext4:size=1G,delay=5ms"], "dd if=/dev/zero of=f bs=1M count=40 oflag=direct"),
];

#[test]
fn without_the_trouble_it_is_not_said() {
    let (_machine, programs) = (machine(), scratch());
    let limits = Limits { memory: Cgroup::new(), reads: Cgroup::of("blkio"), cpu: Cgroup::of("cpu") };
    for twin in TWINS {
        let (options, script) = words(twin, &programs, &limits);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let found = said(&options, &script);
        assert!(!found.iter().any(|id| id == twin.id), "{}: {found:?}", twin.script);
    }
}

#[test]
fn the_program_of_the_third_study_is_seen_through() {
    let (_machine, programs) = (machine(), scratch());
    let program = fixture_cpp("prm", programs.path());
    let gather = "rm -rf all && mkdir all && mv d* all";
    let options = ["--at", "tmpfs", "--data", "tree:dirs=1000,fan=2,files=30,bytes=1", "--prepare", gather];
    let found = said(&options, &format!("{} all", program.display()));
    // Its threads wait for entries that others have yet to find: they are idle, and no lock keeps them from anything.
    let expected = ["failed-calls", "stat-per-entry"];
    let missing: Vec<_> = expected.into_iter().filter(|id| !found.iter().any(|said| said == id)).collect();
    assert!(missing.is_empty(), "{missing:?} are not among {found:?}");
}

#[test]
fn paths_are_counted_and_losses_too() {
    let (_machine, programs) = (machine(), scratch());
    prepare(programs.path(), "mkdir place && touch place/here \"place/$(printf 'a\\033[31mb')\"");
    let place = programs.path().join("place").display().to_string();
    let script = "sh -c 'i=0; while [ $i -lt 100 ]; do test -e here; test -e gone; i=$((i+1)); done; test -e a*'";
    let recording = recorded(&["--at", &place, "--paths"], script);
    let paths = recording.traces[0].paths.as_ref().expect("they were asked for");
    let count = |name: &str| {
        let of_name = paths.looked_up.iter().filter(|path| path.path == name);
        of_name.fold((0, 0), |(calls, not_found), path| (calls + path.calls, not_found + path.not_found))
    };
    assert_eq!((count("here"), count("gone")), ((100, 0), (100, 100)));
    assert_eq!(count("a\u{1b}[31mb").0, 1, "names are data");
    assert_eq!(paths.not_kept, 0);
    // The same name in two directories is two paths, from the current directory as well as from an open one.
    prepare(programs.path(), "mkdir place/one place/two && touch place/one/same place/two/same");
    let script = "sh -c 'cd one; test -e same; cd ../two; test -e same'";
    let recording = recorded(&["--at", &place, "--paths"], script);
    let paths = recording.traces[0].paths.as_ref().expect("they were asked for");
    let same: Vec<u64> = paths.looked_up.iter().filter(|path| path.path == "same").map(|path| path.calls).collect();
    assert_eq!(same, [1, 1]);
    let tree = ["--at", "tmpfs", "--data", "tree:dirs=200,fan=1000,files=20,bytes=1", "--paths"];
    let found = said(&tree, "find . -size +1k");
    assert!(!found.contains(&"repeated-stat".to_owned()), "every name in every directory once: {found:?}");
    // More paths than there is room for.
    let many = "python3 -c 'import os\nfor n in range(20000): os.path.exists(str(n))'";
    let recording = recorded(&["--at", &place, "--paths"], many);
    let paths = recording.traces[0].paths.as_ref().expect("they were asked for");
    let kept: u64 = paths.looked_up.iter().map(|path| path.calls).sum();
    assert_eq!(paths.looked_up.len(), 16_384);
    assert!(paths.not_kept > 3_000 && kept + paths.not_kept >= 20_000, "{kept} kept, {} not", paths.not_kept);
    let recording = recorded(&["--at", &place], "true");
    assert!(recording.traces[0].paths.is_none(), "only where they are asked for");
}
