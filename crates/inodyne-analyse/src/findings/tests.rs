//! What must hold for all findings together: which are reported, in which order, and that what costs nobody anything is not reported.

use std::collections::BTreeSet;

use inodyne_model::Nanos;
use inodyne_model::block::{Amount, Asker, BlockIo, Disk, Journal, JournalKind, Operation, Requests};
use inodyne_model::cause::Cause;
use inodyne_model::cure::{Change, PlaceChange};
use inodyne_model::disk_limits::{DiskLimits, Latency};
use inodyne_model::finding::{Finding, Prediction};
use inodyne_model::observed::{Sample, ThreadObserved, Wait};
use inodyne_model::page_cache::{Asked, PageCache, Used};
use inodyne_model::path::{Doing, DoingKind, WaitPlace};
use inodyne_model::recording::Recording;
use inodyne_model::sample::{self, ms};
use inodyne_model::stack::StackId;
use inodyne_model::syscall::SyscallStats;
use inodyne_model::trace::{PathCount, Paths, Trace};

use super::case::{Case, Time};
use super::on_path::OnPath;
use super::selection;
use crate::causes::Classifier;

fn finding(id: &str, now: u64, wall: u64, bound: bool) -> Finding {
    Finding {
        id: id.to_owned(),
        title: String::new(),
        place: 0,
        command: 0,
        trace: 0,
        share_of_wall: 1.0 - wall as f64 / now as f64,
        evidence: Vec::new(),
        avoidable_calls: None,
        predicted: Prediction { now_ns: Nanos(now), wall_ns: Nanos(wall), low_ns: Nanos(wall), high_ns: Nanos(wall) },
        cure: Vec::new(),
        cures: Vec::new(),
        bound,
        bound_if: None,
        proved: None,
    }
}

fn said(found: &[Finding]) -> Vec<String> {
    selection::select(found.to_vec()).into_iter().map(|finding| finding.id).collect()
}

#[test]
fn the_one_that_saves_most_stands_first_and_warmth_last() {
    let found = [
        finding("cold-metadata", 100, 10, false),
        finding("small-io", 100, 70, false),
        finding("sync-bound", 100, 40, false),
    ];
    assert_eq!(said(&found), ["sync-bound", "small-io", "cold-metadata"]);
}

#[test]
fn bounds_are_said_where_nothing_else_is_and_only_the_largest() {
    let bounds = [finding("run-queue-bound", 100, 60, true), finding("kernel-cpu-bound", 100, 30, true)];
    assert_eq!(said(&bounds), ["kernel-cpu-bound"]);
    let with_cure = [&bounds[..], &[finding("small-io", 100, 70, false)]].concat();
    assert_eq!(said(&with_cure), ["small-io"]);
    // A defect that costs nothing does not say where the time went.
    let cheap = Finding { avoidable_calls: Some(1_000), ..finding("failed-calls", 1_000, 999, false) };
    assert_eq!(said(&[&bounds[..], &[cheap]].concat()), ["kernel-cpu-bound", "failed-calls"]);
}

#[test]
fn what_another_explains_or_saves_nothing_is_not_said() {
    assert_eq!(said(&[finding("journal-wait", 100, 20, false), finding("sync-bound", 100, 40, false)]), ["sync-bound"]);
    assert!(said(&[finding("small-io", 100, 99, false)]).is_empty());
    // A bound stands for what it explains, beside whatever else there is to cure.
    let limited = [
        finding("io-limited", 100, 40, true),
        finding("sync-bound", 100, 40, false),
        finding("small-io", 100, 90, false),
    ];
    assert_eq!(said(&limited), ["io-limited", "small-io"]);
    assert_eq!(said(&[limited[0].clone(), limited[2].clone()]), ["small-io"]);
    // A defect of the program is said however little it costs.
    let cheap = Finding { avoidable_calls: Some(1_000), ..finding("failed-calls", 1_000, 999, false) };
    assert_eq!(said(&[cheap]), ["failed-calls"]);
    // What is small is not the reason for what is large.
    let locked = [
        finding("lock-contention", 100, 60, false),
        finding("queue-full", 100, 94, false),
        finding("cold-data", 100, 80, false),
    ];
    assert_eq!(said(&locked), ["lock-contention", "cold-data"]);
    assert_eq!(said(&[locked[0].clone(), finding("queue-full", 100, 70, false)]), ["queue-full"]);
    // What is not said itself explains nothing.
    let vain = [finding("small-requests", 1_000, 999, false), finding("single-stream", 1_000, 780, false)];
    assert_eq!(said(&vain), ["single-stream"]);
}

#[test]
fn the_rules_of_selection_name_findings_that_exist() {
    let all: BTreeSet<&str> = super::ids().collect();
    assert_eq!(all.len(), super::DIAGNOSES.len(), "each id once");
    for id in selection::named().chain(super::OF_CALLS.iter().copied()).chain(super::OF_WINDOW.iter().copied()) {
        assert!(all.contains(id), "{id}");
    }
}

/// A thread that syncs, in the foreground or in the background of a root that computes.
fn syncing(in_background: bool) -> Recording {
    let mut recording = sample::empty();
    recording.places = vec![sample::ext4("ext4", &[])];
    recording.commands = vec![sample::command("work")];
    let thread = if in_background { 2 } else { 1 };
    let waits = vec![sample::wait(thread, Some("fsync"), 0xa1, ms(900.0), 300)];
    let stacks = vec![sample::stack(
        0xa1,
        "__schedule schedule jbd2_log_wait_commit ext4_sync_file do_fsync __x64_sys_fsync do_syscall_64",
    )];
    let calls = sample::call("fsync", 300, &[], ms(5.0), ms(900.0));
    let mut threads = vec![sample::thread(thread, "work", ms(10.0), &[("fsync", ms(5.0))], &waits)];
    if in_background {
        threads.insert(0, sample::thread(1, "work", ms(915.0), &[], &waits));
    }
    let mut trace = Trace { wall_ns: ms(916.0), ..Trace::default() };
    trace.by_comm = vec![inodyne_model::syscall::CommCalls { comm: "work".to_owned(), syscalls: vec![calls] }];
    (trace.observed.threads, trace.observed.waits, trace.observed.stacks) = (threads, waits, stacks);
    trace.observed.started_ns = trace.observed.threads[0].born_ns;
    recording.traces = vec![trace];
    crate::explain(&mut recording);
    recording
}

#[test]
fn what_a_thread_in_the_background_waits_for_costs_nobody_anything() {
    let ids = |recording: Recording| recording.findings.into_iter().map(|finding| finding.id).collect::<Vec<_>>();
    assert_eq!(syncing(false).traces[0].ledger.rows[0].cause, Some(Cause::Journal));
    assert_eq!(ids(syncing(false)), ["sync-bound"]);
    assert_eq!(ids(syncing(true)), ["user-cpu-bound"]);
}

/// Writes that wait for syncs for `synced` of the 900 ms for which they wait at all.
fn writing_synced(synced: f64) -> Recording {
    let mut recording = sample::empty();
    recording.places = vec![sample::ext4("ext4", &[])];
    recording.commands = vec![sample::command("work")];
    let waits = vec![
        sample::wait(1, Some("pwrite64"), 0xa1, ms(synced), 10),
        sample::wait(1, Some("pwrite64"), 0xa2, ms(900.0 - synced), 290),
    ];
    let calls = sample::call("pwrite64", 300, &[], ms(5.0), ms(900.0));
    let root = sample::thread(1, "work", ms(10.0), &[("pwrite64", ms(5.0))], &waits);
    let mut trace = Trace { wall_ns: root.lifetime_ns(), ..Trace::default() };
    trace.by_comm = vec![inodyne_model::syscall::CommCalls { comm: "work".to_owned(), syscalls: vec![calls] }];
    trace.observed.started_ns = root.born_ns;
    trace.observed.stacks = vec![
        sample::stack(
            0xa1,
            "schedule jbd2_log_wait_commit ext4_sync_file vfs_fsync_range iomap_dio_complete vfs_write",
        ),
        // Blocks that were not written yet are marked as written, which nobody asked to be on the device.
        sample::stack(
            0xa2,
            "schedule wait_transaction_locked start_this_handle ext4_dio_write_end_io iomap_dio_complete vfs_write",
        ),
    ];
    (trace.observed.threads, trace.observed.waits) = (vec![root], waits);
    recording.traces = vec![trace];
    crate::explain(&mut recording);
    recording
}

#[test]
fn writes_are_synchronous_where_it_is_syncs_that_they_wait_for() {
    let is_said = |synced| writing_synced(synced).findings.iter().any(|finding| finding.id == "sync-bound");
    assert!(is_said(800.0));
    let said = writing_synced(800.0).findings.remove(0);
    assert!(said.evidence[0].starts_with("10 of 300 pwrite64 wait for a sync"), "{said:?}");
    assert_eq!(said.avoidable_calls, Some(9));
    assert!(!is_said(100.0), "one of many that go to another file");
    assert!(!is_said(0.0));
}

#[test]
fn a_write_that_waits_in_several_places_is_one_call() {
    let mut recording = writing_synced(800.0);
    let trace = &mut recording.traces[0];
    let stack =
        |id, wait: &str| sample::stack(id, &format!("schedule {wait} ext4_sync_file vfs_fsync_range vfs_write"));
    trace.observed.stacks.extend([stack(0xa3, "folio_wait_writeback"), stack(0xa4, "blkdev_issue_flush")]);
    let synced = trace.observed.waits.remove(0);
    let part = |stack, waker, count, ns| Wait {
        stack: StackId(stack),
        waker_stack: StackId(waker),
        count,
        ns: ms(ns),
        ..synced.clone()
    };
    // In one of them, two interrupts end the waits.
    let parts = [part(0xa1, 1, 6, 200.0), part(0xa1, 2, 4, 200.0), part(0xa3, 1, 8, 300.0), part(0xa4, 1, 8, 100.0)];
    trace.observed.waits.extend(parts);
    crate::explain(&mut recording);
    let said = recording.findings.iter().find(|finding| finding.id == "sync-bound").expect("it is found");
    assert!(said.evidence[0].starts_with("10 of 300 pwrite64 wait for a sync, 80.0 ms each"), "{said:?}");
    assert_eq!(said.avoidable_calls, Some(9));
}

