//! What `run --files` counts is what strace counts: the traced command is `strace -f -y` of something, which prints the path of
//! each descriptor, so both see the same calls of the same run.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use inodyne_model::files::{FileUse, Files};
use support::{machine, nothing_lost, run, scratch, sh, traced};

/// What was done with a file: opens, reads, bytes read, writes, bytes written, reads of its entries, syncs, mappings.
type Uses = [u64; 8];

const OPEN: usize = 0;
const READ: usize = 1;
const WRITE: usize = 3;
const LIST: usize = 5;
const SYNC: usize = 6;
const MAP: usize = 7;

/// The path that strace prints behind a descriptor, from here on: `3</tmp/a>`.
fn path_of(text: &str) -> Option<&str> {
    let (descriptor, rest) = text.split_once('<')?;
    descriptor.trim().parse::<u32>().ok()?;
    rest.split_once('>').map(|(path, _)| path)
}

/// What strace saw of files below a directory.
fn strace_uses(log: &str, below: &str) -> BTreeMap<String, Uses> {
    let mut all = BTreeMap::<String, Uses>::new();
    let mut add = |path: Option<&str>, what: usize, bytes: u64| {
        let Some(path) = path.filter(|path| path.starts_with(below)) else { return };
        let uses = all.entry(path.to_owned()).or_default();
        uses[what] += 1;
        if what == READ || what == WRITE {
            uses[what + 1] += bytes;
        }
    };
    for line in log.lines() {
        // `1234  read(3</tmp/a>, "..."..., 4096) = 10`
        let Some((call, rest)) = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ').split_once('(')
        else {
            continue;
        };
        let Some((arguments, result)) = rest.rsplit_once(" = ") else { continue };
        let bytes = result.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
        let argument = |at: usize| arguments.split(", ").nth(at).and_then(path_of);
        match call {
            "openat" | "open" => add(path_of(result), OPEN, 0),
            "read" | "pread64" => add(argument(0), READ, bytes),
            "write" | "pwrite64" => add(argument(0), WRITE, bytes),
            "getdents64" => add(argument(0), LIST, 0),
            "fsync" | "fdatasync" => add(argument(0), SYNC, 0),
            "mmap" => add(argument(4), MAP, 0),
            "copy_file_range" | "splice" => {
                add(argument(0), READ, bytes);
                add(argument(2), WRITE, bytes);
            }
            "sendfile" => {
                add(argument(1), READ, bytes);
                add(argument(0), WRITE, bytes);
            }
            other => panic!("strace was not asked for {other}: {line}"),
        }
    }
    all
}

const CALLS: &str =
    "open,openat,read,pread64,write,pwrite64,getdents64,fsync,fdatasync,mmap,copy_file_range,splice,sendfile";

fn our_uses(files: &Files, below: &str) -> BTreeMap<String, Uses> {
    let mut all = BTreeMap::<String, Uses>::new();
    for file in files.used.iter().filter(|file| file.comm != "strace" && file.path.starts_with(below)) {
        let FileUse { opens, reads, read_bytes, writes, written_bytes, lists, syncs, maps, .. } = *file;
        let uses = all.entry(file.path.clone()).or_default();
        for (sum, one) in uses.iter_mut().zip([opens, reads, read_bytes, writes, written_bytes, lists, syncs, maps]) {
            *sum += one;
        }
    }
    all.retain(|_, uses| uses.iter().any(|count| *count > 0));
    all
}

fn files_of(directory: &Path, options: &[&str], script: &str) -> Files {
    let outcome = run(traced(options, sh(script)).current_dir(directory)).ended_with(0);
    let mut trace = outcome.recording().traces.remove(0);
    nothing_lost(&trace);
    trace.files.take().expect("they were asked for")
}

/// What programs do with files: copies by each of the kernel's ways, archives, data of many files in one, syncs, a database, mappings.
const SCRIPT: &str = "
    mkdir -p tree/a tree/b/c && for n in 1 2 3 4 5 6 7 8 9; do echo $n > tree/a/$n; echo $n $n > tree/b/c/$n; done
    tar cf all.tar tree && mkdir out && tar xf all.tar -C out && cp -r out copy && cp --reflink=never --sparse=always all.tar sparse
    cat out/tree/*/* copy/tree/a/* > all || true
    dd if=all of=synced bs=10 conv=fsync status=none && find . -newer all.tar > found && sort found -o found
    python3 -c 'import mmap, os
a = open(\"all.tar\", \"rb\"); m = mmap.mmap(a.fileno(), 0, prot=mmap.PROT_READ); b = open(\"sent\", \"wb\")
os.sendfile(b.fileno(), a.fileno(), 0, 5000); os.copy_file_range(a.fileno(), b.fileno(), 3000); r, w = os.pipe()
os.splice(a.fileno(), w, 1000); os.splice(r, b.fileno(), 1000); os.fdatasync(b.fileno())'";

#[test]
fn each_use_of_each_file_is_counted_as_strace_counts_it() {
    let (_machine, scratch) = (machine(), scratch());
    let log = scratch.path().join("strace.txt");
    let place = scratch.path().join("here");
    fs::create_dir(&place).expect("a directory");
    let mut command = traced(&["--files"], ["strace", "-f", "-y", "-s", "0", "-e"]);
    command.args([&format!("trace={CALLS}"), "-e", "signal=none", "-e", "status=!unfinished", "-o"]).arg(&log);
    let outcome = run(command.args(["sh", "-ec", SCRIPT]).current_dir(&place)).ended_with(0);
    let trace = outcome.recording().traces.remove(0);
    nothing_lost(&trace);
    let files = trace.files.expect("they were asked for");
    let below = format!("{}/", place.display());
    let theirs = strace_uses(&fs::read_to_string(&log).expect("a log"), &below);
    let ours = our_uses(&files, &below);
    assert!(theirs.len() > 60 && theirs.values().map(|uses| uses[READ]).sum::<u64>() > 100, "{theirs:?}");
    for uses in [OPEN, READ, WRITE, LIST, SYNC, MAP] {
        assert!(theirs.values().any(|file| file[uses] > 0), "{uses} does not occur");
    }
    assert_eq!(ours, theirs);
    assert_eq!(files.not_kept, 0);
    // Each call was counted once: no more time than that of all calls.
    let used: u64 = files.used.iter().map(|file| file.wall_ns.0).sum();
    let calls: u64 = trace.syscalls.iter().map(|call| call.wall_ns.0).sum();
    assert!(used > 0 && used <= calls, "{used} ns of {calls}");
    assert!(files.used.iter().all(|file| file.blocked_ns <= file.wall_ns), "{files:?}");
}

#[test]
fn a_path_is_what_the_process_sees() {
    let (_machine, scratch) = (machine(), scratch());
    let script = "
        mkdir m n root && mount -t tmpfs none m && mkdir m/d && echo hello > m/d/f && mount --bind m/d n && cat n/f >/dev/null
        mkdir -p root/in && echo x > root/in/side && python3 -c 'import os
os.chroot(\"root\"); open(\"/in/side\").read()'
        cd m && long=12345678901234567890123456789012345678901234567890
        for i in 1 2 3 4 5 6 7 8; do mkdir $long && cd $long; done; echo x > end";
    let script = format!("mount --make-rprivate / && {}", script.trim());
    let mut command = traced(&["--files"], ["unshare", "-m", "sh", "-c"]);
    let outcome = run(command.arg(script).current_dir(scratch.path())).ended_with(0);
    let files = outcome.recording().traces.remove(0).files.expect("they were asked for");
    let here = scratch.path().canonicalize().expect("a directory");
    let has = |path: &str, comm: &str| files.used.iter().any(|file| file.path == path && file.comm == comm);
    assert!(has(&here.join("m/d/f").display().to_string(), "sh"), "{files:#?}");
    assert!(has(&here.join("n/f").display().to_string(), "cat"), "{files:#?}");
    assert!(files.used.iter().any(|file| file.path == "/in/side" && file.reads > 0), "{files:#?}");
    let cut =
        files.used.iter().find(|file| file.path.starts_with('…') && file.path.ends_with("/end")).expect("a long path");
    assert_eq!(cut.path.len(), "…".len() + 255);
}

#[test]
fn a_deleted_file_is_not_taken_for_the_next_one_and_a_full_table_counts_what_it_cannot_hold() {
    let (_machine, scratch) = (machine(), scratch());
    // On ext4 the second file has the inode of the first.
    let script = "for n in 1 2 3 4 5; do echo $n > file$n; sync file$n; rm file$n; done";
    let files = files_of(scratch.path(), &["--files", "--at", "ext4"], script);
    for n in 1..=5 {
        let written: u64 = files
            .used
            .iter()
            .filter(|file| file.path.ends_with(&format!("/file{n}")))
            .map(|file| file.written_bytes)
            .sum();
        assert_eq!(written, 2, "{files:#?}");
    }
    let many = "find . -type f -print0 | xargs -0 cat >/dev/null";
    let tree = ["--files", "--at", "tmpfs", "--data", "tree:dirs=20,fan=20,files=1000,bytes=1"];
    let files = files_of(scratch.path(), &tree, many);
    assert_eq!(files.used.len(), 16_384);
    assert!(files.not_kept > 3_000 * 3, "{} not kept", files.not_kept);
}
