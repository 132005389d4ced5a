//! Hand-made recordings, for the tests of the crates that explain and show them.
//!
//! The figures are close to what `find` and a shell pipeline do on a small machine; the times of a thread add up as
//! the kernel side's do. Only what is observed is filled in: the derived parts are empty until `explain` has run.

mod block;
mod comparison;
mod page_cache;
mod tuning;

use std::collections::BTreeMap;

use crate::Nanos;
use crate::command::CommandSpec;
use crate::histogram::{BUCKETS, Histogram, bucket_of};
use crate::host::Host;
use crate::loss::Lost;
use crate::observed::{Begin, End, Observed, Program, Sample, ThreadObserved, Wait, Waker, Window};
use crate::place::Place;
use crate::recording::Recording;
use crate::run::{CacheState, Exit, Run, Usage};
use crate::stack::{Frame, Stack, StackId};
use crate::syscall::{CommCalls, SyscallStats};
use crate::trace::{Dtype, DtypeDirectory, DtypeFs, ForcedLookup, Overhead, Refused, Trace};

pub use block::{add_block_io, disk_limits, journal};
pub use comparison::{commands_recording, durable_recording, overlay_recording};
pub use page_cache::add_page_cache;
pub use tuning::tuned_recording;

const MS: u64 = 1_000_000;

/// Milliseconds.
pub fn ms(ms: f64) -> Nanos {
    Nanos((ms * MS as f64).round() as u64)
}

/// A recording of an empty machine, without runs.
pub fn empty() -> Recording {
    let host = Host {
        kernel: "6.18.0".to_owned(),
        arch: "x86_64".to_owned(),
        cpus: 4,
        usable_cpus: None,
        cpu_model: "Sample CPU".to_owned(),
        memory_bytes: 8_000_000_000,
        virtual_machine: true,
    };
    Recording::new("0.1.0", 1_790_000_000, host)
}

/// An ext4 place made for the occasion.
pub fn ext4(label: &str, mkfs: &[&str]) -> Place {
    Place {
        label: label.to_owned(),
        fs: "ext4".to_owned(),
        source: "/dev/loop0".to_owned(),
        path: "/tmp/place".into(),
        spec: Some(if mkfs.is_empty() { "ext4".to_owned() } else { format!("ext4:mkfs={}", mkfs.join(" ")) }),
        mkfs: mkfs.iter().map(|word| (*word).to_owned()).collect(),
        mount_options: "rw,relatime".to_owned(),
        size_bytes: Some(4_294_967_296),
        settings: BTreeMap::new(),
        data: Some("tree:dirs=1000,files=30,bytes=1".to_owned()),
        made_here: true,
        data_digest: None,
        limits: None,
        wear: None,
        below: Vec::new(),
    }
}

/// A command from its words.
pub fn command(words: &str) -> CommandSpec {
    let argv = words.split(' ').map(Into::into).collect();
    CommandSpec { label: words.to_owned(), ..CommandSpec::new(argv) }
}

/// A run of the first command.
pub fn run(place: usize, cache: CacheState, traced: bool, wall: Nanos) -> Run {
    let cold = cache == CacheState::Cold;
    Run {
        place,
        command: 0,
        cache,
        settings: 0,
        block: 0,
        traced,
        wall_ns: wall,
        durable_ns: None,
        number: None,
        usage: Usage {
            user_ns: Nanos(wall.0 / 10),
            sys_ns: Nanos(wall.0 / 2),
            voluntary_switches: 164,
            involuntary_switches: 3,
            major_faults: u64::from(cold),
            minor_faults: 210,
            max_rss_bytes: 4_300_000,
        },
        device_read_bytes: Some(if cold { 12_300_000 } else { 0 }),
        device_write_bytes: Some(0),
        exit: Exit::Code(0),
    }
}

/// A row of the table of calls, all calls alike.
pub fn call(name: &str, calls: u64, errors: &[(&str, u64)], cpu: Nanos, blocked: Nanos) -> SyscallStats {
    let mut stats = SyscallStats::new(name.to_owned());
    (stats.calls, stats.cpu_ns, stats.blocked_ns, stats.wall_ns) = (calls, cpu, blocked, cpu + blocked);
    stats.errors = errors.iter().map(|(_, count)| count).sum();
    stats.errors_by_errno = errors.iter().map(|(errno, count)| ((*errno).to_owned(), *count)).collect();
    let each = stats.wall_ns.0 / calls.max(1);
    stats.failed_ns = Nanos(each.saturating_mul(stats.errors));
    stats.bytes = matches!(name, "read" | "write").then_some(calls * 4_096);
    let mut counts = vec![0; BUCKETS];
    counts[bucket_of(each)] = calls;
    stats.histogram = Histogram::from_counts(&counts);
    (stats.min_ns, stats.max_ns) = (Nanos(each / 2), Nanos(each * 20));
    stats.compute_percentiles();
    stats
}