/// A compiler that looks for its parts where they are not, 783 times, in a run of a quarter of a second; for `ready` of that time,
/// one of these calls had no CPU.
fn compiling(ready: Nanos) -> Recording {
    let mut recording = sample::empty();
    recording.places = vec![sample::ext4("ext4", &[])];
    recording.commands = vec![sample::command("cc")];
    let mut calls = sample::call("access", 943, &[("ENOENT", 783)], ms(1.0), Nanos::ZERO);
    (calls.runqueue_ns, calls.wall_ns, calls.failed_ns) = (ready, calls.wall_ns + ready, calls.failed_ns + ready);
    let mut root = sample::thread(1, "cc", ms(230.0), &[("access", ms(1.0))], &[]);
    (root.runqueue_ns, root.ended_ns) = (root.runqueue_ns + ready, root.ended_ns + ready);
    let mut trace = Trace { wall_ns: root.lifetime_ns(), ..Trace::default() };
    trace.by_comm = vec![inodyne_model::syscall::CommCalls { comm: "cc".to_owned(), syscalls: vec![calls] }];
    (trace.observed.started_ns, trace.observed.threads) = (root.born_ns, vec![root]);
    recording.traces = vec![trace];
    crate::explain(&mut recording);
    recording
}

#[test]
fn a_few_samples_do_not_say_that_the_kernel_works() {
    let said = |samples: u64| {
        let mut recording = compiling(Nanos::ZERO);
        let observed = &mut recording.traces[0].observed;
        observed.stacks = vec![sample::stack(7, "asm_exc_page_fault")];
        observed.samples = vec![Sample {
            thread: observed.threads[0].number,
            syscall: None,
            user_mode: false,
            stack: StackId(7),
            user_stack: StackId::default(),
            count: samples,
        }];
        crate::explain(&mut recording);
        recording.findings.into_iter().map(|finding| finding.id).collect::<Vec<_>>()
    };
    assert!(said(2).is_empty(), "{:?}", said(2));
    assert_eq!(said(200), ["kernel-cpu-bound"]);
}

#[test]
fn losing_the_cpu_in_a_failing_call_makes_the_failure_no_dearer() {
    for ready in [Nanos::ZERO, ms(20.0), ms(100.0)] {
        let ids: Vec<String> = compiling(ready).findings.into_iter().map(|finding| finding.id).collect();
        assert_eq!(ids, ["user-cpu-bound"], "{ready:?} without a CPU");
    }
}

/// The same program, of whose second a fifth goes into look-ups that find nothing; for `ready` of the rest they have no CPU.
fn searching(ready: Nanos) -> Recording {
    let mut recording = compiling(ready);
    let trace = &mut recording.traces[0];
    let mut calls = sample::call("access", 20_000, &[("ENOENT", 20_000)], ms(200.0), Nanos::ZERO);
    (calls.runqueue_ns, calls.wall_ns, calls.failed_ns) = (ready, calls.wall_ns + ready, calls.failed_ns + ready);
    let root = sample::thread(1, "cc", ms(800.0 - ready.as_secs_f64() * 1e3), &[("access", ms(200.0))], &[]);
    trace.observed.threads = vec![ThreadObserved { runqueue_ns: ready, ended_ns: root.born_ns + ms(1_000.0), ..root }];
    trace.by_comm[0].syscalls = vec![calls];
    trace.wall_ns = ms(1_000.0);
    crate::explain(&mut recording);
    recording
}

#[test]
fn waiting_for_a_cpu_is_left_out_of_a_share_once() {
    for ready in [Nanos::ZERO, ms(50.0), ms(200.0)] {
        let recording = searching(ready);
        let found = recording.findings.iter().find(|finding| finding.id == "failed-lookups").expect("it is found");
        assert!((found.share_of_wall - 0.2).abs() < 0.01, "{ready:?} without a CPU: {}", found.share_of_wall);
    }
}

/// A program that computes for 20 ms and makes these calls: name, how often, bytes each, time on a CPU and time waiting for a
/// FUSE server, in milliseconds.
fn moving(calls: &[(&str, u64, u64, f64, f64)]) -> Recording {
    let mut recording = sample::empty();
    recording.places = vec![sample::ext4("ext4", &[])];
    recording.commands = vec![sample::command("move")];
    let waits: Vec<_> = calls
        .iter()
        .filter(|call| call.4 > 0.0)
        .map(|(name, count, _, _, asked)| sample::wait(1, Some(name), 0xf1, ms(*asked), *count))
        .collect();
    let kernel: Vec<_> = calls.iter().map(|(name, _, _, cpu, _)| (*name, ms(*cpu))).collect();
    let root = sample::thread(1, "move", ms(20.0), &kernel, &waits);
    let mut trace = Trace { wall_ns: root.lifetime_ns(), ..Trace::default() };
    let stats = calls.iter().map(|(name, count, bytes, cpu, asked)| {
        let mut stats = sample::call(name, *count, &[], ms(*cpu), ms(*asked));
        stats.bytes = stats.bytes.map(|_| count * bytes);
        stats
    });
    let syscalls = stats.collect();
    trace.by_comm = vec![inodyne_model::syscall::CommCalls { comm: "move".to_owned(), syscalls }];
    trace.observed.started_ns = root.born_ns;
    trace.observed.stacks =
        vec![sample::stack(0xf1, "__schedule schedule request_wait_answer __fuse_simple_request fuse_file_read_iter")];
    (trace.observed.threads, trace.observed.waits) = (vec![root], waits);
    recording.traces = vec![trace];
    crate::explain(&mut recording);
    recording
}

/// The same program in a place with this file system, asking a server in this many calls, where it waits in this stack.
fn asking(fs: &str, stack: &str, stats: u64, writes: u64) -> inodyne_model::finding::Finding {
    asking_at(None, fs, stack, [stats, writes])
}

/// The same where the place was made from this description.
fn asking_at(spec: Option<&str>, fs: &str, stack: &str, [stats, writes]: [u64; 2]) -> inodyne_model::finding::Finding {
    asking_of(spec, fs, stack, [stats, writes], 0)
}

/// The same where `misses` of the stats found nothing.
fn asking_of(
    spec: Option<&str>,
    fs: &str,
    stack: &str,
    [stats, writes]: [u64; 2],
    misses: u64,
) -> inodyne_model::finding::Finding {
    let time = |calls: u64| calls as f64 / 5.0;
    let calls = [("newfstatat", stats, 0, 5.0, time(stats)), ("write", writes, 10, 5.0, time(writes))];
    let mut recording = moving(&calls);
    recording.findings.clear();
    recording.places[0].fs = fs.to_owned();
    recording.places[0].spec = spec.map(str::to_owned);
    recording.traces[0].observed.stacks = vec![sample::stack(0xf1, stack)];
    if misses > 0 {
        let stat = &mut recording.traces[0].by_comm[0].syscalls[0];
        (stat.errors, stat.errors_by_errno) = (misses, [("ENOENT".to_owned(), misses)].into());
    }
    crate::explain(&mut recording);
    let mut said = recording.findings.into_iter().filter(|finding| finding.id == "round-trips");
    said.next().unwrap_or_else(|| panic!("nothing is said of {fs}"))
}

#[test]
fn who_is_asked_is_named() {
    let fuse = "__schedule schedule request_wait_answer __fuse_simple_request fuse_dentry_revalidate";
    let ninep = "__schedule schedule p9_client_rpc p9_client_getattr_dotl v9fs_vfs_getattr_dotl";
    for (fs, stack, server, cure) in [
        ("fuse.sshfs", fuse, "a FUSE server", "entry_timeout"),
        ("virtiofs", fuse, "the host of this virtual machine", "--cache always"),
        ("9p", ninep, "a server elsewhere", "cache=loose"),
        ("fuse.inodyne", fuse, "the host of this share", "several files at once"),
    ] {
        let said = asking(fs, stack, 1000, 0);
        assert!(said.title.contains(server), "{}", said.title);
        assert!(format!("{:?}", said.cure).contains(cure), "{:?}", said.cure);
        assert_eq!(said.bound, fs == "fuse.inodyne", "its guest's kernel caches already");
    }
}

#[test]
fn time_outs_are_advised_for_what_is_asked_again() {
    let again = "__schedule schedule request_wait_answer __fuse_simple_request fuse_dentry_revalidate";
    let first = "__schedule schedule request_wait_answer __fuse_simple_request fuse_lookup_name fuse_lookup";
    let cached = Change::Place(PlaceChange::Mount("entry_timeout=60,attr_timeout=60".to_owned()));
    for spec in ["fuse", "fuse:[xfs],mount=max_read=4096"] {
        let said = asking_at(Some(spec), "fuse", again, [1000, 0]);
        assert_eq!((&said.cures[0].change, said.bound), (&cached, false), "{said:?}");
        let said = asking_at(Some(spec), "fuse", first, [1000, 0]);
        assert!(said.bound && said.cure[0].contains("readdirplus"), "no cache answers the first time: {said:?}");
        assert!(said.cures.iter().all(|cure| cure.change == Change::advice()), "{said:?}");
    }
    // Other servers take no options of ours; a share's guest caches already.
    assert_eq!(asking("fuse.sshfs", again, 1000, 0).cures[0].change, Change::advice());
    assert!(asking_at(Some("share:ext4"), "fuse", again, [1000, 0]).bound);
}

