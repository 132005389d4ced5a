//! Programs that look as if they had the trouble of a finding but have another: they must not get that finding. And for those that do
//! have it, its share and its prediction, compared with the ledger and with what the program takes when it is cured.

mod support;

use std::fs::File;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use inodyne_model::block::Asker;
use inodyne_model::cause::Cause;
use inodyne_model::finding::Finding;
use inodyne_model::ledger::{Row, RowKind};
use inodyne_model::recording::Recording;
use inodyne_model::run::median;
use inodyne_model::trace::Trace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::{Cgroup, as_in_a_terminal, calls, fixture, inodyne, machine, nothing_lost, run, scratch};

/// The recording of a program of `fixtures/truth/`, with what it printed in its last run.
fn recorded(scratch: &Path, options: &[&str], name: &str, arguments: &str) -> (Recording, String) {
    let program = fixture(&format!("truth/{name}"), scratch).display().to_string();
    let file = scratch.join("recording.inodyne");
    let mut command = inodyne();
    command.args(["run", "-o"]).arg(&file).args(options).arg("--").arg(program).args(arguments.split(' '));
    let printed = run(&mut command).ended_with(0).text();
    let recording = support::load(&file).expect("it was written");
    recording.traces.iter().for_each(nothing_lost);
    (recording, printed)
}

/// The part of the critical path in rows for which this is true.
fn part(trace: &Trace, is_meant: impl Fn(&Row) -> bool) -> f64 {
    let rows = trace.ledger.rows.iter().filter(|row| is_meant(row));
    rows.map(|row| row.ns.share_of(trace.ledger.wall_ns)).sum()
}

fn said<'a>(recording: &'a Recording, id: &str) -> Option<&'a Finding> {
    recording.findings.iter().find(|finding| finding.id == id)
}

fn expected<'a>(recording: &'a Recording, id: &str) -> &'a Finding {
    let ids: Vec<&str> = recording.findings.iter().map(|finding| finding.id.as_str()).collect();
    said(recording, id).unwrap_or_else(|| panic!("{id} is not said, but {ids:?}; {:?}", recording.traces[0].doubts))
}

/// A row in which files have no part.
fn is_elsewhere(row: &Row) -> bool {
    matches!(row.cause, Some(Cause::Sleep | Cause::Poll | Cause::Child | Cause::Futex | Cause::Socket))
        && row.via.is_empty()
}

#[test]
fn files_are_to_blame_where_a_parent_only_looks_after_workers_that_read() {
    let (_machine, scratch) = (machine(), scratch());
    let options = ["-n", "1", "--at", "ext4:size=256M,delay=1ms", "--data", "tree:dirs=1,files=1,bytes=60000000"];
    let (recording, _) = recorded(scratch.path(), &options, "polled-workers", "d0/f0 2 300");
    let trace = &recording.traces[0];
    assert!(part(trace, |row| row.syscall.as_deref() == Some("pread64")) > 0.5, "{:?}", trace.ledger);
    assert!(said(&recording, "fs-not-to-blame").is_none());
}

#[test]
fn files_are_to_blame_where_a_client_waits_for_a_server_that_reads() {
    let (_machine, scratch) = (machine(), scratch());
    let server = fixture("truth/asked-server", scratch.path()).display().to_string();
    // One that answers itself, and one that has a child do it, over a network that is none.
    for address in ["", "tcp:"] {
        let file = scratch.path().join("address").display().to_string();
        let prepare = format!("rm -f {file}; {server} serve {address}{file}");
        let options = ["-n", "1", "--at", "ext4:size=256M,delay=1ms", "--data", "tree:dirs=20,files=5,bytes=10"];
        let options = [&options[..], &["--cache", "cold", "--prepare", &prepare]].concat();
        let (recording, printed) = recorded(scratch.path(), &options, "asked-server", &format!("ask {address}{file}"));
        assert!(printed.contains("files 100"), "{printed}");
        let trace = &recording.traces[0];
        assert!(part(trace, |row| row.syscall.as_deref() == Some("recvfrom")) > 0.5, "{:?}", trace.ledger);
        // It waits for the server from its only question on, and for nothing else.
        let read = part_of_server(trace, "asked-server");
        assert!(read > 0.5, "{read} of the path: {:?}, {:?}", trace.ledger, trace.observed.helpers);
        assert!(said(&recording, "fs-not-to-blame").is_none(), "{:?}", recording.findings);
    }
}

