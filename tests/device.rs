//! What a disk can do: measured by `inodyne doctor --device`, kept, and said in reports; nothing is left of the measurement.

mod support;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use inodyne_model::Nanos;
use inodyne_model::block::{BlockIo, Disk};
use inodyne_model::disk_limits::DiskLimits;
use inodyne_model::disk_use::Use;
use inodyne_model::load::Load;
use inodyne_model::recording::Recording;
use nix::sys::signal::{Signal, kill};
use support::state::{Moments, names, processes_with};
use support::{eventually, inodyne, load, machine, prepare, run, scratch, sh, start};

/// Reads pages of a file that are in no cache, one after the other and not in their order.
const COLD_READS: &str = "import os; f = os.open('f', os.O_RDONLY); os.posix_fadvise(f, 0, 0, os.POSIX_FADV_RANDOM); \
    [os.pread(f, 4096, at * 7919 % 4000 * 4096) for at in range(150)]";

fn without_breaks(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The disk that bounds the command.
fn worked_with(block: &BlockIo) -> &Disk {
    let bound = block.bound.as_ref().expect("it worked with a disk");
    block.disks.iter().find(|disk| disk.number == bound.disk).expect("one of those")
}

/// What that disk can do.
fn limits(recording: &Recording) -> &DiskLimits {
    let block = recording.traces[0].block.as_ref().expect("block devices are looked at");
    worked_with(block).limits.as_ref().expect("they were measured")
}

#[test]
fn a_disk_is_measured_kept_and_held_against_what_a_command_makes_of_it() {
    const DELAY: Nanos = Nanos(5_000_000);
    let (_machine, scratch) = (machine(), scratch());
    let (state, recording) = (scratch.path().join("state"), scratch.path().join("reads.inodyne"));
    // In one place: it is measured, shows that nothing is left, and is read.
    let measured_for = |time: &str| {
        drop(fs::remove_dir_all(&state));
        let script = format!(
            "\"$INODYNE\" doctor --device . --for {time} || exit; ls -A > {0}/left; \
             dd if=/dev/urandom of=f bs=1M count=16 conv=fsync status=none && sync -f . && echo 3 > /proc/sys/vm/drop_caches && \
             \"$INODYNE\" run -o {1} -- python3 -c \"{COLD_READS}\"",
            scratch.path().display(),
            recording.display()
        );
        let mut around = inodyne();
        around.args(["run", "--no-trace", "--at", "ext4:delay=5ms,mount=noatime", "--"]).args(sh(&script));
        around.env("INODYNE", env!("CARGO_BIN_EXE_inodyne")).env("XDG_STATE_HOME", &state);
        let outcome = run(&mut around).ended_with(0);
        assert!(outcome.stderr.contains("to a file of up to 537 MB there that has no name"), "{}", outcome.stderr);
        let left = fs::read_to_string(scratch.path().join("left")).expect("ls wrote it");
        assert_eq!(left.replace("lost+found\n", ""), "");
        load(&recording).expect("it is whole")
    };
    // Requests wait side by side and not one after the other: whoever gets a CPU sees that at once.
    let is_deep = |recording: &Recording| limits(recording).reads_per_s > 2 * 1_000_000_000 / DELAY.0;
    let read = ["300ms", "2s", "8s"].into_iter().map(measured_for).find(is_deep).expect("it reads at depth 32");
    let trace = &read.traces[0];
    let block = trace.block.as_ref().expect("block devices are looked at");
    let disk = worked_with(block);
    let limits = limits(&read);
    assert!(limits.read.p50_ns >= DELAY && limits.read.p99_ns >= limits.read.p50_ns, "{limits:?}");
    assert!(limits.read_bytes_per_s > 0 && limits.write_bytes_per_s > 0 && limits.flush.p50_ns > Nanos::ZERO);
    let used = Use::of(disk, block, &Load::of(disk, &block.paths, trace.wall_ns)).expect("it only read");
    assert!(used.share > 0.0 && used.share < 0.5 && used.alone_ns == Some(limits.read.p50_ns), "{used:?}");
    let report = run(inodyne().args(["show", "--section", "block"]).arg(&recording)).ended_with(0).text();
    let report = without_breaks(&report);
    assert!(report.contains(&format!("of what {} can do (", disk.name)), "{report}");
    assert!(report.contains("one at a time: ") && report.contains(" measured alone"), "{report}");

    // What is of no use is reported, and the rest is known.
    let kept = state.join("inodyne/disks");
    assert_eq!(names(&kept).len(), 1);
    fs::write(kept.join("damaged.json"), "{").expect("a file of ours");
    let doctor = run(inodyne().arg("doctor").env("XDG_STATE_HOME", &state)).ended_with(0);
    let known = doctor.text().lines().filter(|line| line.contains("a read of 4 KiB takes ")).count();
    assert_eq!(known, 1, "{}", doctor.text());
    assert!(doctor.stderr.contains("damaged.json is ignored: it is damaged"), "{}", doctor.stderr);
}

#[test]
fn what_is_no_disk_is_refused_in_a_line() {
    let (_machine, scratch) = (machine(), scratch());
    let measure = |directory: &Path| {
        let mut command = inodyne();
        command.args(["doctor", "--for", "200ms", "--device"]).arg(directory).env("XDG_STATE_HOME", scratch.path());
        command
    };
    let line = run(&mut measure(Path::new("/dev/shm"))).failed_in_one_line(2);
    assert!(line.contains("tmpfs is in memory"), "{line}");
    run(&mut measure(&scratch.path().join("none"))).failed_in_one_line(2);
    let line = run(measure(scratch.path()).env("PATH", scratch.path())).failed_in_one_line(3);
    assert!(line.contains("install fio"), "{line}");
    run(inodyne().args(["doctor", "--for", "1s"])).ended_with(2);
    for (place, why) in [
        ("fuse:ext4", "is served by a program"),
        ("overlay:lower=ext4", "shows other file systems"),
        ("ext4:mount=data=journal", "reads and writes through memory only"),
        ("ext4:size=256M", " MB free, and the measurement needs "),
    ] {
        let measure = "\"$INODYNE\" doctor --device . --for 200ms";
        let mut command = inodyne();
        command.args(["run", "--no-trace", "--at", place, "--"]).args(sh(measure));
        command.env("INODYNE", env!("CARGO_BIN_EXE_inodyne")).env("XDG_STATE_HOME", scratch.path());
        let outcome = run(&mut command);
        assert!(matches!(outcome.code(), Some(2 | 3)) && outcome.stderr.contains(why), "{place}: {}", outcome.stderr);
    }
    assert!(!scratch.path().join("inodyne").exists(), "nothing is kept");
}

#[test]
fn nothing_is_left_whenever_it_is_ended() {
    let (_machine, scratch) = (machine(), scratch());
    let (on, state) = (scratch.path().join("on"), scratch.path().join("state"));
    prepare(scratch.path(), "mkdir on");
    let mut moments = Moments::new();
    for signal in [Signal::SIGINT, Signal::SIGKILL, Signal::SIGTERM, Signal::SIGKILL] {
        // A time that nobody else gives fio.
        let mut command = inodyne();
        command.args(["doctor", "--for", "913ms", "--device"]).arg(&on).env("XDG_STATE_HOME", &state);
        let running = start(&mut command);
        let is_measuring = || !processes_with("--runtime=913ms").is_empty();
        assert!(eventually(is_measuring), "fio runs");
        thread::sleep(Duration::from_millis(moments.below(3_000)));
        kill(running.pid(), signal).expect("it still runs");
        assert!(!running.end().status.success());
        assert!(eventually(|| !is_measuring()), "fio ends, too");
        assert!(names(&on).is_empty(), "{:?}", names(&on));
        assert!(!state.exists(), "what is not measured is not kept");
    }
}