#[test]
fn names_that_are_not_there_are_asked_for_again_unless_the_server_lets_them_be_kept() {
    let first = "__schedule schedule request_wait_answer __fuse_simple_request fuse_lookup_name fuse_lookup";
    let said = asking_of(Some("fuse"), "fuse", first, [400, 0], 390);
    assert!(said.bound && said.cure[0].contains("mount=negative_timeout=60"), "{said:?}");
    assert!(said.evidence.iter().any(|line| line.starts_with("390 calls found nothing")), "{said:?}");
    let said = asking_of(None, "fuse.sshfs", first, [400, 0], 390);
    assert!(said.cures[0].change == Change::advice() && said.cure[0].contains("negative_timeout"), "{said:?}");
    // Few of them; looked for in other file systems; kept already.
    let opens = "__schedule schedule request_wait_answer __fuse_simple_request fuse_file_open fuse_open";
    for (spec, stack, misses) in
        [("fuse", first, 100), ("fuse", opens, 390), ("fuse:tmpfs,mount=negative_timeout=9", first, 390)]
    {
        let said = asking_of(Some(spec), "fuse", stack, [400, 0], misses);
        assert!(!format!("{:?} {:?}", said.cure, said.evidence).contains("negative_timeout"), "{said:?}");
    }
}

#[test]
fn opening_a_file_of_nfs_4_is_asked_whatever_the_cache() {
    let opens = "__schedule schedule rpc_wait_bit_killable nfs4_do_open nfs4_atomic_open nfs_atomic_open path_openat";
    let said = asking("nfs4", opens, 1000, 0);
    assert!(said.bound && said.cure.len() == 1, "{said:?}");
    let attributes = "__schedule schedule rpc_wait_bit_killable nfs4_proc_getattr __nfs_revalidate_inode nfs_getattr";
    assert!(!asking("nfs4", attributes, 1000, 0).bound);
}

#[test]
fn no_cache_is_advised_where_files_are_changed() {
    let fuse = "__schedule schedule request_wait_answer __fuse_simple_request fuse_dentry_revalidate";
    let said = asking("fuse.sshfs", fuse, 100, 900);
    assert!(said.bound && said.cure.len() == 1 && said.cure[0].contains("several files at once"), "{said:?}");
    assert!(said.evidence.iter().any(|line| line.starts_with("no cache answers 90% of that")), "{said:?}");
    // As much as its title says could go, and what others took meanwhile could not.
    let left = said.predicted.wall_ns.share_of(said.predicted.now_ns);
    assert!((left - (1.0 - said.share_of_wall)).abs() < 0.01, "{left} {said:?}");
    // Where most of it asks, only that part is predicted to go.
    let [all, most] = [(1000, 0), (600, 400)].map(|(stats, writes)| asking("fuse.sshfs", fuse, stats, writes));
    assert!(!most.bound && most.cure.len() == 3);
    let saved = |said: &inodyne_model::finding::Finding| (said.predicted.now_ns - said.predicted.wall_ns).0 as f64;
    assert!((saved(&most) / saved(&all) - 0.6).abs() < 0.02, "{} of {}", saved(&most), saved(&all));
}

#[test]
fn what_is_small_is_told_by_calls_for_each_file_and_by_their_cost() {
    let is_small =
        |calls: &[(&str, u64, u64, f64, f64)]| moving(calls).findings.iter().any(|finding| finding.id == "small-io");
    // 9,000 files of 800 bytes copied: two reads and a write for each, which no buffer makes fewer.
    let copy = [("openat", 18_000, 0, 30.0, 0.0), ("read", 18_000, 400, 9.0, 0.0), ("write", 9_000, 800, 12.0, 0.0)];
    assert!(!is_small(&copy));
    // A kibibyte at a time into one file, and a byte at a time.
    assert!(is_small(&[("openat", 3, 0, 0.1, 0.0), ("write", 100_000, 1_024, 45.0, 0.0)]));
    assert!(is_small(&[("openat", 3, 0, 0.1, 0.0), ("write", 200_000, 1, 45.0, 0.0)]));
    // A page at a time, and calls whose time is the copying.
    assert!(!is_small(&[("openat", 3, 0, 0.1, 0.0), ("write", 100_000, 4_096, 90.0, 0.0)]));
    assert!(!is_small(&[("openat", 3, 0, 0.1, 0.0), ("read", 100_000, 3_000, 40.0, 0.0)]));
    // The same page where each call is a message to a server, and where it comes from the cache.
    assert!(is_small(&[("openat", 3, 0, 0.1, 0.0), ("read", 5_000, 4_096, 10.0, 700.0)]));
    assert!(!is_small(&[("openat", 3, 0, 0.1, 0.0), ("read", 5_000, 4_096, 10.0, 0.0)]));
}

/// Whether the small messages of a program that is sampled in this function are reported as small I/O.
fn is_small_io(function: &str, pipe_waits: u64) -> bool {
    let mut recording = moving(&[("read", 100_000, 10, 40.0, 0.0), ("write", 100_000, 10, 40.0, 0.0)]);
    recording.findings.clear();
    let observed = &mut recording.traces[0].observed;
    observed.sample_hz = 997;
    observed.stacks = vec![
        sample::stack(7, &format!("{function} vfs_write ksys_write")),
        sample::stack(8, "schedule anon_pipe_read vfs_read ksys_read"),
    ];
    let of = |syscall: &str| Sample {
        thread: observed.threads[0].number,
        syscall: Some(syscall.to_owned()),
        user_mode: false,
        stack: StackId(7),
        user_stack: StackId::default(),
        count: 40,
    };
    observed.samples = vec![of("read"), of("write")];
    if pipe_waits > 0 {
        observed.waits = vec![sample::wait(1, Some("read"), 8, ms(1.0), pipe_waits)];
    }
    crate::explain(&mut recording);
    recording.findings.iter().any(|finding| finding.id == "small-io")
}

#[test]
fn no_buffer_is_advised_for_messages() {
    assert!(is_small_io("ext4_file_write_iter", 0));
    assert!(!is_small_io("sock_write_iter", 0) && !is_small_io("eventfd_write", 0));
    // A server of FUSE, a tunnel, an event loop.
    assert!(["fuse_dev_do_read", "tun_chr_read_iter", "timerfd_read_iter"].iter().all(|one| !is_small_io(one, 0)));
    // A program that writes letter by letter into a pipe is helped by a buffer, unless somebody answers each letter.
    assert!(is_small_io("anon_pipe_write", 100));
    assert!(!is_small_io("anon_pipe_write", 90_000));
}

/// A program that reads a file: how many requests, of how many KiB each, how many of them in order, by how many threads, 4 ms each, and
/// how many files it opens.
fn reading(requests: u64, kib: u64, in_order: u64, threads: u32, files: u64) -> Recording {
    let mut recording = sample::empty();
    recording.places = vec![sample::ext4("ext4", &[])];
    recording.commands = vec![sample::command("read")];
    let each = ms(4.0 * requests as f64 / f64::from(threads));
    let waits: Vec<_> = (1..=threads)
        .map(|number| sample::wait(number, Some("read"), 0xd1, each, requests / u64::from(threads)))
        .collect();
    let thread = |number| sample::thread(number, "read", ms(10.0), &[("read", ms(5.0))], &waits);
    let mut trace = Trace { wall_ns: each + ms(20.0), ..Trace::default() };
    let mut calls = sample::call("read", requests, &[], ms(5.0), ms(4.0 * requests as f64));
    calls.bytes = Some((requests * kib) << 10);
    let opens = sample::call("openat", files, &[], ms(0.1), Nanos::ZERO);
    trace.by_comm = vec![inodyne_model::syscall::CommCalls { comm: "read".to_owned(), syscalls: vec![calls, opens] }];
    trace.observed.threads = (1..=threads).map(thread).collect();
    trace.observed.stacks =
        vec![sample::stack(0xd1, "__schedule schedule io_schedule folio_wait_bit_common filemap_get_pages")];
    (trace.observed.waits, trace.observed.started_ns) = (waits, trace.observed.threads[0].born_ns);
    let amount = Amount {
        requests,
        bytes: (requests * kib) << 10,
        sequential: in_order,
        timed: requests,
        device_ns: ms(4.0 * requests as f64),
        ..Amount::default()
    };
    let disk = || "7:0".to_owned();
    let asked = Requests { disk: disk(), stack: StackId(0xd1), asker: Asker::Command, amount, ..Requests::default() };
    let disks = vec![Disk { number: disk(), name: "loop0".to_owned(), busy_ns: each, ..Disk::default() }];
    trace.block = Some(BlockIo { disks, requests: vec![asked], ..BlockIo::default() });
    recording.traces = vec![trace];
    crate::explain(&mut recording);
    recording
}

