//! Every cause by a program that really waits for it, and how the waits of each program were classed: the confusion matrix,
//! kept in `docs/causes/matrix.md`.
//!
//! `remote-server` has no program here: it takes a file system of a network (NFS, SMB, 9p), which not every kernel has. Its stacks were seen on 9p in a
//! virtual machine (`inodyne-vm-bench-share --instead`). Nor has `other`, by its nature.

mod support;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use inodyne_model::Nanos;
use inodyne_model::cause::Cause;
use inodyne_model::observed::ROOT;
use inodyne_model::trace::Trace;
use support::{Cgroup, Sshfs, fixture, machine, prepare, run, scratch, traced};

/// Cells below this share of a program's blocked time are not written down.
const SMALL: f64 = 0.05;

/// A program that waits: for what, where, and what has to be set up before, as root in the place.
struct Waits<'a> {
    cause: Cause,
    place: &'a str,
    prepare: &'a str,
}

const fn waits(cause: Cause, place: &'static str, prepare: &'static str) -> Waits<'static> {
    Waits { cause, place, prepare }
}

/// Little may be dirty for this place's device.
const THROTTLED: &str = "ext4:size=1G,set=/sys/block/LOOP/bdi/strict_limit=1,set=/sys/block/LOOP/bdi/max_ratio=1";
/// Before Linux 6.2 no device is held to a part of its own as long as the others use little: there, little may be dirty on the whole
/// machine. Without a journal, for which a slow program would wait instead.
const THROTTLED_BEFORE: &str = "ext4:size=1G,mkfs=-O ^has_journal,\
    set=/proc/sys/vm/dirty_background_bytes=1048576,set=/proc/sys/vm/dirty_bytes=2097152";

/// `fsync` of a file that has not changed: nothing but a flush.
const UNCHANGED: &str = "ext4:size=1G,mkfs=-O ^has_journal";
/// Linux 6.1 flushes for such a file only where there is a journal (`ext4_fsync_nojournal`).
const UNCHANGED_BEFORE: &str = "ext4:size=1G";

const ALL: [Waits<'_>; 20] = [
    waits(Cause::DeviceRead, "ext4:size=1G", "head -c 67108864 /dev/urandom >direct; sync -f ."),
    waits(Cause::DeviceRead, "xfs:size=1G", "head -c 67108864 /dev/urandom >direct; sync -f ."),
    waits(Cause::DeviceWrite, "ext4:size=1G", ""),
    waits(Cause::DeviceFlush, UNCHANGED, ""),
    waits(Cause::Journal, "ext4:size=1G", ""),
    waits(Cause::Journal, "xfs:size=1G", ""),
    waits(Cause::InodeLock, "ext4:size=1G", ""),
    waits(Cause::BufferLock, "btrfs:size=1G", ""),
    waits(Cause::Lock, "tmpfs", ""),
    waits(Cause::Rcu, "tmpfs", ""),
    waits(Cause::WriteThrottle, THROTTLED, ""),
    waits(Cause::QueueFull, "xfs:size=1G,set=/sys/block/LOOP/queue/nr_requests=4", ""),
    waits(Cause::Pipe, "tmpfs", ""),
    waits(Cause::Socket, "tmpfs", ""),
    waits(Cause::Futex, "tmpfs", ""),
    waits(Cause::Child, "tmpfs", ""),
    waits(Cause::Sleep, "tmpfs", ""),
    waits(Cause::Poll, "tmpfs", ""),
    waits(Cause::Stopped, "tmpfs", ""),
    waits(Cause::Memory, "tmpfs", ""),
];

/// How long the first thread was blocked for each cause.
fn blocked(trace: &Trace) -> BTreeMap<Cause, Nanos> {
    let mut by_cause = BTreeMap::new();
    let root = trace.threads.iter().find(|thread| thread.number == ROOT).expect("a root");
    for row in &root.rows {
        if let Some(cause) = row.cause {
            *by_cause.entry(cause).or_default() += row.ns;
        }
    }
    by_cause
}