/// The part of the path in which a server of this name waits for a device, or works for a call about files. On a busy machine, the part of
/// what is not waiting for a CPU.
fn part_of_server(trace: &Trace, name: &str) -> f64 {
    let about_files = ["openat", "read", "getdents64", "newfstatat"];
    let of_files = part(trace, |row| {
        let mut words = row.via.iter().map(String::as_str);
        words.any(|word| word == name)
            && (row.cause == Some(Cause::DeviceRead)
                || words.next_back().is_some_and(|call| about_files.contains(&call)))
    });
    of_files / (1.0 - part(trace, |row| row.kind == RowKind::Runqueue))
}

/// An ssh server for one test, on a port of its own.
struct Sshd {
    server: Child,
    directory: PathBuf,
}

impl Sshd {
    fn new(directory: &Path) -> Sshd {
        let path = |name: &str| directory.join(name).display().to_string();
        for key in ["host", "user"] {
            run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &path(key)])).ended_with(0);
        }
        // It changes into this directory, which the distribution's service creates.
        std::fs::create_dir_all("/run/sshd").expect("tests run as root");
        let mut server = Command::new("/usr/sbin/sshd");
        server.args(["-D", "-e", "-f", "/dev/null", "-h", &path("host")]);
        for option in ["ListenAddress=127.0.0.1", "StrictModes=no", "UsePAM=no", "PidFile=none", "PermitRootLogin=yes"]
        {
            server.args(["-o", option]);
        }
        server.args(["-o", &format!("AuthorizedKeysFile={}", path("user.pub"))]);
        // No port is reserved for tests: the first that is free.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        std::fs::write(directory.join("port"), port.to_string()).expect("scratch");
        let log = File::create(directory.join("log")).expect("scratch");
        let server = server.args(["-p", &port.to_string()]).stderr(log).spawn().expect("openssh-server is installed");
        let sshd = Sshd { server, directory: directory.to_owned() };
        let listens = || sshd.log().contains("Server listening");
        assert!(support::eventually(listens), "{}", sshd.log());
        sshd
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// The arguments of `ssh` for a command over there.
    fn asked(&self, command: &str) -> Vec<String> {
        let path = |name: &str| self.directory.join(name).display().to_string();
        let port = std::fs::read_to_string(path("port")).expect("it was written");
        let plain =
            ["-F", "/dev/null", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR"];
        let known = format!("UserKnownHostsFile={}", path("known"));
        let own = ["-o", &known, "-i", &path("user"), "-p", &port, "root@127.0.0.1", command].map(str::to_owned);
        plain.map(str::to_owned).into_iter().chain(own).collect()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        // Whoever has ended needs no signal.
        let _ = kill(Pid::from_raw(self.server.id() as i32), Signal::SIGTERM);
        let _ = self.server.wait();
    }
}

#[test]
fn files_are_to_blame_where_a_secure_shell_reads_them() {
    let (_machine, scratch) = (machine(), scratch());
    let sshd = Sshd::new(scratch.path());
    let file = scratch.path().join("recording.inodyne");
    let mut command = inodyne();
    command.args(["run", "--user", "root", "-o"]).arg(&file).args(["--", "ssh"]);
    // Ten times, so that the exchange of keys, half a second of computing, does not count for much.
    let find = "for i in 1 2 3 4 5 6 7 8 9 10; do find /usr/share /usr/lib -type f -size +1k; done | wc -l";
    run(command.args(sshd.asked(find))).ended_with(0);
    let recording = support::load(&file).expect("it was written");
    let trace = &recording.traces[0];
    nothing_lost(trace);
    let read = part_of_server(trace, "find");
    assert!(read > 0.3, "{read} of the path: {:?}, {:?}: {}", trace.ledger, trace.observed.helpers, sshd.log());
    // What is done over there is done for the command, and is not another program's work.
    assert!(!trace.doubts.iter().any(|doubt| doubt.contains("find")), "{:?}", trace.doubts);
    assert!(said(&recording, "fs-not-to-blame").is_none(), "{:?}", recording.findings);
}