#[test]
fn what_is_asked_of_a_device_is_told_apart_by_size_order_and_file() {
    let said = |recording: Recording| recording.findings.into_iter().map(|finding| finding.id).collect::<Vec<_>>();
    // One file in order, in pages; the same in large pieces, where each is worth its wait.
    assert_eq!(said(reading(400, 4, 396, 1, 1)), ["small-requests"]);
    assert_eq!(said(reading(400, 128, 396, 1, 1)), ["cold-data"]);
    // At random, by one or by several; in an order about which there is nothing to say.
    assert_eq!(said(reading(400, 4, 3, 1, 1)), ["random-io"]);
    assert_eq!(said(reading(400, 4, 3, 2, 1)), ["random-io"]);
    assert_eq!(said(reading(400, 4, 150, 1, 1)), ["single-stream"]);
    // What is written past the cache would not be quicker for being in memory.
    let mut direct = reading(400, 4, 3, 1, 1);
    direct.findings.clear();
    let trace = &mut direct.traces[0];
    let past = "__schedule schedule io_schedule blk_io_schedule __iomap_dio_rw iomap_dio_rw";
    trace.observed.stacks = vec![sample::stack(0xd1, &format!("{past} ext4_file_read_iter"))];
    let mut written = direct.clone();
    written.traces[0].observed.stacks = vec![sample::stack(0xd1, &format!("{past} ext4_file_write_iter"))];
    written.traces[0].observed.waits.iter_mut().for_each(|wait| wait.syscall = Some("pwrite64".to_owned()));
    crate::explain(&mut direct);
    crate::explain(&mut written);
    assert_eq!(said(direct), ["random-io"]);
    assert!(!said(written).contains(&"random-io".to_owned()));
    // Many small files, wherever they lie.
    assert_eq!(said(reading(400, 4, 396, 1, 400)), ["single-stream"]);
    assert_eq!(said(reading(400, 4, 3, 1, 400)), ["single-stream"]);
    // A few.
    assert!(said(reading(90, 4, 3, 1, 1)).is_empty());
}

#[test]
fn four_workers_divide_the_waits_and_as_many_as_there_are_cpus_the_work() {
    // 400 requests of 4 ms each, of which 10 µs take turns; 20 ms on a CPU. A tenth is lost.
    let saved_ms = |cpus: u32| {
        let mut recording = reading(400, 4, 396, 1, 400);
        (recording.host.cpus, recording.findings) = (cpus, Vec::new());
        crate::explain(&mut recording);
        let predicted = &recording.findings[0].predicted;
        predicted.now_ns.saturating_sub(predicted.wall_ns).as_secs_f64() * 1000.0
    };
    let expected = |cpus: f64| 0.9 * (0.75 * (1600.0 - 4.0) + (1.0 - 1.0 / cpus) * 20.0);
    let [one, two, eight] = [1, 2, 8].map(saved_ms);
    assert!((one - expected(1.0)).abs() < 1.0, "{one} {}", expected(1.0));
    assert!((two - expected(2.0)).abs() < 1.0, "{two} {}", expected(2.0));
    assert!((eight - expected(4.0)).abs() < 1.0, "{eight} {}", expected(4.0));
}

#[test]
fn reading_ahead_in_vain_is_said_where_smaller_requests_would_be_quicker() {
    // 400 requests of 512 KiB, 4 ms each, by page faults: so many pages asked for, mapped beside those, and read in vain; a single page
    // takes so many milliseconds.
    let said = |used: u64, beside: u64, vain: u64, page_ms: Option<f64>| {
        let mut recording = reading(400, 512, 3, 1, 1);
        let trace = &mut recording.traces[0];
        let of_brought = Used {
            distinct_bytes: (used + beside + vain) * 4096,
            used_bytes: used * 4096,
            beside_bytes: beside * 4096,
        };
        trace.page_cache =
            Some(PageCache { asked: Some(Asked { of_brought, ..Asked::default() }), ..PageCache::default() });
        trace.block.as_mut().expect("it has one").disks[0].limits = page_ms.map(|page_ms| {
            let read = Latency { p50_ns: ms(page_ms), p99_ns: ms(page_ms) };
            DiskLimits { read, ..sample::disk_limits() }
        });
        crate::explain(&mut recording);
        let found = recording.findings.into_iter().find(|finding| finding.id == "readahead-wasted");
        found.map(|finding| (finding.predicted.saving(), finding.cures[0].change.clone()))
    };
    let at =
        |kib: &str| Change::Setting { file: "/sys/block/LOOP/queue/read_ahead_kb".to_owned(), value: kib.to_owned() };
    // Single pages: 400 times 0.2 ms remain of 400 times 4 ms.
    let (saving, change) = said(400, 0, 50_000, Some(0.2)).expect("it is said");
    assert!((0.92..0.96).contains(&saving) && change == at("0"), "{saving} {change:?}");
    // Pages mapped beside them may be needed: requests of 64 KiB take 0.65 ms.
    let (saving, change) = said(400, 5_600, 45_200, Some(0.2)).expect("it is said");
    assert!((0.80..0.86).contains(&saving) && change == at("64"), "{saving} {change:?}");
    // More requests than now, each nearly as slow; most of use; and a device about which nothing is known.
    assert_eq!(said(800, 0, 50_000, Some(3.9)), None);
    assert_eq!(said(40_000, 0, 11_200, Some(0.02)), None);
    assert_eq!(said(400, 0, 50_000, None), None);
}

#[test]
fn a_limit_explains_waiting_only_where_it_was_reached_while_any_thread_waited() {
    // 1.6 MB read by so many threads, which wait for 1.6 s in total, within so much time; for how much of that the disk was busy, if that is
    // known; and what is allowed in a second.
    let said = |threads: u32, wall_ms: f64, busy_ms: Option<f64>, allowed: u64| {
        let mut recording = reading(400, 4, 396, threads, 1);
        recording.findings.clear();
        let trace = &mut recording.traces[0];
        trace.wall_ns = ms(wall_ms);
        match (busy_ms, &mut trace.block) {
            (Some(busy_ms), Some(block)) => block.disks[0].busy_ns = ms(busy_ms),
            (_, block) => *block = None,
        }
        trace.limits = vec![inodyne_model::limit::Limit {
            file: "/sys/fs/cgroup/build/io.max".to_owned(),
            kind: inodyne_model::limit::LimitKind::ReadBytes,
            device: Some("7:0".to_owned()),
            value: allowed,
            used: 1_638_400,
            held_ns: Nanos::ZERO,
        }];
        crate::explain(&mut recording);
        recording.findings.iter().any(|finding| finding.id == "io-limited")
    };
    assert!(said(1, 8_000.0, Some(1_600.0), 1_000_000));
    assert!(said(8, 1_000.0, Some(200.0), 1_500_000));
    // A fifth of the path waits, but some thread or other waits all the time, in which much more could have come.
    assert!(!said(8, 1_000.0, Some(200.0), 4_000_000));
    // Two thirds of what is allowed: of a disk that is idle, it is as much as a low limit lets through.
    assert!(said(1, 1_600.0, Some(100.0), 1_600_000));
    assert!(!said(1, 1_600.0, Some(1_600.0), 1_600_000) && !said(1, 1_600.0, None, 1_600_000));
    assert!(!said(1, 1_600.0, Some(100.0), 4_000_000));
}

#[test]
fn what_a_disk_can_do_is_evidence_where_it_was_measured() {
    let evidence = |measured: bool| {
        let mut recording = reading(400, 4, 150, 1, 1);
        let block = recording.traces[0].block.as_mut().expect("it has one");
        block.disks[0].limits = measured.then(sample::disk_limits);
        crate::explain(&mut recording);
        recording.findings[0].evidence.join("\n")
    };
    let said = "loop0 can answer 6,012 reads a second, 32 at once, and one alone in 190 µs, as measured earlier; here it did 4% of what it can do";
    assert!(evidence(true).contains(said), "{}", evidence(true));
    assert!(!evidence(false).contains("as measured earlier"));
}

#[test]
fn what_a_journal_of_data_writes_twice_is_said_and_what_one_of_metadata_adds_is_not() {
    // Megabytes that calls wrote, and that the device wrote: to the journal, and where they belong; and for whom.
    let said_of = |mount: &str, asker: Asker, wrote: u64, journal: u64, data: u64| {
        let mut recording = writing(8);
        recording.places[0].mount_options = format!("rw,{mount}");
        let trace = &mut recording.traces[0];
        let calls = &mut trace.by_comm[0].syscalls[0];
        (calls.name, calls.bytes) = ("write".to_owned(), Some(wrote << 20));
        let commit = "submit_bio jbd2_journal_commit_transaction kjournald2";
        trace.observed.stacks.extend([sample::stack(0xd2, commit), sample::stack(0xd3, "submit_bio wb_writeback")]);
        let block = trace.block.as_mut().expect("it has one");
        let written = |stack, megabytes: u64| Requests {
            operation: Operation::Write,
            stack: StackId(stack),
            asker,
            amount: Amount { bytes: megabytes << 20, ..block.requests[0].amount.clone() },
            ..block.requests[0].clone()
        };
        block.requests = vec![written(0xd2, journal), written(0xd3, data)];
        crate::explain(&mut recording);
        recording.findings.first().map(|finding| (finding.id.clone(), finding.cures[0].change.clone()))
    };
    let said = |wrote, journal, data| said_of("data=journal", Asker::Kernel, wrote, journal, data);
    let ordered = Change::Place(PlaceChange::Mount("data=ordered".to_owned()));
    assert_eq!(said(100, 101, 100), Some(("write-amplification".to_owned(), ordered)));
    // As much goes there for the metadata of many small files, and for what others sync.
    for (mount, asker) in [("data=ordered", Asker::Kernel), ("data=journal", Asker::Other)] {
        let found = said_of(mount, asker, 100, 101, 100).map(|(id, _)| id);
        assert_ne!(found.as_deref(), Some("write-amplification"), "{mount} {asker:?}");
    }
    for (wrote, journal, data) in [(100, 3, 100), (100, 3, 300), (4, 8, 4)] {
        let found = said(wrote, journal, data).map(|(id, _)| id);
        assert_ne!(found.as_deref(), Some("write-amplification"), "{wrote} {journal} {data}");
    }
}