fn largest(by_cause: &BTreeMap<Cause, Nanos>) -> Option<Cause> {
    by_cause.iter().max_by_key(|(_, ns)| **ns).map(|(cause, _)| *cause)
}

impl Waits<'_> {
    /// The place, as this kernel can make it and as it waits there.
    fn made_at(&self) -> &str {
        match self.place {
            THROTTLED if !devices_have_their_part() => THROTTLED_BEFORE,
            UNCHANGED if kernel() < (6, 5) => UNCHANGED_BEFORE,
            place => place,
        }
    }
}

fn devices_have_their_part() -> bool {
    fs::read_dir("/sys/class/bdi").expect("sysfs").flatten().any(|device| device.path().join("strict_limit").exists())
}

/// Major and minor number.
fn kernel() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("procfs");
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    (numbers.next().expect("a major number"), numbers.next().unwrap_or(0))
}

fn measured(program: &Path, waits: &Waits<'_>, cgroup: &Cgroup) -> BTreeMap<Cause, Nanos> {
    let options = ["--at", waits.made_at(), "--prepare", if waits.prepare.is_empty() { "true" } else { waits.prepare }];
    let words = [program.as_os_str().to_owned(), waits.cause.to_string().into(), cgroup.0.as_os_str().to_owned()];
    let recording = run(&mut traced(&options, words)).ended_with(0).recording();
    blocked(&recording.traces[0])
}

fn matrix_page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/causes/matrix.md")
}

#[test]
fn every_program_is_said_to_wait_for_what_it_waits_for() {
    let (_machine, scratch, cgroup) = (machine(), scratch(), Cgroup::new());
    let program = fixture("wait", scratch.path());
    let mut page = String::from(
        "# The confusion matrix\n\nPrograms that wait for one thing (`fixtures/wait.c`), and the causes that inodyne saw in their first thread: \
         parts of its blocked\ntime, those below 5% left out. Written by `INODYNE_WRITE_MATRIX=1 cargo test --test causes`; the test \
         insists that the largest part\nis the right one.\n\n| waits for | on | seen as |\n|---|---|---|\n",
    );
    let mut wrong = Vec::new();
    prepare(scratch.path(), "mkdir data mounted; touch data/file");
    let mounted = Sshfs::mount(scratch.path(), "data", "mounted");
    let place = mounted.0.display().to_string();
    let fuse = Waits { cause: Cause::FuseServer, place: &place, prepare: "" };
    for waits in ALL.iter().chain([&fuse]) {
        let by_cause = measured(&program, waits, &cgroup);
        let name = if waits.cause == Cause::FuseServer { "sshfs" } else { waits.made_at() };
        let all: Nanos = by_cause.values().copied().sum();
        let mut sorted: Vec<_> = by_cause.iter().map(|(cause, ns)| (ns.share_of(all), *cause)).collect();
        sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
        let seen: Vec<_> = sorted.iter().filter(|(share, _)| *share >= SMALL).collect();
        let cells: Vec<_> = seen.iter().map(|(share, cause)| format!("{cause} {:.0}%", share * 100.0)).collect();
        writeln!(page, "| {} | {name} | {} |", waits.cause, cells.join(", ")).expect("text");
        if largest(&by_cause) != Some(waits.cause) {
            wrong.push(format!("{} on {name}: {}", waits.cause, cells.join(", ")));
        }
    }
    println!("{page}");
    if std::env::var_os("INODYNE_WRITE_MATRIX").is_some() {
        fs::write(matrix_page(), &page).expect("the page can be written");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let kept = fs::read_to_string(matrix_page()).expect("docs/causes/matrix.md");
    for waits in &ALL {
        assert!(kept.contains(&format!("| {} | {} |", waits.cause, waits.place)), "{} is not in the page", waits.cause);
    }
}