#[test]
fn threads_that_have_nothing_to_do_want_no_lock() {
    let (_machine, scratch) = (machine(), scratch());
    let (recording, _) = recorded(scratch.path(), &["-n", "1", "--at", "tmpfs"], "idle-pool", "4 200");
    let trace = &recording.traces[0];
    let waits = trace.observed.waits.iter().filter(|wait| wait.syscall.as_deref() == Some("futex"));
    let waited: f64 = waits.map(|wait| wait.ns.share_of(trace.wall_ns)).sum();
    assert!(waited > 1.5, "its threads wait for most of their lives: {waited}");
    assert!(said(&recording, "futex-contention").is_none(), "{:?}", recording.findings);
    assert!(said(&recording, "lock-contention").is_none(), "{:?}", recording.findings);
}

#[test]
fn asking_to_wait_for_what_is_over_is_no_wait() {
    let (_machine, scratch) = (machine(), scratch());
    let (recording, printed) = recorded(scratch.path(), &["-n", "1", "--at", "tmpfs"], "late-waits", "2 100000");
    assert!(printed.contains("refused 200000"), "{printed}");
    assert!(calls(&recording.traces[0], "futex") >= 200_000);
    let finding = expected(&recording, "futex-contention");
    assert!(finding.title.contains("asks to wait when there is no longer anything to wait for"), "{finding:?}");
    assert!(finding.evidence.iter().any(|line| line.contains("EAGAIN")), "{finding:?}");
}

#[test]
fn those_who_take_turns_in_syncing_wait_for_that_all_the_time() {
    let (_machine, scratch) = (machine(), scratch());
    let options = ["-n", "1", "--at", "ext4:size=256M,delay=1ms"];
    let (recording, printed) = recorded(scratch.path(), &options, "two-syncers", "2 60");
    assert!(printed.contains("syncs 120"), "{printed}");
    let syncing = part(&recording.traces[0], |row| row.syscall.as_deref() == Some("fdatasync"));
    assert!(syncing > 0.7, "{:?}", recording.traces[0].ledger);
    let finding = expected(&recording, "sync-bound");
    // A thread that is ready again and has no CPU yet is in the call, too.
    let ready = part(&recording.traces[0], |row| row.kind == RowKind::Runqueue);
    assert!(
        (syncing - 0.05..=syncing + ready + 0.05).contains(&finding.share_of_wall),
        "{syncing} of the path, {finding:?}"
    );
    // It does already what those that call fsync could do.
    assert!(!finding.cure.iter().any(|line| line.contains("fdatasync")), "{finding:?}");
}

#[test]
fn who_waits_for_a_lock_file_would_be_done_sooner_by_as_much() {
    let (_machine, scratch) = (machine(), scratch());
    let options = ["-n", "3", "--at", "tmpfs"];
    let (recording, _) = recorded(scratch.path(), &options, "lock-file", "4 20 10");
    let trace = &recording.traces[0];
    assert!(part(trace, is_elsewhere) > 0.8, "the path is in those who have the lock, and sleep: {:?}", trace.ledger);
    let finding = expected(&recording, "lock-contention");
    assert!(finding.title.contains("waits for the lock of a file"), "{finding:?}");
    // Alone, one is never kept waiting.
    let (alone, _) = recorded(scratch.path(), &options, "lock-file", "1 20 10");
    assert!(said(&alone, "lock-contention").is_none(), "{:?}", alone.findings);
    holds(finding, &recording, &alone);
}