/// A thread makes directories and waits for the journal of its file system, which is committed `commits` times, `blocks` each; the
/// command's own threads sync `synced` times.
fn committed(stack: &str, commits: u64, synced: u64, blocks: u64) -> Recording {
    let mut recording = reading(400, 4, 3, 1, 1);
    recording.places[0] = sample::ext4("ext4", &[]);
    let journal = sample::journal();
    recording.places[0].source = format!("/dev/{}", journal.name);
    let trace = &mut recording.traces[0];
    trace.observed.stacks = vec![sample::stack(0xd1, stack)];
    trace.observed.waits.iter_mut().for_each(|wait| wait.syscall = Some("mkdir".to_owned()));
    let calls = &mut trace.by_comm[0].syscalls;
    calls[0].name = "mkdir".to_owned();
    calls.push(sample::call("fsync", synced, &[], ms(0.1), Nanos::ZERO));
    trace.journals = vec![Journal { commits, blocks: Some(blocks * commits), ..journal }];
    crate::explain(&mut recording);
    recording
}

#[test]
fn a_journal_that_is_committed_again_and_again_is_told_from_one_that_is_full() {
    const LOCKED: &str =
        "__schedule schedule io_schedule bit_wait_io do_get_write_access jbd2_journal_get_write_access";
    const FULL: &str = "__schedule schedule __jbd2_log_wait_for_space add_transaction_credits start_this_handle";
    let said = |recording: &Recording| recording.findings.iter().map(|one| one.id.clone()).collect::<Vec<_>>();
    let evidence = |recording: &Recording| recording.findings[0].evidence.join("\n");
    let storm = committed(LOCKED, 400, 0, 12);
    assert_eq!(said(&storm), ["commit-storm"]);
    assert!(evidence(&storm).contains("the command does not sync"), "{}", evidence(&storm));
    assert!(evidence(&storm).contains("the journal of loop0 was committed 400 times, every "), "{}", evidence(&storm));
    let own = committed(LOCKED, 400, 390, 12);
    assert_eq!(said(&own), ["commit-storm"]);
    assert!(evidence(&own).contains("the command's own threads sync, 390 times"), "{}", evidence(&own));
    // Transactions that may have been full; with many syncs of its own they were not.
    assert_eq!(said(&committed(LOCKED, 400, 0, 1_000)), ["journal-wait"]);
    assert_eq!(said(&committed(LOCKED, 400, 390, 1_000)), ["commit-storm"]);
    // Waiting for a transaction that is closed for a commit is not waiting for room.
    const CLOSED: &str = "__schedule schedule wait_transaction_locked add_transaction_credits start_this_handle";
    assert_eq!(said(&committed(CLOSED, 400, 0, 12)), ["commit-storm"]);
    let (closed, full) = (committed(CLOSED, 5, 0, 12), committed(FULL, 5, 0, 12));
    assert_eq!([&closed, &full].map(said), [["journal-wait"], ["journal-wait"]]);
    assert_eq!([&closed, &full].map(|one| evidence(one).contains("for room in the journal")), [false, true]);
    // Few commits; just as many, but the wait is for room; and none at all of this file system.
    assert_eq!(said(&committed(LOCKED, 5, 0, 12)), ["journal-wait"]);
    assert_eq!(said(&committed(FULL, 400, 0, 12)), ["journal-wait"]);
    let mut elsewhere = committed(LOCKED, 400, 0, 12);
    elsewhere.traces[0].journals[0].kind = JournalKind::XfsLog;
    crate::explain(&mut elsewhere);
    assert_eq!(said(&elsewhere), ["journal-wait"]);
}

#[test]
fn what_programs_wait_for_as_they_are_loaded_is_no_metadata() {
    const READING: &str = "__schedule schedule io_schedule bit_wait_io __ext4_get_inode_loc ext4_lookup";
    let mut recording = sample::empty();
    recording.places = vec![sample::ext4("ext4", &[])];
    recording.commands = vec![sample::command("work")];
    let waits = [("newfstatat", 60.0, 60), ("execve", 40.0, 20)];
    let waits = waits.map(|(call, ns, count)| sample::wait(1, Some(call), 0xe1, ms(ns), count)).to_vec();
    let root = sample::thread(1, "work", ms(99.6), &[], &waits);
    let mut trace = Trace { wall_ns: root.lifetime_ns(), ..Trace::default() };
    let calls = waits
        .iter()
        .map(|wait| sample::call(wait.syscall.as_deref().expect("in a call"), wait.count, &[], Nanos::ZERO, wait.ns));
    let syscalls = calls.collect();
    trace.by_comm = vec![inodyne_model::syscall::CommCalls { comm: "work".to_owned(), syscalls }];
    trace.observed.started_ns = root.born_ns;
    trace.observed.stacks = vec![sample::stack(0xe1, READING)];
    (trace.observed.threads, trace.observed.waits) = (vec![root], waits);
    recording.traces = vec![trace];
    crate::explain(&mut recording);
    let found = recording.findings.iter().find(|finding| finding.id == "cold-metadata").expect("it is found");
    assert!((found.share_of_wall - 0.3).abs() < 0.01, "{found:?}");
    assert!(!found.evidence.iter().any(|line| line.starts_with("execve waited")), "{found:?}");
    assert!(found.evidence.iter().any(|line| line.starts_with("40.0 ms more")), "{found:?}");
    assert!(found.predicted.wall_ns.0.abs_diff(ms(100.0).0) < ms(1.0).0, "{found:?}");
    // More is saved than is waited: without that, the prediction would not agree with the title.
    assert!(found.title.ends_with(": 30% of the time, 50% with all that goes with it"), "{found:?}");
}

/// A shell that starts as many processes of one program as of another, one after the other, each of which does next to nothing.
fn scripting(others: u32) -> Recording {
    let mut recording = sample::empty();
    recording.places = vec![sample::ext4("ext4", &[])];
    recording.commands = vec![sample::command("sh")];
    let mut root = sample::thread(1, "sh", ms(1.0), &[("clone", ms(f64::from(100 + others)))], &[]);
    let mut threads = Vec::new();
    let mut programs = Vec::new();
    let mut at = root.born_ns;
    for number in 2..102 + others {
        let name = if number < 102 { "sed" } else { "awk" };
        let child = sample::thread(number, name, ms(1.0), &[("execve", ms(if number < 102 { 1.0 } else { 0.9 }))], &[]);
        let lifetime = child.lifetime_ns();
        let child = ThreadObserved { parent: 1, born_ns: at, ended_ns: at + lifetime, ..child };
        at += lifetime;
        programs.push(sample::program(&child, name));
        threads.push(child);
    }
    root.ended_ns = at + ms(f64::from(100 + others));
    root.blocked_ns = at.saturating_sub(root.born_ns);
    let mut trace = Trace { wall_ns: root.lifetime_ns(), ..Trace::default() };
    trace.observed.started_ns = root.born_ns;
    threads.insert(0, root);
    (trace.observed.threads, trace.observed.programs) = (threads, programs);
    recording.traces = vec![trace];
    crate::explain(&mut recording);
    recording
}

#[test]
fn a_storm_of_one_program_is_not_charged_with_making_the_processes_of_another() {
    let saved = |others: u32| {
        let recording = scripting(others);
        let found = recording.findings.iter().find(|finding| finding.id == "process-storm").expect("it is found");
        assert!(found.title.contains("sed"), "{found:?}");
        found.predicted.now_ns.saturating_sub(found.predicted.wall_ns)
    };
    let (alone, beside) = (saved(0), saved(100));
    assert!(beside.0.abs_diff(alone.0) < alone.0 / 20, "{alone:?} {beside:?}");
}

/// The same threads wait until what they wrote is on the device.
fn writing(threads: u32) -> Recording {
    let mut recording = reading(800, 128, 3, threads, 1);
    let trace = &mut recording.traces[0];
    let stack = "__schedule schedule io_schedule folio_wait_writeback truncate_inode_pages_range";
    trace.observed.stacks = vec![sample::stack(0xd1, stack)];
    trace.observed.waits.iter_mut().for_each(|wait| wait.syscall = Some("ftruncate".to_owned()));
    crate::explain(&mut recording);
    recording
}

#[test]
fn a_device_is_saturated_only_with_several_requests_at_once() {
    let said = |recording: Recording| recording.findings.into_iter().map(|finding| finding.id).collect::<Vec<_>>();
    assert_eq!(said(writing(8)), ["device-saturated"]);
    assert!(said(writing(1)).is_empty());
    // A warm cache is a cure, and is reported before a bound.
    assert_eq!(said(reading(800, 128, 3, 8, 1)), ["cold-data"]);
}

#[test]
fn what_a_bound_says_does_not_depend_on_how_busy_the_machine_was() {
    let bound = |ready: Nanos| {
        let mut recording = compiling(Nanos::ZERO);
        // Untraced, without load: as long as the program takes by itself.
        recording.push_run(sample::run(0, Default::default(), false, ms(231.0)));
        let trace = &mut recording.traces[0];
        let root = &mut trace.observed.threads[0];
        (root.runqueue_ns, root.ended_ns) = (root.runqueue_ns + ready, root.ended_ns + ready);
        trace.wall_ns = root.lifetime_ns();
        crate::explain(&mut recording);
        let bound = recording.findings.iter().find(|finding| finding.id == "user-cpu-bound").expect("it computes");
        bound.predicted.wall_ns.as_secs_f64()
    };
    let (quiet, busy) = (bound(Nanos::ZERO), bound(ms(200.0)));
    assert!((quiet / busy - 1.0).abs() < 0.01, "{quiet} {busy}");
}