/// A stack from its functions, leaf first.
pub fn stack(id: u64, functions: &str) -> Stack {
    let frames = functions.split(' ').map(|name| Frame::Symbol(name.to_owned())).collect();
    Stack { id: StackId(id), frames, truncated: false }
}

/// Waits that an interrupt ended.
pub fn wait(thread: u32, syscall: Option<&str>, stack: u64, ns: Nanos, count: u64) -> Wait {
    let syscall = syscall.map(str::to_owned);
    let (waker, waker_stack) = (Waker::Interrupt, StackId(0));
    Wait {
        thread,
        syscall,
        stack: StackId(stack),
        waker,
        waker_stack,
        ns,
        count,
        max_ns: Nanos(ns.0 / count.max(1) * 2),
        began_before: false,
    }
}

/// A thread that was alive for the sum of its parts, and waited as these waits say.
pub fn thread(number: u32, comm: &str, user: Nanos, kernel: &[(&str, Nanos)], waits: &[Wait]) -> ThreadObserved {
    let kernel_ns: BTreeMap<_, _> = kernel.iter().map(|(name, ns)| ((*name).to_owned(), *ns)).collect();
    let runqueue_ns = ms(0.4);
    let blocked_ns = waits.iter().filter(|wait| wait.thread == number).map(|wait| wait.ns).sum();
    let born_ns = ms(1_000.0 + f64::from(number));
    let scheduler_cpu_ns = user + kernel_ns.values().copied().sum();
    ThreadObserved {
        number,
        parent: number.saturating_sub(1).min(1),
        pid: 4_000 + number,
        tid: 4_000 + number,
        comm: comm.to_owned(),
        born_ns,
        ended_ns: born_ns + scheduler_cpu_ns + runqueue_ns + blocked_ns,
        alive: false,
        user_ns: user,
        kernel_ns,
        runqueue_ns,
        blocked_ns,
        scheduler_cpu_ns,
        waits: waits.len() as u64,
        preemptions: 3,
        process_exit: None,
    }
}

/// A program executed by a thread at its birth.
pub fn program(thread: &ThreadObserved, words: &str) -> Program {
    let args: Vec<String> = words.split(' ').map(str::to_owned).collect();
    let file = format!("/usr/bin/{}", args[0]);
    Program { thread: thread.number, pid: thread.pid, at_ns: thread.born_ns, file, args, args_truncated: false }
}