#[test]
fn who_has_a_lock_and_is_none_of_the_command_is_named() {
    let (_machine, scratch, cgroup) = (machine(), scratch(), Cgroup::of_service());
    let program = fixture("truth/lock-file", scratch.path());
    symlink(&program, scratch.path().join("stranger")).expect("scratch");
    // It takes the lock before the command begins, once and for long, and holds it for as long as that runs and more.
    let members = cgroup.0.join("cgroup.procs");
    let enter = format!("setsid sh -c 'echo $$ > {} && exec ./stranger 1 1 5000' > printed", members.display());
    let stranger = format!("{enter} & while flock -n lock true; do sleep 0.01; done");
    let file = scratch.path().join("recording.inodyne");
    let mut command = inodyne();
    let command = command.args(["run", "--user", "root", "--prepare", &stranger, "-o"]).arg(&file).arg("--");
    run(command.arg(&program).args(["1", "1", "1"]).current_dir(scratch.path())).ended_with(0);
    let recording = support::load(&file).expect("it was written");
    let finding = expected(&recording, "lock-contention");
    assert!(finding.title.contains("waits for the lock of a file that stranger held"), "{finding:?}");
    // Of nearly all the waiting for locks, since nobody else had it.
    let names =
        |line: &&String| line.contains("stranger (process ") && line.contains(&format!(" of {}) ", cgroup.name()));
    let line = finding.evidence.iter().find(names).unwrap_or_else(|| panic!("{finding:?}"));
    let share = line.split(") ").nth(1).and_then(|share| share.split('%').next()?.parse::<u32>().ok());
    assert!(share.is_some_and(|share| share > 90), "{line}");
    let advised = finding.cure.iter().any(|line| line.contains("at a different time from stranger"));
    assert!(advised && finding.share_of_wall > 0.5, "{finding:?}");
}

#[test]
fn those_who_rename_in_one_directory_would_be_done_sooner_in_their_own() {
    let (_machine, scratch) = (machine(), scratch());
    let options = ["-n", "5", "--at", "ext4:size=256M"];
    let (shared, _) = recorded(scratch.path(), &options, "renamers", "4 20000 shared");
    let (own, _) = recorded(scratch.path(), &options, "renamers", "4 20000 own");
    assert!(said(&own, "lock-contention").is_none(), "{:?}", own.findings);
    let finding = expected(&shared, "lock-contention");
    holds(finding, &shared, &own);
}

#[test]
fn a_limit_of_the_cgroup_is_named_and_not_the_device() {
    let (_machine, scratch, cgroup) = (machine(), scratch(), Cgroup::of("blkio"));
    // A hundred and fifty directories are as many blocks, one after the other.
    let tree = ["--at", "ext4:size=256M", "--data", "tree:dirs=150,files=5,bytes=1", "--cache", "cold"];
    let limited = sh_recorded(scratch.path(), &tree, &format!("{} && exec find . -size +1k", cgroup.reads(25)));
    let finding = expected(&limited, "io-limited");
    assert!(finding.title.contains("waits at its cgroup's limit of 25 read requests a second of 7:"), "{finding:?}");
    assert!(finding.evidence[0].contains(cgroup.name()), "{finding:?}");
    assert!(finding.bound && said(&limited, "cold-metadata").is_none(), "{:?}", limited.findings);
    // Where as much is allowed as the device delivers, it is the device.
    let script = format!("{} && exec find . -size +1k", cgroup.reads(1_000_000));
    let slow = ["--at", "ext4:size=256M,delay=3ms", "--data", "tree:dirs=150,files=5,bytes=1", "--cache", "cold"];
    let allowed = sh_recorded(scratch.path(), &slow, &script);
    assert!(!allowed.traces[0].limits.is_empty(), "the limit is recorded");
    assert!(
        said(&allowed, "io-limited").is_none() && said(&allowed, "cold-metadata").is_some(),
        "{:?}",
        allowed.findings
    );
}

#[test]
fn a_limit_on_cpu_time_is_told_from_a_busy_machine() {
    let (_machine, scratch, cgroup) = (machine(), scratch(), Cgroup::of("cpu"));
    let count = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
    let script = format!("{} && {count}", cgroup.cpu(5));
    let recording = sh_recorded(scratch.path(), &["--at", "tmpfs"], &script);
    let finding = expected(&recording, "cpu-limited");
    assert!(finding.title.contains("allows it 0.05 CPUs"), "{finding:?}");
    assert!(said(&recording, "run-queue-bound").is_none(), "{:?}", recording.findings);
    let free = sh_recorded(scratch.path(), &["--at", "tmpfs"], count);
    assert!(said(&free, "cpu-limited").is_none(), "{:?}", free.findings);
}