#[test]
fn a_prediction_lies_in_its_interval_and_begins_with_the_time_now() {
    for recording in [syncing(false), syncing(true), {
        let mut recording = sample::find_recording();
        crate::explain(&mut recording);
        recording
    }] {
        assert!(!recording.findings.is_empty());
        for finding in &recording.findings {
            let Prediction { now_ns, wall_ns, low_ns, high_ns } = finding.predicted;
            assert!(low_ns <= wall_ns && wall_ns <= high_ns && wall_ns <= now_ns, "{finding:?}");
            assert!((0.0..=1.0).contains(&finding.share_of_wall), "{finding:?}");
        }
    }
}

/// The typed cures of the first finding with this name.
fn cures(recording: Recording, id: &str) -> Vec<Change> {
    let finding = recording.findings.into_iter().find(|finding| finding.id == id).expect("it is found");
    assert_eq!(finding.cures.len(), finding.cure.len(), "one for each line: {finding:?}");
    assert!(finding.cures.iter().all(|cure| cure.answers < finding.evidence.len()), "{finding:?}");
    finding.cures.into_iter().map(|cure| cure.change).collect()
}

#[test]
fn cures_say_what_a_program_can_do_and_which_evidence_they_answer() {
    let mut recording = sample::find_recording();
    crate::explain(&mut recording);
    let types = Change::Place(PlaceChange::Feature("filetype".to_owned()));
    assert_eq!(cures(recording, "dtype-missing"), [types, Change::advice()]);
    let volatile = Change::Place(PlaceChange::Over("volatile".to_owned()));
    assert_eq!(cures(syncing(false), "sync-bound")[2], volatile);
    // What waits in writes waits in an overlay as well.
    let mut direct = syncing(false);
    for trace in &mut direct.traces {
        trace.by_comm[0].syscalls[0].name = "pwrite64".to_owned();
        trace.observed.waits[0].syscall = Some("pwrite64".to_owned());
        let kernel = &mut trace.observed.threads[0].kernel_ns;
        let ns = kernel.remove("fsync").expect("it synced");
        kernel.insert("pwrite64".to_owned(), ns);
    }
    crate::explain(&mut direct);
    // It makes no syncs that could be fdatasync instead.
    let [_, Change::Advice { because: Some(why) }] = &cures(direct, "sync-bound")[..] else {
        panic!("two, the last one with a reason")
    };
    assert!(why.contains("synchronous"), "{why}");
}

#[test]
fn a_setting_of_the_place_is_taken_back_where_it_is_what_limits() {
    const TAGS: &str = "__schedule schedule io_schedule blk_mq_get_tag __blk_mq_alloc_requests";
    let throttled = |file: &str, stack: &str| {
        let mut recording = syncing(false);
        recording.places[0].settings.insert(file.to_owned(), "4".to_owned());
        let trace = &mut recording.traces[0];
        trace.observed.stacks = vec![sample::stack(0xa1, stack)];
        trace.by_comm[0].syscalls[0].name = "write".to_owned();
        trace.observed.waits[0].syscall = Some("write".to_owned());
        crate::explain(&mut recording);
        cures(recording, "queue-full").remove(0)
    };
    let names = vec!["nr_requests".to_owned()];
    let taken_back = Change::Place(PlaceChange::WithoutSettings(names));
    assert_eq!(throttled("/sys/block/loop3/queue/nr_requests", TAGS), taken_back);
    assert_eq!(throttled("/proc/sys/vm/swappiness", TAGS), Change::advice());
    // A longer queue does not help where a cgroup's limit is what is waited for.
    const LIMIT: &str = "__schedule schedule io_schedule ioc_rqos_throttle __rq_qos_throttle blk_mq_submit_bio";
    assert_eq!(throttled("/sys/block/loop3/queue/nr_requests", LIMIT), Change::advice());
    const DEBT: &str = "__schedule schedule schedule_hrtimeout_range_clock blkcg_maybe_throttle_current";
    assert_eq!(throttled("/sys/block/loop3/queue/nr_requests", DEBT), Change::advice());
}

#[test]
fn a_score_stays_when_a_recording_is_explained_again() {
    let mut recording = syncing(false);
    let predicted = Prediction { now_ns: ms(2.0), wall_ns: ms(1.0), low_ns: ms(0.9), high_ns: ms(1.1) };
    let proof = crate::score(&predicted, &[(ms(2.0), ms(1.0))], "tried");
    (recording.findings[0].predicted, recording.findings[0].proved) = (predicted, proof.clone());
    crate::explain(&mut recording);
    assert_eq!((recording.findings[0].predicted, &recording.findings[0].proved), (predicted, &proof));
}

#[test]
fn absurd_numbers_are_no_reason_to_panic() {
    for number in [0, 1, u64::MAX / 3, u64::MAX] {
        for mut recording in [syncing(false), sample::find_recording(), sample::pipeline_recording()] {
            for trace in &mut recording.traces {
                for call in trace.by_comm.iter_mut().flat_map(|comm| &mut comm.syscalls) {
                    (call.calls, call.errors, call.bytes) = (number, number, Some(number));
                    (call.wall_ns, call.cpu_ns, call.failed_ns) = (Nanos(number), Nanos(number), Nanos(number));
                    call.errors_by_errno = [("ENOENT".to_owned(), number), ("EBADF".to_owned(), number)].into();
                }
                for wait in &mut trace.observed.waits {
                    (wait.ns, wait.count) = (Nanos(number), number);
                }
                for sample in &mut trace.observed.samples {
                    sample.count = number;
                }
                let path = |path: &str| PathCount {
                    path: path.to_owned(),
                    syscall: "stat".to_owned(),
                    calls: number,
                    not_found: number,
                    wall_ns: Nanos(number),
                };
                trace.paths = Some(Paths { looked_up: vec![path("a"), path("/"), path("")], not_kept: number });
                trace.wall_ns = Nanos(number);
            }
            crate::explain(&mut recording);
            assert!(recording.findings.iter().all(|finding| finding.share_of_wall.is_finite()));
        }
    }
}

/// A thread that waits for a CPU in a call does so whatever the call is for: the ledger has a row of its own for that.
#[test]
fn waiting_for_a_cpu_in_a_call_is_no_part_of_a_share() {
    let doing = |kind, ns| Doing { thread: 1, syscall: Some("fsync".to_owned()), kind, ns };
    let call =
        SyscallStats { calls: 10, wall_ns: ms(800.0), runqueue_ns: ms(600.0), ..SyscallStats::new("fsync".to_owned()) };
    let mut recording = sample::empty();
    recording.traces.push(Trace { wall_ns: ms(1_000.0), syscalls: vec![call], ..Trace::default() });
    let mut time = Time::of_threads(BTreeSet::from([1]));
    time.add_calls("fsync", 800e6, 10);
    let shares = |recording: &Recording| {
        let trace = &recording.traces[0];
        let classifier = Classifier::new(&trace.observed.stacks);
        let case = Case { recording, index: 0, trace, classifier, path: OnPath::of(trace) };
        (case.share(&time), case.on_path(&time) / case.wall())
    };
    // Half of what it did was on the path.
    recording.traces[0].path.doings = vec![doing(DoingKind::Running, ms(100.0)), doing(DoingKind::Ready, ms(300.0))];
    let (share, with_ready) = shares(&recording);
    assert!((share - 0.1).abs() < 1e-9 && (with_ready - 0.4).abs() < 1e-9, "{share} {with_ready}");
}

/// A timer or a disk ends waits by interrupting threads of the command and others, each of which is a row: on the path they are one.
#[test]
fn waits_that_are_alike_are_on_the_path_once() {
    let mut recording = sample::empty();
    let wait = |ns| sample::wait(1, Some("read"), 0xd1, ms(ns), 10);
    let mut trace = Trace { wall_ns: ms(1_000.0), ..Trace::default() };
    trace.observed.waits = vec![wait(300.0), wait(100.0), sample::wait(1, Some("read"), 0xd2, ms(50.0), 1)];
    let place = |wait: &Wait| WaitPlace { stack: wait.stack, waker: wait.waker, waker_stack: wait.waker_stack };
    let [alike, other] = [0, 2].map(|at| place(&trace.observed.waits[at]));
    let doing = |kind, ns| Doing { thread: 1, syscall: Some("read".to_owned()), kind, ns: ms(ns) };
    trace.path.doings = vec![
        doing(DoingKind::Waiting(alike), 400.0),
        doing(DoingKind::Waiting(other), 50.0),
        doing(DoingKind::Followed(alike), 200.0),
    ];
    recording.traces.push(trace);
    let trace = &recording.traces[0];
    let classifier = Classifier::new(&trace.observed.stacks);
    let case = Case { recording: &recording, index: 0, trace, classifier, path: OnPath::of(trace) };
    let on_path = case.on_path(&case.waiting(|_| true));
    assert!((on_path - 450e6).abs() < 1.0, "{on_path}");
    let followed = case.followed(|_| true);
    assert!((followed - 200e6).abs() < 1.0, "{followed}");
}

/// The finding of this name; none where it is not reported.
fn found(recording: &Recording, id: &str) -> Option<Finding> {
    recording.findings.iter().find(|finding| finding.id == id).cloned()
}

#[test]
fn the_program_that_waits_for_the_device_is_named_not_the_one_that_waits_for_it() {
    let mut recording = reading(400, 4, 3, 1, 1);
    recording.findings.clear();
    let observed = &mut recording.traces[0].observed;
    observed.stacks.push(sample::stack(0xd2, "__schedule schedule anon_pipe_read vfs_read ksys_read"));
    // It is loaded from the same device, and then reads from a pipe all the time.
    observed.waits.push(sample::wait(2, Some("read"), 0xd1, ms(4.0), 1));
    observed.waits.push(sample::wait(2, Some("read"), 0xd2, ms(1_620.0), 400));
    let sort = sample::thread(2, "sort", ms(5.0), &[("read", ms(8.0))], &observed.waits);
    observed.threads.push(sort);
    crate::explain(&mut recording);
    let title = found(&recording, "random-io").expect("it reads here and there").title;
    assert!(title.starts_with("read "), "{title}");
}