/// What a traced `find` over 30,000 files in 1,010 directories looks like.
///
/// With `typed` false the file system gives no types, so that each file is looked up.
pub fn find_trace(place: usize, cache: CacheState, typed: bool) -> Trace {
    let cold = cache == CacheState::Cold;
    let files = if typed { 0 } else { 30_000 };
    let each = if cold { 2.8e-3 } else { 0.85e-3 };
    let look_ups = ms((f64::from(files) + 3_055.0) * each);
    let (inode, directory) = if cold { (ms(7.5), ms(38.0)) } else { (Nanos::ZERO, Nanos::ZERO) };
    let stacks = vec![
        stack(
            0xa1,
            "__schedule schedule io_schedule bit_wait_io __wait_on_bit out_of_line_wait_on_bit __ext4_get_inode_loc __ext4_iget ext4_lookup __lookup_slow walk_component path_lookupat filename_lookup vfs_statx vfs_fstatat __do_sys_newfstatat do_syscall_64 entry_SYSCALL_64_after_hwframe",
        ),
        stack(
            0xa2,
            "__schedule schedule io_schedule bit_wait_io __wait_on_bit out_of_line_wait_on_bit ext4_read_bh ext4_bread __ext4_read_dirblock htree_dirblock_to_tree ext4_htree_fill_tree ext4_readdir iterate_dir __x64_sys_getdents64 do_syscall_64 entry_SYSCALL_64_after_hwframe",
        ),
        stack(0xa3, "clear_page_erms do_anonymous_page handle_mm_fault exc_page_fault asm_exc_page_fault"),
        stack(0xa4, "__schedule schedule some_new_function do_syscall_64 entry_SYSCALL_64_after_hwframe"),
    ];
    let mut waits = Vec::new();
    if cold {
        waits.push(wait(1, Some("newfstatat"), 0xa1, inode, 64));
        waits.push(wait(1, Some("getdents64"), 0xa2, directory, 97));
        waits.push(wait(1, Some("close"), 0xa4, ms(0.6), 2));
    }
    let user = ms(match (cold, typed) {
        (true, true) => 12.4,
        (true, false) => 33.0,
        (false, true) => 8.4,
        (false, false) => 23.9,
    });
    let kernel = [
        ("newfstatat", look_ups),
        ("getdents64", ms(7.0)),
        ("openat", ms(3.1)),
        ("close", ms(0.9)),
        ("fcntl", ms(0.8)),
        ("execve", ms(0.5)),
        ("write", ms(0.4)),
        ("exit_group", ms(0.2)),
        ("brk", ms(0.02)),
        ("mmap", ms(0.02)),
        ("munmap", ms(0.01)),
    ];
    let root = thread(1, "find", user, &kernel, &waits);
    let sample = |user_mode, stack, count| Sample {
        thread: 1,
        syscall: None,
        user_mode,
        stack: StackId(stack),
        user_stack: StackId(0),
        count,
    };
    let by_comm = vec![CommCalls {
        comm: "find".to_owned(),
        syscalls: vec![
            call("newfstatat", files as u64 + 3_055, &[("ENOENT", 1)], look_ups, inode),
            call("getdents64", 2_020, &[], ms(7.0), directory),
            call("openat", 1_018, &[("ENOENT", 2)], ms(3.1), Nanos::ZERO),
            call("close", 1_016, &[], ms(0.9), if cold { ms(0.6) } else { Nanos::ZERO }),
            call("fcntl", 3_040, &[], ms(0.8), Nanos::ZERO),
            call("write", 24, &[], ms(0.4), Nanos::ZERO),
            call("brk", 5, &[], ms(0.02), Nanos::ZERO),
            call("mmap", 17, &[], ms(0.02), Nanos::ZERO),
        ],
    }];
    Trace {
        place,
        cache,
        wall_ns: root.lifetime_ns() + ms(0.13),
        by_comm,
        dtype: if typed {
            Dtype { reads: 2_020, entries: 31_010, ..Dtype::default() }
        } else {
            untyped(look_ups, inode)
        },
        overhead: Overhead { ratio: 1.04, estimated: true, ns_per_call: 130.0, ..Overhead::default() },
        observed: Observed {
            started_ns: root.born_ns,
            programs: vec![program(&root, "find .")],
            threads: vec![root],
            waits,
            samples: vec![sample(true, 0, 17), sample(false, 0xa3, 3)],
            sample_hz: 997,
            stacks,
            ..Observed::default()
        },
        ..Trace::default()
    }
}

fn untyped(look_ups: Nanos, blocked: Nanos) -> Dtype {
    let device = "7:0".to_owned();
    let share = |part: u64| Nanos(look_ups.0 * part / 33_055);
    let forced = |directory, calls, blocked_ns| ForcedLookup {
        thread: 1,
        syscall: "newfstatat".to_owned(),
        directory,
        calls,
        wall_ns: share(calls) + blocked_ns,
        cpu_ns: share(calls),
        blocked_ns,
    };
    let directory = |n: u64| DtypeDirectory {
        path: format!("/d{:03}", n),
        device: device.clone(),
        inode: 12 + n,
        entries: 30,
        unknown: 30,
    };
    Dtype {
        reads: 2_020,
        entries: 31_010,
        unknown: 31_010,
        filesystems: vec![DtypeFs { fs: "ext4".to_owned(), device: device.clone(), entries: 31_010, unknown: 31_010 }],
        directories: (0..1_010).map(directory).collect(),
        forced: vec![forced(false, 30_000, blocked), forced(true, 1_010, Nanos::ZERO)],
    }
}

/// `find` without and with types, cold and warm, with untraced runs beside the traced ones.
pub fn find_recording() -> Recording {
    let mut recording = empty();
    recording.places = vec![ext4("slow", &["-O", "^filetype"]), ext4("fast", &[])];
    recording.commands = vec![command("find .")];
    for (place, cache, walls) in [
        (0, CacheState::Cold, [179.0, 174.0, 187.0]),
        (1, CacheState::Cold, [78.0, 81.0, 76.0]),
        (0, CacheState::Warm, [59.0, 57.8, 62.1]),
        (1, CacheState::Warm, [22.0, 21.2, 23.1]),
    ] {
        for wall in walls {
            recording.push_run(run(place, cache, false, ms(wall)));
        }
        let trace = find_trace(place, cache, place == 1);
        recording.push_run(run(place, cache, true, trace.wall_ns));
        recording.traces.push(trace);
    }
    recording
}