#[test]
fn who_may_use_one_cpu_of_several_does_not_wait_for_others() {
    let (_machine, scratch) = (machine(), scratch());
    let count = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
    // Three on the first CPU, and nobody on the others: two thirds of the time is waiting. With two it would be half, and as much computing.
    let script = format!("taskset -p -c 0 $$ >/dev/null; ({count}) & ({count}) & {count}; wait");
    let recording = sh_recorded(scratch.path(), &["--at", "tmpfs"], &script);
    let finding = expected(&recording, "run-queue-bound");
    let is_quiet = recording.traces[0].doubts.is_empty();
    assert!(finding.title.contains("programs left some CPUs free") || !is_quiet, "{finding:?}");
    assert!(finding.evidence[0].contains(" CPUs on average, other programs "), "{finding:?}");
}

/// A program beside the command, until the end of the test: in a session of its own, ahead of others as the command is.
struct Beside(Child);

impl Beside {
    fn new(script: &str) -> Beside {
        let mut command = Command::new("sh");
        let command = as_in_a_terminal(command.args(["-c", script]));
        Beside(command.spawn().expect("a shell"))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // Whoever has ended needs no signal.
        let _ = kill(Pid::from_raw(-(self.0.id() as i32)), Signal::SIGKILL);
        let _ = self.0.wait();
    }
}

#[test]
fn who_else_has_the_cpus_or_the_disk_is_named() {
    let (_machine, scratch) = (machine(), scratch());
    let count = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let of_cpus = {
        let _beside: Vec<Beside> = (0..6).map(|_| Beside::new("while :; do :; done")).collect();
        sh_recorded(scratch.path(), &["--at", "tmpfs"], count)
    };
    let doubts = &of_cpus.traces[0].doubts;
    // Others may have more than the shells.
    let names = |doubt: &String| {
        doubt.starts_with("the machine was busy") && doubt.contains("; ") && doubt.matches(" used ").count() == 2
    };
    let finding = expected(&of_cpus, "run-queue-bound");
    assert!(finding.title.ends_with(": others were using the CPUs"), "{finding:?}");
    assert!(doubts.iter().any(names), "{doubts:?}: {:?}, {:?}", of_cpus.traces[0].neighbours, of_cpus.traces[0].ledger);
    // Reads from the disk below, where the place lies as well.
    let file = scratch.path().join("read").display().to_string();
    let read = format!("while :; do dd if={file} of=/dev/null bs=1M iflag=direct status=none; done");
    run(Command::new("dd").args(["if=/dev/zero", &format!("of={file}"), "bs=1M", "count=64", "conv=fsync"]))
        .ended_with(0);
    let reads_all = |data: &str| {
        let options = ["--at", "ext4:size=1G", "--data", data, "--cache", "cold"];
        sh_recorded(scratch.path(), &options, "find . -type f | xargs cat > /dev/null")
    };
    let of_disk = {
        let _beside: Vec<Beside> = (0..4).map(|_| Beside::new(&read)).collect();
        reads_all("tree:dirs=100,files=10,bytes=1000")
    };
    let doubts = &of_disk.traces[0].doubts;
    let names = |doubt: &String| doubt.contains(" dd") && doubt.contains("of what the disk did");
    let paths = of_disk.traces[0].block.iter().flat_map(|block| &block.paths);
    let times = paths.map(|row| (&row.disk, row.path, row.asker, row.amount.queue_ns, row.amount.device_ns));
    assert!(doubts.iter().any(names), "{doubts:?}: {:?}", times.collect::<Vec<_>>());
    // Disk interrupts that hit a process that only computes do not make it a helper.
    let of_interrupts = {
        let _beside = [Beside::new(&read), Beside::new(&read), Beside::new("exec awk 'BEGIN { while (1); }'")];
        reads_all("tree:dirs=300,files=10,bytes=1000")
    };
    let helpers = &of_interrupts.traces[0].observed.helpers;
    assert!(helpers.iter().all(|helper| helper.comm != "awk"), "{helpers:?}");
}