#[test]
fn the_program_whose_calls_fail_is_named_not_one_that_makes_slower_ones() {
    let mut recording = moving(&[("mkdir", 300, 0, 60.0, 0.0), ("ioctl", 5_000, 0, 3.0, 0.0)]);
    recording.findings.clear();
    let [mut mkdir, mut ioctl] = [0, 1].map(|at| recording.traces[0].by_comm[0].syscalls[at].clone());
    (mkdir.errors, mkdir.failed_ns) = (300, mkdir.wall_ns);
    mkdir.errors_by_errno = [("EEXIST".to_owned(), 300)].into();
    (ioctl.errors, ioctl.failed_ns) = (5_000, ioctl.wall_ns);
    ioctl.errors_by_errno = [("ENOTTY".to_owned(), 5_000)].into();
    let of = |comm: &str, call: SyscallStats| inodyne_model::syscall::CommCalls {
        comm: comm.to_owned(),
        syscalls: vec![call],
    };
    recording.traces[0].by_comm = vec![of("cp", mkdir), of("sh", ioctl)];
    crate::explain(&mut recording);
    let said = found(&recording, "failed-calls").expect("they fail in bulk");
    assert_eq!(said.title, "sh makes ioctl calls that fail with ENOTTY");
    assert!(said.cure.iter().all(|cure| !cure.contains("ask before")), "{:?}", said.cure);
}

/// What fails in a program that makes this call a thousand times in vain.
fn failing(call: &str, errno: &str) -> Option<Finding> {
    let mut recording = moving(&[(call, 1_000, 0, 60.0, 0.0)]);
    recording.findings.clear();
    let stats = &mut recording.traces[0].by_comm[0].syscalls[0];
    (stats.errors, stats.failed_ns) = (1_000, stats.wall_ns);
    stats.errors_by_errno = [(errno.to_owned(), 1_000)].into();
    crate::explain(&mut recording);
    found(&recording, "failed-calls")
}

#[test]
fn an_error_means_what_linux_means_by_it() {
    // `find -executable`, and SEEK_DATA at the end of a sparse file: answers.
    assert_eq!([failing("faccessat2", "EACCES"), failing("lseek", "ENXIO")], [None, None]);
    let evidence = |call, errno| failing(call, errno).expect("it fails in bulk").evidence[0].clone();
    assert!(evidence("unlinkat", "EISDIR").ends_with(": they are directories"));
    assert!(evidence("unlinkat", "EPERM").ends_with(": not permitted"));
    assert!(evidence("write", "EBADF").ends_with(": no such descriptor is open"));
    let cure = |call, errno| failing(call, errno).expect("it fails in bulk").cure[0].clone();
    assert!(cure("close", "EBADF").contains("close_range"));
    assert!(!cure("write", "EBADF").contains("close_range"));
}

/// A program of which samples in the kernel, all of its time there, have this stack.
fn sampled(call: &str, stack: &str) -> Recording {
    let mut recording = moving(&[(call, 100, 0, 900.0, 0.0)]);
    recording.findings.clear();
    let observed = &mut recording.traces[0].observed;
    observed.sample_hz = 1_000;
    observed.stacks = vec![sample::stack(7, stack)];
    observed.samples = vec![Sample {
        thread: observed.threads[0].number,
        syscall: Some(call.to_owned()),
        user_mode: false,
        stack: StackId(7),
        user_stack: StackId::default(),
        count: 900,
    }];
    crate::explain(&mut recording);
    recording
}

#[test]
fn dropping_caches_is_no_lack_of_memory() {
    let short =
        sampled("read", "shrink_slab shrink_node do_try_to_free_pages try_to_free_pages __alloc_pages_slowpath");
    assert!(found(&short, "memory-pressure").is_some());
    let dropped = sampled("write", "shrink_slab drop_slab drop_caches_sysctl_handler proc_sys_call_handler vfs_write");
    assert_eq!(found(&dropped, "memory-pressure"), None);
}

#[test]
fn another_file_system_is_advised_where_the_kernel_works_for_files() {
    let cure = |recording: &Recording| found(recording, "kernel-cpu-bound").expect("it works").cure[0].clone();
    assert!(cure(&sampled("newfstatat", "vfs_statx")).contains("file system"));
    assert!(!cure(&sampled("ioctl", "do_vfs_ioctl")).contains("file system"));
}

#[test]
fn who_removes_what_is_old_needs_more_than_types() {
    let said = |words: &str| {
        let mut recording = moving(&[("newfstatat", 1_000, 0, 30.0, 0.0), ("unlinkat", 1_000, 0, 60.0, 0.0)]);
        recording.findings.clear();
        let trace = &mut recording.traces[0];
        (trace.dtype.entries, trace.dtype.reads) = (1_000, 20);
        trace.observed.programs = vec![sample::program(&trace.observed.threads[0], words)];
        crate::explain(&mut recording);
        found(&recording, "stat-per-entry").is_some()
    };
    assert!(said("clean work"));
    assert!(said("find work -delete"));
    assert!(!said("find work -type f -mtime +7 -delete"));
}

#[test]
fn the_journal_of_what_an_overlay_stands_on_is_made_larger() {
    let cure = |below: &[&str]| {
        let mut recording = committed("__schedule schedule __jbd2_log_wait_for_space add_transaction_credits", 0, 0, 0);
        recording.findings.clear();
        let lower = |fs: &&str| inodyne_model::place::Place { fs: (*fs).to_owned(), ..sample::ext4("below", &[]) };
        (recording.places[0].fs, recording.places[0].below) = ("overlay".to_owned(), below.iter().map(lower).collect());
        crate::explain(&mut recording);
        found(&recording, "journal-wait").expect("calls wait for the journal").cure[0].clone()
    };
    assert!(cure(&["xfs"]).contains("mkfs.xfs -l") && !cure(&["xfs"]).contains("tune2fs"));
    assert!(cure(&["ext4"]).contains("tune2fs -O ^has_journal"));
    assert!(!cure(&[]).contains("^has_journal"));
}

#[test]
fn a_share_of_time_cannot_be_saved_if_nobody_knows_that_it_has_nothing_to_do_with_files() {
    // Half of the time it computes; for the rest it waits for a pipe whose other end was not seen.
    let mut recording = moving(&[("read", 10, 10, 1.0, 0.0), ("nanosleep", 10, 0, 1.0, 0.0)]);
    recording.findings.clear();
    let trace = &mut recording.traces[0];
    trace.observed.stacks = vec![
        sample::stack(7, "__schedule schedule anon_pipe_read vfs_read ksys_read"),
        sample::stack(8, "__schedule schedule do_nanosleep hrtimer_nanosleep"),
    ];
    trace.observed.waits =
        vec![sample::wait(1, Some("read"), 7, ms(400.0), 10), sample::wait(1, Some("nanosleep"), 8, ms(600.0), 10)];
    let kernel = [("read", ms(1.0)), ("nanosleep", ms(1.0))];
    trace.observed.threads = vec![sample::thread(1, "move", ms(20.0), &kernel, &trace.observed.waits)];
    trace.wall_ns = trace.observed.threads[0].lifetime_ns();
    crate::explain(&mut recording);
    let said = found(&recording, "fs-not-to-blame").expect("most of it is sleep");
    assert!(said.evidence[1].ends_with("; another 39% may concern files, too"), "{:?}", said.evidence);
    assert!((0.38..0.42).contains(&said.predicted.saving()), "{}", said.predicted.saving());
}

#[test]
fn contents_on_a_server_come_from_it_whatever_its_client_remembers_of_names() {
    let said = |fs: &str, stack: &str| {
        let mut recording = moving(&[("openat", 10, 0, 0.1, 0.0), ("read", 1_000, 131_072, 5.0, 400.0)]);
        recording.findings.clear();
        recording.places[0].fs = fs.to_owned();
        recording.traces[0].observed.stacks = vec![sample::stack(0xf1, stack)];
        crate::explain(&mut recording);
        found(&recording, "round-trips").expect("it waits for a server")
    };
    let brings = "__schedule schedule rpc_wait_bit_killable nfs_read_folio filemap_read nfs_file_read vfs_read";
    let copied = said("nfs4", brings);
    assert!(copied.bound && copied.cure[0].contains("rsize"), "{copied:?}");
    assert!(!format!("{:?}", copied.cure).contains("actimeo"), "{copied:?}");
    assert!(copied.evidence.iter().any(|line| line.starts_with("100% of that brings contents")), "{copied:?}");
    assert!(
        said("9p", "__schedule schedule p9_client_rpc p9_client_read v9fs_file_read_iter").cure[0].contains("msize")
    );
    // Before it reads, a client asks whether the file is still the same.
    let asks =
        "__schedule schedule rpc_wait_bit_killable nfs4_proc_getattr __nfs_revalidate_inode nfs_file_read vfs_read";
    let asked = said("nfs4", asks);
    assert!(!asked.bound && asked.cure[0].contains("actimeo"), "{asked:?}");
    // What passes the cache by is in no cache the next time, and no client reads ahead for it.
    let direct = "__schedule schedule schedule_timeout wait_for_completion_killable nfs_file_direct_read nfs_file_read";
    let direct = said("nfs4", direct);
    assert!(
        direct.bound && direct.cure == ["work on several files at once, so that the answers overlap"],
        "{direct:?}"
    );
    assert!(direct.evidence.iter().any(|line| line.ends_with("or is direct I/O")), "{direct:?}");
}