/// A shell and the many short processes it starts, in a directory that was there before; with losses and hostile names.
pub fn pipeline_recording() -> Recording {
    let mut recording = empty();
    recording.places = vec![Place {
        label: "/srv/data".to_owned(),
        fs: "xfs".to_owned(),
        source: "/dev/vda1".to_owned(),
        path: "/srv/data".into(),
        mount_options: "rw,noatime".to_owned(),
        ..Place::default()
    }];
    recording.commands = vec![command(
        "sh -c 'ls | grep -v \x1b[2J\u{202e}secret | xargs -n 1 -P 4 sha256sum --binary --check --quiet --strict' and so on",
    )];
    let stacks = vec![
        stack(0xb1, "__schedule schedule do_wait kernel_wait4 do_syscall_64 entry_SYSCALL_64_after_hwframe"),
        stack(0xb2, "__schedule schedule anon_pipe_read vfs_read ksys_read do_syscall_64"),
        stack(0xb3, "__schedule schedule mystery_wait mystery_ioctl __x64_sys_ioctl do_syscall_64"),
    ];
    let waits = vec![
        wait(1, Some("wait4"), 0xb1, ms(812.0), 3),
        wait(2, Some("read"), 0xb2, ms(640.0), 210),
        wait(3, Some("ioctl"), 0xb3, ms(44.0), 4),
    ];
    let mut threads = vec![
        thread(1, "sh", ms(1.1), &[("clone", ms(0.9)), ("wait4", ms(0.1))], &waits),
        thread(2, "xargs", ms(9.0), &[("vfork", ms(30.0)), ("read", ms(4.0))], &waits),
        thread(3, "evil\n\x1b[31mname", ms(52.0), &[("ioctl", ms(3.0))], &waits),
    ];
    threads.extend((4..30).map(|n| thread(n, "sha256sum", ms(f64::from(n)), &[("read", ms(2.0))], &waits)));
    recording.push_run(Run { exit: Exit::Code(123), ..run(0, CacheState::AsIs, true, ms(815.0)) });
    recording.traces = vec![Trace {
        wall_ns: ms(815.0),
        by_comm: vec![
            CommCalls { comm: "sh".to_owned(), syscalls: vec![call("wait4", 3, &[("ECHILD", 1)], ms(0.1), ms(812.0))] },
            CommCalls { comm: "xargs".to_owned(), syscalls: vec![call("read", 412, &[], ms(4.0), ms(640.0))] },
        ],
        overhead: Overhead { ratio: 1.012, estimated: false, ns_per_call: 130.0, ..Overhead::default() },
        lost: Lost { stacks: 12, waits: 3, ..Lost::default() },
        refused: vec![Refused {
            feature: "types of directory entries".to_owned(),
            without: "directories without file types are not found".to_owned(),
            reason: "dtype_read_exit: R0 invalid mem access 'scalar'".to_owned(),
        }],
        observed: Observed { threads, waits, stacks, sample_hz: 997, ..Observed::default() },
        ..Trace::default()
    }];
    recording
}

/// A window of almost a second: two threads that sync, one of them in a sync from before, and one that sleeps through all of it.
pub fn window_recording() -> Recording {
    let mut recording = empty();
    recording.places = vec![Place { label: "this machine".to_owned(), ..Place::default() }];
    recording.commands = vec![CommandSpec { label: "pid 4001 (work)".to_owned(), ..CommandSpec::default() }];
    let waits = vec![
        wait(1, Some("fsync"), 0xa1, ms(900.0), 300),
        Wait { began_before: true, ..wait(2, Some("fsync"), 0xa1, ms(40.0), 1) },
        wait(2, Some("fsync"), 0xa1, ms(800.0), 250),
        Wait { began_before: true, ..wait(3, Some("clock_nanosleep"), 0xa2, ms(914.9), 1) },
    ];
    let stacks = vec![
        stack(0xa1, "__schedule schedule jbd2_log_wait_commit ext4_sync_file do_fsync __x64_sys_fsync do_syscall_64"),
        stack(0xa2, "__schedule schedule do_nanosleep hrtimer_nanosleep __x64_sys_clock_nanosleep do_syscall_64"),
    ];
    let threads = vec![
        thread(1, "work", ms(10.0), &[("fsync", ms(5.0))], &waits),
        thread(2, "work", ms(70.0), &[("fsync", ms(5.0))], &waits),
        ThreadObserved { pid: 4_001, ..thread(3, "idle", ms(0.5), &[], &waits) },
    ];
    let calls = call("fsync", 550, &[], ms(10.0), ms(1_700.0));
    let mut trace = Trace { wall_ns: ms(916.0), ..Trace::default() };
    trace.overhead = Overhead { ratio: 1.0, estimated: true, ns_per_call: 310.0, ..Overhead::default() };
    trace.by_comm = vec![CommCalls { comm: "work".to_owned(), syscalls: vec![calls] }];
    trace.observed.started_ns = threads[0].born_ns;
    trace.observed.window = Window { begin: Begin::Attached, end: End::Detached };
    (trace.observed.threads, trace.observed.waits, trace.observed.stacks) = (threads, waits, stacks);
    recording.traces = vec![trace];
    recording
}