/// A neighbour that dirties pages of the file system on which another waits for its `fsync`: the kernel's threads write them back, and no
/// request says whose they are.
#[test]
fn whose_data_is_written_back_is_named() {
    let (_machine, scratch, cgroup) = (machine(), scratch(), Cgroup::of_service());
    let writer = "import ctypes, os, time
end = time.time() + 600
file = os.open(\"m/big\", os.O_RDWR | os.O_CREAT)
while time.time() < end:
    for at in range(100): os.pwrite(file, bytes(1 << 20), at << 20)
    ctypes.CDLL(None).syncfs(file)";
    let victim =
        "for i in 1 2 3 4 5 6 7 8 9 10; do dd if=/dev/zero of=m/v$i bs=4k count=10 conv=fsync status=none; done";
    let script = format!(
        "mount --make-rprivate / && truncate -s 1G image && mkfs.ext4 -q -F image && mkdir m && mount -o loop image m
        ln -s /usr/bin/python3 writer; ./writer -c '{writer}' & trap 'kill -KILL $!; wait' EXIT; echo $! > {}/cgroup.procs
        until [ -s m/big ]; do sleep 0.1; done
        {} run -o kept.inodyne -- sh -c '{victim}'",
        cgroup.0.display(),
        inodyne().get_program().display()
    );
    let mut command = Command::new("unshare");
    run(command.args(["-m", "sh", "-ec", &script]).current_dir(scratch.path())).ended_with(0);
    let recording = support::load(&scratch.path().join("kept.inodyne")).expect("it was written");
    let trace = &recording.traces[0];
    let block = trace.block.as_ref().expect("disks were looked at");
    let own: u64 = block.dirtied.iter().filter(|one| one.asker == Asker::Command).map(|one| one.bytes).sum();
    assert_eq!(own, 10 * 10 * 4096, "{:?}", block.dirtied);
    let writer = format!("writer ({})", cgroup.name());
    let names = |doubt: &String| {
        doubt.contains(&format!("program, {writer},")) || doubt.contains(&format!("programs, {writer} above all,"))
    };
    assert!(trace.doubts.iter().any(names), "{:?}: {:?}, {:?}", trace.doubts, block.dirtied, block.paths);
    // All but a few hundred kilobytes is its own, and the finding about the syncs that wait for it says so.
    let finding = recording.findings.iter().find(|finding| finding.id == "sync-bound").expect("it syncs");
    let whose = |line: &String| {
        line.contains(" that became dirty on loop") && line.contains(&format!("% were written by {writer}"))
    };
    assert!(
        finding.evidence.iter().any(whose),
        "{finding:?}: {:?}, {:?}, {:?}",
        trace.doubts,
        block.dirtied,
        block.paths
    );
}

/// The recording of a shell script.
fn sh_recorded(scratch: &Path, options: &[&str], script: &str) -> Recording {
    let file = scratch.join("recording.inodyne");
    let mut command = inodyne();
    command.args(["run", "-o"]).arg(&file).args(options).args(["--", "sh", "-c", script]);
    run(&mut command).ended_with(0);
    support::load(&file).expect("it was written")
}

/// Insists that the cured program takes what was predicted, within the interval and half of the saving. A recording that is no basis
/// for predictions has none.
fn holds(finding: &Finding, trouble: &Recording, cured: &Recording) {
    let walls = |recording: &Recording| median(&recording.untraced_walls(recording.traces[0].key()));
    let (now, then) = (walls(trouble).expect("untraced runs"), walls(cured).expect("untraced runs"));
    if trouble.traces.iter().chain(&cured.traces).any(|trace| !trace.doubts.is_empty()) {
        return;
    }
    let saved = 1.0 - then.share_of(now);
    let [low, likely, high] = finding.predicted.savings();
    let near = low.min(likely * 0.5)..=high.max(likely * 1.5);
    assert!(near.contains(&saved), "{now:?} and cured {then:?}, which saves {saved:.2}: {:?}", finding.predicted);
}