#[test]
fn what_a_client_sends_before_it_gives_a_lock_back_is_no_question_about_names() {
    let said = |stack: &str| {
        let mut recording = moving(&[("fcntl", 1_000, 0, 5.0, 400.0)]);
        recording.findings.clear();
        recording.places[0].fs = "nfs4".to_owned();
        recording.traces[0].observed.stacks = vec![sample::stack(0xf1, stack)];
        crate::explain(&mut recording);
        found(&recording, "round-trips").expect("it waits for a server")
    };
    let saved = said("__schedule schedule __nfs_commit_inode nfs_wb_all nfs_sync_mapping do_unlk nfs_lock");
    assert!(saved.bound && !format!("{:?}", saved.cure).contains("actimeo"), "{saved:?}");
    let asked = said("__schedule schedule rpc_wait_bit_killable nfs4_proc_getattr __nfs_revalidate_inode do_setlk");
    assert!(!asked.bound && asked.cure[0].contains("actimeo"), "{asked:?}");
}

#[test]
fn what_memory_cannot_hold_is_not_advised_to_be_there_beforehand() {
    let said = |memory_bytes| {
        // 52 MB.
        let mut recording = reading(400, 128, 396, 1, 1);
        (recording.host.memory_bytes, recording.findings) = (memory_bytes, Vec::new());
        crate::explain(&mut recording);
        let finding = found(&recording, "cold-data").expect("it waits for contents");
        assert!(finding.cures.iter().all(|cure| cure.answers < finding.evidence.len()), "{finding:?}");
        (finding.bound, finding.cure[0].clone(), finding.evidence.iter().any(|line| line.contains("of memory that")))
    };
    let (bound, cure, told) = said(40_000_000);
    assert!(bound && cure.starts_with("read less") && told, "{cure}");
    for memory in [60_000_000, 0] {
        let (bound, cure, told) = said(memory);
        assert!(!bound && cure.starts_with("load the contents") && !told, "{memory}: {cure}");
    }
}

/// Its devices' read-ahead does nothing for btrfs, so nothing can be tried with that.
#[test]
fn read_ahead_is_advised_where_the_file_system_heeds_it() {
    let said = |fs: &str| {
        let mut recording = reading(400, 128, 396, 1, 1);
        recording.places[0].fs = fs.to_owned();
        recording.findings.clear();
        crate::explain(&mut recording);
        let finding = found(&recording, "cold-data").expect("it waits for contents");
        let at = finding.cure.iter().position(|cure| cure.contains("read ahead further")).expect("it is advised");
        (finding.cure[at].clone(), matches!(finding.cures[at].change, Change::Setting { .. }))
    };
    let [ext4, btrfs] = ["ext4", "btrfs"].map(said);
    assert!(ext4.0.ends_with("blockdev --setra, /sys/block/DEVICE/queue/read_ahead_kb") && ext4.1, "{ext4:?}");
    assert!(btrfs.0.ends_with("slowly: /sys/fs/btrfs/UUID/bdi/read_ahead_kb") && !btrfs.1, "{btrfs:?}");
}

#[test]
fn who_sleeps_between_tries_to_lock_a_file_may_wait_for_that_file() {
    let said = |call: &str, errno: &str, tries: u64| {
        let mut recording = moving(&[(call, 100, 0, 1.0, 0.0), ("clock_nanosleep", 90, 0, 1.0, 0.0)]);
        recording.findings.clear();
        let trace = &mut recording.traces[0];
        let stats = &mut trace.by_comm[0].syscalls[0];
        (stats.errors, stats.errors_by_errno) = (tries, [(errno.to_owned(), tries)].into());
        trace.observed.stacks = vec![sample::stack(8, "__schedule schedule do_nanosleep hrtimer_nanosleep")];
        trace.observed.waits = vec![sample::wait(1, Some("clock_nanosleep"), 8, ms(900.0), 90)];
        let kernel = [(call, ms(1.0)), ("clock_nanosleep", ms(1.0))];
        trace.observed.threads = vec![sample::thread(1, "move", ms(20.0), &kernel, &trace.observed.waits)];
        trace.wall_ns = trace.observed.threads[0].lifetime_ns();
        crate::explain(&mut recording);
        found(&recording, "fs-not-to-blame").is_some()
    };
    // A database that is busy, a package manager behind another one, a lock file.
    assert!(!said("fcntl", "EAGAIN", 90) && !said("flock", "EAGAIN", 45) && !said("openat", "EEXIST", 90));
    // Now and then; for something else; and not at all.
    assert!(said("fcntl", "EAGAIN", 10) && said("openat", "ENOENT", 90) && said("fcntl", "EAGAIN", 0));
}

#[test]
fn a_single_sync_waits_for_the_data_of_large_writes_as_well() {
    let said = |bytes: u64| {
        let mut recording = writing_synced(800.0);
        let trace = &mut recording.traces[0];
        trace.by_comm[0].syscalls[0].bytes = Some(300 * bytes);
        let stack =
            |id, wait: &str| sample::stack(id, &format!("schedule {wait} ext4_sync_file vfs_fsync_range vfs_write"));
        trace.observed.stacks = vec![stack(0xa1, "folio_wait_writeback"), stack(0xa2, "blkdev_issue_flush")];
        trace.observed.waits.iter_mut().for_each(|wait| wait.count = 300);
        crate::explain(&mut recording);
        let finding = found(&recording, "sync-bound").expect("it syncs");
        (finding.predicted.saving(), finding.evidence.iter().any(|line| line.contains("a single sync at the end")))
    };
    // 100 ms of 915 are for the device's cache.
    let (small, told) = said(4_096);
    assert!(small > 0.95 && !told, "{small}");
    let (large, told) = said(1 << 20);
    assert!((0.08..0.14).contains(&large) && told, "{large}");
}

#[test]
fn whose_memory_is_short_is_told_by_waits_too() {
    let evidence = |wait: &str| {
        let mut recording = moving(&[("read", 100, 4_096, 10.0, 0.0)]);
        recording.findings.clear();
        let trace = &mut recording.traces[0];
        trace.observed.stacks = vec![sample::stack(9, &format!("__schedule schedule schedule_timeout {wait}"))];
        trace.observed.waits = vec![sample::wait(1, None, 9, ms(500.0), 60)];
        let root = sample::thread(1, "move", ms(20.0), &[("read", ms(10.0))], &trace.observed.waits);
        (trace.wall_ns, trace.observed.threads) = (root.lifetime_ns(), vec![root]);
        trace.limits = vec![inodyne_model::limit::Limit {
            file: "/sys/fs/cgroup/build/memory.high".to_owned(),
            kind: inodyne_model::limit::LimitKind::Memory,
            device: None,
            value: 100_000_000,
            used: 0,
            held_ns: Nanos::ZERO,
        }];
        crate::explain(&mut recording);
        found(&recording, "memory-pressure").expect("it waits for memory").evidence[1].clone()
    };
    let of_group = "its cgroup allows it 100.0 MB of memory: /sys/fs/cgroup/build/memory.high";
    assert_eq!(evidence("__mem_cgroup_handle_over_high resume_user_mode_work exit_to_user_mode_loop"), of_group);
    assert!(evidence("reclaim_throttle shrink_node try_to_free_pages").starts_with("the machine has 8.0 GB"));
}

#[test]
fn many_small_files_that_are_mapped_are_no_file_that_is_read_by_faults() {
    let said = |files: u64| {
        let mut recording = reading(400, 4, 3, 1, files);
        recording.findings.clear();
        let observed = &mut recording.traces[0].observed;
        observed.waits.iter_mut().for_each(|wait| wait.syscall = None);
        let fault = "io_schedule folio_wait_bit_common filemap_fault do_read_fault handle_mm_fault exc_page_fault";
        observed.stacks = vec![sample::stack(0xd1, &format!("__schedule schedule {fault}"))];
        crate::explain(&mut recording);
        recording.findings.into_iter().map(|finding| (finding.id, finding.cure)).next().expect("it waits for pages")
    };
    // A database; the objects of a repository, or what a linker is given.
    assert_eq!(said(150).0, "mmap-faults");
    let (id, cure) = said(400);
    assert_eq!(id, "cold-program");
    assert!(cure[1].starts_with("or touch several files at once"), "{cure:?}");
}

#[test]
fn only_what_stacks_call_a_lock_is_called_one() {
    let title = |stack: &str| {
        let mut recording = moving(&[("futex", 20_000, 0, 300.0, 0.0)]);
        recording.findings.clear();
        let observed = &mut recording.traces[0].observed;
        observed.stacks = vec![
            sample::stack(7, stack),
            sample::stack(8, "__schedule schedule futex_do_wait __futex_wait futex_wait do_futex"),
        ];
        observed.waits = [1, 2].map(|number| sample::wait(number, Some("futex"), 8, ms(50.0), 5_000)).to_vec();
        let thread = |number| sample::thread(number, "work", ms(20.0), &[("futex", ms(150.0))], &observed.waits);
        observed.threads = [1, 2].map(thread).to_vec();
        let blocked = |thread| inodyne_model::observed::BlockedSample {
            thread,
            syscall: Some("futex".to_owned()),
            user_stack: StackId(7),
            count: 50,
        };
        observed.blocked_samples = [1, 2].map(blocked).to_vec();
        recording.traces[0].wall_ns = recording.traces[0].observed.threads[0].lifetime_ns();
        crate::explain(&mut recording);
        found(&recording, "futex-contention").expect("they wake each other").title
    };
    assert!(title("__lll_lock_wait pthread_mutex_lock main").contains("wait for each other's lock"));
    for stack in ["__futex_abstimed_wait_common pthread_cond_wait main", "runtime.futex runtime.notesleep"] {
        assert!(title(stack).contains("sleep and wake each other"), "{}", title(stack));
    }
}
